/* weir/kernel_clock.cuh on a real GPU. Laps around dependent chains of known length must have that length, which shows
 * that neither the compiler nor the SM moves work across a lap. A lap with a barrier must include the whole block.
 * Kernels must write only to their tables. Ticks are converted to ns. Prints the step of %globaltimer and the cost of a
 * lap.
 *
 * "untimed" skips checks that fail under tools that slow everything down. */
#include "weir/kernel_clock.cuh"
#include "weir/kernel_clock.h"

#include <cuda_runtime.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <vector>

namespace
{

constexpr int SKIPPED = 77, STEP = 512, TURNS = 16, GUARD = 4096, PATTERN = 0x5c;
bool timed = true;
uint64_t step_ns;

void check(bool ok, const char *format, ...)
{
    va_list args;
    if (ok)
        return;
    va_start(args, format);
    fflush(stdout);
    fputs("FAILED: ", stderr);
    vfprintf(stderr, format, args);
    fputc('\n', stderr);
    va_end(args);
    exit(1);
}

void fine(cudaError_t error)
{
    check(error == cudaSuccess, "%s", cudaGetErrorString(error));
}

/* ---- tables ---- */

struct table {
    weir_kernel_clock_kernel kernel;
    weir_kernel_clock_table gpu;
    std::vector<uint8_t> bytes;
};

table make_table(const weir_kernel_clock_kernel &kernel, uint32_t blocks)
{
    table t = {kernel, {nullptr, blocks, 1}, {}};
    t.bytes.resize(weir_kernel_clock_bytes(&kernel, blocks));
    fine(cudaMalloc(&t.gpu.memory, t.bytes.size() + GUARD));
    fine(cudaMemset(t.gpu.memory, PATTERN, t.bytes.size() + GUARD));
    return t;
}

/* Reads and frees a kernel's table, and checks that nothing was written past it. */
weir_kernel_clock read_table(table &t, uint64_t blocks)
{
    std::vector<uint8_t> guard(GUARD);
    weir_kernel_clock clock;
    fine(cudaDeviceSynchronize());
    fine(cudaMemcpy(t.bytes.data(), t.gpu.memory, t.bytes.size(), cudaMemcpyDeviceToHost));
    fine(
        cudaMemcpy(guard.data(), static_cast<uint8_t *>(t.gpu.memory) + t.bytes.size(), GUARD, cudaMemcpyDeviceToHost));
    fine(cudaFree(t.gpu.memory));
    for (uint8_t byte : guard)
        check(byte == PATTERN, "%s wrote past its table", t.kernel.name);
    weir_kernel_clock_init(&clock, &t.kernel);
    uint64_t n = weir_kernel_clock_add(&clock, t.bytes.data(), t.bytes.size(), t.gpu.launch, step_ns);
    check(n == blocks, "%s: %llu records of %llu", t.kernel.name, (unsigned long long)n, (unsigned long long)blocks);
    check(clock.damaged == 0, "%s: %llu records are invalid", t.kernel.name, (unsigned long long)clock.damaged);
    return clock;
}

/* ---- dependent chains ---- */

enum { EMPTY, SHORT, LONG, AGAIN, CHAIN_STAGES };
const char *const chain_stages[] = {"empty", "512 fma", "2048 fma", "empty again"};

template <int N> __device__ __forceinline__ float chain(float x, float a, float b)
{
#pragma unroll 64
    for (int i = 0; i < N; i++)
        x = fmaf(x, a, b);
    return x;
}

/* The two chains are independent, so only the laps order them. The factors are loaded from memory, because nvcc 13.0
 * would reload kernel arguments in every iteration of a chain's loop, which takes 30 ticks. */
__global__ void chains(float *out, const float *factors, weir_kernel_clock_table table)
{
    weir::kernel_clock<CHAIN_STAGES, TURNS> clock(table);
    float a = factors[0], b = factors[1];
    for (int i = 0; i < TURNS; i++) {
        float x = out[0], y = out[1];
        clock.wait_for(x, y);
        clock.begin_iteration();
        clock.warp_lap(EMPTY);
        x = chain<STEP>(x, a, b);
        clock.warp_lap(SHORT, x);
        y = chain<4 * STEP>(y, b, a);
        clock.warp_lap(LONG, y);
        clock.warp_lap(AGAIN);
        out[threadIdx.x + 2] = x + y;
    }
    clock.store();
}

void test_chains()
{
    const float factors[] = {0.5f, 0.25f};
    float *out, *gpu_factors;
    table t = make_table({"chains", chain_stages, CHAIN_STAGES, TURNS}, 1);
    fine(cudaMalloc(&out, 64 * sizeof *out));
    fine(cudaMemset(out, 0, 64 * sizeof *out));
    fine(cudaMalloc(&gpu_factors, sizeof factors));
    fine(cudaMemcpy(gpu_factors, factors, sizeof factors, cudaMemcpyHostToDevice));
    chains<<<1, 32>>>(out, gpu_factors, t.gpu);
    weir_kernel_clock clock = read_table(t, 1);
    fine(cudaFree(out));
    fine(cudaFree(gpu_factors));
    weir_kernel_clock_print(stdout, &clock);
    double shorter = (double)clock.stages[SHORT].min_ticks, longer = (double)clock.stages[LONG].min_ticks;
    double each = (longer - shorter) / (3.0 * STEP), lap = (double)clock.warp_lap_ticks;
    printf("a dependent fma takes %.2f ticks\n", each);
    check(clock.laps == CHAIN_STAGES * TURNS, "%llu laps of %d", (unsigned long long)clock.laps, CHAIN_STAGES * TURNS);
    if (!timed)
        return;
    check(each >= 3.9 && each < 9, "%.2f ticks for a dependent fma", each);
    check(shorter > STEP * each * 0.95 && shorter < STEP * each * 1.05 + 64,
          "512 dependent fma take %.0f ticks, not %.0f", shorter, STEP * each);
    for (int stage : {EMPTY, AGAIN})
        check((double)clock.stages[stage].min_ticks <= lap + 32, "an empty lap takes %llu ticks, but a lap costs %.0f",
              (unsigned long long)clock.stages[stage].min_ticks, lap);
}

/* ---- attribution of loads ---- */

enum { LOAD, USE, LOAD_STAGES };
const char *const load_stages[] = {"load", "use"};

/* Each iteration reads a cache line that was not read before. */
template <bool NAMED> __global__ void loads(const int *in, int *out, weir_kernel_clock_table table)
{
    weir::kernel_clock<LOAD_STAGES, TURNS> clock(table);
    for (int i = 0; i < TURNS; i++) {
        clock.begin_iteration();
        int x = __ldcv(in + i * 4096 + threadIdx.x);
        if (NAMED)
            clock.warp_lap(LOAD, x);
        else
            clock.warp_lap(LOAD);
        int y = x * x;
        clock.warp_lap(USE, y);
        out[threadIdx.x] = y;
    }
    clock.store();
}

void test_loads()
{
    int *in, *out;
    fine(cudaMalloc(&in, TURNS * 4096 * sizeof *in + 128));
    fine(cudaMalloc(&out, 32 * sizeof *out));
    fine(cudaMemset(in, 1, TURNS * 4096 * sizeof *in));
    table named = make_table({"loads, named", load_stages, LOAD_STAGES, TURNS}, 1);
    loads<true><<<1, 32>>>(in, out, named.gpu);
    weir_kernel_clock with = read_table(named, 1);
    table unnamed = make_table({"loads", load_stages, LOAD_STAGES, TURNS}, 1);
    loads<false><<<1, 32>>>(in, out, unnamed.gpu);
    weir_kernel_clock without = read_table(unnamed, 1);
    fine(cudaFree(in));
    fine(cudaFree(out));
    printf("a load passed to a lap: %llu ticks, then %llu; not passed: %llu, then %llu\n",
           (unsigned long long)with.stages[LOAD].min_ticks, (unsigned long long)with.stages[USE].min_ticks,
           (unsigned long long)without.stages[LOAD].min_ticks, (unsigned long long)without.stages[USE].min_ticks);
    if (!timed)
        return;
    check(with.stages[LOAD].min_ticks > with.stages[USE].min_ticks + 100, "a lap does not wait for its arguments");
    check(without.stages[USE].min_ticks > without.stages[LOAD].min_ticks + 100,
          "a lap waits for values that are not its arguments");
}

/* ---- warps and blocks ---- */

enum { OWN, WHOLE, BLOCK_STAGES };
const char *const block_stages[] = {"own warp", "whole block"};
constexpr uint64_t SPIN_TICKS = 20000;

/* The second warp finishes later than the first. */
__global__ void late_warp(weir_kernel_clock_table table)
{
    weir::kernel_clock<BLOCK_STAGES, TURNS> clock(table);
    for (int i = 0; i < TURNS; i++) {
        clock.begin_iteration();
        uint64_t start = weir::kernel_clock_parts::ticks();
        while (threadIdx.x >= 32 && weir::kernel_clock_parts::ticks() - start < SPIN_TICKS)
            ;
        clock.warp_lap(OWN);
        clock.block_lap_with_barrier(WHOLE);
    }
    clock.store();
}

void test_barrier()
{
    table t = make_table({"a late warp", block_stages, BLOCK_STAGES, TURNS}, 1);
    late_warp<<<1, 64>>>(t.gpu);
    weir_kernel_clock clock = read_table(t, 1);
    weir_kernel_clock_print(stdout, &clock);
    if (!timed)
        return;
    check(clock.stages[OWN].min_ticks < SPIN_TICKS / 10, "a warp's lap waits for another warp");
    check(clock.stages[WHOLE].min_ticks > SPIN_TICKS * 9 / 10, "a block's lap does not wait for its warps");
}

/* ---- many blocks, also more than the table has space for ---- */

enum { ALL, ALL_STAGES };
const char *const all_stages[] = {"all"};

/* Launched with three-dimensional blocks. Threads without work return early. */
__global__ void many_blocks(weir_kernel_clock_table table, int iterations, int *out)
{
    weir::kernel_clock<ALL_STAGES, 8> clock(table);
    if (threadIdx.y > 1)
        return;
    for (int i = 0; i < iterations; i++) {
        clock.begin_iteration();
        int x = out[threadIdx.x] + i;
        clock.warp_lap(ALL, x);
    }
    clock.store();
}

weir_kernel_clock run_many(uint32_t room, int iterations, uint64_t want)
{
    int *out;
    fine(cudaMalloc(&out, 64 * sizeof *out));
    fine(cudaMemset(out, 0, 64 * sizeof *out));
    table t = make_table({"many blocks", all_stages, ALL_STAGES, 8}, room);
    many_blocks<<<dim3(7, 5, 9), dim3(16, 4)>>>(t.gpu, iterations, out);
    weir_kernel_clock clock = read_table(t, want);
    fine(cudaFree(out));
    return clock;
}

void test_blocks()
{
    weir_kernel_clock clock = run_many(315, 5, 315);
    check(clock.grid == 315 && clock.iterations == 315 * 5 && clock.rows == 315 * 5,
          "315 blocks are not counted correctly");
    clock = run_many(200, 5, 200);
    check(clock.grid == 315 && clock.blocks == 200, "200 blocks are not counted correctly");
    clock = run_many(1, 1000, 1);
    check(clock.iterations == 1000 && clock.rows == 8 && clock.stages[ALL].laps == 8,
          "1000 iterations are not counted correctly");
    clock = run_many(1000, 0, 315);
    check(clock.iterations == 0 && clock.stages[ALL].laps == 0, "a kernel without iterations is not counted correctly");
    many_blocks<<<1, 32>>>(weir_kernel_clock_table{nullptr, 1000, 1}, 0, nullptr);
    fine(cudaDeviceSynchronize());
}

/* ---- nanoseconds ---- */

constexpr uint64_t MS = 1000000;

__global__ void one_ms(weir_kernel_clock_table table)
{
    weir::kernel_clock<ALL_STAGES, TURNS> clock(table);
    for (int i = 0; i < TURNS; i++) {
        clock.begin_iteration();
        uint64_t start = weir::kernel_clock_parts::global_ns();
        while (weir::kernel_clock_parts::global_ns() - start < MS)
            ;
        clock.warp_lap(ALL);
    }
    clock.store();
}

void test_ns()
{
    table t = make_table({"a ms", all_stages, ALL_STAGES, TURNS}, 1);
    one_ms<<<1, 1>>>(t.gpu);
    weir_kernel_clock clock = read_table(t, 1);
    weir_kernel_clock_print(stdout, &clock);
    check(clock.timed_blocks == 1, "16 ms are too short for this GPU's %%globaltimer");
    double ns = clock.stages[ALL].ns / TURNS;
    if (timed)
        check(ns > MS * 0.98 && ns < MS * 1.02 + 2 * (double)step_ns, "1 ms takes %.0f ns", ns);
}

void find_step()
{
    constexpr uint32_t N = 1 << 15;
    std::vector<uint64_t> samples(N);
    uint64_t *gpu;
    fine(cudaMalloc(&gpu, N * sizeof *gpu));
    weir::kernel_clock_samples<<<1, 1>>>(gpu, N);
    fine(cudaMemcpy(samples.data(), gpu, N * sizeof *gpu, cudaMemcpyDeviceToHost));
    fine(cudaFree(gpu));
    step_ns = weir_kernel_clock_step(samples.data(), N);
    printf("%%globaltimer steps by %llu ns; %u readings took %llu ns\n", (unsigned long long)step_ns, N,
           (unsigned long long)(samples[N - 1] - samples[0]));
    check(step_ns > 0 && step_ns < 100000, "no step");
}

} // namespace

int main(int argc, char **argv)
{
    int n = 0;
    cudaDeviceProp properties;
    timed = argc < 2 || strcmp(argv[1], "untimed") != 0;
    setvbuf(stdout, nullptr, _IOLBF, 0);
    if (cudaGetDeviceCount(&n) != cudaSuccess || n == 0) {
        printf("skipped: no GPU\n");
        return SKIPPED;
    }
    fine(cudaGetDeviceProperties(&properties, 0));
    printf("%s, %d SMs\n", properties.name, properties.multiProcessorCount);
    find_step();
    test_chains();
    test_loads();
    test_barrier();
    test_blocks();
    test_ns();
    printf("all checks passed\n");
    return 0;
}
