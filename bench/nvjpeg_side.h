/* nvjpeg_side.h: decodes JPEGs from memory on a GPU as fast as possible, alone or alongside another engine and CPU
 * cores. */
#ifndef WEIR_BENCH_NVJPEG_SIDE_H
#define WEIR_BENCH_NVJPEG_SIDE_H

#include "bench/raw_turbo.h"
#include "decoders/gpu/gpu_jpeg.h"
#include "pipeline/gpu/gpu_ops.h"

/* JPEGs in memory that have the same size and are supported by an engine. */
struct nvjpeg_frames {
    struct raw_frames raw;
    struct weir_jpeg_header *headers;
    struct weir_gpu_jpeg_frame *frames; /* one per JPEG; plane pointers are not set */
    int left_out;                       /* number of frames with another size or without support by the engine */
};

/* Loads at most max frames from a dataset of JPEGs or a folder of *.jpg files. The first one determines the size. */
int nvjpeg_frames_load(struct nvjpeg_frames *frames, const char *data, int max, enum weir_gpu_jpeg_engine engine,
                       struct weir_err *err);
void nvjpeg_frames_free(struct nvjpeg_frames *frames);

enum nvjpeg_output {
    NVJPEG_RGBI,  /* interleaved RGB, from nvJPEG directly */
    NVJPEG_YUV,   /* planes, through the CUDA module, as used by the loader */
    NVJPEG_TURNS, /* like NVJPEG_YUV with two decoders per thread, one submitting a group while the other decodes */
    NVJPEG_OUTPUTS
};
const char *nvjpeg_output_name(enum nvjpeg_output output);

enum { NVJPEG_THREADS_MAX = 64 };

/* An engine and the threads that submit frames to it. */
struct nvjpeg_side {
    enum weir_gpu_jpeg_engine engine;
    enum nvjpeg_output output;
    int group, threads;
    bool urgent; /* use high-priority streams */
    /* Results: */
    double images_per_s, cores; /* cores: CPU time of the threads divided by wall time */
};

/* Runs all sides simultaneously for the given time. If cpu_threads > 0, that many threads decode with libjpeg-turbo
 * alongside, and *cpu_images_per_s is their rate. Returns -EIO or -ENOMEM if a group fails, or -ENODEV if an engine or
 * library is missing. */
int nvjpeg_run(const struct weir_gpu_ops *ops, struct weir_gpu *gpu, const struct nvjpeg_frames *frames,
               struct nvjpeg_side *sides, int n_sides, int cpu_threads, double seconds, double *cpu_images_per_s,
               struct weir_err *err);

#endif
