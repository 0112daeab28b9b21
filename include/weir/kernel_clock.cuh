/* kernel_clock.cuh: clocks inside a kernel, for CUDA C++17. They time each stage of each iteration. weir/kernel_clock.h
 * evaluates the results, and docs/internals/kernel_clock.md explains them.
 *
 *     enum { LOAD, COMPUTE, STORE, STAGES };
 *
 *     __global__ void kernel(..., weir_kernel_clock_table table)
 *     {
 *         weir::kernel_clock<STAGES, 64> clock(table);      // all threads of the block, before any of them returns
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
 * In each block that has a record in the table (with one record, only block 0), thread 0 writes it. Other blocks, and
 * other warps except at barriers, skip each call with one branch. A lap is the difference between clock64 now and at
 * the previous lap or begin_iteration, on the block's own SM. Laps of the same stage in one iteration are added up.
 * Laps are kept in the block's shared memory, which takes 4 bytes for each of ITERATIONS x (1 + STAGES) numbers, and
 * are stored together at the end. Iterations beyond ITERATIONS are counted but not written.
 *
 * kernel_clock<STAGES, ITERATIONS, false> is empty: the kernel has the same instructions as without clocks, and
 * block_lap_with_barrier has no barrier. A kernel may be instantiated both with and without clocks. A kernel may
 * contain only one clock of each type. */
#ifndef WEIR_KERNEL_CLOCK_CUH
#define WEIR_KERNEL_CLOCK_CUH

#include "weir/kernel_clock.h"

#include <stdint.h>
#include <string.h>

namespace weir
{

namespace kernel_clock_parts
{

/* volatile keeps the readings in order with respect to each other, to barriers and to memory accesses, and prevents
 * their removal. All 64 bits are used, because the compiler sometimes chooses a slower instruction when only the lower
 * half is needed. */
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

/* Converts to 32 bits, with saturation. */
__device__ __forceinline__ uint32_t short_ticks(uint64_t ticks)
{
    return ticks > UINT32_MAX ? UINT32_MAX : (uint32_t)ticks;
}

/* clock64 and %globaltimer read together, and the time that reading them took. */
struct moment {
    uint64_t ticks, ns;
    uint32_t gap_ticks;
};

__device__ __forceinline__ moment now()
{
    uint64_t before = kernel_clock_parts::ticks(), ns = global_ns(), after = kernel_clock_parts::ticks();
    return moment{before + (after - before) / 2, ns, short_ticks(after - before)};
}

/* Combines all words of the value, so that the result depends on each of them. */
template <typename T> __device__ __forceinline__ uint32_t folded(const T &value)
{
    uint32_t words[(sizeof(T) + 3) / 4] = {}, all = 0;
    memcpy(words, &value, sizeof(T));
#pragma unroll
    for (uint32_t word : words)
        all ^= word;
    return all;
}

/* Delays the next clock reading until the values are available. One instruction compares them with a constant. If they
 * were equal, a second instruction, which stays in order with clock readings, would count a profiler event. There is no
 * branch and no effect on the kernel. */
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
    static_assert(STAGES >= 1 && STAGES <= WEIR_KERNEL_CLOCK_STAGES_MAX, "STAGES must be from 1 to 32");
    static_assert(ITERATIONS >= 1 && ITERATIONS <= WEIR_KERNEL_CLOCK_ROWS_MAX, "ITERATIONS must be from 1 to 4096");

  public:
    /* All threads of the block must call it together. */
    __device__ __forceinline__ explicit kernel_clock(const weir_kernel_clock_table &table) : table_(table)
    {
        writes_ = table.memory != nullptr && block() < table.blocks;
        first_warp_ = writes_ && thread() < 32;
        if (writes_)
            open_record();
    }

    /* Starts the first lap of an iteration. */
    __device__ __forceinline__ void begin_iteration()
    {
        if (!first_warp_)
            return;
        keep_row();
        iterations_++;
        last_ = kernel_clock_parts::ticks();
        began_ = (uint32_t)(last_ >> 16);
    }

    /* Waits for values without ending a stage. Use it for values that the next lap should wait for but cannot name,
     * because they exist only under a condition. */
    template <typename... T> __device__ __forceinline__ void wait_for(const T &...values)
    {
        if (first_warp_)
            kernel_clock_parts::await(values...);
    }

    /* Ends a stage as seen by the warp of thread 0. It does not wait for other warps, and waits for memory only if a
     * value is used or passed here. values: results of the stage to wait for; otherwise the wait is charged to the
     * stage that first uses them. stage must be a constant, so that laps are kept in registers. */
    template <typename... T> __device__ __forceinline__ void warp_lap(int stage, const T &...values)
    {
        if (!first_warp_)
            return;
        kernel_clock_parts::await(values...);
        note(stage);
    }

    /* Ends a stage when all threads of the block have arrived at a __syncthreads_count(), which all of them must call.
     * The kernel must be correct without this barrier, because it exists only in blocks that write, and only if the
     * clock is switched on. If the call is inside a loop, the loop must have the same number of iterations for all
     * threads of the block. */
    template <typename... T> __device__ __forceinline__ void block_lap_with_barrier(int stage, const T &...values)
    {
        if (!writes_)
            return;
        kernel_clock_parts::await(values...);
        /* After a plain __syncthreads(), the clock can be read before the other threads have arrived: on an H200, a lap
         * of 24 ticks was measured although another warp was 20,000 ticks late. A counting barrier returns a result
         * that can be waited for. */
        int here = __syncthreads_count(1);
        kernel_clock_parts::await(here);
        if (first_warp_)
            note(stage);
    }

    /* Writes the laps. Must be called once, at least by thread 0. Later work is not measured. */
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
    static constexpr uint32_t WORDS = 1 + STAGES; /* numbers per row */
    static constexpr int CALIBRATIONS = 4;

    weir_kernel_clock_table table_;
    bool writes_, first_warp_;
    uint32_t iterations_ = 0, ended_ = 0;   /* ended_ counts the laps of all iterations */
    uint32_t laps_[STAGES] = {}, long_ = 0; /* of the current iteration; long_ is nonzero if a lap exceeds 32 bits */
    uint64_t last_ = 0;                     /* end of the last lap */
    uint32_t began_ = 0;                    /* start of the iteration, in units of 65,536 ticks */
    uint32_t first_ticks_ = 0;              /* lower half of clock64 at the start */

    static __device__ __forceinline__ uint32_t thread()
    {
        return threadIdx.x + blockDim.x * (threadIdx.y + blockDim.y * threadIdx.z);
    }

    static __device__ __forceinline__ uint64_t block()
    {
        return blockIdx.x + (uint64_t)gridDim.x * (blockIdx.y + (uint64_t)gridDim.y * blockIdx.z);
    }

    /* Returns thread 0's rows, whose size is a multiple of 16 bytes. */
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

    /* Moves the iteration's laps to shared memory if there is a row left for them. */
    __device__ __forceinline__ void keep_row()
    {
        if (iterations_ - 1 < ITERATIONS && thread() == 0) { /* iterations_ is unsigned, so this excludes 0 */
            uint32_t *row = rows() + (iterations_ - 1) * WORDS;
            bool too_long =
                long_ != 0 || (uint32_t)(last_ >> 16) - began_ >= UINT16_MAX; /* also if the sum of laps is too long */
            uint32_t began = (uint32_t)last_;
            for (int stage = 0; stage < STAGES; stage++) {
                began -= laps_[stage]; /* laps are contiguous */
                row[1 + stage] = too_long ? UINT32_MAX : laps_[stage];
            }
            row[0] = began - first_ticks_;
        }
        for (int stage = 0; stage < STAGES; stage++)
            laps_[stage] = 0;
        long_ = 0;
    }

    /* Measures the duration of an empty lap, as the minimum of several. It executes the same instructions as any other
     * lap. */
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

    /* Writes the part of the record that is known at the start. */
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

/* The clock when it is switched off. */
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

/* Takes n consecutive readings of %globaltimer with one thread: kernel_clock_samples<<<1, 1>>>(to, n).
 * weir_kernel_clock_step computes the step from them. */
template <typename T> __global__ void kernel_clock_samples(T *to, uint32_t n)
{
    for (uint32_t i = 0; i < n; i++)
        to[i] = kernel_clock_parts::global_ns();
}

} // namespace weir

#endif
