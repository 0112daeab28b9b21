/* Reads MP4 files: ISO/IEC 14496-12 (boxes), 14496-15 (avcC, hvcC) and "AV1 Codec ISO Media File Format Binding"
 * (av1C). Nothing in the file is trusted: every box must be inside the box that contains it. */
#include "base/files.h"
#include "base/shortage.h"
#include "datasets/video/mp4_priv.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

enum {
    BOX_HEADER = 8,
    LARGE_HEADER = 16,
    VISUAL_ENTRY = 78, /* fields of an entry for video, before the boxes in it */
    MOOV_MAX = 256 << 20,
    CONFIG_MAX = 1 << 20,
    FRONT_BYTES = 16 << 10, /* read of a file on a server, with END_BYTES at once */
    END_BYTES = 64 << 10,
    WINDOW_BYTES = 4 << 10, /* enough for the index of a short video, so that most files take one or two reads */
};

/* ---- boxes ---- */

/* Copies the type of a box for an error. */
static const char *printable(const char *type, char text[5])
{
    for (int i = 0; i < 4; i++)
        text[i] = type[i] >= ' ' && type[i] <= '~' ? type[i] : '?';
    text[4] = '\0';
    return text;
}

/* Parses a header, of which n bytes exist, of a box that has `left` bytes up to the end of the box or file that
 * contains it. Returns the size of the header, or 0 if the size of the box (*bytes) is invalid. */
static size_t parse_header(const uint8_t *at, size_t n, uint64_t left, uint64_t *bytes)
{
    size_t header = BOX_HEADER;
    *bytes = weir_be(at, 4);
    if (*bytes == 1 && n >= LARGE_HEADER) {
        *bytes = weir_be(at + BOX_HEADER, 8);
        header = LARGE_HEADER;
    } else if (*bytes == 0) {
        *bytes = left; /* the box extends to the end */
    }
    return *bytes >= header && *bytes <= left ? header : 0;
}

/* Removes the first box from *parent. Returns 1, 0 at the end, or -EBADMSG. */
static int next_box(struct weir_mp4_box *parent, const char **type, struct weir_mp4_box *box, struct weir_err *err)
{
    char text[5];
    uint64_t bytes;
    if (parent->n < BOX_HEADER)
        return 0; /* some writers end a box with a few zero bytes */
    *type = (const char *)parent->data + 4;
    size_t header = parse_header(parent->data, parent->n, parent->n, &bytes);
    if (header == 0)
        return weir_mp4_damaged(err, printable(*type, text), "does not fit into the box that contains it");
    *box = (struct weir_mp4_box){parent->data + header, (size_t)bytes - header};
    parent->data += bytes;
    parent->n -= (size_t)bytes;
    return 1;
}

/* A box inside another box, and where to store it. */
struct wanted {
    const char *type;
    struct weir_mp4_box *box;
};

/* Stores the first box of each wanted type. */
static int find_boxes(struct weir_mp4_box parent, const struct wanted *wanted, size_t n, struct weir_err *err)
{
    const char *type;
    struct weir_mp4_box box;
    int rc;
    while ((rc = next_box(&parent, &type, &box, err)) > 0)
        for (size_t i = 0; i < n; i++)
            if (memcmp(type, wanted[i].type, 4) == 0 && !wanted[i].box->data)
                *wanted[i].box = box;
    return rc;
}

/* ---- the stream ---- */

static const struct {
    const char *fourcc, *config;
    enum weir_video_codec codec;
} codecs[] = {
    {"av01", "av1C", WEIR_VIDEO_AV1},  {"avc1", "avcC", WEIR_VIDEO_H264}, {"avc3", "avcC", WEIR_VIDEO_H264},
    {"hvc1", "hvcC", WEIR_VIDEO_HEVC}, {"hev1", "hvcC", WEIR_VIDEO_HEVC},
};

static int keep_config(struct weir_mp4_reader *r, const char *type, const struct weir_mp4_box *config)
{
    struct weir_video_track *track = r->track;
    if (!config->data || config->n == 0 || config->n > CONFIG_MAX)
        return weir_mp4_damaged(r->err, type, "is missing, empty or too large");
    track->config = malloc(config->n);
    if (!track->config)
        return weir_no_memory(r->err);
    memcpy(track->config, config->data, config->n);
    track->stream.config = track->config;
    track->stream.config_bytes = config->n;
    return 0;
}

/* Reads the boxes colr among those of an entry as FFmpeg does: the last one counts; nclc, QuickTime's, has no range,
 * and in nclx it may be missing, too (limited); other types are profiles. FFmpeg ignores all of them for AV1 and HEVC.
 */
static void read_colr(struct weir_video_stream *stream, struct weir_mp4_box boxes)
{
    enum { MATRICES = 15, UNKNOWN = 2 /* ISO/IEC 23091-2 */ };
    struct weir_mp4_box box = {0};
    struct weir_err err;
    const char *type;
    stream->matrix = stream->full_range = -1;
    while (stream->codec == WEIR_VIDEO_H264 && next_box(&boxes, &type, &box, &err) > 0) {
        bool is_nclx = box.n >= 10 && memcmp(box.data, "nclx", 4) == 0;
        if (memcmp(type, "colr", 4) != 0 || (!is_nclx && (box.n < 10 || memcmp(box.data, "nclc", 4) != 0)))
            continue;
        int matrix = (int)weir_be(box.data + 8, 2);
        stream->matrix = matrix < MATRICES ? matrix : UNKNOWN;
        if (is_nclx)
            stream->full_range = box.n > 10 && box.data[10] >> 7;
    }
}

static int read_entry(struct weir_mp4_reader *r, size_t codec, const struct weir_mp4_box *entry)
{
    struct weir_video_stream *stream = &r->track->stream;
    struct weir_mp4_box config = {0};
    const struct wanted wanted[] = {{codecs[codec].config, &config}};
    if (entry->n < VISUAL_ENTRY)
        return weir_mp4_damaged(r->err, codecs[codec].fourcc, "is too short");
    struct weir_mp4_box boxes = {entry->data + VISUAL_ENTRY, entry->n - VISUAL_ENTRY};
    int rc = find_boxes(boxes, wanted, 1, r->err);
    if (rc < 0)
        return rc;
    stream->codec = codecs[codec].codec;
    memcpy(stream->fourcc, codecs[codec].fourcc, sizeof stream->fourcc);
    stream->width = (int)weir_be(entry->data + 24, 2);
    stream->height = (int)weir_be(entry->data + 26, 2);
    read_colr(stream, boxes);
    if (stream->width == 0 || stream->height == 0)
        return weir_mp4_damaged(r->err, codecs[codec].fourcc, "has a width or height of 0");
    return keep_config(r, codecs[codec].config, &config);
}

static int read_stsd(struct weir_mp4_reader *r)
{
    uint32_t n = 0;
    char text[5];
    const char *type;
    struct weir_mp4_box entry, list = {weir_mp4_entries(&r->stsd, WEIR_MP4_FULL, BOX_HEADER, &n), 0};
    if (!list.data || n == 0)
        return weir_mp4_damaged(r->err, "stsd", "describes no stream");
    if (n > 1)
        return weir_err_set(r->err, -ENOTSUP,
                            "the video changes its format midway (box stsd describes %" PRIu32 " streams); encode it "
                            "again",
                            n);
    list.n = r->stsd.n - WEIR_MP4_FULL - 4;
    int rc = next_box(&list, &type, &entry, r->err);
    if (rc <= 0)
        return rc;
    for (size_t i = 0; i < sizeof codecs / sizeof *codecs; i++)
        if (memcmp(type, codecs[i].fourcc, 4) == 0)
            return read_entry(r, i, &entry);
    bool mpeg = memcmp(type, "mp4v", 4) == 0; /* OpenCV's VideoWriter uses it by default */
    return weir_err_set(r->err, -ENOTSUP,
                        "the video's codec is %s%s, and the supported codecs are AV1, H.264 and HEVC; encode it again, "
                        "for example with ffmpeg -i OLD -c:v libx264 -g 2 NEW",
                        printable(type, text), mpeg ? " (MPEG-4 part 2, MPEG-2 or MJPEG)" : "");
}

/* ---- tracks ---- */

static int read_timescale(const struct weir_mp4_box *box, const char *type, uint32_t *timescale, struct weir_err *err)
{
    size_t at = WEIR_MP4_FULL + (box->n > 0 && box->data[0] == 1 ? 16 : 8);
    if (box->n < at + 4 || weir_be(box->data + at, 4) == 0)
        return weir_mp4_damaged(err, type, "has no time scale");
    *timescale = weir_be(box->data + at, 4);
    return 0;
}

static bool is_video(const struct weir_mp4_box *hdlr)
{
    return hdlr->n >= WEIR_MP4_FULL + 8 && memcmp(hdlr->data + WEIR_MP4_FULL + 4, "vide", 4) == 0;
}

/* Finds the boxes of a track. Returns 1, 0 if it is not a video track, or a negative code. */
static int find_track(struct weir_mp4_reader *r, struct weir_mp4_box trak)
{
    struct weir_mp4_box edts = {0}, mdia = {0}, hdlr = {0}, minf = {0}, stbl = {0};
    const struct wanted in_trak[] = {{"tkhd", &r->tkhd}, {"edts", &edts}, {"mdia", &mdia}};
    const struct wanted in_mdia[] = {{"mdhd", &r->mdhd}, {"hdlr", &hdlr}, {"minf", &minf}};
    const struct wanted in_minf[] = {{"stbl", &stbl}};
    const struct wanted in_edts[] = {{"elst", &r->elst}};
    const struct wanted in_stbl[] = {{"stsd", &r->stsd}, {"stts", &r->stts}, {"ctts", &r->ctts},
                                     {"stsc", &r->stsc}, {"stsz", &r->stsz}, {"stz2", &r->stz2},
                                     {"stco", &r->stco}, {"co64", &r->co64}, {"stss", &r->stss}};
    int rc = find_boxes(trak, in_trak, 3, r->err);
    if (rc == 0)
        rc = find_boxes(mdia, in_mdia, 3, r->err);
    if (rc < 0 || !is_video(&hdlr))
        return rc;
    rc = find_boxes(minf, in_minf, 1, r->err);
    if (rc == 0)
        rc = find_boxes(edts, in_edts, 1, r->err);
    if (rc == 0)
        rc = find_boxes(stbl, in_stbl, sizeof in_stbl / sizeof *in_stbl, r->err);
    return rc < 0 ? rc : 1;
}

static int require_boxes(const struct weir_mp4_reader *r)
{
    const struct {
        const char *type;
        const uint8_t *data;
    } required[] = {{"mdhd", r->mdhd.data},
                    {"stsd", r->stsd.data},
                    {"stts", r->stts.data},
                    {"stsc", r->stsc.data},
                    {"stsz", r->stsz.data ? r->stsz.data : r->stz2.data},
                    {"stco", r->stco.data ? r->stco.data : r->co64.data}};
    for (size_t i = 0; i < sizeof required / sizeof *required; i++)
        if (!required[i].data)
            return weir_mp4_damaged(r->err, required[i].type, "is missing");
    return 0;
}

static int read_track(struct weir_mp4_reader *r)
{
    int rc = require_boxes(r);
    if (rc == 0)
        rc = read_timescale(&r->mdhd, "mdhd", &r->track->timescale, r->err);
    if (rc == 0)
        rc = read_stsd(r);
    if (rc == 0)
        rc = weir_mp4_read_tables(r);
    if (rc == 0)
        rc = weir_video_track_order(r->track, r->err);
    return rc == 0 ? weir_mp4_read_edits(r) : rc;
}

/* ---- the choice of a track ---- */

/* Reads the four factors of a matrix that turn pictures (ISO/IEC 14496-12, 6.2.2); those of no turn if it is missing.
 */
static void read_matrix(const struct weir_mp4_box *box, size_t at, int64_t factors[4])
{
    static const int places[] = {0, 4, 12, 16};
    at += box->n > 0 && box->data[0] == 1 ? 12 : 0; /* times of 64 bits precede it */
    for (int i = 0; i < 4; i++)
        factors[i] = box->n >= at + 36 ? (int32_t)weir_be(box->data + at + places[i], 4) : i % 3 ? 0 : 1 << 16;
}

/* Returns what the matrices of the track and the movie ask for, or NULL. */
static const char *turn_of(const struct weir_mp4_reader *r)
{
    int64_t t[4], m[4];
    read_matrix(&r->tkhd, 40, t);
    read_matrix(&r->mvhd, 36, m);
    __int128 a = (__int128)t[0] * m[0] + t[1] * m[2], b = (__int128)t[0] * m[1] + t[1] * m[3];
    __int128 c = (__int128)t[2] * m[0] + t[3] * m[2], d = (__int128)t[2] * m[1] + t[3] * m[3];
    bool is_straight = b == 0 && c == 0;
    if (is_straight && a >= 0 && d >= 0)
        return NULL;
    if (is_straight && a < 0 && d < 0)
        return "a rotation by 180 degrees";
    if (a == 0 && d == 0 && (b < 0) != (c < 0))
        return b > 0 ? "a rotation by 90 degrees clockwise" : "a rotation by 270 degrees clockwise";
    return a * d < b * c ? "mirrored pictures" : "turned pictures";
}

/* Finds what FFmpeg compares tracks by: whether it is enabled, and its bit rate. */
static void rate_track(struct weir_mp4_reader *r)
{
    struct weir_err err;
    uint64_t bytes, duration;
    uint32_t timescale = 0;
    weir_mp4_sum(r, &bytes, &duration);
    read_timescale(&r->mdhd, "mdhd", &timescale, &err);
    r->bit_rate = duration > 0 ? (uint64_t)((__int128)bytes * 8 * timescale / duration) : 0;
    r->is_enabled = r->tkhd.n >= WEIR_MP4_FULL && r->tkhd.data[3] & 1;
}

static bool is_better(const struct weir_mp4_reader *r, const struct weir_mp4_reader *other)
{
    return r->is_enabled != other->is_enabled ? r->is_enabled : r->bit_rate > other->bit_rate;
}

/* Finds the boxes of the best video track of the movie, whose boxes all fit. Damage of tracks after the first one is no
 * error. */
static int choose_track(struct weir_mp4_reader *r, struct weir_mp4_box moov)
{
    const struct weir_mp4_reader none = *r;
    struct weir_video_stream *stream = &r->track->stream;
    struct weir_mp4_box box;
    const char *type;
    while (next_box(&moov, &type, &box, r->err) > 0) {
        struct weir_mp4_reader next = none;
        struct weir_err err = WEIR_ERR_NONE;
        next.err = stream->tracks == 0 ? r->err : &err;
        int rc = memcmp(type, "trak", 4) == 0 ? find_track(&next, box) : 0;
        if (rc < 0 && stream->tracks == 0)
            return rc;
        if (rc <= 0)
            continue;
        next.err = r->err;
        rate_track(&next);
        if (stream->tracks++ > 0 && !is_better(&next, r))
            continue;
        *r = next;
        stream->number = stream->tracks;
    }
    return stream->tracks > 0 ? 0 : weir_err_set(r->err, -ENODATA, "the file has no video track; record it again");
}

static int fragmented(struct weir_err *err)
{
    return weir_err_set(err, -ENOTSUP,
                        "fragmented MP4 is not supported; rewrite it with `ffmpeg -i IN.mp4 -c copy OUT.mp4`");
}

static int read_moov(struct weir_mp4_reader *r, struct weir_mp4_box moov)
{
    struct weir_mp4_box mvex = {0};
    const struct wanted in_moov[] = {{"mvhd", &r->mvhd}, {"mvex", &mvex}};
    int rc = find_boxes(moov, in_moov, 2, r->err);
    if (rc == 0 && mvex.data)
        rc = fragmented(r->err);
    if (rc == 0 && r->mvhd.data)
        rc = read_timescale(&r->mvhd, "mvhd", &r->movie_timescale, r->err);
    if (rc == 0)
        rc = choose_track(r, moov);
    if (rc < 0)
        return rc;
    r->track->stream.turn = turn_of(r);
    return read_track(r);
}

/* ---- the file ---- */

/* The part of the file that was read last. */
struct window {
    struct weir_source *source;
    uint64_t file_bytes, at;
    size_t n;
    uint8_t bytes[WINDOW_BYTES];
};

static int unreadable(const struct weir_source *source, struct weir_err *err, int rc)
{
    if (rc == -ENODATA)
        return weir_err_set(err, rc, "the file became shorter while it was read; copy it again");
    const char *advice = weir_machine_advice(rc);
    const char *reason = weir_source_reason(source, rc);
    return weir_source_is_remote(source)
               ? weir_err_set(err, rc, "cannot be read: %s", reason)
               : weir_err_set(err, rc, "cannot be read: %s; %s", reason, advice ? advice : "check the storage");
}

/* Ensures that the window contains n bytes at `at`, which are inside the file. */
static int look_at(struct window *window, uint64_t at, size_t n, struct weir_err *err)
{
    if (at >= window->at && at - window->at <= window->n && n <= window->n - (at - window->at))
        return 0;
    uint64_t left = window->file_bytes - at;
    window->at = at;
    window->n = left < WINDOW_BYTES ? (size_t)left : WINDOW_BYTES;
    int rc = weir_source_read(window->source, at, window->bytes, window->n);
    if (rc < 0)
        window->n = 0;
    return rc < 0 ? unreadable(window->source, err, rc) : 0;
}

/* Finds the contents of moov among the boxes of the file. */
static int find_moov(struct window *window, uint64_t *offset, uint64_t *bytes, struct weir_err *err)
{
    for (uint64_t at = 0; window->file_bytes - at >= BOX_HEADER; at += *bytes) {
        uint64_t left = window->file_bytes - at;
        size_t n = left < LARGE_HEADER ? BOX_HEADER : LARGE_HEADER;
        int rc = look_at(window, at, n, err);
        if (rc < 0)
            return rc;
        const uint8_t *box = window->bytes + (at - window->at);
        if (at == 0 && weir_is_lfs_pointer(window->bytes, window->n))
            return weir_err_set(err, -ENODATA, WEIR_LFS_ERROR);
        if (at == 0 && memcmp(box + 4, "ftyp", 4) != 0)
            return weir_err_set(err, -EBADMSG, "the file is not an MP4 file; copy it again, or record it again");
        if (memcmp(box + 4, "moof", 4) == 0)
            return fragmented(err);
        size_t header = parse_header(box, n, left, bytes);
        if (header == 0)
            return weir_err_set(err, -ENODATA,
                                "the file is truncated: the box at byte %" PRIu64 " does not fit into it; copy it "
                                "again",
                                at);
        if (memcmp(box + 4, "moov", 4) == 0) {
            *offset = at + header;
            *bytes -= header;
            return 0;
        }
    }
    return weir_err_set(err, -ENODATA,
                        "the file has no box moov, so its recording was interrupted or its copy is incomplete; copy "
                        "it again, or record it again");
}

/* Reads a moov that is larger than the window. */
static int read_large_moov(struct weir_mp4_reader *r, uint64_t offset, uint64_t bytes)
{
    struct weir_source *source = r->source;
    if (bytes > MOOV_MAX)
        return weir_err_set(r->err, -ENOTSUP, "box moov has %" PRIu64 " bytes, and the limit is %d; split the video",
                            bytes, MOOV_MAX);
    int rc = weir_mp4_claim(r, bytes, "its index");
    uint8_t *moov = rc == 0 ? malloc((size_t)bytes) : NULL;
    if (!moov)
        return rc < 0 ? rc : weir_no_memory(r->err);
    rc = weir_source_read(source, offset, moov, (size_t)bytes);
    rc = rc < 0 ? unreadable(source, r->err, rc) : read_moov(r, (struct weir_mp4_box){moov, (size_t)bytes});
    free(moov);
    return rc;
}

/* The index is at the front or at the end. */
static void announce_ends(struct weir_source *source, uint64_t file_bytes)
{
    uint64_t front = file_bytes < FRONT_BYTES ? file_bytes : FRONT_BYTES,
             end = file_bytes < END_BYTES ? file_bytes : END_BYTES;
    weir_source_announce(
        source, (struct weir_origin_range[]){{0, (size_t)front, NULL}, {file_bytes - end, (size_t)end, NULL}}, 2);
}

static int read_file(struct weir_mp4_reader *r)
{
    struct weir_source *source = r->source;
    struct window window;
    uint64_t offset = 0, bytes = 0;
    if (weir_source_is_remote(source))
        announce_ends(source, r->file_bytes);
    window.source = source; /* the bytes stay uninitialized */
    window.file_bytes = r->file_bytes;
    window.at = window.n = 0;
    int rc = find_moov(&window, &offset, &bytes, r->err);
    if (rc < 0)
        return rc;
    if (bytes > WINDOW_BYTES)
        return read_large_moov(r, offset, bytes);
    rc = look_at(&window, offset, (size_t)bytes, r->err);
    return rc < 0 ? rc : read_moov(r, (struct weir_mp4_box){window.bytes + (offset - window.at), (size_t)bytes});
}

int weir_mp4_open(struct weir_video_track **out, struct weir_source *source, uint64_t file_bytes, struct weir_err *err)
{
    struct weir_mp4_reader reader = {
        .err = err, .track = calloc(1, sizeof *reader.track), .source = source, .file_bytes = file_bytes};
    int rc = reader.track ? read_file(&reader) : weir_no_memory(err);
    if (rc < 0)
        weir_video_track_close(&reader.track);
    *out = reader.track;
    return rc;
}
