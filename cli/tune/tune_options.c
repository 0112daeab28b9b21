#include "cli/tune/tune_options.h"

#include "cli/commands.h"

#include <math.h>
#include <stdio.h>

#define FIELD(field) .offset = offsetof(struct tune_options, field)

struct weir_opt weir_tune_opts[TUNE_OPTS] = {
    {"max-memory", WEIR_OPT_BYTES, FIELD(max_memory), "BYTES", "0",
     "resident memory that the process may take at most, such as 2G; 0: no limit"},
    {"max-cpu", WEIR_OPT_INT, FIELD(max_cpu), "N", "0", "cores that it may use at most; 0: all usable ones", 0, 4096},
    {"max-cache", WEIR_OPT_BYTES, FIELD(max_cache), "BYTES", "auto",
     "memory that the decode cache may take at most; auto: half of what is free; 0: it is not tried", 0, 0, true},
    {"min-seconds", WEIR_OPT_DOUBLE, FIELD(min_seconds), "F", "0.5", "measured in a turn, after a warm-up", 0.01, 3600},
    {"max-minutes", WEIR_OPT_DOUBLE, FIELD(max_minutes), "F", "5", "end after so long", 0.01, 1e5},
    {"out", WEIR_OPT_TEXT, FIELD(out), "FILE", NULL, "write the settings for --config of every command",
     .path = WEIR_PATH_WRITE},
    {"log", WEIR_OPT_TEXT, FIELD(log), "FILE.jsonl", NULL, "write each turn as a JSON line", .path = WEIR_PATH_WRITE},
    {"json", WEIR_OPT_FLAG, FIELD(json), NULL, NULL, "print one JSON object with everything"},
};

#define AS_IN_RUN                                                                                                      \
    "batch-size sampling obs-history chunk-size pad action-offset train-split seed no-shuffle drop-last cameras "      \
    "qpos-keys action-keys image-keys allow-ragged allow-external split on-error index color output layout mean std "  \
    "crop image-size rank world-size wrap direct deterministic step-spin sync-steps"
static const char run_names[] = "step-ms device " AS_IN_RUN;

const struct weir_opt_topic weir_tune_topics[] = {
    {"What is looked for", "max-memory max-cpu max-cache step-ms device out"},
    {"How long, and what is printed", "min-seconds max-minutes json log"},
    {"As in weir run", AS_IN_RUN},
    {NULL, NULL},
};

void weir_tune_options_list(void)
{
    weir_run_options_take(weir_tune_opts + TUNE_OWN_OPTS, TUNE_RUN_OPTS, run_names);
}

/* ---- as they are typed ---- */

static struct tune_pair *add(struct tune_pairs *pairs, const char *name)
{
    struct tune_pair *pair = &pairs->pairs[pairs->n++];
    pair->name = name;
    pair->value = pair->buffer;
    return pair;
}

static void add_int(struct tune_pairs *pairs, const char *name, int value)
{
    snprintf(add(pairs, name)->buffer, WEIR_OPTION_TEXT, "%d", value);
}

void tune_pairs_make(struct tune_pairs *pairs, const struct tune_options *options, const struct weir_tune_space *space,
                     const struct weir_tune_setting *setting)
{
    pairs->n = 0;
    for (int i = TUNE_OWN_OPTS; i < TUNE_OPTS; i++) {
        struct tune_pair *pair = &pairs->pairs[pairs->n];
        const char *typed = weir_option_typed(&weir_tune_opts[i], options, pair->buffer);
        if (!typed)
            continue;
        add(pairs, weir_tune_opts[i].name)->value = *typed ? typed : NULL;
    }
    add_int(pairs, "num-workers", setting->workers);
    if (setting->prefetch > 0)
        add_int(pairs, "prefetch", setting->prefetch);
    if (setting->engine >= 0)
        add(pairs, "io")->value = space->engines[setting->engine];
    if (setting->depth > 0)
        add_int(pairs, "io-depth", setting->depth);
    if (setting->decoder >= 0)
        add(pairs, "decoder")->value = space->decoders[setting->decoder];
    if (setting->cache_bytes > 0)
        snprintf(add(pairs, "decode-cache")->buffer, WEIR_OPTION_TEXT, "%.0fM", ceil(setting->cache_bytes / (1 << 20)));
}
