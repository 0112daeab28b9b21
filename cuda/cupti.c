/* Records GPU work through CUPTI's activity API. start and stop call CUPTI in the order that its documentation
 * prescribes. */
#include "cuda/cuda_context.h"
#include "cuda/cupti_priv.h"

#include <errno.h>
#include <pthread.h>
#include <stdalign.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

enum { BUFFER_BYTES = 2 << 20, BUFFERS = 64, RECORD_BYTES_LEAST = 40 };

/* CONCURRENT_KERNEL rather than KERNEL, which would serialise kernels. MEMORY2 is optional and must be last. */
static const CUpti_ActivityKind kinds[] = {
    CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL, CUPTI_ACTIVITY_KIND_RUNTIME,  CUPTI_ACTIVITY_KIND_MEMCPY,
    CUPTI_ACTIVITY_KIND_MEMCPY2,           CUPTI_ACTIVITY_KIND_MEMSET,   CUPTI_ACTIVITY_KIND_SYNCHRONIZATION,
    CUPTI_ACTIVITY_KIND_CUDA_EVENT,        CUPTI_ACTIVITY_KIND_OVERHEAD, CUPTI_ACTIVITY_KIND_MEMORY2,
};
enum { N_KINDS = sizeof kinds / sizeof *kinds };

/* Kernel launches through the driver API. */
static const CUpti_CallbackId launches[] = {
    CUPTI_DRIVER_TRACE_CBID_cuLaunchKernel,
    CUPTI_DRIVER_TRACE_CBID_cuLaunchKernel_ptsz,
    CUPTI_DRIVER_TRACE_CBID_cuLaunchKernelEx,
    CUPTI_DRIVER_TRACE_CBID_cuLaunchKernelEx_ptsz,
};

/* Serialises start and stop. */
static pthread_mutex_t session_lock = PTHREAD_MUTEX_INITIALIZER;
static const struct weir_cupti *cupti;
static CUpti_SubscriberHandle subscriber;
static uint64_t (*now_ns)(void);
static int n_enabled; /* number of enabled kinds */
static bool recording, clock_registered;

/* Protects the state shared with CUPTI's threads. No CUPTI function is called while the lock is held. */
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct weir_gpu_records *records;
static uint8_t *buffers[BUFFERS], *unused[BUFFERS];
static int n_buffers, n_unused;
/* Passed to CUPTI if no other buffer is free, because CUPTI does not handle NULL correctly. Records in this buffer are
 * lost. */
static alignas(8) uint8_t discarded[64 << 10];

/* ---- buffers ---- */

static uint8_t *take_buffer(void)
{
    uint8_t *buffer = NULL;
    pthread_mutex_lock(&lock);
    if (n_unused > 0)
        buffer = unused[--n_unused];
    else if (n_buffers < BUFFERS && (buffer = malloc(BUFFER_BYTES)) != NULL)
        buffers[n_buffers++] = buffer;
    pthread_mutex_unlock(&lock);
    return buffer;
}

static void CUPTIAPI buffer_requested(uint8_t **buffer, size_t *size, size_t *records_max)
{
    *buffer = take_buffer();
    *size = *buffer ? BUFFER_BYTES : sizeof discarded;
    *buffer = *buffer ? *buffer : discarded;
    *records_max = 0; /* no limit */
}

static void keep(const CUpti_Activity *record)
{
    pthread_mutex_lock(&lock);
    if (records)
        weir_cupti_records_keep(records, record);
    pthread_mutex_unlock(&lock);
}

static void note_lost(uint64_t n)
{
    pthread_mutex_lock(&lock);
    if (records)
        weir_cupti_records_lost(records, n);
    pthread_mutex_unlock(&lock);
}

static void CUPTIAPI buffer_completed(CUcontext context, uint32_t stream, uint8_t *buffer, size_t size, size_t valid)
{
    CUpti_Activity *record = NULL;
    size_t lost = 0;
    (void)size;
    if (buffer == discarded) {
        note_lost(valid / RECORD_BYTES_LEAST);
        return;
    }
    while (valid > 0 && cupti->get_next_record(buffer, valid, &record) == CUPTI_SUCCESS)
        keep(record);
    if (cupti->get_num_dropped(context, stream, &lost) == CUPTI_SUCCESS && lost > 0)
        note_lost(lost);
    pthread_mutex_lock(&lock);
    if (n_unused < BUFFERS)
        unused[n_unused++] = buffer;
    pthread_mutex_unlock(&lock);
}

/* Call only after CUPTI has been detached and therefore no longer uses the buffers. */
static void free_buffers(void)
{
    pthread_mutex_lock(&lock);
    for (int i = 0; i < n_buffers; i++)
        free(buffers[i]);
    n_buffers = n_unused = 0;
    pthread_mutex_unlock(&lock);
}

static struct weir_gpu_records *set_records(struct weir_gpu_records *to)
{
    pthread_mutex_lock(&lock);
    struct weir_gpu_records *before = records;
    records = to;
    pthread_mutex_unlock(&lock);
    return before;
}

/* ---- tear-down ---- */

/* Detaching CUPTI from the process. CUPTI is detached inside a callback at the exit of a CUDA call, as its
 * documentation advises. Otherwise calls in progress on other threads would fail. */
static struct {
    _Atomic bool wanted, done;
    pthread_t thread;
    CUptiResult result;
} detach;

static void CUPTIAPI on_call(void *user, CUpti_CallbackDomain domain, CUpti_CallbackId cbid, const void *data)
{
    const CUpti_CallbackData *call = data;
    (void)user;
    (void)domain;
    (void)cbid;
    if (call->callbackSite != CUPTI_API_EXIT || !atomic_load(&detach.wanted) ||
        !pthread_equal(pthread_self(), detach.thread) || !atomic_exchange(&detach.wanted, false))
        return;
    detach.result = cupti->finalize();
    atomic_store(&detach.done, true);
}

static void ask_attribute(void)
{
    int value;
    cudaDeviceGetAttribute(&value, cudaDevAttrWarpSize, 0);
}

static void ask_device(void)
{
    int device;
    cudaGetDevice(&device);
}

static void free_nothing(void)
{
    cudaFree(NULL);
}

static int tear_down(struct weir_err *err)
{
    /* Cheap CUDA calls whose callback can detach CUPTI. Only the last one needs a context, and creates one if there is
     * none. The first call is usually sufficient. */
    static const struct {
        CUpti_CallbackDomain domain;
        CUpti_CallbackId cbid;
        void (*make)(void);
    } calls[] = {
        {CUPTI_CB_DOMAIN_RUNTIME_API, CUPTI_RUNTIME_TRACE_CBID_cudaDeviceGetAttribute_v5000, ask_attribute},
        {CUPTI_CB_DOMAIN_RUNTIME_API, CUPTI_RUNTIME_TRACE_CBID_cudaGetDevice_v3020, ask_device},
        {CUPTI_CB_DOMAIN_DRIVER_API, CUPTI_DRIVER_TRACE_CBID_cuDeviceGetCount, weir_cupti_count_devices},
        {CUPTI_CB_DOMAIN_RUNTIME_API, CUPTI_RUNTIME_TRACE_CBID_cudaFree_v3020, free_nothing},
    };
    detach.thread = pthread_self();
    atomic_store(&detach.done, false);
    atomic_store(&detach.wanted, true);
    for (size_t i = 0; i < sizeof calls / sizeof *calls && !atomic_load(&detach.done); i++)
        if (cupti->enable_callback(1, subscriber, calls[i].domain, calls[i].cbid) == CUPTI_SUCCESS)
            calls[i].make();
    atomic_store(&detach.wanted, false);
    if (!atomic_load(&detach.done))
        return weir_err_set(err, -EIO,
                            "CUPTI could not be detached, so kernel launches remain slower until this process ends");
    return detach.result == CUPTI_SUCCESS ? 0 : weir_cupti_fail(detach.result, "detaching", err);
}

/* ---- start ---- */

static int subscribe(struct weir_err *err)
{
    CUpti_SubscriberHandle before = subscriber;
    CUptiResult rc = cupti->subscribe(&subscriber, on_call, NULL);
    if (rc == CUPTI_ERROR_MULTIPLE_SUBSCRIBERS_NOT_SUPPORTED &&
        before) { /* our own subscriber, left by an incomplete tear-down */
        cupti->unsubscribe(before);
        rc = cupti->subscribe(&subscriber, on_call, NULL);
    }
    if (rc == CUPTI_SUCCESS)
        return 0;
    subscriber = NULL;
    return weir_cupti_fail(rc, "subscribing", err);
}

static void unsubscribe(void)
{
    if (subscriber)
        cupti->unsubscribe(subscriber);
    subscriber = NULL;
}

static void disable_all(void)
{
    for (; n_enabled > 0; n_enabled--)
        cupti->disable(kinds[n_enabled - 1]);
    for (size_t i = 0; cupti->enable_driver_api && i < sizeof launches / sizeof *launches; i++)
        cupti->enable_driver_api(launches[i], 0);
}

static int enable_all(bool memory, struct weir_err *err)
{
    for (int i = 0; i < N_KINDS - !memory; i++) {
        CUptiResult rc = cupti->enable(kinds[i]);
        if (rc != CUPTI_SUCCESS)
            return weir_cupti_fail(rc, "enabling records", err);
        n_enabled = i + 1;
    }
    for (size_t i = 0; cupti->enable_driver_api && i < sizeof launches / sizeof *launches; i++)
        cupti->enable_driver_api(launches[i], 1); /* otherwise such launches have no API record */
    return 0;
}

static int prepare(struct weir_err *err)
{
    int rc = subscribe(err);
    if (rc < 0)
        return rc;
    const char *what = "selecting system thread ids";
    CUptiResult result = cupti->set_thread_id_type(CUPTI_ACTIVITY_THREAD_ID_TYPE_SYSTEM);
    if (result == CUPTI_SUCCESS && !clock_registered) {
        what = "registering the timestamp callback";
        result = cupti->register_timestamp(now_ns);
        clock_registered = result == CUPTI_SUCCESS;
    }
    if (result == CUPTI_SUCCESS) {
        what = "registering the buffer callbacks";
        result = cupti->register_callbacks(buffer_requested, buffer_completed);
    }
    if (result == CUPTI_SUCCESS && cupti->enable_all_sync_records)
        cupti->enable_all_sync_records(0); /* cudaEventQuery does not wait, so it needs no record */
    return result == CUPTI_SUCCESS ? 0 : weir_cupti_fail(result, what, err);
}

static int start_locked(const struct weir_gpu_trace_config *config, struct weir_err *err)
{
    if (recording)
        return weir_err_set(err, -EBUSY, "the GPU is already being recorded");
    cupti = weir_cupti_open(err);
    if (!cupti)
        return err ? err->code : -ENODEV;
    now_ns = config->now_ns;
    struct weir_gpu_records *fresh = weir_cupti_records_new(config->bytes_max, now_ns);
    if (!fresh)
        return weir_err_set(err, -ENOMEM, "out of memory for recording the GPU");
    set_records(fresh);
    weir_cuda_calls_pause();
    int rc = prepare(err);
    if (rc == 0) {
        rc = enable_all(config->memory, err);
        if (rc < 0)
            disable_all();
    }
    weir_cuda_calls_resume();
    if (rc == 0) {
        recording = true;
        return 0;
    }
    unsubscribe();
    weir_cupti_records_free(set_records(NULL));
    return rc;
}

static int start(const struct weir_gpu_trace_config *config, struct weir_err *err)
{
    pthread_mutex_lock(&session_lock);
    int rc = start_locked(config, err);
    pthread_mutex_unlock(&session_lock);
    return rc;
}

/* ---- stop ---- */

static int stop_locked(struct weir_gpu_records **out, struct weir_err *err)
{
    if (!recording)
        return weir_err_set(err, -EINVAL, "the GPU is not being recorded");
    recording = false;
    int waited = weir_cupti_wait_for_gpus(err);
    weir_cuda_calls_pause();
    disable_all();
    cupti->flush_all(0);
    CUptiResult flushed = cupti->flush_all(CUPTI_ACTIVITY_FLAG_FLUSH_FORCED);
    if (flushed != CUPTI_SUCCESS)
        weir_cupti_fail(flushed, "flushing the records", err);
    pthread_mutex_lock(&lock);
    struct weir_gpu_records *collected = records;
    records = NULL; /* no record is added from now on */
    pthread_mutex_unlock(&lock);
    weir_cupti_records_finish(collected, cupti, now_ns);
    int detached = tear_down(err);
    weir_cuda_calls_resume();
    if (detached == 0)
        free_buffers();
    *out = collected;
    return waited < 0 ? waited : flushed != CUPTI_SUCCESS ? -EIO : detached;
}

static int stop(struct weir_gpu_records **out, struct weir_err *err)
{
    *out = NULL;
    pthread_mutex_lock(&session_lock);
    int rc = stop_locked(out, err);
    pthread_mutex_unlock(&session_lock);
    return rc;
}

/* ---- queries ---- */

static int check_locked(struct weir_err *err)
{
    if (recording)
        return 0;
    cupti = weir_cupti_open(err);
    if (!cupti)
        return err ? err->code : -ENODEV;
    /* Only subscribes. Enabling an activity kind would be too early, because start must first register the timestamp
     * callback. */
    int rc = subscribe(err);
    unsubscribe();
    return rc;
}

static int check(struct weir_err *err)
{
    pthread_mutex_lock(&session_lock);
    int rc = check_locked(err);
    pthread_mutex_unlock(&session_lock);
    return rc;
}

const struct weir_gpu_trace_ops weir_gpu_trace_cupti = {
    .check = check,
    .library = weir_cupti_library,
    .start = start,
    .stop = stop,
    .each = weir_cupti_records_each,
    .dropped = weir_cupti_records_dropped,
    .free = weir_cupti_records_free,
    .properties = weir_cupti_properties,
    .versions = weir_cupti_versions,
};
