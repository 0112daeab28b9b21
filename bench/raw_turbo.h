/* raw_turbo.h: decodes compressed frames in memory with libjpeg-turbo alone, through the TurboJPEG API, in several
 * threads. This is the limit that a loader is compared with. */
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

/* Reads at most max compressed frames of a JPEG dataset into memory. All frames must have the same size. */
int raw_frames_load(struct raw_frames *frames, const char *data, int max, struct weir_err *err);
void raw_frames_free(struct raw_frames *frames);

/* Returns the libjpeg quality (1..100) that matches the luminance table of all frames, or 0 if none exists. */
int raw_frames_quality(const struct raw_frames *frames);

/* Decodes frames for at least the given time and number of images, and returns the images per second. Each thread has
 * its own handle and output buffer. Frames are decoded in a scattered order that begins at *next, and *next is
 * advanced. Returns a negative value if a frame cannot be decoded or a thread cannot be started. */
double raw_turbo_rate(const struct raw_frames *frames, int threads, double seconds, int images_min, uint64_t *next);

#endif
