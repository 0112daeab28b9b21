/* outputs.h: the output files of a command: opening, closing, and the check that none is an input or another output.
 * The tables of options and commands mark inputs and outputs (enum weir_opt_path). */
#ifndef WEIR_CLI_OUTPUTS_H
#define WEIR_CLI_OUTPUTS_H

#include "cli/options.h"
#include "weir/base.h"
#include "weir/dataset.h"

#include <stdio.h>

/* Checks all outputs of a command line, before anything is opened: -EINVAL, naming both, when one is an input, another
 * output, standard output or standard error, and when a dataset would be written inside one that is read. Files that
 * exist are compared by device and inode, others by their folder and name, links followed. config: the file of
 * --config, or NULL. */
int weir_outputs_check(const struct weir_command *command, const void *values, const char *const *args, int n_args,
                       const char *config, struct weir_err *err);
/* Checks the same outputs once the dataset is open: weir_dataset_spare. */
int weir_outputs_spare(const struct weir_command *command, const void *values, const struct weir_dataset *dataset,
                       struct weir_err *err);

/* Makes the folder, and those above it, and sees that files can be made there: said now, not when there is something to
 * write. what: "--ckpt-dir". 0, or -errno with a line that names both. */
int weir_output_folder(const char *folder, const char *what, struct weir_err *err);

/* Opens a file for writing and empties it. *file is NULL after failure, and when path is NULL, which is no error. */
int weir_output_open(FILE **file, const char *path, struct weir_err *err);
/* -EIO when something written to it was lost. file may be NULL. */
int weir_output_close(const char *path, FILE *file, struct weir_err *err);

#endif
