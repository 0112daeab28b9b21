/* decoder_ops.h: interface of a codec, and helpers shared by codecs. decoder.c times the decoding and counts frames, so
 * codecs do neither.
 *
 * A new codec is a file with a struct weir_decoder_ops, its extern declaration below, its row in decoder_table.c, its
 * kind of frame (weir/frames.h, frame_kind.c), a line in CMakeLists.txt, a row in README and a test
 * (tests/checks/check_backends.py reports what is missing). */
#ifndef WEIR_DECODERS_DECODER_OPS_H
#define WEIR_DECODERS_DECODER_OPS_H

#include "decoders/frame_kind.h"
#include "weir/decoder.h"

enum { WEIR_BAND_ROWS = 16 };

struct weir_converter;
struct weir_resampler;

/* Destination of a codec's output rows. Colour is interleaved u8 in the channel order of `color`; depth is u16 and is
 * always written directly to the image. */
struct weir_rows {
    enum weir_color color;
    int width, height;            /* size of the codec's output: the stored size, or the scaled size */
    int scale;                    /* DCT scale of JPEGs in eighths (output sizes round up); 8 for other codecs */
    int first_row, end_row;       /* requested rows */
    int first_column, end_column; /* requested columns; a codec may widen the range before its first row */
    size_t stride;                /* bytes between rows, in both image and band */
    uint8_t *image; /* destination if the codec's output needs no conversion (always set for depth); otherwise NULL */
    uint8_t *band;  /* destination if image is NULL: WEIR_BAND_ROWS rows at a time, starting at first_column */
    bool takes_planes; /* band may be planar: each row holds all columns of the first channel, then those of the second,
                          then those of the third */
    bool planes;       /* set before the first row by a codec that outputs planar rows */
    /* The final image if the whole frame becomes three planes of f32 without resampling, so that a codec can prefetch
     * its memory; otherwise NULL. */
    const float *planes_f32;
    bool warnings_fail; /* a harmless warning makes the frame fail */
    bool warned;        /* set by a codec that decoded the frame despite a warning */
    /* used only by decoder.c and rows.c */
    void *target; /* the caller's image, of out_width x out_height */
    int out_width, out_height;
    int wanted_column; /* first_column before a codec widened the range */
    const struct weir_converter *converter;
    struct weir_resampler *resampler; /* NULL if no resampling is needed */
    uint64_t convert_ticks;
};

/* Returns the memory for rows y .. y + WEIR_BAND_ROWS - 1 (fewer at the end of the image). */
static inline uint8_t *weir_rows_at(struct weir_rows *rows, int y)
{
    return rows->image ? rows->image + (size_t)y * rows->stride : rows->band;
}

/* Call when rows y .. y + n - 1 have been written to the memory from weir_rows_at; converts them if necessary. Bands
 * follow each other from first_row on, and every band except the last has WEIR_BAND_ROWS rows. */
void weir_rows_done(struct weir_rows *rows, int y, int n);

/* Number of rows in the band that starts at row y. */
static inline int weir_rows_in_band(const struct weir_rows *rows, int y)
{
    return rows->end_row - y < WEIR_BAND_ROWS ? rows->end_row - y : WEIR_BAND_ROWS;
}

/* Bit of a frame kind in weir_decoder_ops.kinds. */
#define WEIR_KIND(kind) (1u << (kind))

struct weir_decoder_ops {
    const char *name, *summary;
    const char *why_not; /* reason if the codec is not built in (its functions are then NULL), otherwise NULL */

    /* ---- supported frames ---- */
    bool selectable;              /* users can select it with --decoder */
    enum weir_decode_where where; /* codecs for a GPU have no decoding functions here (see gpu_jpeg.h) */
    unsigned kinds;               /* frame kinds it decodes: WEIR_KIND(..) | .. */
    bool no_pixels;               /* accepts every frame but produces no pixels, to measure the rest of the pipeline */

    /* ---- capabilities ---- */
    bool as_stored; /* stored frames already consist of pixels, so they can be read directly into their destination */
    bool scales;    /* supports values of weir_rows.scale other than 8 */
    /* Returns the size of the encoded image that starts at bytes, which is of one of this codec's kinds; 0 if the image
     * is damaged or does not end within length. NULL if the codec cannot determine the size. */
    size_t (*end)(const uint8_t *bytes, size_t length);
    /* Returns 0, or -ENODEV with the reason why the codec does not work on this machine. NULL: a codec that is built in
     * always works. */
    int (*ready)(int gpu, struct weir_err *err);
    /* Writes the library's name and version for `weir doctor` and results; may be NULL. */
    void (*library)(char *text, size_t size);

    /* ---- decoding ---- */
    /* Create and destroy one thread's context; both are NULL if the codec needs none. open returns 0 or -ENOMEM. */
    int (*open)(void **self);
    void (*close)(void *self);
    /* Returns 0, or -EBADMSG or -ENOMEM with the reason (at most WEIR_REASON_MAX bytes). */
    int (*decode)(void *self, const struct weir_frame *frame, struct weir_rows *rows, char *reason);
    /* Reads the header of an encoded frame; NULL for codecs of raw frames. Returns the same values as decode. */
    int (*probe)(void *self, enum weir_frame_kind kind, const uint8_t *bytes, size_t length,
                 struct weir_image_info *info, char *reason);
};

extern const struct weir_decoder_ops weir_decoder_turbo, weir_decoder_turbo_original, weir_decoder_nvjpeg,
    weir_decoder_hybrid, weir_decoder_png, weir_decoder_jpeg2000, weir_decoder_jpegxl, weir_decoder_raw,
    weir_decoder_video, weir_decoder_null;

/* Returns a row of the table; NULL past the end. */
const struct weir_decoder_ops *weir_decoder_ops_at(int row);
/* Returns the row that decodes a frame of this kind: the preferred row (-1: none) if it supports the kind, otherwise
 * the first row that does. For WEIR_FRAME_IMAGE, the image's first bytes determine the kind; unrecognised images are
 * decoded as JPEG, so that the JPEG codec reports the error. */
int weir_decoder_row_for(int preferred, enum weir_frame_kind kind, const uint8_t *bytes, size_t length);
/* Returns the selectable row with this name, or -1. */
int weir_decoder_find(const char *name);

/* ---- helpers for codecs (rows.c) ---- */

/* Outputs the requested rows of a whole image. pixels: interleaved RGB, row_bytes bytes per row. */
void weir_rows_put(struct weir_rows *rows, const uint8_t *pixels, size_t row_bytes);
/* Sets the reason for decode or probe. Returns -EBADMSG. */
int weir_frame_refuse(char *reason, const char *why);
/* Buffer for a whole image in a codec's context. Initialise it with {0}; free pixels at the end. */
struct weir_whole_image {
    uint8_t *pixels;
    size_t capacity;
};
/* Ensures room for an image of this many bytes; the previous contents are lost. Returns 0, or -ENOMEM with the reason.
 */
int weir_whole_image_grow(struct weir_whole_image *image, size_t bytes, char *reason);
/* Maximum number of pixels per image for codecs whose compression ratio has no upper bound; checked by probe. */
enum { WEIR_CODEC_PIXELS_MAX = 1 << 26 };

/* Call in probe if the header claims too many pixels. Sets the reason and returns -EBADMSG. */
int weir_probe_refuses(const struct weir_image_info *info, size_t length, char *reason);
/* Call in decode. Returns 0 if the image has the frame's size, otherwise -EBADMSG with the reason. */
int weir_check_frame_size(const struct weir_frame *frame, unsigned width, unsigned height, char *reason);

#endif
