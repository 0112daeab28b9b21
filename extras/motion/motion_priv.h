/* motion_priv.h: shared by motion.c (the ranges of a step), motion_tables.c (device memory) and motion_eager.c (the
 * variant ops). */
#ifndef WEIR_EXTRAS_MOTION_MOTION_PRIV_H
#define WEIR_EXTRAS_MOTION_MOTION_PRIV_H

#include "extras/motion/motion.h"
#include "extras/motion/motion_ops.h"
#include "pipeline/gpu/gpu_clocks.h"
#include "weir/recorder.h"

/* The parts of a frame, each in its own array or in a part of one row. */
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

/* Device memory. */
struct weir_motion_memory {
    void *address; /* NULL: none */
    size_t bytes;
};

enum { WEIR_MOTION_KEPT = 32, WEIR_MOTION_OPERATORS_MAX = 96 };

/* The variant ops. */
struct weir_motion_eager {
    weir_name *names;                                          /* operator names by label */
    uint32_t shapes[WEIR_MOTION_OPERATORS_MAX];                /* shapes of each operator of a fetch, once recorded */
    struct weir_motion_memory made[WEIR_MOTION_OPERATORS_MAX]; /* results of operators, of this fetch or kept */
    int count;                                                 /* operators of this fetch so far */
    bool no_memory;
};

struct weir_motion {
    struct weir_motion_config config; /* clips: NULL */
    const struct weir_motion_ops *ops;
    void *self;
    int device; /* for memory events */
    size_t clips, frames, queries;
    int dofs, bodies;
    struct weir_motion_row row;
    int64_t reserved; /* as reported to the profiler */

    /* Device memory, listed in kept. */
    struct weir_motion_memory kept[WEIR_MOTION_KEPT];
    int n_kept;
    float *parts[WEIR_MOTION_PARTS]; /* NULL: frames are in rows */
    float *rows;                     /* NULL: frames are in parts */
    struct weir_motion_span *spans;  /* one per clip; NULL: the next four arrays are used */
    int64_t *clip_frames, *clip_first;
    float *clip_duration;
    uint8_t *clip_loops;
    int64_t *clip_of; /* [envs] */
    float *times;     /* [envs][steps] */
    /* With advice.indices, per query: frames - 1, first frame, duration, loops; else NULL. */
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

/* Returns the numbers of a frame's part. */
int weir_motion_part_width(const struct weir_motion *motion, enum weir_motion_part part);
/* Allocates all permanent memory and copies the clips. 0 or -ENOMEM. */
int weir_motion_tables_open(struct weir_motion *motion, const struct weir_motion_clips *clips, struct weir_err *err);
/* Allocates device memory and reports it to the profiler; NULL: out of memory. */
void *weir_motion_take(struct weir_motion *motion, size_t bytes);
void weir_motion_give(struct weir_motion *motion, struct weir_motion_memory *memory);
/* Releases all kept memory. */
void weir_motion_tables_close(struct weir_motion *motion);
/* Computes the clip data per query, for advice.indices. clips: one per environment, in host memory. 0 or -ENOMEM. */
int weir_motion_tables_expand(struct weir_motion *motion, const int64_t *clips, struct weir_err *err);

/* ---- motion_eager.c ---- */

/* 0 or -ENOMEM. */
int weir_motion_eager_open(struct weir_motion *motion);
void weir_motion_eager_close(struct weir_motion *motion);
/* Runs the body of the range AnimationTerm::_fetch_motion_data. 0 or -ENOMEM. */
int weir_motion_eager_fetch(struct weir_motion *motion);

#endif
