/* storage.h: the state of the storage that contains a file set: which bytes are in the page cache, how fast the storage
 * is, and which engine is fastest for it (--io auto). */
#ifndef WEIR_IO_STORAGE_H
#define WEIR_IO_STORAGE_H

#include "io/io.h"

/* ---- page cache (page_cache.c) ---- */

/* Determines how many bytes of this part of the file are in the page cache, without reading the file. The result counts
 * whole pages but is at most length. Returns 0, or -errno such as -EPERM if the kernel does not report it. */
int weir_page_cache_bytes(int fd, uint64_t offset, uint64_t length, uint64_t *cached);

/* Returns the fraction (0..1) of the bytes of n extents that is in the page cache; -1 if unknown. */
double weir_page_cache_fraction(struct weir_file_set *set, const struct weir_extent *extents, int n);

/* Result of weir_page_cache_drop, which writes back and drops the cached pages of all files in a set. stayed_bytes
 * counts the bytes that could not be dropped, for example because another process has them mapped. */
struct weir_cold {
    int files;
    uint64_t bytes, stayed_bytes;
};
int weir_page_cache_drop(struct weir_file_set *set, struct weir_cold *cold, struct weir_err *err);

/* ---- speed (storage_probe.c) ---- */

struct weir_storage_probe {
    int depth;          /* concurrent reads; 0: no measurement was possible */
    double small_s;     /* median duration of a single 4 KiB read */
    double whole_s;     /* median duration of a single read of a whole extent (at most 1 MiB) */
    double bytes_per_s; /* rate of reading whole extents at this depth, excluding the initial burst of 0.1 s */
};

/* Measures the storage with pread on its own threads, for 0.4 s plus the reads then in flight. Uses some of the n
 * extents and drops each from the page cache before reading it. Reads at most 1 MiB of an extent. */
void weir_storage_probe(struct weir_storage_probe *probe, const struct weir_file_set *set,
                        const struct weir_extent *extents, int n, int depth);

/* ---- engine (choose.c) ---- */

struct weir_choice_config {
    struct weir_file_set *set;         /* the files; timing uses separate handles */
    int threads;                       /* number of threads that will read concurrently */
    int depth;                         /* reads in flight for engines that read ahead; 0: default */
    const struct weir_extent *extents; /* extents from many of the files, in any order; some may be in the page cache */
    int n;
};

struct weir_choice {
    const char *engine;
    char why[256]; /* reason for the choice, as one sentence */
};

/* Chooses an I/O engine. Chooses plain reads (weir_io_default) if almost all bytes are in the page cache, or will be
 * after one epoch because reads are cached and the files fit in memory. Plain reads are the fastest for cached bytes,
 * and uncached bytes are announced to the kernel. Otherwise times the engines with auto_tries (io_ops.h) on uncached
 * extents for 0.1 s in total and chooses the fastest. */
void weir_io_choose(struct weir_choice *choice, const struct weir_choice_config *config);

#endif
