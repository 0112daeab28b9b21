#include "extras/scenario/cli/scenario_text.h"

const struct scenario_text weir_scenario_texts[WEIR_SCENARIOS] = {
    [WEIR_SCENARIO_DATALOADER] =
        {
            .name = "dataloader",
            .cause = WEIR_IDLE_DATA,
            .shows = "making an item takes 2 ms of simulated I/O and 4000 units of CPU work (0.2 ms), and the workers "
                     "do not keep up with the step",
            .rule = "The data wait is most of the iteration, and the GPU is idle while the loop's thread is in "
                    "08_wait_for_data (enumerate(DataLoader)#...__next__ in the trace): no kernel is slow.",
            .remedy =
                "More workers (--num_workers) and a deeper prefetch (--prefetch_factor), until a batch is made in "
                "less than a step; then less work for an item.",
            .cpu_range = "enumerate(DataLoader)",
            .cpu_rule = "The rule is the same: the data wait is longer than the step. Workers and the step share the "
                        "cores.",
            .fix = "more workers and prefetch",
        },
    [WEIR_SCENARIO_SYNC] =
        {
            .name = "sync",
            .cause = WEIR_IDLE_SYNC,
            .shows = "the loss is read back between forward and backward, and a script does with it for 0.8 ms what "
                     "scripts do with a value",
            .rule = "In the middle of each step the GPU runs dry while the loop's thread is in a *Synchronize call "
                    "(read_loss_back in the trace), and what the thread does next is not hidden behind kernels.",
            .remedy = "Take .item(), .cpu() and print out of the step: keep the value on the GPU, send it without a "
                      "wait and use it a step later, or read it once in many steps.",
            .cpu_range = "read_loss_back",
            .cpu_rule = "An operator is done when its call returns, so reading a value waits for nothing, and the "
                        "remedy saves no time. What read_loss_back takes is the use of the value, 0.8 ms.",
            .fix = "the loss is sent, and used a step later",
        },
    [WEIR_SCENARIO_TINY_OPS] =
        {
            .name = "tiny_ops",
            .cause = WEIR_IDLE_LAUNCHING,
            .shows = "a block of 200 tiny operations, with parameters in the same optimiser, launches a kernel for "
                     "each, forwards and backwards",
            .rule = "There are hundreds of kernels a step, each shorter than its launch: the GPU is idle while the "
                    "loop's thread is in launch calls, and the launch delay is small.",
            .remedy = "Fewer and longer kernels: fuse the operations (torch.compile), record the step as a CUDA graph, "
                      "or take a larger batch.",
            .cpu_range = "affine",
            .cpu_rule =
                "Hundreds of short calls of one operator (affine) in a step, each a pass over memory that a fused "
                "one makes once.",
            .fix = "one kernel for the 200",
        },
    [WEIR_SCENARIO_MEMORY_CHURN] =
        {
            .name = "memory_churn",
            .cause = WEIR_IDLE_ALLOCATING,
            .shows = "each step allocates and frees 24 temporaries of 1 to 4 MiB (temporary_00 to temporary_23)",
            .rule = "The loop's thread is in cudaMalloc and cudaFree, which waits for the GPU; the memory of the trace "
                    "goes up and down within each step.",
            .remedy = "Keep buffers from step to step, or take them from a pool (PyTorch's caching allocator, "
                      "cudaMallocAsync).",
            .cpu_range = "temporary_",
            .cpu_rule = "Each temporary is memory of the system, mapped page by page as temporary_00 to temporary_23 "
                        "fill it, and unmapped.",
            .fix = "a pool, allocated once",
        },
};
