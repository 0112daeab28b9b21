#include "analyze/live/http_server.h"
#include "analyze/live/live.h"
#include "analyze/watch/watch_report.h"
#include "analyze/watch/watch_text.h"
#include "base/ranks.h"
#include "python/watch/watch_module.h"

#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

struct loader {
    struct weir_watch *watch;
    int number;
    bool is_shown;
};

static struct {
    struct weir_watch *watch;
    struct weir_live *live; /* NULL = nothing is shown */
    struct loader loaders[WEIR_WATCH_LOADERS];
} shown;
static pthread_mutex_t shown_lock =
    PTHREAD_MUTEX_INITIALIZER; /* a loop may still run in a thread while the program ends */

/* A forked child shows nothing, until it opens a watch of its own. */
static void in_child(void)
{
    memset(&shown, 0, sizeof shown);
    pthread_mutex_init(&shown_lock, NULL);
}

static void begin(void)
{
    pthread_atfork(NULL, NULL, in_child);
}

static int collect(void *user, struct weir_metrics *metrics)
{
    const struct loader *loader = user;
    struct weir_watch_about about = {0};
    int rc = weir_watch_report_take(loader->watch, loader->number, true, &metrics->report, &about);
    snprintf(metrics->loader, sizeof metrics->loader, "%s", about.name);
    metrics->epochs = about.epochs;
    metrics->watched = true;
    /* How many batches are ready, and workers busy, at this moment is not known. */
    metrics->now = (struct weir_loader_now){
        .slots = metrics->report.queue_slots, .batches_ready = -1, .workers = about.workers, .workers_busy = -1};
    return rc;
}

static void write_run(void *user, FILE *out)
{
    (void)user;
    fputs("{\"type\":\"run\",\"used\":{}}\n", out);
}

static void report(const struct loader *loader, enum weir_watch_what what, FILE *out)
{
    char *text;
    if (weir_watch_report(loader->watch, loader->number, what, 1, "en", &text) == 0)
        fputs(text, out);
    weir_watch_free(text);
}

static void write_log(void *user, FILE *out, struct weir_metrics *metrics, const struct weir_live_history *history)
{
    (void)metrics, (void)history;
    report(user, WEIR_WATCH_PAGE, out);
}

static void print(void *user, FILE *out)
{
    report(user, WEIR_WATCH_TABLE, out);
}

static int explained(int rc, const struct weir_err *err, char *why, size_t why_size)
{
    if (rc < 0 && why && why_size > 0)
        snprintf(why, why_size, "%s", err->text);
    return rc;
}

/* Programs that start their ranks themselves run on one machine. */
static int local_rank(int rank)
{
    struct weir_launched launched;
    weir_ranks_launched(&launched, NULL, NULL);
    return launched.local_rank >= 0 ? launched.local_rank : rank;
}

int weir_watch_live_check(const char *serve, char *why, size_t why_size)
{
    struct weir_http_address address;
    struct weir_err err = WEIR_ERR_NONE;
    return explained(weir_http_address_parse(&address, serve, local_rank(0), &err), &err, why, why_size);
}

int weir_watch_live(struct weir_watch *watch, const char *prometheus, const char *serve, int rank, int world_size,
                    const char *version, void *page, char *url, size_t url_size, char *why, size_t why_size)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    struct weir_err err = WEIR_ERR_NONE;
    const struct weir_live_config config = {
        .prometheus = prometheus,
        .serve = serve,
        .page = (weir_live_page_fn *)page,
        .local_rank = local_rank(rank),
        .process = {.version = version, .source = "watch", .rank = rank, .world_size = world_size}};
    pthread_once(&once, begin);
    int rc = shown.live ? weir_err_set(&err, -EBUSY, "live figures are shown already")
                        : weir_live_open(&shown.live, &config, &err);
    if (rc < 0)
        return explained(rc, &err, why, why_size);
    shown.watch = watch;
    const char *address = weir_live_url(shown.live);
    snprintf(url, url_size, "%s", address ? address : "");
    return 0;
}

int weir_watch_live_loader(int loader, char *why, size_t why_size)
{
    struct weir_err err = WEIR_ERR_NONE;
    int rc = 0;
    if (loader < 0 || loader >= WEIR_WATCH_LOADERS)
        return 0;
    struct loader *added = &shown.loaders[loader];
    const struct weir_live_source source = {
        .collect = collect, .write_run = write_run, .write_log = write_log, .print = print, .user = added};
    pthread_mutex_lock(&shown_lock);
    if (shown.live && !added->is_shown) {
        *added = (struct loader){.watch = shown.watch, .number = loader, .is_shown = true};
        rc = weir_live_add(shown.live, &source, &err);
    }
    pthread_mutex_unlock(&shown_lock);
    return explained(rc, &err, why, why_size);
}

void weir_watch_live_epoch(void)
{
    pthread_mutex_lock(&shown_lock);
    if (shown.live)
        weir_live_epoch(shown.live);
    pthread_mutex_unlock(&shown_lock);
}

void weir_watch_live_pause(int pause)
{
    pthread_mutex_lock(&shown_lock);
    if (shown.live && pause)
        weir_live_pause(shown.live);
    else if (shown.live)
        weir_live_resume(shown.live);
    pthread_mutex_unlock(&shown_lock);
}

void weir_watch_live_end(void)
{
    pthread_mutex_lock(&shown_lock);
    if (shown.live) {
        weir_live_remove(shown.live, NULL);
        weir_live_close(&shown.live);
        memset(&shown, 0, sizeof shown);
    }
    pthread_mutex_unlock(&shown_lock);
}

int weir_watch_metrics(struct weir_watch *watch, int rank, int world_size, const char *version, char **text)
{
    const struct weir_metrics_process process = {
        .version = version, .source = "watch", .rank = rank, .world_size = world_size};
    struct weir_live_source sources[WEIR_WATCH_LOADERS];
    struct loader loaders[WEIR_WATCH_LOADERS];
    int n = weir_watch_loaders(watch);
    for (int i = 0; i < n; i++) {
        loaders[i] = (struct loader){.watch = watch, .number = i};
        sources[i] = (struct weir_live_source){.collect = collect, .user = &loaders[i]};
    }
    return weir_live_text(text, sources, n, &process);
}
