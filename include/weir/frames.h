/* frames.h: the kinds of stored frames, and their names. */
#ifndef WEIR_FRAMES_H
#define WEIR_FRAMES_H

#include <stdbool.h>

#ifdef __cplusplus
extern "C" {
#endif

enum weir_frame_kind {
    WEIR_FRAME_IMAGE, /* encoded colour; the first bytes of each frame select one of the colour kinds below */
    WEIR_FRAME_RAW,   /* height x width x 3 bytes */
    WEIR_FRAME_PNG16, /* depth: a grayscale PNG of 16 bits, or of 8, whose values are kept */
    WEIR_FRAME_RAW16, /* depth: height x width little-endian u16 */
    WEIR_FRAME_JPEG,
    WEIR_FRAME_PNG, /* colour of at most 8 bits a channel, like the kinds below */
    WEIR_FRAME_JPEG2000,
    WEIR_FRAME_JPEGXL,
    WEIR_FRAME_KINDS
};

/* Returns the name in files, options and JSON: "raw", "png16", ... WEIR_FRAME_IMAGE shares "jpeg" with
 * WEIR_FRAME_JPEG. */
const char *weir_frame_kind_name(enum weir_frame_kind kind);
/* Returns the name in sentences: "JPEG 2000"; "image" for WEIR_FRAME_IMAGE. */
const char *weir_frame_kind_title(enum weir_frame_kind kind);
/* Returns the kind of this name (WEIR_FRAME_JPEG for "jpeg"), or -EINVAL. */
int weir_frame_kind_from_name(const char *name);
bool weir_frame_is_depth(enum weir_frame_kind kind);
/* Returns true when frames have headers with their size; the size of others comes from the dataset's shape. */
bool weir_frame_is_encoded(enum weir_frame_kind kind);

#ifdef __cplusplus
}
#endif

#endif
