/* motion_ops.h: the operations of a motion backend: operators on arrays, of which the variant ops is composed
 * (motion_eager.c has the order, the temporaries and the recording), and one pass per query for the variant fused.
 *
 * Memory belongs to the device: the caller does pointer arithmetic, and reads it through copy_out only. Calls run in
 * order, as on a stream, and may return early; copy_out and finish wait. After an error in a call without a result,
 * later calls do nothing and finish returns the error. Backends record no ranges and no memory events; their callers
 * do. Each operator is one kernel, or one pass over memory. One thread uses a context.
 *
 * A new backend is a file with a struct weir_motion_ops, its extern below, a line of CMake and a test. */
#ifndef WEIR_EXTRAS_MOTION_MOTION_OPS_H
#define WEIR_EXTRAS_MOTION_MOTION_OPS_H

#include "extras/motion/motion_slerp.h" /* the fast slerp, for all backends */
#include "weir/base.h"
#include "weir/kernel_clock.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* ---- arrays ---- */

enum weir_motion_type { WEIR_MOTION_F32, WEIR_MOTION_I64, WEIR_MOTION_BOOL /* a byte, 0 or 1 */ };

/* Number j of row i is number (i / repeat) * stride + j of data. */
struct weir_motion_array {
    void *data;
    enum weir_motion_type type;
    size_t rows;
    int columns;   /* at least 1; a single column is broadcast over the row of the result */
    size_t stride; /* distance between rows in numbers, at least columns */
    int repeat;    /* this many successive rows share one row of data; at least 1; 1 for results */
    int inner;     /* traces show rows as [columns / inner, inner]; 0: as [columns]. Ignored by backends */
};

/* ---- operators ---- */

/* The result has the rows of x (INDEX: of y) and its type, unless noted. "y or scalar": y if it has data, else scalar
 * for every element. The result is x itself or overlaps no operand. Operands may be parts of wider rows (stride >
 * columns) and repeated, results parts of wider rows. Numbers are float32 unless noted. */
enum weir_motion_kind {
    WEIR_MOTION_ARANGE,    /* r[i] = i, i64; without operands */
    WEIR_MOTION_INDEX,     /* r[i] = row y[i] of x, of any type; y: i64, one column */
    WEIR_MOTION_INDEX_PUT, /* row y[i] of r = x[i]; all y[i] differ */
    WEIR_MOTION_COPY,      /* r = x, f32 or i64; f32 to i64 truncates, and gives 0 for NaN and values out of range */
    WEIR_MOTION_ADD,       /* x + (y or scalar), f32 or i64 */
    WEIR_MOTION_SUB,       /* x - (y or scalar), f32 or i64; an f32 x less an i64 y is f32 */
    WEIR_MOTION_RSUB,      /* scalar - x */
    WEIR_MOTION_MUL,       /* x * (y or scalar); y may be i64 */
    WEIR_MOTION_DIV,       /* x / y with IEEE 754 rounding, as it decides the frame */
    WEIR_MOTION_MINIMUM,   /* i64: the lesser of x and y */
    WEIR_MOTION_FLOOR,     /* of x */
    WEIR_MOTION_CLAMP,     /* clamps x to scalar .. high; NaN becomes scalar */
    WEIR_MOTION_NEG,       /* -x */
    WEIR_MOTION_ABS,       /* |x| */
    WEIR_MOTION_LT,        /* x < scalar: bool */
    WEIR_MOTION_WHERE,     /* x ? y : z; x is bool, r f32 */
    WEIR_MOTION_ACOS,      /* of 0..1 */
    WEIR_MOTION_SIN,       /* of 0..pi/2 */
    WEIR_MOTION_SUM,       /* of each row of x; r has one column */
    WEIR_MOTION_LERP,      /* x + z (y - x) */
    WEIR_MOTION_ADDCMUL,   /* x + scalar * y * z */
    WEIR_MOTION_CROSS,     /* x cross y, of three columns each */
    WEIR_MOTION_CAT,       /* r[i] = x[i], y[i] and z[i], concatenated */
    WEIR_MOTION_SLERP,     /* r = slerp of x and y by z, four columns: the fast one (motion_slerp.h) */
    WEIR_MOTION_KINDS
};

struct weir_motion_operator {
    enum weir_motion_kind kind;
    struct weir_motion_array r, x, y, z; /* data is NULL for unused operands */
    double scalar, high;
};

/* ---- a query in one pass ---- */

/* Clip data of a query. */
struct weir_motion_span {
    int32_t first;    /* row of its first frame */
    int32_t last;     /* frames - 1: at least 1, at most 2^24 - 1 */
    float duration_s; /* (frames - 1) / fps */
    int32_t loops;    /* 0 or 1 */
};

/* Offsets of the parts of a frame in its row, in numbers. Rows are padded to whole cache lines, so that the two frames
 * of a query are contiguous, and 16 numbers past the last row are readable. */
struct weir_motion_row {
    int quat, pos, vel, ang_vel, dof_pos, dof_vel, bodies;
    int used, stride;
};

static inline struct weir_motion_row weir_motion_row_of(int dofs, int bodies)
{
    struct weir_motion_row row;
    row.quat = 0;
    row.pos = 4;
    row.vel = 7;
    row.ang_vel = 10;
    row.dof_pos = 13;
    row.dof_vel = row.dof_pos + dofs;
    row.bodies = row.dof_vel + dofs;
    row.used = row.bodies + 3 * bodies;
    row.stride = (row.used + 15) / 16 * 16;
    return row;
}

/* Stages of the pass on a GPU, for the clocks inside its kernel (weir/kernel_clock.cuh), and the iterations per table.
 * An iteration is the work of a warp at once: 32 queries, or 8. */
enum weir_motion_stage {
    WEIR_MOTION_CALC_FRAME_BLEND,
    WEIR_MOTION_INDEXING_DATA, /* until the rows have arrived */
    WEIR_MOTION_INTERPOLATION,
    WEIR_MOTION_COORDINATE_TRANSFORM,
    WEIR_MOTION_STORE_BUFFERS, /* as far as the warp waits for it */
    WEIR_MOTION_STAGES,
};
enum { WEIR_MOTION_ITERATIONS = 64 };

enum { WEIR_MOTION_OUTPUTS = 9 }; /* WEIR_MOTION_RESULTS of motion.h, in its order */

/* A pass: query i is step i % steps of environment i / steps. All memory is device memory. */
struct weir_motion_pass {
    size_t envs;
    int steps, dofs, bodies;
    struct weir_motion_row row;
    const float *frames;                  /* [rows][row.stride], aligned to 64 bytes */
    const struct weir_motion_span *spans; /* [clips] */
    const int64_t *clip_of;               /* [envs] */
    const float *times;                   /* [envs][steps] */
    float *results[WEIR_MOTION_OUTPUTS]; /* [envs * steps][width], aligned to 64 bytes, with room for 16 more numbers */
    struct weir_kernel_clock_table clocks; /* no clocks if memory is NULL, or on the CPU */
};

/* ---- a backend ---- */

struct weir_motion_device {
    int threads;  /* CPU threads, at least 1 */
    int gpu;      /* index, from 0 */
    void *stream; /* GPU stream for all work; NULL: the backend's own */
};

struct weir_motion_ops {

    /* 0, -ENOMEM, -EAGAIN (threads) or -ENODEV (no such GPU). */
    int (*open)(void **self, const struct weir_motion_device *device, struct weir_err *err);
    /* Waits. Accepts NULL. Release all memory first. */
    void (*close)(void *self);
    /* Returns a name such as "2 threads, AVX2", lent until close. */
    const char *(*describe)(const void *self);
    /* Returns the stream of its calls, a cudaStream_t; NULL on the CPU. */
    void *(*stream)(void *self);
    /* Waits for all calls. 0, or the error of one of them: -EIO (GPU lost, kernel fault) or -ENOMEM. */
    int (*finish)(void *self, struct weir_err *err);

    /* Returns the free bytes of the device; 0 = unknown. */
    uint64_t (*available_bytes)(void *self);
    /* Allocates memory for an operator's temporary, which is frequent and short-lived: a backend with a slow allocator
     * keeps released blocks by size and reuses them in stream order, as torch's caching allocator does. Aligned to 64
     * bytes, not zeroed. NULL: out of memory. */
    void *(*allocate)(void *self, size_t bytes);
    /* bytes as allocated. Accepts NULL. Work queued earlier may still use the memory: only later work gets it. */
    void (*release)(void *self, void *memory, size_t bytes);
    /* Returns the device bytes held, in use or kept ("Total Reserved" in traces); 0: keeps none. */
    uint64_t (*reserved)(void *self);
    /* Copies from host memory, which may be reused on return. */
    void (*copy_in)(void *self, void *to, const void *from, size_t bytes);
    /* Copies to host memory and waits. Writes zeros after an error, which finish returns. */
    void (*copy_out)(void *self, void *to, const void *from, size_t bytes);

    void (*operate)(void *self, const struct weir_motion_operator *operation);
    void (*pass)(void *self, const struct weir_motion_pass *pass);
    /* times[i] += dt_s, in float32. */
    void (*advance)(void *self, size_t n, float *times, float dt_s);
};

extern const struct weir_motion_ops weir_motion_cpu;

/* Returns the CUDA module's backend. NULL: err has -ENODEV (no module) or -ENOTSUP (module without motion). */
const struct weir_motion_ops *weir_motion_ops_cuda(struct weir_err *err);

#endif
