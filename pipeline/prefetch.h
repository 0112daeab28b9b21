/* prefetch.h: the automatic number of prefetched batches. */
#ifndef WEIR_PIPELINE_PREFETCH_H
#define WEIR_PIPELINE_PREFETCH_H

struct weir_shared;

/* Returns the number of batches to prefetch for config.prefetch = 0. The slot layout must be known. */
int weir_prefetch_auto(const struct weir_shared *shared);

#endif
