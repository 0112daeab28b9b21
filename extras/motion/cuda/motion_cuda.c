/* Motion on a GPU: memory, the stream, errors and the function table. The operators are in motion_kernels.cu, the pass
 * is in motion_fused.cu. All work is queued on one stream. */
#include "base/grow.h"
#include "cuda/cuda_context.h"
#include "extras/motion/cuda/motion_cuda_priv.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cuda_runtime_api.h>

extern const struct weir_motion_ops weir_motion_cuda;

enum { BLOCK_BYTES = 512, RESULT_BYTES = 64 };

/* Released memory, kept for reuse. */
struct kept {
    void *address;
    size_t bytes; /* a multiple of BLOCK_BYTES */
};

struct motion_cuda {
    cudaStream_t stream;
    bool own_stream;
    void *context_before; /* the thread's previous context, restored by close */
    char gpu[160];        /* e.g. "GPU 0 (NVIDIA H200)" */
    struct weir_err err;  /* the first error; nothing is queued after it */
    int sms;
    struct weir_motion_plan plan;
    struct kept *kept;
    size_t n_kept;
    uint64_t reserved;
};

/* ---- errors ---- */

/* Records the error if it is the first one. Returns false if this or an earlier call failed. */
static bool fine(struct motion_cuda *self, int error, const char *doing)
{
    if (error != cudaSuccess && self->err.code >= 0)
        weir_cuda_failed(error, self->gpu, doing, &self->err);
    return self->err.code >= 0;
}

static bool valid(struct motion_cuda *self, bool ok, const char *what)
{
    if (!ok && self->err.code >= 0)
        weir_err_set(&self->err, -EINVAL, "%s: %s", self->gpu, what);
    return self->err.code >= 0;
}

/* ---- open ---- */

static cudaError_t make_current(struct motion_cuda *self, int gpu)
{
    struct cudaDeviceProp properties;
    snprintf(self->gpu, sizeof self->gpu, "GPU %d", gpu);
    cudaError_t error = cudaSetDevice(gpu);
    if (error == cudaSuccess)
        error = cudaGetDeviceProperties(&properties, gpu);
    if (error != cudaSuccess)
        return error;
    snprintf(self->gpu, sizeof self->gpu, "GPU %d (%.100s)", gpu, properties.name);
    self->sms = properties.multiProcessorCount;
    return cudaSuccess;
}

/* Frees the blocks that are kept for reuse. No queued work may use them. */
static void free_kept(struct motion_cuda *self)
{
    for (size_t i = 0; i < self->n_kept; i++) {
        if (cudaFree(self->kept[i].address) != cudaSuccess)
            cudaGetLastError();
        self->reserved -= self->kept[i].bytes;
    }
    self->n_kept = 0;
}

static void motion_close(void *user)
{
    struct motion_cuda *self = user;
    if (!self)
        return;
    if (self->stream || !self->own_stream)
        cudaStreamSynchronize(self->stream);
    free_kept(self);
    free(self->kept);
    if (self->own_stream && self->stream)
        cudaStreamDestroy(self->stream);
    cudaGetLastError();
    weir_cuda_context_set(self->context_before);
    free(self);
}

static int check_gpu(int gpu, struct weir_err *err)
{
    int gpus = 0;
    cudaError_t error = cudaGetDeviceCount(&gpus);
    if (error != cudaSuccess) {
        cudaGetLastError();
        return weir_err_set(err, -ENODEV, "no GPU is available: %s", cudaGetErrorString(error));
    }
    if (gpu < 0 || gpu >= gpus)
        return weir_err_set(err, -ENODEV, "there is no GPU %d: this machine has %d, numbered from 0", gpu, gpus);
    return 0;
}

static int motion_open(void **out, const struct weir_motion_device *device, struct weir_err *err)
{
    *out = NULL;
    int rc = check_gpu(device->gpu, err);
    if (rc < 0)
        return rc;
    struct motion_cuda *self = calloc(1, sizeof *self);
    if (!self)
        return weir_err_set(err, -ENOMEM, "out of memory");
    self->own_stream = !device->stream;
    self->context_before = weir_cuda_context_now();
    cudaError_t error = make_current(self, device->gpu);
    if (error == cudaSuccess && self->own_stream)
        error = cudaStreamCreateWithFlags(&self->stream, cudaStreamNonBlocking);
    if (error != cudaSuccess) {
        rc = weir_cuda_failed(error, self->gpu, "creating a stream", err);
        self->own_stream = true; /* so that motion_close does not wait for a stream */
        self->stream = NULL;
        motion_close(self);
        return rc;
    }
    if (!self->own_stream)
        self->stream = device->stream;
    *out = self;
    return 0;
}

static const char *motion_describe(const void *self)
{
    return ((const struct motion_cuda *)self)->gpu;
}

static void *motion_stream(void *self)
{
    return ((struct motion_cuda *)self)->stream;
}

static int motion_finish(void *user, struct weir_err *err)
{
    struct motion_cuda *self = user;
    if (self->err.code >= 0)
        fine(self, cudaStreamSynchronize(self->stream), "waiting for the motion stream");
    return self->err.code < 0 ? weir_err_set(err, self->err.code, "%s", self->err.text) : 0;
}

/* ---- memory ---- */

static uint64_t motion_available_bytes(void *user)
{
    struct motion_cuda *self = user;
    size_t free_bytes = 0, total_bytes = 0;
    if (cudaMemGetInfo(&free_bytes, &total_bytes) != cudaSuccess)
        cudaGetLastError();
    for (size_t i = 0; i < self->n_kept; i++)
        free_bytes += self->kept[i].bytes;
    return free_bytes;
}

/* Returns a kept block of exactly this size, or NULL. Exact sizes are enough, because successive fetches need the same
 * sizes. Reuse needs no wait: all work is on one stream, so new work with the block runs after all earlier work with
 * it. */
static void *take_kept(struct motion_cuda *self, size_t bytes)
{
    for (size_t i = self->n_kept; i-- > 0;)
        if (self->kept[i].bytes == bytes) {
            void *address = self->kept[i].address;
            self->kept[i] = self->kept[--self->n_kept];
            return address;
        }
    return NULL;
}

static void *motion_allocate(void *user, size_t bytes)
{
    struct motion_cuda *self = user;
    void *memory = NULL;
    if (bytes > SIZE_MAX - BLOCK_BYTES)
        return NULL;
    bytes = bytes > 0 ? (bytes + BLOCK_BYTES - 1) / BLOCK_BYTES * BLOCK_BYTES : BLOCK_BYTES;
    void *again = take_kept(self, bytes);
    if (again || self->err.code < 0)
        return again;
    cudaError_t error = cudaMalloc(&memory, bytes);
    if (error == cudaErrorMemoryAllocation && self->n_kept > 0) {
        cudaGetLastError();
        error = cudaStreamSynchronize(self->stream);
        free_kept(self);
        error = error == cudaSuccess ? cudaMalloc(&memory, bytes) : error;
    }
    if (error == cudaErrorMemoryAllocation)
        cudaGetLastError();
    else
        fine(self, error, "allocating memory");
    if (error != cudaSuccess)
        return NULL;
    self->reserved += bytes;
    return memory;
}

static bool make_room(struct motion_cuda *self)
{
    return weir_grow(&self->kept, self->n_kept, sizeof *self->kept);
}

static void motion_release(void *user, void *memory, size_t bytes)
{
    struct motion_cuda *self = user;
    if (!memory)
        return;
    bytes = bytes > 0 ? (bytes + BLOCK_BYTES - 1) / BLOCK_BYTES * BLOCK_BYTES : BLOCK_BYTES;
    if (make_room(self)) {
        self->kept[self->n_kept++] = (struct kept){memory, bytes};
        return;
    }
    if (cudaStreamSynchronize(self->stream) != cudaSuccess || cudaFree(memory) != cudaSuccess)
        cudaGetLastError();
    self->reserved -= bytes;
}

static uint64_t motion_reserved(void *self)
{
    return ((struct motion_cuda *)self)->reserved;
}

static void motion_copy_in(void *user, void *to, const void *from, size_t bytes)
{
    struct motion_cuda *self = user;
    if (self->err.code < 0)
        return;
    cudaError_t error = cudaMemcpyAsync(to, from, bytes, cudaMemcpyHostToDevice, self->stream);
    fine(self, error == cudaSuccess ? cudaStreamSynchronize(self->stream) : error, "copying to the GPU");
}

static void motion_copy_out(void *user, void *to, const void *from, size_t bytes)
{
    struct motion_cuda *self = user;
    if (self->err.code >= 0) {
        cudaError_t error = cudaMemcpyAsync(to, from, bytes, cudaMemcpyDeviceToHost, self->stream);
        fine(self, error == cudaSuccess ? cudaStreamSynchronize(self->stream) : error, "copying to the host");
    }
    if (self->err.code < 0)
        memset(to, 0, bytes);
}

/* ---- calculations ---- */

/* Returns whether the array's layout is consistent and its size does not overflow. */
static bool array_fits(const struct weir_motion_array *a)
{
    size_t numbers;
    return !a->data || (a->columns >= 1 && a->stride >= (size_t)a->columns && a->repeat >= 1 &&
                        !__builtin_mul_overflow(a->rows, a->stride, &numbers) && numbers <= SIZE_MAX / sizeof(int64_t));
}

static void motion_operate(void *user, const struct weir_motion_operator *o)
{
    struct motion_cuda *self = user;
    bool fits = array_fits(&o->r) && array_fits(&o->x) && array_fits(&o->y) && array_fits(&o->z);
    if (valid(self, o->r.data && fits, "an operator of motion has an invalid array"))
        fine(self, weir_motion_kernels_operate(o, self->stream), "computing an operator of motion");
}

static bool pass_fits(const struct weir_motion_pass *p)
{
    size_t queries, numbers;
    if (p->dofs < 1 || p->bodies < 1 || p->dofs > 4096 || p->bodies > 4096 || p->steps < 1)
        return false;
    struct weir_motion_row row = weir_motion_row_of(p->dofs, p->bodies);
    if (memcmp(&p->row, &row, sizeof row) != 0 || (uintptr_t)p->frames % RESULT_BYTES != 0)
        return false;
    for (int i = 0; i < WEIR_MOTION_OUTPUTS; i++)
        if ((uintptr_t)p->results[i] % RESULT_BYTES != 0)
            return false;
    return !__builtin_mul_overflow(p->envs, (size_t)p->steps, &queries) &&
           !__builtin_mul_overflow(queries, (size_t)row.stride * sizeof(float), &numbers);
}

static void motion_pass(void *user, const struct weir_motion_pass *pass)
{
    struct motion_cuda *self = user;
    if (!valid(self, pass_fits(pass), "a motion pass has invalid rows or results"))
        return;
    cudaError_t error = cudaSuccess;
    if (self->plan.dofs != pass->dofs || self->plan.bodies != pass->bodies)
        error = weir_motion_kernels_plan(&self->plan, pass->dofs, pass->bodies, self->sms);
    if (error == cudaSuccess)
        error = weir_motion_kernels_pass(pass, &self->plan, self->stream);
    fine(self, error, "launching the motion pass");
}

static void motion_advance(void *user, size_t n, float *times, float dt_s)
{
    struct motion_cuda *self = user;
    if (self->err.code >= 0)
        fine(self, weir_motion_kernels_advance(n, times, dt_s, self->stream), "advancing times");
}

const struct weir_motion_ops weir_motion_cuda = {
    .open = motion_open,
    .close = motion_close,
    .describe = motion_describe,
    .stream = motion_stream,
    .finish = motion_finish,
    .available_bytes = motion_available_bytes,
    .allocate = motion_allocate,
    .release = motion_release,
    .reserved = motion_reserved,
    .copy_in = motion_copy_in,
    .copy_out = motion_copy_out,
    .operate = motion_operate,
    .pass = motion_pass,
    .advance = motion_advance,
};
