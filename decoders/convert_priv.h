/* convert_priv.h: converts rows of u8 to rows of the output format, with the widest instructions the CPU
 * has. Every implementation gives the same bits as "plain". */
#ifndef WEIR_DECODERS_CONVERT_PRIV_H
#define WEIR_DECODERS_CONVERT_PRIV_H

#include "decoders/decoder.h"

/* What the conversion to one format needs. */
struct weir_converter {
    const struct weir_convert_ops *ops;
    struct weir_pixel_format format;
    bool normalised;         /* else value / 255, exactly */
    float scale[3], bias[3]; /* value x scale + bias with one rounding; in the order of the colours */
    float table[3][256];     /* what each value becomes */
};

struct weir_convert_ops {
    const char *name;
    bool (*usable)(void);
    /* One row of width pixels. stream: rows begin at multiples of 64 bytes and are not read soon: past the caches. */
    void (*u8_planar)(const uint8_t *src, uint8_t *const planes[3], size_t width, bool stream);
    void (*f32_planar)(const struct weir_converter *converter, const uint8_t *src, float *const planes[3], size_t width,
                       bool stream);
    void (*f32_interleaved)(const struct weir_converter *converter, const uint8_t *src, float *dst, size_t width,
                            bool stream);
    /* One row of one plane, channel c, through the caches. */
    void (*f32_plane)(const struct weir_converter *converter, int c, const uint8_t *src, float *dst, size_t width);
    void (*fence)(void); /* after the last streamed row, before others may read; may be NULL */
};

/* Usable or not, best first; "plain", the last, always is. NULL past the end. */
const struct weir_convert_ops *weir_convert_engine(int i);

/* The instructions used: "AVX-512", "AVX2", "NEON" or "plain C". */
const char *weir_convert_name(void);

/* ops: NULL = the best that this CPU can. */
void weir_converter_init(struct weir_converter *converter, const struct weir_pixel_format *format,
                         const struct weir_convert_ops *ops);

/* Converts n rows of u8, stride bytes apart, to rows y .. y + n - 1 of an image of width x height. plane: 0, the source
 * is interleaved; else the channels of a row lie so many bytes apart, and the image must be planar. Of an interleaved
 * source whole lines are written past the caches. */
void weir_convert_rows(const struct weir_converter *converter, const uint8_t *src, size_t stride, size_t plane, int y,
                       int n, int width, int height, void *image);
/* After an image's last row. */
void weir_convert_finish(const struct weir_converter *converter);

/* Plain code, for the ends of rows too: pixels from .. width - 1, or all that are given. */
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
