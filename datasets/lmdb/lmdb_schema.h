/* lmdb_schema.h: the keys of a dataset in LMDB (docs/internals/layouts.md, "LMDB"), and its two JSON values. */
#ifndef WEIR_DATASETS_LMDB_LMDB_SCHEMA_H
#define WEIR_DATASETS_LMDB_LMDB_SCHEMA_H

#include "base/numbers.h"
#include "datasets/writer.h"
#include "decoders/frame_kind.h"
#include "weir/base.h"
#include "weir/dataset.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { WEIR_LMDB_JSON_MAX = 1 << 20 };
/* Supported frame kinds. */
enum { WEIR_LMDB_HOLDS = WEIR_FRAMES_RAW | WEIR_FRAMES_COLOR | WEIR_FRAMES_DEPTH };

/* The value of the key "dataset". */
struct weir_lmdb_schema {
    struct weir_copy copy; /* without n_episodes */
    int64_t episodes;      /* expected number of episodes; negative = unknown */
};

int weir_lmdb_schema_parse(struct weir_lmdb_schema *schema, const char *json, size_t length, struct weir_err *err);
struct weir_episode;
/* Parses the value of a key like "e00000007/episode". *steps is negative if unknown. Adds the strings to the episode,
 * which may be NULL. */
int weir_lmdb_episode_parse(int64_t *steps, struct weir_episode *episode, const char *json, size_t length,
                            struct weir_err *err);

enum weir_lmdb_key_kind {
    WEIR_LMDB_OTHER, /* not a key of the schema */
    WEIR_LMDB_FRAME,
    WEIR_LMDB_ACTION,
    WEIR_LMDB_EPISODE,
    WEIR_LMDB_QPOS
};

struct weir_lmdb_key {
    enum weir_lmdb_key_kind kind;
    uint32_t episode, t;
    const uint8_t *camera; /* not zero-terminated */
    size_t camera_length;
};

/* Parses a key. The camera in the result points into key. */
struct weir_lmdb_key weir_lmdb_key_parse(const uint8_t *key, size_t length);

#endif
