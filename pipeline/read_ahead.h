/* read_ahead.h: how a loader reads: the engine, chosen when it is "auto", and the thread that reads ahead of the
 * workers by the sampler's plan. */
#ifndef WEIR_PIPELINE_READ_AHEAD_H
#define WEIR_PIPELINE_READ_AHEAD_H

#include "io/ahead.h"
#include "io/choose.h"
#include "io/page_cache.h"
#include "io/storage_probe.h"

struct weir_loader_facts;
struct weir_shared;
struct weir_read_plan;

struct weir_reading {
    const char *used;
    struct weir_file_set *look; /* handles to see what is cached: the loader's own are opened when they are read */
    struct weir_choice choice;
    struct weir_extent *samples; /* frames spread over the dataset */
    int n_samples;
    double cached; /* before the first read */
    struct weir_cold cold;
    struct weir_read_plan *plan;
    struct weir_ahead *ahead; /* NULL = none */
};

/* 0 when there is such an engine, "auto" included. */
int weir_reading_check(const char *engine, bool direct, struct weir_err *err);

/* Makes the files direct or cold as the configuration says, and chooses an engine. The dataset and the files are open.
 */
int weir_reading_open(struct weir_shared *shared, struct weir_err *err);
/* Begins to read ahead when the engine can, and there is something to gain. The slots are open. */
int weir_read_ahead_open(struct weir_shared *shared, struct weir_err *err);
/* Workers have ended, and their readers are closed. */
void weir_reading_close(struct weir_shared *shared);

void weir_reading_facts(const struct weir_shared *shared, struct weir_loader_facts *facts);
double weir_reading_cached(struct weir_shared *shared);
/* What storage gives, for so many workers (io/storage_probe.h). */
void weir_reading_probe(const struct weir_shared *shared, int workers, struct weir_storage_probe *probe);

#endif
