/* raw_turbo.h: the limit that a loader is compared with: libjpeg-turbo alone, through the TurboJPEG interface, in a
 * number of threads, over compressed frames that are in memory already. */
#ifndef WEIR_BENCH_RAW_TURBO_H
#define WEIR_BENCH_RAW_TURBO_H

#include "base/err.h"

#include <stddef.h>
#include <stdint.h>

struct raw_frames {
    int n, width, height;
    uint8_t **bytes;
    size_t *lengths;
};

/* Reads the compressed frames of a JPEG dataset into memory, at most max of them, all of one size. */
int raw_frames_load(struct raw_frames *frames, const char *data, int max, struct weir_err *err);
void raw_frames_free(struct raw_frames *frames);

/* The quality (1..100) whose luminance table, as libjpeg scales it, all of them have; 0 when there is none. */
int raw_frames_quality(const struct raw_frames *frames);

/* Images per second over at least this long and this many images, every thread with its own handle and one output
 * buffer. Frames are taken in a scattered order, from number *next on, which is moved on for the next turn. Negative
 * when a frame does not decode or a thread does not start. */
double raw_turbo_rate(const struct raw_frames *frames, int threads, double seconds, int images_min, uint64_t *next);

#endif
