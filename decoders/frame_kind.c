#include "decoders/frame_kind.h"

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
