#include "analyze/live/live.h"
#include "analyze/live/http_server.h"
#include "analyze/live/live_priv.h"
#include "base/gz_file.h"
#include "base/threads.h"

#include <errno.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <time.h>
#include <unistd.h>

static const uint64_t FILE_NS = 10ull * 1000000000u; /* longest time between two versions of the file */
static const uint64_t EPOCH_NS = 1000000000u;        /* shortest time between two that epochs cause, and two notes */
static const uint64_t KEEP_NS = 250000000u;          /* answers are made anew at most this often */
enum { PAUSE_MS = 10 };                              /* between rounds of the server, which bounds its CPU time */

struct answer {
    char *text; /* NULL = none yet */
    size_t size;
    uint64_t at_ns;
};

struct weir_live {
    struct weir_live *next;
    int users; /* calls of weir_live_open without weir_live_close */
    char *prometheus, *serve;
    struct weir_metrics_process process;
    weir_live_page_fn *page;
    char version[32];
    struct weir_http *http; /* NULL = not served */
    int n_sources;
    struct weir_live_source sources[WEIR_LIVE_SOURCES];
    struct answer answers[WEIR_LIVE_FORMS];
    pthread_mutex_t file_lock; /* held from collecting the file's figures until they are written; before `lock` */
    _Atomic uint64_t file_ns;  /* when the file was written */
    _Atomic bool begun;        /* a loader has been added; the file is not touched before */
    bool failed;               /* writing the file has failed, and that was reported */
    _Atomic bool stop, write_now, epoch_ended;
    uint64_t noted_ns; /* when epochs were noted */
    int wake;          /* eventfd */
    pid_t pid;
    bool running; /* the thread; changes under `opening` */
    pthread_t thread;
};

/* Held while figures are collected and clients served, so that sources do not go away meanwhile; not while a thread
 * waits, or writes a file. */
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_mutex_t opening = PTHREAD_MUTEX_INITIALIZER; /* held by weir_live_open and _close; before `lock` */
static struct weir_live *all;

/* ---- fork ---- */

/* A thread that collects figures holds locks of the profiler; a child must not inherit them locked. */
static void before_fork(void)
{
    pthread_mutex_lock(&opening);
    pthread_mutex_lock(&lock);
}

static void in_parent(void)
{
    pthread_mutex_unlock(&lock);
    pthread_mutex_unlock(&opening);
}

static void in_child(void)
{
    for (const struct weir_live *live = all; live; live = live->next) {
        if (live->http)
            weir_http_forget(live->http);
        close(live->wake);
    }
    all = NULL;
    in_parent();
}

static void survive_forks(void)
{
    pthread_atfork(before_fork, in_parent, in_child);
}

/* Returns false for an object of the parent of a fork. */
static bool is_here(const struct weir_live *live)
{
    const struct weir_live *at = all;
    while (at && at != live)
        at = at->next;
    return at != NULL;
}

/* ---- the file ---- */

static void report_failure(struct weir_live *live, const struct weir_err *err)
{
    if (!live->failed)
        fprintf(stderr, "weir: %s; trying again every 10 s\n", err->text);
    live->failed = true;
}

/* The caller holds file_lock. Does nothing without loaders, because the last figures remain. */
static int write_file(struct weir_live *live, struct weir_err *err)
{
    char *text = NULL;
    size_t size = 0;
    live->write_now = false;
    live->file_ns = weir_clock_monotonic_ns();
    pthread_mutex_lock(&lock);
    bool empty = live->n_sources == 0;
    int rc = empty ? 0
                   : weir_live_write(&text, &size, WEIR_LIVE_CLASSIC, live->sources, live->n_sources, &live->process,
                                     live->page);
    pthread_mutex_unlock(&lock);
    if (rc < 0)
        return weir_err_set(err, rc, "%s: out of memory", live->prometheus);
    if (empty)
        return 0;
    rc = weir_gz_write_plain(live->prometheus, text, size, err);
    free(text);
    return rc;
}

/* The caller holds file_lock. */
static void update_file(struct weir_live *live)
{
    struct weir_err err = WEIR_ERR_NONE;
    if (!live->prometheus || !live->begun)
        return;
    int rc = write_file(live, &err);
    if (rc < 0)
        report_failure(live, &err);
    live->failed = rc < 0;
}

/* When the thread writes the file next; UINT64_MAX = never. */
static uint64_t file_due_ns(const struct weir_live *live)
{
    if (!live->prometheus || !live->begun)
        return UINT64_MAX;
    return live->file_ns + (live->write_now ? EPOCH_NS : FILE_NS);
}

/* Another thread may have written the file since the thread has seen that it is due. */
static void update_due_file(struct weir_live *live)
{
    pthread_mutex_lock(&live->file_lock);
    if (weir_clock_monotonic_ns() >= file_due_ns(live))
        update_file(live);
    pthread_mutex_unlock(&live->file_lock);
}

/* ---- the server ---- */

static void answer_with(struct weir_live *live, enum weir_live_form form, const char *type,
                        struct weir_http_reply *reply)
{
    struct answer *answer = &live->answers[form];
    uint64_t now_ns = weir_clock_monotonic_ns();
    reply->type = type;
    if (!answer->text || now_ns - answer->at_ns >= KEEP_NS) {
        free(answer->text);
        *answer = (struct answer){.at_ns = now_ns};
        weir_live_write(&answer->text, &answer->size, form, live->sources, live->n_sources, &live->process, live->page);
    }
    reply->status = answer->text ? 200 : 503;
    reply->body = answer->text ? answer->text : "";
    reply->size = answer->text ? answer->size : 0;
}

static void answer(void *user, const char *path, const char *accept, struct weir_http_reply *reply)
{
    static const char NOT_FOUND[] = "not found; see / and /metrics\n";
    enum weir_live_form form = weir_live_accepted(accept);
    if (strcmp(path, "/metrics") == 0) {
        answer_with(user, form, weir_metrics_media_type((enum weir_metrics_format)form), reply);
    } else if (strcmp(path, "/") == 0) {
        answer_with(user, WEIR_LIVE_PAGE, "text/html; charset=utf-8", reply);
    } else {
        reply->status = 404;
        reply->body = NOT_FOUND;
        reply->size = sizeof NOT_FOUND - 1;
    }
}

/* ---- the thread ---- */

/* When epochs are noted for the page; UINT64_MAX = none has ended. */
static uint64_t note_due_ns(const struct weir_live *live)
{
    return live->http && live->epoch_ended ? live->noted_ns + EPOCH_NS : UINT64_MAX;
}

static int wait_ms(const struct weir_live *live, int server_ms)
{
    uint64_t file_ns = file_due_ns(live), note_ns = note_due_ns(live), due_ns = file_ns < note_ns ? file_ns : note_ns;
    uint64_t now_ns = weir_clock_monotonic_ns();
    if (due_ns == UINT64_MAX)
        return server_ms;
    int ms = due_ns > now_ns ? (int)((due_ns - now_ns) / 1000000u) + 1 : 0;
    return server_ms >= 0 && server_ms < ms ? server_ms : ms;
}

static int serve(struct weir_live *live)
{
    if (!live->http)
        return -1;
    pthread_mutex_lock(&lock);
    int ms = weir_http_run(live->http);
    pthread_mutex_unlock(&lock);
    return ms;
}

static void note_epochs(struct weir_live *live)
{
    uint64_t now_ns = weir_clock_monotonic_ns();
    if (now_ns < note_due_ns(live))
        return;
    live->epoch_ended = false;
    live->noted_ns = now_ns;
    struct weir_metrics *metrics = calloc(1, sizeof *metrics);
    pthread_mutex_lock(&lock);
    for (int i = 0; i < live->n_sources && metrics; i++) {
        const struct weir_live_source *source = &live->sources[i];
        if (!source->history_ || source->collect(source->user, metrics) < 0)
            continue;
        weir_live_note_epoch(source->history_, metrics);
        weir_loader_report_clear(&metrics->report);
        memset(metrics, 0, sizeof *metrics);
    }
    pthread_mutex_unlock(&lock);
    free(metrics);
}

/* One round. Returns the ms until the next one is due; -1 = none. */
static int work(struct weir_live *live)
{
    uint64_t count;
    if (read(live->wake, &count, sizeof count) < 0)
        count = 0; /* woken by a client, or by the time */
    note_epochs(live);
    int ms = serve(live);
    if (weir_clock_monotonic_ns() >= file_due_ns(live))
        update_due_file(live);
    return wait_ms(live, ms);
}

static void *live_main(void *user)
{
    struct weir_live *live = user;
    pthread_setname_np(pthread_self(), "weir-live");
    struct pollfd fds[] = {{.fd = live->wake, .events = POLLIN},
                           {.fd = live->http ? weir_http_fd(live->http) : -1, .events = POLLIN}};
    while (!live->stop) {
        int ms = work(live);
        if (live->http && !live->stop)
            nanosleep(&(struct timespec){.tv_nsec = PAUSE_MS * 1000000}, NULL);
        poll(fds, 2, ms);
    }
    return NULL;
}

static void wake(struct weir_live *live)
{
    uint64_t one = 1;
    if (write(live->wake, &one, sizeof one) < 0)
        return; /* the counter is full, so the thread will wake */
}

/* Starts the thread. Returns 0 or -errno. */
static int start(struct weir_live *live)
{
    int rc = live->running ? 0 : weir_thread_start(&live->thread, live_main, live);
    live->running |= rc == 0;
    return rc;
}

static void stop(struct weir_live *live)
{
    if (!live->running)
        return;
    live->stop = true;
    wake(live);
    pthread_join(live->thread, NULL);
    live->stop = false;
    live->running = false;
}

/* ---- opening and closing ---- */

static bool is_same(const char *a, const char *b)
{
    return a == b || (a && b && strcmp(a, b) == 0);
}

static struct weir_live *find(const struct weir_live_config *config)
{
    struct weir_live *live = all;
    while (live && !(is_same(live->prometheus, config->prometheus) && is_same(live->serve, config->serve)))
        live = live->next;
    return live;
}

static void release(struct weir_live *live)
{
    weir_http_close(&live->http);
    if (live->wake >= 0)
        close(live->wake);
    for (int i = 0; i < WEIR_LIVE_FORMS; i++)
        free(live->answers[i].text);
    for (int i = 0; i < live->n_sources; i++)
        free(live->sources[i].history_);
    free(live->prometheus);
    free(live->serve);
    free(live);
}

static int open_parts(struct weir_live *live, const struct weir_live_config *config, struct weir_err *err)
{
    live->prometheus = config->prometheus ? strdup(config->prometheus) : NULL;
    live->serve = config->serve ? strdup(config->serve) : NULL;
    live->wake = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    if (live->wake < 0 || (config->prometheus && !live->prometheus) || (config->serve && !live->serve))
        return weir_err_set(err, -ENOMEM, "out of memory or descriptors for live figures");
    return config->serve ? weir_http_open(&live->http, config->serve, config->local_rank, answer, live, err) : 0;
}

/* The caller does not hold the lock. */
static int open_new(struct weir_live **out, const struct weir_live_config *config, struct weir_err *err)
{
    struct weir_live *live = calloc(1, sizeof *live);
    struct timespec now;
    if (!live)
        return weir_err_set(err, -ENOMEM, "out of memory for live figures");
    clock_gettime(CLOCK_REALTIME, &now);
    live->wake = -1;
    live->pid = getpid();
    pthread_mutex_init(&live->file_lock, NULL);
    live->process = config->process;
    live->page = config->page;
    live->process.start_unix_s = (double)now.tv_sec + (double)now.tv_nsec / 1e9;
    snprintf(live->version, sizeof live->version, "%s", config->process.version);
    live->process.version = live->version;
    int rc = open_parts(live, config, err);
    if (rc == 0 && (rc = start(live)) < 0)
        weir_err_set(err, rc, "cannot start the thread for live figures: %s", strerror(-rc));
    if (rc < 0) {
        release(live);
        return rc;
    }
    *out = live;
    return 0;
}

int weir_live_open(struct weir_live **out, const struct weir_live_config *config, struct weir_err *err)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    pthread_once(&once, survive_forks);
    *out = NULL;
    pthread_mutex_lock(&opening);
    pthread_mutex_lock(&lock);
    struct weir_live *live = find(config);
    pthread_mutex_unlock(&lock);
    bool is_new = !live;
    int rc = is_new ? open_new(&live, config, err) : 0;
    if (rc == 0) {
        pthread_mutex_lock(&lock);
        if (is_new) {
            live->next = all;
            all = live;
        }
        live->users++;
        pthread_mutex_unlock(&lock);
        *out = live;
    }
    pthread_mutex_unlock(&opening);
    return rc;
}

const char *weir_live_url(const struct weir_live *live)
{
    return live->http ? weir_http_url(live->http) : NULL;
}

static void drop_answers(struct weir_live *live)
{
    for (int i = 0; i < WEIR_LIVE_FORMS; i++)
        live->answers[i].at_ns = 0;
}

/* Forgets a loader; NULL = all. */
static void forget(struct weir_live *live, const void *user)
{
    pthread_mutex_lock(&lock);
    int kept = 0;
    for (int i = 0; i < live->n_sources; i++) {
        if (!user || live->sources[i].user == user)
            free(live->sources[i].history_);
        else
            live->sources[kept++] = live->sources[i];
    }
    live->n_sources = kept;
    drop_answers(live);
    pthread_mutex_unlock(&lock);
}

int weir_live_add(struct weir_live *live, const struct weir_live_source *source, struct weir_err *err)
{
    if (live->pid != getpid())
        return 0;
    pthread_mutex_lock(&lock);
    if (live->n_sources < WEIR_LIVE_SOURCES) {
        struct weir_live_source *added = &live->sources[live->n_sources++];
        *added = *source;
        added->history_ = source->keeps_history ? calloc(1, sizeof *added->history_) : NULL; /* NULL: without charts */
    }
    drop_answers(live);
    pthread_mutex_unlock(&lock);
    if (!live->prometheus)
        return 0;
    pthread_mutex_lock(&live->file_lock);
    int rc = write_file(live, err);
    pthread_mutex_unlock(&live->file_lock);
    if (rc < 0)
        forget(live, source->user);
    live->begun |= rc == 0;
    wake(live);
    return rc;
}

void weir_live_remove(struct weir_live *live, const void *user)
{
    if (live->pid != getpid())
        return;
    pthread_mutex_lock(&live->file_lock);
    update_file(live);
    forget(live, user);
    pthread_mutex_unlock(&live->file_lock);
}

void weir_live_epoch(struct weir_live *live)
{
    if (live->pid != getpid())
        return;
    live->write_now = live->epoch_ended = true;
    wake(live);
}

void weir_live_pause(struct weir_live *live)
{
    if (live->pid != getpid())
        return;
    pthread_mutex_lock(&opening);
    stop(live);
    pthread_mutex_unlock(&opening);
}

void weir_live_resume(struct weir_live *live)
{
    if (live->pid != getpid())
        return;
    pthread_mutex_lock(&opening);
    start(live);
    pthread_mutex_unlock(&opening);
}

void weir_live_close(struct weir_live **out)
{
    struct weir_live *live = *out;
    *out = NULL;
    if (!live || live->pid != getpid())
        return;
    pthread_mutex_lock(&opening);
    pthread_mutex_lock(&lock);
    bool last = is_here(live) && --live->users == 0;
    if (last) {
        struct weir_live **at = &all;
        while (*at != live)
            at = &(*at)->next;
        *at = live->next;
    }
    pthread_mutex_unlock(&lock);
    if (last) {
        stop(live);
        release(live);
    }
    pthread_mutex_unlock(&opening);
}
