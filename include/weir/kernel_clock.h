/* kernel_clock.h: evaluates the clocks that run inside a kernel (weir/kernel_clock.cuh). It sums the stages of launches
 * and writes the result as text, CSV or JSON. It works on the bytes of the table and needs no CUDA header.
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
 * Ticks are converted to ns separately for each block. A block reads clock64 and %globaltimer together at its start and
 * at its end. The ratio of the two differences is the block's rate, so no clock frequency is assumed. The error of the
 * block's duration is at most one step of %globaltimer plus half of the gap around each of the two readings, and is
 * printed with each time in ns. If a block's duration is less than twice this error, only ticks are known for it.
 *
 * All bytes of a table are treated as untrusted. A struct may be used by one thread at a time. None of these functions
 * allocates memory. */
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
 * A table is an array of records, one per writing block; record b is at b * weir_kernel_clock_record_bytes. A record
 * consists of a header and one row per iteration. A row contains the iteration's start, in ticks after begin_ticks,
 * followed by the ticks of each stage in the iteration; 0 means that the iteration has no lap of the stage. Iterations
 * beyond rows_max have no row. Ticks are those of the block's SM (clock64). Numbers are little-endian. A row's numbers
 * have 32 bits, which is about 2 s. Laps saturate; the start wraps around. */

/* Passed to the kernel as an argument. */
struct weir_kernel_clock_table {
    void *memory;    /* on the GPU, aligned to 16 bytes; NULL = the clocks write nothing */
    uint32_t blocks; /* number of records that fit: block b writes if b < blocks, so 1 = only block 0 */
    uint32_t launch; /* copied to each record, to distinguish records of this launch from older ones; not 0 */
};

enum {
    WEIR_KERNEL_CLOCK_MAGIC = 0x314b4357, /* "WCK1" */
    WEIR_KERNEL_CLOCK_STAGES_MAX = 32,
    WEIR_KERNEL_CLOCK_ROWS_MAX = 4096,
};

struct weir_kernel_clock_record {
    uint32_t magic, launch;
    uint32_t stages, rows_max;
    uint64_t block, grid;           /* index of the block, and number of blocks, with all dimensions flattened */
    uint32_t sm;                    /* %smid */
    uint32_t iterations;            /* number of iterations started; at most rows_max of them have a row */
    uint64_t begin_ticks, begin_ns; /* clock64 and %globaltimer at the same time, within begin_gap_ticks */
    uint64_t end_ticks, end_ns;
    uint32_t begin_gap_ticks, end_gap_ticks;  /* between the readings of clock64 around that of %globaltimer */
    uint32_t warp_lap_ticks, block_lap_ticks; /* duration of an empty lap, the minimum of several */
    uint32_t threads;                         /* per block */
    uint32_t laps;                            /* number of completed laps; wraps at UINT32_MAX */
};

/* Returns the distance between records, which is a multiple of 16. */
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
    uint32_t n_stages, rows_max; /* the clock's template arguments STAGES and ITERATIONS */
};

/* Returns the size of a table with this many records. */
size_t weir_kernel_clock_bytes(const struct weir_kernel_clock_kernel *kernel, uint32_t blocks);

/* Returns the step of %globaltimer in ns, computed from consecutive readings as the smallest difference between two
 * readings that differ. Returns 0 if all readings are equal or one is smaller than the one before. */
uint64_t weir_kernel_clock_step(const uint64_t *readings, size_t n);

/* ---- one block of one launch ---- */

struct weir_kernel_clock_block {
    uint64_t block, grid, launch; /* index of the block, number of blocks, and number of the launch (in a trace, the
                                     number that the trace assigned) */
    uint32_t sm, threads;
    uint64_t iterations; /* number of iterations started; only the first `rows` of them have a row */
    uint32_t rows, n_stages;
    uint64_t ticks, begin_ns;     /* duration of the block, and its start by %globaltimer */
    double ns, error_ns, step_ns; /* duration of the block, its error, and the step of %globaltimer; ns 0 = unknown */
    uint32_t warp_lap_ticks, block_lap_ticks;
    uint32_t laps;         /* number of completed laps; a stage may have several per iteration */
    double kernel_ns;      /* duration of the kernel measured by CUPTI; 0 = unknown */
    const uint8_t *row_at; /* used by weir_kernel_clock_row; NULL = there are no rows, and laps are added one by one */
};

/* Reads row i, which has 1 + n_stages numbers: the iteration's start relative to the block's start, and the ticks of
 * each stage (0 = no lap, UINT32_MAX = saturated). */
void weir_kernel_clock_row(const struct weir_kernel_clock_block *block, uint32_t i,
                           uint32_t to[1 + WEIR_KERNEL_CLOCK_STAGES_MAX]);

/* Returns the start of a row's iteration in ticks after the block's start. The row contains only the lower 32 bits, so
 * the result is the first matching time after the end of the previous row. */
static inline uint64_t weir_kernel_clock_row_begin(const uint32_t *row, uint64_t before_ended)
{
    return before_ended + (uint32_t)(row[0] - (uint32_t)before_ended);
}

/* Calls on_block for each block that wrote a record in this launch. bytes may have any alignment. step_ns is the step
 * of %globaltimer; with 0 (unknown), times in ns are unknown too. Returns the number of blocks. Invalid records of this
 * launch are skipped, and *damaged (may be NULL) is set to their number. */
uint64_t weir_kernel_clock_each(const struct weir_kernel_clock_kernel *kernel, const void *bytes, size_t size,
                                uint32_t launch, uint64_t step_ns,
                                void (*on_block)(void *user, const struct weir_kernel_clock_block *block), void *user,
                                uint64_t *damaged);

/* ---- sums over launches ---- */

/* A lap is the execution of one stage in one iteration of one block. */
struct weir_kernel_clock_stage {
    char name[WEIR_KERNEL_CLOCK_STAGE_NAME];
    uint64_t laps, ticks;
    uint64_t last_ticks, min_ticks, max_ticks; /* last_ticks is that of block 0 */
    uint64_t ns_laps;                          /* number of laps in blocks whose duration in ns is known */
    double ns, error_ns, last_ns, min_ns, max_ns;
};

struct weir_kernel_clock {
    char name[WEIR_KERNEL_CLOCK_NAME];
    uint32_t n_stages, rows_max;
    struct weir_kernel_clock_stage stages[WEIR_KERNEL_CLOCK_STAGES_MAX];
    uint64_t launches, blocks;                /* that contain data */
    uint64_t grid;                            /* number of blocks of the largest launch */
    uint64_t iterations, rows;                /* number of iterations started, and of those with a row */
    uint64_t long_laps;                       /* number of saturated laps, which are excluded from all figures */
    uint64_t damaged;                         /* number of invalid records */
    uint64_t skipped;                         /* number of launches without clocks while other launches had them */
    uint64_t last_launch;                     /* launch of the block that was added last */
    uint64_t lap_ticks, span_ticks;           /* sum of all stages' laps, and sum of the blocks' durations */
    uint64_t timed_blocks;                    /* number of blocks whose duration in ns is known */
    uint64_t timed_ticks;                     /* part of span_ticks in these blocks */
    double span_ns, span_error_ns;            /* duration of the timed blocks, and its error */
    double min_rate, max_rate;                /* ticks per ns */
    double step_ns;                           /* the largest step of %globaltimer; 0 = unknown */
    uint64_t warp_lap_ticks, block_lap_ticks; /* sums over blocks */
    uint64_t laps;    /* number of completed laps; a stage's own count includes at most one per iteration */
    uint64_t kernels; /* number of launches whose duration CUPTI measured */
    double kernels_ns;
    bool plain; /* the data is from plain buffers: durations are sums of laps, and blocks and empty laps are unknown */
    uint64_t negative_laps; /* number of negative laps in plain buffers, which are excluded from all figures */
};

/* Initialises a clock. A kernel may have no stages; they are then added together with their laps. Names are copied and
 * truncated to fit. */
void weir_kernel_clock_init(struct weir_kernel_clock *clock, const struct weir_kernel_clock_kernel *kernel);
/* Adds one launch. Returns the number of blocks, 0 if the launch wrote nothing. */
uint64_t weir_kernel_clock_add(struct weir_kernel_clock *clock, const void *table, size_t size, uint32_t launch,
                               uint64_t step_ns);
/* Adds a block from another source, including its rows if it has any. */
void weir_kernel_clock_add_block(struct weir_kernel_clock *clock, const struct weir_kernel_clock_block *block);
/* Adds a lap of a block that has no rows. Returns false if there are too many stages. */
bool weir_kernel_clock_add_lap(struct weir_kernel_clock *clock, const struct weir_kernel_clock_block *block,
                               const char *stage, uint32_t ticks);

/* A plain buffer of ticks per stage and iteration, as written by kernels in Triton, Taichi or Numba. If the enum of its
 * stages begins at 1, pass the address of row 1. */
struct weir_kernel_clock_plain {
    const int64_t *ticks; /* [n_stages][iterations]; 0 = no lap */
    size_t iterations;    /* at most UINT32_MAX */
    double ticks_per_ns;  /* 1 = the numbers are ns (%globaltimer); 0 = unknown (clock64) */
};
/* Adds the buffer of one launch. Returns 0, or -EINVAL if there are too many iterations, the rate is negative or not
 * finite, or the clock has no stages or already contains tables. */
int weir_kernel_clock_add_plain(struct weir_kernel_clock *clock, const struct weir_kernel_clock_plain *plain);

/* Returns the stage's fraction of the ticks of all stages, 0 to 1. */
double weir_kernel_clock_share(const struct weir_kernel_clock *clock, uint32_t stage);

/* Prints a table of the stages, then the data it is based on: the rate and its error, the cost of a lap, the fraction
 * of the blocks' and of the kernel's time that the laps cover, and missing data. */
void weir_kernel_clock_print(FILE *out, const struct weir_kernel_clock *clock);
/* weir_kernel_clock_csv_head writes the column names, and weir_kernel_clock_csv one line per stage. Columns with
 * unknown numbers are empty. So are launch, block and iteration, because the figures cover all of them. */
void weir_kernel_clock_csv_head(FILE *out);
void weir_kernel_clock_csv(FILE *out, const struct weir_kernel_clock *clock);
/* Like weir_kernel_clock_csv, but for a single iteration. The clock must contain only its laps, added with
 * weir_kernel_clock_add_lap, and not the block. */
void weir_kernel_clock_csv_iteration(FILE *out, const struct weir_kernel_clock *clock,
                                     const struct weir_kernel_clock_block *block, uint64_t iteration);
/* Like weir_kernel_clock_csv, but for each iteration of a buffer. */
void weir_kernel_clock_csv_plain(FILE *out, const struct weir_kernel_clock_kernel *kernel,
                                 const struct weir_kernel_clock_plain *plain);
/* Writes the clock as an object into the open array. */
void weir_kernel_clock_json(struct weir_json *json, const struct weir_kernel_clock *clock);

#ifdef __cplusplus
}
#endif

#endif
