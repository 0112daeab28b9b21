/* storage_probe.h: measures what storage gives at two sizes and two depths, to tell latency from bandwidth. */
#ifndef WEIR_IO_STORAGE_PROBE_H
#define WEIR_IO_STORAGE_PROBE_H

#include "io/io.h"

struct weir_storage_probe {
    int depth;          /* reads at once; 0 = nothing could be measured */
    double small_s;     /* a read of 4 KiB alone: the median */
    double whole_s;     /* a whole extent alone: the median */
    double bytes_per_s; /* whole extents, depth at once, behind the burst of the first 0.1 s */
};

/* Reads some of the n extents by pread, each dropped from the page cache before it is read, for 0.4 s and the reads
 * that are under way then. The calling thread and, for as long, depth others. Extents of at most 1 MiB are read whole.
 */
void weir_storage_probe(struct weir_storage_probe *probe, const struct weir_file_set *set,
                        const struct weir_extent *extents, int n, int depth);

#endif
