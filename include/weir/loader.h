/* loader.h: a data loader for robot episodes: worker threads produce shuffled batches, and every stage is timed.
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
 * The order and contents of batches depend only on the configuration and its seed. Each epoch delivers its training
 * batches first, then its validation batches. Workers prefetch across splits and epochs as long as there are free
 * slots.
 *
 * One thread opens the loader, takes its batches and closes it. If this thread is already attached to a recorder
 * because it has another loader open, its waits are timed in that recorder. weir_loader_stop may be called from any
 * thread and from signal handlers.
 *
 * With config.device = "cuda", workers decode into pinned memory, and the loader's own streams copy and convert each
 * batch while the program computes. Tensors are device pointers, and weir_loader_next returns a batch as soon as its
 * copy is queued:
 *
 *         weir_loader_wait(loader, batch, stream, &err);   later work on stream waits for the batch
 *         ... kernels on stream ...
 *         weir_loader_release_after(loader, batch, stream);
 *
 * The program never has to wait for the GPU. Streams and events are CUDA's (cudaStream_t, cudaEvent_t); NULL is the
 * default stream. At most three batches may be unreleased at any time. If the GPU is lost, the run ends with an error.
 */
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
 * The samples of batch number n are a pure function of the configuration, the seed and n. Any thread can compute them,
 * and they never depend on workers or timing.
 *
 * Batches are numbered over the whole run: the training batches of epoch 0, its validation batches, the training
 * batches of epoch 1, and so on. Samples are shuffled by a Feistel network over the sample numbers with cycle walking,
 * a permutation that needs no memory (Black and Rogaway, "Ciphers with Arbitrary Finite Domains", 2002), keyed by the
 * seed and the epoch. The validation order always uses the key of epoch 0, so that validation results are comparable
 * between epochs.
 *
 * All ranks of a distributed run have the same number of batches, and no two ranks share a batch. Interleaved, the
 * ranks' batches are those of a single loader, except for a remainder that cannot be divided evenly. */

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

/* Returns the episodes of a split in the order drawn; valid until the loader is closed. */
const int *weir_sampler_episodes(const struct weir_sampler *sampler, enum weir_split split, int *n);
/* Number of batches of a split per epoch, and of samples in these batches, for this rank. */
int weir_sampler_batches(const struct weir_sampler *sampler, enum weir_split split);
uint64_t weir_sampler_samples(const struct weir_sampler *sampler, enum weir_split split);
/* Number of batches in the whole run. */
uint64_t weir_sampler_total(const struct weir_sampler *sampler);

struct weir_plan {
    uint64_t sequence;
    int epoch; /* numbered from 0 */
    enum weir_split split;
    int index; /* of the batch among those of its epoch, split and rank */
    int n;     /* number of samples */
};

/* A position in a run, saved as a small text file. A run can be resumed from it with any number of workers. */

enum { WEIR_STATE_FIELDS = 16, WEIR_STATE_FIELDS_MAX = 32 };

struct weir_state {
    bool given;                             /* false: start from the beginning */
    uint64_t next;                          /* batches delivered so far */
    uint64_t values[WEIR_STATE_FIELDS_MAX]; /* this version uses WEIR_STATE_FIELDS of them */
};

/* ---- options ---- */

enum weir_pad { WEIR_PAD_ZERO, WEIR_PAD_LAST };
enum weir_on_error { WEIR_ON_ERROR_FAIL, WEIR_ON_ERROR_SKIP, WEIR_ON_ERROR_SUBSTITUTE };

enum { WEIR_WORKERS_AUTO = -1, WEIR_WORKERS_MAX = 512, WEIR_IMAGE_SIDE_MAX = 16384 };
/* Maximum number of distinct errors kept per run, and maximum size of an error's text in bytes. */
enum { WEIR_FAULTS_MAX = 64, WEIR_FAULT_TEXT = 512 };

struct weir_recorder;

struct weir_loader_config {
    size_t size;         /* sizeof this struct in the program; set by weir_loader_config_default */
    const char *data;    /* folder of episodes, or one file */
    const char *cameras; /* "a,b"; NULL = all except depth, or all with columns */
    const char *qpos_keys, *action_keys, *image_keys; /* from here to index: see weir_dataset_config */
    bool allow_ragged;
    bool allow_external;
    const char *split;
    const char *index;
    int batch_size;  /* samples per batch; default 8 */
    int num_workers; /* number of threads; WEIR_WORKERS_AUTO (default) = one per usable core, divided among local ranks;
                        0 = the consumer's thread loads the batches */
    /* Number of batches to prefetch; 0 = automatic, at least two. Automatic means four frames per worker. If chunks
     * contain several frames, it is up to sixteen batches and 256 MiB. With a GPU decoder it is up to 1 GiB of batches
     * ("hybrid": 2 GiB, or 4 GiB if the SMs decode too). These larger sizes are limited to 1/16 of the free host memory
     * and, with a GPU decoder, to 1/8 of the free GPU memory. */
    int prefetch;
    int num_epochs;  /* default 1 */
    int max_batches; /* maximum per epoch and split; 0 = all */
    enum weir_sampling sampling;
    int obs_history; /* number n of frames per camera, from t - (n - 1) to t; the first frame is repeated at the start
                        of an episode; default 1 */
    int chunk_size;  /* actions per sample; default 20 */
    /* Actions after the end of an episode: zeros (before normalisation, as in ACT) or the last action. */
    enum weir_pad pad;
    int action_offset; /* the first action of a sample is number max(0, t + action_offset); default 0 */
    uint64_t seed;
    bool no_shuffle; /* take samples and splits in file order */
    bool drop_last;
    struct weir_pixel_format format; /* default rgb, u8, nhwc, not normalised; f16 and bf16 require a GPU */
    const char *crop; /* part of the image to keep: "WxH+X+Y" for all cameras or "CAMERA=WxH+X+Y" for one, separated by
                         commas; NULL = the whole image */
    int image_width, image_height; /* size of images in a batch, after cropping; 0 = as stored */
    double train_split;            /* fraction of the episodes used for training, at least one episode; default 0.9 */
    int rank, world_size;          /* rank in a distributed run; default 0 of 1 */
    /* Rank among the run's processes on this machine; 0 of 1 or 0 of 0 for a single process. Local ranks share the
     * machine's cores (for automatic num_workers and hybrid decoding) and its memory (for automatic sizes and the check
     * at open). "cuda" without a number selects GPU local_rank modulo the number of visible GPUs. */
    int local_rank, local_size;
    int local_cores; /* number of CPUs that all local ranks together may use; 0 = unknown */
    /* Give each rank the same number of batches by repeating the split's first batches. false: by dropping its last
     * batches. */
    bool wrap;
    enum weir_splits splits;  /* splits to load; statistics are always computed from the training split */
    bool raw_state;           /* return qpos and actions as stored, not normalised */
    struct weir_state resume; /* position to resume from; set by weir_loader_restore */
    enum weir_on_error on_error;
    /* "pread", "mmap", "uring" or "null". "auto" (default) chooses according to the page cache or, if that does not
     * decide, by measuring. */
    const char *io;
    int io_depth; /* reads in flight, for an engine that reads ahead; 0 = 64, for servers chosen by measurement */
    bool direct;  /* bypass the page cache (O_DIRECT) */
    bool cold;    /* drop the dataset's files from the page cache before the first read */
    const char *decoder; /* "turbo": the CPU; "nvjpeg": a GPU's JPEG engines; "hybrid": the JPEG engines, the CPU and,
                            if requested, the GPU's SMs; "null"; "auto" (default): "turbo" or, with a GPU, the fastest
                            in a test on frames of the dataset at open */
    const char *device;  /* where batches are placed: "cpu" (or NULL), "cuda:1", or "cuda" for the local rank's GPU */
    /* Memory in bytes for a cache of decoded frames, which later epochs copy instead of decoding again. Frames are
     * cached in the format that they have in a batch. The limit includes the cache's tables and is never exceeded. The
     * cache keeps the first frames that arrive and evicts nothing. 0 = no cache. */
    uint64_t decode_cache_bytes;
    bool deterministic;             /* "hybrid": the frame alone determines which decoder it gets */
    bool no_timing;                 /* disable all timing */
    int number;                     /* identifies this loader's workers in a shared recorder */
    struct weir_recorder *recorder; /* recorder that the loader's threads attach to, so that several loaders share one
                                       table; it must outlive the loader. NULL = the loader creates its own */
    double stall_s;                 /* seconds without progress after which a stall is reported; 0 = 30 */
    /* Called when a stall is detected, on a thread of the loader. text contains several lines: the stage of every
     * worker and the depth of every queue. */
    void (*on_stall)(void *user, const char *text);
    void (*on_index)(void *user, int done, int total); /* progress of opening files, called on the calling thread */
    /* Called while weir_loader_next waits for a batch and while weir_loader_open opens files, at least 10 times per
     * second and after each signal to the thread. If it returns true, the call fails with -EINTR. If NULL, only
     * weir_loader_stop can interrupt a wait. */
    bool (*interrupted)(void *user);
    void *user;
    /* The steps that a sample contains, relative to its own: "KEY=-2,0,5;KEY=0:100", where FIRST:END excludes END. KEY
     * is the name of a camera or of its array, "qpos" or "actions". Steps outside the episode are replaced by its first
     * or last step. Keys that are not named have obs_history frames and states, and chunk_size actions. NULL = none */
    const char *delta_indices;
    bool columns; /* as in weir_dataset_config; each column is a tensor of the batch */
    enum weir_resize resize;
    const char *episodes; /* as in weir_dataset_config */
    bool anonymous;       /* as in weir_dataset_config */
    /* For frames that have a flaw but all of their pixels. */
    enum weir_on_warning on_warning;
    const char *endpoint;   /* as in weir_dataset_config */
    const char *cache;      /* as in weir_dataset_config */
    const char *filter_key; /* as in weir_dataset_config */
    /* New options go after `filter_key`, because programs pass the size of the struct that they were built with. No
     * padding follows this pointer, so the next option makes the struct longer. `resize` uses bytes that were padding
     * after `columns` in a version of the struct that was never released. */
};

/* Fills a struct of size bytes with the defaults. C and C++ programs call weir_loader_config_default. Bindings for
 * other languages pass the size of the struct that they declare. Programs built with an older or newer header keep
 * working (docs/library.md). */
void weir_loader_config_init(struct weir_loader_config *config, size_t size);
static inline void weir_loader_config_default(struct weir_loader_config *config)
{
    weir_loader_config_init(config, sizeof *config);
}
/* Performs the checks that weir_loader_open makes before it opens anything. Returns 0, -EINVAL, or -ENODEV or -ENOTSUP
 * if an engine or decoder is unavailable; the error names the field. */
int weir_loader_config_check(const struct weir_loader_config *config, struct weir_err *err);

/* ---- batches ----
 *
 * A batch contains samples as tensors, in memory that the loader owns. It is valid until it is released. */

struct weir_tensor {
    /* "images", "depth", "qpos", "actions" or "is_pad"; "images/CAMERA" and "depth/CAMERA" if the cameras' sizes or
     * windows differ; "is_pad/CAMERA" and "is_pad/qpos"; "column/NAME" and "is_pad/NAME" for columns */
    const char *name;
    enum weir_dtype dtype; /* f16 and bf16 only for images on a GPU */
    int ndim;
    int64_t shape[6];    /* shape[0] is the number of samples in this batch; there is a history dimension only if
                            obs_history > 1 */
    void *data;          /* dense, row-major; with a GPU, device memory aligned to 256 bytes */
    size_t sample_bytes; /* size of one sample (a row along shape[0]) */
};

enum { WEIR_COLUMNS_MAX = 64, WEIR_TENSORS_MAX = 2 * (WEIR_CAMERAS_MAX + WEIR_COLUMNS_MAX) + 4 };

/* The tensors of a batch:
 * - images [n, colour cameras, (history), H, W, 3] (or 3, H, W), u8 or floats in 0..1;
 * - depth [n, depth cameras, (history), H, W] u16 as stored; with config.columns, [n, depth cameras, (history), 1, H,
 *   W] f32 in millimetres, as LeRobotDataset gives it;
 * - qpos [n, (history), D] and actions [n, chunk, A] f32, normalised with the mean and standard deviation of the
 * training split (the latter at least 1e-2);
 * - is_pad [n, chunk] u8, and is_pad/CAMERA and is_pad/qpos [n, window] u8 for keys of config.delta_indices: whether
 * the step is outside the episode;
 * - with config.columns, column/NAME [n, (window), (width)] f32, i64 or bool for each column of the dataset.
 *
 * If the colour (or depth) cameras differ in size, each has a tensor of its own without the camera dimension. If there
 * are none, there is no such tensor. */
struct weir_batch {
    struct weir_plan plan; /* epoch, split and index; plan.n is the planned number of samples */
    int n;                 /* actual number of samples; less than plan.n if WEIR_ON_ERROR_SKIP skipped some */
    const struct weir_sample *samples;
    int n_tensors;
    struct weir_tensor tensors[WEIR_TENSORS_MAX];
    uint64_t wait_ns;     /* time that weir_loader_next blocked for this batch */
    uint64_t gpu_wait_ns; /* part of wait_ns during which the GPU still held earlier batches */
    uint64_t ready_ns;    /* when the batch was complete in host memory (weir_clock_monotonic_ns) */
    int device;           /* GPU that holds the tensors; -1 = none */
    void *ready; /* CUDA event that completes when the tensors are valid; NULL without a GPU. Valid until release */
};

/* ---- figures ---- */

/* Resources and engines that a loader uses, after automatic choices were made. */
struct weir_loader_facts {
    int workers, prefetch, slots;
    int number;       /* config.number */
    int lendable;     /* maximum number of unreleased batches */
    int cores;        /* this process's share of the usable cores */
    int device;       /* GPU number; -1 = none */
    int gpus;         /* number of visible GPUs if the local rank selected one of them, else 0 */
    char gpu[128];    /* name of the GPU; "" = none */
    size_t gpu_bytes; /* memory allocated on the GPU */
    size_t slot_bytes, index_bytes, extent_max;
    int image_width[WEIR_CAMERAS_MAX], image_height[WEIR_CAMERAS_MAX]; /* size of images in a batch */
    struct weir_view views[WEIR_CAMERAS_MAX];
    bool whole[WEIR_CAMERAS_MAX]; /* images are neither cropped nor resized */
    int images_per_sample;        /* cameras x history */
    int files, files_from_index;
    double index_s;       /* time to open the dataset */
    double open_s;        /* duration of weir_loader_open */
    double first_batch_s; /* time from weir_loader_open to the first batch; 0 = there has been none yet */
    const char *io_requested, *io_used,
        *io_why; /* requested engine, engine in use, and the reason for the choice as a sentence (empty if the engine
                    was requested by name); owned by the loader */
    const char *io_features;                                    /* kernel features in use; may be empty */
    const char *decoder_requested, *decoder_used, *decoder_why; /* the same for decoders */
    int io_depth;         /* maximum number of reads in flight by the read-ahead; 0 = no read-ahead */
    size_t io_pool_bytes; /* memory used by the read-ahead */
    double io_cached;     /* fraction of the dataset in the page cache before the first read, estimated from 64 sampled
                             frames; -1 = unknown */
    double cold_stayed;   /* with config.cold: fraction of the files that remained in the page cache */
    uint64_t cold_bytes;  /* with config.cold: size of the files */
    uint64_t cache_budget_bytes; /* decode cache: requested size; 0 = no cache */
    uint64_t cache_mapped_bytes; /* decode cache: reserved size, at most the size of all frames; 0 if the cache is too
                                    small for one frame */
    uint64_t cache_frames_all, cache_bytes_all; /* frames in the dataset, and the cache size that would hold them all */
};

/* Cost of frames assembled from chunks (WEIR_HOW_BLOCK). A block consists of all chunks that cover the same frames. */
struct weir_chunk_counts {
    uint64_t frames, blocks, chunks;      /* number of frames assembled, of blocks loaded, and of chunks loaded */
    uint64_t frame_bytes, unpacked_bytes; /* size of the assembled frames, and of the chunks unpacked for them */
    uint64_t stored_bytes, read_bytes;    /* stored size of the frames (their share of the blocks), and bytes read */
};

/* A part of the consumer's step, named with weir_loader_mark. */
struct weir_gpu_marked {
    int stage;
    struct weir_stage_stats stats;
};
enum { WEIR_GPU_MARKED_MAX = 4 };

/* Times of a GPU so far, measured by its own clock between events. A batch is counted after it has been released and
 * the GPU has finished with it. */
struct weir_gpu_figures {
    struct weir_stage_stats copy, prepare;              /* 07_h2d_copy, 07b_prepare_batch */
    struct weir_stage_stats train_step, val_step;       /* time from weir_loader_wait to weir_loader_release_after */
    struct weir_gpu_marked marked[WEIR_GPU_MARKED_MAX]; /* marked parts of train_step and val_step */
    int n_marked;
    struct weir_stage_stats stall; /* 08_wait_for_data: time that the consumer's stream was idle, waiting for a batch */
    uint64_t train_stall_ns;       /* part of stall spent on training batches */
    uint64_t copied_bytes;
    uint64_t hidden_ns; /* copy time during which a step ran */
    uint64_t busy_ns;   /* time during which a step or a preparation ran */
};

/* One JPEG decoder of a GPU: the JPEG engines or the SMs. */
struct weir_gpu_engine_figures {
    int hardware;            /* number of JPEG engines; 0 = the SMs decode */
    uint64_t frames, groups; /* decoded so far; a group is a batch of frames submitted together */
    uint64_t busy_ns; /* from submission to completion of groups, by the GPU's clock; overlapping groups count once */
};

/* JPEGs that a GPU has decoded so far. */
enum { WEIR_GPU_ENGINES_MAX = 2 };
struct weir_gpu_decode_figures {
    int n_engines; /* 0 = the GPU decodes no JPEGs */
    struct weir_gpu_engine_figures engines[WEIR_GPU_ENGINES_MAX];
    /* 03i_gpu_decode: time from submission to completion of each group, by the GPU's clock. */
    struct weir_stage_stats groups;
    uint64_t cpu_ns;          /* time that workers spent on frames that they decoded themselves */
    uint64_t to_cpu;          /* number of frames that the GPU rejected or decoded wrongly */
    char reasons[256];        /* reasons for to_cpu: "12 progressive, 3 truncated" */
    uint64_t compared, below; /* number of images compared with the CPU's result, and of those below the PSNR limit */
    double gate_db, least_db; /* the PSNR limit, and the lowest PSNR measured; 99 = identical images */
};

/* Cost of reading and decoding, by camera and by file. */

struct weir_loader;

enum weir_source_kind { WEIR_SOURCE_READ, WEIR_SOURCE_DECODE, WEIR_SOURCES };

enum { WEIR_SOURCE_CALLS = 10 };

struct weir_source_camera {
    struct weir_stage_stats stats[WEIR_SOURCES]; /* count, total, min, max and histogram */
    uint64_t bytes[WEIR_SOURCES];                /* bytes read, and stored size of the frames decoded */
};

/* Cost of frames of videos (WEIR_HOW_VIDEO). A group consists of the pictures from one key frame to the next. */
struct weir_video_counts {
    uint64_t groups, group_pictures; /* groups decoded at least in part, each time, and the pictures in them */
    uint64_t decoded, used;          /* pictures decoded, and those of them that were wanted */
    double key_s;                    /* time to decode the first picture of each group; 0 without timing */
    uint64_t gpu_groups;             /* groups that the GPU's video engines decoded */
};

/* Reads of frames from one file. A block of chunks counts as one read. */
struct weir_source_file_figures {
    uint64_t count, total_ns, max_ns;
    uint64_t window_max_ns; /* maximum since the previous call to weir_loader_sources */
};

/* One read or one decode. For a block of chunks, the frame is the block's first. */
struct weir_source_call {
    enum weir_source_kind kind;
    int episode, camera, t;
    uint64_t ns;
};

struct weir_source_figures {
    int n_cameras, n_files;
    struct weir_source_camera *cameras; /* indexed by the dataset's camera numbers */
    struct weir_source_file_figures *files;
    /* Number of calls listed, the longest first: since open, and since the previous call to weir_loader_sources. */
    int n_calls[WEIR_SOURCES], n_window_calls[WEIR_SOURCES];
    struct weir_source_call calls[WEIR_SOURCES][WEIR_SOURCE_CALLS], window_calls[WEIR_SOURCES][WEIR_SOURCE_CALLS];
};

/* Returns the figures since open in *out, which the caller frees. Returns 0 or -ENOMEM. Must not be called by several
 * threads simultaneously. */
int weir_loader_sources(struct weir_loader *loader, struct weir_source_figures **out);
void weir_source_figures_free(struct weir_source_figures **figures);

struct weir_gpu_block; /* see pipeline/gpu/gpu_blocks.h */

/* ---- the loader ----
 *
 * Opens the dataset, plans the run and starts the workers. Returns -EINTR if config.interrupted returned true. */
int weir_loader_open(struct weir_loader **out, const struct weir_loader_config *config, struct weir_err *err);
/* Stops the workers and frees everything, including unreleased batches. Accepts NULL. */
void weir_loader_close(struct weir_loader **loader);

/* Waits for the next batch. Returns 1 with *batch, which is valid until it is released, or 0 if the run has ended or
 * was stopped. Otherwise returns:
 * - -EBADMSG or another code for a bad frame under WEIR_ON_ERROR_FAIL (always at the same batch);
 * - -ESTALE under WEIR_ON_ERROR_FAIL if a file changed while it was being read (checked at the end of each epoch, and
 * finally before 0 is returned);
 * - -EINTR if config.interrupted returned true (the next call resumes);
 * - -EBUSY if all slots hold unreleased batches;
 * - -EIO or -ENOMEM if the GPU failed. */
int weir_loader_next(struct weir_loader *loader, struct weir_batch **batch, struct weir_err *err);
/* Returns the batch's memory to the loader. A batch on a GPU can be released from any thread. */
void weir_loader_release(struct weir_loader *loader, struct weir_batch *batch);

/* A batch's memory that the consumer keeps (weir_loader_keep). */
struct weir_kept {
    void *memory; /* device memory if it is on a GPU */
    size_t bytes;
    struct weir_gpu_block *block; /* block that contains the memory on a GPU; NULL = host memory */
};

/* Like weir_loader_release, but the consumer keeps the batch's memory, and the loader allocates replacement memory. The
 * tensors remain valid until weir_loader_free_kept, even after weir_loader_close, but *batch itself must no longer be
 * used. On a GPU, the call waits until the batch is complete, so that any stream may use it afterwards. Returns 0;
 * -ENOMEM, in which case the batch must still be released; or -EIO. */
int weir_loader_keep(struct weir_loader *loader, struct weir_batch *batch, struct weir_kept *kept,
                     struct weir_err *err);
/* Frees kept memory, from any thread. GPU memory is freed or reused after the work queued so far on the n streams. The
 * call waits for that work if the loader is closed or has enough spare memory. */
void weir_loader_free_kept(const struct weir_kept *kept, void *const *streams, int n);

/* Makes later work on the stream wait for the batch. The GPU times this wait for the first stream that waits. Returns 0
 * or -EIO. No effect for a batch in host memory. */
int weir_loader_wait(struct weir_loader *loader, struct weir_batch *batch, void *stream, struct weir_err *err);
/* Attributes the stream's work since weir_loader_wait, or since the previous mark, to one stage of the step, timed by
 * the GPU's clock. A batch can have at most 4 marks, and only the first 4 marked stages of a run are timed. Returns
 * 0, -EINVAL if the batch already has 4 marks or weir_loader_wait was not called, or -EIO. No effect for a batch in
 * host memory. */
int weir_loader_mark(struct weir_loader *loader, const struct weir_batch *batch, int stage, void *stream,
                     struct weir_err *err);
/* Ends the step that uses the batch, for programs that do not release the batch until they have waited for the next
 * one. May be called once per batch. Returns 0 or -EIO. */
int weir_loader_step_end(struct weir_loader *loader, struct weir_batch *batch, void *stream, struct weir_err *err);
/* Like weir_loader_release, but the memory is not reused before the work queued so far on the stream has finished. The
 * stream's work since weir_loader_wait is timed as the batch's step. Errors are reported by the next weir_loader_next.
 * For a batch on a GPU, any thread may call this while the loader is open. */
void weir_loader_release_after(struct weir_loader *loader, struct weir_batch *batch, void *stream);
/* Like weir_loader_release_after, but for n streams. With n = 0, the same as weir_loader_release. */
void weir_loader_release_after_all(struct weir_loader *loader, struct weir_batch *batch, void *const *streams, int n);

/* Saves the current position in the run to a file. */
int weir_loader_save(const struct weir_loader *loader, const char *path, struct weir_err *err);
/* Reads a saved position into config; call it before weir_loader_open, which rejects a position saved with different
 * samples. Workers, engines and tensors may differ, and num_epochs may be larger. If the file does not exist, the run
 * starts from the beginning. */
int weir_loader_restore(struct weir_loader_config *config, const char *path, struct weir_err *err);
/* Returns the position that weir_loader_save writes, for use as config.resume of another loader. weir_loader_state_name
 * returns the name of values[i], or NULL past the last one. */
void weir_loader_state(const struct weir_loader *loader, struct weir_state *state);
const char *weir_loader_state_name(int i);
/* Returns the number of batches delivered so far, including those before a restore. */
uint64_t weir_loader_position(const struct weir_loader *loader);

/* Makes weir_loader_next return 0 as soon as possible. Async-signal-safe. */
void weir_loader_stop(struct weir_loader *loader);

/* Stops the workers, after which all figures are final and still available. Unreleased batches remain valid. */
void weir_loader_finish(struct weir_loader *loader);

const struct weir_dataset *weir_loader_dataset(const struct weir_loader *loader);
const struct weir_sampler *weir_loader_sampler(const struct weir_loader *loader);
/* NULL if config.no_timing is set. */
struct weir_recorder *weir_loader_recorder(const struct weir_loader *loader);

void weir_loader_facts(const struct weir_loader *loader, struct weir_loader_facts *facts);

/* Writes one line if frames have EXIF orientations that the dataset's layout ignores, judged by the first frame of each
 * camera. Returns false if they have none. */
bool weir_loader_unturned(const struct weir_loader *loader, char *text, size_t size);

/* Measures facts.io_cached again. Call it on the consumer's thread. */
double weir_loader_cached(struct weir_loader *loader);

/* Returns the mean and standard deviation that normalise qpos (or actions), one float per dimension; owned by the
 * loader. */
void weir_loader_norm(const struct weir_loader *loader, bool actions, const float **mean, const float **std);

/* Counts since open. */
struct weir_loader_counts {
    uint64_t reads, read_bytes;       /* by the I/O engine and by the HDF5 library */
    uint64_t fallback_reads;          /* part of reads that the HDF5 library performed */
    struct weir_helper_counts helper; /* cost of fallback_reads */
    struct weir_decoder_counts decoded;
    uint64_t ahead_reads; /* part of reads that the read-ahead performed entirely */
    struct weir_chunk_counts chunks;
    uint64_t bad_frames, skipped_samples, substituted_frames, bad_episodes;
    uint64_t changed_files; /* files that changed while they were being read; their later frames are bad */
    uint64_t frames_shared; /* frames copied from another sample of their batch instead of being loaded again */
    uint64_t cache_hits, cache_misses; /* frames copied from the decode cache, and lookups that failed */
    uint64_t cache_seen; /* number of distinct frames looked up; 0 if the cache is too small for one frame */
    uint64_t cache_frames, cache_bytes; /* number of frames in the cache, and its memory including tables */
    uint64_t queue_sum, queue_samples; /* sum of the numbers of ready batches that weir_loader_next observed, and number
                                          of observations */
    int queue_min, queue_max; /* minimum and maximum number of ready batches since the last call with reset_extremes */
    struct weir_video_counts video;
    struct weir_server_counts server;
    int in_flight, in_flight_most; /* requests to a server that read-ahead keeps in flight at present, and their bound;
                                      0 = no server, or no read-ahead */
    bool in_flight_fixed;          /* by config.io_depth */
};
void weir_loader_counts(struct weir_loader *loader, struct weir_loader_counts *counts, bool reset_extremes);

/* Thread-safe. All figures are 0 without a GPU. */
void weir_loader_gpu_figures(struct weir_loader *loader, struct weir_gpu_figures *figures);

/* Thread-safe. */
void weir_loader_gpu_decode_figures(struct weir_loader *loader, struct weir_gpu_decode_figures *figures);

/* State of an open loader at this moment. */
struct weir_loader_now {
    int slots, batches_ready; /* number of batches in memory, and of those that the consumer has not taken yet */
    int batches_begun;        /* number of batches that are being filled, ready or lent */
    int workers, workers_busy;
};
/* Thread-safe. The figures are read one after the other while workers change them. */
void weir_loader_now(const struct weir_loader *loader, struct weir_loader_now *now);

/* Records counters in the window being recorded, if any: ready batches, bytes of unfinished and unreleased batches, and
 * busy workers. Thread-safe; meant to be called by weir_profiler_config.on_sample. */
void weir_loader_count_now(const struct weir_loader *loader);

/* Returns distinct error i: text is "FILE: DATASET[t]: reason", and *count is the number of its occurrences. Returns
 * false past the last one. At most WEIR_FAULTS_MAX errors are kept. */
bool weir_loader_fault(struct weir_loader *loader, int i, char text[WEIR_FAULT_TEXT], uint64_t *count);

#ifdef __cplusplus
}
#endif

#endif
