/* snappy.h: the raw format of Snappy (github.com/google/snappy describes it). */
#ifndef WEIR_DATASETS_PARQUET_SNAPPY_H
#define WEIR_DATASETS_PARQUET_SNAPPY_H

#include <stddef.h>
#include <stdint.h>

/* Decompresses n bytes to exactly out_n bytes. Returns 0 or -EBADMSG. */
int weir_snappy_decompress(const uint8_t *in, size_t n, uint8_t *out, size_t out_n);

/* Called for each literal: n bytes of the output from out_at on, which the input contains from in_at on. Returns 0, or
 * a negative code that ends the walk. */
typedef int weir_snappy_literal_fn(void *user, size_t out_at, size_t in_at, size_t n);
/* Walks through the literals of data that weir_snappy_decompress accepts. Returns 0, -EBADMSG, or the function's code.
 */
int weir_snappy_literals(const uint8_t *in, size_t n, weir_snappy_literal_fn *literal, void *user);
/* Reads the tag of a literal. Returns its size, and the literal's length; 0 if the bytes are no such tag. */
size_t weir_snappy_literal_tag(const uint8_t *in, size_t n, size_t *length);

#endif
