/* decoder.h: decodes the bytes of one frame into pixels in the caller's buffer.
 *
 * A decoder belongs to one thread. A colour frame becomes an image of width x height x 3 in the decoder's output
 * format: u8 or f32 (0..1, or normalised), interleaved (nhwc) or planar (nchw), RGB or BGR. Rows are converted in bands
 * while they are in cache. A depth frame always becomes height x width u16 in host byte order with its stored values;
 * the output format does not apply.
 *
 * A view selects a part of the frame, resizes it, or both. Only the required rows and columns of blocks of a JPEG are
 * decoded. How colours are resized is enum weir_resize; they are rounded to u8 before conversion. Depth frames use the
 * nearest pixel, because an average of two surfaces would be a depth that does not exist. */
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
enum weir_dtype {
    WEIR_DTYPE_U8,
    WEIR_DTYPE_F32,
    WEIR_DTYPE_F16,
    WEIR_DTYPE_BF16,
    WEIR_DTYPE_U16,
    WEIR_DTYPE_I64,
    WEIR_DTYPE_BOOL
};
enum weir_image_layout { WEIR_LAYOUT_NHWC, WEIR_LAYOUT_NCHW };

struct weir_pixel_format {
    enum weir_color color;
    enum weir_dtype dtype; /* of images: u8 or f32; f16 and bf16 only on a GPU; depth frames are always u16 */
    enum weir_image_layout layout;
    /* For floats: (value / 255 - mean) / std of red, green and blue, computed as value x scale + bias with a single
     * rounding; std 0 = not normalised. */
    float mean[3], std[3];
};

/* A rectangle of a stored image, and its size after resizing. */
struct weir_view {
    int x, y, width, height;
    int out_width, out_height;
};

/* fast: JPEGs are decoded at the smallest DCT scale that yields at least the requested size; then colours are averaged
 * over each output pixel's area. exact: JPEGs are decoded at full size, and the result is that of Pillow's
 * Image.resize(.., BILINEAR), and of torchvision's resize with antialiasing, within 1 of 255 levels. Both enlarge by
 * linear interpolation. */
enum weir_resize { WEIR_RESIZE_FAST, WEIR_RESIZE_EXACT };

/* Returns the size in bytes of a colour image in this format. */
size_t weir_image_bytes(const struct weir_pixel_format *format, int width, int height);
/* Returns the size in bytes of a decoded frame of this kind, colour or depth. */
size_t weir_frame_bytes(const struct weir_pixel_format *format, enum weir_frame_kind kind, int width, int height);

/* Computes the float that each u8 value becomes in f32 images, for each channel in the image's channel order. f16 and
 * bf16 images contain these values rounded. */
void weir_pixel_values(const struct weir_pixel_format *format, float values[3][256]);

struct weir_decoder;

/* Returns 0 if the named engine can decode JPEGs, -ENOTSUP if this build lacks the engine, or -EINVAL with an error
 * that lists the valid names. The engine applies to JPEGs only: the codec of other frames is selected by their magic
 * bytes ("null" decodes nothing). */
int weir_decoder_check(const char *engine, struct weir_err *err);

/* The processor that decodes JPEGs: CPU cores, a GPU (with the CPU for frames that the GPU does not support), or both
 * simultaneously. */
enum weir_decode_where { WEIR_DECODE_ON_CPU, WEIR_DECODE_ON_GPU, WEIR_DECODE_ON_BOTH };
/* Returns WEIR_DECODE_ON_CPU for "auto" and for unknown names. */
enum weir_decode_where weir_decoder_where(const char *engine);
/* Returns true if the engine uses a GPU. */
bool weir_decoder_on_gpu(const char *engine);
/* Returns the default engine for each processor: "turbo", "nvjpeg" or "hybrid". */
const char *weir_decoder_at(enum weir_decode_where where);
/* Like weir_decoder_check, but accepts "auto". Also returns -EINVAL if the engine requires batches on a GPU and gpu is
 * false. */
int weir_decoder_check_device(const char *engine, bool gpu, struct weir_err *err);
/* Returns 0, or -ENODEV with the reason why the engine cannot work on this machine. Opens the GPU if the engine uses
 * it, which takes 0.6 s the first time. */
int weir_decoder_ready(const char *engine, int gpu, struct weir_err *err);

/* Opens a decoder. engine: "turbo", "null", ... (weir_decoder_row). For an engine on a GPU, the decoder handles only
 * the frames that the CPU decodes. width_max: width of the widest image to be decoded. */
int weir_decoder_open(struct weir_decoder **out, const char *engine, const struct weir_pixel_format *format,
                      int width_max, struct weir_err *err);
void weir_decoder_close(struct weir_decoder **decoder);
/* Sets how views are resized; call before the first frame. Default: fast. */
void weir_decoder_set_resize(struct weir_decoder *decoder, enum weir_resize resize);
/* Sets the treatment of frames with a harmless flaw; call before the first frame. Default: count. */
void weir_decoder_set_on_warning(struct weir_decoder *decoder, enum weir_on_warning on_warning);
/* Sets how frames are read; call before the first frame. Default: as stored. With `swapped`, the decoder's format must
 * have the opposite channel order of the wanted one. */
void weir_decoder_set_rules(struct weir_decoder *decoder, const struct weir_frame_rules *rules);

/* Returns false for "null", so that pictures of videos need not be decoded either. */
bool weir_decoder_has_pixels(const struct weir_decoder *decoder);

/* Returns true if the frame's bytes can be read directly into the image buffer, so that decoding costs nothing. */
bool weir_decoder_is_direct(const struct weir_decoder *decoder, enum weir_frame_kind kind);

struct weir_frame {
    enum weir_frame_kind kind;
    const uint8_t *bytes; /* may be the destination if weir_decoder_is_direct; a struct weir_picture if video */
    size_t length;
    int width, height;            /* expected size, after turning */
    const struct weir_view *view; /* part of the image to decode, after turning; NULL = all of it */
};

/* Decodes a frame into image, which must be aligned for its element type and have room for weir_frame_bytes of the
 * view's size. Records the stages 03b_image_decode and 05_to_tensor_normalize.
 *
 * Returns 0; -ENOMEM; or -EBADMSG if the bytes are corrupt, the size is not the expected one, or the codec does not
 * support the variant (weir_decoder_reason). Warnings from libjpeg and libpng count as corruption, except those from
 * libjpeg after which all pixels are correct (docs/internals/architecture.md lists them): such a frame is decoded and
 * counted, or is corrupt with WEIR_ON_WARNING_FAIL. Bytes after the end of a JPEG or PNG, or after the last row of a
 * view, are ignored. After a failure the contents of image are undefined.
 *
 * The result does not depend on earlier frames: a JPEG without DHT is decoded with the standard tables (ITU T.81, annex
 * K), and a JPEG without DQT is corrupt. */
int weir_decode(struct weir_decoder *decoder, const struct weir_frame *frame, void *image);

/* Maximum size of a reason for a failure, including the terminating zero. */
enum { WEIR_REASON_MAX = 256 };
/* Returns the reason why the last weir_decode or weir_probe_image failed; valid until the next call. */
const char *weir_decoder_reason(const struct weir_decoder *decoder);

/* Number of frames decoded so far, their pixels at the stored size and at the decoded size, and the number of those
 * frames that were decoded despite a warning. Thread-safe. */
struct weir_decoder_counts {
    uint64_t frames, stored_pixels, decoded_pixels, warned_frames;
};
void weir_decoder_counts(const struct weir_decoder *decoder, struct weir_decoder_counts *counts);

struct weir_image_info {
    int width, height;         /* after turning, if the decoder's rules require it */
    int turn;                  /* EXIF orientation, also if the rules ignore it; 0 = none */
    int components;            /* as stored, including alpha; 3 for a palette */
    int bit_depth;             /* bits per component; 8 for a palette */
    enum weir_frame_kind kind; /* determined from the bytes; WEIR_FRAME_PNG even if it is a depth image */
    const char *subsampling;   /* "4:4:4", "4:2:2", "4:2:0", "4:4:0", "4:1:1", "gray" or "other"; NULL unless a JPEG */
    const char *process;       /* "baseline", "progressive" or "arithmetic"; NULL unless a JPEG */
};

/* Reads the header of an encoded frame. Returns 0; -EBADMSG if the frame has no header that the codec can read, its
 * size in pixels is more than its bytes can encode (at least one bit per JPEG block, and at most 1032 bytes per byte of
 * deflate), or the decoded image would exceed 2 GiB; -EINVAL for raw frames. */
int weir_probe_image(struct weir_decoder *decoder, enum weir_frame_kind kind, const uint8_t *bytes, size_t length,
                     struct weir_image_info *info);

/* Returns 0 if the image has the camera's size, else -EBADMSG with the same reason as weir_decode. */
int weir_probe_fits(struct weir_decoder *decoder, const struct weir_image_info *info, int width, int height);

/* Returns true if decoding frames of this kind at a reduced size is cheaper for a CPU. */
bool weir_decoder_scales(enum weir_frame_kind kind);

/* Returns row i of the table of decoders that "weir help" and "weir doctor" print; false past the last row. */
bool weir_decoder_row(int i, const char **name, const char **summary, const char **why_not);

/* Writes a description such as "libjpeg-turbo 2.1.5, SIMD: AVX2; rows converted by AVX-512". */
void weir_decoder_library(char *text, size_t size);

#ifdef __cplusplus
}
#endif

#endif
