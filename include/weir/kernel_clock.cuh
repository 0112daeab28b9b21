/* kernel_clock.cuh: clocks inside a kernel: how long each of its stages takes, iteration by iteration. For the CUDA
 * C++17 of your own .cu files; what it writes is read by weir/kernel_clock.h. docs/kernel_clock.md says what is
 * measured.
 *
 *     enum { LOAD, COMPUTE, STORE, STAGES };
 *
 *     __global__ void kernel(..., weir_kernel_clock_table table)
 *     {
 *         weir::kernel_clock<STAGES, 64> clock(table);      // all threads of the block, before any returns
 *         for (...) {
 *             clock.begin_iteration();
 *             float x = in[i];
 *             clock.warp_lap(LOAD, x);                      // x has arrived
 *             x = f(x);
 *             clock.warp_lap(COMPUTE, x);
 *             out[i] = x;
 *             clock.block_lap_with_barrier(STORE);
 *         }
 *         clock.store();
 *     }
 *
 * Thread 0 of block 0 writes, or of as many blocks as the table has room for; the others go past each call by one
 * branch. A lap is what clock64 counted on the block's own SM since the lap before or since begin_iteration; a stage
 * that is lapped several times in an iteration has their sum. Laps are kept in the block's shared memory, 4 bytes for
 * each of ITERATIONS x (1 + STAGES), and stored in one go at the end. Iterations past ITERATIONS are counted and not
 * written.
 *
 * Switched off by the third argument, kernel_clock<STAGES, ITERATIONS, false>, all of it is empty: the kernel is the
 * one without clocks, instruction by instruction, and without the barriers of block_lap_with_barrier. A kernel that is
 * instantiated twice has both. One clock of a type per kernel. */
#ifndef WEIR_KERNEL_CLOCK_CUH
#define WEIR_KERNEL_CLOCK_CUH

#include "weir/kernel_clock.h"

#include <stdint.h>
#include <string.h>

namespace weir
{

namespace kernel_clock_parts
{

/* volatile: in order with each other, with barriers and with memory, and none is left out. All 64 bits are used: for
 * the lower half alone the compiler takes a slower instruction at times. */
__device__ __forceinline__ uint64_t ticks()
{
    uint64_t now;
    asm volatile("mov.u64 %0, %%clock64;" : "=l"(now)::"memory");
    return now;
}

__device__ __forceinline__ uint64_t global_ns()
{
    uint64_t now;
    asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(now)::"memory");
    return now;
}

__device__ __forceinline__ uint32_t sm()
{
    uint32_t number;
    asm volatile("mov.u32 %0, %%smid;" : "=r"(number));
    return number;
}

/* So many ticks as 32 bits hold. */
__device__ __forceinline__ uint32_t short_ticks(uint64_t ticks)
{
    return ticks > UINT32_MAX ? UINT32_MAX : (uint32_t)ticks;
}

/* clock64 and %globaltimer of one moment, and how long that moment was. */
struct moment {
    uint64_t ticks, ns;
    uint32_t gap_ticks;
};

__device__ __forceinline__ moment now()
{
    uint64_t before = kernel_clock_parts::ticks(), ns = global_ns(), after = kernel_clock_parts::ticks();
    return moment{before + (after - before) / 2, ns, short_ticks(after - before)};
}

/* The value's words, all in one: whoever has that has waited for each. */
template <typename T> __device__ __forceinline__ uint32_t folded(const T &value)
{
    uint32_t words[(sizeof(T) + 3) / 4] = {}, all = 0;
    memcpy(words, &value, sizeof(T));
#pragma unroll
    for (uint32_t word : words)
        all ^= word;
    return all;
}

/* Neither the compiler nor the SM goes on to the next reading of a clock before the values are there: one instruction
 * compares them, and another, which stays in order with clocks, would count an event for profilers if they were equal
 * to a number. No branch, and nothing that the kernel can see. */
template <typename... T> __device__ __forceinline__ void await(const T &...values)
{
    if constexpr (sizeof...(T) > 0) {
        uint32_t all = (folded(values) ^ ...);
        asm volatile("{\n\t.reg .pred p;\n\tsetp.eq.u32 p, %0, 0x7fc0beef;\n\t@p pmevent 0;\n\t}" ::"r"(all)
                     : "memory");
    }
}

} // namespace kernel_clock_parts

template <int STAGES, int ITERATIONS = 64, bool ON = true> class kernel_clock
{
    static_assert(STAGES >= 1 && STAGES <= WEIR_KERNEL_CLOCK_STAGES_MAX, "1 to 32 stages");
    static_assert(ITERATIONS >= 1 && ITERATIONS <= WEIR_KERNEL_CLOCK_ROWS_MAX, "1 to 4096 iterations");

  public:
    /* Called by all threads of the block at once. */
    __device__ __forceinline__ explicit kernel_clock(const weir_kernel_clock_table &table) : table_(table)
    {
        writes_ = table.memory != nullptr && block() < table.blocks;
        first_warp_ = writes_ && thread() < 32;
        if (writes_)
            open_record();
    }

    /* Laps are counted from here on. */
    __device__ __forceinline__ void begin_iteration()
    {
        if (!first_warp_)
            return;
        keep_row();
        iterations_++;
        last_ = kernel_clock_parts::ticks();
        began_ = (uint32_t)(last_ >> 16);
    }

    /* Goes on when the values are there, and ends no stage: for what a lap should wait for and cannot name, as it is
     * there under a condition. */
    template <typename... T> __device__ __forceinline__ void wait_for(const T &...values)
    {
        if (first_warp_)
            kernel_clock_parts::await(values...);
    }

    /* Ends a stage, as the warp of thread 0 sees it: it waits for no other warp, and for memory only where a value is
     * used or named here. values: what the stage has computed or loaded, which is there then; else what follows is
     * billed for it, at its first use. stage: a constant, so that laps are in registers. */
    template <typename... T> __device__ __forceinline__ void warp_lap(int stage, const T &...values)
    {
        if (!first_warp_)
            return;
        kernel_clock_parts::await(values...);
        note(stage);
    }

    /* Ends a stage when all threads of the block have come here: a __syncthreads_count(), which all of them call. The
     * kernel must do without it: it is there in blocks that write, where the clock is switched on, and nowhere else. A
     * loop around it must have as many turns for all threads of the block. */
    template <typename... T> __device__ __forceinline__ void block_lap_with_barrier(int stage, const T &...values)
    {
        if (!writes_)
            return;
        kernel_clock_parts::await(values...);
        /* Behind __syncthreads() the clock is read before the others are there: on an H200 24 ticks were counted while
         * another warp was 20,000 late. A barrier that counts has a result to wait for. */
        int here = __syncthreads_count(1);
        kernel_clock_parts::await(here);
        if (first_warp_)
            note(stage);
    }

    /* Writes the laps; called once, by thread 0 at least. What follows is not measured. */
    __device__ __forceinline__ void store()
    {
        if (!first_warp_)
            return;
        kernel_clock_parts::moment end = kernel_clock_parts::now();
        keep_row();
        if (thread() != 0)
            return;
        weir_kernel_clock_record &head = record();
        head.end_ticks = end.ticks;
        head.end_ns = end.ns;
        head.end_gap_ticks = end.gap_ticks;
        head.iterations = iterations_;
        head.laps = ended_;
        copy_rows(reinterpret_cast<uint4 *>(&head + 1));
    }

  private:
    static constexpr uint32_t WORDS = 1 + STAGES; /* of a row */
    static constexpr int CALIBRATIONS = 4;

    weir_kernel_clock_table table_;
    bool writes_, first_warp_;
    uint32_t iterations_ = 0, ended_ = 0;   /* laps, in all of them */
    uint32_t laps_[STAGES] = {}, long_ = 0; /* of the iteration; not 0: one does not fit in 32 bits */
    uint64_t last_ = 0;                     /* when the last lap ended */
    uint32_t began_ = 0;                    /* when the iteration did, in units of 65,536 ticks */
    uint32_t first_ticks_ = 0;              /* lower half of when the clock began */

    static __device__ __forceinline__ uint32_t thread()
    {
        return threadIdx.x + blockDim.x * (threadIdx.y + blockDim.y * threadIdx.z);
    }

    static __device__ __forceinline__ uint64_t block()
    {
        return blockIdx.x + (uint64_t)gridDim.x * (blockIdx.y + (uint64_t)gridDim.y * blockIdx.z);
    }

    /* Thread 0's own; whole numbers of 16 bytes. */
    static __device__ __forceinline__ uint32_t *rows()
    {
        __shared__ __align__(16) uint32_t words[(ITERATIONS * WORDS + 3) / 4 * 4];
        return words;
    }

    __device__ __forceinline__ weir_kernel_clock_record &record() const
    {
        size_t at = block() * weir_kernel_clock_record_bytes(STAGES, ITERATIONS);
        return *reinterpret_cast<weir_kernel_clock_record *>(static_cast<uint8_t *>(table_.memory) + at);
    }

    __device__ __forceinline__ void note(int stage)
    {
        uint64_t now = kernel_clock_parts::ticks(), lap = now - last_;
        laps_[stage] += (uint32_t)lap;
        long_ |= (uint32_t)(lap >> 32);
        ended_++;
        last_ = now;
    }

    /* The iteration's laps go to shared memory, if there is room. */
    __device__ __forceinline__ void keep_row()
    {
        if (iterations_ - 1 < ITERATIONS && thread() == 0) { /* unsigned: none of iteration 0 */
            uint32_t *row = rows() + (iterations_ - 1) * WORDS;
            bool too_long = long_ != 0 || (uint32_t)(last_ >> 16) - began_ >= UINT16_MAX; /* a sum of laps */
            uint32_t began = (uint32_t)last_;
            for (int stage = 0; stage < STAGES; stage++) {
                began -= laps_[stage]; /* there is nothing between laps */
                row[1 + stage] = too_long ? UINT32_MAX : laps_[stage];
            }
            row[0] = began - first_ticks_;
        }
        for (int stage = 0; stage < STAGES; stage++)
            laps_[stage] = 0;
        long_ = 0;
    }

    /* What an empty lap measures: of several, the least; the same instructions as of others. */
    template <bool BARRIER> __device__ __forceinline__ uint32_t empty_lap()
    {
        uint32_t least = UINT32_MAX;
        last_ = kernel_clock_parts::ticks();
#pragma unroll
        for (int i = 0; i < CALIBRATIONS; i++) {
            laps_[0] = 0;
            if (BARRIER)
                block_lap_with_barrier(0);
            else
                warp_lap(0);
            least = min(least, laps_[0]);
        }
        least = long_ != 0 ? UINT32_MAX : least;
        laps_[0] = long_ = ended_ = 0;
        return least;
    }

    /* All that is known at the beginning. */
    __device__ __forceinline__ void open_record()
    {
        uint32_t warp_lap_ticks = empty_lap<false>(), block_lap_ticks = empty_lap<true>();
        if (thread() == 0) {
            weir_kernel_clock_record &head = record();
            head.magic = WEIR_KERNEL_CLOCK_MAGIC;
            head.launch = table_.launch;
            head.stages = STAGES;
            head.rows_max = ITERATIONS;
            head.block = block();
            head.grid = (uint64_t)gridDim.x * gridDim.y * gridDim.z;
            head.sm = kernel_clock_parts::sm();
            head.threads = blockDim.x * blockDim.y * blockDim.z;
            head.warp_lap_ticks = warp_lap_ticks;
            head.block_lap_ticks = block_lap_ticks;
            head.end_ticks = head.end_ns = head.end_gap_ticks = head.iterations = head.laps = 0;
        }
        kernel_clock_parts::moment begin = kernel_clock_parts::now();
        first_ticks_ = (uint32_t)begin.ticks;
        if (thread() == 0) {
            weir_kernel_clock_record &head = record();
            head.begin_ticks = begin.ticks;
            head.begin_ns = begin.ns;
            head.begin_gap_ticks = begin.gap_ticks;
        }
    }

    __device__ __forceinline__ void copy_rows(uint4 *to) const
    {
        uint32_t n = iterations_ < ITERATIONS ? iterations_ : ITERATIONS;
        const uint4 *from = reinterpret_cast<const uint4 *>(rows());
#pragma unroll 4
        for (uint32_t i = 0; i < (n * WORDS + 3) / 4; i++)
            to[i] = from[i];
    }
};

/* Switched off. */
template <int STAGES, int ITERATIONS> class kernel_clock<STAGES, ITERATIONS, false>
{
  public:
    kernel_clock() = default;
    __device__ __forceinline__ explicit kernel_clock(const weir_kernel_clock_table &)
    {
    }
    __device__ __forceinline__ void begin_iteration()
    {
    }
    template <typename... T> __device__ __forceinline__ void wait_for(const T &...)
    {
    }
    template <typename... T> __device__ __forceinline__ void warp_lap(int, const T &...)
    {
    }
    template <typename... T> __device__ __forceinline__ void block_lap_with_barrier(int, const T &...)
    {
    }
    __device__ __forceinline__ void store()
    {
    }
};

/* n readings of %globaltimer, one after the other, by one thread: kernel_clock_samples<<<1, 1>>>(to, n), to with room
 * for n. weir_kernel_clock_step finds the step in them. */
template <typename T> __global__ void kernel_clock_samples(T *to, uint32_t n)
{
    for (uint32_t i = 0; i < n; i++)
        to[i] = kernel_clock_parts::global_ns();
}

} // namespace weir

#endif
