#include "extras/scenario/cli/scenario_cli.h"

const struct scenario_text weir_scenario_texts[WEIR_SCENARIOS] = {
    [WEIR_SCENARIO_DATALOADER] =
        {
            .name = "dataloader",
            .cause = WEIR_IDLE_DATA,
            .shows = "making an item takes 2 ms of simulated I/O and 4000 units of CPU work (0.2 ms), so the workers "
                     "cannot keep up with the step",
            .rule = "The data wait is most of the iteration, and the GPU is idle while the loop's thread is in "
                    "08_wait_for_data (enumerate(DataLoader)#...__next__ in the trace). No kernel is slow.",
            .remedy = "Use more workers (--num_workers) and a deeper prefetch (--prefetch_factor) until a batch takes "
                      "less time than a step; then reduce the work per item.",
            .cpu_range = "enumerate(DataLoader)",
            .cpu_rule = "As on a GPU, the loop waits for data in every step. Workers and the step share the cores.",
            .fix = "more workers and prefetch",
        },
    [WEIR_SCENARIO_SYNC] =
        {
            .name = "sync",
            .cause = WEIR_IDLE_SYNC,
            .shows = "the loss is read back between forward and backward, and the loop then works on it for 0.8 ms, as "
                     "for a progress bar or a log line",
            .rule = "In the middle of each step the GPU runs dry while the loop's thread is in a *Synchronize call "
                    "(read_loss_back in the trace). No kernel runs while the thread then works on the loss.",
            .remedy = "Move .item(), .cpu() and print out of the step: keep the value on the GPU, send it without "
                      "waiting and use it one step later, or read it only once in many steps.",
            .cpu_range = "read_loss_back",
            .cpu_rule = "Each operator has finished when its call returns, so reading a value never waits and the "
                        "remedy saves no time. read_loss_back shows the 0.8 ms of work on the value.",
            .fix = "send the loss, use it one step later",
        },
    [WEIR_SCENARIO_TINY_OPS] =
        {
            .name = "tiny_ops",
            .cause = WEIR_IDLE_LAUNCHING,
            .shows = "a block of 200 tiny operations launches one kernel per operation in both passes; the same "
                     "optimiser updates its parameters",
            .rule = "A step has hundreds of kernels, each shorter than its launch. The GPU is idle while the loop's "
                    "thread is in launch calls, and the launch delay is small.",
            .remedy = "Use fewer and longer kernels: fuse the operations (torch.compile), record the step as a CUDA "
                      "graph, or use a larger batch.",
            .cpu_range = "affine",
            .cpu_rule =
                "A step has hundreds of short calls of one operator (affine), and each processes the whole array. The "
                "fused operator reads and writes the array only once.",
            .fix = "one kernel instead of 200",
        },
    [WEIR_SCENARIO_MEMORY_CHURN] =
        {
            .name = "memory_churn",
            .cause = WEIR_IDLE_ALLOCATING,
            .shows = "each step allocates and frees 24 temporaries of 1 to 4 MiB (temporary_00 to temporary_23)",
            .rule = "The loop's thread is in cudaMalloc and in cudaFree, which waits for the GPU. In the trace, memory "
                    "rises and falls within each step.",
            .remedy = "Keep buffers across steps, or allocate from a pool (PyTorch's caching allocator, "
                      "cudaMallocAsync).",
            .cpu_range = "temporary_",
            .cpu_rule =
                "Each temporary is system memory, which is mapped page by page while temporary_00 to temporary_23 fill "
                "it, then unmapped.",
            .fix = "a pool, allocated once",
        },
};
