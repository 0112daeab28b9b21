/* The CUPTI calls made by cuda/cupti.c and their order, recorded by a replacement for CUPTI. Building needs CUPTI's
 * headers, but running needs neither a GPU nor CUPTI: the few CUDA functions used are defined here. */
#include "cuda/cuda_context.h"
#include "cuda/cupti_priv.h"

#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

extern const struct weir_gpu_trace_ops weir_gpu_trace_cupti;
static const struct weir_gpu_trace_ops *const ops = &weir_gpu_trace_cupti;

static void check(bool ok, const char *what)
{
    if (ok)
        return;
    fprintf(stderr, "FAILED: %s\n", what);
    exit(1);
}

/* ---- recorded calls ---- */

static char calls[4096];
static CUptiResult subscribe_gives, enable_gives;
static CUpti_ActivityKind fails_at; /* enabling this kind returns enable_gives */
static CUpti_CallbackFunc on_call;
static CUpti_CallbackId watched[8];
static int n_watched;
static CUpti_BuffersCallbackRequestFunc request;
static CUpti_BuffersCallbackCompleteFunc complete;
static bool attached, deaf; /* deaf: callbacks for CUDA calls are not delivered */

static atomic_int n_in_driver; /* threads that are in a driver call, in test_calls_in_progress */

static void called(const char *what)
{
    check(strlen(calls) + strlen(what) + 2 < sizeof calls, "too many calls");
    strcat(strcat(calls, what), " ");
}

static CUptiResult CUPTIAPI subscribe(CUpti_SubscriberHandle *handle, CUpti_CallbackFunc function, void *user)
{
    (void)user;
    called("subscribe");
    check(atomic_load(&n_in_driver) == 0, "CUPTI is attached during a driver call");
    if (subscribe_gives != CUPTI_SUCCESS)
        return subscribe_gives;
    check(!attached, "a second subscriber is added");
    *handle = (CUpti_SubscriberHandle)&attached;
    on_call = function;
    n_watched = 0;
    attached = true;
    return CUPTI_SUCCESS;
}

static CUptiResult CUPTIAPI unsubscribe(CUpti_SubscriberHandle handle)
{
    (void)handle;
    called("unsubscribe");
    attached = false;
    return CUPTI_SUCCESS;
}

static CUptiResult CUPTIAPI watch(uint32_t on, CUpti_SubscriberHandle handle, CUpti_CallbackDomain domain,
                                  CUpti_CallbackId cbid)
{
    (void)handle;
    check(on && domain == CUPTI_CB_DOMAIN_RUNTIME_API ? n_watched < 8 : on, "calls are not watched");
    if (domain == CUPTI_CB_DOMAIN_RUNTIME_API)
        watched[n_watched++] = cbid;
    return CUPTI_SUCCESS;
}

static bool inside_exit;

static CUptiResult CUPTIAPI finalize(void)
{
    called(inside_exit ? "finalize" : "FINALIZE-OUTSIDE");
    check(atomic_load(&n_in_driver) == 0, "CUPTI is detached during a driver call");
    attached = false;
    return CUPTI_SUCCESS;
}

static CUptiResult CUPTIAPI set_thread_ids(CUpti_ActivityThreadIdType type)
{
    called(type == CUPTI_ACTIVITY_THREAD_ID_TYPE_SYSTEM ? "system-ids" : "other-ids");
    return CUPTI_SUCCESS;
}

static CUptiResult CUPTIAPI register_clock(CUpti_TimestampCallbackFunc function)
{
    called(function ? "clock" : "no-clock");
    return CUPTI_SUCCESS;
}

static CUptiResult CUPTIAPI register_buffers(CUpti_BuffersCallbackRequestFunc r, CUpti_BuffersCallbackCompleteFunc c)
{
    called("buffers");
    request = r;
    complete = c;
    return CUPTI_SUCCESS;
}

static CUptiResult CUPTIAPI enable(CUpti_ActivityKind kind)
{
    char text[16];
    snprintf(text, sizeof text, "+%d", (int)kind);
    called(text);
    return kind == fails_at ? enable_gives : CUPTI_SUCCESS;
}

static CUptiResult CUPTIAPI disable(CUpti_ActivityKind kind)
{
    char text[16];
    snprintf(text, sizeof text, "-%d", (int)kind);
    called(text);
    return CUPTI_SUCCESS;
}

static uint8_t *filled; /* buffer returned by the next flush */
static size_t filled_bytes;

static CUptiResult CUPTIAPI flush(uint32_t flag)
{
    called(flag == CUPTI_ACTIVITY_FLAG_FLUSH_FORCED ? "flush-forced" : "flush");
    if (filled)
        complete(NULL, 0, filled, 2 << 20, filled_bytes);
    filled = NULL;
    return CUPTI_SUCCESS;
}

static CUptiResult CUPTIAPI next_record(uint8_t *buffer, size_t valid, CUpti_Activity **record)
{
    /* The buffer contains only known kinds of records. */
    uint8_t *next = *record ? (uint8_t *)*record + weir_cupti_record_bytes((*record)->kind) : buffer;
    if (next >= buffer + valid)
        return CUPTI_ERROR_MAX_LIMIT_REACHED;
    *record = (CUpti_Activity *)next;
    return CUPTI_SUCCESS;
}

static CUptiResult CUPTIAPI dropped(CUcontext context, uint32_t stream, size_t *n)
{
    (void)context;
    (void)stream;
    *n = 0;
    return CUPTI_SUCCESS;
}

static CUptiResult CUPTIAPI callback_name(CUpti_CallbackDomain domain, uint32_t cbid, const char **name)
{
    (void)domain;
    (void)cbid;
    check(attached, "a name is requested without a subscriber");
    *name = "cudaLaunchKernel_v7000";
    return CUPTI_SUCCESS;
}

static const struct weir_cupti cupti = {
    .subscribe = subscribe,
    .unsubscribe = unsubscribe,
    .enable_callback = watch,
    .get_callback_name = callback_name,
    .finalize = finalize,
    .set_thread_id_type = set_thread_ids,
    .register_timestamp = register_clock,
    .register_callbacks = register_buffers,
    .enable = enable,
    .disable = disable,
    .flush_all = flush,
    .get_next_record = next_record,
    .get_num_dropped = dropped,
};

/* ---- replaces cupti_library.c ---- */

const struct weir_cupti *weir_cupti_open(struct weir_err *err)
{
    (void)err;
    return &cupti;
}

int weir_cupti_fail(CUptiResult result, const char *what, struct weir_err *err)
{
    return weir_err_set(err, -EBUSY, "%s: %d", what, (int)result);
}

int weir_cupti_wait_for_gpus(struct weir_err *err)
{
    (void)err;
    called("wait");
    return 0;
}

void weir_cupti_count_devices(void)
{
}

void weir_cupti_library(char *text, size_t size)
{
    snprintf(text, size, "our own");
}

void weir_cupti_versions(int *driver, int *runtime, int *version)
{
    *driver = *runtime = *version = 0;
}

int weir_cupti_properties(struct weir_gpu_properties *properties, int n, struct weir_err *err)
{
    (void)properties;
    (void)n;
    (void)err;
    return 0;
}

/* ---- CUDA ---- */

static void tell(CUpti_CallbackId cbid)
{
    for (int i = 0; i < n_watched && attached && !deaf; i++) {
        if (watched[i] != cbid)
            continue;
        CUpti_CallbackData data = {.callbackSite = CUPTI_API_ENTER};
        on_call(NULL, CUPTI_CB_DOMAIN_RUNTIME_API, cbid, &data);
        data.callbackSite = CUPTI_API_EXIT;
        inside_exit = true;
        on_call(NULL, CUPTI_CB_DOMAIN_RUNTIME_API, cbid, &data);
        inside_exit = false;
    }
}

cudaError_t cudaDeviceGetAttribute(int *value, enum cudaDeviceAttr attribute, int device)
{
    (void)attribute;
    (void)device;
    *value = 0;
    tell(CUPTI_RUNTIME_TRACE_CBID_cudaDeviceGetAttribute_v5000);
    return cudaSuccess;
}

cudaError_t cudaGetDevice(int *device)
{
    *device = 0;
    tell(CUPTI_RUNTIME_TRACE_CBID_cudaGetDevice_v3020);
    return cudaSuccess;
}

cudaError_t cudaFree(void *memory)
{
    (void)memory;
    return cudaSuccess;
}

cudaError_t cudaGetDeviceCount(int *n)
{
    *n = 0;
    return cudaSuccess;
}

cudaError_t cudaGetDeviceProperties(struct cudaDeviceProp *properties, int device)
{
    (void)properties;
    (void)device;
    return cudaErrorInvalidDevice;
}

/* ---- tests ---- */

static uint64_t now_ns(void)
{
    return 5000000;
}

static int begin(bool memory, uint64_t bytes_max, struct weir_err *err)
{
    const struct weir_gpu_trace_config config = {.now_ns = now_ns, .bytes_max = bytes_max, .memory = memory};
    calls[0] = '\0';
    return ops->start(&config, err);
}

/* Fills a buffer with n records of API calls, which the next flush returns. */
static void fill_buffer(int n)
{
    size_t size, most;
    request(&filled, &size, &most);
    check(filled && size >= 1 << 20 && (uintptr_t)filled % 8 == 0 && most == 0, "the buffer is too small or unaligned");
    CUpti_ActivityAPI *record = (CUpti_ActivityAPI *)filled;
    for (int i = 0; i < n; i++)
        record[i] = (CUpti_ActivityAPI){.kind = CUPTI_ACTIVITY_KIND_RUNTIME,
                                        .cbid = 211,
                                        .start = 5000000,
                                        .end = 5000001,
                                        .correlationId = (uint32_t)i + 1};
    filled_bytes = (size_t)n * sizeof *record;
}

static void count_one(void *user, const struct weir_gpu_record *record)
{
    *(int *)user += strcmp(record->name, "cudaLaunchKernel") == 0;
}

static void end(int expected, uint64_t expected_dropped)
{
    struct weir_gpu_records *records;
    struct weir_err err = WEIR_ERR_NONE;
    int n = 0;
    check(ops->stop(&records, &err) == 0 && records, err.text);
    ops->each(records, count_one, &n);
    check(n == expected, "not all records are returned");
    check(ops->dropped(records) == expected_dropped, "lost records are not counted");
    ops->free(records);
}

static const char *const tear_down = "wait -17 -36 -38 -2 -22 -1 -5 -10 flush flush-forced finalize ";

static void test_the_order_of_calls(void)
{
    struct weir_err err = WEIR_ERR_NONE;
    check(begin(false, 1 << 20, &err) == 0, err.text);
    check(strcmp(calls, "subscribe system-ids clock buffers +10 +5 +1 +22 +2 +38 +36 +17 ") == 0, calls);
    check(begin(false, 1 << 20, &err) == -EBUSY, "a second recording starts");
    fill_buffer(100);
    end(100, 0);
    check(strcmp(calls, tear_down) == 0, calls);
    err = WEIR_ERR_NONE; /* A second recording registers no clock, since that is done once per process. This one
                            requests memory records. */
    check(begin(true, 1 << 20, &err) == 0, err.text);
    check(strcmp(calls, "subscribe system-ids buffers +10 +5 +1 +22 +2 +38 +36 +17 +49 ") == 0, calls);
    fill_buffer(7);
    end(7, 0);
}

static void test_failures_leave_nothing_behind(void)
{
    struct weir_err err = WEIR_ERR_NONE;
    struct weir_gpu_records *records;
    subscribe_gives = CUPTI_ERROR_MULTIPLE_SUBSCRIBERS_NOT_SUPPORTED;
    check(begin(false, 1 << 20, &err) < 0, "recording starts although another tool uses CUPTI");
    subscribe_gives = CUPTI_SUCCESS;
    fails_at = CUPTI_ACTIVITY_KIND_MEMCPY;
    enable_gives = CUPTI_ERROR_INSUFFICIENT_PRIVILEGES;
    err = WEIR_ERR_NONE;
    check(begin(false, 1 << 20, &err) < 0 && strstr(err.text, "35"), err.text);
    check(strcmp(calls, "subscribe system-ids buffers +10 +5 +1 -5 -10 unsubscribe ") == 0, calls);
    fails_at = CUPTI_ACTIVITY_KIND_INVALID;
    err = WEIR_ERR_NONE;
    check(ops->stop(&records, &err) < 0 && !records, "stop without a recording succeeds");
    check(ops->check(&(struct weir_err){0}) == 0 && !attached, "the check leaves a subscriber");
}

/* Requests more buffers than are available, and returns more records than the limit. */
static void test_pressure(void)
{
    enum { MORE = 70 };
    static uint8_t *buffers[MORE];
    size_t size, most;
    struct weir_err err = WEIR_ERR_NONE;
    check(begin(false, 40 * 10, &err) == 0, err.text);
    for (int i = 0; i < MORE; i++) {
        request(&buffers[i], &size, &most);
        check(buffers[i] && size >= 4096, "no buffer is returned");
    }
    check(buffers[MORE - 1] == buffers[MORE - 2], "excess requests do not share one buffer");
    complete(NULL, 0, buffers[MORE - 1], size, 400); /* must not be read, since others may be writing to this buffer */
    for (int i = 0; i < MORE && buffers[i] != buffers[MORE - 1]; i++)
        complete(NULL, 0, buffers[i], 2 << 20, 0);
    fill_buffer(15);
    end(10, 10 + 5);
}

static void test_a_tear_down_that_does_not_happen(void)
{
    struct weir_err err = WEIR_ERR_NONE;
    struct weir_gpu_records *records;
    int n = 0;
    check(begin(false, 1 << 20, &err) == 0, err.text);
    fill_buffer(3);
    deaf = true;
    check(ops->stop(&records, &err) < 0 && strstr(err.text, "could not be detached"), err.text);
    deaf = false;
    ops->each(records, count_one, &n);
    check(n == 3, "records are lost");
    ops->free(records);
    unsubscribe(NULL);
    err = WEIR_ERR_NONE;
    check(begin(false, 1 << 20, &err) == 0, err.text);
    end(0, 0);
}

static atomic_bool ends;
static atomic_int n_calls;

static void *use_driver(void *unused)
{
    while (!atomic_load(&ends)) {
        weir_cuda_call_begin();
        atomic_fetch_add(&n_in_driver, 1);
        weir_cuda_call_begin(); /* decoding an image begins a call within a call */
        sched_yield();
        weir_cuda_call_end();
        atomic_fetch_sub(&n_in_driver, 1);
        weir_cuda_call_end();
        atomic_fetch_add(&n_calls, 1);
    }
    return unused;
}

/* Threads use the driver all the time while recording starts and stops. */
static void test_calls_in_progress(void)
{
    enum { THREADS = 3 };
    pthread_t threads[THREADS];
    for (int i = 0; i < THREADS; i++)
        check(pthread_create(&threads[i], NULL, use_driver, NULL) == 0, "no thread");
    for (int i = 0; i < 100; i++) {
        for (int seen = atomic_load(&n_calls); atomic_load(&n_calls) < seen + THREADS;)
            sched_yield();
        struct weir_err err = WEIR_ERR_NONE;
        check(begin(false, 1 << 20, &err) == 0, err.text);
        end(0, 0);
    }
    atomic_store(&ends, true);
    for (int i = 0; i < THREADS; i++)
        pthread_join(threads[i], NULL);
}

int main(void)
{
    test_the_order_of_calls();
    test_failures_leave_nothing_behind();
    test_pressure();
    test_a_tear_down_that_does_not_happen();
    test_calls_in_progress();
    return 0;
}
