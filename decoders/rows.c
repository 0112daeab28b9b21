/* Helpers for codecs: output of rows, and messages about frames with an unexpected size. */
#include "decoders/convert_priv.h"
#include "decoders/decoder_ops.h"
#include "decoders/view_priv.h"
#include "weir/recorder.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Resamples source rows y .. y + n - 1 and outputs the rows that they complete. */
static void resample(struct weir_rows *rows, const uint8_t *band, int y, int n)
{
    for (int i = 0; i < n; i++) {
        int row;
        const uint8_t *pixels;
        weir_resampler_put(rows->resampler, y + i, band + (size_t)i * rows->stride);
        while ((pixels = weir_resampler_row(rows->resampler, y + i, &row)))
            weir_convert_rows(rows->converter, pixels, 0, 0, row, 1, rows->out_width, rows->out_height, rows->target);
    }
}

void weir_rows_done(struct weir_rows *rows, int y, int n)
{
    if (rows->image)
        return;
    uint64_t start = weir_thread_self ? weir_clock_ticks() : 0;
    const uint8_t *band = rows->band + (size_t)(rows->wanted_column - rows->first_column) * (rows->planes ? 1 : 3);
    size_t plane = rows->planes ? (size_t)(rows->end_column - rows->first_column) : 0;
    if (rows->resampler)
        resample(rows, band, y, n);
    else
        weir_convert_rows(rows->converter, band, rows->stride, plane, y - rows->first_row, n, rows->out_width,
                          rows->out_height, rows->target);
    if (weir_thread_self)
        rows->convert_ticks += weir_clock_ticks() - start;
}

static void copy_row(uint8_t *restrict dst, const uint8_t *restrict src, size_t width, enum weir_color color)
{
    if (color == WEIR_COLOR_RGB) {
        memcpy(dst, src, width * 3);
        return;
    }
    for (size_t x = 0; x < width; x++) {
        dst[3 * x] = src[3 * x + 2];
        dst[3 * x + 1] = src[3 * x + 1];
        dst[3 * x + 2] = src[3 * x];
    }
}

void weir_rows_put(struct weir_rows *rows, const uint8_t *pixels, size_t row_bytes)
{
    size_t skip = (size_t)rows->first_column * 3, columns = (size_t)(rows->end_column - rows->first_column);
    for (int y = rows->first_row; y < rows->end_row; y += WEIR_BAND_ROWS) {
        int n = weir_rows_in_band(rows, y);
        for (int row = 0; row < n; row++)
            copy_row(weir_rows_at(rows, y) + (size_t)row * rows->stride, pixels + (size_t)(y + row) * row_bytes + skip,
                     columns, rows->color);
        weir_rows_done(rows, y, n);
    }
}

int weir_frame_refuse(char *reason, const char *why)
{
    snprintf(reason, WEIR_REASON_MAX, "%s", why);
    return -EBADMSG;
}

int weir_whole_image_grow(struct weir_whole_image *image, size_t bytes, char *reason)
{
    if (bytes <= image->capacity)
        return 0;
    free(image->pixels);
    image->pixels = malloc(bytes);
    image->capacity = image->pixels ? bytes : 0;
    if (image->pixels)
        return 0;
    snprintf(reason, WEIR_REASON_MAX, "out of memory for an image of %zu bytes", bytes);
    return -ENOMEM;
}

int weir_probe_refuses(const struct weir_image_info *info, size_t length, char *reason)
{
    snprintf(reason, WEIR_REASON_MAX,
             "its header claims %dx%d pixels, which is too many for this format or for its %zu bytes", info->width,
             info->height, length);
    return -EBADMSG;
}

int weir_check_frame_size(const struct weir_frame *frame, unsigned width, unsigned height, char *reason)
{
    if (width == (unsigned)frame->width && height == (unsigned)frame->height)
        return 0;
    snprintf(reason, WEIR_REASON_MAX,
             "the image is %ux%u, but the camera's first frame was %dx%d (`weir info` lists the sizes in "
             "a folder)",
             width, height, frame->width, frame->height);
    return -EBADMSG;
}
