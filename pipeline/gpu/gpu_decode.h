/* gpu_decode.h: JPEGs that a GPU decodes, for --decoder nvjpeg and hybrid.
 *
 * A worker reads a frame as ever. If one of the GPU's engines takes it, its bytes go to the image's place in the slot,
 * which is pinned, and the task goes on without it; else the CPU decodes it. Each engine has a queue of what workers
 * have handed over, of whatever batches, and threads that take groups of it, hand them to the engine, wait, and take
 * each frame where it belongs. Handing over takes a thread about as long as the JPEG engines decode, longer beside busy
 * cores, so the first engine has a second thread, which works only while a full group waits and the first is busy. Its
 * decoder is opened when the first has not kept up for a while: nvJPEG gives each 14 streams, and a GPU has 32 queues
 * for all there are, so that a decoder too many is in the way of the consumer's kernels. Planes go to the slot's
 * staging memory on the GPU; what prepares the batch makes pixels of them. A task ends when the last of its frames has
 * come back, so that a batch is complete when all its images are in one of the two memories.
 *
 * With nvjpeg all frames go to the GPU that its JPEG engines take (the multiprocessors' of a GPU that has none). With
 * hybrid each side has as many as keep it fed: frames go to the JPEG engines while fewer than two groups wait for them,
 * else to the multiprocessors until these have a group, else a worker decodes them, except that cores are left for the
 * threads that feed the GPU: then it waits until one of them takes the frame. So each works at its own rate, and the
 * order of samples knows nothing of it.
 *
 * The multiprocessors take some 30 ms for a group of whatever size, so they get one large group at a time, and only
 * where enough frames are in flight for nobody to wait for it. The JPEG engines slow down beside them, at times by
 * more than they add, so every half minute it is tried whether all are faster with them (trial.h). They
 * take part when hybrid was asked for by name: the JPEG engines give the CPU's bits, they do not (psnr_check.h), and
 * what they give depends on the group. */
#ifndef WEIR_PIPELINE_GPU_GPU_DECODE_H
#define WEIR_PIPELINE_GPU_GPU_DECODE_H

#include "decoders/gpu/gpu_jpeg.h"
#include "decoders/gpu/psnr_check.h"
#include "pipeline/gpu/gpu_ops.h"
#include "pipeline/gpu/intervals.h"
#include "pipeline/gpu/trial.h"
#include "pipeline/shared.h"

enum { WEIR_DECODE_GROUP = 256, WEIR_DECODE_THREADS = 2 };

/* A frame that was handed over. */
struct weir_handed {
    struct weir_slot *slot;
    int at, task; /* in the slot's order; whose frame it is */
    struct weir_image image;
    enum weir_jpeg_sampling sampling;
    uint64_t kind;
    struct weir_gpu_jpeg_frame frame;
};

/* What became of it: planes on the GPU, or a picture that the CPU made in the image's place, or none. */
struct weir_decoded {
    const struct weir_gpu_source *planes; /* NULL: what follows */
    int code;                             /* 0: the picture is there */
    const char *reason;                   /* of a negative code */
};

/* Who is told. From the threads that decode; one at a time where result->planes is NULL. */
struct weir_decode_client {
    void *user;
    void (*complete)(void *user, const struct weir_handed *frame, const struct weir_decoded *result);
};

struct weir_decode_engine;

/* One thread's. */
struct weir_decode_group {
    struct weir_decode_engine *engine;
    struct weir_gpu_jpeg *decoder; /* of the second: NULL until it is needed, and when there is no memory for it */
    struct weir_gpu_jpeg_counts counted; /* of what the decoder has done, in the engine's figures */
    int n;
    struct weir_handed *items; /* WEIR_DECODE_GROUP of each */
    struct weir_gpu_jpeg_frame *frames;
    enum weir_jpeg_refusal *results;
    void *stream, *begin, *ends[2]; /* timed events; the ends in turns: the last one is still asked for */
    int turn;
    pthread_t thread;
    bool started;
};

/* One of the GPU's ways to decode. */
struct weir_decode_engine {
    struct weir_gpu_decode *decode;
    enum weir_gpu_jpeg_engine kind;
    bool patient; /* its groups are to be large, and it has one at a time */
    struct weir_decode_group groups[WEIR_DECODE_THREADS];
    int n_groups;
    _Atomic int n_decoding;           /* groups that its threads are busy with */
    _Atomic int decoding;             /* frames in them */
    pthread_mutex_t lock;             /* of the queue */
    struct weir_bell bell, full_bell; /* frames wait; as many as the second thread takes */
    struct weir_handed *queue;        /* a ring; as large as all slots together */
    size_t first;
    size_t ahead;           /* hybrid: as many may wait before others get frames */
    size_t full;            /* as many wait: the first thread does not keep up */
    _Atomic size_t waiting; /* in it */
    _Atomic size_t in_full; /* frames that the first thread took in full groups, one after the other */
    _Atomic bool rests;     /* gets none: all are faster without it */
    /* figures, under the lock for them */
    void *last_end; /* of the last group that has passed */
    int64_t last_end_ns;
    struct weir_intervals busy; /* by the GPU's clock, from the first group on */
    uint64_t busy_ns, frames_done, groups_done;
};

enum { WEIR_DECODE_ENGINES = 2 };

struct weir_gpu_decode {
    struct weir_shared *shared;
    struct weir_device *device; /* the feed's */
    int hardware;               /* how many JPEG engines the GPU has */
    bool hybrid;
    double share; /* of the frames that are the GPU's when each frame's engine is fixed; 0 = it is not */
    int n_engines;
    struct weir_decode_engine engines[WEIR_DECODE_ENGINES]; /* in the order in which they are fed */
    size_t capacity;                                        /* of each queue */
    _Atomic int here;                                       /* frames that workers decode at this moment */
    int here_max;
    _Atomic uint64_t here_ns; /* that they took, so far */
    _Atomic uint64_t decoded; /* frames, whoever did it */
    struct weir_bell room;    /* somebody may take frames again */
    struct weir_trial trial;  /* of the second engine beside the first; under figures_lock */
    struct weir_decode_client client;
    struct weir_psnr_check *psnr_check;
    struct weir_gpu_jpeg_tally tally;
    pthread_mutex_t figures_lock;   /* never held while somebody waits */
    struct weir_stage_stats groups; /* their times, by the GPU's clock */
    pthread_mutex_t lock;           /* of what follows */
    /* for comparing, and for frames that come back */
    struct weir_decoder *decoder; /* the CPU's, lent */
    uint8_t *bytes, *pictures[2];
    size_t bytes_room, picture_bytes;
    void *gpu_picture, *gpu_source, *compared; /* an event */
};

/* After the feed. */
int weir_gpu_decode_open(struct weir_shared *shared, struct weir_err *err);
/* decoder: of the CPU, lent until finish: for comparing, and for frames that come back. client: copied; each frame that
 * was handed over is completed by one call, unless the run ends first. */
int weir_gpu_decode_start(struct weir_gpu_decode *decode, struct weir_decoder *decoder,
                          const struct weir_decode_client *client, struct weir_err *err);
/* The slots are stopped: joins the threads. */
void weir_gpu_decode_finish(struct weir_gpu_decode *decode);
/* Before the feed. Accepts NULL. */
void weir_gpu_decode_close(struct weir_gpu_decode **decode);

/* Multiprocessors are to decode beside JPEG engines. Not for auto: it chooses by a clock, and what it chooses gives the
 * same pixels; and what the multiprocessors make of a frame depends on what else is in the group. */
bool weir_gpu_decode_wants_multiprocessors(const struct weir_shared *shared);

/* With hybrid, how many of so many workers may decode at a time on so many cores. */
int weir_gpu_decode_workers(int workers, int cores);

/* Lays the frame's planes out, one after the other and without gaps: never more than its picture takes as RGB. */
void weir_gpu_decode_set_planes(struct weir_gpu_jpeg_frame *frame, const struct weir_jpeg_header *header,
                                uint8_t *memory);

/* Hands a fetched frame over: true, and the client completes it later, or false: the caller decodes it, and says when
 * it has. */
bool weir_gpu_decode_take(struct weir_gpu_decode *decode, struct weir_slot *slot, int at,
                          const struct weir_image *image, const uint8_t *bytes, size_t length);
void weir_gpu_decode_done_here(struct weir_gpu_decode *decode, uint64_t took_ns);

/* ---- gpu_decode_run.c ---- */

/* Of the group's thread. */
void *weir_gpu_decode_main(void *group);
int weir_gpu_decode_open_decoder(struct weir_decode_group *group, struct weir_err *err);

/* ---- gpu_decode_settle.c ---- */

/* The group has passed: takes each frame where it belongs, and ends the tasks that waited for the last of theirs. */
int weir_gpu_decode_settle(struct weir_gpu_decode *decode, struct weir_decode_group *group, struct weir_err *err);

#endif
