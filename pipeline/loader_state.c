/* Saves the position of a run in a file, and resumes from it. */
#include "base/hash.h"
#include "pipeline/loader_priv.h"
#include "weir/loader.h"

#include <errno.h>
#include <string.h>

static const char *const names[WEIR_STATE_FIELDS] = {
    "--seed",        "--sampling", "--batch-size", "--max-batches", "--no-shuffle",       "--drop-last",
    "--train-split", "--rank",     "--world-size", "--wrap",        "number-of-episodes", "lengths-of-episodes",
};

/* Lists the settings that determine the samples of each batch. */
static void state_fields(const struct weir_shared *s, struct weir_state_field fields[WEIR_STATE_FIELDS])
{
    const struct weir_loader_config *c = &s->setup.config;
    uint64_t split = 0, steps = 0;
    int episodes = weir_dataset_episodes(s->setup.dataset);
    memcpy(&split, &c->train_split, sizeof split);
    for (int i = 0; i < episodes; i++) {
        uint64_t pair[2] = {steps, (uint64_t)weir_dataset_steps(s->setup.dataset, i)};
        steps = weir_hash64(pair, sizeof pair);
    }
    const uint64_t values[WEIR_STATE_FIELDS] = {
        c->seed,
        (uint64_t)c->sampling,
        (uint64_t)c->batch_size,
        (uint64_t)c->max_batches,
        c->no_shuffle,
        c->drop_last,
        split,
        (uint64_t)c->rank,
        (uint64_t)(c->world_size ? c->world_size : 1),
        c->wrap,
        (uint64_t)episodes,
        steps,
    };
    for (int i = 0; i < WEIR_STATE_FIELDS; i++)
        fields[i] = (struct weir_state_field){names[i], values[i]};
}

int weir_resume_loader(struct weir_loader *loader, struct weir_err *err)
{
    struct weir_shared *s = &loader->shared;
    struct weir_state_field fields[WEIR_STATE_FIELDS];
    if (!s->setup.config.resume.given)
        return 0;
    state_fields(s, fields);
    int rc = weir_state_check(&s->setup.config.resume, fields, err);
    if (rc == 0 && s->setup.config.resume.next > s->setup.total)
        rc = weir_err_set(err, -EINVAL,
                          "the saved run is at batch %llu, this one has only %llu; use a larger --num-epochs",
                          (unsigned long long)s->setup.config.resume.next, (unsigned long long)s->setup.total);
    loader->next = s->setup.config.resume.next;
    return rc;
}

int weir_loader_save(const struct weir_loader *loader, const char *path, struct weir_err *err)
{
    struct weir_state_field fields[WEIR_STATE_FIELDS];
    state_fields(&loader->shared, fields);
    return weir_state_write(path, loader->next, fields, err);
}

void weir_loader_state(const struct weir_loader *loader, struct weir_state *state)
{
    struct weir_state_field fields[WEIR_STATE_FIELDS];
    state_fields(&loader->shared, fields);
    *state = (struct weir_state){.given = true, .next = loader->next};
    for (int i = 0; i < WEIR_STATE_FIELDS; i++)
        state->values[i] = fields[i].value;
}

const char *weir_loader_state_name(int i)
{
    return i >= 0 && i < WEIR_STATE_FIELDS ? names[i] : NULL;
}

int weir_loader_restore(struct weir_loader_config *config, const char *path, struct weir_err *err)
{
    return weir_state_read(path, &config->resume, err);
}

uint64_t weir_loader_position(const struct weir_loader *loader)
{
    return loader->next;
}
