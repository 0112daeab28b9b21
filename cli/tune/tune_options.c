#include "cli/tune/tune_options.h"

#include "cli/commands.h"

#include <assert.h>
#include <math.h>
#include <stdio.h>

#define FIELD(field) .offset = offsetof(struct tune_options, field)

const struct weir_opt weir_tune_opts[TUNE_OPTS] = {
    {"max-memory", WEIR_OPT_BYTES, FIELD(max_memory), "BYTES", "0", "limit of resident memory, such as 2G; 0: none",
     .topic = "Search"},
    {"max-cpu", WEIR_OPT_INT, FIELD(max_cpu), "N", "0", "limit of cores; 0: all usable ones", 0, 4096, .unit = "cores"},
    {"max-cache", WEIR_OPT_BYTES, FIELD(max_cache), "BYTES", "auto", "limit of the decode cache; 0: none", 0, 0, true,
     .details = "auto is half of the free memory."},
    {"min-seconds", WEIR_OPT_DOUBLE, FIELD(min_seconds), "S", "0.5", "measured time per trial, after a warm-up", 0.01,
     3600, .unit = "seconds"},
    {"max-minutes", WEIR_OPT_DOUBLE, FIELD(max_minutes), "MIN", "5", "time limit", 0.01, 1e5, .unit = "minutes"},
    {"out", WEIR_OPT_TEXT, FIELD(out), "FILE", NULL, "settings file to write, for --config", .path = WEIR_PATH_WRITE},
    {"log", WEIR_OPT_TEXT, FIELD(log), "FILE.jsonl", NULL, "log of the trials as JSON lines", .path = WEIR_PATH_WRITE},
    {"json", WEIR_OPT_FLAG, FIELD(json), NULL, NULL, "JSON output, one object"},
};
const struct weir_opt_set weir_tune_sets[] = WEIR_RUN_SETS(0, WEIR_FOR_TUNE);

/* ---- as they are typed ---- */

static struct tune_pair *add(struct tune_pairs *pairs, const char *name)
{
    assert(pairs->n < TUNE_PAIRS);
    struct tune_pair *pair = &pairs->pairs[pairs->n++];
    pair->name = name;
    pair->value = pair->buffer;
    return pair;
}

static void add_int(struct tune_pairs *pairs, const char *name, int value)
{
    snprintf(add(pairs, name)->buffer, WEIR_OPTION_TEXT, "%d", value);
}

/* Texts of the options stay where they are, numbers are copied. */
static void add_typed(void *user, const struct weir_opt *opt, const char *value)
{
    struct tune_pair *pair = add(user, opt->name);
    if (!value || opt->kind == WEIR_OPT_TEXT)
        pair->value = value;
    else
        snprintf(pair->buffer, sizeof pair->buffer, "%s", value);
}

void tune_pairs_make(struct tune_pairs *pairs, const struct tune_options *options, const struct weir_tune_space *space,
                     const struct weir_tune_setting *setting)
{
    pairs->n = 0;
    weir_options_typed(weir_tune_sets, options, add_typed, pairs);
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
