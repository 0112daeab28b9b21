/* motion_ops.h: the operations of a backend for motion: operators on arrays, of which the variant ops consists, and one
 * pass per query for the variant fused. (motion_eager.c determines the order of the operators and their temporaries,
 * and records them.)
 *
 * Arrays are in device memory. The caller may do arithmetic on their pointers, but reads them only through copy_out.
 * Calls run in order, as on a stream, and may return before their work is done; copy_out and finish wait for it. If a
 * call that returns nothing fails, later calls do nothing and finish returns the error. Backends do not record ranges
 * or memory events, because their callers do. Each operator is one kernel or one pass over memory. A context must be
 * used by one thread only.
 *
 * To add a backend, write a file with a struct weir_motion_ops, declare the struct below, add the
 * file to CMake, and write a test. */
#ifndef WEIR_EXTRAS_MOTION_MOTION_OPS_H
#define WEIR_EXTRAS_MOTION_MOTION_OPS_H

#include "extras/motion/motion_slerp.h" /* the fast slerp, used by all backends */
#include "weir/base.h"
#include "weir/kernel_clock.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* ---- arrays ---- */

enum weir_motion_type { WEIR_MOTION_F32, WEIR_MOTION_I64, WEIR_MOTION_BOOL /* one byte, 0 or 1 */ };

/* Element j of row i is data[(i / repeat) * stride + j]. */
struct weir_motion_array {
    void *data;
    enum weir_motion_type type;
    size_t rows;
    int columns;   /* at least 1; a single column is broadcast to all columns of the result */
    size_t stride; /* distance between rows, counted in numbers; at least columns */
    int repeat;    /* how many successive rows share one row of data; at least 1, and exactly 1 for results */
    int inner;     /* traces show a row as [columns / inner, inner], or as [columns] if 0; ignored by backends */
};

/* ---- operators ---- */

/* The result r has as many rows as x (for INDEX: as y) and the type of x, unless noted. "y or scalar" means y if y has
 * data, otherwise scalar for every element. The result is either x itself or does not overlap any operand. Operands and
 * results may be parts of wider rows (stride > columns), and operands may be repeated. Numbers are float32 unless
 * noted. */
enum weir_motion_kind {
    WEIR_MOTION_ARANGE,    /* r[i] = i, i64; no operands */
    WEIR_MOTION_INDEX,     /* row i of r = row y[i] of x, of any type; y is i64 with one column */
    WEIR_MOTION_INDEX_PUT, /* row y[i] of r = row i of x; all y[i] are different */
    WEIR_MOTION_COPY,      /* r = x, f32 or i64; f32 to i64 truncates, and turns NaN and values out of range into 0 */
    WEIR_MOTION_ADD,       /* x + (y or scalar), f32 or i64 */
    WEIR_MOTION_SUB,       /* x - (y or scalar), f32 or i64; f32 x minus i64 y is f32 */
    WEIR_MOTION_RSUB,      /* scalar - x */
    WEIR_MOTION_MUL,       /* x * (y or scalar); y may be i64 */
    WEIR_MOTION_DIV,       /* x / y, correctly rounded (IEEE 754), because the quotient selects the frame */
    WEIR_MOTION_MINIMUM,   /* minimum of x and y, i64 */
    WEIR_MOTION_FLOOR,     /* floor of x */
    WEIR_MOTION_CLAMP,     /* x limited to scalar .. high; NaN becomes scalar */
    WEIR_MOTION_NEG,       /* -x */
    WEIR_MOTION_ABS,       /* |x| */
    WEIR_MOTION_LT,        /* x < scalar; r is bool */
    WEIR_MOTION_WHERE,     /* x ? y : z; x is bool, r f32 */
    WEIR_MOTION_ACOS,      /* acos(x) for x in 0..1 */
    WEIR_MOTION_SIN,       /* sin(x) for x in 0..pi/2 */
    WEIR_MOTION_SUM,       /* sum of each row of x; r has one column */
    WEIR_MOTION_LERP,      /* x + z (y - x) */
    WEIR_MOTION_ADDCMUL,   /* x + scalar * y * z */
    WEIR_MOTION_CROSS,     /* x cross y, with three columns each */
    WEIR_MOTION_CAT,       /* row i of r is the concatenation of rows i of x, y and z */
    WEIR_MOTION_SLERP,     /* fast slerp (motion_slerp.h) from x to y with blend z; four columns */
    WEIR_MOTION_KINDS
};

struct weir_motion_operator {
    enum weir_motion_kind kind;
    struct weir_motion_array r, x, y, z; /* data is NULL for unused operands */
    double scalar, high;
};

/* ---- a query in one pass ---- */

/* Data of a query's clip. */
struct weir_motion_span {
    int32_t first;    /* row of the clip's first frame */
    int32_t last;     /* number of frames minus 1: 1 to 2^24 - 1 */
    float duration_s; /* (frames - 1) / fps */
    int32_t loops;    /* 0 or 1 */
};

/* Offsets of the parts of a frame in its row, in numbers. Rows are padded to whole cache lines. The rows of successive
 * frames are contiguous. 16 numbers after the last row are readable. */
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

/* Stages of the pass on a GPU, for the clocks inside its kernel (weir/kernel_clock.cuh), and the number of iterations
 * per table. In one iteration a warp processes 32 queries, or 8. */
enum weir_motion_stage {
    WEIR_MOTION_CALC_FRAME_BLEND,
    WEIR_MOTION_INDEXING_DATA, /* ends when the rows have arrived */
    WEIR_MOTION_INTERPOLATION,
    WEIR_MOTION_COORDINATE_TRANSFORM,
    WEIR_MOTION_STORE_BUFFERS, /* only the time that the warp waits for its stores */
    WEIR_MOTION_STAGES,
};
enum { WEIR_MOTION_ITERATIONS = 64 };

enum { WEIR_MOTION_OUTPUTS = 9 }; /* equals WEIR_MOTION_RESULTS in motion.h; results have the same order */

/* Arguments of a pass. Query i is step i % steps of environment i / steps. All pointers are device memory. */
struct weir_motion_pass {
    size_t envs;
    int steps, dofs, bodies;
    struct weir_motion_row row;
    const float *frames;                   /* [rows][row.stride], aligned to 64 bytes */
    const struct weir_motion_span *spans;  /* [clips] */
    const int64_t *clip_of;                /* [envs] */
    const float *times;                    /* [envs][steps] */
    float *results[WEIR_MOTION_OUTPUTS];   /* [envs * steps][width] and 16 more numbers, aligned to 64 bytes */
    struct weir_kernel_clock_table clocks; /* if its memory is NULL, clocks are off; ignored on the CPU */
};

/* ---- a backend ---- */

struct weir_motion_device {
    int threads;  /* CPU threads, at least 1 */
    int gpu;      /* GPU index, from 0 */
    void *stream; /* cudaStream_t for all work; NULL: the backend creates one */
};

struct weir_motion_ops {

    /* 0, -ENOMEM, -EAGAIN (cannot start threads) or -ENODEV (no such GPU). */
    int (*open)(void **self, const struct weir_motion_device *device, struct weir_err *err);
    /* Waits for all calls. All memory must have been released. Accepts NULL. */
    void (*close)(void *self);
    /* Returns a name such as "2 threads, AVX2", valid until close. */
    const char *(*describe)(const void *self);
    /* Returns the cudaStream_t of all calls; NULL on the CPU. */
    void *(*stream)(void *self);
    /* Waits for all calls. Returns 0, or the error of the first call that failed: -EIO (GPU lost, kernel fault) or
     * -ENOMEM. */
    int (*finish)(void *self, struct weir_err *err);

    /* Returns the number of free bytes on the device; 0 if unknown. */
    uint64_t (*available_bytes)(void *self);
    /* Allocates memory, aligned to 64 bytes and not zeroed; NULL if memory is exhausted. Operators allocate and release
     * their temporaries often. A backend with a slow allocator therefore keeps released blocks and reuses them for the
     * same size, in stream order, like PyTorch's caching allocator. */
    void *(*allocate)(void *self, size_t bytes);
    /* "bytes" is the size passed to allocate. Accepts NULL. Work queued before this call may still use the memory,
     * because the memory is reused only for work queued later. */
    void (*release)(void *self, void *memory, size_t bytes);
    /* Returns the number of device bytes in use or kept for reuse ("Total Reserved" in traces); 0 if the backend keeps
     * none. */
    uint64_t (*reserved)(void *self);
    /* Copies from host memory, which the caller may reuse on return. */
    void (*copy_in)(void *self, void *to, const void *from, size_t bytes);
    /* Copies to host memory and waits. After an error, which finish reports, it writes zeros. */
    void (*copy_out)(void *self, void *to, const void *from, size_t bytes);

    void (*operate)(void *self, const struct weir_motion_operator *operation);
    void (*pass)(void *self, const struct weir_motion_pass *pass);
    /* Adds dt_s to each of the n elements of `times`, in float32. */
    void (*advance)(void *self, size_t n, float *times, float dt_s);
};

extern const struct weir_motion_ops weir_motion_cpu;

/* Returns the CUDA module's backend, or NULL with err set to -ENODEV (no CUDA module) or -ENOTSUP (a module built
 * without motion). */
const struct weir_motion_ops *weir_motion_ops_cuda(struct weir_err *err);

#endif
