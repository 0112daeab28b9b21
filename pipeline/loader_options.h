/* loader_options.h: the table of the loader's options, the only place that defines them. The command line, --config,
 * help, man pages, shell completion, the JSON echo, the defaults and bounds of struct weir_loader_config, and the
 * keywords of Python's weir.Loader are made from it. An option is a row here, a member of struct weir_loader_config,
 * and the code that uses it. */
#ifndef WEIR_PIPELINE_LOADER_OPTIONS_H
#define WEIR_PIPELINE_LOADER_OPTIONS_H

#include "base/option.h"
#include "weir/dataset.h"
#include "weir/loader.h"

/* Who has an option (struct weir_opt, users). */
enum {
    WEIR_FOR_RUN = 1,
    WEIR_FOR_WHATIF = 2,
    WEIR_FOR_TUNE = 4,
    WEIR_FOR_TRAIN = 8,
    WEIR_FOR_BENCH = 16,  /* options that weir bench passes to every run */
    WEIR_FOR_DATA = 32,   /* commands that open a dataset: info, verify, convert, bench */
    WEIR_FOR_PYTHON = 64, /* keywords of weir.Loader */
};

/* Offsets are into a struct weir_loader_config. A row without a name ends the table. */
extern const struct weir_opt weir_loader_opts[];

/* Adds the names of engines and decoders to the rows that take them. Once per process, before the table is printed or
 * completed; values parse without it. */
void weir_loader_options_complete(void);

/* The row of that name; NULL: none. */
const struct weir_opt *weir_loader_option(const char *name);

/* Copies the options that select and open a dataset. Leaves other members of to alone. */
void weir_loader_options_dataset(const struct weir_loader_config *from, struct weir_dataset_config *to);

#endif
