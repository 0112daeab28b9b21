#include "decoders/frame_kind.h"
#include "base/files.h"
#include "decoders/jpeg_walk_priv.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#define MAGIC(text) text, sizeof text - 1

static const struct weir_frame_kind_row rows[WEIR_FRAME_KINDS] = {
    [WEIR_FRAME_IMAGE] = {.name = "jpeg", .title = "image", .imagecodecs = "jpeg", .group = WEIR_FRAMES_COLOR},
    [WEIR_FRAME_RAW] = {.name = "raw", .title = "raw", .group = WEIR_FRAMES_RAW, .pixel_bytes = 3, .is_made = true},
    [WEIR_FRAME_PNG16] =
        {.name = "png16", .title = "16-bit PNG", .imagecodecs = "png", .group = WEIR_FRAMES_DEPTH, .is_depth = true},
    [WEIR_FRAME_RAW16] =
        {.name = "raw16", .title = "raw depth", .group = WEIR_FRAMES_RAW, .pixel_bytes = 2, .is_depth = true},
    [WEIR_FRAME_JPEG] = {.name = "jpeg",
                         .title = "JPEG",
                         .imagecodecs = "jpeg",
                         .group = WEIR_FRAMES_COLOR,
                         .is_made = true,
                         .magic = {{MAGIC("\xFF\xD8")}}},
    [WEIR_FRAME_PNG] = {.name = "png",
                        .title = "PNG",
                        .imagecodecs = "png",
                        .group = WEIR_FRAMES_COLOR,
                        .is_made = true,
                        .magic = {{MAGIC("\x89PNG\r\n\x1A\n")}}},
    [WEIR_FRAME_JPEG2000] = {.name = "jpeg2000",
                             .title = "JPEG 2000",
                             .imagecodecs = "jpeg2k",
                             .group = WEIR_FRAMES_NAMED,
                             .magic = {{MAGIC("\xFF\x4F\xFF\x51")}, {MAGIC("\0\0\0\x0CjP  \r\n\x87\n")}}},
    [WEIR_FRAME_JPEGXL] = {.name = "jpegxl",
                           .title = "JPEG XL",
                           .imagecodecs = "jpegxl",
                           .group = WEIR_FRAMES_NAMED,
                           .magic = {{MAGIC("\xFF\x0A")}, {MAGIC("\0\0\0\x0CJXL \r\n\x87\n")}}},
    [WEIR_FRAME_VIDEO] = {.name = "video", .title = "video", .group = WEIR_FRAMES_VIDEO},
    [WEIR_FRAME_VIDEO16] = {.name = "video16", .title = "depth video", .group = WEIR_FRAMES_VIDEO, .is_depth = true},
};

const struct weir_frame_kind_row *weir_frame_kind_row(enum weir_frame_kind kind)
{
    return &rows[kind];
}

const char *weir_frame_kind_name(enum weir_frame_kind kind)
{
    return rows[kind].name;
}

const char *weir_frame_kind_title(enum weir_frame_kind kind)
{
    return rows[kind].title;
}

bool weir_frame_is_depth(enum weir_frame_kind kind)
{
    return rows[kind].is_depth;
}

bool weir_frame_is_video(enum weir_frame_kind kind)
{
    return rows[kind].group == WEIR_FRAMES_VIDEO;
}

bool weir_frame_is_encoded(enum weir_frame_kind kind)
{
    return rows[kind].pixel_bytes == 0;
}

int weir_frame_kind_from_name(const char *name)
{
    for (int i = WEIR_FRAME_IMAGE + 1; i < WEIR_FRAME_KINDS; i++)
        if (!weir_frame_is_video(i) && strcmp(rows[i].name, name) == 0)
            return i;
    return -EINVAL;
}

int weir_frame_kind_stored(const char *name)
{
    int kind = weir_frame_kind_from_name(name);
    return kind >= 0 && rows[kind].group == WEIR_FRAMES_COLOR ? WEIR_FRAME_IMAGE : kind;
}

enum weir_frame_kind weir_frame_kind_of(const uint8_t *bytes, size_t length)
{
    for (int i = 0; i < WEIR_FRAME_KINDS; i++)
        for (int m = 0; m < WEIR_MAGIC_MAX && rows[i].magic[m].bytes; m++)
            if (length >= rows[i].magic[m].length &&
                memcmp(bytes, rows[i].magic[m].bytes, rows[i].magic[m].length) == 0)
                return (enum weir_frame_kind)i;
    return WEIR_FRAME_IMAGE;
}

void weir_frame_kind_list(unsigned groups, const char *separator, char *text, size_t size)
{
    int at = 0;
    text[0] = '\0';
    for (int i = 0; i < WEIR_FRAME_KINDS && at >= 0 && (size_t)at < size; i++)
        if ((rows[i].group & groups) && (i == WEIR_FRAME_IMAGE || rows[i].group != WEIR_FRAMES_COLOR))
            at += snprintf(text + at, size - (size_t)at, "%s%s", at ? separator : "", rows[i].name);
}

/* ---- marks: what a JPEG or PNG says about how to read it ---- */

enum { TAG_ORIENTATION = 0x0112, ENTRY_BYTES = 12, PNG_SIGNATURE = 8, CHUNK_BYTES = 12 };

static const char true_rgb[] = "XPL-RGB1";
static const char exif_name[] = "Exif\0"; /* with two zeros */

static uint32_t number(const uint8_t *at, int bytes, bool big_endian)
{
    return (uint32_t)(big_endian ? weir_be(at, bytes) : weir_le(at, bytes));
}

/* Returns the orientation of a TIFF header with its first directory, or 0 if it has no valid one. */
static int orientation_of(const uint8_t *tiff, size_t length)
{
    if (length < 8 || tiff[0] != tiff[1] || (tiff[0] != 'I' && tiff[0] != 'M'))
        return 0;
    bool big = tiff[0] == 'M';
    size_t at = number(tiff + 4, 4, big);
    if (number(tiff + 2, 2, big) != 42 || at > length || length - at < 2)
        return 0;
    uint32_t entries = number(tiff + at, 2, big);
    at += 2;
    for (uint32_t i = 0; i < entries && length - at >= ENTRY_BYTES; i++, at += ENTRY_BYTES)
        if (number(tiff + at, 2, big) == TAG_ORIENTATION) {
            uint32_t value = number(tiff + at + 8, 2, big);
            return value >= 1 && value <= 8 ? (int)value : 0;
        }
    return 0;
}

static int exif_of(const uint8_t *body, size_t length)
{
    size_t name = sizeof exif_name;
    bool named = length >= name && memcmp(body, exif_name, name) == 0;
    return named ? orientation_of(body + name, length - name) : 0;
}

static void mark_jpeg(struct weir_frame_marks *marks, const uint8_t *bytes, size_t length)
{
    struct weir_jpeg_segment segment;
    size_t at = 2;
    while (weir_jpeg_next_segment(bytes, length, &at, &segment) && segment.marker != MARKER_SOS) {
        if (segment.marker == MARKER_APP0 + 1 && marks->turn == 0)
            marks->turn = exif_of(segment.body, segment.length);
        if (segment.marker == MARKER_COM && segment.length == sizeof true_rgb - 1)
            marks->true_rgb |= memcmp(segment.body, true_rgb, segment.length) == 0;
    }
}

static void mark_png(struct weir_frame_marks *marks, const uint8_t *bytes, size_t length)
{
    for (size_t at = PNG_SIGNATURE; length - at >= CHUNK_BYTES;) {
        size_t n = weir_be(bytes + at, 4);
        const uint8_t *type = bytes + at + 4, *body = type + 4;
        if (n > length - at - CHUNK_BYTES || memcmp(type, "IEND", 4) == 0)
            return;
        if (memcmp(type, "eXIf", 4) == 0) {
            int named = exif_of(body, n);
            marks->turn = named ? named : orientation_of(body, n);
            return;
        }
        at += CHUNK_BYTES + n;
    }
}

void weir_frame_marks(struct weir_frame_marks *marks, const uint8_t *bytes, size_t length)
{
    *marks = (struct weir_frame_marks){0};
    if (length >= 2 && bytes[0] == 0xFF && bytes[1] == MARKER_SOI)
        mark_jpeg(marks, bytes, length);
    else if (length >= PNG_SIGNATURE && memcmp(bytes, "\x89PNG\r\n\x1a\n", PNG_SIGNATURE) == 0)
        mark_png(marks, bytes, length);
}
