/* prefetch.h: how far workers may be ahead when nobody says. */
#ifndef WEIR_PIPELINE_PREFETCH_H
#define WEIR_PIPELINE_PREFETCH_H

struct weir_shared;

/* Batches that workers may be ahead, for config.prefetch = 0; the slots' layout is known. */
int weir_prefetch_auto(const struct weir_shared *shared);

#endif
