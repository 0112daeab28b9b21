/* decoder.h: turns the bytes of one frame into pixels in the caller's buffer.
 *
 * A decoder is one thread's context. A colour frame becomes an image of width x height x 3 in the output format that
 * the decoder was opened with: u8 or f32 (0..1, value / 255, or normalised), interleaved (nhwc) or planar (nchw),
 * channels in RGB or BGR order. Conversion is done band by band while the rows are in cache. A depth frame becomes
 * height x width u16 in host order, values as stored, whatever the output format.
 *
 * With a view only a part of the frame is wanted, or it is wanted in another size, and only what that takes is decoded:
 * JPEGs at the smallest DCT scale that is not below the size asked for, from the first row needed to the last, the
 * columns of blocks needed. From there to the size asked for colour is averaged over the area of each pixel, or
 * interpolated linearly between pixels where it grows; rounded to u8 before it is converted. Depth takes the nearest
 * pixel: between two surfaces there is nothing. */
#ifndef WEIR_DECODER_H
#define WEIR_DECODER_H

#include "weir/base.h"
#include "weir/frames.h"

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

enum weir_color { WEIR_COLOR_RGB, WEIR_COLOR_BGR };
enum weir_dtype { WEIR_DTYPE_U8, WEIR_DTYPE_F32, WEIR_DTYPE_F16, WEIR_DTYPE_BF16, WEIR_DTYPE_U16 };
enum weir_image_layout { WEIR_LAYOUT_NHWC, WEIR_LAYOUT_NCHW };

struct weir_pixel_format {
    enum weir_color color;
    enum weir_dtype dtype; /* u8 or f32; f16 and bf16 are made on a GPU only; u16 is what depth frames become */
    enum weir_image_layout layout;
    /* not for u8: (value / 255 - mean) / std of red, green and blue, computed as value x scale + bias with one
     * rounding; std 0 = not normalised */
    float mean[3], std[3];
};

/* A part of a stored image, and the size it becomes. */
struct weir_view {
    int x, y, width, height;
    int out_width, out_height;
};

/* Bytes of one colour image in this format. */
size_t weir_image_bytes(const struct weir_pixel_format *format, int width, int height);
/* Bytes of the decoded image of a frame of this kind, colour or depth. */
size_t weir_frame_bytes(const struct weir_pixel_format *format, enum weir_frame_kind kind, int width, int height);

/* What each value of u8 becomes in each of the image's channels, in their order: what f32 images hold, and what f16 and
 * bf16 are rounded from. */
void weir_pixel_values(const struct weir_pixel_format *format, float values[3][256]);

struct weir_decoder;

/* 0 when JPEGs can be decoded by the engine of this name; -EINVAL with the names there are. Frames that are no JPEGs
 * are decoded by what recognises their first bytes, whatever the engine ("null" makes no pixels of any). */
int weir_decoder_check(const char *engine, struct weir_err *err);

/* Who decodes JPEGs: CPU cores; a GPU, into its memory (and the CPU what that does not take); or both at once. */
enum weir_decode_where { WEIR_DECODE_ON_CPU, WEIR_DECODE_ON_GPU, WEIR_DECODE_ON_BOTH };
/* WEIR_DECODE_ON_CPU for a name that is no engine's, "auto" among them. */
enum weir_decode_where weir_decoder_where(const char *engine);
/* True when a GPU takes part. */
bool weir_decoder_on_gpu(const char *engine);
/* The default engine of each kind: "turbo", "nvjpeg", "hybrid". The CPU's decodes what a GPU does not take. */
const char *weir_decoder_at(enum weir_decode_where where);
/* What --decoder may be: as weir_decoder_check, and 0 for "auto"; -EINVAL too when the engine needs batches on a GPU
 * and they are not (gpu false). */
int weir_decoder_check_device(const char *engine, bool gpu, struct weir_err *err);
/* 0, or -ENODEV and why a row of the table cannot work on this machine. For those on a GPU this opens it (0.6 s the
 * first time). */
int weir_decoder_ready(const char *engine, int gpu, struct weir_err *err);

/* engine: "turbo", "null", ... (see weir_decoder_row); for those on a GPU what the CPU decodes beside it. width_max:
 * widest image that will come. */
int weir_decoder_open(struct weir_decoder **out, const char *engine, const struct weir_pixel_format *format,
                      int width_max, struct weir_err *err);
void weir_decoder_close(struct weir_decoder **decoder);

/* True when a frame's bytes may be read straight to where the image belongs: decoding them is then free. */
bool weir_decoder_is_direct(const struct weir_decoder *decoder, enum weir_frame_kind kind);

struct weir_frame {
    enum weir_frame_kind kind;
    const uint8_t *bytes; /* may be the destination itself when weir_decoder_is_direct */
    size_t length;
    int width, height;            /* what the image must be, as stored */
    const struct weir_view *view; /* inside it; NULL = all of it as it is */
};

/* Decodes into image (weir_frame_bytes of what the view makes of it, aligned for its type). Times 03b_image_decode and
 * 05_to_tensor_normalize. 0; -EBADMSG for bytes that are corrupt, of another size or of a kind that the codec does not
 * read; -ENOMEM. weir_decoder_reason says why. Warnings of libjpeg and libpng count as corrupt; what follows the end of
 * a JPEG or PNG is not looked at, nor what follows the last row of a view. After a failure the image holds anything.
 * The result does not depend on earlier frames: a JPEG without DHT uses the standard tables (ITU T.81, annex K), one
 * without DQT is corrupt. */
int weir_decode(struct weir_decoder *decoder, const struct weir_frame *frame, void *image);

/* Why the last weir_decode or weir_probe_image failed; valid until the next call. */
const char *weir_decoder_reason(const struct weir_decoder *decoder);

/* What was decoded so far (any thread): pixels of the frames as stored, and those that came out of the codec. */
struct weir_decoder_counts {
    uint64_t frames, stored_pixels, decoded_pixels;
};
void weir_decoder_counts(const struct weir_decoder *decoder, struct weir_decoder_counts *counts);

struct weir_image_info {
    int width, height;
    int components;            /* as stored, alpha too; 3 for a palette */
    int bit_depth;             /* of a component; 8 for a palette */
    enum weir_frame_kind kind; /* by its bytes: WEIR_FRAME_PNG also for depth */
    const char *subsampling;   /* of JPEGs, else NULL: "4:4:4", "4:2:2", "4:2:0", "4:4:0", "4:1:1", "gray", "other" */
    const char *process;       /* of JPEGs, else NULL: "baseline", "progressive", "arithmetic" */
};

/* Reads the header of an encoded frame. 0, or -EBADMSG for what is none or is of a kind that
 * the codec does not read, claims more pixels than its bytes can hold (a block of a JPEG takes a bit, a byte of
 * deflate stands for 1032), or becomes more than 2 GiB; -EINVAL for a codec of raw frames. */
int weir_probe_image(struct weir_decoder *decoder, enum weir_frame_kind kind, const uint8_t *bytes, size_t length,
                     struct weir_image_info *info);

/* Whether an image of this header is of its camera's size. 0, or -EBADMSG, in the words of weir_decode. */
int weir_probe_fits(struct weir_decoder *decoder, const struct weir_image_info *info, int width, int height);

/* Returns true when a CPU decodes frames of this kind to a fraction of their size for less. */
bool weir_decoder_scales(enum weir_frame_kind kind);

/* Row i of the decoder table for help and doctor; false past the end. */
bool weir_decoder_row(int i, const char **name, const char **summary, const char **why_not);

/* "libjpeg-turbo 2.1.5, SIMD: AVX2; rows converted by AVX-512" as text. */
void weir_decoder_library(char *text, size_t size);

#ifdef __cplusplus
}
#endif

#endif
