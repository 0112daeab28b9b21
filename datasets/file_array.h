/* file_array.h: an array as a file has it, read whole. */
#ifndef WEIR_DATASETS_FILE_ARRAY_H
#define WEIR_DATASETS_FILE_ARRAY_H

#include "base/numbers.h"

#include <stddef.h>
#include <stdint.h>

enum { WEIR_FILE_ARRAY_RANK = 8, WEIR_FILE_ARRAY_TEXT = 64 };
/* Bytes of the numbers of one array; texts are at most WEIR_FILE_ARRAY_TEXTS of them. */
#define WEIR_FILE_ARRAY_BYTES ((uint64_t)1 << 30)
enum { WEIR_FILE_ARRAY_TEXTS = 65536 };

/* Of numbers or of texts; the other pointer is NULL. C order. */
struct weir_file_array {
    int rank; /* 0: one item */
    uint64_t dims[WEIR_FILE_ARRAY_RANK];
    uint64_t items; /* product of dims */
    enum weir_number_type type;
    void *values;                        /* items numbers of type, in the machine's byte order */
    char (*texts)[WEIR_FILE_ARRAY_TEXT]; /* items of them, each with its final zero; of unknown origin */
};

/* Frees what it has and zeroes it. */
void weir_file_array_free(struct weir_file_array *array);

#endif
