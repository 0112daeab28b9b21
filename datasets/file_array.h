/* file_array.h: one array of a file, read as a whole. */
#ifndef WEIR_DATASETS_FILE_ARRAY_H
#define WEIR_DATASETS_FILE_ARRAY_H

#include "base/numbers.h"

#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

enum { WEIR_FILE_ARRAY_RANK = 8, WEIR_FILE_ARRAY_TEXT = 64 };
/* Size limit of a numeric array, in bytes. An array of strings has at most WEIR_FILE_ARRAY_TEXTS elements. */
#define WEIR_FILE_ARRAY_BYTES ((uint64_t)1 << 30)
enum { WEIR_FILE_ARRAY_TEXTS = 65536 };

/* Numbers or strings, in C order. The pointer for the other kind is NULL. */
struct weir_file_array {
    int rank; /* 0: a single item */
    uint64_t dims[WEIR_FILE_ARRAY_RANK];
    uint64_t items; /* product of dims */
    enum weir_number_type type;
    void *values;                        /* numbers of `type`, in native byte order */
    char (*texts)[WEIR_FILE_ARRAY_TEXT]; /* zero-terminated; the contents are not checked */
};

/* Frees the array and zeroes it. */
static inline void weir_file_array_free(struct weir_file_array *array)
{
    free(array->values);
    free(array->texts);
    *array = (struct weir_file_array){0};
}

#endif
