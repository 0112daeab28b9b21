/* history.h: where the calling thread's stages lie in time, and which stages lie inside which: weir.log_timing nests
 * calls by it, and the verdict of a loop finds the stage inside a wait by it. All of it is used with the interpreter's
 * lock held. */
#ifndef WEIR_PYTHON_SRC_HISTORY_H
#define WEIR_PYTHON_SRC_HISTORY_H

#include "weir/recorder.h"

/* The module is imported. */
void weir_history_begin(void);
/* Adds a zone that was just closed, as weir_zone_now had it before. */
void weir_history_closed(const struct weir_zone_now *zone);
/* Records a call that took so many ticks and ends now. Stages timed inside that time are nested in it; the part that no
 * stage covers is its own. A call that cannot have ended now, because another stage began before it and ended inside
 * it, or because it follows another logged call at once and the time before that one has room for it, takes the latest
 * time that no stage covers. One without room, or of a stage that workers have, was timed elsewhere, and takes none of
 * the thread's time. */
void weir_history_logged(int stage, uint64_t ticks);
/* Frees the calling thread's part. */
void weir_history_end(void);
/* Forgets which stages lie inside which. */
void weir_history_reset(void);
/* The stage that this one was inside of most of its time; -1: none, or the stage itself was not called. */
int weir_history_parent(int stage);

#endif
