/* Streams of the stand-in, each a queue with a thread, and events, each pointing to its last record. */
#include "prof/threads.h"
#include "tests/fake_cuda.h"

#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* One moment in one stream; events and those who wait for it hold it. Under the lock. */
struct record {
    int holders;
    uint32_t stream, number;
    bool passed;
    int64_t ns;
};

struct event {
    struct event *next;
    const struct weir_gpu *gpu;
    bool timed;
    struct record *last; /* NULL = never recorded */
};

struct queued {
    struct queued *next;
    struct fake_operation operation;
    struct record *passes, *awaits; /* at most one of them; then nothing is run */
    uint32_t number;
    int64_t call_ns, called_ns; /* when, and by whom */
    pid_t tid;
};

struct stream {
    struct stream *next;
    const struct weir_gpu *gpu;
    uint32_t number;
    pthread_t thread;
    struct queued *first, **end; /* the first is what runs now */
    bool closing;
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t changed = PTHREAD_COND_INITIALIZER;
static struct stream *streams;
static struct event *events;
static uint64_t operations;
static uint32_t stream_numbers;
static bool lost;
static void (*observer)(const struct fake_ran *ran);
static void (*call_observer)(const struct fake_called *called);
static uint64_t (*_Atomic observers_clock)(void);
static uint32_t waits = 1u << 30; /* numbers of waits */

static int lost_error(struct weir_err *err)
{
    return weir_err_set(err, -EIO, "GPU 0 (stand-in) is lost: as WEIR_FAKE_CUDA says");
}

int fake_check_lost(struct weir_err *err)
{
    pthread_mutex_lock(&lock);
    bool is_lost = lost;
    pthread_mutex_unlock(&lock);
    return is_lost ? lost_error(err) : 0;
}

void fake_observe(void (*on_ran)(const struct fake_ran *ran), uint64_t (*now_ns)(void))
{
    pthread_mutex_lock(&lock);
    observer = on_ran;
    if (on_ran)
        observers_clock = now_ns;
    pthread_mutex_unlock(&lock);
}

static int64_t observed_ns(void)
{
    uint64_t (*now_ns)(void) = observers_clock;
    return now_ns ? (int64_t)now_ns() : 0;
}

void fake_observe_calls(void (*on_call)(const struct fake_called *called))
{
    pthread_mutex_lock(&lock);
    call_observer = on_call;
    pthread_mutex_unlock(&lock);
}

/* Lets go of the lock meanwhile, as the observer may well make calls. */
static void tell(enum fake_call call, const struct record *record, uint32_t stream, uint32_t number, int64_t start_ns)
{
    void (*on_call)(const struct fake_called *) = call_observer;
    if (!on_call || !record)
        return;
    const struct fake_called called = {call, stream, number, record->stream, record->number, start_ns, observed_ns()};
    pthread_mutex_unlock(&lock);
    on_call(&called);
    pthread_mutex_lock(&lock);
}

static void *must(void *memory)
{
    if (!memory)
        fake_die("the host has no memory left");
    return memory;
}

static void let_go(struct record *record)
{
    if (record && --record->holders == 0)
        free(record);
}

/* ---- the thread of a stream ---- */

static void run(struct stream *stream, const struct queued *queued)
{
    void (*on_ran)(const struct fake_ran *) = observer;
    pthread_mutex_unlock(&lock);
    struct fake_ran ran = {.name = queued->operation.name,
                           .stream = stream->number,
                           .number = queued->number,
                           .tid = queued->tid,
                           .call_ns = queued->call_ns,
                           .called_ns = queued->called_ns,
                           .start_ns = observed_ns(),
                           .bytes = queued->operation.bytes};
    queued->operation.run(queued->operation.user);
    ran.end_ns = observed_ns();
    free(queued->operation.user);
    if (on_ran)
        on_ran(&ran);
    pthread_mutex_lock(&lock);
}

static void execute(struct stream *stream, struct queued *queued)
{
    while (queued->awaits && !queued->awaits->passed)
        pthread_cond_wait(&changed, &lock);
    if (queued->operation.run)
        run(stream, queued);
    if (queued->passes) {
        queued->passes->ns = fake_now_ns();
        queued->passes->passed = true;
    }
    let_go(queued->passes);
    let_go(queued->awaits);
}

static void *stream_main(void *user)
{
    struct stream *stream = user;
    pthread_mutex_lock(&lock);
    while (stream->first || !stream->closing) {
        struct queued *queued = stream->first;
        if (!queued) {
            pthread_cond_wait(&changed, &lock);
            continue;
        }
        execute(stream, queued);
        stream->first = queued->next;
        if (!stream->first)
            stream->end = &stream->first;
        free(queued);
        pthread_cond_broadcast(&changed);
    }
    pthread_mutex_unlock(&lock);
    return NULL;
}

/* ---- handles; under the lock ---- */

static struct stream *stream_of(const void *handle, const char *what)
{
    struct stream *stream = streams;
    while (stream && stream != handle)
        stream = stream->next;
    if (!stream)
        fake_die("%s: %p is no stream, or was destroyed", what, handle);
    return stream;
}

static struct event *event_of(const void *handle, const char *what)
{
    struct event *event = events;
    while (event && event != handle)
        event = event->next;
    if (!event)
        fake_die("%s: %p is no event, or was destroyed", what, handle);
    return event;
}

static int push(struct stream *stream, struct queued item, struct weir_err *err)
{
    int64_t call_ns = observed_ns();
    operations++;
    lost = lost || (fake_config()->lost_at > 0 && operations >= fake_config()->lost_at);
    if (lost) {
        pthread_cond_broadcast(&changed);
        return lost_error(err);
    }
    struct queued *queued = must(malloc(sizeof *queued));
    *queued = item;
    queued->number = (uint32_t)operations;
    queued->call_ns = call_ns;
    queued->tid = gettid();
    *stream->end = queued;
    stream->end = &queued->next;
    pthread_cond_broadcast(&changed);
    queued->called_ns = observed_ns();
    return 0;
}

int fake_queue(void *handle, const struct fake_operation *operation, struct weir_err *err)
{
    pthread_mutex_lock(&lock);
    int rc = push(stream_of(handle, operation->name), (struct queued){.operation = *operation}, err);
    pthread_mutex_unlock(&lock);
    return rc;
}

/* ---- streams ---- */

int fake_stream_new(struct weir_gpu *gpu, bool urgent, void **handle, struct weir_err *err)
{
    (void)urgent;
    *handle = NULL;
    int rc = fake_check_lost(err);
    if (rc < 0)
        return rc;
    struct stream *stream = must(calloc(1, sizeof *stream));
    stream->gpu = gpu;
    stream->end = &stream->first;
    pthread_mutex_lock(&lock);
    stream->number = ++stream_numbers;
    stream->next = streams;
    streams = stream;
    if (weir_thread_start(&stream->thread, stream_main, stream) < 0)
        fake_die("stream_new: no thread");
    pthread_mutex_unlock(&lock);
    *handle = stream;
    return 0;
}

void fake_stream_free(struct weir_gpu *gpu, void *handle)
{
    if (!handle)
        return;
    pthread_mutex_lock(&lock);
    struct stream *stream = stream_of(handle, "stream_free"), **link = &streams;
    if (stream->gpu != gpu)
        fake_die("stream_free: the stream is another GPU's");
    stream->closing = true;
    pthread_cond_broadcast(&changed);
    pthread_mutex_unlock(&lock);
    pthread_join(stream->thread, NULL);
    pthread_mutex_lock(&lock);
    while (*link != stream)
        link = &(*link)->next;
    *link = stream->next;
    pthread_mutex_unlock(&lock);
    free(stream);
}

static bool idle(const struct weir_gpu *gpu)
{
    for (const struct stream *stream = streams; stream; stream = stream->next)
        if (stream->gpu->number == gpu->number && stream->first)
            return false;
    return true;
}

void fake_drain(const struct weir_gpu *gpu)
{
    pthread_mutex_lock(&lock);
    while (!idle(gpu))
        pthread_cond_wait(&changed, &lock);
    pthread_mutex_unlock(&lock);
}

bool fake_in_flight(const void *host, size_t bytes)
{
    bool found = false;
    uintptr_t from = (uintptr_t)host, to = from + bytes;
    pthread_mutex_lock(&lock);
    for (const struct stream *stream = streams; stream; stream = stream->next)
        for (const struct queued *queued = stream->first; queued; queued = queued->next) {
            uintptr_t used = (uintptr_t)queued->operation.host;
            found = found || (used && used < to && from < used + queued->operation.bytes);
        }
    pthread_mutex_unlock(&lock);
    return found;
}

void fake_streams_check_empty(const struct weir_gpu *gpu)
{
    int stream_n = 0, event_n = 0;
    pthread_mutex_lock(&lock);
    for (const struct stream *stream = streams; stream; stream = stream->next)
        stream_n += stream->gpu == gpu;
    for (const struct event *event = events; event; event = event->next)
        event_n += event->gpu == gpu;
    pthread_mutex_unlock(&lock);
    if (stream_n + event_n > 0)
        fake_die("close: GPU %d has %d streams and %d events still", gpu->number, stream_n, event_n);
}

/* ---- events ---- */

int fake_event_new(struct weir_gpu *gpu, bool timed, void **handle, struct weir_err *err)
{
    *handle = NULL;
    int rc = fake_check_lost(err);
    if (rc < 0)
        return rc;
    struct event *event = must(calloc(1, sizeof *event));
    event->gpu = gpu;
    event->timed = timed;
    pthread_mutex_lock(&lock);
    event->next = events;
    events = event;
    pthread_mutex_unlock(&lock);
    *handle = event;
    return 0;
}

void fake_event_free(struct weir_gpu *gpu, void *handle)
{
    if (!handle)
        return;
    pthread_mutex_lock(&lock);
    struct event *event = event_of(handle, "event_free"), **link = &events;
    if (event->gpu != gpu)
        fake_die("event_free: the event is another GPU's");
    while (*link != event)
        link = &(*link)->next;
    *link = event->next;
    let_go(event->last);
    pthread_mutex_unlock(&lock);
    free(event);
}

int fake_record(struct weir_gpu *gpu, void *event_handle, void *stream_handle, struct weir_err *err)
{
    (void)gpu;
    struct record *record = must(calloc(1, sizeof *record));
    int64_t start_ns = observed_ns();
    pthread_mutex_lock(&lock);
    struct event *event = event_of(event_handle, "record");
    struct stream *stream = stream_of(stream_handle, "record");
    if (event->gpu->number != stream->gpu->number)
        fake_die("record: the event is another GPU's than the stream");
    int rc = push(stream, (struct queued){.passes = record}, err);
    if (rc == 0) {
        record->holders = 2; /* the event, and what was queued */
        let_go(event->last);
        event->last = record;
        record->stream = stream->number;
        record->number = (uint32_t)operations;
        tell(FAKE_RECORD, record, record->stream, record->number, start_ns);
    }
    pthread_mutex_unlock(&lock);
    if (rc < 0)
        free(record);
    return rc;
}

int fake_stream_wait(struct weir_gpu *gpu, void *stream_handle, void *event_handle, struct weir_err *err)
{
    (void)gpu;
    int64_t start_ns = observed_ns();
    pthread_mutex_lock(&lock);
    struct event *event = event_of(event_handle, "stream_wait");
    struct stream *stream = stream_of(stream_handle, "stream_wait");
    int rc = push(stream, (struct queued){.awaits = event->last}, err);
    if (rc == 0 && event->last) {
        event->last->holders++;
        tell(FAKE_STREAM_WAIT, event->last, stream->number, (uint32_t)operations, start_ns);
    }
    pthread_mutex_unlock(&lock);
    return rc;
}

int fake_passed(struct weir_gpu *gpu, void *handle, struct weir_err *err)
{
    (void)gpu;
    pthread_mutex_lock(&lock);
    const struct event *event = event_of(handle, "passed");
    int rc = lost ? lost_error(err) : !event->last || event->last->passed;
    pthread_mutex_unlock(&lock);
    return rc;
}

int fake_wait(struct weir_gpu *gpu, void *handle, struct weir_err *err)
{
    (void)gpu;
    int64_t start_ns = observed_ns();
    pthread_mutex_lock(&lock);
    struct record *record = event_of(handle, "wait")->last;
    if (record)
        record->holders++;
    while (record && !record->passed && !lost)
        pthread_cond_wait(&changed, &lock);
    tell(FAKE_WAIT, record, 0, ++waits, start_ns);
    let_go(record);
    int rc = lost ? lost_error(err) : 0;
    pthread_mutex_unlock(&lock);
    return rc;
}

int fake_elapsed(struct weir_gpu *gpu, void *from_handle, void *to_handle, int64_t *ns, struct weir_err *err)
{
    (void)gpu;
    pthread_mutex_lock(&lock);
    const struct event *from = event_of(from_handle, "elapsed"), *to = event_of(to_handle, "elapsed");
    if (!from->timed || !to->timed)
        fake_die("elapsed: an event that is not timed");
    bool ready = from->last && from->last->passed && to->last && to->last->passed;
    int rc = 0;
    if (lost)
        rc = lost_error(err);
    else if (!ready)
        rc = weir_err_set(err, -EINVAL, "elapsed: the events have not both passed");
    *ns = rc == 0 ? to->last->ns - from->last->ns : 0;
    pthread_mutex_unlock(&lock);
    return rc;
}
