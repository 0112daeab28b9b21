/* Loader functions for programs that pass batches on: keeping batches, interrupting waits, one session for
 * several loaders, one split only, state as stored, and resuming without a file. */
#include "tests/fixtures/loader_fixture.h"
#include "weir/recorder.h"

#include <criterion/criterion.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

enum { EPISODES = 3, STEPS = 8, MOST = 32 };

TestSuite(loader_keep, .init = fixture_open, .fini = fixture_close);

static void small(struct weir_loader_config *config)
{
    weir_loader_config_default(config);
    config->data = fixture_synth("data", "act-jpeg", EPISODES, STEPS, 32, 24, "top");
    config->batch_size = 3;
    config->num_workers = 2;
    config->prefetch = 2;
}

struct kept {
    struct weir_kept kept;
    uint8_t *image, *copy;
    size_t image_bytes;
};

/* Runs the loader to the end and copies each batch's images. Batches are kept if `keep` is set, and released otherwise.
 */
static int run(struct weir_loader *loader, struct kept kept[MOST], bool keep)
{
    struct weir_batch *batch;
    struct weir_err err = WEIR_ERR_NONE;
    int n = 0;
    for (; weir_loader_next(loader, &batch, &err) > 0; n++) {
        struct kept *one = &kept[n];
        one->image = batch->tensors[0].data;
        one->image_bytes = batch->tensors[0].sample_bytes * (size_t)batch->n;
        one->copy = malloc(one->image_bytes);
        memcpy(one->copy, one->image, one->image_bytes);
        if (!keep)
            weir_loader_release(loader, batch);
        else
            cr_assert_eq(weir_loader_keep(loader, batch, &one->kept, &err), 0, "%s", err.text);
    }
    cr_assert_eq(err.code, 0, "%s", err.text);
    return n;
}

Test(loader_keep, kept_batches_stay_when_the_loader_is_closed)
{
    struct weir_loader_config config;
    struct kept plain[MOST], kept[MOST];
    small(&config);
    struct weir_loader *loader = fixture_loader(&config);
    int n = run(loader, plain, false);
    weir_loader_close(&loader);
    for (config.num_workers = 0; config.num_workers < 3; config.num_workers += 2) {
        loader = fixture_loader(&config);
        cr_assert_eq(run(loader, kept, true), n);
        weir_loader_close(&loader);
        for (int i = 0; i < n; i++) {
            cr_assert_arr_eq(kept[i].image, plain[i].copy, plain[i].image_bytes);
            cr_assert_geq(kept[i].image, (uint8_t *)kept[i].kept.memory);
            free(kept[i].copy);
            weir_loader_free_kept(&kept[i].kept, NULL, 0);
        }
    }
    for (int i = 0; i < n; i++)
        free(plain[i].copy);
}

Test(loader_keep, a_batch_may_be_kept_after_the_end)
{
    struct weir_loader_config config;
    struct weir_batch *batch;
    struct weir_err err = WEIR_ERR_NONE;
    struct weir_kept kept;
    small(&config);
    struct weir_loader *loader = fixture_loader(&config);
    cr_assert_eq(weir_loader_next(loader, &batch, &err), 1);
    weir_loader_finish(loader);
    cr_assert_eq(weir_loader_keep(loader, batch, &kept, &err), 0, "%s", err.text);
    weir_loader_close(&loader);
    memset(kept.memory, 1, kept.bytes);
    weir_loader_free_kept(&kept, NULL, 0);
}

struct asked {
    bool opened; /* opening is not interrupted */
    int n;
};

static bool at_once(void *user)
{
    struct asked *asked = user;
    asked->n++;
    return asked->opened;
}

Test(loader_keep, a_wait_can_be_ended_and_goes_on)
{
    struct weir_loader_config config;
    struct weir_batch *batch;
    struct weir_err err = WEIR_ERR_NONE;
    struct asked asked = {0};
    int rc;
    weir_loader_config_default(&config);
    /* Large images, so that a batch takes longer than the check for interruption. */
    config.data = fixture_synth("large", "act-jpeg", 1, 16, 1600, 1200, "top");
    config.batch_size = 16;
    config.train_split = 1;
    config.num_workers = 1;
    config.num_epochs = 1000; /* enough for at least one wait */
    config.interrupted = at_once;
    config.user = &asked;
    struct weir_loader *loader = fixture_loader(&config);
    asked.opened = true;
    bool ended = false;
    for (uint64_t n = 0; !ended; n++, weir_loader_release(loader, batch)) {
        while ((rc = weir_loader_next(loader, &batch, &err)) == -EINTR) {
            cr_assert_eq(weir_loader_position(loader), n);
            err = WEIR_ERR_NONE;
            ended = true;
        }
        cr_assert_eq(rc, 1, "%s", err.text);
    }
    cr_assert_gt(asked.n, 0);
    weir_loader_close(&loader);
}

Test(loader_keep, loaders_share_a_session)
{
    struct weir_loader_config config;
    struct weir_recorder *session;
    struct weir_snapshot *snapshot;
    struct kept batches[MOST];
    int n = 0;
    small(&config);
    cr_assert_eq(weir_recorder_open(&session), 0);
    cr_assert_eq(weir_thread_attach(session, "consumer", WEIR_ROLE_CONSUMER), 0);
    config.recorder = session;
    for (int i = 0; i < 2; i++) {
        struct weir_loader *loader = fixture_loader(&config);
        cr_assert_eq(weir_loader_recorder(loader), session);
        n += run(loader, batches, false);
        weir_loader_close(&loader);
        for (int b = 0; b < n / (i + 1); b++)
            free(batches[b].copy);
    }
    cr_assert_eq(weir_snapshot_take(session, &snapshot), 0);
    cr_assert_eq(snapshot->stages[WEIR_STAGE_WAIT_DATA].count, (uint64_t)n);
    cr_assert_eq(snapshot->stages[WEIR_STAGE_IMAGE_DECODE].count, (uint64_t)(2 * EPISODES * STEPS));
    weir_snapshot_free(&snapshot);
    weir_thread_detach();
    weir_recorder_close(&session);
}

/* Returns the number of samples in the whole run, and checks that all are of this split. */
static int count(const struct weir_loader_config *config, enum weir_split split)
{
    struct weir_loader *loader = fixture_loader(config);
    struct weir_batch *batch;
    struct weir_err err = WEIR_ERR_NONE;
    int n = 0;
    for (; weir_loader_next(loader, &batch, &err) > 0; weir_loader_release(loader, batch)) {
        cr_assert_eq(batch->plan.split, split);
        n += batch->n;
    }
    weir_loader_close(&loader);
    return n;
}

Test(loader_keep, one_split)
{
    struct weir_loader_config config;
    struct weir_loader *loader;
    struct weir_err err = WEIR_ERR_NONE;
    small(&config);
    config.train_split = 0.7;
    config.num_epochs = 2;
    config.splits = WEIR_SPLITS_TRAIN;
    cr_assert_eq(count(&config, WEIR_SPLIT_TRAIN), 2 * 2 * STEPS);
    config.splits = WEIR_SPLITS_VAL;
    cr_assert_eq(count(&config, WEIR_SPLIT_VAL), 2 * STEPS);
    config.train_split = 1;
    cr_assert_eq(weir_loader_open(&loader, &config, &err), -EINVAL);
    cr_assert(strstr(err.text, "no validation batch"), "%s", err.text);
}

Test(loader_keep, state_as_stored)
{
    struct weir_loader_config config;
    struct weir_batch *batch;
    struct weir_err err = WEIR_ERR_NONE;
    small(&config);
    config.raw_state = true;
    struct weir_loader *loader = fixture_loader(&config);
    cr_assert_eq(weir_loader_next(loader, &batch, &err), 1);
    const struct weir_dataset *dataset = weir_loader_dataset(loader);
    const struct weir_tensor *qpos = &batch->tensors[1];
    size_t dim = (size_t)weir_dataset_qpos_dim(dataset);
    cr_assert_str_eq(qpos->name, "qpos");
    for (int i = 0; i < batch->n; i++)
        cr_assert_arr_eq((const float *)qpos->data + (size_t)i * dim,
                         weir_dataset_qpos(dataset, batch->samples[i].episode) + (size_t)batch->samples[i].t * dim,
                         dim * sizeof(float));
    weir_loader_release(loader, batch);
    weir_loader_close(&loader);
}

Test(loader_keep, a_state_without_a_file)
{
    struct weir_loader_config config;
    struct weir_batch *batch;
    struct weir_err err = WEIR_ERR_NONE;
    struct weir_state state;
    small(&config);
    struct weir_loader *loader = fixture_loader(&config);
    for (int i = 0; i < 4; i++) {
        cr_assert_eq(weir_loader_next(loader, &batch, &err), 1);
        weir_loader_release(loader, batch);
    }
    weir_loader_state(loader, &state);
    weir_loader_close(&loader);
    cr_assert_eq(state.next, 4);
    cr_assert_str_eq(weir_loader_state_name(0), "--seed");
    cr_assert_null(weir_loader_state_name(WEIR_STATE_FIELDS));
    config.resume = state;
    loader = fixture_loader(&config);
    cr_assert_eq(weir_loader_next(loader, &batch, &err), 1);
    cr_assert_eq(batch->plan.sequence, 4);
    weir_loader_release(loader, batch);
    weir_loader_close(&loader);
    config.seed++;
    cr_assert_eq(weir_loader_open(&loader, &config, &err), -EINVAL);
    cr_assert(strstr(err.text, "--seed"), "%s", err.text);
}

static bool at_the_third(void *user)
{
    return ++*(int *)user == 3;
}

Test(loader_keep, opening_can_be_ended)
{
    struct weir_loader_config config;
    struct weir_loader *loader;
    struct weir_err err = WEIR_ERR_NONE;
    int asked = 2;
    small(&config);
    config.interrupted = at_the_third;
    config.user = &asked;
    cr_assert_eq(weir_loader_open(&loader, &config, &err), -EINTR);
    cr_assert_null(loader);
    cr_assert(strstr(err.text, "interrupted while opening file"), "%s", err.text);
    loader = fixture_loader(&config);
    weir_loader_close(&loader);
}
