/* read_ahead.h: the loader's reading: the engine, chosen for "auto", and the thread that reads ahead of the workers
 * along the sampler's plan. */
#ifndef WEIR_PIPELINE_SAMPLES_READ_AHEAD_H
#define WEIR_PIPELINE_SAMPLES_READ_AHEAD_H

#include "io/ahead.h"
#include "io/storage.h"

struct weir_loader_facts;
struct weir_shared;
struct weir_read_plan;

struct weir_reading {
    const char *used;
    struct weir_file_set *look; /* handles for cache queries: the loader's own are opened on demand */
    struct weir_choice choice;
    struct weir_extent *samples; /* frames spread over the dataset */
    int n_samples;
    double cached; /* fraction of the samples in the page cache before the first read */
    struct weir_cold cold;
    struct weir_read_plan *plan;
    struct weir_ahead *ahead; /* NULL = none */
};

/* Returns 0 if the engine exists, including "auto". */
int weir_reading_check(const char *engine, bool direct, struct weir_err *err);

/* Makes the files direct or cold as configured, and chooses an engine. The dataset and files are open. */
int weir_reading_open(struct weir_shared *shared, struct weir_err *err);
/* Starts read-ahead if the engine supports it and it can gain something. The slots are open. */
int weir_read_ahead_open(struct weir_shared *shared, struct weir_err *err);
/* Workers have ended and closed their readers. */
void weir_reading_close(struct weir_shared *shared);

void weir_reading_facts(const struct weir_shared *shared, struct weir_loader_facts *facts);
double weir_reading_cached(struct weir_shared *shared);
/* Measures the storage for this number of workers (io/storage.h). */
void weir_reading_probe(const struct weir_shared *shared, int workers, struct weir_storage_probe *probe);

#endif
