#include "base/files.h"
#include "base/hash.h"
#include "datasets/chunks/heap.h"
#include "datasets/hdf5/chunk_walk_priv.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

enum {
    BLOCKS_MAX = 1024, /* maximum number of blocks, with continuations */
    HEADER_BYTES_MAX = 1 << 24,
    MESSAGE_LAYOUT = 8,
    MESSAGE_CONTINUATION = 16,
};

static int bad(const char **reason, const char *text)
{
    *reason = text;
    return -EBADMSG;
}

static int not_here(const char **reason, const char *text)
{
    *reason = text;
    return -ENOTSUP;
}

bool weir_checksum_holds(const uint8_t *bytes, size_t n)
{
#ifdef FUZZING_BUILD_MODE_UNSAFE_FOR_PRODUCTION
    return bytes && n > 4; /* a fuzzer cannot find a valid checksum, so any is accepted */
#else
    return n > 4 && weir_lookup3(bytes, n - 4) == (uint32_t)weir_le(bytes + n - 4, 4);
#endif
}

/* ---- the layout message ---- */

struct bytes {
    const uint8_t *at;
    size_t left;
    bool over; /* more bytes were requested than remained */
};

static uint64_t take(struct bytes *b, int n)
{
    if (b->left < (size_t)n) {
        b->over = true;
        b->left = 0;
        return 0;
    }
    uint64_t value = weir_le(b->at, n);
    b->at += n;
    b->left -= (size_t)n;
    return value;
}

/* Returns true if the dimensions of a chunk and the element size are those that the library reported. */
static bool is_grid(struct bytes *b, int n, int width, const struct weir_chunk_grid *grid)
{
    bool same = n == grid->rank + 1;
    for (int i = 0; i < n; i++) {
        uint64_t size = take(b, width);
        same = same && size == (i < grid->rank ? grid->chunk[i] : grid->element_bytes);
    }
    return same && !b->over;
}

/* Version 4 has five kinds of index. Each kind has its own parameters, which the index's header repeats. */
static int read_version_4(struct bytes *b, const struct weir_chunk_grid *grid, struct weir_layout_message *out,
                          const char **reason)
{
    static const int parameter_bytes[] = {[WEIR_INDEX_FIXED] = 1, [WEIR_INDEX_EXTENSIBLE] = 5, [WEIR_INDEX_BTREE2] = 6};
    uint64_t flags = take(b, 1);
    int n = (int)take(b, 1), width = (int)take(b, 1);
    if (width < 1 || width > 8 || !is_grid(b, n, width, grid))
        return bad(reason, "its header and its layout message disagree about its chunks");
    uint64_t kind = take(b, 1);
    if (kind < 1 || kind > 5)
        return not_here(reason, "an unknown kind of chunk index");
    out->kind = (enum weir_index_kind)kind;
    out->partial_unfiltered = flags & 1;
    if (out->kind == WEIR_INDEX_SINGLE && (flags & 2)) {
        out->single_bytes = take(b, 8);
        out->single_mask = (uint32_t)take(b, 4);
    } else if (out->kind >= WEIR_INDEX_FIXED) {
        for (int i = 0; i < parameter_bytes[out->kind]; i++)
            take(b, 1);
    }
    out->address = take(b, 8);
    return 0;
}

static int read_layout(const uint8_t *data, size_t n, const struct weir_chunk_grid *grid,
                       struct weir_layout_message *out, const char **reason)
{
    enum { CHUNKED = 2 };
    struct bytes b = {data, n, false};
    int rc = 0;
    uint64_t version = take(&b, 1);
    *out = (struct weir_layout_message){.kind = WEIR_INDEX_BTREE1};
    if (version == 1 || version == 2) {
        int rank = (int)take(&b, 1);
        if (take(&b, 1) != CHUNKED)
            return bad(reason, "its header declares storage that is not chunked");
        take(&b, 5);
        out->address = take(&b, 8);
        rc =
            is_grid(&b, rank, 4, grid) ? 0 : bad(reason, "its header and its layout message disagree about its chunks");
    } else if (version == 3 || version == 4) {
        if (take(&b, 1) != CHUNKED)
            return bad(reason, "its header declares storage that is not chunked");
        if (version == 4) {
            rc = read_version_4(&b, grid, out, reason);
        } else {
            int rank = (int)take(&b, 1);
            out->address = take(&b, 8);
            rc = is_grid(&b, rank, 4, grid)
                     ? 0
                     : bad(reason, "its header and its layout message disagree about its chunks");
        }
    } else {
        return not_here(reason, "an unknown version of the layout message");
    }
    return rc == 0 && b.over ? bad(reason, "its layout message is truncated") : rc;
}

/* ---- the header around it ---- */

/* The blocks of messages: the header's own block, then the continuations in the order in which messages refer to them.
 */
struct header {
    const struct weir_raw_file *file;
    const struct weir_chunk_grid *grid;
    struct weir_layout_message *message;
    bool version_2, found;
    int order_bytes; /* version 2: size of the creation order field in each message */
    struct {
        uint64_t address, bytes;
    } block[BLOCKS_MAX];
    int n_blocks;
    uint64_t bytes; /* total size of all blocks; a block that is referred to twice counts twice */
    const char **reason;
};

static int read_at(const struct weir_raw_file *file, uint64_t address, uint8_t *buffer, uint64_t n, const char **reason)
{
    uint64_t offset;
    if (__builtin_add_overflow(address, file->base, &offset) || offset > file->size_bytes ||
        n > file->size_bytes - offset)
        return bad(reason, "its header extends past the end of the file");
    return file->read(file->user, offset, buffer, n);
}

static int add_block(struct header *h, uint64_t address, uint64_t bytes)
{
    if (h->n_blocks == BLOCKS_MAX || bytes > HEADER_BYTES_MAX - h->bytes)
        return bad(h->reason, "its header has too many or too large parts");
    h->bytes += bytes;
    h->block[h->n_blocks].address = address;
    h->block[h->n_blocks++].bytes = bytes;
    return 0;
}

static int on_message(struct header *h, int type, bool shared, const uint8_t *data, size_t n)
{
    if (type == MESSAGE_CONTINUATION) {
        if (n < 16)
            return bad(h->reason, "a continuation of its header is truncated");
        return add_block(h, weir_le(data, 8), weir_le(data + 8, 8));
    }
    if (type != MESSAGE_LAYOUT)
        return 0;
    if (h->found || shared)
        return bad(h->reason, "its header has two layout messages, or a shared one");
    h->found = true;
    return read_layout(data, n, h->grid, h->message, h->reason);
}

static int read_messages(struct header *h, const uint8_t *data, size_t n)
{
    size_t head = h->version_2 ? 4 + (size_t)h->order_bytes : 8;
    int rc = 0;
    while (n >= head && rc == 0) {
        int type = (int)weir_le(data, h->version_2 ? 1 : 2);
        size_t bytes = (size_t)weir_le(data + (h->version_2 ? 1 : 2), 2);
        bool shared = data[h->version_2 ? 3 : 4] & 2;
        if (bytes > n - head)
            return bad(h->reason, "a message in its header extends past the end of the header");
        rc = on_message(h, type, shared, data + head, bytes);
        data += head + bytes;
        n -= head + bytes;
    }
    return rc;
}

/* In version 2, every block ends with a checksum, and continuations start with a signature. */
static int read_block(struct header *h, int i, uint64_t address, uint64_t bytes, size_t before)
{
    uint8_t *data = malloc(bytes ? bytes : 1);
    if (!data)
        return -ENOMEM;
    int rc = read_at(h->file, address, data, bytes, h->reason);
    size_t from = before, to = bytes;
    if (rc == 0 && h->version_2) {
        from = i == 0 ? before : 4;
        if (bytes < from + 4 || !weir_checksum_holds(data, bytes) || (i > 0 && memcmp(data, "OCHK", 4) != 0))
            rc = bad(h->reason, "the checksum of its header is wrong");
        to = bytes - 4;
    }
    if (rc == 0)
        rc = read_messages(h, data + from, to - from);
    free(data);
    return rc;
}

static int first_block(struct header *h, uint64_t address, size_t *before)
{
    uint8_t prefix[64];
    uint64_t left = h->file->size_bytes - h->file->base, n = sizeof prefix;
    if (h->file->base > h->file->size_bytes || address > left || left - address < 16)
        return bad(h->reason, "its header is past the end of the file");
    n = left - address < n ? left - address : n;
    memset(prefix, 0, sizeof prefix);
    int rc = read_at(h->file, address, prefix, n, h->reason);
    if (rc < 0)
        return rc;
    h->version_2 = memcmp(prefix, "OHDR", 4) == 0;
    if (!h->version_2) {
        if (prefix[0] != 1)
            return not_here(h->reason, "an unknown version of the object header");
        *before = 0;
        return add_block(h, address + 16, weir_le(prefix + 8, 4));
    }
    if (prefix[4] != 2)
        return not_here(h->reason, "an unknown version of the object header");
    int flags = prefix[5], size_bytes = 1 << (flags & 3);
    h->order_bytes = flags & 4 ? 2 : 0;
    size_t at = 6 + (flags & 32 ? 16u : 0u) + (flags & 16 ? 4u : 0u);
    *before = at + (size_t)size_bytes;
    uint64_t bytes = weir_le(prefix + at, size_bytes);
    if (bytes > HEADER_BYTES_MAX)
        return bad(h->reason, "its header has too many or too large parts");
    return add_block(h, address, *before + bytes + 4);
}

int weir_layout_message_read(const struct weir_raw_file *file, uint64_t object_address,
                             const struct weir_chunk_grid *grid, struct weir_layout_message *message,
                             const char **reason)
{
    struct header *h = calloc(1, sizeof *h);
    if (!h)
        return -ENOMEM;
    h->file = file;
    h->grid = grid;
    h->message = message;
    h->reason = reason;
    size_t before = 0;
    int rc = first_block(h, object_address, &before);
    for (int i = 0; i < h->n_blocks && rc == 0 && !h->found; i++)
        rc = read_block(h, i, h->block[i].address, h->block[i].bytes, before);
    if (rc == 0 && !h->found)
        rc = bad(reason, "its header has no layout message");
    free(h);
    return rc;
}
