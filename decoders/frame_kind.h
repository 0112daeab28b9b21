/* frame_kind.h: the table of frame kinds. A new codec adds its kind to enum weir_frame_kind and its row in
 * frame_kind.c. */
#ifndef WEIR_DECODERS_FRAME_KIND_H
#define WEIR_DECODERS_FRAME_KIND_H

#include "weir/frames.h"

#include <stddef.h>
#include <stdint.h>

/* Requirements on a file format that holds frames of a kind. A format's reader or writer lists its groups. */
enum weir_frame_group {
    WEIR_FRAMES_RAW = 1 << 0,   /* arrays of pixels, colour or depth */
    WEIR_FRAMES_COLOR = 1 << 1, /* encoded colour that readers recognise by its first bytes */
    WEIR_FRAMES_DEPTH = 1 << 2, /* encoded depth */
    WEIR_FRAMES_NAMED = 1 << 3, /* encoded colour whose kind the format records by name */
    WEIR_FRAMES_ANY = (1 << 4) - 1,
};

enum { WEIR_MAGIC_MAX = 2, WEIR_MAGIC_BYTES = 12 };

struct weir_frame_kind_row {
    const char *name, *title;
    const char *imagecodecs; /* name in the Python package imagecodecs, which Zarr uses; NULL: not an encoded kind */
    enum weir_frame_group group;
    int pixel_bytes; /* of raw frames; 0: encoded */
    bool is_depth;
    bool is_made; /* `weir convert --codec` can make it */
    struct {
        const char *bytes; /* NULL: none */
        size_t length;
    } magic[WEIR_MAGIC_MAX]; /* the first bytes of encoded colour frames: one of these */
};

/* kind is below WEIR_FRAME_KINDS. */
const struct weir_frame_kind_row *weir_frame_kind_row(enum weir_frame_kind kind);

/* Returns the kind of a dataset's frames with this name, or -EINVAL: WEIR_FRAME_IMAGE for "jpeg" and "png", because
 * such a dataset may mix both. */
int weir_frame_kind_stored(const char *name);

/* Returns the encoded colour kind of an image with these first bytes (length may be 0), or WEIR_FRAME_IMAGE. */
enum weir_frame_kind weir_frame_kind_of(const uint8_t *bytes, size_t length);

/* Returns the size of the encoded colour image that starts at bytes, found by walking its structure as a decoder would:
 * an end marker can also be part of a thumbnail or a comment. Returns 0 when it does not end within length, its
 * structure is damaged, or its codec has no end function (decoder_ops.h). Later bytes do not affect decoding. */
size_t weir_frame_end(const uint8_t *bytes, size_t length);

/* Returns the bytes of a raw frame; 0 for an encoded kind. */
static inline uint64_t weir_frame_raw_bytes(enum weir_frame_kind kind, int width, int height)
{
    return (uint64_t)width * (uint64_t)height * (uint64_t)weir_frame_kind_row(kind)->pixel_bytes;
}

/* Writes the names of the kinds in these groups, each once, with separator between them. A list that does
 * not fit is cut. */
void weir_frame_kind_list(unsigned groups, const char *separator, char *text, size_t size);

#endif
