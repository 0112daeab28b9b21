/* simplejpeg_side.h: decodes with the newer libjpeg-turbo in the Python package simplejpeg. It runs in a separate
 * process with one worker per thread of the other sides. simplejpeg_side.py defines the protocol. */
#ifndef WEIR_BENCH_SIMPLEJPEG_SIDE_H
#define WEIR_BENCH_SIMPLEJPEG_SIDE_H

#include "bench/raw_turbo.h"

struct simplejpeg_side;

/* Starts the process and sends it the frames. python is an interpreter that can import simplejpeg and numpy. NULL means
 * build/peers-venv in this program's source tree if it exists, otherwise python3. Returns -ENOENT if simplejpeg is
 * missing, with an error that says how to install it, or another negative code on failure. */
int simplejpeg_side_open(struct simplejpeg_side **side, const char *python, const struct raw_frames *frames,
                         struct weir_err *err);
void simplejpeg_side_close(struct simplejpeg_side **side);

/* Returns the versions, such as "simplejpeg 1.9.0 (libjpeg-turbo 3.1.2), Python 3.11.7". The string is valid until
 * close. */
const char *simplejpeg_side_library(const struct simplejpeg_side *side);

/* Runs one trial for at least the given time and number of images, like raw_turbo_rate. */
int simplejpeg_side_rate(struct simplejpeg_side *side, int workers, double seconds, int images_min,
                         double *images_per_s, struct weir_err *err);

#endif
