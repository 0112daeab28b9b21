/* convert_priv.h: converts rows of u8 to rows of the output format with the widest instructions of the CPU. Every
 * implementation gives the same bits as "plain". */
#ifndef WEIR_DECODERS_CONVERT_PRIV_H
#define WEIR_DECODERS_CONVERT_PRIV_H

#include "weir/decoder.h"

/* State of the conversion to one format. */
struct weir_converter {
    const struct weir_convert_ops *ops;
    struct weir_pixel_format format;
    bool normalised;         /* otherwise exactly value / 255 */
    float scale[3], bias[3]; /* value x scale + bias with one rounding, per output channel */
    float table[3][256];     /* result for each value */
};

struct weir_convert_ops {
    const char *name;
    bool (*usable)(void);
    /* Converts one row of width pixels. stream: the rows start at multiples of 64 bytes and are not read soon, so they
     * bypass the caches. */
    void (*u8_planar)(const uint8_t *src, uint8_t *const planes[3], size_t width, bool stream);
    void (*f32_planar)(const struct weir_converter *converter, const uint8_t *src, float *const planes[3], size_t width,
                       bool stream);
    void (*f32_interleaved)(const struct weir_converter *converter, const uint8_t *src, float *dst, size_t width,
                            bool stream);
    /* Converts one row of one plane, channel c, without bypassing the caches. */
    void (*f32_plane)(const struct weir_converter *converter, int c, const uint8_t *src, float *dst, size_t width);
    void (*fence)(void); /* after the last streamed row, before other threads read; may be NULL */
};

/* Engine i, best first; some may be unusable on this CPU, but the last, "plain", never is. NULL past the end. */
const struct weir_convert_ops *weir_convert_engine(int i);

/* The instruction set in use: "AVX-512", "AVX2", "NEON" or "plain C". */
const char *weir_convert_name(void);

/* ops: NULL = the best engine for this CPU. */
void weir_converter_init(struct weir_converter *converter, const struct weir_pixel_format *format,
                         const struct weir_convert_ops *ops);

/* Converts n rows of u8, stride bytes apart, to rows y .. y + n - 1 of an image of width x height. plane: 0 for an
 * interleaved source; otherwise the distance in bytes between the channels of a row, and the image must be planar. Rows
 * of interleaved sources bypass the caches where they fill whole lines. */
void weir_convert_rows(const struct weir_converter *converter, const uint8_t *src, size_t stride, size_t plane, int y,
                       int n, int width, int height, void *image);
/* Call after an image's last row. */
void weir_convert_finish(const struct weir_converter *converter);

/* Plain code, also used for the ends of rows: pixels from .. width - 1, or all given ones. */
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
