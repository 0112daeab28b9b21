#include "bench/raw_nvjpeg.h"

#include <errno.h>

#ifndef WEIR_HAVE_NVJPEG

int raw_nvjpeg_open(struct raw_nvjpeg **raw, enum weir_gpu_jpeg_engine engine, int group, struct weir_err *err)
{
    (void)engine, (void)group;
    *raw = NULL;
    return weir_err_set(err, -ENODEV, "built without nvJPEG's header");
}

void raw_nvjpeg_close(struct raw_nvjpeg **raw)
{
    (void)raw;
}

int raw_nvjpeg_decode(struct raw_nvjpeg *raw, const uint8_t *const *bytes, const size_t *lengths, uint8_t *memory,
                      int width, int height, void *stream, struct weir_err *err)
{
    (void)raw, (void)bytes, (void)lengths, (void)memory, (void)width, (void)height, (void)stream;
    return weir_err_set(err, -ENODEV, "built without nvJPEG's header");
}

#else

#include <dlfcn.h>
#include <pthread.h>
#include <stdlib.h>

#include <nvjpeg.h>

#define TEXT_(x) #x
#define TEXT(x)  TEXT_(x)

static struct {
    pthread_mutex_t lock;
    void *dl;
    nvjpegHandle_t handles[WEIR_GPU_JPEG_ENGINES]; /* never closed, because opening one takes 0.3 s */
    __typeof__(nvjpegCreateEx) *create;
    __typeof__(nvjpegJpegStateCreate) *state_create;
    __typeof__(nvjpegJpegStateDestroy) *state_destroy;
    __typeof__(nvjpegDecodeBatchedInitialize) *initialize;
    __typeof__(nvjpegDecodeBatched) *decode;
} nv = {.lock = PTHREAD_MUTEX_INITIALIZER};

struct raw_nvjpeg {
    nvjpegHandle_t handle;
    nvjpegJpegState_t state;
    int group;
    nvjpegImage_t images[];
};

static void *symbol(const char *name)
{
    return nv.dl ? dlsym(nv.dl, name) : NULL;
}

static int load_locked(struct weir_err *err)
{
    if (nv.decode)
        return 0;
    nv.dl = dlopen("libnvjpeg.so." TEXT(NVJPEG_VER_MAJOR), RTLD_NOW | RTLD_LOCAL);
    if (!nv.dl)
        nv.dl = dlopen("libnvjpeg.so", RTLD_NOW | RTLD_LOCAL);
    *(void **)&nv.create = symbol("nvjpegCreateEx");
    *(void **)&nv.state_create = symbol("nvjpegJpegStateCreate");
    *(void **)&nv.state_destroy = symbol("nvjpegJpegStateDestroy");
    *(void **)&nv.initialize = symbol("nvjpegDecodeBatchedInitialize");
    *(void **)&nv.decode = symbol("nvjpegDecodeBatched");
    bool all = nv.create && nv.state_create && nv.state_destroy && nv.initialize && nv.decode;
    if (!all)
        nv.decode = NULL;
    return all ? 0
               : weir_err_set(err, -ENODEV, "libnvjpeg.so.%d cannot be opened; add its folder to LD_LIBRARY_PATH",
                              NVJPEG_VER_MAJOR);
}

static int find_handle(enum weir_gpu_jpeg_engine engine, nvjpegHandle_t *handle, struct weir_err *err)
{
    pthread_mutex_lock(&nv.lock);
    int rc = load_locked(err);
    nvjpegBackend_t backend = engine == WEIR_GPU_JPEG_HARDWARE ? NVJPEG_BACKEND_HARDWARE : NVJPEG_BACKEND_GPU_HYBRID;
    nvjpegStatus_t status = NVJPEG_STATUS_SUCCESS;
    if (rc == 0 && !nv.handles[engine])
        status = nv.create(backend, NULL, NULL, NVJPEG_FLAGS_DEFAULT, &nv.handles[engine]);
    if (status != NVJPEG_STATUS_SUCCESS) {
        nv.handles[engine] = NULL;
        rc = weir_err_set(err, -ENODEV, "nvjpegCreateEx for the %s backend failed (%d)",
                          weir_gpu_jpeg_engine_name(engine), (int)status);
    }
    *handle = nv.handles[engine];
    pthread_mutex_unlock(&nv.lock);
    return rc;
}

int raw_nvjpeg_open(struct raw_nvjpeg **out, enum weir_gpu_jpeg_engine engine, int group, struct weir_err *err)
{
    *out = NULL;
    nvjpegHandle_t handle;
    int rc = find_handle(engine, &handle, err);
    if (rc < 0)
        return rc;
    struct raw_nvjpeg *raw = calloc(1, sizeof *raw + (size_t)group * sizeof raw->images[0]);
    if (!raw)
        return weir_err_set(err, -ENOMEM, "out of memory");
    raw->handle = handle;
    raw->group = group;
    nvjpegStatus_t status = nv.state_create(handle, &raw->state);
    if (status == NVJPEG_STATUS_SUCCESS)
        status = nv.initialize(handle, raw->state, group, 1, NVJPEG_OUTPUT_RGBI);
    *out = raw;
    if (status == NVJPEG_STATUS_SUCCESS)
        return 0;
    raw_nvjpeg_close(out);
    return weir_err_set(err, -EIO, "nvJPEG cannot create a state for groups of %d frames (status %d)", group,
                        (int)status);
}

void raw_nvjpeg_close(struct raw_nvjpeg **raw)
{
    if (!*raw)
        return;
    if ((*raw)->state)
        nv.state_destroy((*raw)->state);
    free(*raw);
    *raw = NULL;
}

int raw_nvjpeg_decode(struct raw_nvjpeg *raw, const uint8_t *const *bytes, const size_t *lengths, uint8_t *memory,
                      int width, int height, void *stream, struct weir_err *err)
{
    size_t pitch = 3 * (size_t)width;
    for (int i = 0; i < raw->group; i++) {
        raw->images[i].channel[0] = memory + (size_t)i * pitch * (size_t)height;
        raw->images[i].pitch[0] = pitch;
    }
    nvjpegStatus_t status = nv.decode(raw->handle, raw->state, bytes, lengths, raw->images, stream);
    return status == NVJPEG_STATUS_SUCCESS
               ? 0
               : weir_err_set(err, -EIO, "nvjpegDecodeBatched of %d frames failed (%d)", raw->group, (int)status);
}

#endif
