/* Writes packed files (docs/internals/packed.md): frames in call order, each episode's record after its frames, and the
 * index at the end. The header records the progress. It is rewritten after each episode has reached the storage device.
 */
#include "base/files.h"
#include "base/hash.h"
#include "base/shortage.h"
#include "datasets/packed/packed_file.h"
#include "datasets/writer.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { BUFFER_BYTES = 4 << 20 };

struct packed_writer {
    struct weir_writer base;
    int fd;
    struct weir_packed_header header;
    uint8_t *index;  /* one entry per complete episode */
    uint8_t *buffer; /* bytes at the end of the file that are not written yet */
    size_t buffered;
    uint64_t at; /* file offset after the buffered bytes */
    /* the episode being written */
    struct weir_packed_record record;
    uint8_t *record_bytes;
    size_t given; /* number of frames received */
    int step;     /* step of the previous frame; -1 = none */
};

static int failed(const struct packed_writer *w, int rc, struct weir_err *err)
{
    return weir_err_set(err, rc, "%s: %s%s", w->base.path, strerror(-rc),
                        rc == -ENOSPC || rc == -EDQUOT || rc == -EFBIG
                            ? "; free space, and run weir convert again: it resumes where it "
                              "stopped"
                            : "");
}

/* ---- the file ---- */

static int write_at(struct packed_writer *w, uint64_t offset, const void *bytes, size_t n, struct weir_err *err)
{
    int rc = weir_write_at(w->fd, offset, bytes, n);
    return rc < 0 ? failed(w, rc, err) : 0;
}

static int flush(struct packed_writer *w, struct weir_err *err)
{
    int rc = write_at(w, w->at - w->buffered, w->buffer, w->buffered, err);
    w->buffered = 0;
    return rc;
}

static int put(struct packed_writer *w, const void *bytes, size_t n, struct weir_err *err)
{
    int rc = 0;
    for (size_t done = 0; done < n && rc == 0;) {
        size_t fits = BUFFER_BYTES - w->buffered < n - done ? BUFFER_BYTES - w->buffered : n - done;
        memcpy(w->buffer + w->buffered, (const uint8_t *)bytes + done, fits);
        w->buffered += fits;
        w->at += fits;
        done += fits;
        if (w->buffered == BUFFER_BYTES)
            rc = flush(w, err);
    }
    return rc;
}

static int align(struct packed_writer *w, uint64_t to, struct weir_err *err)
{
    static const uint8_t zeros[WEIR_PACKED_STEP_ALIGN];
    return put(w, zeros, (size_t)(-w->at & (to - 1)), err);
}

static int write_header(struct packed_writer *w, struct weir_err *err)
{
    uint8_t bytes[WEIR_PACKED_HEADER];
    weir_packed_put_header(&w->header, bytes);
    return write_at(w, 0, bytes, sizeof bytes, err);
}

static int sync_file(struct packed_writer *w, struct weir_err *err)
{
    return fdatasync(w->fd) == 0 ? 0 : failed(w, -errno, err);
}

/* Records the complete episodes in the header, after they have reached the storage device. */
static int commit(struct packed_writer *w, struct weir_err *err)
{
    int rc = sync_file(w, err);
    rc = rc < 0 ? rc : write_header(w, err);
    return rc < 0 ? rc : sync_file(w, err);
}

/* ---- resuming ---- */

static void set_entry(struct packed_writer *w, uint32_t i, uint64_t offset, uint64_t bytes)
{
    weir_put_le(w->index + (size_t)i * WEIR_PACKED_INDEX_ENTRY, offset, 8);
    weir_put_le(w->index + (size_t)i * WEIR_PACKED_INDEX_ENTRY + 8, bytes, 8);
}

/* Checks the record of episode i at offset, and its link to the previous record. Returns the end of the record, or 0 if
 * it is invalid. */
static uint64_t take_record(struct packed_writer *w, const struct weir_packed_header *old, uint32_t i, uint64_t offset,
                            uint64_t file_bytes, uint64_t *previous)
{
    uint8_t head[WEIR_PACKED_RECORD_MIN];
    struct weir_packed_record record;
    if (offset > file_bytes || file_bytes - offset < sizeof head || weir_read_at(w->fd, offset, head, sizeof head) < 0)
        return 0;
    uint64_t n = weir_packed_record_bytes(head);
    if (n > file_bytes - offset || weir_packed_get_head(&record, old, head, n, offset, NULL) < 0)
        return 0;
    uint8_t *bytes = malloc((size_t)n);
    bool fine = bytes && weir_read_at(w->fd, offset, bytes, (size_t)n) == 0 &&
                weir_packed_get_record(&record, old, bytes, n, offset, NULL) == 0 && record.number == i;
    free(bytes);
    if (!fine || record.previous >= offset)
        return 0;
    *previous = record.previous;
    set_entry(w, i, offset, n);
    return offset + n;
}

/* Finds the complete episodes of an interrupted copy, from the last one back to the first, and adds them to the index.
 */
static int resume(struct packed_writer *w)
{
    uint8_t bytes[WEIR_PACKED_HEADER], equal[WEIR_PACKED_HEADER];
    struct weir_packed_header old, same;
    struct stat st;
    if (fstat(w->fd, &st) != 0 || weir_read_at(w->fd, 0, bytes, sizeof bytes) < 0 ||
        weir_packed_get_header(&old, bytes, NULL) < 0 || old.n_episodes > (uint32_t)w->base.copy.n_episodes)
        return 0;
    same = w->header;
    same.index_offset = old.index_offset;
    same.file_bytes = old.file_bytes;
    same.last_record = old.last_record;
    same.n_episodes = old.n_episodes;
    same.index_crc = old.index_crc;
    weir_packed_put_header(&same, equal);
    if (memcmp(bytes, equal, sizeof bytes) != 0)
        return 0;
    uint64_t offset = old.last_record, end = 0;
    for (uint32_t i = old.n_episodes; i-- > 0;) {
        uint64_t to = take_record(w, &old, i, offset, (uint64_t)st.st_size, &offset);
        if (to == 0)
            return 0;
        end = end ? end : to;
    }
    w->header.n_episodes = old.n_episodes;
    w->header.last_record = old.n_episodes ? old.last_record : 0;
    w->at = end ? end : WEIR_PACKED_HEADER;
    return (int)old.n_episodes;
}

/* ---- the writer ---- */

static void close_writer(struct weir_writer *writer)
{
    struct packed_writer *w = (struct packed_writer *)writer;
    if (w->fd >= 0)
        close(w->fd);
    free(w->index);
    free(w->buffer);
    free(w->record_bytes);
}

static int open_file(struct packed_writer *w, int *complete, struct weir_err *err)
{
    w->fd = weir_output_private(w->base.path, O_RDWR | O_CREAT, 0666, err);
    if (w->fd < 0)
        return w->fd;
    *complete = resume(w);
    if (*complete == 0)
        w->at = WEIR_PACKED_HEADER;
    /* The header is written before the file is truncated, because it is valid in both states of the file. */
    int rc = write_header(w, err);
    if (rc == 0 && ftruncate(w->fd, (off_t)w->at) != 0)
        rc = failed(w, -errno, err);
    return rc;
}

static int open_writer(struct weir_writer *writer, int *complete, struct weir_err *err)
{
    struct packed_writer *w = (struct packed_writer *)writer;
    w->fd = -1;
    w->index = calloc((size_t)writer->copy.n_episodes + 1, WEIR_PACKED_INDEX_ENTRY);
    w->buffer = malloc(BUFFER_BYTES);
    w->header.copy = writer->copy;
    return w->index && w->buffer ? open_file(w, complete, err) : weir_no_memory(err);
}

static uint64_t text_bytes(const struct weir_copy_episode *episode)
{
    uint64_t n = 0;
    for (int i = 0; i < episode->n_texts; i++)
        n += 8 + strlen(episode->texts[i].key) + strlen(episode->texts[i].value);
    return n;
}

static void put_texts(const struct weir_copy_episode *episode, uint8_t *to)
{
    for (int i = 0; i < episode->n_texts; i++) {
        size_t key = strlen(episode->texts[i].key), value = strlen(episode->texts[i].value);
        weir_put_le(to, (uint32_t)key, 4);
        weir_put_le(to + 4, (uint32_t)value, 4);
        memcpy(to + 8, episode->texts[i].key, key);
        memcpy(to + 8 + key, episode->texts[i].value, value);
        to += 8 + key + value;
    }
}

static int begin(struct weir_writer *writer, struct weir_err *err)
{
    struct packed_writer *w = (struct packed_writer *)writer;
    const struct weir_copy_episode *episode = &writer->episode;
    w->given = 0;
    w->step = -1;
    w->record = (struct weir_packed_record){.number = w->header.n_episodes,
                                            .steps = episode->steps,
                                            .previous = w->header.last_record,
                                            .n_texts = (uint32_t)episode->n_texts};
    if (w->header.n_episodes >= (uint32_t)w->base.copy.n_episodes ||
        !weir_packed_lay_out(&w->record, &w->header, text_bytes(episode)))
        return weir_err_set(err, -EFBIG, "%s: %s does not fit into a packed file", w->base.path, episode->name);
    free(w->record_bytes);
    w->record_bytes = calloc(1, (size_t)w->record.bytes);
    return w->record_bytes ? 0 : weir_no_memory(err);
}

static int frame(struct weir_writer *writer, int camera, int t, const uint8_t *bytes, size_t length,
                 struct weir_err *err)
{
    struct packed_writer *w = (struct packed_writer *)writer;
    size_t i = (size_t)t * (size_t)w->header.copy.n_cameras + (size_t)camera;
    uint64_t raw = weir_frame_raw_bytes(w->header.copy.cameras[camera].kind, w->header.copy.cameras[camera].width,
                                        w->header.copy.cameras[camera].height);
    if (length > INT32_MAX || (raw && length != raw))
        return weir_err_set(err, -EINVAL, "%s: %s: %s[%d]: a frame cannot have %zu bytes", w->base.path,
                            writer->episode.name, w->header.copy.cameras[camera].name, t, length);
    int rc = align(w, t == w->step ? WEIR_PACKED_FRAME_ALIGN : WEIR_PACKED_STEP_ALIGN, err);
    struct weir_packed_frame put_there = {w->at, (uint32_t)length, weir_crc32c(0, bytes, length)};
    weir_packed_put_frame(&put_there, w->record_bytes + w->record.frames + i * WEIR_PACKED_FRAME);
    w->step = t;
    w->given++;
    return rc < 0 ? rc : put(w, bytes, length, err);
}

static int end(struct weir_writer *writer, struct weir_err *err)
{
    struct packed_writer *w = (struct packed_writer *)writer;
    const struct weir_copy_episode *episode = &writer->episode;
    const struct weir_copy *copy = &writer->copy;
    struct weir_packed_header *header = &w->header;
    size_t steps = (size_t)episode->steps;
    if (w->given != steps * (size_t)copy->n_cameras)
        return weir_err_set(err, -EINVAL, "%s: %s: received %zu frames, but %zu steps of %d cameras were announced",
                            w->base.path, episode->name, w->given, steps, copy->n_cameras);
    memcpy(w->record_bytes + w->record.qpos, episode->qpos,
           steps * (size_t)copy->qpos_dim * weir_number_bytes(copy->qpos_type));
    memcpy(w->record_bytes + w->record.actions, episode->actions,
           steps * (size_t)copy->action_dim * weir_number_bytes(copy->action_type));
    put_texts(episode, w->record_bytes + w->record.texts);
    weir_packed_seal(&w->record, w->record_bytes);
    int rc = align(w, 8, err);
    uint64_t at = w->at;
    rc = rc < 0 ? rc : put(w, w->record_bytes, (size_t)w->record.bytes, err);
    rc = rc < 0 ? rc : flush(w, err);
    if (rc < 0)
        return rc;
    set_entry(w, header->n_episodes++, at, w->record.bytes);
    header->last_record = at;
    return commit(w, err);
}

static int finish(struct weir_writer *writer, struct weir_err *err)
{
    struct packed_writer *w = (struct packed_writer *)writer;
    struct weir_packed_header *header = &w->header;
    size_t n = (size_t)header->n_episodes * WEIR_PACKED_INDEX_ENTRY;
    uint64_t offset = w->at;
    int rc = put(w, w->index, n, err);
    rc = rc < 0 ? rc : flush(w, err);
    header->index_offset = offset;
    header->file_bytes = w->at;
    header->index_crc = weir_crc32c(0, w->index, n);
    return rc < 0 ? rc : commit(w, err);
}

const struct weir_writer_ops weir_writer_packed = {
    .name = "packed",
    .summary = "one file of extents and one index: for io_uring and direct reads",
    .suffix = ".weir",
    .holds = WEIR_FRAMES_ANY,
    .read_rank = 1,
    .number_types = (1u << WEIR_NUMBER_TYPES) - 1,
    .by_step = true,
    .resumes = true,
    .bytes = sizeof(struct packed_writer),
    .open = open_writer,
    .begin = begin,
    .frame = frame,
    .end = end,
    .finish = finish,
    .close = close_writer,
};
