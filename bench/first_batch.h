/* first_batch.h: what the loader delivers, as files for other programs to compare with. */
#ifndef WEIR_BENCH_FIRST_BATCH_H
#define WEIR_BENCH_FIRST_BATCH_H

#include "pipeline/loader.h"

/* Writes the tensors of the first batch, in the order of the files, as FOLDER/NAME.npy. The folder must be there. */
int first_batch_write(const struct weir_loader_config *config, const char *folder, struct weir_err *err);

#endif
