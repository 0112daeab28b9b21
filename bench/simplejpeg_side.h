/* simplejpeg_side.h: a newer libjpeg-turbo beside Debian's: the one that the Python package simplejpeg has in it, in a
 * process of its own (simplejpeg_side.py, which has the protocol) with as many workers as the other sides have threads.
 */
#ifndef WEIR_BENCH_SIMPLEJPEG_SIDE_H
#define WEIR_BENCH_SIMPLEJPEG_SIDE_H

#include "bench/raw_turbo.h"

struct simplejpeg_side;

/* Starts the process and sends it the frames. python: an interpreter that can import simplejpeg and numpy; NULL: that
 * of build/peers-venv in the tree that this program was built in, else python3. -ENOENT: it is not there, and err says
 * what to do; any other error: it broke. */
int simplejpeg_side_open(struct simplejpeg_side **side, const char *python, const struct raw_frames *frames,
                         struct weir_err *err);
void simplejpeg_side_close(struct simplejpeg_side **side);

/* "simplejpeg 1.9.0 (libjpeg-turbo 3.1.2), Python 3.11.7"; borrows until close. */
const char *simplejpeg_side_library(const struct simplejpeg_side *side);

/* One turn of at least this long and this many images, as raw_turbo_rate. */
int simplejpeg_side_rate(struct simplejpeg_side *side, int workers, double seconds, int images_min,
                         double *images_per_s, struct weir_err *err);

#endif
