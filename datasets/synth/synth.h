/* synth.h: writes datasets of synthetic robot episodes in supported layouts. The JPEGs of their images have the size
 * and decoding cost of camera images, and the trajectories match the motion in the images. */
#ifndef WEIR_DATASETS_SYNTH_SYNTH_H
#define WEIR_DATASETS_SYNTH_SYNTH_H

#include "weir/base.h"

#include <stdint.h>

struct weir_synth_stats {
    int episodes;         /* number of episodes written */
    uint64_t frames;      /* number of images of all cameras */
    uint64_t bytes;       /* size of all complete files */
    uint64_t jpeg_frames; /* number of JPEGs; 0 if images are not JPEGs */
    uint64_t jpeg_bytes;
};

struct weir_synth_config {
    const char *out;     /* output folder; created if missing, otherwise it must be empty */
    const char *format;  /* one of the names from weir_synth_format_name */
    int episodes;        /* number of episodes, default 10 */
    int steps;           /* steps per episode, default 50 */
    const char *cameras; /* comma-separated names, at most 16, of letters, digits, _ and -; NULL = the format's cameras.
                            A name determines where the camera is: top, high, low, left, right; "wrist" or "hand" mounts
                            it on an arm */
    int width, height;   /* image size, 16..8192, default 640x480 */
    int quality;         /* JPEG quality 1..100, default 95 */
    uint64_t seed;       /* the same seed gives identical files for any number of threads */
    int threads;         /* number of threads; 0 = one per usable core */
    struct weir_synth_stats *stats; /* updated during the run; may be NULL */
    /* Called from the calling thread after each frame and each episode; may be NULL. */
    void (*progress)(void *user, int episodes_done, int episodes_total);
    void *user;
};

void weir_synth_config_default(struct weir_synth_config *config);

/* The names of all formats, separated by "|". */
extern const char weir_synth_format_names[];
/* Returns the name of a format, or NULL past the end. */
const char *weir_synth_format_name(int index);
/* Returns a format's default cameras, comma-separated; NULL past the end. */
const char *weir_synth_format_cameras(int index);

/* Files get their final names when they are complete, so only complete files remain after an error. */
int weir_synth_write(const struct weir_synth_config *config, struct weir_err *err);

#endif
