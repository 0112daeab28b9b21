/* simplejpeg_side.h: the newer libjpeg-turbo inside the Python package simplejpeg, run in its own process
 * (simplejpeg_side.py defines the protocol) with one worker per thread of the other sides. */
#ifndef WEIR_BENCH_SIMPLEJPEG_SIDE_H
#define WEIR_BENCH_SIMPLEJPEG_SIDE_H

#include "bench/raw_turbo.h"

struct simplejpeg_side;

/* Starts the process and sends it the frames. python: an interpreter that can import simplejpeg and numpy; NULL: that
 * of build/peers-venv in this program's source tree, else python3. Returns -ENOENT when it is missing (err says what to
 * do), another error when it failed. */
int simplejpeg_side_open(struct simplejpeg_side **side, const char *python, const struct raw_frames *frames,
                         struct weir_err *err);
void simplejpeg_side_close(struct simplejpeg_side **side);

/* "simplejpeg 1.9.0 (libjpeg-turbo 3.1.2), Python 3.11.7"; borrows until close. */
const char *simplejpeg_side_library(const struct simplejpeg_side *side);

/* Runs one trial of at least the given time and number of images, like raw_turbo_rate. */
int simplejpeg_side_rate(struct simplejpeg_side *side, int workers, double seconds, int images_min,
                         double *images_per_s, struct weir_err *err);

#endif
