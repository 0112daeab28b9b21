/* snappy.h: the raw format of Snappy (github.com/google/snappy describes it). */
#ifndef WEIR_DATASETS_PARQUET_SNAPPY_H
#define WEIR_DATASETS_PARQUET_SNAPPY_H

#include <stddef.h>
#include <stdint.h>

/* Decompresses n bytes to exactly out_n bytes. Returns 0 or -EBADMSG. */
int weir_snappy_decompress(const uint8_t *in, size_t n, uint8_t *out, size_t out_n);

#endif
