/* first_batch.h: writes the loader's first batch to files, so that other programs can compare it. */
#ifndef WEIR_BENCH_FIRST_BATCH_H
#define WEIR_BENCH_FIRST_BATCH_H

#include "weir/loader.h"

/* Writes each tensor of the first unshuffled batch to FOLDER/NAME.npy. The folder must exist. */
int first_batch_write(const struct weir_loader_config *config, const char *folder, struct weir_err *err);

#endif
