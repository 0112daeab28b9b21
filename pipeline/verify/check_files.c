/* Threads check one file each. The calling thread reports the findings in the order of the files. */
#include "base/grow.h"
#include "base/resources.h"
#include "base/shortage.h"
#include "base/threads.h"
#include "pipeline/verify/findings.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { THREADS_MAX = 64, DAMAGED_MAX = 1000 /* max damaged parts kept per file; further ones are only counted */ };

struct damage {
    char *part, *why;
};

/* Findings about one file. */
struct file_check {
    struct damage *damage;
    int n, more; /* more: number of findings beyond DAMAGED_MAX */
    struct weir_err err;
};

struct checks {
    const struct weir_dataset *dataset;
    const struct weir_verify_config *config;
    struct weir_verify_totals *totals;
    struct file_check *files; /* one per slot */
};

static void clear(struct file_check *check)
{
    for (int i = 0; i < check->n; i++) {
        free(check->damage[i].part);
        free(check->damage[i].why);
    }
    free(check->damage);
    *check = (struct file_check){0};
}

static int add(struct file_check *check, const char *part, const char *why)
{
    if (check->n == DAMAGED_MAX) {
        check->more++;
        return 0;
    }
    bool fits = weir_grow(&check->damage, (size_t)check->n, sizeof *check->damage);
    struct damage damage = {fits ? strdup(part) : NULL, fits ? strdup(why) : NULL};
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

static const char *path_of(const struct checks *checks, uint64_t file)
{
    struct weir_dataset_file of;
    weir_dataset_file(checks->dataset, (int)file, &of);
    return of.path;
}

static int check_file(void *user, int worker, uint64_t file, int slot, struct weir_err *err)
{
    struct checks *checks = user;
    struct file_check *check = &checks->files[slot];
    (void)worker;
    int rc = weir_dataset_check_file(checks->dataset, (int)file, damaged, check, &check->err);
    return rc < 0 && weir_is_shortage(rc) ? weir_err_set(err, rc, "%s: %s", path_of(checks, file), check->err.text) : 0;
}

static int report_file(void *user, uint64_t file, int slot, struct weir_err *err)
{
    struct checks *checks = user;
    struct file_check *check = &checks->files[slot];
    const char *path = path_of(checks, file);
    char why[64];
    (void)err;
    for (int i = 0; i < check->n; i++)
        weir_finding_of_file(WEIR_FOUND_CHECKSUM, path, check->damage[i].part, check->damage[i].why, checks->config,
                             checks->totals);
    snprintf(why, sizeof why, "%d more parts of the file are damaged", check->more);
    if (check->more > 0)
        weir_finding_of_file(WEIR_FOUND_CHECKSUM, path, NULL, why, checks->config, checks->totals);
    if (check->err.code < 0)
        weir_finding_of_file(WEIR_FOUND_FILE, path, NULL, check->err.text, checks->config, checks->totals);
    clear(check);
    return 0;
}

int weir_check_files(const struct weir_dataset *dataset, const struct weir_verify_config *config,
                     struct weir_verify_totals *totals, struct weir_err *err)
{
    struct checks checks = {dataset, config, totals, NULL};
    int n = weir_dataset_files(dataset), threads = config->workers > 0 ? config->workers : weir_cores_usable();
    threads = threads < THREADS_MAX ? threads : THREADS_MAX;
    threads = threads < n ? threads : n > 0 ? n : 1;
    int window = 2 * threads;
    checks.files = calloc((size_t)window, sizeof *checks.files);
    if (!checks.files)
        return weir_err_set(err, -ENOMEM, "out of memory");
    const struct weir_ordered run = {(uint64_t)n, threads, window, check_file, report_file, NULL, &checks};
    int rc = weir_ordered_run(&run, err);
    for (int i = 0; i < window; i++)
        clear(&checks.files[i]);
    free(checks.files);
    return rc;
}
