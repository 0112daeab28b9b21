/* motion_priv.h: declarations shared by motion.c (the ranges of a step), motion_tables.c (device memory) and
 * motion_eager.c (the variant ops). */
#ifndef WEIR_EXTRAS_MOTION_MOTION_PRIV_H
#define WEIR_EXTRAS_MOTION_MOTION_PRIV_H

#include "extras/motion/motion.h"
#include "extras/motion/motion_ops.h"
#include "pipeline/gpu/gpu_clocks.h"
#include "weir/recorder.h"

/* The parts of a frame. Each part has its own array, or all parts of a frame share a row. */
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

/* A block of device memory. */
struct weir_motion_memory {
    void *address; /* NULL: not allocated */
    size_t bytes;
};

enum { WEIR_MOTION_KEPT = 32, WEIR_MOTION_OPERATORS_MAX = 96 };

/* State of the variant ops. */
struct weir_motion_eager {
    weir_name *names;                           /* operator names, indexed by label */
    uint32_t shapes[WEIR_MOTION_OPERATORS_MAX]; /* operand shapes of each operator in a fetch; 0: not recorded yet */
    struct weir_motion_memory made[WEIR_MOTION_OPERATORS_MAX]; /* operator results of this or earlier fetches */
    int count;                                                 /* operators run so far in this fetch */
    bool no_memory;
};

struct weir_motion {
    struct weir_motion_config config; /* its member clips is NULL */
    const struct weir_motion_ops *ops;
    void *self;
    int device; /* device number to record with memory events */
    size_t clips, frames, queries;
    int dofs, bodies;
    struct weir_motion_row row;
    int64_t reserved; /* bytes last reported to the profiler */

    /* Device memory that is allocated until close. "kept" lists the blocks, and the pointers below point into these
     * blocks. */
    struct weir_motion_memory kept[WEIR_MOTION_KEPT];
    int n_kept;
    float *parts[WEIR_MOTION_PARTS]; /* NULL: frames are stored in rows */
    float *rows;                     /* NULL: frames are stored in parts */
    struct weir_motion_span *spans;  /* one per clip; NULL: the next four arrays are used instead */
    int64_t *clip_frames, *clip_first;
    float *clip_duration;
    uint8_t *clip_loops;
    int64_t *clip_of; /* [envs] */
    float *times;     /* [envs][steps] */
    /* Used only with advice.indices, otherwise NULL. Per query: frames - 1, first frame, duration, whether the clip
     * loops. */
    int64_t *query_last, *query_first;
    float *query_duration;
    uint8_t *query_loops;
    float *results[WEIR_MOTION_RESULTS];

    struct weir_motion_span *host_spans; /* [clips] */
    struct weir_motion_eager eager;
    weir_name pass_name, advance_name;
    uint32_t pass_shapes, advance_shapes;

    bool clocks_tried;
    struct weir_device *gpu;        /* the clocks' GPU; NULL: no clocks */
    struct weir_gpu_clocks *clocks; /* clocks inside the kernel of the pass */
};

/* ---- motion_tables.c ---- */

/* Returns how many numbers of a frame belong to the part. */
int weir_motion_part_width(const struct weir_motion *motion, enum weir_motion_part part);
/* Allocates all memory that is kept until close, and copies the clips. 0 or -ENOMEM. */
int weir_motion_tables_open(struct weir_motion *motion, const struct weir_motion_clips *clips, struct weir_err *err);
/* weir_motion_take allocates device memory and reports it to the profiler; NULL if memory is exhausted.
 * weir_motion_give frees it. */
void *weir_motion_take(struct weir_motion *motion, size_t bytes);
void weir_motion_give(struct weir_motion *motion, struct weir_motion_memory *memory);
/* Frees all kept memory. */
void weir_motion_tables_close(struct weir_motion *motion);
/* Copies the clip data of each query to the device, for advice.indices. "clips" is in host memory and has one clip per
 * environment. 0 or -ENOMEM. */
int weir_motion_tables_expand(struct weir_motion *motion, const int64_t *clips, struct weir_err *err);

/* ---- motion_eager.c ---- */

/* 0 or -ENOMEM. */
int weir_motion_eager_open(struct weir_motion *motion);
void weir_motion_eager_close(struct weir_motion *motion);
/* Runs the contents of the range AnimationTerm::_fetch_motion_data. 0 or -ENOMEM. */
int weir_motion_eager_fetch(struct weir_motion *motion);

#endif
