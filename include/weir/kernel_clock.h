/* kernel_clock.h: what clocks inside a kernel have measured (weir/kernel_clock.cuh): the stages of launches added up,
 * as text, CSV and JSON. No header of CUDA's is needed: it works on the bytes of the table.
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
 * Ticks become ns block by block: a block has read clock64 and %globaltimer together at its beginning and at its end,
 * so that ns / ticks of that span is its rate, and no frequency is assumed. The error of the span is at most one step
 * of %globaltimer and half of each gap around its two readings; it is given beside each time in ns. Blocks whose span
 * is less than twice its error have ticks only.
 *
 * Every byte of a table is taken for hostile. A structure belongs to one thread at a time. Nothing here allocates. */
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

/* What clocks inside a kernel write into the GPU's memory: weir/kernel_clock.cuh writes it,
 * the functions below read it.
 *
 * A table is an array of records, one for each block that writes, record b at b * weir_kernel_clock_record_bytes. A
 * record is a head, then rows, one for each iteration that began: first when it began, in ticks after begin_ticks, then
 * the ticks of each stage in it; 0: the stage was not lapped in this iteration. Rows past the last one that is kept
 * are not written. Ticks are those of the block's SM (clock64); 32 bits of them are 2 s, and a row's numbers stop at
 * their maximum. Numbers are little-endian. */

/* An argument of the kernel. */
struct weir_kernel_clock_table {
    void *memory;    /* on the GPU, aligned to 16 bytes; NULL: the clocks write nothing */
    uint32_t blocks; /* records that it has room for: block b writes when b is less. 1: block 0 alone */
    uint32_t launch; /* goes into each record: tells those of this launch from what lay there before. Not 0 */
};

enum {
    WEIR_KERNEL_CLOCK_MAGIC = 0x314b4357, /* "WCK1" */
    WEIR_KERNEL_CLOCK_STAGES_MAX = 32,
    WEIR_KERNEL_CLOCK_ROWS_MAX = 4096,
};

struct weir_kernel_clock_record {
    uint32_t magic, launch;
    uint32_t stages, rows_max;
    uint64_t block, grid;           /* index of the block, and how many there are; all dimensions as one */
    uint32_t sm;                    /* %smid */
    uint32_t iterations;            /* that began; at most rows_max of them have a row */
    uint64_t begin_ticks, begin_ns; /* clock64 and %globaltimer at the same time, as far as begin_gap_ticks say */
    uint64_t end_ticks, end_ns;
    uint32_t begin_gap_ticks, end_gap_ticks;  /* between two readings of clock64 around that of %globaltimer */
    uint32_t warp_lap_ticks, block_lap_ticks; /* what an empty lap measures, the least of a few */
    uint32_t threads;                         /* of a block */
    uint32_t laps;                            /* that ended, each call for itself; at UINT32_MAX it begins again */
};

/* From one record to the next; a multiple of 16. A table is so many times the blocks. */
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

/* Bytes of a table with so many records. */
size_t weir_kernel_clock_bytes(const struct weir_kernel_clock_kernel *kernel, uint32_t blocks);

/* The step of %globaltimer, ns, from readings that follow each other: the least difference between two that differ. 0:
 * they never differ, or go backwards. */
uint64_t weir_kernel_clock_step(const uint64_t *readings, size_t n);

/* ---- one block of one launch ---- */

struct weir_kernel_clock_block {
    uint64_t block, grid, launch; /* index, of how many; the launch: of the trace where it comes from one */
    uint32_t sm, threads;
    uint64_t iterations; /* that began; rows are kept of the first ones */
    uint32_t rows, n_stages;
    uint64_t ticks, begin_ns;     /* from begin to end; begin by %globaltimer */
    double ns, error_ns, step_ns; /* the same span; ns 0: not known */
    uint32_t warp_lap_ticks, block_lap_ticks;
    uint32_t laps;         /* that ended; a stage may have several in an iteration */
    double kernel_ns;      /* by CUPTI; 0: not known */
    const uint8_t *row_at; /* weir_kernel_clock_row; NULL: they are added by themselves */
};

/* Row i, 1 + n_stages numbers: its beginning since the block's, and each stage's ticks (0: not lapped, UINT32_MAX: too
 * many for the row). */
void weir_kernel_clock_row(const struct weir_kernel_clock_block *block, uint32_t i,
                           uint32_t to[1 + WEIR_KERNEL_CLOCK_STAGES_MAX]);

/* When a row's iteration began, in ticks since the block's beginning, of which the row has the lower 32 bits: the first
 * such moment from when the row before ended on. */
static inline uint64_t weir_kernel_clock_row_begin(const uint32_t *row, uint64_t before_ended)
{
    return before_ended + (uint32_t)(row[0] - (uint32_t)before_ended);
}

/* Calls on_block for each block that this launch has written. bytes: size of them, of any alignment. step_ns: of
 * %globaltimer; 0: not known, and neither are ns. The number of blocks; damaged, unless NULL: how many records are this
 * launch's and make no sense, which are left out. */
uint64_t weir_kernel_clock_each(const struct weir_kernel_clock_kernel *kernel, const void *bytes, size_t size,
                                uint32_t launch, uint64_t step_ns,
                                void (*on_block)(void *user, const struct weir_kernel_clock_block *block), void *user,
                                uint64_t *damaged);

/* ---- launches added up ---- */

/* A lap: what a stage took in one iteration of one block. */
struct weir_kernel_clock_stage {
    char name[WEIR_KERNEL_CLOCK_STAGE_NAME];
    uint64_t laps, ticks;
    uint64_t last_ticks, min_ticks, max_ticks; /* last: of block 0 */
    uint64_t ns_laps;                          /* those of blocks whose ns are known */
    double ns, error_ns, last_ns, min_ns, max_ns;
};

struct weir_kernel_clock {
    char name[WEIR_KERNEL_CLOCK_NAME];
    uint32_t n_stages, rows_max;
    struct weir_kernel_clock_stage stages[WEIR_KERNEL_CLOCK_STAGES_MAX];
    uint64_t launches, blocks;                /* that have written something */
    uint64_t grid;                            /* blocks of the largest launch */
    uint64_t iterations, rows;                /* that began; that were kept */
    uint64_t long_laps;                       /* too long for their row, in no figure */
    uint64_t damaged;                         /* records that made no sense */
    uint64_t skipped;                         /* launches without clocks while others had them */
    uint64_t last_launch;                     /* of the block that was added last */
    uint64_t lap_ticks, span_ticks;           /* of all stages; from begin to end of the blocks */
    uint64_t timed_blocks;                    /* those whose ns are known */
    uint64_t timed_ticks;                     /* of span_ticks, theirs */
    double span_ns, span_error_ns;            /* of these */
    double min_rate, max_rate;                /* ticks per ns */
    double step_ns;                           /* the largest; 0: not known */
    uint64_t warp_lap_ticks, block_lap_ticks; /* sums over the blocks */
    uint64_t laps;                            /* that ended; a stage's own count several of an iteration as one */
    uint64_t kernels;                         /* launches whose time CUPTI has */
    double kernels_ns;
    bool plain;             /* of plain buffers: spans are sums of laps, and blocks and empty laps are not known */
    uint64_t negative_laps; /* of plain buffers, in no figure */
};

/* kernel's stages may be none, and come with the laps. Texts are copied, cut where they are too long. */
void weir_kernel_clock_init(struct weir_kernel_clock *clock, const struct weir_kernel_clock_kernel *kernel);
/* What one launch wrote. The number of blocks: 0 when it wrote nothing. */
uint64_t weir_kernel_clock_add(struct weir_kernel_clock *clock, const void *table, size_t size, uint32_t launch,
                               uint64_t step_ns);
/* The same from elsewhere: a block, its rows if it has them. */
void weir_kernel_clock_add_block(struct weir_kernel_clock *clock, const struct weir_kernel_clock_block *block);
/* A lap of a block that has no rows. False: there are too many stages. */
bool weir_kernel_clock_add_lap(struct weir_kernel_clock *clock, const struct weir_kernel_clock_block *block,
                               const char *stage, uint32_t ticks);

/* A plain buffer, as kernels in Triton, Taichi or Numba fill it: what each stage took in each iteration. */
struct weir_kernel_clock_plain {
    const int64_t *ticks; /* [n_stages][iterations]; 0: not lapped */
    size_t iterations;    /* at most UINT32_MAX */
    double ticks_per_ns;  /* 1: the numbers are ns (%globaltimer); 0: not known (clock64) */
};
/* The buffer of one launch. 0, or -EINVAL: too many iterations, a rate that is negative or not finite, or a clock that
 * has no stages or has tables, too. */
int weir_kernel_clock_add_plain(struct weir_kernel_clock *clock, const struct weir_kernel_clock_plain *plain);

/* Ticks of the stage, of all stages': 0 to 1. */
double weir_kernel_clock_share(const struct weir_kernel_clock *clock, uint32_t stage);

/* A table of the stages, and below it what the figures rest on: the rate and its error, what a lap costs, how much of
 * the blocks' and of the kernel's time the laps are, what is missing. */
void weir_kernel_clock_print(FILE *out, const struct weir_kernel_clock *clock);
/* The names of the columns; then a line a stage, in which numbers that are not known are empty: so are launch, block
 * and iteration, as the figures are those of all. */
void weir_kernel_clock_csv_head(FILE *out);
void weir_kernel_clock_csv(FILE *out, const struct weir_kernel_clock *clock);
/* The same of one iteration, whose laps alone the clock has (weir_kernel_clock_add_lap, without the block). */
void weir_kernel_clock_csv_iteration(FILE *out, const struct weir_kernel_clock *clock,
                                     const struct weir_kernel_clock_block *block, uint64_t iteration);
/* The same of all iterations of a buffer of that kernel. */
void weir_kernel_clock_csv_plain(FILE *out, const struct weir_kernel_clock_kernel *kernel,
                                 const struct weir_kernel_clock_plain *plain);
/* An object in the array that is open in json. */
void weir_kernel_clock_json(struct weir_json *json, const struct weir_kernel_clock *clock);

#ifdef __cplusplus
}
#endif

#endif
