/* frame_kind.h: the table of frame kinds. A new codec adds its kind to enum weir_frame_kind and a row to frame_kind.c.
 */
#ifndef WEIR_DECODERS_FRAME_KIND_H
#define WEIR_DECODERS_FRAME_KIND_H

#include "weir/frames.h"

#include <stddef.h>
#include <stdint.h>

/* Groups of kinds that place the same requirements on a file format. Each reader and writer lists the groups it
 * supports. */
enum weir_frame_group {
    WEIR_FRAMES_RAW = 1 << 0,   /* arrays of pixels, colour or depth */
    WEIR_FRAMES_COLOR = 1 << 1, /* encoded colour; readers recognise the kind by an image's first bytes */
    WEIR_FRAMES_DEPTH = 1 << 2, /* encoded depth */
    WEIR_FRAMES_NAMED = 1 << 3, /* encoded colour; the file format records the name of the kind */
    WEIR_FRAMES_ANY = (1 << 4) - 1,
    WEIR_FRAMES_VIDEO = 1 << 4, /* pictures of videos, which only exist in memory */
};

enum { WEIR_MAGIC_MAX = 2, WEIR_MAGIC_BYTES = 12 };

struct weir_frame_kind_row {
    const char *name, *title;
    const char
        *imagecodecs; /* codec name in the Python package imagecodecs, which Zarr uses; NULL for raw kinds and video */
    enum weir_frame_group group;
    int pixel_bytes; /* bytes per pixel of raw frames; 0 for encoded kinds */
    bool is_depth;
    bool is_made; /* `weir convert --codec` can encode it */
    struct {
        const char *bytes; /* NULL: unused entry */
        size_t length;
    } magic[WEIR_MAGIC_MAX]; /* possible first bytes of encoded colour images */
};

/* kind must be less than WEIR_FRAME_KINDS. */
const struct weir_frame_kind_row *weir_frame_kind_row(enum weir_frame_kind kind);

/* Returns the frame kind for a kind name recorded in a dataset, or -EINVAL. The result for "jpeg" and "png" is
 * WEIR_FRAME_IMAGE, because such a dataset can contain both. */
int weir_frame_kind_stored(const char *name);

/* Determines the kind of an encoded colour image from its first bytes (length may be 0). Returns WEIR_FRAME_IMAGE if it
 * is unknown. */
enum weir_frame_kind weir_frame_kind_of(const uint8_t *bytes, size_t length);

/* Returns the size of the encoded colour image that starts at bytes. Walks the image's structure as a decoder does,
 * because the bytes of an end marker can also occur in a thumbnail or a comment. Returns 0 if the image is damaged or
 * does not end within length, or if its codec has no end function (decoder_ops.h). Bytes after the end do not affect
 * decoding. */
size_t weir_frame_end(const uint8_t *bytes, size_t length);

/* What an image's metadata says about how to read it. */
struct weir_frame_marks {
    bool true_rgb; /* a JPEG with the comment XPL-RGB1: its colours are true, although others of its dataset have red
                      and blue swapped */
    int turn;      /* EXIF orientation, 1 to 8; 0 = none */
};

/* Reads the marks of a JPEG or PNG (frame_kind.c). The bytes are untrusted. */
void weir_frame_marks(struct weir_frame_marks *marks, const uint8_t *bytes, size_t length);

/* Whether a frame with these marks is read otherwise than most frames under the rules. */
static inline bool weir_marks_matter(const struct weir_frame_marks *marks, const struct weir_frame_rules *rules)
{
    return (rules->swapped && marks->true_rgb) || (rules->turns && marks->turn > 1);
}

/* Returns the size of a raw frame in bytes; 0 for an encoded kind. */
static inline uint64_t weir_frame_raw_bytes(enum weir_frame_kind kind, int width, int height)
{
    return (uint64_t)width * (uint64_t)height * (uint64_t)weir_frame_kind_row(kind)->pixel_bytes;
}

/* Writes the names of the kinds in these groups, with the separator between them. The group WEIR_FRAMES_COLOR is listed
 * only as "jpeg". Truncates the list if it does not fit. */
void weir_frame_kind_list(unsigned groups, const char *separator, char *text, size_t size);

#endif
