/* gpu_figures.h: what a GPU has done for a loader, by its own clock: copies, preparation, the consumer's steps, and the
 * JPEGs that it decoded. weir_loader_gpu_figures and weir_loader_gpu_decode_figures (loader.h) fill these. */
#ifndef WEIR_PIPELINE_GPU_FIGURES_H
#define WEIR_PIPELINE_GPU_FIGURES_H

#include "prof/record/recorder.h"

#include <stdbool.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* A part of the consumer's steps (weir_loader_mark). */
struct weir_gpu_marked {
    int stage;
    struct weir_stage_stats stats;
};
enum { WEIR_GPU_MARKED_MAX = 4 };

/* What the GPU has done so far, by its own clock: stages between events. Batches count when they were released and the
 * GPU is through with them. */
struct weir_gpu_figures {
    struct weir_stage_stats copy, prepare;              /* 07_h2d_copy, 07b_prepare_batch */
    struct weir_stage_stats train_step, val_step;       /* from weir_loader_wait to weir_loader_release_after */
    struct weir_gpu_marked marked[WEIR_GPU_MARKED_MAX]; /* parts of the two, where steps were marked */
    int n_marked;
    struct weir_stage_stats stall; /* 08_wait_for_data: the consumer's stream, idle, waited for a batch */
    uint64_t train_stall_ns;       /* of it, for batches to train on */
    uint64_t copied_bytes;
    uint64_t hidden_ns; /* of copy: while a step ran */
    uint64_t busy_ns;   /* a step or a preparation ran */
};

/* One of a GPU's ways to decode. */
struct weir_gpu_engine_figures {
    int hardware;            /* as many JPEG engines; 0: the SMs */
    uint64_t frames, groups; /* decoded so far, in decode batches that were handed over */
    uint64_t busy_ns; /* from a decode batch's hand-over to its end, by the GPU's clock; where two overlap, once */
};

/* JPEGs that a GPU has decoded so far. */
enum { WEIR_GPU_ENGINES_MAX = 2 };
struct weir_gpu_decode_figures {
    int n_engines; /* 0 = it decodes none */
    struct weir_gpu_engine_figures engines[WEIR_GPU_ENGINES_MAX];
    struct weir_stage_stats groups; /* 03i_gpu_decode: each from its hand-over to its end, by the GPU's clock */
    uint64_t cpu_ns;                /* of workers' time, for what they decode */
    uint64_t to_cpu;                /* frames that it did not take, or whose pictures were wrong */
    char reasons[256];              /* of these: "12 progressive, 3 truncated" */
    uint64_t compared, below;       /* pictures compared with the CPU's, and those below the PSNR check's limit */
    double gate_db, least_db;       /* that limit; of all that were compared the lowest, 99 = identical */
};

#ifdef __cplusplus
}
#endif

#endif
