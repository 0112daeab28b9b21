/* outputs.h: the files that a command writes: checks that none of them is read or written by another name, opening and
 * closing. What is written and what is read is marked in the tables of options and commands (enum weir_opt_path). */
#ifndef WEIR_CLI_OUTPUTS_H
#define WEIR_CLI_OUTPUTS_H

#include "base/err.h"
#include "cli/options.h"
#include "datasets/dataset.h"

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

/* Opens a file to write, and empties it. *file is NULL after failure, and without a path, which is none. */
int weir_output_open(FILE **file, const char *path, struct weir_err *err);
/* -EIO when something written to it was lost. file may be NULL. */
int weir_output_close(const char *path, FILE *file, struct weir_err *err);

#endif
