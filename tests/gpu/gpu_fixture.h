/* gpu_fixture.h: opens a GPU for the programs in tests/gpu. Without a GPU, a program prints the reason and exits with
 * status 77. On failures it prints one line and exits with status 1. The module is loaded from WEIR_CUDA_MODULE, or
 * from the folder above the program's. */
#ifndef WEIR_TESTS_GPU_GPU_FIXTURE_H
#define WEIR_TESTS_GPU_GPU_FIXTURE_H

#include "pipeline/gpu/gpu_ops.h"
#include "prof/gpu/cuda_module.h"

struct gpufx {
    const struct weir_cuda_module *module;
    const struct weir_gpu_ops *ops;
    struct weir_gpu *gpu;
    struct weir_gpu_info info;
    void *stream;
};

/* Opens GPU 0 and a stream. */
void gpufx_open(struct gpufx *fx);
void gpufx_close(struct gpufx *fx);

/* Prints the message and exits if `ok` is false. */
void gpufx_check(bool ok, const char *format, ...) __attribute__((format(printf, 2, 3)));
/* Prints err's message and exits if rc is not 0. */
void gpufx_fine(int rc, const struct weir_err *err);

void *gpufx_alloc(struct gpufx *fx, size_t bytes);
void gpufx_free(struct gpufx *fx, void *memory);
/* Allocates GPU memory and copies these bytes to it. */
void *gpufx_upload(struct gpufx *fx, const void *bytes, size_t n);
/* Copy on the stream and wait for the copy. */
void gpufx_copy_in(struct gpufx *fx, void *to, const void *from, size_t n);
void gpufx_copy_out(struct gpufx *fx, void *to, const void *from, size_t n);
/* Waits for all work queued on the stream. */
void gpufx_sync(struct gpufx *fx, void *stream);
void *gpufx_stream(struct gpufx *fx, bool urgent);
void *gpufx_event(struct gpufx *fx);
/* Records the event on the stream. */
void gpufx_record(struct gpufx *fx, void *event, void *stream);
int64_t gpufx_elapsed_ns(struct gpufx *fx, void *from, void *to);

#endif
