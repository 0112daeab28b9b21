/* read_ahead.h: how the loader reads: the I/O engine, which is chosen for "auto", and the thread that reads ahead of
 * the workers in the order of the sampler's plan. */
#ifndef WEIR_PIPELINE_SAMPLES_READ_AHEAD_H
#define WEIR_PIPELINE_SAMPLES_READ_AHEAD_H

#include "io/ahead.h"
#include "io/io.h"
#include "io/storage.h"

struct weir_loader_facts;
struct weir_loader_counts;
struct weir_shared;
struct weir_read_plan;

struct weir_reading {
    const char *used;
    struct weir_file_set *look; /* files for cache queries, since the loader opens its own files only on demand */
    struct weir_choice choice;
    struct weir_extent *samples; /* frames spread over the dataset */
    int n_samples;
    double cached; /* fraction of the samples in the page cache before the first read */
    struct weir_cold cold;
    struct weir_read_plan *plan;
    struct weir_ahead *ahead; /* NULL = no read-ahead */
};

/* Returns 0 if engine is "auto", or exists and supports direct reads if direct is set. */
int weir_reading_check(const char *engine, bool direct, struct weir_err *err);

/* Enables direct reads and drops the page cache, if so configured, and chooses an engine. The dataset and files must be
 * open. */
int weir_reading_open(struct weir_shared *shared, struct weir_err *err);
/* Starts read-ahead if the engine supports it and it may save time. The slots must be open. */
int weir_read_ahead_open(struct weir_shared *shared, struct weir_err *err);
/* All workers must have ended and closed their readers. */
void weir_reading_close(struct weir_shared *shared);

/* Fills in the counts of requests in flight to a server. */
void weir_reading_in_flight(const struct weir_shared *shared, struct weir_loader_counts *counts);
void weir_reading_facts(const struct weir_shared *shared, struct weir_loader_facts *facts);
double weir_reading_cached(struct weir_shared *shared);
/* Measures the storage for this number of workers (io/storage.h). */
void weir_reading_probe(const struct weir_shared *shared, int workers, struct weir_storage_probe *probe);

/* ---- read_plan.c: the extents that tasks will read, in the order of the sampler's plan. Used by the read-ahead
 * thread. */

struct weir_dataset;

/* Finds the first extent of a frame. Returns false if the frame has none. */
bool weir_read_plan_frame(const struct weir_dataset *dataset, int episode, int camera, int t,
                          struct weir_extent *extent);

/* The slots must be open. Returns 0 or -ENOMEM. */
int weir_read_plan_open(struct weir_read_plan **out, const struct weir_shared *shared);
void weir_read_plan_close(struct weir_read_plan **plan);
/* Returns the maximum length of an extent. */
size_t weir_read_plan_extent_max(const struct weir_read_plan *plan);
/* Returns the next extent of a struct weir_read_plan, as the `next` of a struct weir_ahead_config. */
int weir_read_plan_next(void *user, uint64_t from, uint64_t *task_number, struct weir_extent *extent);

#endif
