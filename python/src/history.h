/* history.h: when the calling thread's stages ran, and which stages ran inside which. weir.log_timing nests its calls
 * by this, and a loop's verdict finds the stage inside a wait. All calls need the interpreter's lock. */
#ifndef WEIR_PYTHON_SRC_HISTORY_H
#define WEIR_PYTHON_SRC_HISTORY_H

#include "weir/recorder.h"

/* Call at import. */
void weir_history_begin(void);
/* Adds a zone just closed, given its weir_zone_now before that. */
void weir_history_closed(const struct weir_zone_now *zone);
/* Records a call that took ticks and ends now. Stages timed within are nested in it; the rest is its self time. A call
 * that cannot have ended now (because another stage began before it and ended inside it, or because it follows another
 * logged call at once and fits before that one) is placed at the latest uncovered time. A call that fits nowhere, or of
 * a stage of workers, was timed in another thread or process, and takes none of this thread's time. */
void weir_history_logged(int stage, uint64_t ticks);
/* Frees the calling thread's part. */
void weir_history_end(void);
/* Forgets which stages ran inside which. */
void weir_history_reset(void);
/* The stage that contained most of this stage's time; -1: none, or the stage was not called. */
int weir_history_parent(int stage);

#endif
