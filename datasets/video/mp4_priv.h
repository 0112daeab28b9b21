/* mp4_priv.h: the boxes of an MP4 file. All numbers in them are big-endian. */
#ifndef WEIR_DATASETS_VIDEO_MP4_PRIV_H
#define WEIR_DATASETS_VIDEO_MP4_PRIV_H

#include "base/files.h"
#include "datasets/video/video_track_priv.h"

#include <errno.h>

enum { WEIR_MP4_FULL = 4 /* bytes of version and flags, with which some boxes begin */ };

/* The bytes of a box without its header. data is NULL if the box is missing. */
struct weir_mp4_box {
    const uint8_t *data;
    size_t n;
};

/* State for reading a video track. */
struct weir_mp4_reader {
    struct weir_err *err;
    struct weir_video_track *track;
    struct weir_source *source;
    uint64_t file_bytes;
    uint32_t movie_timescale; /* 0: missing */
    uint64_t bit_rate;        /* of the track, in bits per second */
    bool is_enabled;
    struct weir_mp4_box mvhd, tkhd, mdhd, stsd, stts, ctts, stsc, stsz, stz2, stco, co64, stss, elst;
};

/* Returns the entries of a full box whose count is at offset `at`, or NULL if they do not fit into the box. */
static inline const uint8_t *weir_mp4_entries(const struct weir_mp4_box *box, size_t at, size_t entry_bytes,
                                              uint32_t *n)
{
    if (box->n < at + 4)
        return NULL;
    *n = weir_be(box->data + at, 4);
    return entry_bytes == 0 || *n <= (box->n - at - 4) / entry_bytes ? box->data + at + 4 : NULL;
}

/* Returns the unused memory of an array, whose pointer is at `array`. */
void weir_mp4_shrink(void *array, size_t bytes);

/* Sets the error for a damaged box, and returns -EBADMSG. */
static inline int weir_mp4_damaged(struct weir_err *err, const char *type, const char *why)
{
    return weir_err_set(err, -EBADMSG, "box %s %s; copy the file again, or encode it again", type, why);
}

/* Returns 0 if the file may demand this memory (base/claims.h), or -ENODATA with err. what: "samples" */
int weir_mp4_claim(const struct weir_mp4_reader *r, uint64_t bytes, const char *what);

/* Fills the track with the sample tables (mp4_tables.c), or with what its edit list shows of the ordered media
 * (mp4_edits.c). All required boxes exist. Return 0 or a negative code with err. */
int weir_mp4_read_tables(struct weir_mp4_reader *r);
int weir_mp4_read_edits(struct weir_mp4_reader *r);
/* Adds up the sizes and durations of the samples, as far as the tables exist. */
void weir_mp4_sum(const struct weir_mp4_reader *r, uint64_t *bytes, uint64_t *duration);

#endif
