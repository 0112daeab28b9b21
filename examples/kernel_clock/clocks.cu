// Times the stages of a kernel with clocks inside it (docs/internals/kernel_clock.md):
//     nvcc -std=c++17 clocks.cu $(pkg-config --cflags --libs weir_prof) -o clocks && ./clocks
#include <vector>
#include <weir/kernel_clock.cuh>
#include <weir/kernel_clock.h>

enum { LOAD, COMPUTE, STORE, STAGES, ITERATIONS = 64, BLOCKS = 264, THREADS = 256, N = 1 << 22, SAMPLES = 4096 };
static const char *const stages[] = {"load", "compute", "store"};
static const struct weir_kernel_clock_kernel described = {"polynomial", stages, STAGES, ITERATIONS};

__global__ void polynomial(const float *in, float *out, weir_kernel_clock_table table)
{
    weir::kernel_clock<STAGES, ITERATIONS> clock(table);
    // All threads of a block run the same number of iterations.
    for (int first = blockIdx.x * THREADS; first < N; first += BLOCKS * THREADS) {
        int i = first + threadIdx.x;
        clock.begin_iteration();
        float x = in[i], y = 1;
        clock.warp_lap(LOAD, x); // x has been loaded
        for (int k = 0; k < 64; k++)
            y = y * x + 1;
        clock.warp_lap(COMPUTE, y);
        out[i] = y;
        clock.block_lap_with_barrier(STORE); // all threads of the block have reached this line
    }
    clock.store();
}

int main()
{
    static uint64_t samples[SAMPLES];
    struct weir_kernel_clock clock;
    weir_kernel_clock_table table = {nullptr, 1, 1}; // block 0, launch 1
    size_t size = weir_kernel_clock_bytes(&described, table.blocks);
    float *in, *out;
    cudaMalloc(&in, N * sizeof *in), cudaMalloc(&out, N * sizeof *out), cudaMemset(in, 0, N * sizeof *in);
    cudaMalloc(&table.memory, size > sizeof samples ? size : sizeof samples);
    weir::kernel_clock_samples<<<1, 1>>>(static_cast<uint64_t *>(table.memory), SAMPLES);
    cudaMemcpy(samples, table.memory, sizeof samples, cudaMemcpyDeviceToHost);
    polynomial<<<BLOCKS, THREADS>>>(in, out, table);
    std::vector<uint8_t> bytes(size);
    cudaMemcpy(bytes.data(), table.memory, size, cudaMemcpyDeviceToHost);
    weir_kernel_clock_init(&clock, &described);
    if (cudaGetLastError() != cudaSuccess ||
        weir_kernel_clock_add(&clock, bytes.data(), size, table.launch, weir_kernel_clock_step(samples, SAMPLES)) == 0)
        return fprintf(stderr, "clocks: the kernel did not run; check that nvidia-smi lists a GPU\n"), 1;
    weir_kernel_clock_print(stdout, &clock);
    return 0;
}
