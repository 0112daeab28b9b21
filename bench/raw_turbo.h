/* raw_turbo.h: the limit that a loader is compared with: libjpeg-turbo alone, through the TurboJPEG API, in several
 * threads over compressed frames in memory. */
#ifndef WEIR_BENCH_RAW_TURBO_H
#define WEIR_BENCH_RAW_TURBO_H

#include "weir/base.h"

#include <stddef.h>
#include <stdint.h>

struct raw_frames {
    int n, width, height;
    uint8_t **bytes;
    size_t *lengths;
};

/* Reads at most max compressed frames of a JPEG dataset into memory, all of one size. */
int raw_frames_load(struct raw_frames *frames, const char *data, int max, struct weir_err *err);
void raw_frames_free(struct raw_frames *frames);

/* The libjpeg quality (1..100) whose luminance table all frames have; 0 when they differ. */
int raw_frames_quality(const struct raw_frames *frames);

/* Returns images per second over at least the given time and number of images; each thread has its own handle and
 * output buffer. Frames are taken in scattered order from *next, which is advanced. Negative when a frame cannot be
 * decoded or a thread cannot be started. */
double raw_turbo_rate(const struct raw_frames *frames, int threads, double seconds, int images_min, uint64_t *next);

#endif
