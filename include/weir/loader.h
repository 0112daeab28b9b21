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

/* Which samples make up batch number n. A pure function of the configuration, the seed and the number: no
 * state, so that any thread may ask for any batch, and the answer never depends on workers or timing.
 *
 * Batches are numbered over the whole run: the training batches of epoch 0, its validation batches, epoch 1, and so on.
 * Shuffling is a Feistel network over the sample numbers with cycle walking (a permutation that needs no memory; Black
 * and Rogaway, "Ciphers with Arbitrary Finite Domains", 2002), keyed by seed and epoch. Validation is drawn once, with
 * the key of epoch 0, so that its figures can be compared from epoch to epoch.
 *
 * Ranks of a distributed run have the same number of batches, and none in common: the ranks' batches, taken in turn,
 * are the stream of a single loader, up to the tail that does not go round. */

enum weir_sampling {
    WEIR_SAMPLING_TIMESTEP, /* every (episode, t) once an epoch */
    WEIR_SAMPLING_EPISODE,  /* one random start per episode and epoch, as ACT does */
};
enum weir_split { WEIR_SPLIT_TRAIN, WEIR_SPLIT_VAL };
enum weir_splits { WEIR_SPLITS_BOTH, WEIR_SPLITS_TRAIN, WEIR_SPLITS_VAL };

struct weir_sample {
    int episode, t;
};

struct weir_sampler;

/* Episodes of a split, in the order of the split's drawing; lent. */
const int *weir_sampler_episodes(const struct weir_sampler *sampler, enum weir_split split, int *n);
/* Batches of a split in one epoch, and samples in them; of this rank. */
int weir_sampler_batches(const struct weir_sampler *sampler, enum weir_split split);
uint64_t weir_sampler_samples(const struct weir_sampler *sampler, enum weir_split split);
/* Batches of the whole run. */
uint64_t weir_sampler_total(const struct weir_sampler *sampler);

struct weir_plan {
    uint64_t sequence;
    int epoch; /* from 0 */
    enum weir_split split;
    int index; /* of the batch within its epoch and split, and this rank */
    int n;     /* samples */
};

/* Where a run is, in a small text file: enough to go on with the next batch, on any number of workers, because
 * a batch is a pure function of the configuration, the seed and its number. */

enum { WEIR_STATE_FIELDS = 12, WEIR_STATE_FIELDS_MAX = 32 };

struct weir_state {
    bool given;                             /* there is one to go on from */
    uint64_t next;                          /* batches of the run that were handed out */
    uint64_t values[WEIR_STATE_FIELDS_MAX]; /* of which this version has WEIR_STATE_FIELDS */
};

/* What a loader is asked for. Fill a struct weir_loader_config with weir_loader_config_default, change what
 * the dataset and the model want, and hand it to weir_loader_open. */

enum weir_pad { WEIR_PAD_ZERO, WEIR_PAD_LAST };
enum weir_on_error { WEIR_ON_ERROR_FAIL, WEIR_ON_ERROR_SKIP, WEIR_ON_ERROR_SUBSTITUTE };

enum { WEIR_WORKERS_AUTO = -1, WEIR_WORKERS_MAX = 512, WEIR_IMAGE_SIDE_MAX = 16384 };
/* Distinct errors that a run keeps, and bytes of the text of one. */
enum { WEIR_FAULTS_MAX = 64, WEIR_FAULT_TEXT = 512 };

struct weir_recorder;

struct weir_loader_config {
    size_t size;         /* of this struct as the program knows it; weir_loader_config_default sets it */
    const char *data;    /* folder of episodes, or one file */
    const char *cameras; /* "a,b"; NULL = all but depth */
    const char *qpos_keys, *action_keys, *image_keys; /* as in weir_dataset_config */
    bool allow_ragged;                                /* the same */
    bool allow_external;                              /* the same */
    const char *split;                                /* the same */
    const char *index;                                /* the same: file that keeps the index */
    int batch_size;                                   /* samples; 8 */
    int num_workers; /* threads; WEIR_WORKERS_AUTO = one per usable core, of which local ranks have a part each; 0 =
                        on the consumer's thread */
    int prefetch;    /* batches that workers may be ahead; 0 = automatic: four frames per worker, at least two; up to
                        sixteen, and 256 MiB, where chunks hold several frames; where a GPU decodes 1 GiB of them, with
                        "hybrid" 2, and 4 when the SMs take part, but no more than a sixteenth of the host's memory that is
                        free, and an eighth of the GPU's */
    int num_epochs;  /* 1 */
    int max_batches; /* per epoch and split; 0 = all */
    enum weir_sampling sampling;
    int obs_history;   /* frames per camera: t - (n - 1) .. t, the first one repeated at the start; 1 */
    int chunk_size;    /* actions; 20 */
    enum weir_pad pad; /* actions after the end: zeros (before normalisation, as ACT does) or the last one */
    int action_offset; /* the first action is that of max(0, t + offset); 0 */
    uint64_t seed;
    bool no_shuffle; /* samples and the split in the order of the files */
    bool drop_last;
    struct weir_pixel_format format; /* rgb, u8, nhwc, not normalised; f16 and bf16 with a device only */
    const char *crop;                /* part of the images that is wanted: "WxH+X+Y" of all cameras, "CAMERA=WxH+X+Y"
                                        of one, several with commas; NULL = all */
    int image_width, image_height;   /* size of the images in a batch, after the crop; 0 = as they are */
    double train_split;              /* 0.9 of the episodes, by number, at least one */
    int rank, world_size;            /* this loader's part of a distributed run; 0 of 1 */
    /* Of the run's processes those on this machine, and which of them this is: 0 of 1, and 0 of 0 is the same. They
     * share its cores (num_workers auto, and what hybrid leaves) and its memory (what is automatic, and what is refused
     * at open), and "cuda" without a number is GPU local_rank modulo the number of GPUs that the process sees. */
    int local_rank, local_size;
    int local_cores;          /* CPUs that all of them may use together (weir_cores_part); 0 = not known */
    bool wrap;                /* no rank's tail is cut: the first batches are taken again */
    enum weir_splits splits;  /* whose batches come; statistics are the training split's all the same */
    bool raw_state;           /* qpos and actions as they are stored, not normalised */
    struct weir_state resume; /* by weir_loader_restore: the run begins where that one stopped */
    enum weir_on_error on_error;
    const char *io; /* "auto": by what is in the page cache, and else by trying; "pread", "mmap", "uring", "null" */
    int io_depth;   /* reads in flight of an engine that reads ahead; 0 = 64 */
    bool direct;    /* reads pass the page cache by (O_DIRECT) */
    bool cold;      /* the dataset's files are dropped from the page cache before the first read */
    const char *decoder; /* "auto": "turbo", on the CPU, and with a GPU what some frames of the dataset, decoded in
                            several ways at open, show; "nvjpeg": by a GPU's JPEG engines, "hybrid": by these, the CPU
                            and, when it was asked for, the GPU's SMs; "null" */
    const char *device;  /* where batches are: "cpu" (or NULL), "cuda:1", "cuda": the GPU of the local rank */
    /* Memory, bytes, that keeps decoded frames as they lie in the batch, so that later epochs copy them; tables are in
     * it, and it is never exceeded. The first frames that come stay until the loader is closed. 0 = none. */
    uint64_t decode_cache_bytes;
    bool deterministic; /* decoder "hybrid": who decodes which frame depends on the frame alone */
    bool no_timing;     /* no zones: batches only */
    int number;         /* tells the workers of this loader from those of others in the recorder's session */
    struct weir_recorder *recorder; /* session that the loader's threads join, so that several loaders have one table;
                                       outlives the loader. NULL = one of its own */
    double stall_s;                 /* report a stall after this long without progress; 0 = 30 */
    /* A stall: every worker's stage and every queue's depth, lines of text. From a thread of the loader. */
    void (*on_stall)(void *user, const char *text);
    void (*on_index)(void *user, int done, int total); /* progress of opening; from the calling thread */
    /* Asked at least 10 times a second by weir_loader_next while it waits for a batch, after each signal that its
     * thread got, too, and by weir_loader_open while it opens files; true ends that with -EINTR. NULL = nothing ends it
     * but weir_loader_stop. */
    bool (*interrupted)(void *user);
    void *user;
};

/* The defaults of a struct of size bytes: what weir_loader_config_default calls, and what callers in other languages
 * call with the size that they know. Programs that were built with an older or newer header keep working: options that
 * they do not know have their defaults. */
void weir_loader_config_init(struct weir_loader_config *config, size_t size);
static inline void weir_loader_config_default(struct weir_loader_config *config)
{
    weir_loader_config_init(config, sizeof *config);
}
/* What weir_loader_open looks at before it opens anything: 0, or -EINVAL (-ENODEV, -ENOTSUP: an engine or decoder that
 * is not there) and which field is wrong. */
int weir_loader_config_check(const struct weir_loader_config *config, struct weir_err *err);

/* What a loader gives out: a batch of samples as tensors, in memory that the loader owns and lends until the
 * batch's release. */

struct weir_tensor {
    const char *name; /* "images" or "images/CAMERA" where sizes differ, "depth" or "depth/CAMERA", "qpos", "actions",
                         "is_pad" */
    enum weir_dtype dtype; /* f16 and bf16: of images on a GPU */
    int ndim;
    int64_t shape[6];    /* shape[0] = samples of this batch; a dimension for history only when obs_history > 1 */
    void *data;          /* dense, row-major; on a GPU, in its memory, aligned to 256 bytes */
    size_t sample_bytes; /* of one row along shape[0] */
};

enum { WEIR_TENSORS_MAX = WEIR_CAMERAS_MAX + 3 };

/* images [n, colour cameras, (history), H, W, 3] (or 3, H, W), u8 or f32 in 0..1; depth [n, depth cameras, (history),
 * H, W] u16, as stored whatever format says. Where the cameras of a kind differ in size each has a tensor of its own,
 * without that dimension; of a kind without cameras there is none. qpos [n, (history), D] f32 and actions [n, chunk, A]
 * f32, normalised with the training split's mean and std (std at least 1e-2); is_pad [n, chunk] u8. */
struct weir_batch {
    struct weir_plan plan; /* epoch, split, index; plan.n is what was asked for */
    int n;                 /* samples that came; fewer than plan.n after --on-error skip */
    const struct weir_sample *samples;
    int n_tensors;
    struct weir_tensor tensors[WEIR_TENSORS_MAX];
    uint64_t wait_ns;     /* how long weir_loader_next blocked for its data */
    uint64_t gpu_wait_ns; /* and because the GPU was behind: it still had the batches before */
    uint64_t ready_ns;    /* when it was complete (in the host's memory), by weir_clock_monotonic_ns */
    int device;           /* the GPU that the tensors are on; -1 = none */
    void *ready;          /* event that passes when they are there; NULL without a GPU. Until the release */
};

/* What a loader uses: how many workers and slots, which GPU, which engines, how much memory, and how long
 * opening took. weir_loader_facts fills it. */

/* What the loader uses: where the configuration said automatic, the choice. */
struct weir_loader_facts {
    int workers, prefetch, slots;
    int number;       /* config.number */
    int lendable;     /* batches that may be out at a time */
    int cores;        /* this process's part of the usable cores */
    int device;       /* the GPU's number; -1 = none */
    int gpus;         /* that the process sees, where the local rank chose among them; 0 = it did not */
    char gpu[128];    /* its name; "" = none */
    size_t gpu_bytes; /* of its memory, taken */
    size_t slot_bytes, index_bytes, extent_max;
    int image_width[WEIR_CAMERAS_MAX], image_height[WEIR_CAMERAS_MAX]; /* in a batch */
    struct weir_view views[WEIR_CAMERAS_MAX];
    bool whole[WEIR_CAMERAS_MAX]; /* images go into a batch as they are stored */
    int images_per_sample;        /* cameras x history */
    int files, files_from_index;
    double index_s;       /* opening the dataset */
    double open_s;        /* all of weir_loader_open */
    double first_batch_s; /* from its call to the first batch that weir_loader_next gave out; 0 before */
    const char *io_requested, *io_used, *io_why; /* engines, and a sentence (empty when it was asked for); lent */
    const char *io_features;                     /* what the kernel gave the engine; may be empty */
    const char *decoder_requested, *decoder_used, *decoder_why; /* the same for decoders */
    int io_depth;                /* reads in flight ahead of the workers; 0 = no read-ahead */
    size_t io_pool_bytes;        /* memory of read-ahead */
    double io_cached;            /* fraction of the dataset in the page cache before the first read,
                                    of 64 sampled frames; -1 = not known */
    double cold_stayed;          /* config.cold: fraction of the files that stayed all the same */
    uint64_t cold_bytes;         /* bytes of these files */
    uint64_t cache_budget_bytes; /* of the decode cache, as asked for; 0 = there is none */
    uint64_t cache_mapped_bytes; /* of it, reserved: not more than all frames take; 0 when not one fits */
    uint64_t cache_frames_all, cache_bytes_all; /* the dataset's frames, and the budget that would keep them all */
};

/* What frames in chunks that are compressed or cut frames have cost. All chunks over the same frames are a block. */
struct weir_chunk_counts {
    uint64_t frames, blocks, chunks;      /* frames put together, from so many loads of blocks, of so many chunks */
    uint64_t frame_bytes, unpacked_bytes; /* of the frames, and of the chunks unpacked for them */
    uint64_t stored_bytes, read_bytes;    /* the frames' part of their blocks as stored, and what was read */
};

/* What a GPU has done for a loader, by its own clock: copies, preparation, the consumer's steps, and the
 * JPEGs that it decoded. weir_loader_gpu_figures and weir_loader_gpu_decode_figures fill these. */

/* A part of the consumer's steps (weir_loader_mark). */
struct weir_gpu_marked {
    int stage;
    struct weir_stage_stats stats;
};
enum { WEIR_GPU_MARKED_MAX = 4 };

/* What the GPU has done so far, by its own clock: stages between events. Batches count when they were released and the
 * GPU is through with them. */
struct weir_gpu_figures {
    struct weir_stage_stats copy, prepare;              /* 07_h2d_copy, 07b_prepare_batch */
    struct weir_stage_stats train_step, val_step;       /* from weir_loader_wait to weir_loader_release_after */
    struct weir_gpu_marked marked[WEIR_GPU_MARKED_MAX]; /* parts of the two, where steps were marked */
    int n_marked;
    struct weir_stage_stats stall; /* 08_wait_for_data: the consumer's stream, idle, waited for a batch */
    uint64_t train_stall_ns;       /* of it, for batches to train on */
    uint64_t copied_bytes;
    uint64_t hidden_ns; /* of copy: while a step ran */
    uint64_t busy_ns;   /* a step or a preparation ran */
};

/* One of a GPU's ways to decode. */
struct weir_gpu_engine_figures {
    int hardware;            /* as many JPEG engines; 0: the SMs */
    uint64_t frames, groups; /* decoded so far, in decode batches that were handed over */
    uint64_t busy_ns; /* from a decode batch's hand-over to its end, by the GPU's clock; where two overlap, once */
};

/* JPEGs that a GPU has decoded so far. */
enum { WEIR_GPU_ENGINES_MAX = 2 };
struct weir_gpu_decode_figures {
    int n_engines; /* 0 = it decodes none */
    struct weir_gpu_engine_figures engines[WEIR_GPU_ENGINES_MAX];
    struct weir_stage_stats groups; /* 03i_gpu_decode: each from its hand-over to its end, by the GPU's clock */
    uint64_t cpu_ns;                /* of workers' time, for what they decode */
    uint64_t to_cpu;                /* frames that it did not take, or whose pictures were wrong */
    char reasons[256];              /* of these: "12 progressive, 3 truncated" */
    uint64_t compared, below;       /* pictures compared with the CPU's, and those below the PSNR check's limit */
    double gate_db, least_db;       /* that limit; of all that were compared the lowest, 99 = identical */
};

/* What reading and decoding took of each camera and each file of a loader so far. */

struct weir_loader;

/* What is counted: sources.h says what belongs to it. */
enum weir_source_kind { WEIR_SOURCE_READ, WEIR_SOURCE_DECODE, WEIR_SOURCES };

enum { WEIR_SOURCE_CALLS = 10 };

struct weir_source_camera {
    struct weir_stage_stats stats[WEIR_SOURCES]; /* count, total, min, max and histogram */
    uint64_t bytes[WEIR_SOURCES];                /* read; as stored, of the frames decoded */
};

/* Reads of frames of one file. Of a block of chunks, all that was read of it is one read. */
struct weir_source_file_figures {
    uint64_t count, total_ns, max_ns;
    uint64_t window_max_ns; /* since the figures before */
};

/* One call: of a block of chunks, of its first frame. */
struct weir_source_call {
    enum weir_source_kind kind;
    int episode, camera, t;
    uint64_t ns;
};

struct weir_source_figures {
    int n_cameras, n_files;
    struct weir_source_camera *cameras; /* by the dataset's numbers */
    struct weir_source_file_figures *files;
    int n_calls[WEIR_SOURCES], n_window_calls[WEIR_SOURCES]; /* the longest, longest first: of all, and since then */
    struct weir_source_call calls[WEIR_SOURCES][WEIR_SOURCE_CALLS], window_calls[WEIR_SOURCES][WEIR_SOURCE_CALLS];
};

/* Since the loader was opened. *out is owned by the caller. -ENOMEM. One thread at a time. */
int weir_loader_sources(struct weir_loader *loader, struct weir_source_figures **out);
void weir_source_figures_free(struct weir_source_figures **figures);

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
