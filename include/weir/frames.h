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
    WEIR_FRAME_PNG16, /* depth: a 16-bit or 8-bit grayscale PNG, whose values are not scaled */
    WEIR_FRAME_RAW16, /* depth: height x width little-endian u16 */
    WEIR_FRAME_JPEG,
    WEIR_FRAME_PNG, /* colour with at most 8 bits per channel, as are the kinds below */
    WEIR_FRAME_JPEG2000,
    WEIR_FRAME_JPEGXL,
    WEIR_FRAME_VIDEO,   /* colour: a decoded picture of a video (decoders/video/video.h); never read from a file */
    WEIR_FRAME_VIDEO16, /* depth: the luma of a decoded picture, whose values are not scaled */
    WEIR_FRAME_KINDS
};

/* Treatment of a frame that has a flaw but all of its pixels, such as a JPEG with extraneous bytes before a marker. */
enum weir_on_warning { WEIR_ON_WARNING_COUNT, WEIR_ON_WARNING_FAIL };

/* How the frames of a dataset are read. */
struct weir_frame_rules {
    bool swapped; /* red and blue are swapped, except in JPEGs whose comment is XPL-RGB1 */
    bool turns;   /* images are turned as their EXIF orientation requires */
    /* How all frames are turned, as an EXIF orientation: 1 not, 2 mirrored left to right, 3 by 180 degrees, 4 mirrored
     * top to bottom, 5 transposed, 6 by 90 degrees clockwise, 7 transposed and by 180 degrees, 8 by 90 degrees
     * counterclockwise. 5 to 8 exchange width and height. 0: as `turns` decides. */
    int turn;
};

enum weir_video_codec { WEIR_VIDEO_AV1, WEIR_VIDEO_H264, WEIR_VIDEO_HEVC, WEIR_VIDEO_CODECS };

/* Returns the name used in files, options and JSON: "raw", "png16", ... WEIR_FRAME_IMAGE has the same name as
 * WEIR_FRAME_JPEG, "jpeg". */
const char *weir_frame_kind_name(enum weir_frame_kind kind);
/* Returns the name used in sentences: "JPEG 2000"; "image" for WEIR_FRAME_IMAGE. */
const char *weir_frame_kind_title(enum weir_frame_kind kind);
/* Returns the kind with this name (WEIR_FRAME_JPEG for "jpeg"), or -EINVAL, also for kinds of video: no option or file
 * can select them. */
int weir_frame_kind_from_name(const char *name);
bool weir_frame_is_depth(enum weir_frame_kind kind);
/* Returns true for pictures of videos. */
bool weir_frame_is_video(enum weir_frame_kind kind);
/* Returns true if frames of this kind have a header that contains their size. The size of other frames comes from the
 * dataset's shape. */
bool weir_frame_is_encoded(enum weir_frame_kind kind);

#ifdef __cplusplus
}
#endif

#endif
