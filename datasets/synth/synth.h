/* synth.h: writes datasets of synthetic robot episodes in the layouts users have. Pictures are drawings whose JPEGs
 * have the size and the decoding cost of a camera's, and trajectories match the motion in them. */
#ifndef WEIR_DATASETS_SYNTH_SYNTH_H
#define WEIR_DATASETS_SYNTH_SYNTH_H

#include "weir/base.h"

#include <stdint.h>

struct weir_synth_stats {
    int episodes;         /* written */
    uint64_t frames;      /* pictures, over all cameras */
    uint64_t bytes;       /* of all files that are complete */
    uint64_t jpeg_frames; /* 0 where pictures are not JPEGs */
    uint64_t jpeg_bytes;
};

struct weir_synth_config {
    const char *out;    /* folder to write into; made if missing, must be empty or new */
    const char *format; /* a name of weir_synth_format_name */
    int episodes;       /* default 10 */
    int steps;          /* per episode, default 50 */
    const char
        *cameras; /* comma-separated names, at most 16 of letters, digits, _ and -; NULL = those of the format. Names
                   * say where a camera is: top, high, low, left, right; "wrist" or "hand" rides on an arm */
    int width, height;              /* default 640x480; 16..8192 */
    int quality;                    /* JPEG quality 1..100, default 95; where pictures are JPEGs */
    uint64_t seed;                  /* same seed, same files byte for byte, whatever the number of threads */
    int threads;                    /* 0 = one per usable core */
    struct weir_synth_stats *stats; /* filled as work goes on; may be NULL */
    /* Called from the calling thread after each frame and each episode; may be NULL. */
    void (*progress)(void *user, int episodes_done, int episodes_total);
    void *user;
};

void weir_synth_config_default(struct weir_synth_config *config);

/* All names, between "|". */
extern const char weir_synth_format_names[];
/* NULL past the last. */
const char *weir_synth_format_name(int index);
/* The cameras that a format has unless told otherwise, comma-separated; NULL past the last. */
const char *weir_synth_format_cameras(int index);

/* Files get their names when they are complete. An error leaves the complete files and nothing else. */
int weir_synth_write(const struct weir_synth_config *config, struct weir_err *err);

#endif
