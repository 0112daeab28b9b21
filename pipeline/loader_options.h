/* loader_options.h: the table of the loader's options, the only place that defines them. It generates the command line,
 * --config, help, man pages, shell completion, the JSON echo, the defaults and bounds of struct weir_loader_config, and
 * the keywords of Python's weir.Loader. To add an option, add a row here, append a member to struct weir_loader_config
 * (older programs have shorter structs), and write the code that uses it. */
#ifndef WEIR_PIPELINE_LOADER_OPTIONS_H
#define WEIR_PIPELINE_LOADER_OPTIONS_H

#include "base/option.h"
#include "weir/dataset.h"
#include "weir/loader.h"

/* Commands that have an option, and Python (member users of struct weir_opt). */
enum {
    WEIR_FOR_RUN = 1,
    WEIR_FOR_WHATIF = 2,
    WEIR_FOR_TUNE = 4,
    WEIR_FOR_TRAIN = 8,
    WEIR_FOR_BENCH = 16,  /* options that weir bench passes to every run */
    WEIR_FOR_DATA = 32,   /* commands that open a dataset: info, verify, convert, bench */
    WEIR_FOR_PYTHON = 64, /* keywords of weir.Loader */
};

/* Offsets are into struct weir_loader_config. A row without a name ends the table. */
extern const struct weir_opt weir_loader_opts[];

/* Adds the names of I/O engines and decoders to their options. Call before the table is printed or completed;
 * parsing works without it. Further calls do nothing. Not thread-safe. */
void weir_loader_options_complete(void);

/* Copies the options that select and open a dataset. Leaves the other members of `to` unchanged. */
void weir_loader_options_dataset(const struct weir_loader_config *from, struct weir_dataset_config *to);

#endif
