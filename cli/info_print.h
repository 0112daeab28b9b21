/* info_print.h: what `weir info` prints about a dataset, and about a folder of several. */
#ifndef WEIR_CLI_INFO_PRINT_H
#define WEIR_CLI_INFO_PRINT_H

#include "cli/commands.h"
#include "weir/base.h"
#include "weir/dataset.h"

/* Prints one dataset, as an object of json, or as text when that is NULL. tolerant: bad frames are passed over. */
int weir_info_print(struct weir_dataset *dataset, const char *path, bool tolerant, struct weir_json *json,
                    struct weir_err *err);

#endif
