/* Threads check one file each; the calling thread reports their findings in file order. */
#include "pipeline/verify/check_files.h"
#include "base/resources.h"
#include "base/shortage.h"
#include "base/threads.h"
#include "pipeline/verify/findings.h"

#include <errno.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { THREADS_MAX = 64, DAMAGED_MAX = 1000 /* damaged parts kept per file; more are counted */ };

struct damage {
    char *part, *why;
};

struct file_check {
    struct damage *damage;
    int n, more; /* more: findings beyond DAMAGED_MAX */
    struct weir_err err;
};

struct checks {
    const struct weir_dataset *dataset;
    struct file_check *files;
    _Atomic int next;
    int n;
};

static int add(struct file_check *check, const char *part, const char *why)
{
    if (check->n == DAMAGED_MAX) {
        check->more++;
        return 0;
    }
    void *more = realloc(check->damage, sizeof *check->damage * (size_t)(check->n + 1));
    check->damage = more ? more : check->damage;
    struct damage damage = {more ? strdup(part) : NULL, more ? strdup(why) : NULL};
    if (damage.part && damage.why) {
        check->damage[check->n++] = damage;
        return 0;
    }
    free(damage.part);
    free(damage.why);
    return -ENOMEM;
}

static int damaged(void *user, const char *part, const char *why)
{
    struct file_check *check = user;
    int rc = add(check, part, why);
    return rc < 0 ? weir_err_set(&check->err, rc, "out of memory") : 0;
}

static void *check_some(void *user)
{
    struct checks *checks = user;
    for (int file; (file = atomic_fetch_add(&checks->next, 1)) < checks->n;) {
        struct file_check *check = &checks->files[file];
        int rc = weir_dataset_check_file(checks->dataset, file, damaged, check, &check->err);
        if (rc < 0 && weir_is_shortage(rc))
            atomic_store(&checks->next, checks->n); /* stops the other threads */
    }
    return NULL;
}

static void report(const struct checks *checks, int file, const char *part, enum weir_finding_kind kind,
                   const char *why, const struct weir_verify_config *config, struct weir_verify_totals *totals)
{
    struct weir_dataset_file of;
    weir_dataset_file(checks->dataset, file, &of);
    struct weir_finding finding = {
        .kind = kind, .file = of.path, .dataset = part, .t = -1, .dimension = -1, .why = why};
    weir_finding_report(&finding, config, totals);
}

static void report_file(const struct checks *checks, int file, const struct weir_verify_config *config,
                        struct weir_verify_totals *totals)
{
    const struct file_check *check = &checks->files[file];
    char why[64];
    for (int i = 0; i < check->n; i++)
        report(checks, file, check->damage[i].part, WEIR_FOUND_CHECKSUM, check->damage[i].why, config, totals);
    snprintf(why, sizeof why, "%d more parts of it are damaged", check->more);
    if (check->more > 0)
        report(checks, file, NULL, WEIR_FOUND_CHECKSUM, why, config, totals);
    if (check->err.code < 0)
        report(checks, file, NULL, WEIR_FOUND_FILE, check->err.text, config, totals);
}

/* Returns the shortage that ended the check, with its file; 0 if none. */
static int shortage(const struct checks *checks, struct weir_err *err)
{
    struct weir_dataset_file of;
    for (int i = 0; i < checks->n; i++) {
        const struct weir_err *lack = &checks->files[i].err;
        weir_dataset_file(checks->dataset, i, &of);
        if (weir_is_shortage(lack->code))
            return weir_err_set(err, lack->code, "%s: %s", of.path, lack->text);
    }
    return 0;
}

/* Uses only this thread if no other can be started. */
static void run(struct checks *checks, int threads)
{
    pthread_t ids[THREADS_MAX];
    int started = 0;
    while (started < threads - 1 && weir_thread_start(&ids[started], check_some, checks) == 0)
        started++;
    check_some(checks);
    for (int i = 0; i < started; i++)
        pthread_join(ids[i], NULL);
}

static void drop(struct checks *checks)
{
    for (int i = 0; i < checks->n; i++) {
        for (int k = 0; k < checks->files[i].n; k++) {
            free(checks->files[i].damage[k].part);
            free(checks->files[i].damage[k].why);
        }
        free(checks->files[i].damage);
    }
    free(checks->files);
}

int weir_check_files(const struct weir_dataset *dataset, const struct weir_verify_config *config,
                     struct weir_verify_totals *totals, struct weir_err *err)
{
    struct checks checks = {.dataset = dataset, .n = weir_dataset_files(dataset)};
    int threads = config->workers > 0 ? config->workers : weir_cores_usable();
    checks.files = calloc((size_t)checks.n + 1, sizeof *checks.files);
    if (!checks.files)
        return weir_err_set(err, -ENOMEM, "out of memory");
    threads = threads < THREADS_MAX ? threads : THREADS_MAX;
    run(&checks, threads < checks.n ? threads : checks.n);
    int rc = shortage(&checks, err);
    for (int i = 0; i < checks.n && rc == 0; i++)
        report_file(&checks, i, config, totals);
    drop(&checks);
    return rc;
}
