#include "base/files.h"
#include "datasets/chunks/filters.h"
#include "datasets/zarr/zarr_array_write_priv.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { PATH_ROOM = 4096, BLOSC_SPARE = 16 };

/* ---- keys ---- */

static int failed(const char *path, int rc, struct weir_err *err)
{
    if (rc == -ENOSPC || rc == -EDQUOT)
        return weir_err_set(err, rc, "%s: cannot be written: %s; free space, and convert again to resume", path,
                            strerror(-rc));
    return weir_err_set(err, rc, "%s: cannot be written: %s", path, strerror(-rc));
}

int weir_zarr_write_key(const char *root, const char *key, const void *bytes, size_t n, struct weir_err *err)
{
    char aside[PATH_ROOM], path[PATH_ROOM];
    if (snprintf(path, sizeof path, "%s/%s", root, key) >= (int)sizeof path ||
        snprintf(aside, sizeof aside, "%s/.writing", root) >= (int)sizeof aside)
        return failed(root, -ENAMETOOLONG, err);
    int fd = weir_output_private(aside, O_WRONLY | O_CREAT, 0666, err);
    if (fd < 0)
        return fd;
    int rc = ftruncate(fd, 0) == 0 ? weir_write_at(fd, 0, bytes, n) : -errno;
    if (close(fd) != 0 && rc == 0)
        rc = -errno;
    if (rc == 0 && rename(aside, path) != 0)
        rc = -errno;
    return rc < 0 ? failed(path, rc, err) : 0;
}

static int make_folder(const char *root, const char *key, struct weir_err *err)
{
    char path[PATH_ROOM];
    if (snprintf(path, sizeof path, "%s/%s", root, key) >= (int)sizeof path)
        return failed(root, -ENAMETOOLONG, err);
    return mkdir(path, 0777) == 0 || errno == EEXIST ? 0 : failed(path, -errno, err);
}

int weir_zarr_write_group(const char *root, const char *key, struct weir_err *err)
{
    static const char group[] = "{\n    \"zarr_format\": 2\n}";
    char name[128];
    snprintf(name, sizeof name, "%s%s.zgroup", key, *key ? "/" : "");
    int rc = make_folder(root, key, err);
    return rc < 0 ? rc : weir_zarr_write_key(root, name, group, sizeof group - 1, err);
}

/* ---- chunks ---- */

int weir_zarr_write_open(struct weir_zarr_writing *array, struct weir_err *err)
{
    array->row_bytes = array->element_bytes;
    for (int d = 1; d < array->rank; d++)
        array->row_bytes *= (size_t)array->dims[d];
    size_t bytes = array->image ? 0 : array->row_bytes * (size_t)array->chunk_rows;
    if (bytes > INT32_MAX / 2)
        return weir_err_set(err, -EINVAL, "%s: its chunks would exceed 1 GiB; use a smaller --chunk-frames",
                            array->name);
    array->chunk = calloc(1, bytes + 1);
    array->packed = malloc(bytes + BLOSC_SPARE);
    if (!array->chunk || !array->packed)
        return weir_err_set(err, -ENOMEM, "%s: out of memory", array->root);
    return make_folder(array->root, array->name, err);
}

void weir_zarr_write_close(struct weir_zarr_writing *array)
{
    free(array->chunk);
    free(array->packed);
    array->chunk = array->packed = NULL;
}

static void chunk_key(const struct weir_zarr_writing *array, uint64_t number, char key[192])
{
    static const char *const ends[] = {"", "", ".0", ".0.0", ".0.0.0"};
    snprintf(key, 192, "%s/%llu%s", array->name, (unsigned long long)number, ends[array->rank]);
}

/* Writes the whole chunk. Rows after the last one are zero. */
static int write_chunk(struct weir_zarr_writing *array, uint64_t number, struct weir_err *err)
{
    char key[192];
    size_t bytes = array->row_bytes * (size_t)array->chunk_rows, n = bytes;
    const uint8_t *out = array->chunk;
#if WEIR_HAVE_BLOSC
    if (array->compress) {
        n = weir_blosc_pack(array->chunk, bytes, array->element_bytes, array->packed, bytes + BLOSC_SPARE);
        out = array->packed;
        if (n == 0)
            return weir_err_set(err, -EIO, "%s/%s: blosc cannot pack a chunk", array->root, array->name);
    }
#endif
    chunk_key(array, number, key);
    return weir_zarr_write_key(array->root, key, out, n, err);
}

int weir_zarr_write_row(struct weir_zarr_writing *array, const void *bytes, size_t length, struct weir_err *err)
{
    char key[192];
    uint64_t within = array->at % array->chunk_rows;
    int rc = 0;
    if (array->image) {
        chunk_key(array, array->at++, key);
        return weir_zarr_write_key(array->root, key, bytes, length, err);
    }
    if (length != array->row_bytes)
        return weir_err_set(err, -EBADMSG, "%s: a row has %zu bytes, but the rows of the array have %zu", array->name,
                            length, array->row_bytes);
    memcpy(array->chunk + within * array->row_bytes, bytes, length);
    if (within + 1 == array->chunk_rows) {
        rc = write_chunk(array, array->at / array->chunk_rows, err);
        memset(array->chunk, 0, array->row_bytes * (size_t)array->chunk_rows);
    }
    array->at++;
    return rc;
}

int weir_zarr_write_flush(struct weir_zarr_writing *array, struct weir_err *err)
{
    bool is_part = !array->image && array->at % array->chunk_rows > 0;
    return is_part ? write_chunk(array, array->at / array->chunk_rows, err) : 0;
}

/* ---- resuming ---- */

static int read_key(const char *root, const char *key, uint8_t *bytes, size_t most, size_t *n)
{
    char path[PATH_ROOM];
    snprintf(path, sizeof path, "%s/%s", root, key);
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        return -errno;
    ssize_t got = 0;
    for (*n = 0; *n < most && (got = read(fd, bytes + *n, most - *n)) > 0;)
        *n += (size_t)got;
    close(fd);
    return got < 0 ? -EIO : 0;
}

int weir_zarr_write_resume(struct weir_zarr_writing *array, uint64_t row, struct weir_err *err)
{
    size_t bytes = array->row_bytes * (size_t)array->chunk_rows, n;
    uint64_t within = row % array->chunk_rows;
    struct weir_filters filters = {array->compress, {{WEIR_FILTER_ZARR_BLOSC, 0}}};
    const uint8_t *unpacked = NULL;
    const char *why = "";
    char key[192];
    array->at = row;
    if (array->image || within == 0)
        return 0;
    chunk_key(array, row / array->chunk_rows, key);
    struct weir_unfilter_context *context = weir_unfilter_open();
    int rc = context ? read_key(array->root, key, array->packed, bytes + BLOSC_SPARE, &n) : -ENOMEM;
    if (rc == 0)
        rc = weir_unfilter(context, &filters, 0, array->packed, n, bytes, &unpacked, &why);
    if (rc == 0)
        memcpy(array->chunk, unpacked, within * array->row_bytes);
    weir_unfilter_close(&context);
    return rc < 0 ? weir_err_set(err, -EBADMSG, "%s: cannot be resumed", key) : 0;
}

int weir_zarr_write_about(struct weir_zarr_writing *array, uint64_t rows, struct weir_err *err)
{
    static const char blosc[] =
        "{\"id\": \"blosc\", \"cname\": \"lz4\", \"clevel\": 5, \"shuffle\": 1, \"blocksize\": 0}";
    char text[1024], key[192], shape[128] = "", rest[96] = "", compressor[96] = "null";
    for (int d = 1; d < array->rank; d++) {
        size_t used = strlen(rest);
        snprintf(rest + used, sizeof rest - used, ", %llu", (unsigned long long)array->dims[d]);
    }
    array->dims[0] = rows;
    snprintf(shape, sizeof shape, "%llu%s", (unsigned long long)rows, rest);
    if (array->image)
        snprintf(compressor, sizeof compressor, "{\"id\": \"imagecodecs_%s\"}", array->image);
    else if (array->compress)
        snprintf(compressor, sizeof compressor, "%s", blosc);
    int n = snprintf(text, sizeof text,
                     "{\n    \"chunks\": [%llu%s],\n    \"compressor\": %s,\n    \"dtype\": \"%s\",\n    "
                     "\"fill_value\": 0,\n    \"filters\": null,\n    \"order\": \"C\",\n    \"shape\": [%s],\n    "
                     "\"zarr_format\": 2\n}",
                     (unsigned long long)array->chunk_rows, rest, compressor, array->dtype, shape);
    snprintf(key, sizeof key, "%s/.zarray", array->name);
    return weir_zarr_write_key(array->root, key, text, (size_t)n, err);
}
