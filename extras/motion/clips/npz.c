#include "extras/motion/clips/npz.h"
#include "base/shortage.h"

#include "datasets/zarr/zip_index.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

struct weir_npz {
    const struct weir_raw_file *raw;
    struct weir_zip zip;
    uint64_t *headers; /* sorted file offsets of all members */
};

static int by_offset(const void *a, const void *b)
{
    uint64_t left = *(const uint64_t *)a, right = *(const uint64_t *)b;
    return (left > right) - (left < right);
}

static int sort_headers(struct weir_npz *npz, struct weir_err *err)
{
    if (npz->zip.repeated > 0)
        return weir_err_set(err, -EBADMSG, "has duplicate array names (%u); save it again", npz->zip.repeated);
    npz->headers = malloc((npz->zip.n + 1) * sizeof *npz->headers);
    if (!npz->headers)
        return weir_no_memory(err);
    for (uint32_t i = 0; i < npz->zip.n; i++)
        npz->headers[i] = npz->zip.members[i].header;
    npz->headers[npz->zip.n] = npz->zip.directory;
    qsort(npz->headers, npz->zip.n + 1, sizeof *npz->headers, by_offset);
    return 0;
}

int weir_npz_open(struct weir_npz **out, const struct weir_raw_file *raw, struct weir_err *err)
{
    struct weir_npz *npz = *out = calloc(1, sizeof *npz);
    if (!npz)
        return weir_no_memory(err);
    npz->raw = raw;
    int rc = weir_zip_open(&npz->zip, raw, err);
    if (rc == 0)
        rc = sort_headers(npz, err);
    if (rc < 0)
        weir_npz_close(out);
    return rc;
}

void weir_npz_close(struct weir_npz **npz)
{
    if (*npz) {
        weir_zip_close(&(*npz)->zip);
        free((*npz)->headers);
    }
    free(*npz);
    *npz = NULL;
}

static const struct weir_zip_member *find(const struct weir_npz *npz, const char *name)
{
    char member[256];
    int n = snprintf(member, sizeof member, "%s.npy", name);
    return n < (int)sizeof member ? weir_zip_find(&npz->zip, member) : NULL;
}

bool weir_npz_has(const struct weir_npz *npz, const char *name)
{
    return find(npz, name) != NULL;
}

/* Finds the start of a member's data, and checks that the data ends before the next member or the directory. */
static int locate(const struct weir_npz *npz, const struct weir_zip_member *member, uint64_t *offset,
                  struct weir_err *err)
{
    int rc = weir_zip_locate(npz->raw, member, offset, err);
    if (rc < 0)
        return rc;
    const uint64_t *at = bsearch(&member->header, npz->headers, npz->zip.n + 1, sizeof *at, by_offset);
    const uint64_t *last = npz->headers + npz->zip.n;
    bool alone = at && at < last && at[1] > at[0] && (at == npz->headers || at[-1] < at[0]);
    if (!alone || *offset > at[1] || member->bytes > at[1] - *offset)
        return weir_err_set(err, -EBADMSG, "%s: overlaps another member of the archive; save it again", member->name);
    return 0;
}

static int read_header(struct weir_zip_unpack *unpack, const struct weir_zip_member *member, struct weir_npy *npy,
                       struct weir_err *err)
{
    uint8_t prefix[WEIR_NPY_PREFIX];
    int rc = weir_zip_unpack_read(unpack, prefix, sizeof prefix, err);
    int n = rc < 0 ? rc : weir_npy_header_bytes(prefix, err);
    if (n < 0)
        return n;
    uint8_t *header = malloc((size_t)n);
    if (!header)
        return weir_no_memory(err);
    for (size_t i = 0; i < sizeof prefix; i++)
        header[i] = prefix[i];
    rc = weir_zip_unpack_read(unpack, header + sizeof prefix, (size_t)n - sizeof prefix, err);
    if (rc == 0)
        rc = weir_npy_parse(header, (size_t)n, npy, err);
    free(header);
    if (rc == 0 && member->unpacked - (uint64_t)n != npy->data_bytes)
        rc = weir_err_set(err, -EBADMSG, "holds %llu bytes, but its npy header says %llu; save it again",
                          (unsigned long long)(member->unpacked - (uint64_t)n), (unsigned long long)npy->data_bytes);
    return rc;
}

static int read_data(struct weir_zip_unpack *unpack, const struct weir_npy *npy, struct weir_file_array *array,
                     struct weir_err *err)
{
    size_t n = (size_t)npy->data_bytes;
    uint8_t *data = malloc(n + 1);
    if (!data)
        return weir_no_memory(err);
    int rc = weir_zip_unpack_read(unpack, data, n, err);
    if (rc == 0)
        rc = weir_zip_unpack_end(unpack, err);
    if (rc == 0)
        rc = weir_npy_array(npy, data, array, err);
    free(data);
    return rc;
}

static int read_member(const struct weir_npz *npz, const struct weir_zip_member *member, uint64_t offset,
                       struct weir_file_array *array, struct weir_err *err)
{
    struct weir_npy npy;
    struct weir_zip_unpack *unpack;
    int rc = weir_zip_unpack_open(&unpack, npz->raw, member, offset, err);
    if (rc == 0)
        rc = read_header(unpack, member, &npy, err);
    if (rc == 0)
        rc = read_data(unpack, &npy, array, err);
    weir_zip_unpack_close(&unpack);
    return rc;
}

int weir_npz_read(struct weir_npz *npz, const char *name, struct weir_file_array *array, struct weir_err *err)
{
    uint64_t offset = 0;
    struct weir_err why = WEIR_ERR_NONE;
    const struct weir_zip_member *member = find(npz, name);
    *array = (struct weir_file_array){0};
    if (!member)
        return weir_err_set(err, -ENOENT, "%s: is not in the file", name);
    int rc = locate(npz, member, &offset, err);
    if (rc < 0)
        return rc;
    rc = read_member(npz, member, offset, array, &why);
    return rc < 0 ? weir_err_set(err, rc, "%s: %s", name, why.text) : 0;
}
