/* kernel_clock.h: evaluates clocks inside a kernel (weir/kernel_clock.cuh): sums the stages of launches, as text, CSV
 * and JSON. It works on the bytes of the table and needs no CUDA header.
 *
 *     static const char *const stages[] = {"load", "compute", "store"};
 *     const struct weir_kernel_clock_kernel kernel = {"my_kernel", stages, 3, 64};
 *     struct weir_kernel_clock clock;
 *     weir_kernel_clock_init(&clock, &kernel);
 *     cudaMalloc(&table.memory, weir_kernel_clock_bytes(&kernel, table.blocks = 1));
 *     table.launch = 1; my_kernel<<<...>>>(..., table); cudaMemcpy(bytes, table.memory, ...);
 *     weir_kernel_clock_add(&clock, bytes, n, 1, step_ns);
 *     weir_kernel_clock_print(stdout, &clock);
 *
 * Ticks are converted to ns block by block: a block reads clock64 and %globaltimer together at its start and end, so
 * that ns / ticks between them is its rate, and no frequency is assumed. The error of that span is at most one step of
 * %globaltimer plus half of each gap around its two readings, and is given beside each time in ns. Blocks whose span is
 * less than twice its error have ticks only.
 *
 * All bytes of a table are untrusted. A struct belongs to one thread at a time. Nothing here allocates. */
#ifndef WEIR_KERNEL_CLOCK_H
#define WEIR_KERNEL_CLOCK_H

#include "weir/base.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#ifdef __cplusplus
extern "C" {
#endif

/* ---- the table in GPU memory ----
 *
 * A table is an array of records, one per writing block, record b at b * weir_kernel_clock_record_bytes. A record is a
 * head, then one row per iteration: its start, in ticks after begin_ticks, then the ticks of each stage in it; 0: the
 * stage was not lapped in this iteration. Iterations beyond rows_max have no row. Ticks are those of the block's SM
 * (clock64); 32 bits hold 2 s, and a row's numbers saturate. Numbers are little-endian. */

/* An argument of the kernel. */
struct weir_kernel_clock_table {
    void *memory;    /* on the GPU, aligned to 16 bytes; NULL: the clocks write nothing */
    uint32_t blocks; /* records that fit: block b writes if b < blocks. 1: only block 0 */
    uint32_t launch; /* copied to each record, to distinguish this launch's from older ones. Not 0 */
};

enum {
    WEIR_KERNEL_CLOCK_MAGIC = 0x314b4357, /* "WCK1" */
    WEIR_KERNEL_CLOCK_STAGES_MAX = 32,
    WEIR_KERNEL_CLOCK_ROWS_MAX = 4096,
};

struct weir_kernel_clock_record {
    uint32_t magic, launch;
    uint32_t stages, rows_max;
    uint64_t block, grid;           /* index of the block, and number of blocks; all dimensions flattened */
    uint32_t sm;                    /* %smid */
    uint32_t iterations;            /* started; at most rows_max of them have a row */
    uint64_t begin_ticks, begin_ns; /* clock64 and %globaltimer at the same time, to within begin_gap_ticks */
    uint64_t end_ticks, end_ns;
    uint32_t begin_gap_ticks, end_gap_ticks; /* between the readings of clock64 before and after that of %globaltimer */
    uint32_t warp_lap_ticks, block_lap_ticks; /* duration of an empty lap, the minimum of a few */
    uint32_t threads;                         /* per block */
    uint32_t laps;                            /* completed, counting each call; wraps at UINT32_MAX */
};

/* Distance between records, a multiple of 16. */
#ifdef __CUDACC__
__host__ __device__
#endif
    static inline size_t
    weir_kernel_clock_record_bytes(uint32_t stages, uint32_t rows_max)
{
    size_t bytes = sizeof(struct weir_kernel_clock_record) + (size_t)rows_max * (1 + (size_t)stages) * sizeof(uint32_t);
    return (bytes + 15) / 16 * 16;
}

enum { WEIR_KERNEL_CLOCK_NAME = 256, WEIR_KERNEL_CLOCK_STAGE_NAME = 64 };

struct weir_kernel_clock_kernel {
    const char *name;
    const char *const *stages;
    uint32_t n_stages, rows_max; /* STAGES and ITERATIONS of its clock */
};

/* Size of a table with this many records. */
size_t weir_kernel_clock_bytes(const struct weir_kernel_clock_kernel *kernel, uint32_t blocks);

/* The step of %globaltimer, ns, from consecutive readings: the smallest difference between two that differ. 0: they
 * never differ, or go backwards. */
uint64_t weir_kernel_clock_step(const uint64_t *readings, size_t n);

/* ---- one block of one launch ---- */

struct weir_kernel_clock_block {
    uint64_t block, grid, launch; /* index, number of blocks; number of the launch, in a trace that of the trace */
    uint32_t sm, threads;
    uint64_t iterations; /* started; the first ones have rows */
    uint32_t rows, n_stages;
    uint64_t ticks, begin_ns;     /* from start to end; start by %globaltimer */
    double ns, error_ns, step_ns; /* of the same span; ns 0: unknown */
    uint32_t warp_lap_ticks, block_lap_ticks;
    uint32_t laps;         /* completed; a stage may have several per iteration */
    double kernel_ns;      /* by CUPTI; 0: unknown */
    const uint8_t *row_at; /* for weir_kernel_clock_row; NULL: laps are added one by one */
};

/* Row i, 1 + n_stages numbers: its start after the block's, and each stage's ticks (0: not lapped, UINT32_MAX:
 * saturated). */
void weir_kernel_clock_row(const struct weir_kernel_clock_block *block, uint32_t i,
                           uint32_t to[1 + WEIR_KERNEL_CLOCK_STAGES_MAX]);

/* Start of a row's iteration in ticks after the block's start. The row has its lower 32 bits: it is the first such
 * moment after the end of the row before. */
static inline uint64_t weir_kernel_clock_row_begin(const uint32_t *row, uint64_t before_ended)
{
    return before_ended + (uint32_t)(row[0] - (uint32_t)before_ended);
}

/* Calls on_block for each block written by this launch. bytes has size bytes, of any alignment. step_ns: step of
 * %globaltimer; 0: unknown, and ns are unknown too. Returns the number of blocks; *damaged (may be NULL) is the number
 * of this launch's records that are invalid, which are skipped. */
uint64_t weir_kernel_clock_each(const struct weir_kernel_clock_kernel *kernel, const void *bytes, size_t size,
                                uint32_t launch, uint64_t step_ns,
                                void (*on_block)(void *user, const struct weir_kernel_clock_block *block), void *user,
                                uint64_t *damaged);

/* ---- launches added up ---- */

/* A lap is one stage in one iteration of one block. */
struct weir_kernel_clock_stage {
    char name[WEIR_KERNEL_CLOCK_STAGE_NAME];
    uint64_t laps, ticks;
    uint64_t last_ticks, min_ticks, max_ticks; /* last: of block 0 */
    uint64_t ns_laps;                          /* in blocks with known ns */
    double ns, error_ns, last_ns, min_ns, max_ns;
};

struct weir_kernel_clock {
    char name[WEIR_KERNEL_CLOCK_NAME];
    uint32_t n_stages, rows_max;
    struct weir_kernel_clock_stage stages[WEIR_KERNEL_CLOCK_STAGES_MAX];
    uint64_t launches, blocks;                /* with data */
    uint64_t grid;                            /* blocks of the largest launch */
    uint64_t iterations, rows;                /* started; with a row */
    uint64_t long_laps;                       /* saturated, in no figure */
    uint64_t damaged;                         /* invalid records */
    uint64_t skipped;                         /* launches without clocks while others had them */
    uint64_t last_launch;                     /* of the block added last */
    uint64_t lap_ticks, span_ticks;           /* of all stages; from start to end of the blocks */
    uint64_t timed_blocks;                    /* with known ns */
    uint64_t timed_ticks;                     /* their part of span_ticks */
    double span_ns, span_error_ns;            /* of timed blocks */
    double min_rate, max_rate;                /* ticks per ns */
    double step_ns;                           /* the largest; 0: unknown */
    uint64_t warp_lap_ticks, block_lap_ticks; /* sums over blocks */
    uint64_t laps;                            /* completed; stages' own counts take several per iteration as one */
    uint64_t kernels;                         /* launches with CUPTI times */
    double kernels_ns;
    bool plain;             /* plain buffers: spans are sums of laps; blocks and empty laps are unknown */
    uint64_t negative_laps; /* in plain buffers, in no figure */
};

/* The kernel may have no stages; they are added with laps then. Texts are copied, and cut to fit. */
void weir_kernel_clock_init(struct weir_kernel_clock *clock, const struct weir_kernel_clock_kernel *kernel);
/* Adds one launch. Returns the number of blocks; 0 if it wrote nothing. */
uint64_t weir_kernel_clock_add(struct weir_kernel_clock *clock, const void *table, size_t size, uint32_t launch,
                               uint64_t step_ns);
/* Adds a block from another source, with its rows if any. */
void weir_kernel_clock_add_block(struct weir_kernel_clock *clock, const struct weir_kernel_clock_block *block);
/* Adds a lap of a block without rows. False: too many stages. */
bool weir_kernel_clock_add_lap(struct weir_kernel_clock *clock, const struct weir_kernel_clock_block *block,
                               const char *stage, uint32_t ticks);

/* A plain buffer, as kernels in Triton, Taichi or Numba write it: ticks per stage and iteration. */
struct weir_kernel_clock_plain {
    const int64_t *ticks; /* [n_stages][iterations]; 0: not lapped */
    size_t iterations;    /* at most UINT32_MAX */
    double ticks_per_ns;  /* 1: the numbers are ns (%globaltimer); 0: unknown (clock64) */
};
/* Adds the buffer of one launch. 0, or -EINVAL: too many iterations, a rate that is negative or not finite, a clock
 * without stages, or one that already has tables. */
int weir_kernel_clock_add_plain(struct weir_kernel_clock *clock, const struct weir_kernel_clock_plain *plain);

/* The stage's fraction of all stages' ticks, 0 to 1. */
double weir_kernel_clock_share(const struct weir_kernel_clock *clock, uint32_t stage);

/* Prints a table of the stages, then its basis: the rate and its error, the cost of a lap, the laps' fraction of the
 * blocks' and the kernel's time, and missing data. */
void weir_kernel_clock_print(FILE *out, const struct weir_kernel_clock *clock);
/* Writes the column names; then one line per stage. Unknown numbers are empty, and so are launch, block and iteration,
 * as the figures cover all of them. */
void weir_kernel_clock_csv_head(FILE *out);
void weir_kernel_clock_csv(FILE *out, const struct weir_kernel_clock *clock);
/* As weir_kernel_clock_csv, for one iteration, whose laps alone are in the clock (weir_kernel_clock_add_lap, without
 * the block). */
void weir_kernel_clock_csv_iteration(FILE *out, const struct weir_kernel_clock *clock,
                                     const struct weir_kernel_clock_block *block, uint64_t iteration);
/* As weir_kernel_clock_csv, for all iterations of a buffer. */
void weir_kernel_clock_csv_plain(FILE *out, const struct weir_kernel_clock_kernel *kernel,
                                 const struct weir_kernel_clock_plain *plain);
/* Writes an object into the open array. */
void weir_kernel_clock_json(struct weir_json *json, const struct weir_kernel_clock *clock);

#ifdef __cplusplus
}
#endif

#endif
