/* MP4 files made box by box: every form of every table, and refusals of what is damaged, forged or not supported. */
#include "base/files.h"
#include "tests/fixtures/mp4_fixture.h"

#include <criterion/criterion.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

TestSuite(mp4, .init = mp4_open, .fini = mp4_close);

static void expect_refused(const struct mp4_file *file, int code, const char *words)
{
    struct weir_err err;
    int rc = mp4_read(file, &err);
    cr_assert_eq(rc, code, "%d instead of %d: %s", rc, code, err.text);
    cr_assert(strstr(err.text, words), "%s instead of %s", err.text, words);
    cr_assert(strstr(err.text, "; "), "no advice: %s", err.text);
}

/* ---- forms of the tables ---- */

/* Reads a file, which has the samples of mp4_plain. */
static void expect_plain(const struct mp4_file *file)
{
    static const uint32_t offsets[] = {0, 10, 21, 43, 56, 70};
    mp4_expect_read(file);
    const struct weir_video_stream *stream = weir_video_track_stream(mp4_track);
    cr_assert(stream->width == 64 && stream->height == 48 && stream->config_bytes == 4);
    cr_assert_eq(memcmp(stream->config, "\x81\x00\x0C\x00", 4), 0);
    cr_assert_eq(weir_video_track_frames(mp4_track), 6);
    cr_assert_eq(weir_video_track_timescale(mp4_track), 1000);
    cr_assert_eq(weir_video_track_sample_max(mp4_track), 15);
    cr_assert_eq(weir_video_track_block_max(mp4_track), 2);
    uint64_t base = mp4_sample(0).offset;
    for (uint32_t i = 0; i < 6; i++) {
        struct weir_video_sample sample = mp4_sample(i);
        cr_assert_eq(sample.offset, base + offsets[i]);
        cr_assert_eq(sample.bytes, 10 + i);
        cr_assert_eq(sample.time, 100 * (int64_t)i);
        cr_assert_eq(sample.is_sync, i % 2 == 0);
        cr_assert_eq(weir_video_track_at_rank(mp4_track, i), i);
        cr_assert_eq(weir_video_track_block_of(mp4_track, i), i / 2);
    }
}

Test(mp4, tables_have_several_forms)
{
    struct mp4_file file = mp4_plain();
    expect_plain(&file);
    file.stss = MP4_TABLE(4, 5, 1, 3, 3); /* in any order */
    file.stts = MP4_TABLE(4, 2, 100, 0, 7, 3, 100, 9, 100);
    file.ctts = MP4_TABLE(2, 0, 9, 6, 0);
    file.stsc = MP4_TABLE(3, 1, 1, 1, 2, 2, 1, 3, 3, 1);
    file.stco = MP4_TABLE(3, 0, 10, 43);
    expect_plain(&file);
    file.co64 = MP4_TABLE(3, 0, 0, 0, 10, 0, 43);
    file.stco.n = 0;
    expect_plain(&file);
}

Test(mp4, sizes_have_4_8_16_or_32_bits)
{
    struct mp4_file file = mp4_plain();
    file.stsz.n = 0;
    file.stz2 = MP4_TABLE(16, 6, 0x000A000B, 0x000C000D, 0x000E000F);
    expect_plain(&file);
    file.stz2 = MP4_TABLE(8, 6, 0x0A0B0C0D, 0x0E0F0000);
    expect_plain(&file);
    file.stz2 = MP4_TABLE(4, 6, 0xABCDEF00);
    expect_plain(&file);
    file.stz2.n = 0;
    file.stsz = MP4_TABLE(14, 6);
    mp4_expect_read(&file);
    uint64_t base = mp4_sample(0).offset;
    cr_assert(mp4_sample(2).offset == base + 28 && mp4_sample(5).offset == base + 43 + 28 && mp4_sample(5).bytes == 14);
}

Test(mp4, boxes_have_several_forms)
{
    for (int i = 0; i < 64; i++) {
        struct mp4_file file = mp4_plain();
        file.place = i & 1 ? MP4_INDEX_FIRST : MP4_INDEX_LAST;
        file.is_large = i & 2;
        file.extends_to_end = (i & 4) && !(i & 2);
        file.has_sound_before = i & 8;
        file.has_video_after = i & 16;
        file.is_padded = i & 32;
        expect_plain(&file);
    }
    struct mp4_file file = mp4_plain();
    file.mdhd = MP4_TABLE_1(0, 0, 0, 0, 1000, 600);
    expect_plain(&file);
}

Test(mp4, streams_have_a_codec_and_a_colour)
{
    static const struct {
        const char *fourcc, *config;
        enum weir_video_codec codec;
    } rows[] = {{"av01", "av1C", WEIR_VIDEO_AV1},
                {"avc1", "avcC", WEIR_VIDEO_H264},
                {"avc3", "avcC", WEIR_VIDEO_H264},
                {"hvc1", "hvcC", WEIR_VIDEO_HEVC},
                {"hev1", "hvcC", WEIR_VIDEO_HEVC}};
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct mp4_file file = mp4_plain();
        file.fourcc = rows[i].fourcc;
        file.config_box = rows[i].config;
        expect_plain(&file);
        const struct weir_video_stream *stream = weir_video_track_stream(mp4_track);
        cr_assert_eq(stream->codec, rows[i].codec);
        cr_assert_str_eq(stream->fourcc, rows[i].fourcc);
        cr_assert(stream->matrix == -1 && stream->full_range == -1);
    }
}

/* What FFmpeg reads from boxes colr. It ignores them for AV1 and HEVC. */
Test(mp4, colours_of_h264)
{
#define TEXT(text)                                                                                                     \
    {                                                                                                                  \
        text, sizeof text - 1                                                                                          \
    }
    static const struct {
        struct {
            const char *bytes;
            size_t n;
        } colr[2];
        int matrix, full_range;
    } rows[] = {
        {{TEXT("nclx\0\1\0\1\0\x09\x80")}, 9, 1},
        {{TEXT("nclx\0\1\0\1\0\1\x00")}, 1, 0},
        {{TEXT("nclx\0\1\0\1\0\1")}, 1, 0},  /* without the byte of the range */
        {{TEXT("nclc\0\1\0\1\0\1")}, 1, -1}, /* QuickTime's */
        {{TEXT("nclc\0\1\0\1\0")}, -1, -1},
        {{TEXT("prof\0\1\0\1\0\1\x80")}, -1, -1},
        {{TEXT("prof\0\1"), TEXT("nclx\0\1\0\1\0\1\x80")}, 1, 1},
        {{TEXT("nclx\0\1\0\1\0\x09\x80"), TEXT("nclc\0\1\0\1\0\6")}, 6, 1},
        {{TEXT("nclx\0\1\0\1\x01\x09\x80")}, 2, 1}, /* a number without a meaning */
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct mp4_file file = mp4_plain();
        memcpy(file.colr, rows[i].colr, sizeof file.colr);
        expect_plain(&file);
        cr_assert_eq(weir_video_track_stream(mp4_track)->matrix, -1);
        file.fourcc = "avc1";
        file.config_box = "avcC";
        expect_plain(&file);
        const struct weir_video_stream *stream = weir_video_track_stream(mp4_track);
        cr_assert(stream->matrix == rows[i].matrix && stream->full_range == rows[i].full_range, "row %zu: %d %d", i,
                  stream->matrix, stream->full_range);
    }
}

/* A box tkhd with the first two columns of the first two rows of a matrix. */
#define TKHD(a, b, c, d) MP4_TABLE(0, 0, 1, 0, 0, 0, 0, 0, 0, a, b, 0, c, d, 0, 0, 0, 1 << 30, 64 << 16, 48 << 16)

Test(mp4, display_matrices_are_told)
{
    enum { ONE = 1 << 16 };
    const uint32_t minus = (uint32_t)-ONE;
    const struct {
        struct mp4_table tkhd;
        const char *turn;
    } rows[] = {
        {TKHD(ONE, 0, 0, ONE), NULL},
        {TKHD(0, 0, 0, 0), NULL},
        {TKHD(2 * ONE, 0, 0, ONE), NULL},
        {TKHD(0, ONE, minus, 0), "a rotation by 90 degrees clockwise"},
        {TKHD(minus, 0, 0, minus), "a rotation by 180 degrees"},
        {TKHD(0, minus, ONE, 0), "a rotation by 270 degrees clockwise"},
        {TKHD(minus, 0, 0, ONE), "mirrored pictures"},
        {TKHD(0, ONE, ONE, 0), "mirrored pictures"},
        {TKHD(46341, 46341, (uint32_t)-46341, 46341), "turned pictures"},
        {MP4_TABLE(0, 0, 1), NULL}, /* too short */
    };
    struct mp4_file file = mp4_plain();
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        file.tkhd = rows[i].tkhd;
        expect_plain(&file);
        const char *turn = weir_video_track_stream(mp4_track)->turn;
        cr_assert(turn == rows[i].turn || (turn && rows[i].turn && strcmp(turn, rows[i].turn) == 0), "row %zu: %s", i,
                  turn ? turn : "none");
    }
    /* version 1 has times of 64 bits; the movie has a matrix, too, and both apply */
    file.tkhd = MP4_TABLE_1(0, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0, 0, ONE, 0, minus, 0, 0, 0, 0, 1 << 30, 0, 0);
    file.mvhd = MP4_TABLE(0, 0, 1000, 600, ONE, 0, 0, 0, 0, ONE, 0, minus, 0, 0, 0, 0, 1 << 30);
    expect_plain(&file);
    cr_assert_str_eq(weir_video_track_stream(mp4_track)->turn, "a rotation by 180 degrees");
}

/* FFmpeg's choice: enabled, then the highest bit rate, then the first. */
Test(mp4, the_best_of_two_video_tracks_is_read)
{
    static const struct {
        uint8_t flags[2];
        uint32_t durations[2]; /* of a sample: shorter is a higher rate */
        int chosen;
    } rows[] = {{{1, 1}, {100, 100}, 1}, {{1, 1}, {100, 99}, 2}, {{1, 1}, {99, 100}, 1}, {{0, 1}, {50, 100}, 2},
                {{1, 0}, {100, 50}, 1},  {{0, 0}, {100, 50}, 2}, {{1, 1}, {100, 0}, 1}};
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct mp4_file first = mp4_plain(), second = mp4_plain();
        first.second = &second;
        second.width = 128;
        first.tkhd = second.tkhd = TKHD(1 << 16, 0, 0, 1 << 16);
        first.tkhd.flags = rows[i].flags[0];
        second.tkhd.flags = rows[i].flags[1];
        first.stts.words[2] = rows[i].durations[0];
        second.stts.words[2] = rows[i].durations[1];
        mp4_expect_read(&first);
        const struct weir_video_stream *stream = weir_video_track_stream(mp4_track);
        cr_assert(stream->tracks == 2 && stream->number == rows[i].chosen, "row %zu: %d", i, stream->number);
        cr_assert_eq(stream->width, 64 * rows[i].chosen);
    }
}

/* The pictures that a file shows: the number of each sample and its time, up to a sample of -1. */
struct shown {
    int sample;
    int64_t time;
};

static void expect_shown(const struct mp4_file *file, const struct shown *shown, const char *name)
{
    uint32_t n = 0;
    mp4_expect_read(file);
    for (; shown[n].sample >= 0; n++) {
        uint32_t block = weir_video_track_block_of(mp4_track, n), sample = (uint32_t)shown[n].sample;
        cr_assert_lt(n, weir_video_track_frames(mp4_track), "%s: %u pictures", name, n);
        cr_assert_eq(weir_video_track_at_rank(mp4_track, n), sample, "%s: picture %u", name, n);
        cr_assert_eq(weir_video_track_time(mp4_track, n), shown[n].time, "%s: picture %u at %lld", name, n,
                     (long long)weir_video_track_time(mp4_track, n));
        cr_assert_eq(weir_video_track_nearest(mp4_track, shown[n].time, 1000), n, "%s", name);
        cr_assert(weir_video_track_block_first(mp4_track, block) <= n &&
                      n < weir_video_track_block_first(mp4_track, block + 1),
                  "%s", name);
        if (!file->ctts.n) /* two pictures per block */
            cr_assert_eq(weir_video_track_block_sync(mp4_track, block), sample / 2 * 2, "%s: picture %u", name, n);
    }
    cr_assert_eq(weir_video_track_frames(mp4_track), n, "%s", name);
    cr_assert_eq(weir_video_track_block_first(mp4_track, weir_video_track_blocks(mp4_track)), n);
}

#define PAUSE(duration)      duration, UINT32_MAX, 1 << 16
#define EDIT(duration, time) duration, time, 1 << 16
#define END                                                                                                            \
    {                                                                                                                  \
        -1, 0                                                                                                          \
    }

Test(mp4, edits_show_what_the_reference_shows)
{
    static const struct {
        const char *name;
        struct mp4_table elst;
        struct shown shown[8];
    } rows[] = {
        {"all", {MP4_WORDS(1, EDIT(600, 0))}, {{0, 0}, {1, 100}, {2, 200}, {3, 300}, {4, 400}, {5, 500}, END}},
        {"no edit", {MP4_WORDS(0)}, {{0, 0}, {1, 100}, {2, 200}, {3, 300}, {4, 400}, {5, 500}, END}},
        {"at a picture", {MP4_WORDS(1, EDIT(400, 200))}, {{2, 0}, {3, 100}, {4, 200}, {5, 300}, END}},
        {"within a picture", {MP4_WORDS(1, EDIT(400, 150))}, {{2, 0}, {3, 100}, {4, 200}, {5, 300}, END}},
        {"rounded up", {MP4_WORDS(1, EDIT(400, 101))}, {{2, 0}, {3, 100}, {4, 200}, {5, 300}, END}},
        {"ends early", {MP4_WORDS(1, EDIT(201, 100))}, {{1, 0}, {2, 100}, {3, 200}, END}},
        {"before the media", {MP4_WORDS(1, EDIT(201, (uint32_t)-100))}, {{0, 0}, {1, 100}, END}},
        {"a pause", {MP4_WORDS(2, PAUSE(52), EDIT(200, 100))}, {{1, 52}, {2, 152}, END}},
        {"pauses", {MP4_WORDS(3, PAUSE(50), PAUSE(7), EDIT(200, 150))}, {{2, 57}, {3, 157}, END}},
        {"speeds", {MP4_WORDS(2, 200, 0, 0, 100, 300, 2 << 16)}, {{0, 0}, {1, 100}, {3, 200}, END}},
        {"several", {MP4_WORDS(2, EDIT(150, 0), EDIT(200, 350))}, {{0, 0}, {1, 100}, {4, 150}, {5, 250}, END}},
        {"one within", {MP4_WORDS(2, EDIT(200, 150), EDIT(100, 500))}, {{2, 0}, {3, 100}, {5, 200}, END}},
        {"again", {MP4_WORDS(2, EDIT(200, 300), EDIT(200, 0))}, {{3, 0}, {4, 100}, {0, 200}, {1, 300}, END}},
        {"nothing first", {MP4_WORDS(2, EDIT(50, 950), EDIT(200, 0))}, {{0, 0}, {1, 100}, END}},
        {"a pause later", {MP4_WORDS(2, EDIT(200, 100), PAUSE(101))}, {{1, 0}, {2, 100}, {0, 200}, END}},
    };
    struct mp4_file file = mp4_plain();
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        file.elst = rows[i].elst;
        expect_shown(&file, rows[i].shown, rows[i].name);
    }
    file.mvhd.words[2] = 600; /* 31 / 600 s are 51.67 units of 1/1000 s */
    file.elst = MP4_TABLE_1(2, 0, 31, UINT32_MAX, UINT32_MAX, 1 << 16, 0, 120, 0, 100, 1 << 16);
    expect_shown(&file, (struct shown[]){{1, 52}, {2, 152}, END}, "version 1");
}

/* I0 P3 B1 B2 I5 B4, 200 units later than they are decoded. */
static const struct mp4_table reordered_shifts = {MP4_WORDS(6, 1, 200, 1, 400, 1, 100, 1, 100, 1, 300, 1, 100)};

Test(mp4, edits_of_reordered_pictures)
{
    static const struct {
        const char *name;
        struct mp4_table elst;
        struct shown shown[7];
    } rows[] = {
        {"all", {MP4_WORDS(1, EDIT(600, 200))}, {{0, 0}, {2, 100}, {3, 200}, {1, 300}, {5, 400}, {4, 500}, END}},
        {"no delay", {MP4_WORDS(1, EDIT(600, 0))}, {{0, 0}, {2, 100}, {3, 200}, {1, 300}, END}},
        {"within", {MP4_WORDS(1, EDIT(500, 350))}, {{3, 0}, {1, 100}, {5, 200}, {4, 300}, END}},
        {"pause", {MP4_WORDS(2, PAUSE(70), EDIT(200, 350))}, {{3, 70}, {1, 170}, END}},
        {"none", {0}, {{0, 200}, {2, 300}, {3, 400}, {1, 500}, {5, 600}, {4, 700}, END}},
    };
    struct mp4_file file = mp4_plain();
    file.ctts = reordered_shifts;
    file.stss = MP4_TABLE(2, 1, 5);
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        file.elst = rows[i].elst;
        expect_shown(&file, rows[i].shown, rows[i].name);
        cr_assert_eq(weir_video_track_block_sync(mp4_track, 0), 0, "%s", rows[i].name);
    }
}

/* ---- refusals ---- */

#define REFUSED(change, code, words)                                                                                   \
    do {                                                                                                               \
        struct mp4_file file = mp4_plain();                                                                            \
        change;                                                                                                        \
        expect_refused(&file, code, words);                                                                            \
    } while (0)

#define TABLE(...) ((struct mp4_table){__VA_ARGS__})
#define WORDS(...)                                                                                                     \
    {                                                                                                                  \
        __VA_ARGS__                                                                                                    \
    }

Test(mp4, features_that_are_not_supported)
{
    REFUSED(file.is_fragmented = true, -ENOTSUP, "fragmented");
    REFUSED(file.fourcc = "mp4v", -ENOTSUP, "mp4v (MPEG-4 part 2, MPEG-2 or MJPEG)");
    REFUSED(file.fourcc = "vp09", -ENOTSUP, "vp09, and the supported codecs");
    REFUSED(file.fourcc = "v\n\x01g", -ENOTSUP, "v??g");
    REFUSED(file.entries = 2, -ENOTSUP, "stsd describes 2 streams");
    REFUSED((file.elst = MP4_TABLE(2, EDIT(200, 350), EDIT(100, 200)), file.ctts = reordered_shifts), -ENOTSUP,
            "edit 1 of the video's edit list (box elst) begins before the end of");
    REFUSED(file.elst = MP4_TABLE(1, EDIT(500, 600)), -ENODATA, "hides all pictures");
    REFUSED(file.elst = MP4_TABLE(1, EDIT(0, 0)), -ENODATA, "hides all pictures");
    REFUSED(file.elst = MP4_TABLE(1, PAUSE(500)), -ENODATA, "hides all pictures");
    REFUSED(file.stsz = MP4_TABLE(1, 1u << 31), -ENOTSUP, "2147483648 samples");
}

Test(mp4, boxes_that_are_missing_or_damaged)
{
    REFUSED(file.brand_box = "RIFF", -EBADMSG, "not an MP4 file");
    REFUSED(file.handler = "soun", -ENODATA, "no video track");
    REFUSED(file.mdhd.n = 0, -EBADMSG, "mdhd is missing");
    REFUSED(file.mdhd.n = 2, -EBADMSG, "mdhd has no time scale");
    REFUSED(file.mdhd.words[2] = 0, -EBADMSG, "mdhd has no time scale");
    REFUSED(file.mvhd.words[2] = 0, -EBADMSG, "mvhd has no time scale");
    REFUSED(file.stts.n = 0, -EBADMSG, "stts is missing");
    REFUSED(file.stsc.n = 0, -EBADMSG, "stsc is missing");
    REFUSED(file.stsz.n = 0, -EBADMSG, "stsz is missing");
    REFUSED(file.stco.n = 0, -EBADMSG, "stco is missing");
    REFUSED(file.entries = 0, -EBADMSG, "stsd");
    REFUSED(file.entries = 1000, -EBADMSG, "stsd");
    REFUSED(file.config_box = "avcC", -EBADMSG, "av1C is missing");
    REFUSED(file.width = 0, -EBADMSG, "av01 has a width or height of 0");
    REFUSED((file.mvhd.n = 0, file.elst = MP4_TABLE(1, EDIT(5, 0))), -EBADMSG, "mvhd is missing");
    REFUSED((file.elst = MP4_TABLE_1(1, 0, 1, 1u << 30, 0, 1 << 16)), -EBADMSG, "elst");
    REFUSED((file.elst = MP4_TABLE_1(1, 0, 1, 1u << 31, 0, 1 << 16)), -EBADMSG, "elst");
    REFUSED((file.elst = MP4_TABLE_1(1, 1u << 31, 0, UINT32_MAX, UINT32_MAX, 1 << 16)), -EBADMSG,
            "elst its times are too large");
}

Test(mp4, counts_that_do_not_fit)
{
    static const uint32_t counts[] = {7, 1000, 0x10000001, 0x20000001, 0x40000001, 0x80000001, UINT32_MAX};
    for (size_t i = 0; i < sizeof counts / sizeof *counts; i++) {
        uint32_t n = counts[i];
        REFUSED(file.stts.words[0] = n, -EBADMSG, "stts contains fewer");
        REFUSED(file.ctts = MP4_TABLE(n, 6, 0), -EBADMSG, "ctts contains fewer");
        REFUSED(file.stss.words[0] = n, -EBADMSG, "stss contains fewer");
        REFUSED(file.stsc.words[0] = n, -EBADMSG, "stsc contains fewer");
        REFUSED(file.stco.words[0] = n, -EBADMSG, "stco contains fewer");
        REFUSED((file.stco.n = 0, file.co64 = MP4_TABLE(n, 0, 0, 0, 43)), -EBADMSG, "co64 contains fewer");
        REFUSED(file.elst = MP4_TABLE(n, 500, 0, 1 << 16), -EBADMSG, "elst contains fewer");
        REFUSED(file.stsz.words[1] = n, -EBADMSG, "stsz contains fewer");
        REFUSED((file.stsz.n = 0, file.stz2 = MP4_TABLE(4, n > 8 ? n : 9, 0xABCDEF00)), -EBADMSG,
                "stz2 contains fewer");
        if (n <= INT32_MAX)
            REFUSED(file.stsz = MP4_TABLE(100, n), -ENODATA, "do not fit into the file");
    }
}

Test(mp4, tables_that_disagree)
{
    REFUSED(file.stsz.words[1] = 0, -ENODATA, "no samples");
    REFUSED(file.stts.words[1] = 5, -EBADMSG, "stts describes fewer samples");
    REFUSED(file.ctts = MP4_TABLE(1, 5, 0), -EBADMSG, "ctts describes fewer samples");
    REFUSED(file.stsc.words[2] = 2, -EBADMSG, "stsc describes fewer samples");
    REFUSED(file.stsc.words[2] = 0, -EBADMSG, "stsc describes fewer samples");
    REFUSED(file.stsc.words[1] = 2, -EBADMSG, "stsc its chunk numbers");
    REFUSED(file.stsc = MP4_TABLE(3, 1, 1, 1, 3, 2, 1, 2, 3, 1), -EBADMSG, "stsc its chunk numbers");
    REFUSED(file.stss.words[3] = 7, -EBADMSG, "stss");
    REFUSED(file.stss.words[1] = 0, -EBADMSG, "stss");
    REFUSED(file.stss = MP4_TABLE(0), -EBADMSG, "no sync sample");
    REFUSED((file.stsz.n = 0, file.stz2 = MP4_TABLE(5, 6, 0)), -EBADMSG, "stz2");
}

Test(mp4, samples_outside_the_file)
{
    REFUSED(file.stsz.words[7] = 2000, -ENODATA, "sample 5 of 6");
    REFUSED(file.stsz.words[2] = UINT32_MAX, -ENODATA, "sample 0 of 6");
    REFUSED(file.stco.words[2] = 5000, -ENODATA, "sample 3 of 6");
    REFUSED((file.stco.n = 0, file.co64 = MP4_TABLE(2, 0, 0, UINT32_MAX, 0)), -ENODATA, "sample 3 of 6");
}

Test(mp4, times_that_go_back)
{
    REFUSED(file.stts = MP4_TABLE(2, 3, 0, 3, 100), -EBADMSG, "samples 0 and 1 of the video have the same");
    REFUSED(file.stts.words[2] = 0, -EBADMSG, "samples 0 and 1");
    REFUSED(file.stts.words[2] = (uint32_t)-100, -EBADMSG, "stts contains a negative duration");
    REFUSED(file.ctts = MP4_TABLE(3, 2, 0, 1, 200, 3, 0), -EBADMSG, "samples 2 and 4");
}

/* A small file that shows its pictures often takes little time. */
Test(mp4, edits_without_end)
{
    enum { EDITS = 1000 };
    static uint32_t words[1 + 3 * EDITS] = {EDITS};
    struct weir_err err;
    struct mp4_file file = mp4_plain();
    for (int i = 0; i < EDITS; i++)
        memcpy(words + 1 + 3 * i, (uint32_t[]){EDIT(600, 0)}, 3 * sizeof *words);
    file.elst = (struct mp4_table){.n = 1 + 3 * EDITS, .many = words};
    cr_assert_eq(mp4_read(&file, &err), -ENOTSUP);
    cr_assert(strstr(err.text, "more than 64 times"), "%s", err.text);
}

Test(mp4, indexes_larger_than_the_limit)
{
    size_t n, at;
    struct weir_err err = WEIR_ERR_NONE;
    struct mp4_file file = mp4_plain();
    uint8_t *bytes = mp4_build(&file, &n);
    for (at = 0; memcmp(bytes + at + 4, "moov", 4) != 0;)
        at++;
    memset(bytes + at, 0, 4); /* extends to the end of a sparse file */
    cr_assert_eq(weir_write_at(mp4_fd, 0, bytes, n), 0);
    cr_assert_eq(ftruncate(mp4_fd, (off_t)1 << 40), 0);
    cr_assert_eq(mp4_open_file((uint64_t)1 << 40, &err), -ENOTSUP);
    cr_assert(strstr(err.text, "moov"), "%s", err.text);
    free(bytes);
}

/* Makes the file sparse, with n bytes, and expects an error. */
static void expect_too_few_bytes(const struct mp4_file *file, off_t n, const char *what)
{
    struct weir_err err = WEIR_ERR_NONE;
    size_t written;
    uint8_t *bytes = mp4_build(file, &written);
    cr_assert_eq(ftruncate(mp4_fd, 0), 0);
    cr_assert_eq(weir_write_at(mp4_fd, 0, bytes, written), 0);
    cr_assert_eq(ftruncate(mp4_fd, n), 0);
    cr_assert_eq(mp4_open_file((uint64_t)n, &err), -ENODATA, "%s", err.text);
    cr_assert(strstr(err.text, what) && strstr(err.text, "copy it again"), "%s", err.text);
    free(bytes);
}

/* A hole costs nothing, and tables describe much in it. */
Test(mp4, holes_demand_no_memory)
{
    enum { MANY = 200 << 20, SHIFTS = 3 };
    const off_t size = (off_t)1 << 32;
    struct mp4_file file = mp4_plain(), plain = mp4_plain();
    plain.place = MP4_INDEX_FIRST;
    plain.extends_to_end = true;
    file = plain; /* equal sizes and several shifts, so that the order must be found */
    file.stsz = MP4_TABLE(8, MANY);
    file.stts = MP4_TABLE(1, MANY, 100);
    file.ctts = MP4_TABLE(SHIFTS, 1, 0, 1, 150, MANY - 2, 0);
    file.stsc = MP4_TABLE(1, 1, MANY, 1);
    file.stco = MP4_TABLE(1, 0);
    expect_too_few_bytes(&file, size, "too few for its samples");
    file = plain; /* a sample that is a hole */
    file.stsz.words[7] = 3u << 30;
    expect_too_few_bytes(&file, size, "too few for its samples");
    file = plain; /* an index that is one */
    file.place = MP4_INDEX_LAST;
    expect_too_few_bytes(&file, 200 << 20, "too few for its index");
}

Test(mp4, files_that_became_shorter)
{
    struct weir_err err;
    struct mp4_file file = mp4_plain();
    size_t n;
    uint8_t *bytes = mp4_build(&file, &n);
    cr_assert_eq(mp4_read_bytes(bytes, n, &err), 0);
    weir_video_track_close(&mp4_track);
    cr_assert_eq(ftruncate(mp4_fd, (off_t)n - 1), 0);
    cr_assert_eq(mp4_open_file(n, &err), -ENODATA);
    cr_assert(strstr(err.text, "shorter"), "%s", err.text);
    free(bytes);
}

/* Both places of the index, at every length; and with every byte changed. */
Test(mp4, every_length_and_every_byte)
{
    for (int place = 0; place < 2; place++) {
        struct weir_err err;
        struct mp4_file file = mp4_plain();
        size_t n;
        file.place = (enum mp4_place)place;
        file.ctts = MP4_TABLE(1, 6, 0);
        file.elst = MP4_TABLE(1, 500, 0, 1 << 16);
        uint8_t *bytes = mp4_build(&file, &n);
        size_t needed = place == MP4_INDEX_FIRST ? n - (MP4_DATA_BYTES - 85) : n;
        for (size_t length = 0; length < needed; length++) {
            int rc = mp4_read_bytes(bytes, length, &err);
            cr_assert(rc == -ENODATA || rc == -EBADMSG, "%zu bytes: %d %s", length, rc, err.text);
        }
        for (size_t i = 0; i < 8 * n; i++) {
            bytes[i / 8] ^= (uint8_t)(1 << i % 8);
            mp4_read_bytes(bytes, n, &err);
            bytes[i / 8] ^= (uint8_t)(1 << i % 8);
        }
        free(bytes);
    }
}
