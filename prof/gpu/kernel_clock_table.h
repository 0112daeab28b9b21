/* kernel_clock_table.h: what clocks inside a kernel write into the GPU's memory: cuda/kernel_clock.cuh writes it,
 * kernel_clock.h reads it. C, C++ and CUDA include it; it needs nothing else of Weir.
 *
 * A table is an array of records, one for each block that writes, record b at b * weir_kernel_clock_record_bytes. A
 * record is a head, then rows, one for each iteration that began: first when it began, in ticks after begin_ticks, then
 * the ticks of each stage in it; 0: the stage was not lapped in this iteration. Rows past the last one that is kept
 * are not written. Ticks are those of the block's SM (clock64); 32 bits of them are 2 s, and a row's numbers stop at
 * their maximum. Numbers are little-endian. */
#ifndef WEIR_PROF_GPU_KERNEL_CLOCK_TABLE_H
#define WEIR_PROF_GPU_KERNEL_CLOCK_TABLE_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

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

#ifdef __cplusplus
}
#endif

#endif
