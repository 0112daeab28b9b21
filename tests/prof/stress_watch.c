/* Many threads write figures and come and go, while others read them, make reports, sample and fork. For
 * ThreadSanitizer and AddressSanitizer. */
#include "analyze/watch/watch_report.h"
#include "prof/watch/watch.h"
#include "prof/watch/watch_read.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

/* GCC 12's AddressSanitizer does not acquire its allocator's locks before fork(), so a child that allocates can wait
 * forever for a lock that another thread held. */
#if defined(__SANITIZE_ADDRESS__)
enum { FORKS = 0 };
#else
enum { FORKS = 6 };
#endif
enum { WRITERS = 6, ROUNDS = 12, BATCHES = 150, REPORTS = 12, SAMPLINGS = 6 };

static struct weir_watch *watch;
static _Atomic int writing = WRITERS + 1;
static _Atomic uint64_t written; /* batches */

static void batch(int64_t i, int stage)
{
    char path[32];
    weir_watch_batch_begin(i);
    for (int item = 0; item < 4; item++) {
        snprintf(path, sizeof path, "/data/%d", (int)((i * 4 + item) % 100));
        weir_watch_item_begin(i * 4 + item);
        weir_watch_path(path);
        weir_watch_begin(stage);
        weir_watch_end();
        weir_watch_item_end();
    }
    weir_watch_batch_end(4);
}

static void *one_worker(void *number)
{
    char name[32];
    int worker = (int)(intptr_t)number;
    if (weir_watch_thread(watch, worker % 2, WEIR_WATCH_WORKER, worker) < 0)
        abort();
    snprintf(name, sizeof name, "stage %d", worker);
    int stage = weir_watch_stage(name, 0);
    for (int i = 0; i < BATCHES; i++)
        batch(i, stage);
    atomic_fetch_add(&written, BATCHES);
    if (worker % 2)
        weir_watch_thread_end(); /* the others leave it to the end of the thread */
    return NULL;
}

static void *write_workers(void *number)
{
    for (int i = 0; i < ROUNDS; i++) {
        pthread_t thread;
        if (pthread_create(&thread, NULL, one_worker, number) != 0)
            abort();
        pthread_join(thread, NULL);
    }
    atomic_fetch_sub(&writing, 1);
    return NULL;
}

static void *loop(void *unused)
{
    (void)unused;
    if (weir_watch_thread(watch, 0, WEIR_WATCH_LOOP, -1) < 0)
        abort();
    for (int epoch = 0; epoch < 20; epoch++) {
        weir_watch_epoch_begin(epoch % 2);
        weir_watch_startup(epoch % 2, 0.001);
        for (int i = 0; i < 100; i++) {
            weir_watch_headroom(0, i % 40 == 10 ? 2 : i % 40 == 11 ? 1 : i % 40 == 20 ? 0 : -2);
            weir_watch_request_begin(epoch % 2, i % 5 - 1, i % 3 - 1, i % WRITERS);
            weir_watch_request_end(epoch % 2, 4);
            weir_watch_unseen(watch, i % 2 ? "one" : "two");
        }
        weir_watch_epoch_end(epoch % 2, 1);
    }
    atomic_fetch_sub(&writing, 1);
    return NULL;
}

static void *report(void *unused)
{
    (void)unused;
    for (int i = 0; i < REPORTS || atomic_load(&writing) > 0; i++) {
        char *text;
        weir_watch_set(watch, i % 2, "num_workers", i % 8);
        if (weir_watch_report(watch, i % 3 - 1, i % 5, i % 2, i % 7 ? "en" : "zh", &text) == 0)
            weir_watch_free(text);
    }
    return NULL;
}

static void *fork_and_sample(void *unused)
{
    (void)unused;
    for (int i = 0; i < SAMPLINGS; i++) {
        weir_watch_sampling(watch, i != 3);
        if (i >= FORKS)
            continue;
        pid_t pid = fork();
        if (pid == 0)
            _exit(weir_watch_thread(watch, 1, WEIR_WATCH_OTHER, i) < 0);
        int status = 1;
        if (pid < 0 || waitpid(pid, &status, 0) != pid || status != 0)
            abort();
    }
    return NULL;
}

int main(void)
{
    char why[256];
    pthread_t threads[WRITERS + 4];
    watch = weir_watch_create(why, sizeof why);
    if (!watch) {
        fprintf(stderr, "%s\n", why);
        return 1;
    }
    for (int i = 0; i < 2; i++)
        weir_watch_loader(watch, i ? "validation" : "train");
    int n = 0;
    for (; n < WRITERS; n++)
        pthread_create(&threads[n], NULL, write_workers, (void *)(intptr_t)n);
    pthread_create(&threads[n++], NULL, loop, NULL);
    pthread_create(&threads[n++], NULL, report, NULL);
    pthread_create(&threads[n++], NULL, report, NULL);
    pthread_create(&threads[n++], NULL, fork_and_sample, NULL);
    for (int i = 0; i < n; i++)
        pthread_join(threads[i], NULL);
    struct weir_watch_reading *reading = malloc(sizeof *reading);
    struct weir_snapshot *snapshot;
    double batches = 0;
    for (int loader = 0; loader < 2; loader++) {
        if (!reading || weir_watch_read(watch, loader, reading, &snapshot) < 0)
            return 1;
        for (int i = 0; i < WEIR_WATCH_WORKERS; i++)
            batches += reading->counts.workers[i].batches;
        weir_snapshot_free(&snapshot);
    }
    free(reading);
    weir_watch_close(watch);
    printf("%.0f of %llu batches\n", batches, (unsigned long long)atomic_load(&written));
    return batches == (double)atomic_load(&written) && batches == WRITERS * ROUNDS * BATCHES ? 0 : 1;
}
