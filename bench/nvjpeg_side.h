/* nvjpeg_side.h: JPEGs in memory decoded by a GPU as fast as it goes, alone or beside other engines and CPU cores. */
#ifndef WEIR_BENCH_NVJPEG_SIDE_H
#define WEIR_BENCH_NVJPEG_SIDE_H

#include "bench/raw_turbo.h"
#include "decoders/gpu/gpu_jpeg.h"
#include "pipeline/gpu/gpu_ops.h"

/* Frames of one size, in memory; those that an engine takes. */
struct nvjpeg_frames {
    struct raw_frames raw;
    struct weir_jpeg_header *headers;
    struct weir_gpu_jpeg_frame *frames; /* without planes */
    int left_out;                       /* of another size, or none for the engine */
};

/* data: a dataset of JPEGs, or a folder with *.jpg in it (the size of the first in order of names counts). */
int nvjpeg_frames_load(struct nvjpeg_frames *frames, const char *data, int max, enum weir_gpu_jpeg_engine engine,
                       struct weir_err *err);
void nvjpeg_frames_free(struct nvjpeg_frames *frames);

enum nvjpeg_output {
    NVJPEG_RGBI,  /* nvJPEG's own interleaved RGB, by its plain interface */
    NVJPEG_YUV,   /* planes, through the CUDA module, as the loader has it */
    NVJPEG_TURNS, /* the same, by two decoders of a thread in turns: a group is handed over while one is decoded */
    NVJPEG_OUTPUTS
};
const char *nvjpeg_output_name(enum nvjpeg_output output);

enum { NVJPEG_THREADS_MAX = 64 };

/* One engine, fed by some threads. */
struct nvjpeg_side {
    enum weir_gpu_jpeg_engine engine;
    enum nvjpeg_output output;
    int group, threads;
    bool urgent; /* on streams of high priority */
    /* results */
    double images_per_s, cores; /* CPU time of its threads by wall time */
};

/* Runs all sides at once for so long, beside cpu_threads of libjpeg-turbo (0: none; *cpu_images_per_s is theirs). -EIO
 * or -ENOMEM when a group fails; -ENODEV when an engine or library is not there. */
int nvjpeg_run(const struct weir_gpu_ops *ops, struct weir_gpu *gpu, const struct nvjpeg_frames *frames,
               struct nvjpeg_side *sides, int n_sides, int cpu_threads, double seconds, double *cpu_images_per_s,
               struct weir_err *err);

#endif
