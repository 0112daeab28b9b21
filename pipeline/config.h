/* config.h: what a loader is asked for. Fill a struct weir_loader_config with weir_loader_config_default, change what
 * the dataset and the model want, and hand it to weir_loader_open (loader.h). */
#ifndef WEIR_PIPELINE_CONFIG_H
#define WEIR_PIPELINE_CONFIG_H

#include "base/err.h"
#include "decoders/decoder.h"
#include "pipeline/sampler.h"
#include "pipeline/state.h"

#include <stdbool.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

enum weir_pad { WEIR_PAD_ZERO, WEIR_PAD_LAST };
enum weir_on_error { WEIR_ON_ERROR_FAIL, WEIR_ON_ERROR_SKIP, WEIR_ON_ERROR_SUBSTITUTE };

enum { WEIR_WORKERS_AUTO = -1, WEIR_WORKERS_MAX = 512, WEIR_IMAGE_SIDE_MAX = 16384 };
/* Distinct errors that a run keeps, and bytes of the text of one. */
enum { WEIR_FAULTS_MAX = 64, WEIR_FAULT_TEXT = 512 };

struct weir_recorder;

struct weir_loader_config {
    const char *data;                                 /* folder of episodes, or one file */
    const char *cameras;                              /* "a,b"; NULL = all but depth */
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

void weir_loader_config_default(struct weir_loader_config *config);
/* What weir_loader_open looks at before it opens anything: 0, or -EINVAL (-ENODEV, -ENOTSUP: an engine or decoder that
 * is not there) and which field is wrong. */
int weir_loader_config_check(const struct weir_loader_config *config, struct weir_err *err);

#ifdef __cplusplus
}
#endif

#endif
