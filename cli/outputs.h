/* outputs.h: the files that a command writes: checks that they are different ones and none of the dataset, opening and
 * closing. */
#ifndef WEIR_CLI_OUTPUTS_H
#define WEIR_CLI_OUTPUTS_H

#include "base/err.h"
#include "datasets/dataset.h"

#include <stdio.h>

struct weir_output {
    const char *option; /* "--log" */
    const char *path;   /* NULL: not given */
};

/* -EINVAL, naming both, when two of them are one file, or one is the file that standard output goes to. Files that
 * exist are compared by device and inode, others by their folder and name. */
int weir_outputs_check(const struct weir_output *outputs, int n, struct weir_err *err);
/* -EEXIST, naming it, when one of them exists and is one of these files, which are a dataset's. */
int weir_outputs_spare(const struct weir_output *outputs, int n, const struct weir_path_list *files,
                       struct weir_err *err);

/* Makes the folder, and those above it, and sees that files can be made there: said now, not when there is something to
 * write. what: "--ckpt-dir". 0, or -errno with a line that names both. */
int weir_output_folder(const char *folder, const char *what, struct weir_err *err);

/* Opens a file to write, and empties it only once it is known not to be a file of the dataset. *file is NULL after
 * failure, and without a path, which is none. */
int weir_output_open(FILE **file, const char *path, const struct weir_dataset *dataset, struct weir_err *err);
/* -EIO when something written to it was lost. file may be NULL. */
int weir_output_close(const char *path, FILE *file, struct weir_err *err);

#endif
