/* motion_ops.h: what a backend computes for extras/motion/motion.h: operators on arrays, which the variant ops is
 * composed of (motion_eager.c has the order, the temporaries and what is recorded), and the whole of a query in one
 * pass, which is the variant fused.
 *
 * Memory is the device's: who calls adds to its pointers and reads none of it, unless by copy_out. Calls are done in
 * the order in which they are made, as on a stream, and may return before they are done; copy_out and finish wait. What
 * goes wrong in a call that returns nothing is kept, calls behind it do nothing, and finish reports it. Backends record
 * no ranges and no memory events: their callers do. Each operator is one kernel, or one pass over memory. One thread
 * uses a context.
 *
 * A new backend is a file with a struct weir_motion_ops, its extern below (or a member of the CUDA module), its row in
 * motion.c, a line of CMake and a test (extras/motion/tests/test_motion.c runs over all rows). */
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
    int columns;   /* at least 1; where 1, and the result has more, the number stands for all of a row */
    size_t stride; /* from row to row, in numbers, at least columns */
    int repeat;    /* so many rows in succession are one row of data; at least 1; of a result 1 */
    int inner;     /* rows are shown as [columns / inner, inner] in traces; 0: as [columns]. Backends need it not */
};

/* ---- operators ---- */

/* The result has as many rows as x (INDEX: as y), and is of the type of x but for what is noted. "y or scalar": y,
 * where it has data; else scalar stands for each of its numbers. The result overlaps with no operand, or is x itself.
 * Operands may be parts of wider rows (stride > columns) and repeated, results parts of wider rows. Numbers are float32
 * where nothing is noted. */
enum weir_motion_kind {
    WEIR_MOTION_ARANGE,    /* r[i] = i, i64; without operands */
    WEIR_MOTION_INDEX,     /* r[i] = row y[i] of x, which may be of all types; y: i64, one column */
    WEIR_MOTION_INDEX_PUT, /* row y[i] of r = x[i]; all y[i] differ */
    WEIR_MOTION_COPY,      /* r = x, of f32 or i64; from f32 to i64: truncated, what is out of range or not a number
                            * becomes 0 */
    WEIR_MOTION_ADD,       /* x + (y or scalar), f32 or i64 */
    WEIR_MOTION_SUB,       /* x - (y or scalar), f32 or i64; an f32 x less an i64 y is f32 */
    WEIR_MOTION_RSUB,      /* scalar - x */
    WEIR_MOTION_MUL,       /* x * (y or scalar); y may be i64 */
    WEIR_MOTION_DIV,       /* x / y, rounded as IEEE 754 has it: the frame depends on it */
    WEIR_MOTION_MINIMUM,   /* i64: the lesser of x and y */
    WEIR_MOTION_FLOOR,     /* of x */
    WEIR_MOTION_CLAMP,     /* scalar where x is less or not a number, high where it is greater */
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
    WEIR_MOTION_CAT,       /* r[i] = the numbers of x[i], y[i] and z[i], one after the other */
    WEIR_MOTION_SLERP,     /* r = slerp of x and y by z, four columns: the fast one (motion_slerp.h) */
    WEIR_MOTION_KINDS
};

struct weir_motion_operator {
    enum weir_motion_kind kind;
    struct weir_motion_array r, x, y, z; /* data is NULL of what it has not */
    double scalar, high;
};

/* ---- a query in one pass ---- */

/* What a query needs of its clip. */
struct weir_motion_span {
    int32_t first;    /* row of its first frame */
    int32_t last;     /* frames - 1: at least 1, at most 2^24 - 1 */
    float duration_s; /* (frames - 1) / fps */
    int32_t loops;    /* 0 or 1 */
};

/* Where the parts of a frame are in its row, in numbers. Rows are padded to whole cache lines, so that the two frames
 * of a query are one piece of memory, and 16 numbers more can be read behind the last row. */
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

/* Stages of the pass on a GPU, for the clocks inside its kernel (weir/kernel_clock.cuh), and iterations that a table
 * has room for. An iteration is what a warp does at once: 32 queries, or 8. */
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

/* All of it: query i is step i % steps of environment i / steps. Memory is the device's. */
struct weir_motion_pass {
    size_t envs;
    int steps, dofs, bodies;
    struct weir_motion_row row;
    const float *frames;                   /* [rows][row.stride], aligned to 64 bytes */
    const struct weir_motion_span *spans;  /* [clips] */
    const int64_t *clip_of;                /* [envs] */
    const float *times;                    /* [envs][steps] */
    float *results[WEIR_MOTION_OUTPUTS];   /* [envs * steps][width], aligned to 64 bytes; 16 numbers more can be
                                            * written behind the last one */
    struct weir_kernel_clock_table clocks; /* memory NULL, and on the CPU: without clocks */
};

/* ---- a backend ---- */

struct weir_motion_device {
    int threads;  /* of the CPU, at least 1 */
    int gpu;      /* which one, from 0 */
    void *stream; /* of that GPU: all is queued on it; NULL: one of the backend's own */
};

struct weir_motion_ops {
    const char *name, *summary;

    /* 0; -ENOMEM, -EAGAIN (threads), -ENODEV (the GPU is not there). */
    int (*open)(void **self, const struct weir_motion_device *device, struct weir_err *err);
    /* Waits. Accepts NULL. What was allocated has been released. */
    void (*close)(void *self);
    /* "2 threads, AVX2"; lent until close. */
    const char *(*describe)(const void *self);
    /* What its calls are queued on, a cudaStream_t; NULL: the CPU. */
    void *(*stream)(void *self);
    /* Waits for all calls. 0, or what went wrong in one of them: -EIO (the GPU is lost, a kernel faulted), -ENOMEM. */
    int (*finish)(void *self, struct weir_err *err);

    /* What of the device's memory is free; 0: not known. */
    uint64_t (*available_bytes)(void *self);
    /* What a temporary of an operator is made of, so often and soon given back: a backend whose own allocator is slow
     * keeps what is released, by size, and gives it out again in the order of the stream, as torch's caching allocator
     * does. Aligned to 64 bytes, not zeroed. NULL: there is no memory. */
    void *(*allocate)(void *self, size_t bytes);
    /* bytes as allocated. Accepts NULL. What was queued before may still use it: only what is queued later gets it. */
    void (*release)(void *self, void *memory, size_t bytes);
    /* Bytes of the device that it holds, given out or kept: "Total Reserved" of traces. 0: it keeps none. */
    uint64_t (*reserved)(void *self);
    /* from is the host's, and not read any more on return. */
    void (*copy_in)(void *self, void *to, const void *from, size_t bytes);
    /* to is the host's; waits. Zeros when something went wrong, which finish reports. */
    void (*copy_out)(void *self, void *to, const void *from, size_t bytes);

    void (*operate)(void *self, const struct weir_motion_operator *operation);
    void (*pass)(void *self, const struct weir_motion_pass *pass);
    /* times[i] += dt_s, in float32. */
    void (*advance)(void *self, size_t n, float *times, float dt_s);
};

extern const struct weir_motion_ops weir_motion_cpu;

/* Row i of the table; NULL past the end. The first one is the default. The CUDA module has one more. */
const struct weir_motion_ops *weir_motion_ops_at(int row);
/* That of the CUDA module. NULL and err: -ENODEV (there is none), -ENOTSUP (it has no motion). */
const struct weir_motion_ops *weir_motion_ops_cuda(struct weir_err *err);

#endif
