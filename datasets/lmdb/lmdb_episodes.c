/* Collects the episodes of a file from its keys, which are in ascending order. "dataset" comes first. Each episode then
 * has its frames, step by step, followed by "action", "episode" and "qpos". */
#include "base/grow.h"
#include "base/shortage.h"
#include "datasets/lmdb/lmdb_store.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct gathering {
    struct weir_lmdb_episodes *episodes;
    const struct weir_raw_file *file;
    bool has_schema;
};

/* Refuses Python's pickle format (protocol 2 and later), because loading it would execute code. */
static int refuse_pickle(const struct weir_raw_file *file, uint64_t offset, uint64_t length, struct weir_err *err)
{
    uint8_t head[2] = {0}, last = 0;
    if (length < 3 || file->read(file->user, offset, head, sizeof head) < 0 ||
        file->read(file->user, offset + length - 1, &last, 1) < 0)
        return 0; /* the function that reads the value reports the error */
    if (head[0] != 0x80 || head[1] < 2 || head[1] > 5 || last != '.')
        return 0;
    return weir_err_set(err, -ENOTSUP,
                        "pickled values are refused, because unpickling runs code from the file; write the values as "
                        "bytes under the keys that docs/internals/layouts.md describes");
}

/* ---- the schema ---- */

static int no_schema(const struct gathering *g, const struct weir_lmdb_entry *entry, struct weir_err *err)
{
    int rc = refuse_pickle(g->file, entry->offset, entry->length, err);
    return rc < 0 ? rc
                  : weir_err_set(err, -EBADMSG,
                                 "has no key \"dataset\" (its first key is \"%.*s\"); an LMDB file needs the keys that "
                                 "docs/internals/layouts.md describes and `weir convert` writes",
                                 (int)entry->key_length, (const char *)entry->key);
}

static int read_schema(struct gathering *g, const struct weir_lmdb_entry *entry, struct weir_err *err)
{
    static const char name[] = "dataset";
    if (entry->key_length != sizeof name - 1 || memcmp(entry->key, name, sizeof name - 1) != 0)
        return no_schema(g, entry, err);
    if (entry->length > WEIR_LMDB_JSON_MAX)
        return weir_err_set(err, -EFBIG, "key \"dataset\": JSON of over %d bytes", WEIR_LMDB_JSON_MAX);
    int rc = refuse_pickle(g->file, entry->offset, entry->length, err);
    if (rc < 0)
        return rc;
    char *json = malloc((size_t)entry->length + 1);
    if (!json)
        return weir_no_memory(err);
    rc = g->file->read(g->file->user, entry->offset, json, (size_t)entry->length);
    rc = rc < 0 ? weir_err_set(err, rc, "key \"dataset\": %s", strerror(-rc))
                : weir_lmdb_schema_parse(&g->episodes->schema, json, (size_t)entry->length, err);
    free(json);
    g->has_schema = rc == 0;
    return rc;
}

/* ---- episodes ---- */

static int add_episode(struct weir_lmdb_episodes *all, uint32_t number)
{
    if (!weir_grow(&all->episodes, (size_t)all->n, sizeof *all->episodes))
        return -ENOMEM;
    struct weir_lmdb_frames *cameras = calloc((size_t)all->schema.copy.n_cameras + 1, sizeof *cameras);
    if (!cameras)
        return -ENOMEM;
    all->episodes[all->n++] = (struct weir_lmdb_episode){.number = number, .cameras = cameras};
    return 0;
}

static int find_camera(const struct weir_lmdb_schema *schema, const struct weir_lmdb_key *key)
{
    for (int i = 0; i < schema->copy.n_cameras; i++)
        if (strlen(schema->copy.cameras[i].name) == key->camera_length &&
            memcmp(schema->copy.cameras[i].name, key->camera, key->camera_length) == 0)
            return i;
    return -1;
}

static int add_frame(const struct weir_lmdb_schema *schema, struct weir_lmdb_episode *episode,
                     const struct weir_lmdb_key *key, struct weir_frame_extent extent)
{
    int camera = find_camera(schema, key);
    if (camera < 0) {
        if (!*episode->unlisted)
            snprintf(episode->unlisted, sizeof episode->unlisted, "%.*s", (int)key->camera_length,
                     (const char *)key->camera);
        return 0;
    }
    struct weir_lmdb_frames *frames = &episode->cameras[camera];
    const char *name = schema->copy.cameras[camera].name;
    if (key->t != frames->n) {
        weir_err_set(&episode->why, -EBADMSG,
                     "e%08u: %s does not have frame %llu, but has frame %u; write the episode again", episode->number,
                     name, (unsigned long long)frames->n, key->t);
        return 0;
    }
    if (extent.length > INT32_MAX) {
        weir_err_set(&episode->why, -EFBIG, "e%08u/%08u/%s: the frame has over 2 GiB", episode->number, key->t, name);
        return 0;
    }
    if (!weir_grow(&frames->extents, frames->n, sizeof *frames->extents))
        return -ENOMEM;
    frames->extents[frames->n++] = extent;
    return 0;
}

static int visit(void *user, const struct weir_lmdb_entry *entry, struct weir_err *err)
{
    struct gathering *g = user;
    struct weir_lmdb_episodes *all = g->episodes;
    if (!g->has_schema)
        return read_schema(g, entry, err);
    struct weir_lmdb_key key = weir_lmdb_key_parse(entry->key, entry->key_length);
    if (key.kind == WEIR_LMDB_OTHER)
        return 0;
    bool is_new = all->n == 0 || all->episodes[all->n - 1].number != key.episode;
    if (is_new && add_episode(all, key.episode) < 0)
        return weir_no_memory(err);
    struct weir_lmdb_episode *episode = &all->episodes[all->n - 1];
    struct weir_frame_extent extent = {entry->offset, entry->length};
    if (key.kind == WEIR_LMDB_QPOS || key.kind == WEIR_LMDB_ACTION)
        all->numbers_bytes += extent.length;
    if (key.kind == WEIR_LMDB_QPOS)
        episode->qpos = extent;
    else if (key.kind == WEIR_LMDB_ACTION)
        episode->action = extent;
    else if (key.kind == WEIR_LMDB_EPISODE)
        episode->json = extent;
    else if (add_frame(&all->schema, episode, &key, extent) < 0)
        return weir_no_memory(err);
    return 0;
}

int weir_lmdb_episodes_find(struct weir_lmdb_episodes *episodes, const struct weir_lmdb_state *state,
                            const struct weir_raw_file *file, struct weir_err *err)
{
    struct gathering g = {.episodes = episodes, .file = file};
    *episodes = (struct weir_lmdb_episodes){0};
    int rc = weir_lmdb_walk(state, file, visit, &g, err);
    if (rc < 0)
        return rc;
    if (!g.has_schema)
        return weir_err_set(err, -EBADMSG, "has no keys; remove the file");
    if (episodes->schema.episodes >= 0 && episodes->schema.episodes != episodes->n)
        return weir_err_set(err, -EBADMSG,
                            "has %d of the %lld episodes that its key \"dataset\" declares, so it was not written "
                            "completely; convert or write it again",
                            episodes->n, (long long)episodes->schema.episodes);
    return episodes->n > 0 ? 0 : weir_err_set(err, -EBADMSG, "has no episodes; remove the file");
}

void weir_lmdb_episodes_free(struct weir_lmdb_episodes *episodes)
{
    for (int i = 0; i < episodes->n; i++) {
        for (int c = 0; c < episodes->schema.copy.n_cameras; c++)
            free(episodes->episodes[i].cameras[c].extents);
        free(episodes->episodes[i].cameras);
    }
    free(episodes->episodes);
    *episodes = (struct weir_lmdb_episodes){0};
}

/* ---- an episode ---- */

int weir_lmdb_episode_json(const struct weir_lmdb_store *store, int64_t *steps, struct weir_episode *episode,
                           struct weir_err *err)
{
    const struct weir_frame_extent *at = &store->episode->json;
    *steps = -1;
    if (at->length == 0)
        return 0;
    if (at->length > WEIR_LMDB_JSON_MAX)
        return weir_err_set(err, -EFBIG, "its key \"episode\" holds JSON of over %d bytes", WEIR_LMDB_JSON_MAX);
    char *json = malloc((size_t)at->length + 1);
    if (!json)
        return weir_no_memory(err);
    int rc = store->file->read(store->file->user, at->offset, json, (size_t)at->length);
    rc = rc < 0 ? weir_err_set(err, rc, "%s", strerror(-rc))
                : weir_lmdb_episode_parse(steps, episode, json, (size_t)at->length, err);
    free(json);
    return rc;
}

static int check_steps(const struct weir_lmdb_store *store, struct weir_err *err)
{
    int64_t steps;
    int rc = weir_lmdb_episode_json(store, &steps, NULL, err);
    uint64_t row = (uint64_t)store->schema->copy.qpos_dim * weir_number_bytes(store->schema->copy.qpos_type);
    uint64_t rows = store->episode->qpos.length / row;
    if (rc == 0 && steps >= 0 && (uint64_t)steps != rows)
        return weir_err_set(err, -EBADMSG, "its key \"episode\" declares %lld steps, but \"qpos\" has %llu rows",
                            (long long)steps, (unsigned long long)rows);
    return rc;
}

int weir_lmdb_episode_check(const struct weir_lmdb_store *store, struct weir_err *err)
{
    const struct weir_lmdb_episode *episode = store->episode;
    if (episode->why.code)
        return weir_err_set(err, episode->why.code, "%s", episode->why.text);
    int rc = refuse_pickle(store->file, episode->qpos.offset, episode->qpos.length, err);
    if (rc == 0)
        rc = refuse_pickle(store->file, episode->action.offset, episode->action.length, err);
    for (int c = 0; c < store->schema->copy.n_cameras && rc == 0; c++)
        if (episode->cameras[c].n > 0 && weir_frame_is_encoded(store->schema->copy.cameras[c].kind))
            rc = refuse_pickle(store->file, episode->cameras[c].extents[0].offset,
                               episode->cameras[c].extents[0].length, err);
    if (rc == 0)
        rc = check_steps(store, err);
    if (rc < 0)
        weir_err_prefix(err, "e%08u", episode->number);
    return rc;
}
