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

/* Returns the output of row i of the band that starts at row y. */
static struct weir_yuv_row output_row(struct weir_rows *rows, int y, int i)
{
    return (struct weir_yuv_row){
        .width = (size_t)(rows->end_column - rows->first_column),
        .bgr = rows->color == WEIR_COLOR_BGR,
        .planes = rows->planes,
        .to = weir_rows_at(rows, y) + (size_t)i * rows->stride,
    };
}

/* scaler: NULL if the picture needs none */
static void convert(const struct weir_picture *picture, const struct weir_yuv *yuv, struct weir_yuv_scaler *scaler,
                    struct weir_rows *rows)
{
    weir_yuv_row_fn *convert_row = weir_yuv_best();
    rows->first_column &= ~1; /* a pixel whose chroma sample starts there */
    rows->planes = rows->takes_planes;
    size_t x = (size_t)rows->first_column;
    for (int y = rows->first_row; y < rows->end_row; y += WEIR_BAND_ROWS) {
        int n = weir_rows_in_band(rows, y);
        for (int i = 0; i < n; i++) {
            struct weir_yuv_row row = output_row(rows, y, i);
            if (scaler) {
                weir_yuv_scaler_row(scaler, y + i, x, &row);
                continue;
            }
            row.luma = plane_row(picture, 0, y + i) + x;
            row.cb = plane_row(picture, 1, y + i) + x / 2;
            row.cr = plane_row(picture, 2, y + i) + x / 2;
            convert_row(yuv, &row);
        }
        weir_rows_done(rows, y, n);
    }
}

static int open_scaler(void **self)
{
    struct weir_yuv_scaler *scaler;
    int rc = weir_yuv_scaler_open(&scaler);
    *self = scaler;
    return rc;
}

static void close_scaler(void *self)
{
    weir_yuv_scaler_close(self);
}

static int decode(void *self, const struct weir_frame *frame, struct weir_rows *rows, char *reason)
{
    const struct weir_picture *picture = picture_of(frame->bytes, frame->length);
    struct weir_yuv_scaler *scaler = NULL;
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
    if (rc == 0 && weir_yuv_is_scaled(picture)) {
        scaler = self;
        rc = weir_yuv_scaler_begin(scaler, &yuv, picture);
        if (rc < 0)
            snprintf(reason, WEIR_REASON_MAX, "out of memory");
    }
    if (rc == 0)
        convert(picture, &yuv, scaler, rows);
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
    .open = open_scaler,
    .close = close_scaler,
    .decode = decode,
    .probe = probe,
};
