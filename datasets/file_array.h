/* file_array.h: a whole array of a file. */
#ifndef WEIR_DATASETS_FILE_ARRAY_H
#define WEIR_DATASETS_FILE_ARRAY_H

#include "base/numbers.h"

#include <stddef.h>
#include <stdint.h>

enum { WEIR_FILE_ARRAY_RANK = 8, WEIR_FILE_ARRAY_TEXT = 64 };
/* Limit for the numbers of one array, bytes; texts: at most WEIR_FILE_ARRAY_TEXTS. */
#define WEIR_FILE_ARRAY_BYTES ((uint64_t)1 << 30)
enum { WEIR_FILE_ARRAY_TEXTS = 65536 };

/* Numbers or texts, in C order; the other pointer is NULL. */
struct weir_file_array {
    int rank; /* 0: one item */
    uint64_t dims[WEIR_FILE_ARRAY_RANK];
    uint64_t items; /* product of dims */
    enum weir_number_type type;
    void *values;                        /* numbers of this type, in native byte order */
    char (*texts)[WEIR_FILE_ARRAY_TEXT]; /* zero-terminated, otherwise unchecked */
};

/* Frees the array and zeroes it. */
void weir_file_array_free(struct weir_file_array *array);

#endif
