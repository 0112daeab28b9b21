/* first_batch.h: writes the loader's output to files, for comparison by other programs. */
#ifndef WEIR_BENCH_FIRST_BATCH_H
#define WEIR_BENCH_FIRST_BATCH_H

#include "weir/loader.h"

/* Writes the tensors of the first batch, in file order, as FOLDER/NAME.npy. The folder must exist. */
int first_batch_write(const struct weir_loader_config *config, const char *folder, struct weir_err *err);

#endif
