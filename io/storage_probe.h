/* storage_probe.h: measures storage at two read sizes and two depths, to tell latency from bandwidth. */
#ifndef WEIR_IO_STORAGE_PROBE_H
#define WEIR_IO_STORAGE_PROBE_H

#include "io/io.h"

struct weir_storage_probe {
    int depth;          /* concurrent reads; 0 = nothing could be measured */
    double small_s;     /* median time of a single 4 KiB read */
    double whole_s;     /* median time of a single whole-extent read */
    double bytes_per_s; /* whole extents at this depth, after the initial burst of 0.1 s */
};

/* Reads some of the n extents with pread, each dropped from the page cache first, for 0.4 s plus the reads in flight at
 * that point, on its own threads. Extents of at most 1 MiB are read whole. */
void weir_storage_probe(struct weir_storage_probe *probe, const struct weir_file_set *set,
                        const struct weir_extent *extents, int n, int depth);

#endif
