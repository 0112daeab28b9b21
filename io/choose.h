/* choose.h: chooses the engine for --io auto, from the state of the page cache and, when that does not decide, by
 * timing engines. */
#ifndef WEIR_IO_CHOOSE_H
#define WEIR_IO_CHOOSE_H

#include "io/io.h"

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
