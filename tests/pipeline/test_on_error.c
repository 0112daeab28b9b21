/* Frames damaged on disk, and the effect of each --on-error policy. Whether episode 1 is in the training or the
 * validation split depends on the seed. no_shuffle keeps all samples in the order of the files. */
#include "io/io.h"
#include "pipeline/samples/batch_layout.h"
#include "tests/fixtures/copy_fixture.h"
#include "tests/fixtures/loader_fixture.h"

#include <criterion/criterion.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { EPISODES = 4, STEPS = 10, CAMERAS = 2, BATCH = 4 };

TestSuite(on_error, .init = fixture_open, .fini = fixture_close);

static const char *const formats[] = {"act-jpeg", "astrobench"};

static const char *make(const char *name, const char *format)
{
    return fixture_synth(name, format, EPISODES, STEPS, 64, 48, "top,wrist");
}

static struct weir_loader_config config_for(const char *data, enum weir_on_error on_error, int workers)
{
    struct weir_loader_config config;
    weir_loader_config_default(&config);
    config.data = data;
    config.batch_size = BATCH;
    config.num_workers = workers;
    config.on_error = on_error;
    config.train_split = 1;
    config.no_shuffle = true;
    return config;
}

/* Results of a run: rows by (episode, t), the sizes of the batches, and the final counts. */
struct delivery {
    int rc, n_batches, sizes[64];
    struct weir_err err;
    size_t row_bytes; /* size of all tensors of a sample */
    uint8_t *rows[EPISODES][STEPS];
    struct weir_loader_counts counts;
    int n_faults;
    char faults[WEIR_FAULTS_MAX][WEIR_FAULT_TEXT];
    uint64_t fault_counts[WEIR_FAULTS_MAX];
};

static void keep_row(struct delivery *d, const struct weir_batch *batch, int i)
{
    struct weir_sample of = batch->samples[i];
    d->row_bytes = 0;
    for (int k = 0; k < batch->n_tensors; k++)
        d->row_bytes += batch->tensors[k].sample_bytes;
    uint8_t *row = malloc(d->row_bytes), *to = row;
    for (int k = 0; k < batch->n_tensors; k++) {
        const struct weir_tensor *tensor = &batch->tensors[k];
        memcpy(to, (const uint8_t *)tensor->data + (size_t)i * tensor->sample_bytes, tensor->sample_bytes);
        to += tensor->sample_bytes;
    }
    free(d->rows[of.episode][of.t]);
    d->rows[of.episode][of.t] = row;
}

static struct delivery *deliver(const struct weir_loader_config *config)
{
    struct delivery *d = calloc(1, sizeof *d);
    struct weir_loader *loader = fixture_loader(config);
    struct weir_batch *batch;
    while ((d->rc = weir_loader_next(loader, &batch, &d->err)) > 0) {
        for (int i = 0; i < batch->n; i++)
            keep_row(d, batch, i);
        for (int k = 0; k < batch->n_tensors; k++)
            cr_assert_eq(batch->tensors[k].shape[0], batch->n);
        d->sizes[d->n_batches++] = batch->n;
        weir_loader_release(loader, batch);
    }
    weir_loader_finish(loader);
    weir_loader_counts(loader, &d->counts, false);
    while (weir_loader_fault(loader, d->n_faults, d->faults[d->n_faults], &d->fault_counts[d->n_faults]))
        d->n_faults++;
    weir_loader_close(&loader);
    return d;
}

static void free_delivery(struct delivery *d)
{
    for (int e = 0; e < EPISODES; e++)
        for (int t = 0; t < STEPS; t++)
            free(d->rows[e][t]);
    free(d);
}

static const char *fault_with(const struct delivery *d, const char *text, uint64_t *count)
{
    for (int i = 0; i < d->n_faults; i++)
        if (strstr(d->faults[i], text)) {
            *count = d->fault_counts[i];
            return d->faults[i];
        }
    return NULL;
}

static void assert_row(const struct delivery *got, const struct delivery *want, int e, int t)
{
    cr_assert_not_null(got->rows[e][t], "(%d, %d) is missing", e, t);
    cr_assert_eq(got->row_bytes, want->row_bytes);
    cr_assert_eq(memcmp(got->rows[e][t], want->rows[e][t], want->row_bytes), 0, "(%d, %d) differs", e, t);
}

/* Expects a row in which one camera has the frame of step `from`. */
static void assert_substituted(const struct delivery *got, const struct delivery *good, int e, int t, int camera,
                               int from)
{
    size_t image = 64 * 48 * 3;
    uint8_t *want = malloc(good->row_bytes);
    memcpy(want, good->rows[e][t], good->row_bytes);
    memcpy(want + (size_t)camera * image, good->rows[e][from] + (size_t)camera * image, image);
    cr_assert_not_null(got->rows[e][t]);
    cr_assert_eq(memcmp(got->rows[e][t], want, good->row_bytes), 0, "(%d, %d): camera %d is not of step %d", e, t,
                 camera, from);
    free(want);
}

/* The message must contain the episode's file, the camera, "[t]: ", and a reason. */
static void assert_named(const char *text, int episode, const char *camera, int t)
{
    char number[32], file[64];
    cr_assert_not_null(text);
    snprintf(number, sizeof number, "[%d]: ", t);
    snprintf(file, sizeof file, "%d", episode);
    cr_assert_not_null(strstr(text, number), "%s", text);
    cr_assert_not_null(strstr(text, camera), "%s", text);
    const char *name = strstr(text, "episode_");
    cr_assert(name && strstr(name, file), "%s", text);
    cr_assert_gt(strlen(strstr(text, number) + strlen(number)), 10, "no reason: %s", text);
}

/* ---- fail ---- */

Test(on_error, fail_ends_at_the_same_batch_with_the_same_words)
{
    static const int workers[] = {0, 1, 2, 7};
    for (int f = 0; f < 2; f++) {
        const char *data = make(formats[f], formats[f]);
        /* Batch 3 consists of (1, 2) to (1, 5) and has two bad frames. More follow in later batches. */
        fixture_damage(data, 1, 1, 3, FIXTURE_ZEROED);
        fixture_damage(data, 1, 0, 4, FIXTURE_NO_SOI);
        fixture_damage(data, 1, 0, 9, FIXTURE_NO_SOI);
        fixture_damage(data, 2, 0, 0, FIXTURE_NO_SOI);
        char first[sizeof((struct weir_err *)0)->text] = "";
        for (int repeat = 0; repeat < 5; repeat++)
            for (int w = 0; w < 4; w++) {
                struct weir_loader_config config = config_for(data, WEIR_ON_ERROR_FAIL, workers[w]);
                config.prefetch = 1 + repeat * 3;
                struct delivery *d = deliver(&config);
                cr_assert_eq(d->rc, -EBADMSG);
                cr_assert_eq(d->n_batches, 3);
                assert_named(d->err.text, 1, "wrist", 3);
                cr_assert_not_null(strstr(d->err.text, "--on-error skip"), "%s", d->err.text);
                if (!first[0])
                    memcpy(first, d->err.text, sizeof first);
                cr_assert_str_eq(d->err.text, first);
                for (int i = 0; i < 3; i++)
                    cr_assert_eq(d->sizes[i], BATCH);
                cr_assert_eq(d->counts.skipped_samples, 0);
                cr_assert_eq(d->counts.substituted_frames, 0);
                free_delivery(d);
            }
    }
}

Test(on_error, fail_delivers_whole_good_batches_before)
{
    struct weir_loader_config config = config_for(make("good", "act-jpeg"), WEIR_ON_ERROR_FAIL, 2);
    struct delivery *good = deliver(&config);
    cr_assert_eq(good->rc, 0);
    config.data = make("bad", "act-jpeg");
    fixture_damage(config.data, 1, 0, 5, FIXTURE_ZEROED);
    struct delivery *bad = deliver(&config);
    cr_assert_eq(bad->n_batches, 3);
    for (int i = 0; i < 3 * BATCH; i++)
        assert_row(bad, good, i / STEPS, i % STEPS);
    free_delivery(bad);
    free_delivery(good);
}

/* ---- skip ---- */

Test(on_error, skip_shortens_the_batch_and_nothing_else)
{
    static const int workers[] = {0, 1, 2, 7};
    for (int f = 0; f < 2; f++) {
        char name[32];
        struct weir_loader_config config = config_for(make(formats[f], formats[f]), WEIR_ON_ERROR_SKIP, 2);
        struct delivery *good = deliver(&config);
        snprintf(name, sizeof name, "bad-%s", formats[f]);
        const char *data = make(name, formats[f]);
        fixture_damage(data, 0, 0, 4, FIXTURE_ZEROED); /* first sample of batch 1 */
        fixture_damage(data, 0, 1, 6, FIXTURE_NO_SOI); /* in the middle of batch 1 */
        for (int t = 2; t < 6; t++)                    /* all of batch 3, with one sample bad in both cameras */
            fixture_damage(data, 1, 0, t, FIXTURE_NO_SOI);
        fixture_damage(data, 1, 1, 3, FIXTURE_ZEROED);
        fixture_damage(data, 3, 0, 9, FIXTURE_NO_SOI); /* last sample of the run */
        for (int w = 0; w < 4; w++) {
            config = config_for(data, WEIR_ON_ERROR_SKIP, workers[w]);
            struct delivery *d = deliver(&config);
            static const int sizes[] = {4, 2, 4, 0, 4, 4, 4, 4, 4, 3};
            cr_assert_eq(d->rc, 0, "%s", d->err.text);
            cr_assert_eq(d->n_batches, 10);
            for (int i = 0; i < 10; i++)
                cr_assert_eq(d->sizes[i], sizes[i], "batch %d has %d", i, d->sizes[i]);
            for (int i = 0; i < EPISODES * STEPS; i++) {
                int e = i / STEPS, t = i % STEPS;
                bool lost = (e == 0 && (t == 4 || t == 6)) || (e == 1 && t >= 2 && t < 6) || (e == 3 && t == 9);
                if (lost)
                    cr_assert_null(d->rows[e][t]);
                else
                    assert_row(d, good, e, t);
            }
            cr_assert_eq(d->counts.bad_frames, 8);
            cr_assert_eq(d->counts.skipped_samples, 7);
            cr_assert_eq(d->counts.substituted_frames, 0);
            cr_assert_eq(d->n_faults, 8);
            for (int i = 0; i < 8; i++)
                cr_assert_eq(d->fault_counts[i], 1);
            uint64_t count;
            assert_named(fault_with(d, "[9]", &count), 3, "top", 9);
            free_delivery(d);
        }
        free_delivery(good);
    }
}

Test(on_error, skip_with_history_loses_every_sample_that_needs_the_frame)
{
    struct weir_loader_config config = config_for(make("d", "act-jpeg"), WEIR_ON_ERROR_SKIP, 2);
    fixture_damage(config.data, 0, 0, 5, FIXTURE_ZEROED);
    config.obs_history = 3;
    config.num_epochs = 2;
    struct delivery *d = deliver(&config);
    for (int t = 0; t < STEPS; t++)
        cr_assert_eq(d->rows[0][t] == NULL, t >= 5 && t <= 7, "t %d", t);
    cr_assert_eq(d->counts.skipped_samples, 6);
    cr_assert_eq(d->counts.bad_frames, 2);
    cr_assert_eq(d->n_faults, 1);
    cr_assert_eq(d->fault_counts[0], 2); /* counted once per batch, although three samples need it; two epochs */
    free_delivery(d);
}

/* ---- substitute ---- */

Test(on_error, substitute_takes_the_nearest_good_frame_before)
{
    static const int workers[] = {0, 1, 2, 7};
    for (int f = 0; f < 2; f++) {
        char name[32];
        struct weir_loader_config config = config_for(make(formats[f], formats[f]), WEIR_ON_ERROR_SUBSTITUTE, 2);
        struct delivery *good = deliver(&config);
        snprintf(name, sizeof name, "bad-%s", formats[f]);
        const char *data = make(name, formats[f]);
        fixture_damage(data, 0, 0, 4, FIXTURE_ZEROED); /* replaced with t = 3 */
        fixture_damage(data, 1, 1, 6, FIXTURE_NO_SOI); /* t = 6 and 7 are replaced with t = 5 */
        fixture_damage(data, 1, 1, 7, FIXTURE_ZEROED);
        fixture_damage(data, 2, 0, 0, FIXTURE_NO_SOI); /* no frame precedes it, so both samples are lost */
        fixture_damage(data, 2, 0, 1, FIXTURE_NO_SOI);
        for (int w = 0; w < 4; w++) {
            config = config_for(data, WEIR_ON_ERROR_SUBSTITUTE, workers[w]);
            struct delivery *d = deliver(&config);
            cr_assert_eq(d->rc, 0, "%s", d->err.text);
            for (int i = 0; i < EPISODES * STEPS; i++) {
                int e = i / STEPS, t = i % STEPS;
                if (e == 2 && t < 2)
                    cr_assert_null(d->rows[e][t]);
                else if (e == 0 && t == 4)
                    assert_substituted(d, good, 0, 4, 0, 3);
                else if (e == 1 && (t == 6 || t == 7))
                    assert_substituted(d, good, 1, t, 1, 5);
                else
                    assert_row(d, good, e, t);
            }
            cr_assert_eq(d->counts.substituted_frames, 3);
            cr_assert_eq(d->counts.skipped_samples, 2);
            /* 5 frames, two of which are met again in the search for a substitute: (1, 6) from t = 7, and (2, 0) from t
             * = 1. */
            cr_assert_eq(d->counts.bad_frames, 7);
            cr_assert_eq(d->n_faults, 5);
            uint64_t count;
            assert_named(fault_with(d, "[6]", &count), 1, "wrist", 6);
            cr_assert_eq(count, 2);
            assert_named(fault_with(d, "[0]", &count), 2, "top", 0);
            cr_assert_eq(count, 2);
            free_delivery(d);
        }
        free_delivery(good);
    }
}

/* A camera's image size is read from its first frame, or from a later one if the first is bad. */
Test(on_error, a_bad_first_frame_is_no_end_when_tolerated)
{
    const char *data = make("d", "act-jpeg");
    for (int t = 0; t < 3; t++)
        fixture_damage(data, 0, 0, t, FIXTURE_NO_SOI);
    struct weir_loader_config config = config_for(data, WEIR_ON_ERROR_FAIL, 2);
    struct weir_loader *loader;
    struct weir_err err = WEIR_ERR_NONE;
    cr_assert_eq(weir_loader_open(&loader, &config, &err), -EBADMSG);
    assert_named(err.text, 0, "top", 0);
    for (int policy = WEIR_ON_ERROR_SKIP; policy <= WEIR_ON_ERROR_SUBSTITUTE; policy++) {
        config.on_error = (enum weir_on_error)policy;
        struct delivery *d = deliver(&config);
        cr_assert_eq(d->counts.skipped_samples, 3);
        cr_assert_null(d->rows[0][2]);
        cr_assert_not_null(d->rows[0][3]);
        free_delivery(d);
    }
}

/* ---- same counts for any number of workers, with random damage ---- */

Test(on_error, checksums_agree_whatever_the_workers_when_many_frames_are_bad)
{
    static const int workers[] = {1, 2, 7};
    const char *data = make("d", "astrobench");
    unsigned random = 12345;
    for (int i = 0; i < 25; i++) {
        random = random * 1103515245 + 12345;
        int e = (int)(random >> 16) % EPISODES, t = 1 + (int)(random >> 20) % (STEPS - 1), c = (int)(random >> 28) % 2;
        fixture_damage(data, e, c, t, FIXTURE_ZEROED);
    }
    for (int policy = WEIR_ON_ERROR_SKIP; policy <= WEIR_ON_ERROR_SUBSTITUTE; policy++) {
        struct weir_loader_config config = config_for(data, (enum weir_on_error)policy, 0);
        struct weir_err err;
        int rc;
        config.no_shuffle = false;
        config.num_epochs = 3;
        config.train_split = 0.5;
        char *expected = fixture_checksums(&config, &rc, &err);
        struct delivery *first = deliver(&config);
        cr_assert_gt(first->counts.bad_frames, 20);
        for (int w = 0; w < 3; w++) {
            config.num_workers = workers[w];
            char *sums = fixture_checksums(&config, &rc, &err);
            cr_assert_str_eq(sums, expected, "policy %d, %d workers", policy, workers[w]);
            struct delivery *d = deliver(&config);
            cr_assert_eq(d->counts.bad_frames, first->counts.bad_frames);
            cr_assert_eq(d->counts.skipped_samples, first->counts.skipped_samples);
            cr_assert_eq(d->counts.substituted_frames, first->counts.substituted_frames);
            cr_assert_eq(d->n_faults, first->n_faults);
            free_delivery(d);
            free(sums);
        }
        free_delivery(first);
        free(expected);
    }
}

/* ---- files that change or vanish during a run ---- */

Test(on_error, a_file_changed_since_it_was_indexed_is_named)
{
    const char *data = make("d", "act-jpeg");
    struct weir_loader_config config = config_for(data, WEIR_ON_ERROR_FAIL, 0);
    struct weir_loader *loader = fixture_loader(&config);
    struct weir_batch *batch;
    struct weir_err err = WEIR_ERR_NONE;
    char path[1024];
    snprintf(path, sizeof path, "%s", fixture_episode(data, "act-jpeg", 1));
    cr_assert_eq(truncate(path, 5000), 0);
    int rc, n = 0;
    while ((rc = weir_loader_next(loader, &batch, &err)) > 0) {
        weir_loader_release(loader, batch);
        n++;
    }
    cr_assert_eq(rc, -ESTALE);
    cr_assert_eq(n, 2); /* batch 2 contains the end of episode 0 and the start of episode 1 */
    assert_named(err.text, 1, "top", 0);
    cr_assert_not_null(strstr(err.text, "changed"), "%s", err.text);
    weir_loader_close(&loader);
}

Test(on_error, a_file_that_vanished_costs_its_samples)
{
    const char *data = make("d", "act-jpeg");
    struct weir_loader_config config = config_for(data, WEIR_ON_ERROR_SKIP, 0);
    struct weir_loader *loader = fixture_loader(&config);
    struct weir_batch *batch;
    struct weir_err err = WEIR_ERR_NONE;
    cr_assert_eq(unlink(fixture_episode(data, "act-jpeg", 2)), 0);
    int rc, n = 0;
    while ((rc = weir_loader_next(loader, &batch, &err)) > 0) {
        n += batch->n;
        weir_loader_release(loader, batch);
    }
    cr_assert_eq(rc, 0, "%s", err.text);
    cr_assert_eq(n, (EPISODES - 1) * STEPS);
    struct weir_loader_counts counts;
    weir_loader_counts(loader, &counts, false);
    cr_assert_eq(counts.skipped_samples, STEPS);
    cr_assert_eq(counts.bad_frames, STEPS * CAMERAS);
    weir_loader_close(&loader);
}

/* The policy also applies to episodes that cannot be opened. */
Test(on_error, an_episode_that_cannot_be_opened_is_left_out_or_fatal)
{
    const char *data = make("d", "act-jpeg");
    char path[1024];
    snprintf(path, sizeof path, "%s", fixture_episode(data, "act-jpeg", 1));
    cr_assert_eq(truncate(path, 100), 0);
    struct weir_loader_config config = config_for(data, WEIR_ON_ERROR_FAIL, 2);
    struct weir_loader *loader;
    struct weir_err err = WEIR_ERR_NONE;
    cr_assert_lt(weir_loader_open(&loader, &config, &err), 0);
    cr_assert_not_null(strstr(err.text, "episode_1.hdf5"), "%s", err.text);
    config.on_error = WEIR_ON_ERROR_SKIP;
    struct delivery *d = deliver(&config);
    cr_assert_eq(d->rc, 0);
    cr_assert_eq(d->counts.bad_episodes, 1);
    cr_assert_eq(d->counts.bad_frames, 0);
    int samples = 0;
    for (int i = 0; i < d->n_batches; i++)
        samples += d->sizes[i];
    cr_assert_eq(samples, (EPISODES - 1) * STEPS);
    free_delivery(d);
}

/* ---- files that change while they are read ---- */

static void overwrite(const char *path)
{
    char byte;
    int fd = open(path, O_RDWR);
    cr_assert(fd >= 0 && pread(fd, &byte, 1, 600) == 1 && pwrite(fd, &byte, 1, 600) == 1, "%s", path);
    close(fd);
}

static void replace(const char *path)
{
    char command[2048];
    snprintf(command, sizeof command, "cp -p '%s' '%s.new' && mv '%s.new' '%s'", path, path, path, path);
    cr_assert_eq(system(command), 0);
}

static void take_away(const char *path)
{
    cr_assert_eq(unlink(path), 0);
}

static void change_mode(const char *path)
{
    char other[1100];
    snprintf(other, sizeof other, "%s.link", path);
    cr_assert_eq(chmod(path, 0600), 0);
    cr_assert_eq(link(path, other), 0);
}

static void cut(const char *path)
{
    struct stat st;
    cr_assert_eq(stat(path, &st), 0);
    cr_assert_eq(truncate(path, st.st_size - 1), 0);
}

/* Runs the loader and changes the file of episode 1 before the last batch, after all its frames have been read. */
static struct delivery *deliver_changed(struct weir_loader_config *config, void (*change)(const char *path))
{
    struct delivery *d = calloc(1, sizeof *d);
    char path[1024];
    snprintf(path, sizeof path, "%s", fixture_episode(config->data, "act-jpeg", 1));
    struct weir_loader *loader = fixture_loader(config);
    struct weir_batch *batch;
    int last = EPISODES * STEPS / BATCH * config->num_epochs - 1;
    while ((d->rc = weir_loader_next(loader, &batch, &d->err)) > 0) {
        if (d->n_batches++ == last - 1)
            change(path);
        weir_loader_release(loader, batch);
    }
    weir_loader_finish(loader);
    weir_loader_counts(loader, &d->counts, false);
    while (weir_loader_fault(loader, d->n_faults, d->faults[d->n_faults], &d->fault_counts[d->n_faults]))
        d->n_faults++;
    weir_loader_close(&loader);
    return d;
}

/* The file stays open and none of its frames is read again, so only the check after the last batch can detect the
 * change. */
Test(on_error, a_file_that_changes_before_the_last_batch_is_found_after_it)
{
    static const struct {
        void (*change)(const char *path);
        const char *says;
    } cases[] = {{overwrite, "episode_1.hdf5: changed while it was read: written at "},
                 {replace, "episode_1.hdf5: changed while it was read: replaced by another file (inode "},
                 {cut, " bytes (indexed: "},
                 {take_away, "episode_1.hdf5: removed while it was read"}};
    for (int c = 0; c < 4; c++)
        for (int workers = 0; workers <= 2; workers += 2) {
            char name[16];
            snprintf(name, sizeof name, "d%d%d", c, workers);
            struct weir_loader_config config = config_for(make(name, "act-jpeg"), WEIR_ON_ERROR_FAIL, workers);
            config.num_epochs = 2;
            struct delivery *d = deliver_changed(&config, cases[c].change);
            cr_assert_eq(d->rc, -ESTALE, "%d: %s", d->rc, d->err.text);
            cr_assert_eq(d->n_batches, 20);
            cr_assert_not_null(strstr(d->err.text, cases[c].says), "%s", d->err.text);
            cr_assert_not_null(strstr(d->err.text, "rerun on files that no process writes to"), "%s", d->err.text);
            free_delivery(d);
            snprintf(name, sizeof name, "e%d%d", c, workers);
            config.data = make(name, "act-jpeg");
            config.on_error = WEIR_ON_ERROR_SKIP;
            d = deliver_changed(&config, cases[c].change);
            cr_assert_eq(d->rc, 0, "%s", d->err.text);
            cr_assert_eq(d->counts.changed_files, 1);
            cr_assert_eq(d->counts.bad_frames, 0);
            cr_assert_eq(d->n_faults, 1);
            cr_assert_not_null(strstr(d->faults[0], cases[c].says), "%s", d->faults[0]);
            free_delivery(d);
        }
}

Test(on_error, a_file_whose_mode_and_links_change_has_not_changed)
{
    struct weir_loader_config config = config_for(make("d", "act-jpeg"), WEIR_ON_ERROR_FAIL, 2);
    struct delivery *d = deliver_changed(&config, change_mode);
    cr_assert_eq(d->rc, 0, "%s", d->err.text);
    cr_assert_eq(d->counts.changed_files, 0);
    free_delivery(d);
}

/* The file is not read again after the first epoch. */
Test(on_error, a_file_whose_frames_are_all_cached_is_looked_at_too)
{
    struct weir_loader_config config = config_for(make("d", "act-jpeg"), WEIR_ON_ERROR_FAIL, 2);
    config.decode_cache_bytes = 64 << 20;
    config.num_epochs = 3;
    struct delivery *d = deliver_changed(&config, overwrite);
    cr_assert_eq(d->rc, -ESTALE, "%s", d->err.text);
    free_delivery(d);
}

/* Counts the remaining samples of an episode in an epoch. After a change is detected, all frames of the file are bad,
 * even cached ones. */
static int samples_of(struct weir_loader *loader, int epoch, int episode, struct weir_err *err)
{
    struct weir_batch *batch;
    int n = 0;
    while (weir_loader_next(loader, &batch, err) > 0) {
        for (int i = 0; i < batch->n; i++)
            n += batch->plan.epoch == epoch && batch->samples[i].episode == episode;
        weir_loader_release(loader, batch);
    }
    return n;
}

Test(on_error, frames_of_a_file_that_changed_are_bad_from_then_on)
{
    static const char *const engines[] = {"pread", "mmap"};
    for (int policy = WEIR_ON_ERROR_SKIP; policy <= WEIR_ON_ERROR_SUBSTITUTE; policy++)
        for (int e = 0; e < 3; e++) {
            char name[16];
            snprintf(name, sizeof name, "d%d%d", policy, e);
            struct weir_loader_config config = config_for(make(name, "act-jpeg"), (enum weir_on_error)policy, 0);
            struct weir_loader_counts counts = {0};
            struct weir_batch *batch;
            struct weir_err err = WEIR_ERR_NONE;
            config.num_epochs = 3;
            config.io = engines[e % 2];
            config.decode_cache_bytes = e == 2 ? 64 << 20 : 0;
            struct weir_loader *loader = fixture_loader(&config);
            for (int i = 0; i < EPISODES * STEPS / BATCH + 1; i++) {
                if (i == EPISODES * STEPS / BATCH)
                    overwrite(fixture_episode(config.data, "act-jpeg", 1));
                cr_assert_eq(weir_loader_next(loader, &batch, &err), 1, "%s", err.text);
                weir_loader_release(loader, batch);
            }
            while (counts.changed_files == 0) { /* until the check at the end of the first epoch */
                nanosleep(&(struct timespec){0, 1000000}, NULL);
                weir_loader_counts(loader, &counts, false);
            }
            cr_assert_eq(samples_of(loader, 2, 1, &err), 0);
            weir_loader_counts(loader, &counts, false);
            cr_assert_eq(err.code, 0, "%s", err.text);
            cr_assert_eq(counts.changed_files, 1);
            cr_assert_eq(counts.skipped_samples, 2 * STEPS);
            cr_assert_eq(counts.substituted_frames, 0);
            weir_loader_close(&loader);
        }
}

/* The error must report that the file has changed, not that the frame is damaged. */
Test(on_error, a_frame_overwritten_during_the_run_is_not_called_damaged)
{
    struct weir_loader_config config = config_for(make("d", "act-jpeg"), WEIR_ON_ERROR_FAIL, 0);
    struct weir_loader *loader = fixture_loader(&config);
    struct weir_batch *batch;
    struct weir_err err = WEIR_ERR_NONE;
    for (int i = 0; i < 3; i++) { /* batch 2 opens the file of episode 1 */
        cr_assert_eq(weir_loader_next(loader, &batch, &err), 1, "%s", err.text);
        weir_loader_release(loader, batch);
    }
    fixture_damage(config.data, 1, 0, 4, FIXTURE_NO_SOI);
    cr_assert_eq(weir_loader_next(loader, &batch, &err), -ESTALE, "%s", err.text);
    assert_named(err.text, 1, "top", 2); /* the first frame read after the change */
    cr_assert_not_null(strstr(err.text, "changed while it was read: written at"), "%s", err.text);
    cr_assert_null(strstr(err.text, "repair"), "%s", err.text);
    weir_loader_close(&loader);
}

/* ---- indexed frames replaced with other valid ones ---- */

/* Changes a frame to a different valid image: a JPEG gets a different quantisation table, and a raw frame different
 * pixels. */
static void replace_bytes(uint8_t *bytes, size_t n)
{
    static const uint8_t table[] = {0xFF, 0xDB};
    uint8_t *at = n > 2 && bytes[0] == 0xFF && bytes[1] == 0xD8 ? memmem(bytes, n, table, sizeof table) : NULL;
    if (at)
        at[5] ^= 0x1F; /* the factor of the DC coefficient, which is the mean of a block */
    for (size_t i = 0; i < n && !at; i++)
        bytes[i] ^= 0x55;
}

static void replace_frames(const char *data)
{
    struct weir_dataset *dataset;
    struct weir_dataset_config config = {.size = sizeof config, .path = data};
    struct weir_err err = WEIR_ERR_NONE;
    cr_assert_eq(weir_dataset_open(&dataset, &config, &err), 0, "%s", err.text);
    for (int e = 0; e < weir_dataset_episodes(dataset); e++)
        for (int t = 0; t < weir_dataset_steps(dataset, e); t++)
            for (int c = 0; c < weir_dataset_cameras(dataset); c++) {
                struct weir_location at;
                struct weir_dataset_file file;
                char path[WEIR_READ_PATH_MAX];
                cr_assert_eq(weir_locate(dataset, e, c, t, &at), WEIR_HOW_EXTENT);
                weir_dataset_read_file(dataset, at.file, &file, path);
                uint8_t *bytes = malloc(at.length);
                int fd = open(file.path, O_RDWR | O_CLOEXEC);
                cr_assert(bytes && pread(fd, bytes, at.length, (off_t)at.offset) == (ssize_t)at.length);
                replace_bytes(bytes, at.length);
                cr_assert_eq(pwrite(fd, bytes, at.length, (off_t)at.offset), (ssize_t)at.length);
                close(fd);
                free(bytes);
            }
    weir_dataset_close(&dataset);
}

static char *line_of(const struct weir_batch *batch)
{
    char *text = NULL;
    size_t size = 0;
    FILE *out = open_memstream(&text, &size);
    weir_checksum_line(out, batch);
    fclose(out);
    return text;
}

/* All delivered batches must contain the indexed frames. Then the run ends with an error about the change. */
static void expect_no_other_frames(const struct weir_loader_config *config)
{
    int rc;
    struct weir_err err;
    char *expected = fixture_checksums(config, &rc, &err);
    cr_assert_eq(rc, 0, "%s", err.text);
    struct weir_loader *loader = fixture_loader(config);
    struct weir_batch *batch;
    for (int n = 0; (rc = weir_loader_next(loader, &batch, &err)) > 0; n++) {
        char *line = line_of(batch);
        cr_assert(strstr(expected, line), "%s, %s: batch %d has wrong frames", config->data, config->io, n);
        free(line);
        weir_loader_release(loader, batch);
        if (n == 0)
            replace_frames(config->data);
    }
    cr_assert_eq(rc, -ESTALE, "%s, %s: %d, %s", config->data, config->io, rc, err.text);
    cr_assert_not_null(strstr(err.text, "changed while it was read: written at"), "%s", err.text);
    weir_loader_close(&loader);
    free(expected);
}

Test(on_error, frames_replaced_in_place_are_never_delivered)
{
    static const struct {
        const char *name, *format;
        const struct weir_writer_ops *copy;
    } of[] = {{"jpeg", "act-jpeg", NULL},
              {"raw", "act", NULL},
              {"copy.d", "act-jpeg", &weir_writer_tfrecord},
              {"copy.weir", "act-jpeg", &weir_writer_packed},
              {"copy.zarr", "act-jpeg", &weir_writer_zarr}};
    static const char *const engines[] = {"pread", "mmap", "uring"};
    struct weir_err err;
    for (size_t i = 0; i < sizeof of / sizeof of[0]; i++)
        for (size_t e = 0; e < sizeof engines / sizeof engines[0]; e++) {
            char name[64];
            snprintf(name, sizeof name, "s%zu%zu", i, e);
            const char *data = fixture_synth(name, of[i].format, 2, STEPS, 64, 48, "top,wrist");
            snprintf(name, sizeof name, "%zu%zu%s", i, e, of[i].name);
            if (of[i].copy) {
                copyfx_copy(of[i].copy, data, fixture_path(name), COPYFX_ALL);
                data = fixture_path(name);
            }
            struct weir_loader_config config = config_for(data, WEIR_ON_ERROR_FAIL, e == 0 ? 0 : 2);
            config.io = engines[e];
            config.num_epochs = 3;
            if (weir_io_check(config.io, &err) == 0)
                expect_no_other_frames(&config);
        }
}
