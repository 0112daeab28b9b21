/* loader.h: serves shuffled batches of robot episodes from a pool of worker threads, with every stage timed.
 *
 *     struct weir_loader_config config;
 *     weir_loader_config_default(&config);
 *     config.data = "episodes/";
 *     struct weir_loader *loader;
 *     struct weir_err err = WEIR_ERR_NONE;
 *     if (weir_loader_open(&loader, &config, &err) < 0) ...
 *     struct weir_batch *batch;
 *     while ((rc = weir_loader_next(loader, &batch, &err)) > 0) {
 *         ... batch->tensors ...
 *         weir_loader_release(loader, batch);
 *     }
 *     weir_loader_close(&loader);
 *
 * Batches come in an order and with contents that depend only on the configuration's seed: for each epoch its training
 * batches, then its validation batches. Workers run ahead over both borders, as far as the slots go. One thread opens,
 * consumes and closes; when that thread is attached to a recorder already (it has another loader open, say), its waits
 * are timed there and not in this loader's recorder. weir_loader_stop may be called from anywhere, a signal handler
 * included.
 *
 * With config.device = "cuda" batches are made on a GPU: workers decode to pinned memory, copies and the conversion to
 * the format asked for run on streams of the loader's, beside what the program computes. Tensors are then device
 * pointers, and weir_loader_next gives a batch out as soon as its copy is queued:
 *
 *         weir_loader_wait(loader, batch, stream, &err);   what is queued on stream from now on finds it there
 *         ... kernels on stream ...
 *         weir_loader_release_after(loader, batch, stream);
 *
 * The program never has to wait for the GPU. Streams and events are CUDA's (cudaStream_t, cudaEvent_t), NULL is the
 * default stream. Three batches at most are out at a time. A GPU that is lost ends the run with an error. */
#ifndef WEIR_PIPELINE_LOADER_H
#define WEIR_PIPELINE_LOADER_H

#include "datasets/dataset.h"
#include "pipeline/batch.h"
#include "pipeline/config.h"
#include "pipeline/facts.h"
#include "pipeline/gpu_figures.h"
#include "pipeline/loader_stages.h"
#include "pipeline/sampler.h"
#include "prof/record/recorder.h"

#include <stdbool.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

struct weir_loader;
struct weir_gpu_block; /* pipeline/gpu/gpu_blocks.h */

/* Opens the dataset, plans the run and starts the workers. -EINTR when config.interrupted said so. */
int weir_loader_open(struct weir_loader **out, const struct weir_loader_config *config, struct weir_err *err);
/* Stops the workers and frees all. Batches that are out become invalid. Accepts NULL. */
void weir_loader_close(struct weir_loader **loader);

/* 1: *batch is lent until its release. 0: the run is over, or was stopped. Negative: a bad frame under
 * WEIR_ON_ERROR_FAIL (always at the same batch, whatever the workers do), -EINTR when config.interrupted said so (the
 * next call goes on), -ESTALE under it for a file that changed
 * while it was read (looked for at each epoch's end by another thread; the last look is over before 0 is returned),
 * -EBUSY when all slots are lent out, or what ended the GPU's work (-EIO, -ENOMEM). */
int weir_loader_next(struct weir_loader *loader, struct weir_batch **batch, struct weir_err *err);
/* The consumer is done with the batch now; on a GPU too, and then on any thread. */
void weir_loader_release(struct weir_loader *loader, struct weir_batch *batch);

/* Memory that is a consumer's for good. */
struct weir_kept {
    void *memory; /* on a GPU, in its memory */
    size_t bytes;
    struct weir_gpu_block *block; /* NULL: the host's */
};

/* As weir_loader_release, but the batch's memory is the consumer's from now on: tensors stay where they are, after
 * weir_loader_close too, until weir_loader_free_kept, for which any thread will do. *batch is not to be looked at any
 * more. The loader takes other memory in its place. On a GPU it waits until the batch is there: any stream may use it
 * then. -ENOMEM: there is no memory, and the batch is still lent; -EIO. */
int weir_loader_keep(struct weir_loader *loader, struct weir_batch *batch, struct weir_kept *kept,
                     struct weir_err *err);
/* On a GPU the memory is used again, or freed, only after what is queued on the n streams so far. Once the loader is
 * closed, or where it has spare memory enough, the caller waits for the GPU's work until now. */
void weir_loader_free_kept(const struct weir_kept *kept, void *const *streams, int n);

/* What is queued on the stream from now on waits for the batch, on the GPU; how long that lasts is measured there, for
 * the first stream that waits for it. 0 at once for a batch that is on no GPU; -EIO. */
int weir_loader_wait(struct weir_loader *loader, struct weir_batch *batch, void *stream, struct weir_err *err);
/* What the stream does between weir_loader_wait, or the mark before, and here is a part of the step: the table shows
 * the time of each stage by the GPU's clock. At most 4 of a batch, of 4 stages. 0 at once for a batch that is on no
 * GPU; -EINVAL: too many; -EIO. */
int weir_loader_mark(struct weir_loader *loader, const struct weir_batch *batch, int stage, void *stream,
                     struct weir_err *err);
/* What the stream does from weir_loader_wait to here is taken for the step that uses the batch, where the batch is
 * released later than the next one is waited for. Once a batch; -EIO. */
int weir_loader_step_end(struct weir_loader *loader, struct weir_batch *batch, void *stream, struct weir_err *err);
/* As weir_loader_release, but the batch's memory is used again only after what is queued on the stream so far. What the
 * stream does between weir_loader_wait and here is taken for the step that uses the batch. Errors are those of the next
 * weir_loader_next. Of batches on a GPU, which any thread may release as long as the loader is open. */
void weir_loader_release_after(struct weir_loader *loader, struct weir_batch *batch, void *stream);
/* The same, after what is queued on each of n streams; with n 0 as weir_loader_release. */
void weir_loader_release_after_all(struct weir_loader *loader, struct weir_batch *batch, void *const *streams, int n);

/* Writes where the run is to a file: which batches were handed out. */
int weir_loader_save(const struct weir_loader *loader, const char *path, struct weir_err *err);
/* Reads it into a configuration, before weir_loader_open, which refuses one that would give other samples; workers,
 * engines and tensors may be others, and num_epochs more. Without such a file the run begins at its beginning. */
int weir_loader_restore(struct weir_loader_config *config, const char *path, struct weir_err *err);
/* What weir_loader_save writes, for config.resume of another run; what its values are called, NULL past the last. */
void weir_loader_state(const struct weir_loader *loader, struct weir_state *state);
const char *weir_loader_state_name(int i);
/* Batches of the run that were handed out, those before a restore included. */
uint64_t weir_loader_position(const struct weir_loader *loader);

/* Makes weir_loader_next return 0 soon. Async-signal-safe. */
void weir_loader_stop(struct weir_loader *loader);

/* Ends the workers but keeps all figures, so that they are final. Called by close; batches that are out stay valid. */
void weir_loader_finish(struct weir_loader *loader);

const struct weir_dataset *weir_loader_dataset(const struct weir_loader *loader);
const struct weir_sampler *weir_loader_sampler(const struct weir_loader *loader);
/* NULL with no_timing. */
struct weir_recorder *weir_loader_recorder(const struct weir_loader *loader);

/* What the loader uses: where the configuration said automatic, the choice. */
void weir_loader_facts(const struct weir_loader *loader, struct weir_loader_facts *facts);

/* As facts.io_cached, now. From the consumer's thread. */
double weir_loader_cached(struct weir_loader *loader);

/* Mean and std that normalise qpos (or actions): dim floats, lent. */
void weir_loader_norm(const struct weir_loader *loader, bool actions, const float **mean, const float **std);

/* Counts since the loader was opened. */
struct weir_loader_counts {
    uint64_t reads, read_bytes;       /* by the io engine and through the library */
    uint64_t fallback_reads;          /* of these, through the library */
    struct weir_helper_counts helper; /* what the process that serves these took */
    struct weir_decoder_counts decoded;
    uint64_t ahead_reads; /* of these, read ahead of the workers */
    struct weir_chunk_counts chunks;
    uint64_t bad_frames, skipped_samples, substituted_frames, bad_episodes;
    uint64_t changed_files;             /* while they were read: their frames are bad from then on */
    uint64_t frames_shared;             /* not loaded again but copied within their batch */
    uint64_t cache_hits, cache_misses;  /* frames copied out of the decode cache, and looked up in vain */
    uint64_t cache_seen;                /* distinct frames looked up; 0 when the budget is too small for a frame */
    uint64_t cache_frames, cache_bytes; /* kept in it now, and the memory that takes, tables included */
    uint64_t queue_sum, queue_samples;  /* ready batches seen by weir_loader_next, to be averaged */
    int queue_min, queue_max;           /* since the last call of weir_loader_counts with reset */
};
void weir_loader_counts(struct weir_loader *loader, struct weir_loader_counts *counts, bool reset_extremes);

/* Any thread; zeros without a GPU. */
void weir_loader_gpu_figures(struct weir_loader *loader, struct weir_gpu_figures *figures);

/* Any thread. */
void weir_loader_gpu_decode_figures(struct weir_loader *loader, struct weir_gpu_decode_figures *figures);

/* While a window records: counters of batches that are ready, bytes of batches in the making or with the consumer, and
 * workers at work. Any thread; made for weir_profiler_config.on_sample. */
void weir_loader_count_now(const struct weir_loader *loader);

/* Distinct errors kept, at most WEIR_FAULTS_MAX: text is "FILE: DATASET[t]: reason". False past the last. */
bool weir_loader_fault(struct weir_loader *loader, int i, char text[WEIR_FAULT_TEXT], uint64_t *count);

#ifdef __cplusplus
}
#endif

#endif
