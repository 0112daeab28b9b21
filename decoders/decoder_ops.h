/* decoder_ops.h: interface of a codec, and helpers shared by codecs. decoder.c times and counts; a codec holds no
 * clocks.
 *
 * A new codec is a file with a struct weir_decoder_ops, its extern below, its row in decoder_table.c, its kind of frame
 * (weir/frames.h, frame_kind.c), a line in CMakeLists.txt, a row in README and a test (tests/checks/check_backends.py
 * reports what is missing). */
#ifndef WEIR_DECODERS_DECODER_OPS_H
#define WEIR_DECODERS_DECODER_OPS_H

#include "decoders/frame_kind.h"
#include "weir/decoder.h"

enum { WEIR_BAND_ROWS = 16, WEIR_REASON_MAX = 256 };

struct weir_converter;
struct weir_resampler;

/* Destination of an engine's rows: interleaved u8 in the channel order of color; u16 for depth, always written
 * directly. */
struct weir_rows {
    enum weir_color color;
    int width, height;            /* size of the engine's output: as stored, or scaled */
    int scale;                    /* DCT scale of JPEGs in eighths, rounded up; 8 for other codecs */
    int first_row, end_row;       /* wanted rows */
    int first_column, end_column; /* wanted columns; an engine that outputs more widens this before its first row */
    size_t stride;                /* bytes between rows, in image and band */
    uint8_t *image;    /* rows go here directly when the output needs no change (always for depth); else NULL */
    uint8_t *band;     /* otherwise WEIR_BAND_ROWS rows at a time go here, starting at the first column */
    bool takes_planes; /* rows of band may be planar: the columns of the first channel, then of the second and third */
    bool planes;       /* set by an engine before its first row if it outputs planes */
    /* Destination when the whole image becomes three planes of f32 unchanged: an engine may prefetch this memory. Else
     * NULL. */
    const float *planes_f32;
    /* private to the dispatcher */
    void *target; /* the caller's image, of out_width x out_height */
    int out_width, out_height;
    int wanted_column; /* first_column as requested */
    const struct weir_converter *converter;
    struct weir_resampler *resampler; /* NULL when the sizes agree */
    uint64_t convert_ticks;
};

/* Returns memory for rows y .. y + WEIR_BAND_ROWS - 1 (fewer at the end). */
static inline uint8_t *weir_rows_at(struct weir_rows *rows, int y)
{
    return rows->image ? rows->image + (size_t)y * rows->stride : rows->band;
}

/* Reports that rows y .. y + n - 1 were written to weir_rows_at's memory; converts them if necessary. Bands are
 * consecutive from first_row on, and all but the last have WEIR_BAND_ROWS rows. */
void weir_rows_done(struct weir_rows *rows, int y, int n);

/* Number of rows in the band that starts at row y. */
static inline int weir_rows_in_band(const struct weir_rows *rows, int y)
{
    return rows->end_row - y < WEIR_BAND_ROWS ? rows->end_row - y : WEIR_BAND_ROWS;
}

/* Frames that are stored as this kind, for weir_decoder_ops.kinds. */
#define WEIR_KIND(kind) (1u << (kind))

struct weir_decoder_ops {
    const char *name, *summary;
    const char *why_not; /* reason when the codec is not built in; the decoding functions are NULL then */

    /* ---- frames it handles ---- */
    bool selectable;              /* can be named with --decoder */
    enum weir_decode_where where; /* rows that decode on a GPU have no functions here: see gpu_jpeg.h */
    unsigned kinds;               /* kinds it decodes: WEIR_KIND(..) | .. */
    bool no_pixels;               /* accepts every frame and produces no pixels, to measure the rest of the pipeline */

    /* ---- capabilities ---- */
    bool as_stored; /* stored frames are pixels already and may be read directly to their destination */
    bool scales;    /* supports a weir_rows.scale other than 8 */
    /* Returns the size of the image that starts at bytes (of one of its kinds), from its structure; 0: it does not end
     * within length, or is damaged. NULL: unknown. */
    size_t (*end)(const uint8_t *bytes, size_t length);
    /* Returns 0, or -ENODEV with the reason why it does not work on this machine. NULL: it always works when built in.
     */
    int (*ready)(int gpu, struct weir_err *err);
    /* Writes its library's name and version, for doctor and results; may be NULL. */
    void (*library)(char *text, size_t size);

    /* ---- decoding ---- */
    /* One thread's context; both NULL when none is needed. Returns 0 or -ENOMEM. */
    int (*open)(void **self);
    void (*close)(void *self);
    /* Returns 0, or -EBADMSG or -ENOMEM with reason (WEIR_REASON_MAX bytes). */
    int (*decode)(void *self, const struct weir_frame *frame, struct weir_rows *rows, char *reason);
    /* Reads the header of an encoded frame; NULL for codecs of raw frames. */
    int (*probe)(void *self, enum weir_frame_kind kind, const uint8_t *bytes, size_t length,
                 struct weir_image_info *info, char *reason);
};

extern const struct weir_decoder_ops weir_decoder_turbo, weir_decoder_turbo_original, weir_decoder_nvjpeg,
    weir_decoder_hybrid, weir_decoder_png, weir_decoder_jpeg2000, weir_decoder_jpegxl, weir_decoder_raw,
    weir_decoder_null;

/* Row i of the table; NULL past the end. */
const struct weir_decoder_ops *weir_decoder_ops_at(int row);
/* Returns the row that decodes a frame of this kind: preferred (unless -1) if it does, else the first. The first bytes
 * decide among colour images; unrecognised ones go to a row for JPEG, which reports the error. */
int weir_decoder_row_for(int preferred, enum weir_frame_kind kind, const uint8_t *bytes, size_t length);
/* Returns the selectable row of this name, or -1. */
int weir_decoder_find(const char *name);

/* ---- shared by codecs (rows.c) ---- */

/* Outputs the wanted rows from a whole image of interleaved RGB with rows row_bytes apart. */
void weir_rows_put(struct weir_rows *rows, const uint8_t *pixels, size_t row_bytes);
/* For decode and probe: sets the reason. Returns -EBADMSG. */
int weir_frame_refuse(char *reason, const char *why);
/* A whole image in a codec's context; start from {0}, free pixels. */
struct weir_whole_image {
    uint8_t *pixels;
    size_t capacity;
};
/* Makes room for an image of this many bytes; its contents are lost. Returns 0, or -ENOMEM with the reason. */
int weir_whole_image_grow(struct weir_whole_image *image, size_t bytes, char *reason);
/* For probe: limit on pixels for codecs whose size in bytes does not bound them. */
enum { WEIR_CODEC_PIXELS_MAX = 1 << 26 };

/* For probe: sets the reason that the header claims more pixels than the bytes can hold. Returns -EBADMSG. */
int weir_probe_refuses(const struct weir_image_info *info, size_t length, char *reason);
/* For decode: returns 0 when the image has the size that the frame requires, else -EBADMSG. */
int weir_check_frame_size(const struct weir_frame *frame, unsigned width, unsigned height, char *reason);

#endif
