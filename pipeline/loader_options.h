/* loader_options.h: the table of the loader's options, the only place that defines them. It generates the command line,
 * --config, help, man pages, shell completion, the JSON echo, the defaults and bounds of struct weir_loader_config, and
 * the keywords of Python's weir.Loader. To add an option, add a row to the table, append a member to struct
 * weir_loader_config (not in the middle, because programs built against older versions pass shorter structs), and write
 * the code that uses the member. */
#ifndef WEIR_PIPELINE_LOADER_OPTIONS_H
#define WEIR_PIPELINE_LOADER_OPTIONS_H

#include "base/option.h"
#include "weir/dataset.h"
#include "weir/loader.h"

/* Commands that have an option, and Python; bits of the member `users` of struct weir_opt. */
enum {
    WEIR_FOR_RUN = 1,
    WEIR_FOR_WHATIF = 2,
    WEIR_FOR_TUNE = 4,
    WEIR_FOR_TRAIN = 8,
    WEIR_FOR_BENCH = 16,  /* options that weir bench passes to every run */
    WEIR_FOR_DATA = 32,   /* commands that open a dataset: info, verify, convert, bench */
    WEIR_FOR_PYTHON = 64, /* keywords of weir.Loader */
    WEIR_FOR_CACHE = 128, /* info, verify, convert: --cache is a folder; that of bench is about the page cache */
};

/* The offsets refer to struct weir_loader_config. A row without a name ends the table. */
extern const struct weir_opt weir_loader_opts[];

/* Adds the names of the I/O engines and decoders to the choices of their options. Call this before printing the table
 * or using it for completion; parsing works without it. Further calls do nothing. Not thread-safe. */
void weir_loader_options_complete(void);

/* Copies the options that select and open a dataset. The other members of `to` are not changed. */
void weir_loader_options_dataset(const struct weir_loader_config *from, struct weir_dataset_config *to);

/* Like weir_decoder_check_device. Also returns -EINVAL if frames with flaws are to fail and the GPU decodes them: it
 * does not report flaws. */
int weir_loader_decoder_check(const char *decoder, bool gpu, enum weir_on_warning on_warning, struct weir_err *err);

#endif
