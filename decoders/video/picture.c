/* video: converts a decoded picture of a video to pixels, or copies the luma of a depth video. */
#include "decoders/decoder_ops.h"
#include "decoders/video/yuv_priv.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const struct weir_picture *picture_of(const uint8_t *bytes, size_t length)
{
    return length == sizeof(struct weir_picture) ? (const void *)bytes : NULL;
}

static const uint8_t *plane_row(const struct weir_picture *picture, int plane, int y)
{
    int at = plane > 0 && picture->chroma == WEIR_CHROMA_420 ? y / 2 : y;
    return picture->planes[plane] + at * picture->strides[plane];
}

static void copy_depth(const struct weir_picture *picture, uint16_t *to)
{
    size_t width = (size_t)picture->width;
    for (int y = 0; y < picture->height; y++, to += width) {
        const uint8_t *row = plane_row(picture, 0, y);
        if (picture->bit_depth > 8)
            memcpy(to, row, width * sizeof *to);
        else
            for (size_t x = 0; x < width; x++)
                to[x] = row[x];
    }
}

/* Converts row y, from the first requested column on. */
static struct weir_yuv_row row_of(const struct weir_picture *picture, const struct weir_rows *rows, int y)
{
    bool half = picture->chroma == WEIR_CHROMA_420 || picture->chroma == WEIR_CHROMA_422;
    size_t x = (size_t)rows->first_column, sample_bytes = picture->bit_depth > 8 ? sizeof(uint16_t) : 1;
    struct weir_yuv_row row = {
        .luma = plane_row(picture, 0, y) + x * sample_bytes,
        .bit_depth = picture->bit_depth,
        .is_half = half,
        .width = (size_t)rows->end_column - x,
        .bgr = rows->color == WEIR_COLOR_BGR,
        .planes = rows->planes,
    };
    if (picture->chroma != WEIR_CHROMA_400) {
        row.cb = plane_row(picture, 1, y) + (half ? x / 2 : x) * sample_bytes;
        row.cr = plane_row(picture, 2, y) + (half ? x / 2 : x) * sample_bytes;
    }
    return row;
}

static void convert(const struct weir_picture *picture, const struct weir_yuv *yuv, struct weir_rows *rows)
{
    weir_yuv_row_fn *convert_row = weir_yuv_best();
    rows->first_column &= ~1; /* a pixel whose chroma sample starts there */
    rows->planes = rows->takes_planes;
    for (int y = rows->first_row; y < rows->end_row; y += WEIR_BAND_ROWS) {
        int n = weir_rows_in_band(rows, y);
        for (int i = 0; i < n; i++) {
            struct weir_yuv_row row = row_of(picture, rows, y + i);
            row.to = weir_rows_at(rows, y) + (size_t)i * rows->stride;
            convert_row(yuv, &row);
        }
        weir_rows_done(rows, y, n);
    }
}

static int decode(void *self, const struct weir_frame *frame, struct weir_rows *rows, char *reason)
{
    (void)self;
    const struct weir_picture *picture = picture_of(frame->bytes, frame->length);
    struct weir_yuv yuv;
    if (!picture)
        return weir_frame_refuse(reason, "Not a picture of a video");
    int rc = weir_check_frame_size(frame, (unsigned)picture->width, (unsigned)picture->height, reason);
    if (rc < 0)
        return rc;
    if (weir_frame_is_depth(frame->kind)) {
        copy_depth(picture, rows->target);
        return 0;
    }
    rc = weir_yuv_init(&yuv, picture, reason);
    if (rc == 0)
        convert(picture, &yuv, rows);
    return rc;
}

static int probe(void *self, enum weir_frame_kind kind, const uint8_t *bytes, size_t length,
                 struct weir_image_info *info, char *reason)
{
    (void)self;
    const struct weir_picture *picture = picture_of(bytes, length);
    if (!picture)
        return weir_frame_refuse(reason, "Not a picture of a video");
    *info = (struct weir_image_info){.width = picture->width,
                                     .height = picture->height,
                                     .components = picture->chroma == WEIR_CHROMA_400 ? 1 : 3,
                                     .bit_depth = picture->bit_depth,
                                     .kind = kind};
    return 0;
}

const struct weir_decoder_ops weir_decoder_video = {
    .name = "video",
    .summary = "decoded pictures of videos",
    .kinds = WEIR_KIND(WEIR_FRAME_VIDEO) | WEIR_KIND(WEIR_FRAME_VIDEO16),
    .decode = decode,
    .probe = probe,
};
