#include "pipeline/samples/file_watch.h"
#include "base/shortage.h"
#include "base/threads.h"

#include <errno.h>
#include <stdio.h>

/* Counts and lists the file, unless that has been done before. */
static void found(struct weir_file_watch *watch, int file, const char *what, char text[WEIR_FAULT_TEXT])
{
    snprintf(text, WEIR_FAULT_TEXT, "%.*s: %s", WEIR_FAULT_TEXT - WEIR_FILE_CHANGE - 2,
             weir_file_set_path(watch->files, file), what);
    if (weir_file_set_spoil(watch->files, file))
        weir_faults_add_file(watch->faults, text);
}

/* A file that cannot be compared counts as changed. A resource shortage is always an error, even if --on-error is not
 * fail. */
static void check(struct weir_file_watch *watch, int file)
{
    char what[WEIR_FILE_CHANGE], text[WEIR_FAULT_TEXT];
    int rc = weir_file_set_is_spoiled(watch->files, file) ? 0 : weir_file_set_changed(watch->files, file, true, what);
    if (rc == 0)
        return;
    const char *advice = rc < 0 ? weir_machine_advice(rc) : NULL;
    found(watch, file, what, text);
    if (!watch->fail && !weir_is_shortage(rc))
        return;
    pthread_mutex_lock(&watch->lock);
    weir_err_set(&watch->err, rc < 0 ? rc : -ESTALE, "%s; %s%s%s", text,
                 rc < 0 ? "" : "data read since then may be from either version; ",
                 advice ? advice : "rerun on files that no process writes to",
                 weir_is_shortage(rc) ? "" : ", or use --on-error skip or substitute");
    pthread_mutex_unlock(&watch->lock);
    atomic_store_explicit(&watch->has_err, true, memory_order_release);
}

static bool must_stop(struct weir_file_watch *watch)
{
    pthread_mutex_lock(&watch->lock);
    bool stop = watch->stop;
    pthread_mutex_unlock(&watch->lock);
    return stop;
}

static void check_all(struct weir_file_watch *watch)
{
    for (int i = 0; i < weir_file_set_count(watch->files) && !must_stop(watch); i++)
        check(watch, i);
}

static void *thread_main(void *user)
{
    struct weir_file_watch *watch = user;
    pthread_setname_np(pthread_self(), "weir-files");
    pthread_mutex_lock(&watch->lock);
    for (;;) {
        while (!watch->stop && watch->checked == watch->asked)
            pthread_cond_wait(&watch->wake, &watch->lock);
        if (watch->stop)
            break;
        uint64_t asked = watch->asked; /* files added during the check are covered by the next check */
        pthread_mutex_unlock(&watch->lock);
        check_all(watch);
        pthread_mutex_lock(&watch->lock);
        watch->checked = asked;
        pthread_cond_broadcast(&watch->done);
    }
    pthread_mutex_unlock(&watch->lock);
    return NULL;
}

int weir_file_watch_start(struct weir_file_watch *watch, struct weir_file_set *files, struct weir_faults *faults,
                          bool fail, struct weir_err *err)
{
    *watch = (struct weir_file_watch){.files = files, .faults = faults, .fail = fail};
    pthread_mutex_init(&watch->lock, NULL);
    weir_cond_init(&watch->wake);
    weir_cond_init(&watch->done);
    watch->started = weir_thread_start(&watch->thread, thread_main, watch) == 0;
    if (watch->started)
        return 0;
    pthread_cond_destroy(&watch->wake);
    pthread_cond_destroy(&watch->done);
    pthread_mutex_destroy(&watch->lock);
    return weir_err_set(err, -EAGAIN, "the thread that checks files for changes cannot be started; %s",
                        weir_machine_advice(-EAGAIN));
}

void weir_file_watch_stop(struct weir_file_watch *watch)
{
    if (!watch->started)
        return;
    pthread_mutex_lock(&watch->lock);
    watch->stop = true;
    pthread_cond_signal(&watch->wake);
    pthread_mutex_unlock(&watch->lock);
    pthread_join(watch->thread, NULL);
    pthread_cond_destroy(&watch->wake);
    pthread_cond_destroy(&watch->done);
    pthread_mutex_destroy(&watch->lock);
    watch->started = false;
}

void weir_file_watch_ask(struct weir_file_watch *watch)
{
    pthread_mutex_lock(&watch->lock);
    watch->asked++;
    pthread_cond_signal(&watch->wake);
    pthread_mutex_unlock(&watch->lock);
}

int weir_file_watch_error(struct weir_file_watch *watch, struct weir_err *err)
{
    if (!atomic_load_explicit(&watch->has_err, memory_order_acquire))
        return 0;
    if (!watch->started)
        return weir_err_set(err, watch->err.code, "%s", watch->err.text);
    pthread_mutex_lock(&watch->lock);
    int rc = weir_err_set(err, watch->err.code, "%s", watch->err.text);
    pthread_mutex_unlock(&watch->lock);
    return rc;
}

int weir_file_watch_wait(struct weir_file_watch *watch, const _Atomic bool *stopped, struct weir_err *err)
{
    enum { LOOK_NS = 100 * 1000 * 1000 }; /* polling interval, since a stop from a signal handler wakes no waiter */
    if (!watch->started)
        return weir_file_watch_error(watch, err);
    pthread_mutex_lock(&watch->lock);
    while (watch->checked < watch->asked && !atomic_load_explicit(stopped, memory_order_relaxed))
        weir_cond_wait_ns(&watch->done, &watch->lock, LOOK_NS);
    pthread_mutex_unlock(&watch->lock);
    return weir_file_watch_error(watch, err);
}

bool weir_file_watch_blames(struct weir_file_watch *watch, int file, char text[WEIR_FILE_CHANGE])
{
    char line[WEIR_FAULT_TEXT];
    if (weir_file_set_changed(watch->files, file, false, text) <= 0)
        return false;
    found(watch, file, text, line);
    return true;
}
