/* check_files.h: what weir_dataset_check_file finds in the files of a dataset. */
#ifndef WEIR_PIPELINE_VERIFY_CHECK_FILES_H
#define WEIR_PIPELINE_VERIFY_CHECK_FILES_H

#include "pipeline/verify/verify.h"

/* Checks every file, several at a time, and reports what is damaged in the order of the files. 0 however much that
 * was; negative when the machine lacks something. */
int weir_check_files(const struct weir_dataset *dataset, const struct weir_verify_config *config,
                     struct weir_verify_totals *totals, struct weir_err *err);

#endif
