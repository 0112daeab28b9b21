/* decoder_ops.h: what a codec implements, and what codecs share. decoder.c times and counts; a codec holds no clocks.
 *
 * A new codec is a file with a struct weir_decoder_ops, its extern below, its row in decoder_table.c, a line of CMake,
 * a row in README and a test (tests/checks/check_backends.py says which of these is missing). */
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
    bool takes_planes; /* rows of band may be planes: the columns of one channel, of the next, of the third */
    bool planes;       /* an engine that gives such says so here before its first row */
    /* Where planes of the whole image, as it is, become three planes of f32: an engine may fetch this memory. Else
     * NULL.
     */
    const float *planes_f32;
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

/* Frames that are stored as this kind, for weir_decoder_ops.kinds. */
#define WEIR_KIND(codec) (1u << (codec))

struct weir_decoder_ops {
    const char *name, *summary;
    const char *why_not; /* not built in: the reason; the functions of decoding are NULL then */

    /* ---- which frames are its own ---- */
    bool selectable;              /* a user may name it with --decoder */
    enum weir_decode_where where; /* rows that decode on a GPU have no functions here: see gpu_jpeg.h */
    unsigned kinds;               /* the kinds of stored frames that it decodes: WEIR_KIND(..) | .. */
    /* Whether encoded bytes are of this codec, by their first ones (length may be 0). NULL: kinds alone tell. Of bytes
     * that no codec recognises the first one of the table that decodes their kind says what is wrong. */
    bool (*begins)(const uint8_t *bytes, size_t length);
    /* "a JPEG XL image": of a row that may lack its library (why_not). Its frames come to it all the same, and are
     * refused by this name. */
    const char *image;
    bool no_pixels; /* takes every frame and makes nothing of it, to measure what is around decoding */

    /* ---- what it can do ---- */
    bool as_stored; /* stored frames are pixels already, which may be read straight to where they belong */
    bool scales;    /* takes struct weir_rows.scale other than 8 */
    /* Bytes to behind the end of the image that begins at bytes (begins said so), by its structure; 0: it does not end
     * within length, or is damaged. NULL: not known. */
    size_t (*end)(const uint8_t *bytes, size_t length);
    /* 0, or -ENODEV and why it does not work on this machine. NULL: it does where it is built in. */
    int (*ready)(int gpu, struct weir_err *err);
    /* Its library's name and version, for doctor and results; may be NULL. */
    void (*library)(char *text, size_t size);

    /* ---- decoding ---- */
    /* One thread's context; both NULL when it needs none. 0 or -ENOMEM. */
    int (*open)(void **self);
    void (*close)(void *self);
    /* 0, or -EBADMSG or -ENOMEM with reason (WEIR_REASON_MAX) filled. */
    int (*decode)(void *self, const struct weir_frame *frame, struct weir_rows *rows, char *reason);
    /* Reads the header of an encoded frame; NULL for codecs of raw frames. */
    int (*probe)(void *self, enum weir_codec codec, const uint8_t *bytes, size_t length, struct weir_image_info *info,
                 char *reason);
};

extern const struct weir_decoder_ops weir_decoder_turbo, weir_decoder_turbo_original, weir_decoder_nvjpeg,
    weir_decoder_hybrid, weir_decoder_png, weir_decoder_jpeg2000, weir_decoder_jpegxl, weir_decoder_raw,
    weir_decoder_null;

/* Row i of the table; NULL past the end. */
const struct weir_decoder_ops *weir_decoder_ops_at(int row);
/* The row that frames of this kind which begin with these bytes go to: preferred, unless -1, when it decodes them, else
 * the first that does. */
int weir_decoder_row_for(int preferred, enum weir_codec codec, const uint8_t *bytes, size_t length);
/* The selectable row of this name, or -1. */
int weir_decoder_find(const char *name);

/* ---- what codecs share (rows.c) ---- */

/* The rows that are wanted, from a whole image of interleaved RGB whose rows are row_bytes apart. */
void weir_rows_put(struct weir_rows *rows, const uint8_t *pixels, size_t row_bytes);
/* For probe, of codecs whose bytes say nothing about how many pixels there may be: more than this is refused. */
enum { WEIR_CODEC_PIXELS_MAX = 1 << 26 };

/* For probe: the header claims more pixels than so many bytes can hold. Returns -EBADMSG. */
int weir_probe_refuses(const struct weir_image_info *info, size_t length, char *reason);
/* For decode: 0 when the image is of the size that the frame must have; else -EBADMSG. */
int weir_check_frame_size(const struct weir_frame *frame, unsigned width, unsigned height, char *reason);

#endif
