/* convert_priv.h: converts rows of u8 to rows of the output format with the widest vector instructions of the CPU.
 * Every engine produces the same bits as the plain C one. */
#ifndef WEIR_DECODERS_CONVERT_PRIV_H
#define WEIR_DECODERS_CONVERT_PRIV_H

#include "weir/decoder.h"

/* State for converting to one output format. */
struct weir_converter {
    const struct weir_convert_ops *ops;
    struct weir_pixel_format format;
    bool normalised;         /* if false, the result is exactly value / 255 */
    float scale[3], bias[3]; /* per output channel: value x scale + bias, rounded once (FMA) */
    float table[3][256];     /* per output channel: result for each input value */
};

struct weir_convert_ops {
    const char *name;
    bool (*usable)(void);
    /* Converts one row of width pixels. If stream is set, the stores bypass the caches, and each output row must start
     * and end at a multiple of 64 bytes. */
    void (*u8_planar)(const uint8_t *src, uint8_t *const planes[3], size_t width, bool stream);
    void (*f32_planar)(const struct weir_converter *converter, const uint8_t *src, float *const planes[3], size_t width,
                       bool stream);
    void (*f32_interleaved)(const struct weir_converter *converter, const uint8_t *src, float *dst, size_t width,
                            bool stream);
    /* Converts one row of channel c. The result does not bypass the caches. */
    void (*f32_plane)(const struct weir_converter *converter, int c, const uint8_t *src, float *dst, size_t width);
    void (*fence)(void); /* call after the last streamed row and before other threads read the rows; may be NULL */
};

/* Returns engine i, fastest first, or NULL past the end. Every engine except the last one, plain C, may be unusable on
 * this CPU. */
const struct weir_convert_ops *weir_convert_engine(int i);

/* Returns the instruction set in use: "AVX-512", "AVX2", "NEON" or "plain C". */
const char *weir_convert_name(void);

/* ops: the engine to use; NULL selects the best one for this CPU. */
void weir_converter_init(struct weir_converter *converter, const struct weir_pixel_format *format,
                         const struct weir_convert_ops *ops);

/* Converts n rows of u8, stride bytes apart, to rows y .. y + n - 1 of an image of width x height pixels. plane is 0
 * for an interleaved source; otherwise it is the distance in bytes between the channels of a row, and the image must be
 * planar. Rows from interleaved sources bypass the caches if they fill whole cache lines. */
void weir_convert_rows(const struct weir_converter *converter, const uint8_t *src, size_t stride, size_t plane, int y,
                       int n, int width, int height, void *image);
/* Call after an image's last row. */
void weir_convert_finish(const struct weir_converter *converter);

/* The plain C loops. Other engines use them for the end of a row, which starts at pixel `from`. */
void weir_plain_u8_planar(const uint8_t *src, uint8_t *const planes[3], size_t from, size_t width);
void weir_plain_f32_planar(const struct weir_converter *converter, const uint8_t *src, float *const planes[3],
                           size_t from, size_t width);
void weir_plain_f32_plane(const struct weir_converter *converter, int c, const uint8_t *src, float *dst, size_t width);
void weir_plain_f32_interleaved(const struct weir_converter *converter, const uint8_t *src, float *dst, size_t from,
                                size_t width);

#if defined(__x86_64__)
extern const struct weir_convert_ops weir_convert_avx512, weir_convert_avx2;
#elif defined(__aarch64__)
extern const struct weir_convert_ops weir_convert_neon;
#endif

#endif
