/* synth.h: writes datasets of synthetic robot episodes in supported layouts. The JPEGs of their images have the size
 * and decoding cost of a camera's, and trajectories match the motion in them. */
#ifndef WEIR_DATASETS_SYNTH_SYNTH_H
#define WEIR_DATASETS_SYNTH_SYNTH_H

#include "weir/base.h"

#include <stdint.h>

struct weir_synth_stats {
    int episodes;         /* written */
    uint64_t frames;      /* images of all cameras */
    uint64_t bytes;       /* of all complete files */
    uint64_t jpeg_frames; /* 0 when images are not JPEGs */
    uint64_t jpeg_bytes;
};

struct weir_synth_config {
    const char *out;    /* output folder; created if missing, otherwise it must be empty */
    const char *format; /* one of weir_synth_format_name */
    int episodes;       /* default 10 */
    int steps;          /* per episode, default 50 */
    const char
        *cameras; /* comma-separated names, at most 16 of letters, digits, _ and -; NULL = those of the format. Names
                   * say where a camera is: top, high, low, left, right; "wrist" or "hand" rides on an arm */
    int width, height;              /* default 640x480; 16..8192 */
    int quality;                    /* JPEG quality 1..100, default 95 */
    uint64_t seed;                  /* the same seed gives identical files for any number of threads */
    int threads;                    /* 0 = one per usable core */
    struct weir_synth_stats *stats; /* updated during the run; may be NULL */
    /* Called from the calling thread after each frame and each episode; may be NULL. */
    void (*progress)(void *user, int episodes_done, int episodes_total);
    void *user;
};

void weir_synth_config_default(struct weir_synth_config *config);

/* All names, separated by "|". */
extern const char weir_synth_format_names[];
/* Returns NULL past the end. */
const char *weir_synth_format_name(int index);
/* Returns a format's default cameras, comma-separated; NULL past the end. */
const char *weir_synth_format_cameras(int index);

/* Files get their names when they are complete. After an error only complete files remain. */
int weir_synth_write(const struct weir_synth_config *config, struct weir_err *err);

#endif
