/* video.h: decodes groups of pictures of a video stream into pictures in memory, as luma and chroma planes. The decoder
 * `video` (decoder.h) converts pictures to pixels: a frame of kind WEIR_FRAME_VIDEO or WEIR_FRAME_VIDEO16 has a struct
 * weir_picture as its bytes. */
#ifndef WEIR_DECODERS_VIDEO_VIDEO_H
#define WEIR_DECODERS_VIDEO_VIDEO_H

#include "weir/decoder.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Chroma planes: none, of half width and height (rounded up), of half width, or of full size. */
enum weir_chroma { WEIR_CHROMA_400, WEIR_CHROMA_420, WEIR_CHROMA_422, WEIR_CHROMA_444 };

/* Matrix from RGB to luma and chroma, numbered as in ISO/IEC 23091-2, which video streams and mp4 files use. Other
 * numbers are possible in a picture, and cannot be converted to pixels. */
enum weir_matrix {
    WEIR_MATRIX_IDENTITY = 0, /* a wrong tag of pictures with chroma; converted nearly as BT.709 */
    WEIR_MATRIX_709 = 1,
    WEIR_MATRIX_UNKNOWN = 2,  /* not tagged; converted as BT.601 */
    WEIR_MATRIX_RESERVED = 3, /* converted as BT.601 */
    WEIR_MATRIX_FCC = 4,
    WEIR_MATRIX_BT470BG = 5, /* the same values as BT.601 */
    WEIR_MATRIX_601 = 6,
    WEIR_MATRIX_SMPTE240M = 7,
    WEIR_MATRIX_2020 = 9,
    WEIR_MATRIX_2020_CONSTANT = 10,
};

struct weir_picture {
    const uint8_t *planes[3];     /* luma, Cb, Cr; native u16 if bit_depth is more than 8. NULL without chroma */
    ptrdiff_t strides[3];         /* bytes between rows */
    int width, height, bit_depth; /* bit_depth: 8 to 12 */
    enum weir_chroma chroma;
    enum weir_matrix matrix;
    bool full_range; /* luma uses 0..255 instead of 16..235 (8 bits) */
    bool from_gpu;   /* decoded by the GPU's video engines */
};

/* A stream of encoded pictures, as its file describes it. */
struct weir_video_format {
    enum weir_video_codec codec;
    const uint8_t *config; /* body of the box av1C, avcC or hvcC */
    size_t config_bytes;
    int matrix, full_range; /* enum weir_matrix and 0 or 1, for H.264 streams that lack these tags; -1 = unknown */
};

/* An encoded picture, as an mp4 file stores it. */
struct weir_packet {
    const uint8_t *bytes;
    size_t length;
    int64_t pts;
};

/* Receives a picture, which is valid during the call. A nonzero result ends decoding. */
typedef int weir_picture_fn(void *user, int64_t pts, const struct weir_picture *picture);

/* Decodes on the calling thread; belongs to one thread. The context of a codec is created on first use and serves all
 * streams. */
struct weir_video_decoder;

/* gpu: number of the GPU whose engines decode the streams that they can (H.264 and HEVC, 8 bits, 4:2:0), or -1. They
 * need the driver's video library; what they cannot decode, and what they call damaged, is decoded on the CPU. Returns
 * 0 or -ENOMEM. */
int weir_video_open(struct weir_video_decoder **out, int gpu);
void weir_video_close(struct weir_video_decoder **decoder);

/* Decodes n packets of one stream, which are in decoding order and start with a sync sample, and calls fn for each
 * picture in presentation order. The result does not depend on earlier calls. Records the stage 03j_video_decode,
 * excluding the time in fn.
 *
 * Returns 0, also if fn ended decoding; -ENOMEM; -EBADMSG if the stream is damaged, yields no picture or changes the
 * size of its pictures; or -ENOTSUP if the codec or the pixel format is not supported. Errors have a reason. After an
 * error, fn may have received some of the pictures. */
int weir_video_decode(struct weir_video_decoder *decoder, const struct weir_video_format *format,
                      const struct weir_packet *packets, int n, weir_picture_fn *fn, void *user,
                      char reason[WEIR_REASON_MAX]);

/* Returns row i of the table of video codecs that `weir doctor` prints; false past the last row. */
bool weir_video_row(int i, const char **name, const char **summary, const char **why_not);
/* Returns 0, or -ENODEV with the reason why this machine cannot decode the named codec, which is built in. */
int weir_video_ready(const char *name, struct weir_err *err);

#endif
