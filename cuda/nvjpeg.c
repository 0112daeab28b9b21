/* nvjpeg: decodes JPEGs to planes in GPU memory with nvJPEG's batched API. Part of the CUDA module. libnvjpeg itself is
 * loaded on first use. */
#include "base/files.h"
#include "cuda/cuda_context.h"
#include "decoders/gpu/gpu_jpeg_ops.h"

#include <dlfcn.h>
#include <errno.h>
#include <limits.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cuda_runtime_api.h>
#include <nvjpeg.h>

#define TEXT_(x) #x
#define TEXT(x)  TEXT_(x)

extern const struct weir_gpu_jpeg_ops weir_gpu_jpeg_nvjpeg;

enum { GPUS_MAX = 64 };
static const size_t SPARE_MAX_BYTES = 128 << 20; /* maximum GPU memory used as headroom for longer frames */

/* ---- the library ---- */

struct library {
    __typeof__(nvjpegCreateEx) *create;
    __typeof__(nvjpegGetProperty) *property;
    __typeof__(nvjpegGetHardwareDecoderInfo) *hardware_info;
    __typeof__(nvjpegJpegStateCreate) *state_create;
    __typeof__(nvjpegJpegStateDestroy) *state_destroy;
    __typeof__(nvjpegDecode) *decode;
    __typeof__(nvjpegDecodeBatchedInitialize) *batch_initialize;
    __typeof__(nvjpegDecodeBatched) *batch_decode;
};

/* Library and handles, shared by all threads. Creating a handle takes 0.3 s; handles are thread-safe and are never
 * destroyed. */
static struct {
    pthread_mutex_t lock;
    bool tried;
    void *dl;
    struct library library;
    struct weir_err err;
    nvjpegHandle_t handles[WEIR_GPU_JPEG_ENGINES][GPUS_MAX];
} shared = {.lock = PTHREAD_MUTEX_INITIALIZER};

static bool find_symbol(const char *name, void *pointer, size_t size)
{
    void *symbol = dlsym(shared.dl, name);
    if (symbol && size == sizeof symbol)
        *(void **)pointer = symbol;
    else
        weir_err_set(&shared.err, -ENODEV, "libnvjpeg.so has no %s; install nvJPEG %d or later", name,
                     NVJPEG_VER_MAJOR);
    return symbol;
}

static bool find_symbols(struct library *l)
{
    return find_symbol("nvjpegCreateEx", &l->create, sizeof l->create) &&
           find_symbol("nvjpegGetProperty", &l->property, sizeof l->property) &&
           find_symbol("nvjpegGetHardwareDecoderInfo", &l->hardware_info, sizeof l->hardware_info) &&
           find_symbol("nvjpegJpegStateCreate", &l->state_create, sizeof l->state_create) &&
           find_symbol("nvjpegJpegStateDestroy", &l->state_destroy, sizeof l->state_destroy) &&
           find_symbol("nvjpegDecode", &l->decode, sizeof l->decode) &&
           find_symbol("nvjpegDecodeBatchedInitialize", &l->batch_initialize, sizeof l->batch_initialize) &&
           find_symbol("nvjpegDecodeBatched", &l->batch_decode, sizeof l->batch_decode);
}

/* Searches NVIDIA's packages next to the Python package only for the name that this module was built for. */
static void load_locked(void)
{
    static const char name[] = "libnvjpeg.so." TEXT(NVJPEG_VER_MAJOR);
    char path[PATH_MAX];
    shared.dl = dlopen(name, RTLD_NOW | RTLD_LOCAL);
    if (!shared.dl && weir_path_in_nvidia(name, name, path) == 0)
        shared.dl = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    if (!shared.dl)
        shared.dl = dlopen("libnvjpeg.so", RTLD_NOW | RTLD_LOCAL);
    if (!shared.dl)
        weir_err_set(
            &shared.err, -ENODEV,
            "%s cannot be opened; install it (CUDA Toolkit, or pip install nvidia-nvjpeg), and unless pip also "
            "installed weir, add its folder to LD_LIBRARY_PATH",
            name);
    else
        find_symbols(&shared.library);
    shared.tried = true;
}

static int library_of(const struct library **library, struct weir_err *err)
{
    pthread_mutex_lock(&shared.lock);
    if (!shared.tried)
        load_locked();
    pthread_mutex_unlock(&shared.lock);
    *library = &shared.library;
    return shared.err.code ? weir_err_set(err, shared.err.code, "%s", shared.err.text) : 0;
}

static void nv_library(char *text, size_t size)
{
    const struct library *library;
    struct weir_err err = WEIR_ERR_NONE;
    int major = 0, minor = 0, patch = 0;
    if (library_of(&library, &err) < 0) {
        snprintf(text, size, "%s", err.text);
        return;
    }
    library->property(MAJOR_VERSION, &major);
    library->property(MINOR_VERSION, &minor);
    library->property(PATCH_LEVEL, &patch);
    snprintf(text, size, "nvJPEG %d.%d.%d", major, minor, patch);
}

/* ---- errors ---- */

static int cuda_failed(cudaError_t error, int gpu, const char *doing, struct weir_err *err)
{
    char name[32];
    snprintf(name, sizeof name, "GPU %d", gpu);
    return weir_cuda_failed(error, name, doing, err);
}

static int use_gpu(int gpu, struct weir_err *err)
{
    cudaError_t error = cudaSetDevice(gpu);
    if (error == cudaErrorInsufficientDriver)
        return weir_err_set(err, -ENODEV,
                            "no NVIDIA driver is loaded, or it is too old for CUDA %d.%d; check that nvidia-smi works",
                            CUDART_VERSION / 1000, CUDART_VERSION % 1000 / 10);
    if (error == cudaSuccess)
        return 0;
    return weir_err_set(err, -ENODEV, "GPU %d cannot be used: %s (%s)", gpu, cudaGetErrorString(error),
                        cudaGetErrorName(error));
}

/* Whether the frame should be decoded on the CPU. nvJPEG reports NVJPEG_STATUS_INVALID_PARAMETER for an image that it
 * cannot write to the given planes. */
static bool is_refusal(nvjpegStatus_t status)
{
    return status == NVJPEG_STATUS_BAD_JPEG || status == NVJPEG_STATUS_INVALID_PARAMETER ||
           status == NVJPEG_STATUS_JPEG_NOT_SUPPORTED || status == NVJPEG_STATUS_INCOMPLETE_BITSTREAM ||
           status == NVJPEG_STATUS_IMPLEMENTATION_NOT_SUPPORTED;
}

static int nv_failed(nvjpegStatus_t status, int gpu, const char *what, struct weir_err *err)
{
    static const char *const names[] = {
        "success",           "not initialized",  "invalid parameter", "bad JPEG",       "JPEG not supported",
        "allocator failure", "execution failed", "arch mismatch",     "internal error", "implementation not supported",
        "incomplete",
    };
    const char *name = status >= 0 && (size_t)status < sizeof names / sizeof names[0] ? names[status] : "unknown";
    if (status == NVJPEG_STATUS_ALLOCATOR_FAILURE)
        return weir_err_set(err, -ENOMEM,
                            "GPU %d: nvJPEG's %s ran out of memory; reduce --batch-size or --prefetch, or stop other "
                            "processes on this GPU",
                            gpu, what);
    return weir_err_set(err, -EIO, "GPU %d: nvJPEG's %s failed: %s (%d)", gpu, what, name, (int)status);
}

/* ---- handles ---- */

/* Returns the handle of an engine in *handle; NULL with return code 0 if the GPU lacks the engine. The GPU must be the
 * thread's current device. */
static int handle_of(nvjpegHandle_t *handle, int gpu, enum weir_gpu_jpeg_engine engine, struct weir_err *err)
{
    static const nvjpegBackend_t backends[WEIR_GPU_JPEG_ENGINES] = {
        [WEIR_GPU_JPEG_HARDWARE] = NVJPEG_BACKEND_HARDWARE,
        [WEIR_GPU_JPEG_SM] = NVJPEG_BACKEND_GPU_HYBRID,
    };
    if (gpu < 0 || gpu >= GPUS_MAX)
        return weir_err_set(err, -ENODEV, "GPU %d: at most %d GPUs are supported", gpu, GPUS_MAX);
    pthread_mutex_lock(&shared.lock);
    nvjpegHandle_t *kept = &shared.handles[engine][gpu];
    nvjpegStatus_t status = NVJPEG_STATUS_SUCCESS;
    if (!*kept)
        status = shared.library.create(backends[engine], NULL, NULL, NVJPEG_FLAGS_DEFAULT, kept);
    if (status != NVJPEG_STATUS_SUCCESS)
        *kept = NULL;
    *handle = *kept;
    pthread_mutex_unlock(&shared.lock);
    bool is_missing = status == NVJPEG_STATUS_ARCH_MISMATCH || status == NVJPEG_STATUS_IMPLEMENTATION_NOT_SUPPORTED;
    return status == NVJPEG_STATUS_SUCCESS || is_missing ? 0 : nv_failed(status, gpu, "initialisation", err);
}

static int nv_engines_here(int gpu, struct weir_err *err)
{
    const struct library *library;
    nvjpegHandle_t handle = NULL;
    unsigned int engines = 0, cores = 0;
    int rc = use_gpu(gpu, err);
    rc = rc < 0 ? rc : library_of(&library, err);
    rc = rc < 0 ? rc : handle_of(&handle, gpu, WEIR_GPU_JPEG_HARDWARE, err);
    if (rc < 0 || !handle)
        return rc;
    nvjpegStatus_t status = library->hardware_info(handle, &engines, &cores);
    return status == NVJPEG_STATUS_SUCCESS ? (int)engines : nv_failed(status, gpu, "engine query", err);
}

/* ---- a decoder ---- */

struct nv_decoder {
    const struct library *library;
    nvjpegHandle_t handle;
    nvjpegJpegState_t batch_state, single_state; /* single_state: only with the SM engine */
    int gpu, batch_max;
    int batch_size;   /* current batch size of batch_state; 0: not initialised */
    size_t capacity;  /* maximum frame length in bytes that nvJPEG's buffers can hold; SIZE_MAX: unlimited */
    cudaEvent_t done; /* recorded after the batch in progress */
    /* arguments for one batch, with batch_max entries each */
    const unsigned char **bytes;
    size_t *lengths;
    nvjpegImage_t *images;
};

/* Must not be called for a lost GPU: freeing memory then fails, and nvJPEG throws from a destructor, which ends the
 * process. */
static void destroy_states(struct nv_decoder *self)
{
    if (self->batch_state)
        self->library->state_destroy(self->batch_state);
    if (self->single_state)
        self->library->state_destroy(self->single_state);
}

static void nv_close_here(void *user)
{
    struct nv_decoder *self = user;
    cudaError_t set = cudaSetDevice(self->gpu);
    if (self->done)
        cudaEventSynchronize(self->done);
    if (!weir_cuda_is_lost(set) && !weir_cuda_is_lost(cudaStreamQuery(cudaStreamPerThread)))
        destroy_states(self);
    if (self->done)
        cudaEventDestroy(self->done);
    free(self->bytes);
    free(self->lengths);
    free(self->images);
    free(self);
}

static int make_states(struct nv_decoder *self, enum weir_gpu_jpeg_engine engine, struct weir_err *err)
{
    nvjpegStatus_t status = self->library->state_create(self->handle, &self->batch_state);
    if (status == NVJPEG_STATUS_SUCCESS && engine == WEIR_GPU_JPEG_SM)
        status = self->library->state_create(self->handle, &self->single_state);
    if (status != NVJPEG_STATUS_SUCCESS)
        return nv_failed(status, self->gpu, "initialisation", err);
    cudaError_t error = cudaEventCreateWithFlags(&self->done, cudaEventDisableTiming | cudaEventBlockingSync);
    return error == cudaSuccess ? 0 : cuda_failed(error, self->gpu, "creating an event", err);
}

static int nv_open_here(void **out, int gpu, enum weir_gpu_jpeg_engine engine, int batch_max, struct weir_err *err)
{
    *out = NULL;
    const struct library *library;
    nvjpegHandle_t handle = NULL;
    int rc = use_gpu(gpu, err);
    rc = rc < 0 ? rc : library_of(&library, err);
    rc = rc < 0 ? rc : handle_of(&handle, gpu, engine, err);
    if (rc < 0)
        return rc;
    if (!handle)
        return weir_err_set(err, -ENODEV, "GPU %d has no JPEG engines", gpu);
    struct nv_decoder *self = calloc(1, sizeof *self);
    if (!self)
        return weir_err_set(err, -ENOMEM, "out of memory");
    self->library = library;
    self->handle = handle;
    self->gpu = gpu;
    self->batch_max = batch_max;
    self->capacity = engine == WEIR_GPU_JPEG_HARDWARE ? 0 : SIZE_MAX;
    self->bytes = calloc((size_t)batch_max, sizeof *self->bytes);
    self->lengths = calloc((size_t)batch_max, sizeof *self->lengths);
    self->images = calloc((size_t)batch_max, sizeof *self->images);
    rc = self->bytes && self->lengths && self->images ? make_states(self, engine, err)
                                                      : weir_err_set(err, -ENOMEM, "out of memory");
    if (rc < 0) {
        nv_close_here(self);
        return rc;
    }
    *out = self;
    return 0;
}

static nvjpegImage_t image_of(const struct weir_gpu_jpeg_frame *frame)
{
    nvjpegImage_t image = {0};
    for (int i = 0; i < 3; i++) {
        image.channel[i] = frame->plane[i];
        image.pitch[i] = frame->pitch[i];
    }
    return image;
}

static bool is_single(const struct nv_decoder *self, const struct weir_gpu_jpeg_frame *frame)
{
    return frame->progressive && self->single_state;
}

/* Decodes the first m entries of bytes, lengths and images. The state is initialised only when the batch size changes,
 * or after a failure. */
static nvjpegStatus_t decode_first(struct nv_decoder *self, int m, cudaStream_t stream)
{
    nvjpegStatus_t status = self->batch_state ? NVJPEG_STATUS_SUCCESS : NVJPEG_STATUS_ALLOCATOR_FAILURE;
    if (status == NVJPEG_STATUS_SUCCESS && m != self->batch_size)
        status = self->library->batch_initialize(self->handle, self->batch_state, m, 1, NVJPEG_OUTPUT_YUV);
    self->batch_size = 0;
    if (status == NVJPEG_STATUS_SUCCESS)
        status = self->library->batch_decode(self->handle, self->batch_state, self->bytes, self->lengths, self->images,
                                             stream);
    if (status == NVJPEG_STATUS_SUCCESS)
        self->batch_size = m;
    return status;
}

/* Returns a copy of the frame, padded to `length` with fill bytes before its last marker (ITU-T T.81, B.1.1.2, permits
 * fill bytes before any marker). Returns NULL if out of memory or if the frame does not end with EOI. The caller frees
 * the copy. */
static uint8_t *lengthened(const struct weir_gpu_jpeg_frame *frame, size_t length)
{
    static const uint8_t end[2] = {0xff, 0xd9};
    size_t before = frame->length > sizeof end ? frame->length - sizeof end : 0;
    if (before == 0 || memcmp(frame->bytes + before, end, sizeof end) != 0)
        return NULL;
    uint8_t *bytes = malloc(length);
    if (!bytes)
        return NULL;
    memcpy(bytes, frame->bytes, before);
    memset(bytes + before, 0xff, length - frame->length);
    memcpy(bytes + length - sizeof end, end, sizeof end);
    return bytes;
}

/* Recreates the state after a failed allocation, because some of its buffers may have been allocated. */
static void make_state_anew(struct nv_decoder *self)
{
    self->library->state_destroy(self->batch_state);
    if (self->library->state_create(self->handle, &self->batch_state) != NVJPEG_STATUS_SUCCESS)
        self->batch_state = NULL;
}

/* Enlarges nvJPEG's buffers if a frame exceeds them. nvJPEG has one buffer per index of a batch. If a frame is longer
 * than its buffer, nvJPEG reallocates the buffer and synchronises the whole GPU; while a consumer ran kernels of 20 ms,
 * submitting such a batch took 22 ms or more. All buffers are therefore enlarged together, by decoding a frame that is
 * padded to up to twice the size of the longest frame. Its output is overwritten later. */
static void grow_buffers(struct nv_decoder *self, const struct weir_gpu_jpeg_frame *frames, int n, cudaStream_t stream)
{
    const struct weir_gpu_jpeg_frame *longest = &frames[0];
    for (int i = 1; i < n; i++)
        longest = frames[i].length > longest->length ? &frames[i] : longest;
    if (longest->length <= self->capacity)
        return;
    size_t spare = SPARE_MAX_BYTES / (size_t)self->batch_max;
    size_t capacity = longest->length + (longest->length < spare ? longest->length : spare);
    uint8_t *bytes = lengthened(longest, capacity);
    for (int i = 0; i < self->batch_max && bytes; i++) {
        self->bytes[i] = bytes;
        self->lengths[i] = capacity;
        self->images[i] = image_of(longest);
    }
    nvjpegStatus_t status = bytes ? decode_first(self, self->batch_max, stream) : NVJPEG_STATUS_BAD_JPEG;
    bool passed = cudaStreamSynchronize(stream) == cudaSuccess;
    free(bytes);
    /* After a failure, do not try again for this length. */
    self->capacity = status == NVJPEG_STATUS_SUCCESS ? capacity : longest->length;
    if (passed && status != NVJPEG_STATUS_SUCCESS && !is_refusal(status))
        make_state_anew(self);
}

/* Decodes all frames except those that must be decoded singly (is_single). */
static nvjpegStatus_t decode_batch(struct nv_decoder *self, const struct weir_gpu_jpeg_frame *frames, int n,
                                   cudaStream_t stream)
{
    int m = 0;
    grow_buffers(self, frames, n, stream);
    for (int i = 0; i < n; i++) {
        if (is_single(self, &frames[i]))
            continue;
        self->bytes[m] = frames[i].bytes;
        self->lengths[m] = frames[i].length;
        self->images[m++] = image_of(&frames[i]);
    }
    return m > 0 ? decode_first(self, m, stream) : NVJPEG_STATUS_SUCCESS;
}

/* Waits until the frame is decoded, because frames that are decoded singly share one set of buffers. */
static nvjpegStatus_t decode_single(struct nv_decoder *self, const struct weir_gpu_jpeg_frame *frame,
                                    cudaStream_t stream)
{
    nvjpegImage_t image = image_of(frame);
    nvjpegStatus_t status = self->library->decode(self->handle, self->single_state, frame->bytes, frame->length,
                                                  NVJPEG_OUTPUT_YUV, &image, stream);
    return status == NVJPEG_STATUS_SUCCESS && cudaStreamSynchronize(stream) != cudaSuccess
               ? NVJPEG_STATUS_EXECUTION_FAILED
               : status;
}

/* Handles a failure. Synchronises the stream first, because work queued before the failure still uses the decoder's
 * buffers. */
static int give_up(struct nv_decoder *self, nvjpegStatus_t status, cudaStream_t stream, struct weir_err *err)
{
    self->batch_size = 0;
    cudaError_t error = cudaStreamSynchronize(stream);
    if (error != cudaSuccess)
        return cuda_failed(error, self->gpu, "decoding JPEGs", err);
    bool frames_fault = is_refusal(status) || status == NVJPEG_STATUS_EXECUTION_FAILED ||
                        status == NVJPEG_STATUS_INTERNAL_ERROR; /* the GPU works, so a frame of the batch must be bad */
    return frames_fault ? -EBADMSG : nv_failed(status, self->gpu, "decoder", err);
}

static int nv_decode_here(void *user, const struct weir_gpu_jpeg_frame *frames, int n, void *stream,
                          struct weir_err *err)
{
    struct nv_decoder *self = user;
    cudaError_t error = cudaSetDevice(self->gpu);
    if (error == cudaSuccess)
        error = cudaEventSynchronize(self->done);
    if (error != cudaSuccess)
        return cuda_failed(error, self->gpu, "decoding JPEGs", err);
    nvjpegStatus_t status = decode_batch(self, frames, n, stream);
    for (int i = 0; i < n && status == NVJPEG_STATUS_SUCCESS; i++)
        if (is_single(self, &frames[i]))
            status = decode_single(self, &frames[i], stream);
    if (status != NVJPEG_STATUS_SUCCESS)
        return give_up(self, status, stream, err);
    error = cudaEventRecord(self->done, stream);
    return error == cudaSuccess ? 0 : cuda_failed(error, self->gpu, "decoding JPEGs", err);
}

/* ---- the table: each call restores the calling thread's CUDA context ---- */

static int nv_engines(int gpu, struct weir_err *err)
{
    weir_cuda_call_begin();
    void *before = weir_cuda_context_now();
    int n = nv_engines_here(gpu, err);
    weir_cuda_context_set(before);
    weir_cuda_call_end();
    return n;
}

static int nv_open(void **out, int gpu, enum weir_gpu_jpeg_engine engine, int batch_max, struct weir_err *err)
{
    weir_cuda_call_begin();
    void *before = weir_cuda_context_now();
    int rc = nv_open_here(out, gpu, engine, batch_max, err);
    weir_cuda_context_set(before);
    weir_cuda_call_end();
    return rc;
}

static void nv_close(void *self)
{
    weir_cuda_call_begin();
    void *before = weir_cuda_context_now();
    nv_close_here(self);
    weir_cuda_context_set(before);
    weir_cuda_call_end();
}

static int nv_decode(void *self, const struct weir_gpu_jpeg_frame *frames, int n, void *stream, struct weir_err *err)
{
    weir_cuda_call_begin();
    void *before = weir_cuda_context_now();
    int rc = nv_decode_here(self, frames, n, stream, err);
    weir_cuda_context_set(before);
    weir_cuda_call_end();
    return rc;
}

const struct weir_gpu_jpeg_ops weir_gpu_jpeg_nvjpeg = {
    .engines = nv_engines,
    .open = nv_open,
    .close = nv_close,
    .decode = nv_decode,
    .library = nv_library,
};
