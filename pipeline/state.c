/* Saves the position of a run in a file, and resumes from it. */
#include "base/gz_file.h"
#include "base/hash.h"
#include "pipeline/loader_priv.h"
#include "weir/loader.h"

#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static const char magic[] = "weir-state 3\n", *const older[] = {"weir-state 1\n", "weir-state 2\n"};
enum { TEXT_MAX = 64 * (WEIR_STATE_FIELDS + 3) };

static int write_file(const char *path, const char *text, size_t n)
{
    struct weir_gz_file *file;
    int rc = weir_gz_open(&file, path, WEIR_GZ_PLAIN, NULL);
    if (rc < 0)
        return rc;
    weir_gz_write(file, text, n);
    weir_gz_sync(file);
    return weir_gz_commit(&file, NULL);
}

int weir_state_write(const char *path, uint64_t next, const struct weir_state_field fields[WEIR_STATE_FIELDS],
                     struct weir_err *err)
{
    char text[TEXT_MAX];
    int n = snprintf(text, sizeof text, "%snext %" PRIu64 "\n", magic, next);
    for (int i = 0; i < WEIR_STATE_FIELDS; i++)
        n += snprintf(text + n, sizeof text - (size_t)n, "%s %" PRIu64 "\n", fields[i].name, fields[i].value);
    n += snprintf(text + n, sizeof text - (size_t)n, "xxh3 %016" PRIx64 "\n", weir_hash64(text, (size_t)n));
    int rc = write_file(path, text, (size_t)n);
    return rc < 0 ? weir_err_set(err, rc, "%s: cannot write the state: %s; use another path", path, strerror(-rc)) : 0;
}

/* Parses one line "NAME VALUE\n" at *at and moves *at past it. name NULL accepts any name. */
static bool take_line(const char **at, const char *name, int base, uint64_t *value)
{
    size_t length = strcspn(*at, " \n");
    if ((name && (length != strlen(name) || strncmp(*at, name, length) != 0)) || (*at)[length] != ' ' ||
        !isxdigit((unsigned char)(*at)[length + 1]))
        return false;
    char *end;
    errno = 0;
    *value = strtoull(*at + length + 1, &end, base);
    *at = end + 1;
    return errno == 0 && *end == '\n';
}

static int parse(const char *text, size_t n, struct weir_state *state)
{
    const char *at = text + sizeof magic - 1;
    uint64_t hash;
    for (size_t i = 0; i < sizeof older / sizeof older[0]; i++)
        if (strncmp(text, older[i], strlen(older[i])) == 0)
            return -ENOTSUP;
    if (strlen(text) != n || strncmp(text, magic, sizeof magic - 1) != 0)
        return -EEXIST;
    if (!take_line(&at, "next", 10, &state->next))
        return -EBADMSG;
    for (int i = 0; i < WEIR_STATE_FIELDS; i++)
        if (!take_line(&at, NULL, 10, &state->values[i]))
            return -EBADMSG;
    size_t hashed = (size_t)(at - text);
    return take_line(&at, "xxh3", 16, &hash) && *at == '\0' && hash == weir_hash64(text, hashed) ? 0 : -EBADMSG;
}

static const char *refusal(int code)
{
    if (code == -ENOTSUP)
        return "was written by an older Weir, which did not store which data the run reads; finish the run with that "
               "version, or remove the file to start over";
    if (code == -EEXIST)
        return "is not a saved state; use another file";
    return "is damaged: its checksum does not match; restore a copy, or remove it to start over";
}

int weir_state_read(const char *path, struct weir_state *state, struct weir_err *err)
{
    char text[TEXT_MAX + 1];
    *state = (struct weir_state){.given = false};
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK); /* O_NONBLOCK, because opening a FIFO would block */
    if (fd < 0 && errno == ENOENT)
        return 0;
    if (fd < 0)
        return weir_err_set(err, -errno, "%s: cannot be opened: %s", path, strerror(errno));
    struct stat st;
    ssize_t n = 0;
    int rc = fstat(fd, &st) == 0 ? 0 : -errno;
    if (rc == 0 && !S_ISREG(st.st_mode))
        rc = weir_err_set(err, -EEXIST, "%s: %s", path, refusal(-EEXIST));
    if (rc == 0 && (n = pread(fd, text, TEXT_MAX, 0)) < 0)
        rc = -errno;
    close(fd);
    if (rc < 0)
        return weir_err_set(err, rc, "%s: cannot be read: %s", path, strerror(-rc));
    text[n] = '\0';
    rc = parse(text, (size_t)n, state);
    if (rc < 0)
        return weir_err_set(err, rc, "%s: %s", path, refusal(rc));
    state->given = true;
    return 0;
}

int weir_state_check(const struct weir_state *state, const struct weir_state_field fields[WEIR_STATE_FIELDS],
                     struct weir_err *err)
{
    for (int i = 0; i < WEIR_STATE_FIELDS; i++)
        if (state->values[i] != fields[i].value)
            return weir_err_set(
                err, -EINVAL, "the saved run had a different %s; use the same value, or remove the state to start over",
                fields[i].name);
    return 0;
}

/* ---- a loader's state ---- */

static const char *const names[WEIR_STATE_FIELDS] = {
    "--seed",          "--sampling",     "--batch-size",       "--max-batches",
    "--no-shuffle",    "--drop-last",    "--train-split",      "--rank",
    "--world-size",    "--wrap",         "number-of-episodes", "lengths-of-episodes",
    "set-of-episodes", "set-of-cameras", "window-of-steps",    "view-of-images",
};

static uint64_t mix(uint64_t hash, const void *bytes, size_t n)
{
    const uint64_t pair[2] = {hash, n ? weir_hash64(bytes, n) : 0};
    return weir_hash64(pair, sizeof pair);
}

static uint64_t mix_text(uint64_t hash, const char *text)
{
    return mix(hash, text ? text : "", text ? strlen(text) + 1 : 0);
}

/* Identifies the episodes by what they contain and not by where they are, so that copies can be used: by their state
 * and actions, or by their names if they have none. */
static uint64_t hash_episodes(const struct weir_dataset *dataset)
{
    size_t qpos_dim = (size_t)weir_dataset_qpos_dim(dataset), action_dim = (size_t)weir_dataset_action_dim(dataset);
    uint64_t hash = 0;
    for (int i = 0; i < weir_dataset_episodes(dataset); i++) {
        size_t steps = (size_t)weir_dataset_steps(dataset, i);
        const char *path = weir_dataset_episode_path(dataset, i), *slash = strrchr(path, '/');
        hash = mix(hash, weir_dataset_qpos(dataset, i), steps * qpos_dim * sizeof(float));
        hash = mix(hash, weir_dataset_actions(dataset, i), steps * action_dim * sizeof(float));
        if (qpos_dim + action_dim > 0)
            continue;
        hash = mix_text(hash, slash ? slash + 1 : path);
        hash = mix_text(hash, weir_dataset_episode_group(dataset, i));
    }
    return hash;
}

static uint64_t hash_cameras(const struct weir_dataset *dataset)
{
    uint64_t hash = 0;
    for (int i = 0; i < weir_dataset_cameras(dataset); i++)
        hash = mix_text(hash, weir_dataset_camera(dataset, i)->name);
    return hash;
}

static uint64_t hash_window(const struct weir_loader_config *c)
{
    const int numbers[] = {c->obs_history, c->chunk_size, (int)c->pad, c->action_offset};
    return mix_text(weir_hash64(numbers, sizeof numbers), c->delta_indices);
}

static uint64_t hash_view(const struct weir_loader_config *c)
{
    const int numbers[] = {c->image_width, c->image_height, (int)c->resize};
    return mix_text(weir_hash64(numbers, sizeof numbers), c->crop);
}

/* Lists the settings and the data that determine the samples of each batch. Hashes the episodes at the first call, so
 * that loaders whose position is never saved need not read all of their numbers. */
static void state_fields(const struct weir_loader *loader, struct weir_state_field fields[WEIR_STATE_FIELDS])
{
    struct weir_shared *s =
        (struct weir_shared *)&loader->shared; /* the hash is a cache: saving changes nothing else */
    if (s->setup.episodes_hash == 0)
        s->setup.episodes_hash = hash_episodes(s->setup.dataset);
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
        s->setup.episodes_hash,
        hash_cameras(s->setup.dataset),
        hash_window(c),
        hash_view(c),
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
    state_fields(loader, fields);
    int rc = weir_state_check(&s->setup.config.resume, fields, err);
    if (rc == 0 && s->setup.config.resume.next > s->setup.total)
        rc = weir_err_set(
            err, -EINVAL,
            "the saved run is at batch %llu, but this run has only %llu batches; use a larger --num-epochs",
            (unsigned long long)s->setup.config.resume.next, (unsigned long long)s->setup.total);
    loader->next = s->setup.config.resume.next;
    return rc;
}

int weir_loader_save(const struct weir_loader *loader, const char *path, struct weir_err *err)
{
    struct weir_state_field fields[WEIR_STATE_FIELDS];
    state_fields(loader, fields);
    return weir_state_write(path, loader->next, fields, err);
}

void weir_loader_state(const struct weir_loader *loader, struct weir_state *state)
{
    struct weir_state_field fields[WEIR_STATE_FIELDS];
    state_fields(loader, fields);
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
