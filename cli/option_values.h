/* option_values.h: the value of an option, from the command line or from a file of --config. */
#ifndef WEIR_CLI_OPTION_VALUES_H
#define WEIR_CLI_OPTION_VALUES_H

#include "cli/options.h"

/* Where it stands, for the error line. */
struct weir_option_origin {
    const struct weir_command *command;
    const char *file; /* NULL = the command line */
    int line;
};

/* Puts the value into its field of values; a flag becomes true, whatever the text. 0, or -EINVAL after a line on
 * stderr. */
int weir_option_set(const struct weir_option_origin *origin, const struct weir_opt *opt, const char *text,
                    void *values);

/* The value as one types it; NULL when it is what it is without being typed, "" for a flag that is set. buffer may be
 * used for it. */
enum { WEIR_OPTION_TEXT = 64 };
const char *weir_option_typed(const struct weir_opt *opt, const void *values, char buffer[WEIR_OPTION_TEXT]);

/* Choice number index of an enum, "" past the end. */
void weir_option_choice(const struct weir_opt *opt, int index, char text[WEIR_OPTION_TEXT]);

#endif
