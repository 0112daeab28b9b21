/* Reads the sample tables of MP4 files: ISO/IEC 14496-12 (boxes), 14496-15 (avcC, hvcC), and "AV1 Codec ISO Media File
 * Format Binding" (av1C). All numbers are big-endian. Nothing in the file is trusted: every box lies inside its parent,
 * and every count is compared with the bytes of its box before memory is allocated for it. */
#include "base/files.h"
#include "base/shortage.h"
#include "datasets/video/video_track_priv.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MOOV_MAX = 256 << 20, SAMPLES_MAX = INT32_MAX, CONFIG_MAX = 1 << 20, BOX_HEADER = 8, LARGE_HEADER = 16 };
/* Sizes of entries, and offsets in a full box (which begins with a version and flags). */
enum { FULL = 4, SAMPLE_ENTRY = 78 };

/* The bytes of a box, without its header. data is NULL if the file has no such box. */
struct box {
    const uint8_t *data;
    size_t n;
};

struct reader {
    struct weir_err *err;
    struct weir_video_track *track;
    uint64_t file_bytes;
    uint32_t movie_timescale;
    struct box mdhd, stsd, stts, ctts, stsc, stsz, stz2, stco, co64, stss, elst;
};

static uint32_t u16(const uint8_t *at)
{
    return (uint32_t)at[0] << 8 | at[1];
}

static uint32_t u32(const uint8_t *at)
{
    return u16(at) << 16 | u16(at + 2);
}

static uint64_t u64(const uint8_t *at)
{
    return (uint64_t)u32(at) << 32 | u32(at + 4);
}

static int bad(struct weir_err *err, const char *name, const char *why)
{
    return weir_err_set(err, -EBADMSG, "MP4 box %s: %s; copy the file again, or encode it again", name, why);
}

/* ---- boxes ---- */

/* Removes the first box from *parent. Returns 1, 0 at the end, or -EBADMSG. */
static int next_box(struct box *parent, char type[5], struct box *box, struct weir_err *err)
{
    if (parent->n < BOX_HEADER)
        return 0; /* some writers end a box with a few zero bytes */
    uint64_t size = u32(parent->data), header = BOX_HEADER;
    memcpy(type, parent->data + 4, 4);
    type[4] = '\0';
    if (size == 1 && parent->n >= LARGE_HEADER) {
        size = u64(parent->data + BOX_HEADER);
        header = LARGE_HEADER;
    } else if (size == 0) {
        size = parent->n; /* up to the end */
    }
    if (size < header || size > parent->n) {
        for (int i = 0; i < 4; i++)
            type[i] = type[i] >= ' ' && type[i] <= '~' ? type[i] : '?';
        return bad(err, type, "its size does not fit into the box that contains it");
    }
    *box = (struct box){parent->data + header, (size_t)(size - header)};
    parent->data += size;
    parent->n -= (size_t)size;
    return 1;
}

/* A box inside another box, and where to store it. */
struct wanted {
    const char *type;
    struct box *box;
};

/* Stores the first box of each wanted type. */
static int find_boxes(struct box parent, const struct wanted *wanted, int n, struct weir_err *err)
{
    char type[5];
    struct box box;
    int rc;
    while ((rc = next_box(&parent, type, &box, err)) > 0)
        for (int i = 0; i < n; i++)
            if (strcmp(type, wanted[i].type) == 0 && !wanted[i].box->data)
                *wanted[i].box = box;
    return rc;
}

/* Returns the entries of a full box with a count at offset `at`, or NULL if they do not fit into the box. */
static const uint8_t *entries(const struct box *box, size_t at, size_t entry_bytes, uint32_t *n)
{
    if (box->n < at + 4)
        return NULL;
    *n = u32(box->data + at);
    return *n <= (box->n - at - 4) / entry_bytes ? box->data + at + 4 : NULL;
}

/* ---- sizes and offsets ---- */

static int sample_count(struct weir_video_track *track, uint32_t n, struct weir_err *err)
{
    if (n == 0)
        return weir_err_set(err, -ENODATA, "the video has no samples; record it again");
    if (n > SAMPLES_MAX)
        return weir_err_set(err, -ENOTSUP, "the video has %" PRIu32 " samples; the limit is %d", n, SAMPLES_MAX);
    track->n = n;
    return 0;
}

static int read_stsz(struct reader *r)
{
    struct weir_video_track *track = r->track;
    uint32_t n = 0;
    if (r->stsz.n < FULL + 8)
        return bad(r->err, "stsz", "is too short");
    track->equal_bytes = u32(r->stsz.data + FULL);
    n = u32(r->stsz.data + FULL + 4);
    const uint8_t *sizes = track->equal_bytes ? NULL : entries(&r->stsz, FULL + 4, 4, &n);
    if (!track->equal_bytes && !sizes)
        return bad(r->err, "stsz", "contains fewer sizes than it announces");
    int rc = sample_count(track, n, r->err);
    if (rc < 0 || track->equal_bytes)
        return rc;
    track->sizes = malloc((size_t)n * sizeof *track->sizes);
    if (!track->sizes)
        return weir_no_memory(r->err);
    for (uint32_t i = 0; i < n; i++)
        track->sizes[i] = u32(sizes + 4 * (size_t)i);
    return 0;
}

static uint32_t compact_size(const uint8_t *sizes, int bits, uint32_t i)
{
    if (bits == 16)
        return u16(sizes + 2 * (size_t)i);
    return bits == 8 ? sizes[i] : sizes[i / 2] >> (i % 2 ? 0 : 4) & 15;
}

static int read_stz2(struct reader *r)
{
    uint32_t n;
    if (r->stz2.n < FULL + 8)
        return bad(r->err, "stz2", "is too short");
    int bits = r->stz2.data[FULL + 3];
    n = u32(r->stz2.data + FULL + 4);
    if ((bits != 4 && bits != 8 && bits != 16) || ((uint64_t)n * (unsigned)bits + 7) / 8 > r->stz2.n - FULL - 8)
        return bad(r->err, "stz2", "contains fewer sizes than it announces");
    int rc = sample_count(r->track, n, r->err);
    if (rc < 0)
        return rc;
    r->track->sizes = malloc((size_t)n * sizeof *r->track->sizes);
    if (!r->track->sizes)
        return weir_no_memory(r->err);
    for (uint32_t i = 0; i < n; i++)
        r->track->sizes[i] = compact_size(r->stz2.data + FULL + 8, bits, i);
    return 0;
}

/* Entries of stsc: chunks from `first` on (counted from 1) have this many samples. */
struct chunks {
    const uint8_t *stsc, *offsets;
    uint32_t n_stsc, n, next; /* next: index of the next entry of stsc */
    size_t offset_bytes;
    uint32_t samples_per_chunk;
};

static int open_chunks(struct reader *r, struct chunks *chunks)
{
    *chunks = (struct chunks){.offset_bytes = r->co64.data ? 8 : 4};
    const struct box *offsets = r->co64.data ? &r->co64 : &r->stco;
    chunks->stsc = entries(&r->stsc, FULL, 12, &chunks->n_stsc);
    chunks->offsets = entries(offsets, FULL, chunks->offset_bytes, &chunks->n);
    if (!chunks->stsc || chunks->n_stsc == 0 || u32(chunks->stsc) != 1)
        return bad(r->err, "stsc", "contains fewer entries than it announces, or no entry for the first chunk");
    if (!chunks->offsets)
        return bad(r->err, r->co64.data ? "co64" : "stco", "contains fewer offsets than it announces");
    return 0;
}

static uint32_t samples_of_chunk(struct chunks *chunks, uint32_t chunk)
{
    while (chunks->next < chunks->n_stsc && u32(chunks->stsc + 12 * (size_t)chunks->next) == chunk + 1)
        chunks->samples_per_chunk = u32(chunks->stsc + 12 * (size_t)chunks->next++ + 4);
    return chunks->samples_per_chunk;
}

static int add_run(struct weir_video_track *track, uint32_t first, uint64_t offset, uint32_t *capacity)
{
    if (track->n_runs == *capacity) {
        *capacity = *capacity ? 2 * *capacity : 4;
        struct weir_track_run *more = realloc(track->runs, *capacity * sizeof *more);
        if (!more)
            return -ENOMEM;
        track->runs = more;
    }
    track->runs[track->n_runs++] = (struct weir_track_run){offset, first};
    return 0;
}

/* Joins chunks that are adjacent in the file. */
static int read_chunks(struct reader *r)
{
    struct weir_video_track *track = r->track;
    struct chunks chunks;
    uint32_t sample = 0, capacity = 0;
    uint64_t end = 0;
    int rc = open_chunks(r, &chunks);
    for (uint32_t chunk = 0; chunk < chunks.n && sample < track->n && rc == 0; chunk++) {
        const uint8_t *at = chunks.offsets + chunk * chunks.offset_bytes;
        uint64_t offset = chunks.offset_bytes == 8 ? u64(at) : u32(at);
        uint32_t samples = samples_of_chunk(&chunks, chunk), left = track->n - sample;
        samples = samples < left ? samples : left;
        if (samples == 0)
            continue;
        uint64_t bytes = weir_track_bytes_before(track, sample + samples) - weir_track_bytes_before(track, sample);
        if (offset > r->file_bytes || bytes > r->file_bytes - offset)
            return weir_err_set(r->err, -ENODATA,
                                "the video is truncated: samples %" PRIu32 " to %" PRIu32
                                " end after the end of the file; copy it again",
                                sample, sample + samples - 1);
        if (track->n_runs == 0 || offset != end)
            rc = add_run(track, sample, offset, &capacity);
        end = offset + bytes;
        sample += samples;
    }
    if (rc == -ENOMEM)
        return weir_no_memory(r->err);
    return rc == 0 && sample < track->n ? bad(r->err, "stsc", "its chunks contain fewer samples than stsz") : rc;
}

/* ---- times ---- */

static int read_stts(struct reader *r)
{
    struct weir_video_track *track = r->track;
    uint32_t n, first = 0;
    int64_t time = 0;
    const uint8_t *at = entries(&r->stts, FULL, 8, &n);
    if (!at)
        return bad(r->err, "stts", "contains fewer entries than it announces");
    track->times = malloc(((size_t)n + 1) * sizeof *track->times);
    if (!track->times)
        return weir_no_memory(r->err);
    for (uint32_t i = 0; i < n && first < track->n; i++, at += 8) {
        uint32_t count = u32(at), delta = u32(at + 4);
        if (count == 0)
            continue;
        track->times[track->n_times++] = (struct weir_track_times){time, first, delta};
        count = count < track->n - first ? count : track->n - first;
        time += (int64_t)count * delta; /* at most 2^31 samples, 2^32 units each */
        first += count;
    }
    return first < track->n ? bad(r->err, "stts", "describes fewer samples than stsz") : 0;
}

/* Both versions are read as signed, because writers store negative numbers in version 0 too. */
static int read_ctts(struct reader *r)
{
    struct weir_video_track *track = r->track;
    uint32_t n, first = 0;
    if (!r->ctts.data)
        return 0;
    const uint8_t *at = entries(&r->ctts, FULL, 8, &n);
    if (!at)
        return bad(r->err, "ctts", "contains fewer entries than it announces");
    track->shifts = malloc(((size_t)n + 1) * sizeof *track->shifts);
    if (!track->shifts)
        return weir_no_memory(r->err);
    for (uint32_t i = 0; i < n && first < track->n; i++, at += 8) {
        uint32_t count = u32(at);
        int32_t shift = (int32_t)u32(at + 4);
        if (count == 0)
            continue;
        if (track->n_shifts == 0 || track->shifts[track->n_shifts - 1].shift != shift)
            track->shifts[track->n_shifts++] = (struct weir_track_shift){first, shift};
        first += count < track->n - first ? count : track->n - first;
    }
    return first < track->n ? bad(r->err, "ctts", "describes fewer samples than stsz") : 0;
}

/* Supports what muxers write to shift a video: an optional empty edit, then one edit of the media. */
static int read_elst(struct reader *r)
{
    uint32_t n;
    if (!r->elst.data)
        return 0;
    bool large = r->elst.n > 0 && r->elst.data[0] == 1;
    const uint8_t *at = entries(&r->elst, FULL, large ? 20 : 12, &n);
    if (!at)
        return bad(r->err, "elst", "contains fewer edits than it announces");
    int media_edits = 0;
    for (uint32_t i = 0; i < n; i++, at += large ? 20 : 12) {
        uint64_t duration = large ? u64(at) : u32(at);
        int64_t media_time = large ? (int64_t)u64(at + 8) : (int32_t)u32(at + 4);
        bool is_empty = media_time == -1;
        if (!is_empty && (media_time < 0 || u32(at + (large ? 16 : 8)) != 1 << 16 || media_edits++ > 0))
            return weir_err_set(r->err, -ENOTSUP,
                                "the video has an edit list that does more than shift it; encode it again");
        if ((is_empty && (media_edits > 0 || duration > UINT32_MAX)) || media_time > INT64_MAX / 4)
            return bad(r->err, "elst", "its edits are not supported or out of range");
        if (is_empty && r->movie_timescale)
            r->track->edit += (int64_t)(duration * r->track->timescale / r->movie_timescale);
        else if (!is_empty)
            r->track->edit -= media_time;
    }
    return 0;
}

static int read_stss(struct reader *r)
{
    struct weir_video_track *track = r->track;
    uint32_t n;
    if (!r->stss.data)
        return 0;
    const uint8_t *at = entries(&r->stss, FULL, 4, &n);
    if (!at)
        return bad(r->err, "stss", "contains fewer entries than it announces");
    track->syncs = calloc(track->n / 8 + 1, 1);
    if (!track->syncs)
        return weir_no_memory(r->err);
    for (uint32_t i = 0; i < n; i++, at += 4) {
        uint32_t sample = u32(at) - 1; /* counted from 1 */
        if (sample >= track->n)
            return bad(r->err, "stss", "names a sample that does not exist");
        track->syncs[sample / 8] |= (uint8_t)(1 << sample % 8);
    }
    return 0;
}

/* ---- the stream ---- */

static const struct {
    const char *fourcc, *config;
    enum weir_video_codec codec;
} codecs[] = {
    {"av01", "av1C", WEIR_VIDEO_AV1},  {"avc1", "avcC", WEIR_VIDEO_H264}, {"avc3", "avcC", WEIR_VIDEO_H264},
    {"hvc1", "hvcC", WEIR_VIDEO_HEVC}, {"hev1", "hvcC", WEIR_VIDEO_HEVC},
};

static int keep_config(struct reader *r, const char *name, const struct box *config)
{
    struct weir_video_track *track = r->track;
    if (!config->data || config->n == 0 || config->n > CONFIG_MAX)
        return bad(r->err, name, "is missing, empty or too large");
    track->config = malloc(config->n);
    if (!track->config)
        return weir_no_memory(r->err);
    memcpy(track->config, config->data, config->n);
    track->stream.config = track->config;
    track->stream.config_bytes = config->n;
    return 0;
}

static void read_colr(struct weir_video_stream *stream, const struct box *colr)
{
    stream->matrix = stream->full_range = -1;
    if (colr->data && colr->n >= 11 && memcmp(colr->data, "nclx", 4) == 0) {
        stream->matrix = (int)u16(colr->data + 8);
        stream->full_range = colr->data[10] >> 7;
    }
}

static int read_entry(struct reader *r, const char *fourcc, const struct box *entry)
{
    struct weir_video_stream *stream = &r->track->stream;
    for (size_t i = 0; i < sizeof codecs / sizeof *codecs; i++) {
        struct box config = {0}, colr = {0};
        const struct wanted wanted[] = {{codecs[i].config, &config}, {"colr", &colr}};
        if (strcmp(fourcc, codecs[i].fourcc) != 0)
            continue;
        if (entry->n < SAMPLE_ENTRY)
            return bad(r->err, fourcc, "is too short");
        int rc = find_boxes((struct box){entry->data + SAMPLE_ENTRY, entry->n - SAMPLE_ENTRY}, wanted, 2, r->err);
        if (rc < 0)
            return rc;
        stream->codec = codecs[i].codec;
        memcpy(stream->fourcc, codecs[i].fourcc, sizeof stream->fourcc);
        stream->width = (int)u16(entry->data + 24);
        stream->height = (int)u16(entry->data + 26);
        read_colr(stream, &colr);
        if (stream->width == 0 || stream->height == 0)
            return bad(r->err, fourcc, "its width or height is 0");
        return keep_config(r, codecs[i].config, &config);
    }
    return weir_err_set(r->err, -ENOTSUP, "the video's codec is %.4s; the supported codecs are AV1, H.264 and HEVC",
                        fourcc);
}

static int read_stsd(struct reader *r)
{
    uint32_t n;
    char fourcc[5];
    struct box list, entry;
    if (!entries(&r->stsd, FULL, BOX_HEADER, &n) || n == 0)
        return bad(r->err, "stsd", "describes no stream");
    if (n > 1)
        return weir_err_set(r->err, -ENOTSUP,
                            "the video changes its format midway (%" PRIu32 " sample descriptions); encode it again",
                            n);
    list = (struct box){r->stsd.data + FULL + 4, r->stsd.n - FULL - 4};
    int rc = next_box(&list, fourcc, &entry, r->err);
    if (rc <= 0)
        return rc < 0 ? rc : bad(r->err, "stsd", "describes no stream");
    for (int i = 0; i < 4; i++)
        fourcc[i] = fourcc[i] >= ' ' && fourcc[i] <= '~' ? fourcc[i] : '?';
    return read_entry(r, fourcc, &entry);
}

static int read_timescale(const struct box *header, const char *name, uint32_t *timescale, struct weir_err *err)
{
    size_t at = FULL + (header->n > 0 && header->data[0] == 1 ? 16 : 8);
    if (header->n < at + 4 || u32(header->data + at) == 0)
        return bad(err, name, "has no time scale");
    *timescale = u32(header->data + at);
    return 0;
}

/* ---- the file ---- */

static bool is_video(const struct box *hdlr)
{
    return hdlr->n >= FULL + 8 && memcmp(hdlr->data + FULL + 4, "vide", 4) == 0;
}

/* Finds the boxes of a track. Returns 1, 0 if it is not a video track, or negative. */
static int find_track(struct reader *r, struct box trak)
{
    struct box edts = {0}, mdia = {0}, hdlr = {0}, minf = {0}, stbl = {0};
    const struct wanted of_trak[] = {{"edts", &edts}, {"mdia", &mdia}};
    const struct wanted of_mdia[] = {{"mdhd", &r->mdhd}, {"hdlr", &hdlr}, {"minf", &minf}};
    const struct wanted of_minf[] = {{"stbl", &stbl}};
    const struct wanted of_edts[] = {{"elst", &r->elst}};
    const struct wanted of_stbl[] = {{"stsd", &r->stsd}, {"stts", &r->stts}, {"ctts", &r->ctts},
                                     {"stsc", &r->stsc}, {"stsz", &r->stsz}, {"stz2", &r->stz2},
                                     {"stco", &r->stco}, {"co64", &r->co64}, {"stss", &r->stss}};
    r->mdhd = (struct box){0};
    int rc = find_boxes(trak, of_trak, 2, r->err);
    if (rc == 0)
        rc = find_boxes(mdia, of_mdia, 3, r->err);
    if (rc < 0 || !is_video(&hdlr))
        return rc;
    rc = find_boxes(minf, of_minf, 1, r->err);
    if (rc == 0)
        rc = find_boxes(edts, of_edts, 1, r->err);
    if (rc == 0)
        rc = find_boxes(stbl, of_stbl, sizeof of_stbl / sizeof *of_stbl, r->err);
    return rc < 0 ? rc : 1;
}

static int require_boxes(const struct reader *r)
{
    const struct wanted required[] = {{"mdhd", (struct box *)&r->mdhd},
                                      {"stsd", (struct box *)&r->stsd},
                                      {"stts", (struct box *)&r->stts},
                                      {"stsc", (struct box *)&r->stsc},
                                      {"stsz", (struct box *)(r->stz2.data ? &r->stz2 : &r->stsz)},
                                      {"stco", (struct box *)(r->co64.data ? &r->co64 : &r->stco)}};
    for (size_t i = 0; i < sizeof required / sizeof *required; i++)
        if (!required[i].box->data)
            return bad(r->err, required[i].type, "is missing");
    return 0;
}

static int read_track(struct reader *r)
{
    int rc = require_boxes(r);
    if (rc == 0)
        rc = read_timescale(&r->mdhd, "mdhd", &r->track->timescale, r->err);
    if (rc == 0)
        rc = read_stsd(r);
    if (rc == 0)
        rc = r->stz2.data ? read_stz2(r) : read_stsz(r);
    if (rc == 0 && weir_track_sum(r->track) < 0)
        rc = weir_no_memory(r->err);
    if (rc == 0)
        rc = read_chunks(r);
    if (rc == 0)
        rc = read_stts(r);
    if (rc == 0)
        rc = read_ctts(r);
    if (rc == 0)
        rc = read_elst(r);
    if (rc == 0)
        rc = read_stss(r);
    return rc == 0 ? weir_video_track_finish(r->track, r->err) : rc;
}

static int read_moov(struct reader *r, struct box moov)
{
    char type[5];
    struct box box, mvhd = {0}, mvex = {0}, rest = moov;
    const struct wanted of_moov[] = {{"mvhd", &mvhd}, {"mvex", &mvex}};
    int rc = find_boxes(moov, of_moov, 2, r->err);
    if (rc < 0)
        return rc;
    if (mvex.data)
        return weir_err_set(r->err, -ENOTSUP,
                            "the video is fragmented MP4 (moof boxes), which is not supported; rewrite it with "
                            "`ffmpeg -i IN -c copy OUT.mp4`");
    if (mvhd.data && (rc = read_timescale(&mvhd, "mvhd", &r->movie_timescale, r->err)) < 0)
        return rc;
    while ((rc = next_box(&rest, type, &box, r->err)) > 0) {
        if (strcmp(type, "trak") != 0)
            continue;
        rc = find_track(r, box);
        if (rc != 0)
            return rc < 0 ? rc : read_track(r);
    }
    return rc < 0 ? rc : weir_err_set(r->err, -ENODATA, "the MP4 file has no video track; record it again");
}

static int read_at(int fd, uint64_t offset, void *to, size_t n, struct weir_err *err)
{
    int rc = weir_read_at(fd, offset, to, n);
    return rc < 0 ? weir_err_set(err, rc, "cannot be read: %s",
                                 rc == -ENODATA ? "it became shorter meanwhile" : strerror(-rc))
                  : 0;
}

/* Finds the box moov among the boxes of the file. */
static int find_moov(struct reader *r, int fd, uint64_t *offset, uint64_t *bytes)
{
    for (uint64_t at = 0; r->file_bytes - at >= BOX_HEADER;) {
        uint8_t header[LARGE_HEADER] = {0};
        uint64_t left = r->file_bytes - at, skip = BOX_HEADER;
        int rc = read_at(fd, at, header, left < sizeof header ? (size_t)left : sizeof header, r->err);
        if (rc < 0)
            return rc;
        uint64_t size = u32(header);
        if (size == 1) {
            size = u64(header + BOX_HEADER);
            skip = LARGE_HEADER;
        } else if (size == 0) {
            size = left;
        }
        if (at == 0 && memcmp(header + 4, "ftyp", 4) != 0)
            return weir_err_set(r->err, -EBADMSG, "is not an MP4 file; remove it, or record it again");
        if (size < skip || size > left)
            return weir_err_set(r->err, -ENODATA,
                                "the MP4 file is truncated: a box at byte %" PRIu64 " ends after the end of the file; "
                                "copy it again",
                                at);
        if (memcmp(header + 4, "moov", 4) == 0) {
            *offset = at + skip;
            *bytes = size - skip;
            return 0;
        }
        at += size;
    }
    return weir_err_set(r->err, -ENODATA,
                        "the MP4 file has no box moov, so its recording was interrupted or its copy is truncated; "
                        "record or copy it again");
}

int weir_mp4_open(struct weir_video_track **out, int fd, uint64_t file_bytes, struct weir_err *err)
{
    struct reader reader = {.err = err, .file_bytes = file_bytes};
    uint64_t offset = 0, bytes = 0;
    *out = NULL;
    int rc = find_moov(&reader, fd, &offset, &bytes);
    if (rc < 0)
        return rc;
    if (bytes > MOOV_MAX)
        return weir_err_set(err, -ENOTSUP, "the MP4 file's index (moov) has %" PRIu64 " bytes; the limit is %d", bytes,
                            MOOV_MAX);
    uint8_t *moov = malloc(bytes ? (size_t)bytes : 1);
    reader.track = calloc(1, sizeof *reader.track);
    if (!moov || !reader.track)
        rc = weir_no_memory(err);
    if (rc == 0)
        rc = read_at(fd, offset, moov, (size_t)bytes, err);
    if (rc == 0)
        rc = read_moov(&reader, (struct box){moov, (size_t)bytes});
    free(moov);
    if (rc < 0)
        weir_video_track_close(&reader.track);
    *out = reader.track;
    return rc < 0 ? rc : 0;
}
