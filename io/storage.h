/* storage.h: the state and speed of the storage behind a file set: what is in the page cache, how fast it reads, and
 * the engine that suits it (--io auto). */
#ifndef WEIR_IO_STORAGE_H
#define WEIR_IO_STORAGE_H

#include "io/io.h"

/* ---- page cache (page_cache.c) ---- */

/* Stores the number of bytes of this part of the file that are in the page cache; partial pages count up to length.
 * Reads nothing. Returns -EPERM or the like when the kernel does not report it. */
int weir_page_cache_bytes(int fd, uint64_t offset, uint64_t length, uint64_t *cached);

/* The same as a fraction (0..1) over n extents; -1 when unknown. */
double weir_page_cache_fraction(struct weir_file_set *set, const struct weir_extent *extents, int n);

/* Writes out and drops all files of the set, and reports how much remained (another process may have them mapped). */
struct weir_cold {
    int files;
    uint64_t bytes, stayed_bytes;
};
int weir_page_cache_drop(struct weir_file_set *set, struct weir_cold *cold, struct weir_err *err);

/* ---- speed (storage_probe.c) ---- */

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

/* ---- engine (choose.c) ---- */

struct weir_choice_config {
    struct weir_file_set *set;         /* the files; engines are timed on handles of their own */
    int threads;                       /* concurrent readers of the run */
    int depth;                         /* for engines that read ahead; 0 = automatic */
    const struct weir_extent *extents; /* spread over the files, in any order; some may be cached */
    int n;
};

struct weir_choice {
    const char *engine;
    char why[256]; /* one sentence */
};

/* Chooses plain reads (weir_io_default) when nearly everything is in the page cache, or will be after one epoch because
 * reads are cached and the files fit in memory: cached bytes are read fastest that way, and cold ones are announced to
 * the kernel. Otherwise times the engines with auto_tries (io_ops.h) on uncached extents for 0.1 s in total and chooses
 * the fastest. */
void weir_io_choose(struct weir_choice *choice, const struct weir_choice_config *config);

#endif
