/* lmdb_store.h: the episodes of an LMDB file, collected from its keys, and one episode as a store. */
#ifndef WEIR_DATASETS_LMDB_LMDB_STORE_H
#define WEIR_DATASETS_LMDB_LMDB_STORE_H

#include "datasets/index.h"
#include "datasets/lmdb/lmdb_schema.h"
#include "datasets/lmdb/lmdb_tree.h"
#include "datasets/store.h"

struct weir_lmdb_frames {
    struct weir_frame_extent *extents;
    uint64_t n;
};

struct weir_lmdb_episode {
    uint32_t number;
    struct weir_lmdb_frames *cameras;            /* one element per camera of the schema */
    struct weir_frame_extent qpos, action, json; /* length 0: the key is missing */
    struct weir_err why;                         /* error in the episode's keys, if any */
    char unlisted[WEIR_NAME_MAX]; /* the first camera that has frames but is not in the schema; "" = none */
};

struct weir_lmdb_episodes {
    struct weir_lmdb_schema schema;
    struct weir_lmdb_episode *episodes;
    int n;
    uint64_t numbers_bytes; /* of all episodes */
};

/* Walks all keys. Returns 0, or a negative code with err. Call weir_lmdb_episodes_free in either case. */
int weir_lmdb_episodes_find(struct weir_lmdb_episodes *episodes, const struct weir_lmdb_state *state,
                            const struct weir_raw_file *file, struct weir_err *err);
void weir_lmdb_episodes_free(struct weir_lmdb_episodes *episodes);

struct weir_lmdb_store {
    struct weir_store store;
    const struct weir_lmdb_schema *schema;
    const struct weir_lmdb_episode *episode;
    const struct weir_raw_file *file;
};

/* Parses the value of the episode's key "episode". Without this key, *steps is negative and there are no strings. The
 * strings are added to the episode, which may be NULL. */
int weir_lmdb_episode_json(const struct weir_lmdb_store *store, int64_t *steps, struct weir_episode *episode,
                           struct weir_err *err);
/* Checks the expected number of steps, and refuses values that are pickles. weir_lmdb_episodes_find does neither. */
int weir_lmdb_episode_check(const struct weir_lmdb_store *store, struct weir_err *err);

extern const struct weir_store_ops weir_store_lmdb;

#endif
