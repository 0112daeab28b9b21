#include "base/shortage.h"
#include "datasets/zarr/zip_index.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#define ZLIB_CONST /* makes zlib's input pointers const */
#include <zlib.h>

enum { STORED = 0, DEFLATE = 8 };
enum { BUFFER_BYTES = 1 << 16, PART_BYTES = 1 << 30 /* maximum per call, because zlib counts in 32 bits */ };
/* Deflate makes at most 258 bytes from 2 bits. The stream's headers make up for the rounding error. */
enum { DEFLATE_RATIO_MAX = 1032 };

struct weir_zip_unpack {
    const struct weir_raw_file *raw;
    const struct weir_zip_member *member;
    uint64_t at, left; /* stored data: file offset, remaining bytes */
    uint64_t made;     /* bytes unpacked so far */
    uint32_t crc;
    bool started, ended; /* state of the deflate stream */
    z_stream stream;
    uint8_t buffer[BUFFER_BYTES];
};

static int damaged(struct weir_err *err, const char *what)
{
    return weir_err_set(err, -EBADMSG, "%s; the archive is damaged: write it again", what);
}

static int check_sizes(const struct weir_zip_member *member, struct weir_err *err)
{
    if (member->method != STORED && member->method != DEFLATE)
        return weir_err_set(err, -ENOTSUP,
                            "is compressed with method %u; only stored and deflate are supported, which np.savez and "
                            "np.savez_compressed write",
                            member->method);
    if (member->method == STORED && member->unpacked != member->bytes)
        return damaged(err, "is stored, but with two different sizes");
    if (member->method == DEFLATE && member->unpacked / DEFLATE_RATIO_MAX > member->bytes)
        return damaged(err, "cannot unpack to the size that the archive declares");
    return 0;
}

int weir_zip_unpack_open(struct weir_zip_unpack **unpack, const struct weir_raw_file *raw,
                         const struct weir_zip_member *member, uint64_t offset, struct weir_err *err)
{
    *unpack = NULL;
    int rc = check_sizes(member, err);
    if (rc < 0)
        return rc;
    struct weir_zip_unpack *u = calloc(1, sizeof *u);
    if (!u)
        return weir_no_memory(err);
    *u = (struct weir_zip_unpack){.raw = raw, .member = member, .at = offset, .left = member->bytes};
    u->started = member->method == DEFLATE && inflateInit2(&u->stream, -MAX_WBITS) == Z_OK;
    if (member->method == DEFLATE && !u->started) {
        free(u);
        return weir_no_memory(err);
    }
    *unpack = u;
    return 0;
}

void weir_zip_unpack_close(struct weir_zip_unpack **unpack)
{
    if (*unpack && (*unpack)->started)
        inflateEnd(&(*unpack)->stream);
    free(*unpack);
    *unpack = NULL;
}

static int read_stored(struct weir_zip_unpack *u, void *bytes, size_t n, struct weir_err *err)
{
    if (n > u->left)
        return damaged(err, "ends too early");
    int rc = u->raw->read(u->raw->user, u->at, bytes, n);
    if (rc < 0)
        return weir_err_set(err, rc, "%s", strerror(-rc));
    u->at += n;
    u->left -= n;
    return 0;
}

static int fill_buffer(struct weir_zip_unpack *u, struct weir_err *err)
{
    size_t n = u->left < BUFFER_BYTES ? (size_t)u->left : BUFFER_BYTES;
    int rc = read_stored(u, u->buffer, n, err);
    u->stream.next_in = u->buffer;
    u->stream.avail_in = rc < 0 ? 0 : (uInt)n;
    return rc;
}

/* Unpacks up to n bytes; *made is less than n only at the end of the stream. zlib may still have output when there is
 * no more input. */
static int inflate_some(struct weir_zip_unpack *u, void *bytes, size_t n, size_t *made, struct weir_err *err)
{
    int rc = 0;
    u->stream.next_out = bytes;
    u->stream.avail_out = (uInt)n;
    while (rc == 0 && u->stream.avail_out > 0 && !u->ended) {
        if (u->stream.avail_in == 0 && u->left > 0)
            rc = fill_buffer(u, err);
        int state = rc == 0 ? inflate(&u->stream, Z_NO_FLUSH) : Z_OK;
        u->ended = state == Z_STREAM_END;
        if (state == Z_MEM_ERROR)
            rc = weir_no_memory(err);
        else if (state != Z_OK && state != Z_STREAM_END)
            rc = damaged(err, state == Z_BUF_ERROR ? "ends too early" : "is not a deflate stream");
    }
    *made = n - u->stream.avail_out;
    return rc;
}

int weir_zip_unpack_read(struct weir_zip_unpack *u, void *bytes, size_t n, struct weir_err *err)
{
    uint8_t *to = bytes;
    if (n > u->member->unpacked - u->made)
        return damaged(err, "ends too early");
    while (n > 0) {
        size_t part = n < PART_BYTES ? n : PART_BYTES, made = part;
        int rc = u->started ? inflate_some(u, to, part, &made, err) : read_stored(u, to, part, err);
        if (rc < 0)
            return rc;
        if (made < part)
            return damaged(err, "ends too early");
        u->crc = (uint32_t)crc32(u->crc, to, (uInt)part);
        u->made += part;
        to += part;
        n -= part;
    }
    return 0;
}

int weir_zip_unpack_end(struct weir_zip_unpack *u, struct weir_err *err)
{
    uint8_t beyond;
    size_t made = 0;
    int rc = u->started && !u->ended ? inflate_some(u, &beyond, 1, &made, err) : 0;
    if (rc < 0)
        return rc;
    if (made > 0 || u->made != u->member->unpacked)
        return damaged(err, "is longer than its header says");
#ifndef FUZZING_BUILD_MODE_UNSAFE_FOR_PRODUCTION
    if (u->crc != u->member->crc)
        return damaged(err, "does not match its checksum");
#endif
    return 0;
}
