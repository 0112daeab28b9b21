/* loader.h: a data loader for robot episodes: shuffled batches from a pool of worker threads, with every stage timed.
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
 * The order and contents of batches depend only on the configuration and its seed. Each epoch has its training batches
 * first, then its validation batches; workers prefetch across both boundaries, as far as there are slots.
 *
 * One thread opens, consumes and closes. If it is already attached to a recorder (because it has another loader open),
 * its waits are timed there. weir_loader_stop may be called from any thread and from signal handlers.
 *
 * With config.device = "cuda" workers decode into pinned memory, and the loader's own streams copy and convert each
 * batch while the program computes. Tensors are device pointers, and weir_loader_next returns a batch once its copy is
 * queued:
 *
 *         weir_loader_wait(loader, batch, stream, &err);   later work on stream waits for the batch
 *         ... kernels on stream ...
 *         weir_loader_release_after(loader, batch, stream);
 *
 * The program never has to wait for the GPU. Streams and events are CUDA's (cudaStream_t, cudaEvent_t); NULL is the
 * default stream. At most three batches may be unreleased at a time. Losing the GPU ends the run with an error. */
#ifndef WEIR_LOADER_H
#define WEIR_LOADER_H

#include "weir/base.h"
#include "weir/dataset.h"
#include "weir/decoder.h"
#include "weir/recorder.h"
#include "weir/stages.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* ---- sampling ----
 *
 * The samples of batch number n are a pure function of the configuration, the seed and n: any thread may compute them,
 * and they never depend on workers or timing.
 *
 * Batches are numbered over the whole run: the training batches of epoch 0, its validation batches, epoch 1, and so on.
 * Shuffling is a Feistel network over the sample numbers with cycle walking (a permutation that needs no memory; Black
 * and Rogaway, "Ciphers with Arbitrary Finite Domains", 2002), keyed by seed and epoch. The validation order always
 * uses the key of epoch 0, so that its results are comparable between epochs.
 *
 * Ranks of a distributed run have equally many batches and none in common: interleaved, they are the batches of a
 * single loader, up to a tail that does not divide evenly. */

enum weir_sampling {
    WEIR_SAMPLING_TIMESTEP, /* every (episode, t) once per epoch */
    WEIR_SAMPLING_EPISODE,  /* one random start per episode and epoch, as in ACT */
};
enum weir_split { WEIR_SPLIT_TRAIN, WEIR_SPLIT_VAL };
enum weir_splits { WEIR_SPLITS_BOTH, WEIR_SPLITS_TRAIN, WEIR_SPLITS_VAL };

struct weir_sample {
    int episode, t;
};

struct weir_sampler;

/* Episodes of a split, in drawn order; lent until close. */
const int *weir_sampler_episodes(const struct weir_sampler *sampler, enum weir_split split, int *n);
/* Batches of a split per epoch, and samples in them, for this rank. */
int weir_sampler_batches(const struct weir_sampler *sampler, enum weir_split split);
uint64_t weir_sampler_samples(const struct weir_sampler *sampler, enum weir_split split);
/* Batches in the whole run. */
uint64_t weir_sampler_total(const struct weir_sampler *sampler);

struct weir_plan {
    uint64_t sequence;
    int epoch; /* from 0 */
    enum weir_split split;
    int index; /* of the batch within its epoch, split and rank */
    int n;     /* samples */
};

/* Position in a run, saved as a small text file. A run can resume from it with any number of workers. */

enum { WEIR_STATE_FIELDS = 12, WEIR_STATE_FIELDS_MAX = 32 };

struct weir_state {
    bool given;                             /* false: start at the beginning */
    uint64_t next;                          /* batches delivered so far */
    uint64_t values[WEIR_STATE_FIELDS_MAX]; /* WEIR_STATE_FIELDS of them in this version */
};

/* ---- options ---- */

enum weir_pad { WEIR_PAD_ZERO, WEIR_PAD_LAST };
enum weir_on_error { WEIR_ON_ERROR_FAIL, WEIR_ON_ERROR_SKIP, WEIR_ON_ERROR_SUBSTITUTE };

enum { WEIR_WORKERS_AUTO = -1, WEIR_WORKERS_MAX = 512, WEIR_IMAGE_SIDE_MAX = 16384 };
/* Distinct errors kept per run, and bytes of each error's text. */
enum { WEIR_FAULTS_MAX = 64, WEIR_FAULT_TEXT = 512 };

struct weir_recorder;

struct weir_loader_config {
    size_t size;         /* sizeof this struct in the program; set by weir_loader_config_default */
    const char *data;    /* folder of episodes, or one file */
    const char *cameras; /* "a,b"; NULL = all except depth */
    const char *qpos_keys, *action_keys, *image_keys; /* down to index: as in weir_dataset_config */
    bool allow_ragged;
    bool allow_external;
    const char *split;
    const char *index;
    int batch_size;  /* samples; default 8 */
    int num_workers; /* threads; WEIR_WORKERS_AUTO (default) = one per usable core, divided among local ranks; 0 = load
                      * on the consumer's thread */
    /* Batches to prefetch; 0 = automatic: four frames per worker, at least two batches; up to sixteen batches and 256
     * MiB where chunks hold several frames. A GPU decoder gets 1 GiB of batches, "hybrid" 2 GiB, or 4 GiB with the SMs;
     * at most a sixteenth of free host memory and an eighth of the GPU's. */
    int prefetch;
    int num_epochs;  /* default 1 */
    int max_batches; /* per epoch and split; 0 = all */
    enum weir_sampling sampling;
    int obs_history;   /* frames per camera: t - (n - 1) .. t, the first frame repeated at the start; default 1 */
    int chunk_size;    /* actions per sample; default 20 */
    enum weir_pad pad; /* actions past the end: zeros (before normalisation, as in ACT) or the last action */
    int action_offset; /* the first action is that of max(0, t + offset); default 0 */
    uint64_t seed;
    bool no_shuffle; /* samples and split in file order */
    bool drop_last;
    struct weir_pixel_format format; /* default rgb, u8, nhwc, not normalised; f16 and bf16 need a device */
    const char *crop; /* part of the image to keep: "WxH+X+Y" for all cameras, "CAMERA=WxH+X+Y" for one, separated
                       * by commas; NULL = all */
    int image_width, image_height; /* image size in a batch, after cropping; 0 = as stored */
    double train_split;            /* fraction of the episodes, at least one; default 0.9 */
    int rank, world_size;          /* position in a distributed run; 0 of 1 */
    /* Position among the run's processes on this machine; 0 of 1, or 0 of 0. Local ranks share the machine's cores
     * (automatic num_workers, hybrid decoding) and memory (automatic sizes, and the check at open). "cuda" without a
     * number is GPU local_rank modulo the number of visible GPUs. */
    int local_rank, local_size;
    int local_cores; /* CPUs that all local ranks together may use; 0 = unknown */
    bool wrap;       /* ranks that are short of a batch repeat their first ones instead of cutting the others' tail */
    enum weir_splits splits;  /* splits that batches come from; statistics are always the training split's */
    bool raw_state;           /* qpos and actions as stored, not normalised */
    struct weir_state resume; /* where to resume; set by weir_loader_restore */
    enum weir_on_error on_error;
    /* "pread", "mmap", "uring" or "null"; "auto" (default) decides by the page cache, else by measuring. */
    const char *io;
    int io_depth;        /* reads in flight of an engine that reads ahead; 0 = 64 */
    bool direct;         /* bypass the page cache (O_DIRECT) */
    bool cold;           /* drop the dataset's files from the page cache before the first read */
    const char *decoder; /* "turbo": CPU; "nvjpeg": a GPU's JPEG engines; "hybrid": these, the CPU and, if requested,
                          * the GPU's SMs; "null"; "auto" (default): "turbo", or with a GPU the fastest in a test on the
                          * dataset's frames at open */
    const char *device;  /* location of batches: "cpu" (or NULL), "cuda:1", or "cuda": the local rank's GPU */
    /* Bytes of memory for decoded frames, as they lie in batches, so that later epochs copy them. Includes tables and
     * is never exceeded. The first frames to arrive remain until close. 0 = no cache. */
    uint64_t decode_cache_bytes;
    bool deterministic;             /* "hybrid": the choice of decoder depends on the frame alone */
    bool no_timing;                 /* time nothing */
    int number;                     /* distinguishes this loader's workers in a shared recorder */
    struct weir_recorder *recorder; /* recorder that the loader's threads join, so that several loaders share one table;
                                     * must outlive the loader. NULL = the loader's own */
    double stall_s;                 /* report a stall after this long without progress; 0 = 30 */
    /* Called on a stall with lines of text: every worker's stage and every queue's depth. On a thread of the loader. */
    void (*on_stall)(void *user, const char *text);
    void (*on_index)(void *user, int done, int total); /* progress of opening, on the calling thread */
    /* Called at least 10 times per second, and after each signal to the thread, while weir_loader_next waits for a
     * batch and while weir_loader_open opens files. Returning true ends that call with -EINTR. NULL: only
     * weir_loader_stop interrupts. */
    bool (*interrupted)(void *user);
    void *user;
    /* Later options are appended here, because programs pass the size of their struct. */
};

/* Fills a struct of size bytes with defaults. Callers in other languages pass the size that they know; C and C++ use
 * weir_loader_config_default. Programs built with an older or newer header keep working (docs/library.md). */
void weir_loader_config_init(struct weir_loader_config *config, size_t size);
static inline void weir_loader_config_default(struct weir_loader_config *config)
{
    weir_loader_config_init(config, sizeof *config);
}
/* The checks that weir_loader_open makes before it opens anything: 0, or -EINVAL (-ENODEV, -ENOTSUP: an engine or
 * decoder is unavailable) with the name of the field. */
int weir_loader_config_check(const struct weir_loader_config *config, struct weir_err *err);

/* ---- batches ----
 *
 * A batch of samples as tensors, in memory that the loader owns and lends until the batch is released. */

struct weir_tensor {
    /* "images", "depth", "qpos", "actions" or "is_pad"; "images/CAMERA" and "depth/CAMERA" where sizes differ. */
    const char *name;
    enum weir_dtype dtype; /* f16 and bf16 only for images on a GPU */
    int ndim;
    int64_t shape[6];    /* shape[0] = samples in this batch; a history dimension only if obs_history > 1 */
    void *data;          /* dense, row-major; on a GPU device memory, aligned to 256 bytes */
    size_t sample_bytes; /* bytes per row along shape[0] */
};

enum { WEIR_TENSORS_MAX = WEIR_CAMERAS_MAX + 3 };

/* images [n, colour cameras, (history), H, W, 3] (or 3, H, W), u8 or floats in 0..1. depth [n, depth cameras,
 * (history), H, W] u16, always as stored. Where cameras of a kind differ in size, each has its own tensor without the
 * camera dimension; a kind without cameras has none. qpos [n, (history), D] and actions [n, chunk, A] f32, normalised
 * with mean and std of the training split (std at least 1e-2). is_pad [n, chunk] u8. */
struct weir_batch {
    struct weir_plan plan; /* epoch, split, index; plan.n is the planned size */
    int n;                 /* actual samples; fewer than plan.n under WEIR_ON_ERROR_SKIP */
    const struct weir_sample *samples;
    int n_tensors;
    struct weir_tensor tensors[WEIR_TENSORS_MAX];
    uint64_t wait_ns;     /* time that weir_loader_next blocked for this batch */
    uint64_t gpu_wait_ns; /* of that, because the GPU still held earlier batches */
    uint64_t ready_ns;    /* completion in host memory, by weir_clock_monotonic_ns */
    int device;           /* GPU that holds the tensors; -1 = none */
    void *ready;          /* event that completes when the tensors are valid; NULL without a GPU. Valid until release */
};

/* ---- figures ---- */

/* Resources and engines that a loader uses, after automatic choices. */
struct weir_loader_facts {
    int workers, prefetch, slots;
    int number;       /* config.number */
    int lendable;     /* batches that may be unreleased at a time */
    int cores;        /* this process's part of the usable cores */
    int device;       /* number of the GPU; -1 = none */
    int gpus;         /* visible GPUs, if the local rank chose one of them; 0 = it did not */
    char gpu[128];    /* name; "" = none */
    size_t gpu_bytes; /* allocated on the GPU */
    size_t slot_bytes, index_bytes, extent_max;
    int image_width[WEIR_CAMERAS_MAX], image_height[WEIR_CAMERAS_MAX]; /* in a batch */
    struct weir_view views[WEIR_CAMERAS_MAX];
    bool whole[WEIR_CAMERAS_MAX]; /* images enter a batch as stored */
    int images_per_sample;        /* cameras x history */
    int files, files_from_index;
    double index_s;       /* time to open the dataset */
    double open_s;        /* time of weir_loader_open */
    double first_batch_s; /* from weir_loader_open to the first batch; 0 before it */
    const char *io_requested, *io_used,
        *io_why;             /* engines, and the reason in a sentence (empty if requested by name); lent */
    const char *io_features; /* kernel features in use; may be empty */
    const char *decoder_requested, *decoder_used, *decoder_why; /* likewise for decoders */
    int io_depth;                /* reads in flight ahead of the workers; 0 = no read-ahead */
    size_t io_pool_bytes;        /* memory of read-ahead */
    double io_cached;            /* fraction of the dataset in the page cache before the first read,
                                  * from 64 sampled frames; -1 = unknown */
    double cold_stayed;          /* config.cold: fraction of the files that remained cached */
    uint64_t cold_bytes;         /* size of these files */
    uint64_t cache_budget_bytes; /* decode cache: requested size; 0 = no cache */
    uint64_t cache_mapped_bytes; /* decode cache: reserved size, at most that of all frames; 0 if no frame fits */
    uint64_t cache_frames_all, cache_bytes_all; /* frames of the dataset, and the size that would hold them all */
};

/* Cost of frames that share compressed or cut chunks. All chunks over the same frames are a block. */
struct weir_chunk_counts {
    uint64_t frames, blocks, chunks;      /* frames assembled, block loads, chunks loaded */
    uint64_t frame_bytes, unpacked_bytes; /* of the frames, and of the chunks unpacked for them */
    uint64_t stored_bytes, read_bytes;    /* the frames' part of their blocks as stored, and bytes read */
};

/* A part of the consumer's steps (weir_loader_mark). */
struct weir_gpu_marked {
    int stage;
    struct weir_stage_stats stats;
};
enum { WEIR_GPU_MARKED_MAX = 4 };

/* Times of a GPU so far, by its own clock, between events. A batch counts once it is released and the GPU has finished
 * with it. */
struct weir_gpu_figures {
    struct weir_stage_stats copy, prepare;              /* 07_h2d_copy, 07b_prepare_batch */
    struct weir_stage_stats train_step, val_step;       /* from weir_loader_wait to weir_loader_release_after */
    struct weir_gpu_marked marked[WEIR_GPU_MARKED_MAX]; /* parts of the two, if marked */
    int n_marked;
    struct weir_stage_stats stall; /* 08_wait_for_data: the consumer's stream was idle, waiting for a batch */
    uint64_t train_stall_ns;       /* of that, for training batches */
    uint64_t copied_bytes;
    uint64_t hidden_ns; /* copy time during which a step ran */
    uint64_t busy_ns;   /* time during which a step or a preparation ran */
};

/* One decoder of a GPU. */
struct weir_gpu_engine_figures {
    int hardware;            /* number of JPEG engines; 0: the SMs */
    uint64_t frames, groups; /* decoded so far; groups are decode batches */
    uint64_t busy_ns;        /* from submission to completion of groups, by the GPU's clock; overlaps count once */
};

/* JPEGs decoded by a GPU so far. */
enum { WEIR_GPU_ENGINES_MAX = 2 };
struct weir_gpu_decode_figures {
    int n_engines; /* 0 = it decodes none */
    struct weir_gpu_engine_figures engines[WEIR_GPU_ENGINES_MAX];
    struct weir_stage_stats
        groups;               /* 03i_gpu_decode: from submission to completion of each group, by the GPU's clock */
    uint64_t cpu_ns;          /* workers' time for frames that they decode themselves */
    uint64_t to_cpu;          /* frames that the GPU refused or decoded wrongly */
    char reasons[256];        /* their reasons: "12 progressive, 3 truncated" */
    uint64_t compared, below; /* images compared with the CPU's, and those below the PSNR limit */
    double gate_db, least_db; /* the limit, and the lowest PSNR of all compared; 99 = identical */
};

/* Cost of reading and decoding per camera and per file. */

struct weir_loader;

enum weir_source_kind { WEIR_SOURCE_READ, WEIR_SOURCE_DECODE, WEIR_SOURCES };

enum { WEIR_SOURCE_CALLS = 10 };

struct weir_source_camera {
    struct weir_stage_stats stats[WEIR_SOURCES]; /* count, total, min, max and histogram */
    uint64_t bytes[WEIR_SOURCES];                /* bytes read; stored size of the frames decoded */
};

/* Reads of frames of one file. A block of chunks counts as one read. */
struct weir_source_file_figures {
    uint64_t count, total_ns, max_ns;
    uint64_t window_max_ns; /* since the previous call of weir_loader_sources */
};

/* One read or decode; for a block of chunks, its first frame. */
struct weir_source_call {
    enum weir_source_kind kind;
    int episode, camera, t;
    uint64_t ns;
};

struct weir_source_figures {
    int n_cameras, n_files;
    struct weir_source_camera *cameras; /* by the dataset's camera numbers */
    struct weir_source_file_figures *files;
    int n_calls[WEIR_SOURCES],
        n_window_calls[WEIR_SOURCES]; /* the longest, longest first: since open, and since the previous call */
    struct weir_source_call calls[WEIR_SOURCES][WEIR_SOURCE_CALLS], window_calls[WEIR_SOURCES][WEIR_SOURCE_CALLS];
};

/* Figures since open. *out is owned by the caller. -ENOMEM. One thread at a time. */
int weir_loader_sources(struct weir_loader *loader, struct weir_source_figures **out);
void weir_source_figures_free(struct weir_source_figures **figures);

struct weir_gpu_block; /* pipeline/gpu/gpu_blocks.h */

/* ---- the loader ----
 *
 * Opens the dataset, plans the run and starts the workers. -EINTR if config.interrupted returned true. */
int weir_loader_open(struct weir_loader **out, const struct weir_loader_config *config, struct weir_err *err);
/* Stops the workers and frees everything, unreleased batches included. Accepts NULL. */
void weir_loader_close(struct weir_loader **loader);

/* 1: *batch is lent until it is released. 0: the run has ended, or was stopped. Negative: a bad frame under
 * WEIR_ON_ERROR_FAIL (always at the same batch); -ESTALE under it for a file that changed while it was read (checked at
 * the end of each epoch, the last time before 0 is returned); -EINTR if config.interrupted returned true (the next call
 * resumes); -EBUSY if all slots are lent; -EIO or -ENOMEM if the GPU failed. */
int weir_loader_next(struct weir_loader *loader, struct weir_batch **batch, struct weir_err *err);
/* Returns the batch's memory to the loader. For a batch on a GPU any thread may call it. */
void weir_loader_release(struct weir_loader *loader, struct weir_batch *batch);

/* Memory that a consumer keeps. */
struct weir_kept {
    void *memory; /* on a GPU, device memory */
    size_t bytes;
    struct weir_gpu_block *block; /* NULL: host memory */
};

/* As weir_loader_release, but the consumer keeps the batch's memory: tensors remain valid, also after
 * weir_loader_close, until weir_loader_free_kept on any thread. *batch itself must no longer be used. The loader
 * allocates other memory instead. On a GPU it waits until the batch is complete, after which any stream may use it.
 * -ENOMEM: the batch remains lent; -EIO. */
int weir_loader_keep(struct weir_loader *loader, struct weir_batch *batch, struct weir_kept *kept,
                     struct weir_err *err);
/* Frees kept memory. On a GPU it is reused or freed after the work queued so far on the n streams. If the loader is
 * closed, or has enough spare memory, the caller waits for that work. */
void weir_loader_free_kept(const struct weir_kept *kept, void *const *streams, int n);

/* Makes later work on the stream wait for the batch, and times that wait on the GPU, for the first stream that waits.
 * Returns 0 at once for a batch in host memory; -EIO. */
int weir_loader_wait(struct weir_loader *loader, struct weir_batch *batch, void *stream, struct weir_err *err);
/* Names the stream's work since weir_loader_wait, or the previous mark, as one stage of the step, timed by the GPU's
 * clock. At most 4 marks per batch, of 4 stages. Returns 0 at once for a batch in host memory; -EINVAL: too many; -EIO.
 */
int weir_loader_mark(struct weir_loader *loader, const struct weir_batch *batch, int stage, void *stream,
                     struct weir_err *err);
/* Ends the step that uses the batch, for programs that release it only after waiting for the next one. Once per batch;
 * -EIO. */
int weir_loader_step_end(struct weir_loader *loader, struct weir_batch *batch, void *stream, struct weir_err *err);
/* As weir_loader_release, but the memory is reused only after the work queued so far on the stream. The stream's work
 * since weir_loader_wait is timed as the batch's step. Errors are reported by the next weir_loader_next. For batches on
 * a GPU, on any thread while the loader is open. */
void weir_loader_release_after(struct weir_loader *loader, struct weir_batch *batch, void *stream);
/* As weir_loader_release_after, for n streams; with n = 0 as weir_loader_release. */
void weir_loader_release_after_all(struct weir_loader *loader, struct weir_batch *batch, void *const *streams, int n);

/* Saves the position in the run to a file. */
int weir_loader_save(const struct weir_loader *loader, const char *path, struct weir_err *err);
/* Reads a saved position into config, before weir_loader_open, which refuses one that belongs to other samples.
 * Workers, engines, tensors and a larger num_epochs may differ. A missing file means the beginning. */
int weir_loader_restore(struct weir_loader_config *config, const char *path, struct weir_err *err);
/* The position that weir_loader_save writes, for config.resume of another loader. weir_loader_state_name names
 * values[i]; NULL past the last. */
void weir_loader_state(const struct weir_loader *loader, struct weir_state *state);
const char *weir_loader_state_name(int i);
/* Batches delivered so far, including those before a restore. */
uint64_t weir_loader_position(const struct weir_loader *loader);

/* Makes weir_loader_next return 0 soon. Async-signal-safe. */
void weir_loader_stop(struct weir_loader *loader);

/* Stops the workers and keeps all figures, which are final then. Unreleased batches remain valid. */
void weir_loader_finish(struct weir_loader *loader);

const struct weir_dataset *weir_loader_dataset(const struct weir_loader *loader);
const struct weir_sampler *weir_loader_sampler(const struct weir_loader *loader);
/* NULL with no_timing. */
struct weir_recorder *weir_loader_recorder(const struct weir_loader *loader);

void weir_loader_facts(const struct weir_loader *loader, struct weir_loader_facts *facts);

/* facts.io_cached as of now. On the consumer's thread. */
double weir_loader_cached(struct weir_loader *loader);

/* Mean and std used to normalise qpos (or actions): one float per dimension, lent. */
void weir_loader_norm(const struct weir_loader *loader, bool actions, const float **mean, const float **std);

/* Counts since open. */
struct weir_loader_counts {
    uint64_t reads, read_bytes;       /* by the I/O engine and through the HDF5 library */
    uint64_t fallback_reads;          /* of these, through the library */
    struct weir_helper_counts helper; /* cost of these */
    struct weir_decoder_counts decoded;
    uint64_t ahead_reads; /* of reads, those ahead of the workers */
    struct weir_chunk_counts chunks;
    uint64_t bad_frames, skipped_samples, substituted_frames, bad_episodes;
    uint64_t changed_files;             /* files that changed while they were read; their later frames are bad */
    uint64_t frames_shared;             /* frames copied within their batch instead of loaded again */
    uint64_t cache_hits, cache_misses;  /* frames copied from the decode cache, and failed lookups */
    uint64_t cache_seen;                /* distinct frames looked up; 0 if the cache is too small for a frame */
    uint64_t cache_frames, cache_bytes; /* frames in the cache, and its memory with tables */
    uint64_t queue_sum, queue_samples;  /* sum of ready batches seen by weir_loader_next, and number of observations */
    int queue_min, queue_max;           /* since the last call with reset_extremes */
};
void weir_loader_counts(struct weir_loader *loader, struct weir_loader_counts *counts, bool reset_extremes);

/* Any thread; zeros without a GPU. */
void weir_loader_gpu_figures(struct weir_loader *loader, struct weir_gpu_figures *figures);

/* Any thread. */
void weir_loader_gpu_decode_figures(struct weir_loader *loader, struct weir_gpu_decode_figures *figures);

/* Records counters while a window records: ready batches, bytes of batches in progress or lent, and busy workers. Any
 * thread; meant for weir_profiler_config.on_sample. */
void weir_loader_count_now(const struct weir_loader *loader);

/* Distinct error i: text is "FILE: DATASET[t]: reason". False past the last, at most WEIR_FAULTS_MAX. */
bool weir_loader_fault(struct weir_loader *loader, int i, char text[WEIR_FAULT_TEXT], uint64_t *count);

#ifdef __cplusplus
}
#endif

#endif
