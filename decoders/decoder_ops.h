/* decoder_ops.h: what a decoder engine implements. Engines hold no clocks: decoder.c times. */
#ifndef WEIR_DECODERS_DECODER_OPS_H
#define WEIR_DECODERS_DECODER_OPS_H

#include "decoders/decoder.h"

enum { WEIR_BAND_ROWS = 16, WEIR_REASON_MAX = 256 };

struct weir_converter;
struct weir_resampler;

/* Where an engine puts its rows: interleaved u8, channels in the order of color; of depth u16, always directly. */
struct weir_rows {
    enum weir_color color;
    int width, height;            /* of the image that the engine makes: as stored, or scaled */
    int scale;                    /* of JPEGs: to so many eighths, rounded up; 8 for all else */
    int first_row, end_row;       /* rows that are wanted of it */
    int first_column, end_column; /* columns wanted; an engine that gives more says so here before its first row */
    size_t stride;                /* bytes from row to row, both in image and band */
    uint8_t *image;               /* rows go here directly when all is wanted as it is (as for depth), else NULL */
    uint8_t *band;                /* else WEIR_BAND_ROWS rows at a time go here, the first column given at its start */
    /* the dispatcher's */
    void *target; /* the caller's image, of out_width x out_height */
    int out_width, out_height;
    int wanted_column; /* what first_column was */
    const struct weir_converter *converter;
    struct weir_resampler *resampler; /* NULL when sizes agree */
    uint64_t convert_ticks;
};

/* Memory for rows y .. y+WEIR_BAND_ROWS-1 (fewer at the end). */
static inline uint8_t *weir_rows_at(struct weir_rows *rows, int y)
{
    return rows->image ? rows->image + (size_t)y * rows->stride : rows->band;
}

/* Rows y .. y+n-1 have been written where weir_rows_at said; converts them if need be. Bands follow each other from
 * first_row on, all but the last of WEIR_BAND_ROWS. */
void weir_rows_done(struct weir_rows *rows, int y, int n);

/* Rows of the band that begins with row y. */
static inline int weir_rows_in_band(const struct weir_rows *rows, int y)
{
    return rows->end_row - y < WEIR_BAND_ROWS ? rows->end_row - y : WEIR_BAND_ROWS;
}

struct weir_decoder_ops {
    const char *name, *summary;
    const char *why_not;
    int (*open)(void **self);
    void (*close)(void *self);
    /* 0, or -EBADMSG or -ENOMEM with reason (WEIR_REASON_MAX) filled. */
    int (*decode)(void *self, const struct weir_frame *frame, struct weir_rows *rows, char *reason);
    int (*probe)(void *self, enum weir_codec codec, const uint8_t *bytes, size_t length, struct weir_image_info *info,
                 char *reason);
};

/* For probe: the header claims more pixels than so many bytes can hold. Returns -EBADMSG. */
int weir_probe_refuses(const struct weir_image_info *info, size_t length, char *reason);

extern const struct weir_decoder_ops weir_decoder_turbo, weir_decoder_png, weir_decoder_raw, weir_decoder_null;
/* Rows without functions: see gpu_jpeg.h. */
extern const struct weir_decoder_ops weir_decoder_nvjpeg, weir_decoder_hybrid;

/* True when the bytes begin with the signature of a PNG. */
bool weir_png_begins(const uint8_t *bytes, size_t length);

/* Text of weir_decoder_library. */
void weir_turbo_library(char *text, size_t size);

#endif
