#include "extras/motion/tests/npz_fixture.h"
#include "tests/fixtures/loader_fixture.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <zlib.h>

static void add(struct npzfx *npz, const void *bytes, size_t n)
{
    if (npz->capacity - npz->n < n) {
        npz->capacity = 2 * (npz->n + n);
        npz->bytes = realloc(npz->bytes, npz->capacity);
        if (!npz->bytes)
            fixture_die("out of memory");
    }
    if (n > 0)
        memcpy(npz->bytes + npz->n, bytes, n);
    npz->n += n;
}

static void number(struct npzfx *npz, uint64_t value, int bytes)
{
    uint8_t little[8];
    for (int i = 0; i < bytes; i++, value >>= 8)
        little[i] = (uint8_t)value;
    add(npz, little, (size_t)bytes);
}

static size_t deflated(const void *bytes, size_t n, uint8_t **out)
{
    z_stream stream = {0};
    if (deflateInit2(&stream, 9, Z_DEFLATED, -MAX_WBITS, 9, Z_DEFAULT_STRATEGY) != Z_OK)
        fixture_die("zlib cannot be initialised");
    size_t most = deflateBound(&stream, n);
    *out = malloc(most);
    stream.next_in = (void *)(uintptr_t)bytes;
    stream.avail_in = (uInt)n;
    stream.next_out = *out;
    stream.avail_out = (uInt)most;
    if (deflate(&stream, Z_FINISH) != Z_STREAM_END)
        fixture_die("zlib cannot compress");
    deflateEnd(&stream);
    return most - stream.avail_out;
}

struct npzfx_member *npzfx_put(struct npzfx *npz, const char *name, const void *bytes, size_t n)
{
    struct npzfx_member *member = &npz->members[npz->n_members++];
    uint8_t *packed = NULL;
    if (npz->n_members > NPZFX_MEMBERS)
        fixture_die("too many members");
    *member = (struct npzfx_member){.at = npz->n,
                                    .unpacked = n,
                                    .stored = npz->deflate ? deflated(bytes, n, &packed) : n,
                                    .crc = (uint32_t)crc32(0, n > 0 ? bytes : (const void *)"", (uInt)n),
                                    .method = npz->deflate ? 8 : 0,
                                    .zip64 = npz->zip64};
    snprintf(member->name, sizeof member->name, "%s", name);
    number(npz, 0x04034b50, 4);
    number(npz, 45, 2);
    number(npz, 0, 2);
    number(npz, member->method, 2);
    number(npz, 0, 4);
    number(npz, member->crc, 4);
    number(npz, member->stored, 4);
    number(npz, member->unpacked, 4);
    number(npz, strlen(member->name), 2);
    number(npz, 0, 2);
    add(npz, member->name, strlen(member->name));
    member->data = npz->n;
    add(npz, packed ? packed : bytes, (size_t)member->stored);
    free(packed);
    return member;
}

struct npzfx_member *npzfx_npy(struct npzfx *npz, const char *name, const char *header, const void *data, size_t n)
{
    char member[64];
    size_t length = strlen(header);
    uint8_t *bytes = malloc(10 + length + n);
    memcpy(bytes, "\x93NUMPY\x01\x00", 8);
    bytes[8] = (uint8_t)length;
    bytes[9] = (uint8_t)(length >> 8);
    memcpy(bytes + 10, header, length);
    if (n > 0)
        memcpy(bytes + 10 + length, data, n);
    snprintf(member, sizeof member, "%s.npy", name);
    struct npzfx_member *put = npzfx_put(npz, member, bytes, 10 + length + n);
    free(bytes);
    return put;
}

struct npzfx_member *npzfx_floats(struct npzfx *npz, const char *name, int rank, const size_t *dims,
                                  const float *values)
{
    char header[256] = "{'descr': '<f4', 'fortran_order': False, 'shape': (";
    size_t items = 1;
    for (int d = 0; d < rank; d++) {
        snprintf(header + strlen(header), sizeof header - strlen(header), "%zu,", dims[d]);
        items *= dims[d];
    }
    strcat(header, ")}\n");
    return npzfx_npy(npz, name, header, values, items * sizeof *values);
}

static void end_member(struct npzfx *npz, const struct npzfx_member *member)
{
    uint64_t wide = UINT32_MAX;
    number(npz, 0x02014b50, 4);
    number(npz, 45, 2);
    number(npz, 45, 2);
    number(npz, member->flags, 2);
    number(npz, member->method, 2);
    number(npz, 0, 4);
    number(npz, member->crc, 4);
    number(npz, member->zip64 ? wide : member->stored, 4);
    number(npz, member->zip64 ? wide : member->unpacked, 4);
    number(npz, strlen(member->name), 2);
    number(npz, member->zip64 ? 28 : 0, 2);
    number(npz, 0, 8);
    number(npz, 0, 2);
    number(npz, member->zip64 ? wide : member->at, 4);
    add(npz, member->name, strlen(member->name));
    if (!member->zip64)
        return;
    number(npz, 1, 2);
    number(npz, 24, 2);
    number(npz, member->unpacked, 8);
    number(npz, member->stored, 8);
    number(npz, member->at, 8);
}

void npzfx_end(struct npzfx *npz)
{
    size_t at = npz->n;
    for (int i = 0; i < npz->n_members; i++)
        end_member(npz, &npz->members[i]);
    size_t bytes = npz->n - at;
    number(npz, 0x06054b50, 4);
    number(npz, 0, 4);
    number(npz, (uint64_t)npz->n_members, 2);
    number(npz, (uint64_t)npz->n_members, 2);
    number(npz, bytes, 4);
    number(npz, at, 4);
    number(npz, 0, 2);
}

void npzfx_write(const struct npzfx *npz, const char *path)
{
    FILE *file = fopen(path, "wb");
    if (!file || fwrite(npz->bytes, 1, npz->n, file) != npz->n || fclose(file) != 0)
        fixture_die("%s: cannot be written", path);
}

void npzfx_free(struct npzfx *npz)
{
    free(npz->bytes);
    *npz = (struct npzfx){0};
}
