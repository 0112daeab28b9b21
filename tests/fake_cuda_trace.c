/* The stand-in's recorder: what its streams did, as CUPTI would tell it, and what a test gives it to tell. */
#include "tests/fake_cuda.h"
#include "tests/fake_trace.h"

#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

struct weir_gpu_records {
    struct weir_gpu_record *at;
    size_t n, room;
    uint64_t dropped;
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct weir_gpu_records *records; /* of the recording that goes on */
static struct weir_gpu_records scripted;
static uint64_t dropped;
static const char *start_fails, *stop_fails;
static _Atomic int started, stopped, kept;

static void append(struct weir_gpu_records *to, const struct weir_gpu_record *record)
{
    if (to->n == to->room) {
        to->room = to->room ? 2 * to->room : 64;
        to->at = realloc(to->at, to->room * sizeof *to->at);
        if (!to->at)
            fake_die("the host has no memory left");
    }
    to->at[to->n++] = *record;
}

static void append_call(const struct fake_ran *ran, bool copy)
{
    struct weir_gpu_record call = {
        .kind = WEIR_GPU_RECORD_RUNTIME,
        .name = copy ? "cudaMemcpyAsync" : "cudaLaunchKernel",
        .start_ns = (uint64_t)ran->call_ns,
        .end_ns = (uint64_t)ran->called_ns,
        .pid = getpid(),
        .tid = ran->tid,
        .cbid = copy ? 41 : 211,
        .correlation = ran->number,
    };
    append(records, &call);
}

static void on_ran(const struct fake_ran *ran)
{
    bool in = strcmp(ran->name, "copy_in") == 0, copy = in || strcmp(ran->name, "copy_out") == 0;
    struct weir_gpu_record did = {
        .kind = copy ? WEIR_GPU_RECORD_COPY : WEIR_GPU_RECORD_KERNEL,
        .name = ran->name,
        .start_ns = (uint64_t)ran->start_ns,
        .end_ns = (uint64_t)ran->end_ns,
        .correlation = ran->number,
        .context = 1,
        .stream = 6 + ran->stream,
        .bytes = ran->bytes,
        .grid = {132, 1, 1},
        .block = {256, 1, 1},
        .registers = 32,
        .occupancy = 8,
        .copy_kind = in ? "HtoD" : "DtoH",
        .from_kind = in ? "Pinned" : "Device",
        .to_kind = in ? "Device" : "Pinned",
        .from_device = -1,
        .to_device = -1,
    };
    pthread_mutex_lock(&lock);
    if (records) {
        append_call(ran, copy);
        append(records, &did);
    }
    pthread_mutex_unlock(&lock);
}

/* A call about an event, and the wait that it was. */
static void on_call(const struct fake_called *called)
{
    static const char *const names[] = {"cudaEventRecord", "cudaStreamWaitEvent", "cudaEventSynchronize"};
    static const uint32_t cbids[] = {135, 147, 137};
    struct weir_gpu_record record = {
        .kind = WEIR_GPU_RECORD_RUNTIME,
        .name = names[called->call],
        .start_ns = (uint64_t)called->start_ns,
        .end_ns = (uint64_t)called->end_ns,
        .pid = getpid(),
        .tid = gettid(),
        .cbid = cbids[called->call],
        .correlation = called->number,
    };
    pthread_mutex_lock(&lock);
    if (records)
        append(records, &record);
    if (records && called->call != FAKE_RECORD) {
        record.kind = WEIR_GPU_RECORD_SYNC;
        record.sync = called->call == FAKE_WAIT ? WEIR_GPU_SYNC_EVENT : WEIR_GPU_SYNC_STREAM_WAIT;
        record.context = 1;
        record.stream = called->call == FAKE_WAIT ? UINT32_MAX : 6 + called->stream;
        record.recorded_by = called->record_number;
        record.recorded_on = 6 + called->record_stream;
        append(records, &record);
    }
    pthread_mutex_unlock(&lock);
}

/* ---- the table ---- */

static int check(struct weir_err *err)
{
    return start_fails ? weir_err_set(err, -EBUSY, "%s", start_fails) : fake_check_lost(err);
}

static void library(char *text, size_t size)
{
    snprintf(text, size, "no CUPTI: the stand-in for tests");
}

static int start(const struct weir_gpu_trace_config *config, struct weir_err *err)
{
    started++;
    int rc = check(err);
    if (rc < 0)
        return rc;
    struct weir_gpu_records *fresh = calloc(1, sizeof *fresh);
    if (!fresh)
        fake_die("the host has no memory left");
    pthread_mutex_lock(&lock);
    if (records)
        fake_die("trace start: it records already");
    records = fresh;
    pthread_mutex_unlock(&lock);
    kept++;
    fake_observe(on_ran, config->now_ns);
    fake_observe_calls(on_call);
    return 0;
}

static int stop(struct weir_gpu_records **out, struct weir_err *err)
{
    for (int i = 0; i < fake_config()->gpus; i++)
        fake_drain(&(struct weir_gpu){i});
    fake_observe(NULL, NULL);
    fake_observe_calls(NULL);
    pthread_mutex_lock(&lock);
    if (!records)
        fake_die("trace stop: nothing records");
    for (size_t i = 0; i < scripted.n; i++)
        append(records, &scripted.at[i]);
    scripted.n = 0;
    records->dropped = dropped;
    *out = records;
    records = NULL;
    stopped++;
    pthread_mutex_unlock(&lock);
    return stop_fails ? weir_err_set(err, -EIO, "%s", stop_fails) : 0;
}

static void each(struct weir_gpu_records *of, void (*on_record)(void *user, const struct weir_gpu_record *record),
                 void *user)
{
    for (size_t i = 0; i < of->n; i++)
        on_record(user, &of->at[i]);
}

static uint64_t get_dropped(const struct weir_gpu_records *of)
{
    return of->dropped;
}

static void free_records(struct weir_gpu_records *of)
{
    if (!of)
        return;
    free(of->at);
    free(of);
    kept--;
}

static int properties(struct weir_gpu_properties *to, int n, struct weir_err *err)
{
    (void)err;
    for (int i = 0; i < n && i < fake_config()->gpus; i++)
        to[i] = (struct weir_gpu_properties){.id = i,
                                             .name = "stand-in",
                                             .total_bytes = fake_config()->memory_bytes,
                                             .major = 9,
                                             .threads_per_block = 1024,
                                             .threads_per_multiprocessor = 2048,
                                             .registers_per_block = 65536,
                                             .warp_size = 32,
                                             .shared_per_block = 49152,
                                             .shared_per_block_optin = 232448,
                                             .shared_per_multiprocessor = 233472,
                                             .multiprocessors = 132,
                                             .registers_per_multiprocessor = 65536};
    return fake_config()->gpus;
}

static void versions(int *driver, int *runtime, int *cupti)
{
    *driver = *runtime = 13000;
    *cupti = 130001;
}

const struct weir_gpu_trace_ops weir_gpu_trace_fake = {
    .check = check,
    .library = library,
    .start = start,
    .stop = stop,
    .each = each,
    .dropped = get_dropped,
    .free = free_records,
    .properties = properties,
    .versions = versions,
};

/* ---- for tests ---- */

static void add(const struct weir_gpu_record *record)
{
    pthread_mutex_lock(&lock);
    append(&scripted, record);
    pthread_mutex_unlock(&lock);
}

static void set_dropped(uint64_t n)
{
    dropped = n;
}

static void fail_start(const char *why)
{
    start_fails = why;
}

static void fail_stop(const char *why)
{
    stop_fails = why;
}

static int starts(void)
{
    return started;
}

static int stops(void)
{
    return stopped;
}

static int kept_now(void)
{
    return kept;
}

__attribute__((visibility("default"))) const struct fake_trace fake_trace = {
    add, set_dropped, fail_start, fail_stop, starts, stops, kept_now,
};
