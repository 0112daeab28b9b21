/* outputs.h: the files that a command writes, each of them another one. */
#ifndef WEIR_CLI_OUTPUTS_H
#define WEIR_CLI_OUTPUTS_H

#include "base/err.h"

struct weir_output {
    const char *option; /* "--log" */
    const char *path;   /* NULL: not given */
};

/* -EINVAL, naming both, when two of them are one file, or one is the file that standard output goes to: by their
 * inodes, and for files that are not there yet by folder and name. */
int weir_outputs_check(const struct weir_output *outputs, int n, struct weir_err *err);

#endif
