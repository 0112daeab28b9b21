/* info_print.h: what `weir info` prints about a dataset, and about a folder of several. */
#ifndef WEIR_CLI_INFO_PRINT_H
#define WEIR_CLI_INFO_PRINT_H

#include "cli/commands.h"
#include "weir/base.h"
#include "weir/dataset.h"

/* Prints one dataset, as an object of json, or as text when that is NULL. tolerant: bad frames are passed over. */
int weir_info_print(struct weir_dataset *dataset, const char *path, bool tolerant, struct weir_json *json,
                    struct weir_err *err);

/* Prints the datasets that config->path holds, each of files that can be loaded together, and the files that cannot be
 * opened. misfit: the camera that an episode lacks, which makes them several; NULL: another reason. 1 when they were
 * printed, 0 when the path holds but one (or none), with nothing printed; or a negative code with err: what could be
 * found out was printed. */
int weir_info_print_groups(const struct weir_dataset_config *config, const char *misfit, bool as_json,
                           struct weir_err *err);

#endif
