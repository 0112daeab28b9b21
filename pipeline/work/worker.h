/* worker.h: what workers share, and what each has for itself. */
#ifndef WEIR_PIPELINE_WORK_WORKER_H
#define WEIR_PIPELINE_WORK_WORKER_H

#include "pipeline/config.h"
#include "pipeline/faults.h"
#include "pipeline/fetch.h"
#include "pipeline/file_watch.h"
#include "pipeline/frame_cache.h"
#include "pipeline/read_ahead.h"
#include "pipeline/slot.h"
#include "pipeline/sources.h"
#include "pipeline/views.h"

/* What --decoder auto takes: choose_decoder.h. */
struct weir_decoder_choice {
    const char *decoder;       /* "turbo", "nvjpeg" or "hybrid" */
    double cpu_rate, gpu_rate; /* frames a second; 0 = not tried */
    char why[512];             /* a sentence */
};

/* Mean and std of one tensor's dimensions, as float, std clipped. */
struct weir_norm {
    int dim;
    float *mean, *std;
};

/* Made at open; only the atomics, slots and faults change afterwards. */
struct weir_shared {
    struct weir_loader_config config;
    struct weir_dataset *dataset;
    struct weir_file_set *files;
    struct weir_reading reading; /* the engine, and read-ahead */
    const char *decoder_requested;
    int cores;     /* this process's part of those that are usable */
    int gpu, gpus; /* number, -1 = none; how many there are when local ranks were to be told apart, else 0 */
    struct weir_decoder_choice decoder_choice; /* of "auto"; of a named one, why it has nothing to do */
    struct weir_sampler *sampler;
    struct weir_recorder *recorder;
    struct weir_camera_probe probes[WEIR_CAMERAS_MAX];
    struct weir_view views[WEIR_CAMERAS_MAX]; /* what workers make of the images */
    struct weir_view
        out_views[WEIR_CAMERAS_MAX]; /* what a batch has of them: the same, unless the GPU crops and resizes */
    struct weir_batch_layout layout;
    struct weir_norm qpos, actions;
    int tasks_per_sample; /* one per camera, and the state */
    int block_rows;       /* frames of the largest blocks of chunks; 0 = none lie in blocks */
    uint64_t total;       /* batches of the run */
    weir_name item_wait;  /* how long what a task made waits for the consumer */
    struct weir_slots slots;
    struct weir_feed *feed;         /* to a GPU; NULL = batches are the slots' */
    struct weir_gpu_decode *decode; /* JPEGs are decoded there too; NULL = they are not */
    struct weir_frame_cache cache;
    struct weir_faults faults;
    struct weir_file_watch watch;
    struct weir_sources sources; /* which camera, which file */
    alignas(64) _Atomic uint64_t next_ticket;
};

/* The number of a task in the run, from 1: what records of its work and of its wait carry. */
static inline uint64_t weir_item_of(const struct weir_shared *shared, uint64_t sequence, uint64_t task)
{
    return (sequence * (uint64_t)shared->config.batch_size * (uint64_t)shared->tasks_per_sample) + task + 1;
}

/* One image of a batch: which frame, and where it goes. */
struct weir_image {
    int episode, camera, t;
    void *place;
};

/* What a group's frames of one block need while they are loaded; sized at open, for a whole batch and what may join. */
struct weir_gather {
    struct weir_member {
        struct weir_slot *slot;
        int at;  /* in the slot's order */
    } * members; /* the group: of its own batch first, then of later ones */
    int n_members, n_own;
    int capacity, n_again; /* of items; those at their end that are to wait: see weir_group_load */
    struct weir_gather_item {
        struct weir_image image;
        struct weir_slot *slot;
        int at; /* in the slot's order: the sample that owns it */
    } * items;
    int *ts;
    uint8_t **rows, *scratch;
    size_t scratch_bytes;
};

enum weir_doing { WEIR_DOING_NOTHING, WEIR_DOING_TASK, WEIR_DOING_WAIT_SLOT, WEIR_DOING_WAIT_WORK };

struct weir_worker {
    alignas(64) struct weir_shared *shared;
    int id;
    pthread_t thread;
    bool started;
    struct weir_fetcher fetcher;
    struct weir_decoder *decoder;
    struct weir_gather gather; /* empty when no frames share blocks */
    /* For the watchdog; one writer. */
    _Atomic int doing;
    _Atomic uint64_t batch, task, tasks_done;
    _Atomic uint64_t frames_shared; /* copied to a second place of their batch */
    _Atomic uint64_t cache_hits, cache_misses;
};

int weir_worker_open(struct weir_worker *worker, struct weir_shared *shared, int id, struct weir_err *err);
/* The worker's thread has ended. */
void weir_worker_close(struct weir_worker *worker);
/* Starts a thread that takes tasks until the slots are stopped. */
int weir_worker_start(struct weir_worker *worker);
/* Does all tasks of one batch on the calling thread (no workers). */
void weir_worker_do_batch(struct weir_worker *worker, uint64_t sequence);

/* ---- prefetch.c ---- */

/* Batches that workers may be ahead, for config.prefetch = 0; the slots' layout is known. */
int weir_prefetch_auto(const struct weir_shared *shared);

/* ---- image.c ---- */

struct weir_image weir_image_of(const struct weir_shared *shared, const struct weir_slot *slot, int sample, int camera,
                                int history);
/* Where the frame's bytes may be put at once, needing no decoding; NULL when they need it. */
void *weir_image_direct(const struct weir_worker *worker, const struct weir_image *image);
/* Puts the frame in its place when the decode cache has it. */
bool weir_image_cached(struct weir_worker *worker, const struct weir_image *image);
/* Decodes to the frame's place, and keeps good ones in the cache. */
int weir_image_decode(struct weir_worker *worker, const struct weir_image *image, const uint8_t *bytes, size_t length);
/* Takes it from the cache, or fetches and decodes. 0, or negative, the fault kept, with text "FILE: DATASET[t]:
 * reason". */
int weir_image_load(struct weir_worker *worker, const struct weir_image *image, char text[WEIR_FAULT_TEXT]);
/* The same for the frame that the sample at this place of the slot's order owns; 1: it was handed over to the GPU, and
 * is settled when it comes back. */
int weir_image_load_or_hand_over(struct weir_worker *worker, struct weir_slot *slot, int at,
                                 const struct weir_image *image, char text[WEIR_FAULT_TEXT]);
/* Names and keeps the fault of a frame that failed. code, or -ESTALE where its file changed while it was read. */
int weir_image_fault(struct weir_worker *worker, const struct weir_image *image, int code, const char *reason,
                     char text[WEIR_FAULT_TEXT]);
/* What --on-error says about a bad frame, number of the batch's images; false when it is lost. */
bool weir_image_recover(struct weir_worker *worker, struct weir_slot *slot, int64_t number,
                        const struct weir_image *image, int code, const char *text);

/* ---- share.c ---- */

/* A frame that the sample at this place of the slot's order owns, and the first place in its row. */
struct weir_image weir_share_image(const struct weir_shared *shared, const struct weir_slot *slot, int at, int camera,
                                   int t);
/* The frame was loaded to its first place (code 0), or failed, its fault named: does what --on-error says, and copies
 * it to its other places or gives up the samples that need it. */
void weir_share_settle(struct weir_worker *worker, struct weir_slot *slot, int at, const struct weir_image *image,
                       int code, const char *text);
/* The frame, first loaded for the sample at this place, lies on the GPU: in all its places. */
void weir_share_decoded(const struct weir_shared *shared, struct weir_slot *slot, int at,
                        const struct weir_image *image, const struct weir_gpu_source *source);
/* Loads the frames of one camera that the sample owns, and settles those that are there. */
void weir_share_load(struct weir_worker *worker, struct weir_slot *slot, int at, int camera);
/* True when the sample at this later place of the order needs frames that the one at place at owns. */
bool weir_share_needs(const struct weir_shared *shared, const struct weir_slot *slot, int at, int later);

/* ---- group.c ---- */

bool weir_group_is_shared(const struct weir_shared *shared, const struct weir_slot *slot, int sample, int camera);
/* Takes the samples that are to be loaded together with this one: those of its batch whose frames of the camera lie in
 * the same blocks, and of later batches some that need nothing but these blocks. They are in worker->gather; none when
 * somebody else has the sample. Each sample of a later batch is one more task of its slot, which the caller owes. */
void weir_group_claim(struct weir_worker *worker, struct weir_slot *slot, int sample, int camera);
/* Loads what was claimed. */
void weir_group_load(struct weir_worker *worker, int camera);
int weir_gather_open(struct weir_gather *gather, const struct weir_shared *shared);
void weir_gather_close(struct weir_gather *gather);

/* One of those that a camera's task waits for is done: its worker, or a frame that came back from the GPU. The last one
 * ends it. */
void weir_task_camera_done(struct weir_shared *shared, struct weir_slot *slot, int task);

/* What each task of the batch made has waited from its end until now for the others, and for the consumer. */
void weir_task_waits_end(const struct weir_shared *shared, const struct weir_slot *slot);

/* Does task number task of the slot's batch, and what follows when it was the last one of its sample or batch. */
void weir_task_run(struct weir_worker *worker, struct weir_slot *slot, int task);

#endif
