/* decoder.h: decodes the bytes of one frame into pixels in the caller's buffer.
 *
 * A decoder belongs to one thread. A colour frame becomes an image of width x height x 3 in the decoder's output
 * format: u8 or f32 (0..1, or normalised), interleaved (nhwc) or planar (nchw), RGB or BGR. Rows are converted in bands
 * while they are in cache. A depth frame becomes height x width u16 in host order, values as stored, whatever the
 * format.
 *
 * With a view, a part of the frame is decoded, or the frame is resized, or both. JPEGs are decoded at the smallest DCT
 * scale that is not below the requested size, and only the rows and columns of blocks that are needed. Colour is then
 * averaged over each pixel's area, or interpolated linearly when enlarged, and rounded to u8 before conversion. Depth
 * takes the nearest pixel, as nothing lies between two surfaces. */
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
    enum weir_dtype dtype; /* u8 or f32; f16 and bf16 on a GPU only; depth frames are always u16 */
    enum weir_image_layout layout;
    /* For floats: (value / 255 - mean) / std of red, green and blue, computed as value x scale + bias with one
     * rounding; std 0 = not normalised. */
    float mean[3], std[3];
};

/* A part of a stored image, and its size after resizing. */
struct weir_view {
    int x, y, width, height;
    int out_width, out_height;
};

/* Bytes of one colour image in this format. */
size_t weir_image_bytes(const struct weir_pixel_format *format, int width, int height);
/* Bytes of the decoded image of a frame of this kind, colour or depth. */
size_t weir_frame_bytes(const struct weir_pixel_format *format, enum weir_frame_kind kind, int width, int height);

/* The value of each u8 in each channel of the image, in channel order, as f32 images contain it; f16 and bf16 are
 * rounded from these. */
void weir_pixel_values(const struct weir_pixel_format *format, float values[3][256]);

struct weir_decoder;

/* 0 if the named engine can decode JPEGs; -EINVAL with the available names. Other frames are decoded by their magic
 * bytes, whatever the engine ("null" decodes nothing). */
int weir_decoder_check(const char *engine, struct weir_err *err);

/* Where JPEGs are decoded: on CPU cores; on a GPU, with the CPU for frames that it does not support; or on both at
 * once. */
enum weir_decode_where { WEIR_DECODE_ON_CPU, WEIR_DECODE_ON_GPU, WEIR_DECODE_ON_BOTH };
/* WEIR_DECODE_ON_CPU for an unknown name, and for "auto". */
enum weir_decode_where weir_decoder_where(const char *engine);
/* Whether the engine uses a GPU. */
bool weir_decoder_on_gpu(const char *engine);
/* Default engine of each kind: "turbo", "nvjpeg", "hybrid". */
const char *weir_decoder_at(enum weir_decode_where where);
/* As weir_decoder_check, but accepts "auto". -EINVAL also if the engine requires batches on a GPU and gpu is false. */
int weir_decoder_check_device(const char *engine, bool gpu, struct weir_err *err);
/* 0, or -ENODEV with the reason why an engine cannot work on this machine. Opens the GPU for engines on one (0.6 s the
 * first time). */
int weir_decoder_ready(const char *engine, int gpu, struct weir_err *err);

/* engine: "turbo", "null", ... (weir_decoder_row); for engines on a GPU, the CPU's part. width_max: width of the
 * largest image to come. */
int weir_decoder_open(struct weir_decoder **out, const char *engine, const struct weir_pixel_format *format,
                      int width_max, struct weir_err *err);
void weir_decoder_close(struct weir_decoder **decoder);

/* True when a frame's bytes may be read straight to where the image belongs: decoding them is then free. */
bool weir_decoder_is_direct(const struct weir_decoder *decoder, enum weir_frame_kind kind);

struct weir_frame {
    enum weir_frame_kind kind;
    const uint8_t *bytes; /* may be the destination itself when weir_decoder_is_direct */
    size_t length;
    int width, height;            /* expected size, as stored */
    const struct weir_view *view; /* inside it; NULL = the whole image */
};

/* Decodes into image: weir_frame_bytes of the view's size, aligned for its type. Times 03b_image_decode and
 * 05_to_tensor_normalize. 0; -ENOMEM; -EBADMSG for corrupt bytes, another size, or a variant that the codec does not
 * support, with the reason in weir_decoder_reason. Warnings of libjpeg and libpng count as corruption; bytes past the
 * end of a JPEG or PNG, and past the last row of a view, are ignored. After a failure the image is undefined. The
 * result does not depend on earlier frames: a JPEG without DHT uses the standard tables (ITU T.81, annex K), one
 * without DQT is corrupt. */
int weir_decode(struct weir_decoder *decoder, const struct weir_frame *frame, void *image);

/* Why the last weir_decode or weir_probe_image failed; valid until the next call. */
const char *weir_decoder_reason(const struct weir_decoder *decoder);

/* Pixels decoded so far: of the frames as stored, and as decoded. Any thread. */
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

/* 0 if the image has its camera's size, else -EBADMSG, with the reason that weir_decode gives. */
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
