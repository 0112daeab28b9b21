/* motion_priv.h: what the files of extras/motion/motion.h share: motion.c (the ranges of a step), motion_tables.c (the
 * device's memory), motion_eager.c (the variant ops), motion_clocks.c (clocks inside the pass). */
#ifndef WEIR_EXTRAS_MOTION_MOTION_PRIV_H
#define WEIR_EXTRAS_MOTION_MOTION_PRIV_H

#include "extras/motion/motion.h"
#include "extras/motion/motion_ops.h"
#include "pipeline/gpu/gpu_clocks.h"
#include "weir/recorder.h"

/* What frames are made of, each in an array of its own or as a part of one row. */
enum weir_motion_part {
    WEIR_MOTION_PART_POS,
    WEIR_MOTION_PART_QUAT,
    WEIR_MOTION_PART_VEL,
    WEIR_MOTION_PART_ANG_VEL,
    WEIR_MOTION_PART_DOF_POS,
    WEIR_MOTION_PART_DOF_VEL,
    WEIR_MOTION_PART_BODIES,
    WEIR_MOTION_PARTS
};

/* Memory of the device. */
struct weir_motion_memory {
    void *address; /* NULL: none */
    size_t bytes;
};

enum { WEIR_MOTION_KEPT = 32, WEIR_MOTION_OPERATORS_MAX = 96 };

/* The variant ops. */
struct weir_motion_eager {
    weir_name *names;                                          /* of operators, by label (motion_eager.c) */
    uint32_t shapes[WEIR_MOTION_OPERATORS_MAX];                /* of each operator of a fetch, once recorded */
    struct weir_motion_memory made[WEIR_MOTION_OPERATORS_MAX]; /* results of operators: of this fetch, or kept */
    int count;                                                 /* operators of this fetch so far */
    bool no_memory;
};

struct weir_motion {
    struct weir_motion_config config; /* clips: NULL */
    const struct weir_motion_ops *ops;
    void *self;
    int device; /* of memory events */
    size_t clips, frames, queries;
    int dofs, bodies;
    struct weir_motion_row row;
    int64_t reserved; /* as told to the profiler */

    /* Memory of the device, listed in kept. */
    struct weir_motion_memory kept[WEIR_MOTION_KEPT];
    int n_kept;
    float *parts[WEIR_MOTION_PARTS]; /* NULL: frames are in rows */
    float *rows;                     /* NULL: frames are in parts */
    struct weir_motion_span *spans;  /* of the clips; NULL: the next four are there */
    int64_t *clip_frames, *clip_first;
    float *clip_duration;
    uint8_t *clip_loops;
    int64_t *clip_of; /* [envs] */
    float *times;     /* [envs][steps] */
    /* With advice.indices, of each query: frames - 1, first frame, duration, loops; else NULL. */
    int64_t *query_last, *query_first;
    float *query_duration;
    uint8_t *query_loops;
    float *results[WEIR_MOTION_RESULTS];

    struct weir_motion_span *host_spans; /* [clips] */
    struct weir_motion_eager eager;
    weir_name pass_name, advance_name;
    uint32_t pass_shapes, advance_shapes;

    bool clocks_tried;
    struct weir_device *gpu;        /* NULL: without clocks */
    struct weir_gpu_clocks *clocks; /* inside the pass */
};

/* ---- motion_tables.c ---- */

/* Numbers of a part of a frame. */
int weir_motion_part_width(const struct weir_motion *motion, enum weir_motion_part part);
/* Takes all memory that stays, and brings the clips there. 0 or -ENOMEM. */
int weir_motion_tables_open(struct weir_motion *motion, const struct weir_motion_clips *clips, struct weir_err *err);
/* Memory of the device that is told to the profiler; NULL: there is none. */
void *weir_motion_take(struct weir_motion *motion, size_t bytes);
void weir_motion_give(struct weir_motion *motion, struct weir_motion_memory *memory);
/* The same, until close. */
void *weir_motion_keep(struct weir_motion *motion, size_t bytes);
/* Gives back all that is kept. */
void weir_motion_tables_close(struct weir_motion *motion);
/* What queries need of clips, with advice.indices; clips: of each environment, the host's. 0 or -ENOMEM. */
int weir_motion_tables_expand(struct weir_motion *motion, const int64_t *clips, struct weir_err *err);

/* ---- motion_clocks.c ---- */

/* The table for the pass that comes next; memory NULL: no GPUs are recorded, or there is no memory for clocks. */
void weir_motion_clocks_begin(struct weir_motion *motion, struct weir_kernel_clock_table *table);
/* Behind the pass: queues the copy of its table. 0 or -errno. */
int weir_motion_clocks_fetch(struct weir_motion *motion, const struct weir_kernel_clock_table *table,
                             struct weir_err *err);
/* Waits. The GPU stays open, as motion's own memory is still there. */
void weir_motion_clocks_close(struct weir_motion *motion);

/* ---- motion_eager.c ---- */

/* 0 or -ENOMEM. */
int weir_motion_eager_open(struct weir_motion *motion);
void weir_motion_eager_close(struct weir_motion *motion);
/* The inside of the range AnimationTerm::_fetch_motion_data. 0 or -ENOMEM. */
int weir_motion_eager_fetch(struct weir_motion *motion);

#endif
