/* outputs.h: opens and closes a command's output files, and checks that no output is also an input or another output.
 * The tables of options and commands mark inputs and outputs (enum weir_opt_path). */
#ifndef WEIR_CLI_OUTPUTS_H
#define WEIR_CLI_OUTPUTS_H

#include "cli/options.h"
#include "weir/base.h"
#include "weir/dataset.h"

#include <stdio.h>

/* Checks the outputs on a command line before anything is opened. Returns -EINVAL with an error that names both files
 * if an output is also an input, another output, standard output or standard error, or is a URL. Also returns -EINVAL
 * if a dataset would be written inside an input. Existing files are compared by device and inode. Other files are
 * compared by folder and name, after links are resolved. config is the --config file, or NULL. */
int weir_outputs_check(const struct weir_command *command, const void *values, const char *const *args, int n_args,
                       const char *config, struct weir_err *err);
/* Checks that no output is a file of the open dataset (weir_dataset_spare). */
int weir_outputs_spare(const struct weir_command *command, const void *values, const struct weir_dataset *dataset,
                       struct weir_err *err);

/* Creates the folder and its parents, and checks that the folder is writable. what is the option's name, such as
 * "--ckpt-dir". Returns 0, or -errno with an error that names the folder and the option. */
int weir_output_folder(const char *folder, const char *what, struct weir_err *err);

/* Opens a file for writing and truncates it. If path is NULL, sets *file to NULL and returns 0. */
int weir_output_open(FILE **file, const char *path, struct weir_err *err);
/* Closes the file. Returns -EIO if written data was lost. Accepts a NULL file. */
int weir_output_close(const char *path, FILE *file, struct weir_err *err);

/* A page of --html, made from what a command writes as JSON. */
struct weir_output_page {
    FILE *json; /* for the object; NULL = no page */
    FILE *file_;
    char *text_;
    size_t size_;
};

/* Opens the file for the page, and a stream for the object. path: NULL = no page. Returns 0 or -errno. */
int weir_output_page_open(struct weir_output_page *page, const char *path, struct weir_err *err);
/* Writes the page, unless no object was written, and closes the file. Accepts a page that was not opened. */
int weir_output_page_close(struct weir_output_page *page, const char *path, struct weir_err *err);

#endif
