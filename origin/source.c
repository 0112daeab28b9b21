#include "origin/source.h"
#include "base/claims.h"
#include "base/files.h"
#include "base/shortage.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum {
    BLOCK = 64 << 10,
    BLOCKS = 32,
    RUN_MAX = 16,  /* blocks that one request fetches */
    WHOLE_MAX = 4, /* blocks of files that are fetched as a whole */
    HELD_MAX = 256,
    HELD_MAX_BYTES = 64 << 20,
    PIECE = 1 << 20
};

struct weir_source {
    int fd; /* -1 for files of an origin */
    struct weir_origin *origin;
    char *path;
    struct weir_file_id id;
    struct weir_err err; /* of the last failed read */
    /* Cached blocks of an origin's file: block i has bytes + i * BLOCK. */
    uint8_t *bytes, *run;
    uint64_t number[BLOCKS]; /* number of the block + 1; 0 = empty */
    uint64_t used[BLOCKS], clock;
    uint64_t run_end; /* number of the block after the last run */
    int run_length;
    /* Announced ranges, whose bytes are in one allocation. */
    uint8_t *held;
    struct weir_origin_range ranges[HELD_MAX];
    int n_ranges;
};

int weir_source_open(struct weir_source **out, struct weir_origin *origin, const char *path,
                     const struct weir_file_id *id, struct weir_err *err)
{
    *out = NULL;
    int fd = origin ? -1 : open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK); /* O_NONBLOCK: it may be a FIFO */
    if (!origin && fd < 0)
        return weir_err_set(err, -errno, "%s; %s", strerror(errno), weir_open_advice(-errno));
    struct weir_source *source = calloc(1, sizeof *source);
    if (source) {
        source->fd = fd;
        source->origin = origin;
        source->path = strdup(path);
        source->bytes = origin ? malloc((size_t)BLOCKS * BLOCK) : NULL;
        source->run = origin ? malloc((size_t)RUN_MAX * BLOCK) : NULL;
    } else if (fd >= 0) {
        close(fd);
    }
    if (!source || !source->path || (origin && (!source->bytes || !source->run))) {
        weir_source_close(&source);
        return weir_no_memory(err);
    }
    if (origin)
        source->id = *id;
    *out = source;
    return 0;
}

int weir_source_find(struct weir_source **out, struct weir_origin *origin, const char *path, struct weir_file_id *id,
                     struct weir_err *err)
{
    struct stat st;
    *out = NULL;
    int rc = origin ? origin->ops->identify(origin, path, id, err) : 0;
    rc = rc < 0 ? rc : weir_source_open(out, origin, path, id, err);
    if (rc < 0 || origin)
        return rc;
    if (fstat((*out)->fd, &st) < 0)
        rc = weir_err_set(err, -errno, "%s", strerror(errno));
    else if (!S_ISREG(st.st_mode))
        rc = weir_err_set(err, -EBADMSG, "is not a regular file");
    if (rc < 0)
        weir_source_close(out);
    else
        *id = (struct weir_file_id){(uint64_t)st.st_size, st.st_dev, st.st_ino,
                                    (int64_t)st.st_mtim.tv_sec * 1000000000 + st.st_mtim.tv_nsec, false};
    return rc;
}

void weir_source_close(struct weir_source **source)
{
    struct weir_source *s = *source;
    if (!s)
        return;
    if (s->fd >= 0)
        close(s->fd);
    free(s->path);
    free(s->bytes);
    free(s->run);
    free(s->held);
    free(s);
    *source = NULL;
}

static int fetch(struct weir_source *s, uint64_t offset, size_t n, uint8_t *to)
{
    const struct weir_origin_range range = {offset, n, to};
    s->err = WEIR_ERR_NONE;
    return s->origin->ops->read(s->origin, s->path, &s->id, &range, 1, &s->err);
}

/* Returns the index of a cached block, or -1. */
static int find(struct weir_source *s, uint64_t block)
{
    for (int i = 0; i < BLOCKS; i++)
        if (s->number[i] == block + 1) {
            s->used[i] = ++s->clock;
            return i;
        }
    return -1;
}

static void keep(struct weir_source *s, uint64_t block, const uint8_t *bytes, size_t n)
{
    int oldest = 0;
    for (int i = 1; i < BLOCKS; i++)
        if (s->used[i] < s->used[oldest])
            oldest = i;
    memcpy(s->bytes + (size_t)oldest * BLOCK, bytes, n);
    s->number[oldest] = block + 1;
    s->used[oldest] = ++s->clock;
}

/* Fetches the block and the following ones: as many as are needed, and more if the file is read from front to back. */
static int fetch_run(struct weir_source *s, uint64_t block, uint64_t last)
{
    uint64_t end = (s->id.size_bytes + BLOCK - 1) / BLOCK;
    block = end <= WHOLE_MAX ? 0 : block;
    last = end <= WHOLE_MAX ? end - 1 : last;
    uint64_t n = last - block + 1;
    int sequential = block == s->run_end && s->run_length ? 2 * s->run_length : 1;
    n = n < (uint64_t)sequential ? (uint64_t)sequential : n;
    n = n < RUN_MAX ? n : RUN_MAX;
    n = n < end - block ? n : end - block;
    uint64_t begin_byte = block * BLOCK, bytes = n * BLOCK;
    bytes = bytes < s->id.size_bytes - begin_byte ? bytes : s->id.size_bytes - begin_byte;
    int rc = fetch(s, begin_byte, (size_t)bytes, s->run);
    for (uint64_t i = 0; i < n && rc == 0; i++)
        keep(s, block + i, s->run + i * BLOCK, bytes - i * BLOCK < BLOCK ? (size_t)(bytes - i * BLOCK) : BLOCK);
    s->run_end = block + n;
    s->run_length = (int)n;
    return rc;
}

static bool from_held(struct weir_source *s, uint64_t offset, void *buffer, size_t n)
{
    for (int i = 0; i < s->n_ranges; i++) {
        const struct weir_origin_range *r = &s->ranges[i];
        if (offset >= r->offset && offset - r->offset <= r->length && n <= r->length - (offset - r->offset)) {
            memcpy(buffer, r->to + (offset - r->offset), n);
            return true;
        }
    }
    return false;
}

static int read_blocks(struct weir_source *s, uint64_t offset, uint8_t *to, size_t n)
{
    uint64_t last = (offset + n - 1) / BLOCK;
    while (n > 0) {
        uint64_t block = offset / BLOCK;
        int i = find(s, block), rc = i < 0 ? fetch_run(s, block, last) : 0;
        if (rc < 0)
            return rc;
        i = i < 0 ? find(s, block) : i;
        if (i < 0)
            return -EIO;
        size_t at = (size_t)(offset % BLOCK), part = BLOCK - at < n ? BLOCK - at : n;
        memcpy(to, s->bytes + (size_t)i * BLOCK + at, part);
        to += part;
        offset += part;
        n -= part;
    }
    return 0;
}

int weir_source_read(void *source, uint64_t offset, void *buffer, size_t n)
{
    struct weir_source *s = source;
    if (s->fd >= 0)
        return weir_read_at(s->fd, offset, buffer, n);
    if (offset > s->id.size_bytes || n > s->id.size_bytes - offset) {
        s->err = WEIR_ERR_NONE;
        return -ENODATA;
    }
    if (n == 0 || from_held(s, offset, buffer, n))
        return 0;
    return n >= (size_t)RUN_MAX * BLOCK ? fetch(s, offset, n, buffer) : read_blocks(s, offset, buffer, n);
}

const char *weir_source_reason(const struct weir_source *source, int code)
{
    return source->err.code == code && *source->err.text ? source->err.text : strerror(-code);
}

int weir_source_text(struct weir_origin *origin, const char *path, size_t most, char **text, size_t *n,
                     struct weir_err *err)
{
    struct weir_source *source;
    struct weir_file_id id = {0};
    int rc = weir_source_find(&source, origin, path, &id, err);
    *text = NULL;
    *n = (size_t)id.size_bytes;
    if (rc == 0 && id.size_bytes > most)
        rc = weir_err_set(err, -EFBIG, "it has more than %zu MiB", most >> 20);
    if (rc == 0 && !(*text = malloc(*n + 1)))
        rc = weir_no_memory(err);
    if (rc == 0 && (rc = weir_source_read(source, 0, *text, *n)) < 0)
        weir_err_set(err, rc, "%s", weir_source_reason(source, rc));
    weir_source_close(&source);
    if (rc == 0) {
        (*text)[*n] = '\0';
        return 0;
    }
    free(*text);
    *text = NULL;
    return rc;
}

uint64_t weir_source_stored(const struct weir_source *source, uint64_t file_bytes)
{
    return source->fd >= 0 ? weir_stored_bytes(source->fd, 0, file_bytes) : file_bytes;
}

bool weir_source_is_remote(const struct weir_source *source)
{
    return source->fd < 0;
}

/* Reads the held ranges in pieces, because requests at once are faster than one long response. */
static int fetch_held(struct weir_source *s)
{
    struct weir_origin_range *pieces;
    struct weir_err ignored = WEIR_ERR_NONE;
    size_t n = 0;
    for (int i = 0; i < s->n_ranges; i++)
        n += (s->ranges[i].length + PIECE - 1) / PIECE;
    pieces = malloc((n ? n : 1) * sizeof *pieces);
    n = 0;
    for (int i = 0; i < s->n_ranges && pieces; i++)
        for (size_t at = 0; at < s->ranges[i].length; at += PIECE) {
            const struct weir_origin_range *r = &s->ranges[i];
            pieces[n++] =
                (struct weir_origin_range){r->offset + at, r->length - at < PIECE ? r->length - at : PIECE, r->to + at};
        }
    int rc = pieces ? s->origin->ops->read(s->origin, s->path, &s->id, pieces, (int)n, &ignored) : -ENOMEM;
    free(pieces);
    return rc;
}

static void drop_held(struct weir_source *s)
{
    free(s->held);
    s->held = NULL;
    s->n_ranges = 0;
}

void weir_source_announce(struct weir_source *s, const struct weir_origin_range *ranges, int n)
{
    size_t total = 0;
    for (int i = 0; i < n && s->fd >= 0; i++)
        posix_fadvise(s->fd, (off_t)ranges[i].offset, (off_t)ranges[i].length, POSIX_FADV_WILLNEED);
    if (s->fd >= 0)
        return;
    drop_held(s);
    if (s->id.size_bytes <= (uint64_t)WHOLE_MAX * BLOCK)
        return; /* the first read fetches all of it */
    for (int i = 0; i < n && s->n_ranges < HELD_MAX; i++) {
        const struct weir_origin_range *r = &ranges[i];
        bool inside = r->offset <= s->id.size_bytes && r->length <= s->id.size_bytes - r->offset;
        if (!inside || r->length == 0 || r->length > HELD_MAX_BYTES - total)
            break;
        s->ranges[s->n_ranges++] = *r;
        total += r->length;
    }
    uint8_t *to = s->held = total ? malloc(total) : NULL;
    for (int i = 0; i < s->n_ranges && to; i++) {
        s->ranges[i].to = to;
        to += s->ranges[i].length;
    }
    if (s->held && fetch_held(s) < 0)
        drop_held(s);
    s->n_ranges = s->held ? s->n_ranges : 0;
}
