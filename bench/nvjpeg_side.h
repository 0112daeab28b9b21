/* nvjpeg_side.h: decodes in-memory JPEGs on a GPU at full speed, alone or with other engines and CPU cores. */
#ifndef WEIR_BENCH_NVJPEG_SIDE_H
#define WEIR_BENCH_NVJPEG_SIDE_H

#include "bench/raw_turbo.h"
#include "decoders/gpu/gpu_jpeg.h"
#include "pipeline/gpu/gpu_ops.h"

/* Frames of one size in memory that an engine supports. */
struct nvjpeg_frames {
    struct raw_frames raw;
    struct weir_jpeg_header *headers;
    struct weir_gpu_jpeg_frame *frames; /* without planes */
    int left_out;                       /* frames of another size, or not supported by the engine */
};

/* data: a dataset of JPEGs, or a folder of *.jpg files (the first one in name order sets the size). */
int nvjpeg_frames_load(struct nvjpeg_frames *frames, const char *data, int max, enum weir_gpu_jpeg_engine engine,
                       struct weir_err *err);
void nvjpeg_frames_free(struct nvjpeg_frames *frames);

enum nvjpeg_output {
    NVJPEG_RGBI,  /* interleaved RGB from plain nvJPEG */
    NVJPEG_YUV,   /* planes, through the CUDA module, as in the loader */
    NVJPEG_TURNS, /* the same with two decoders per thread: one group is submitted while another is decoded */
    NVJPEG_OUTPUTS
};
const char *nvjpeg_output_name(enum nvjpeg_output output);

enum { NVJPEG_THREADS_MAX = 64 };

/* One engine and its submitting threads. */
struct nvjpeg_side {
    enum weir_gpu_jpeg_engine engine;
    enum nvjpeg_output output;
    int group, threads;
    bool urgent; /* use high-priority streams */
    /* results */
    double images_per_s, cores; /* CPU time of its threads over wall time */
};

/* Runs all sides at once for the given time, with cpu_threads threads of libjpeg-turbo (0: none; *cpu_images_per_s is
 * their rate). Returns -EIO or -ENOMEM when a group fails, -ENODEV when an engine or library is missing. */
int nvjpeg_run(const struct weir_gpu_ops *ops, struct weir_gpu *gpu, const struct nvjpeg_frames *frames,
               struct nvjpeg_side *sides, int n_sides, int cpu_threads, double seconds, double *cpu_images_per_s,
               struct weir_err *err);

#endif
