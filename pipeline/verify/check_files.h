/* check_files.h: runs weir_dataset_check_file on all files of a dataset. */
#ifndef WEIR_PIPELINE_VERIFY_CHECK_FILES_H
#define WEIR_PIPELINE_VERIFY_CHECK_FILES_H

#include "pipeline/verify/verify.h"

/* Checks every file, several at a time, and reports damage in file order. Returns 0 regardless of findings; negative on
 * a resource shortage. */
int weir_check_files(const struct weir_dataset *dataset, const struct weir_verify_config *config,
                     struct weir_verify_totals *totals, struct weir_err *err);

#endif
