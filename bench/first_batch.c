#include "bench/first_batch.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>

static const char *npy_type(enum weir_dtype dtype)
{
    return dtype == WEIR_DTYPE_F32 ? "<f4" : dtype == WEIR_DTYPE_U8 ? "|u1" : "<u2";
}

/* Writes a NumPy header of version 1.0: the magic bytes, the length of the header string, and the string itself. The
 * string is padded so that the data starts at a multiple of 64. */
static int write_header(FILE *out, const struct weir_tensor *tensor)
{
    char text[256], shape[160] = "";
    size_t at = 0;
    for (int i = 0; i < tensor->ndim; i++)
        at += (size_t)snprintf(shape + at, sizeof shape - at, "%lld, ", (long long)tensor->shape[i]);
    snprintf(text, sizeof text, "{'descr': '%s', 'fortran_order': False, 'shape': (%s), }", npy_type(tensor->dtype),
             shape);
    unsigned padded = (unsigned)(10 + strlen(text) + 1 + 63) / 64 * 64 - 10;
    const unsigned char length[2] = {(unsigned char)(padded & 255), (unsigned char)(padded >> 8)};
    bool ok = fwrite("\x93NUMPY\x01\x00", 1, 8, out) == 8 && fwrite(length, 1, 2, out) == 2 &&
              fprintf(out, "%-*s\n", (int)padded - 1, text) > 0;
    return ok ? 0 : -EIO;
}

static int write_tensor(const struct weir_tensor *tensor, const char *folder, struct weir_err *err)
{
    char path[PATH_MAX];
    if (snprintf(path, sizeof path, "%s/%s.npy", folder, tensor->name) >= (int)sizeof path)
        return weir_err_set(err, -ENAMETOOLONG, "%s: the path is too long", folder);
    FILE *out = fopen(path, "wb");
    if (!out)
        return weir_err_set(err, -errno, "%s: %s", path, strerror(errno));
    size_t bytes = tensor->sample_bytes * (size_t)tensor->shape[0];
    int rc = write_header(out, tensor);
    if (rc == 0 && fwrite(tensor->data, 1, bytes, out) != bytes)
        rc = -EIO;
    if (fclose(out) != 0 || rc < 0)
        return weir_err_set(err, -EIO, "%s: cannot be written; is the disk full?", path);
    return 0;
}

int first_batch_write(const struct weir_loader_config *config, const char *folder, struct weir_err *err)
{
    struct weir_loader_config ordered = *config;
    ordered.no_shuffle = true;
    struct weir_loader *loader;
    struct weir_batch *batch;
    int rc = weir_loader_open(&loader, &ordered, err);
    if (rc == 0)
        rc = weir_loader_next(loader, &batch, err);
    if (rc == 0)
        rc = weir_err_set(err, -ENODATA, "%s: the dataset has no batch", config->data);
    for (int i = 0; rc > 0 && i < batch->n_tensors; i++)
        if (write_tensor(&batch->tensors[i], folder, err) < 0)
            rc = -EIO;
    weir_loader_close(&loader);
    return rc < 0 ? rc : 0;
}
