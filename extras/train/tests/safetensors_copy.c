/* Copies the listed arrays and metadata from one safetensors file to another. After an error, prints one
 * line on stderr and exits with status 1. Usage: safetensors_copy IN OUT ARRAYS [-- KEYS], where each array is
 * NAME=SHAPE, such as w=2x3. */
#include "extras/train/cli/safetensors.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { TENSORS_MAX = 64, META_MAX = 16 };

static bool parse(char *argument, struct weir_safetensor *tensor)
{
    char *at = strrchr(argument, '=');
    int64_t values = 1;
    if (!at)
        return false;
    *at++ = '\0';
    *tensor = (struct weir_safetensor){.name = argument};
    while (*at && tensor->ndim < WEIR_SAFETENSOR_DIMS) {
        int64_t dim = strtol(at, &at, 10);
        tensor->shape[tensor->ndim++] = dim;
        values *= dim;
        at += *at == 'x';
    }
    tensor->data = calloc((size_t)values + 1, sizeof *tensor->data);
    return !*at && tensor->data;
}

int main(int argc, char **argv)
{
    static struct weir_safetensor tensors[TENSORS_MAX];
    static struct weir_safetensors_meta meta[META_MAX];
    struct weir_err err = WEIR_ERR_NONE;
    int n = 0, n_meta = 0, rc = argc < 3 ? -1 : 0, i = 3;
    for (; rc == 0 && i < argc && strcmp(argv[i], "--") != 0; i++)
        rc = n < TENSORS_MAX && parse(argv[i], &tensors[n++]) ? 0 : -1;
    for (i++; rc == 0 && i < argc && n_meta < META_MAX; i++)
        meta[n_meta++].key = argv[i];
    if (rc < 0)
        return 2;
    rc = weir_safetensors_read(argv[1], tensors, n, meta, n_meta, &err);
    if (rc == 0)
        rc = weir_safetensors_write(argv[2], tensors, n, meta, n_meta, &err);
    if (rc < 0)
        fprintf(stderr, "%s\n", err.text);
    for (i = 0; i < n; i++)
        free(tensors[i].data);
    return rc < 0;
}
