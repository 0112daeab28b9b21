/* choose.h: which engine suits these files on this machine, now: --io auto. It looks at what is in the page cache, and
 * times engines when that does not decide it. */
#ifndef WEIR_IO_CHOOSE_H
#define WEIR_IO_CHOOSE_H

#include "io/io.h"

struct weir_choice_config {
    struct weir_file_set *set;         /* its files; engines are timed on other handles */
    int threads;                       /* that will read at a time */
    int depth;                         /* of engines that read ahead; 0 = automatic */
    const struct weir_extent *extents; /* spread over the files, in any order; what is cached may be among them */
    int n;
};

struct weir_choice {
    const char *engine;
    char why[256]; /* a sentence */
};

/* Takes plain reads (weir_io_default) when nearly all is in the page cache, or will be after an epoch: when it passes
 * through it (no direct reads) and fits into memory. What is cached is read fastest so; cold, they are announced to the
 * kernel ahead. Else times the engines that may be tried (io_ops.h) on extents that are not, for a tenth of a second in
 * all, and takes the fastest. */
void weir_io_choose(struct weir_choice *choice, const struct weir_choice_config *config);

#endif
