/* tune_print.h: what `weir tune` found: the curve and the command line, one JSON object, a file for --config. */
#ifndef WEIR_CLI_TUNE_TUNE_PRINT_H
#define WEIR_CLI_TUNE_TUNE_PRINT_H

#include "cli/tune/tune_session.h"

void tune_print_head(const struct tune_session *session, FILE *out);
/* The curve, the noise, how it ended, and the command line, which is the last line. */
void tune_print(const struct tune_session *session, FILE *out);
void tune_print_json(const struct tune_session *session, const struct weir_command *command, FILE *out);
/* Writes the file of --out; it is replaced as a whole. 0 or -errno. */
int tune_write_config(struct tune_session *session, struct weir_err *err);

#endif
