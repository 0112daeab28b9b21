#include "analyze/trials/grid.h"
#include "analyze/trials/child.h"
#include "weir/decoder.h"

#include <errno.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef char list_values[WEIR_GRID_LIST][32];

int weir_grid_split(const char *option, const char *list, list_values values, struct weir_err *err)
{
    int n = 0;
    for (const char *at = list; n < WEIR_GRID_LIST; at++) {
        size_t length = strcspn(at, ",");
        if (length == 0 || length >= sizeof values[0])
            return weir_err_set(err, -EINVAL, "--%s: '%s' is not a list of values separated by commas", option, list);
        memcpy(values[n], at, length);
        values[n][length] = '\0';
        for (int i = 0; i < n; i++)
            if (strcmp(values[i], values[n]) == 0)
                return weir_err_set(err, -EINVAL, "--%s: '%s' is listed twice", option, values[n]);
        n++;
        at += length;
        if (*at == '\0')
            return n;
    }
    return weir_err_set(err, -EINVAL, "--%s accepts at most %d values", option, WEIR_GRID_LIST);
}

/* ---- options with several values ---- */

struct dimension {
    const char *name;         /* name of the option */
    size_t list, value, size; /* offsets in the configuration and in a candidate's settings; size of the setting */
    long min, max;            /* limits of numbers; if max is 0, values are names */
    bool allow_auto;
    const char *preset; /* default value in weir run */
};
#define DIMENSION(field)                                                                                               \
    offsetof(struct weir_grid_config, field), offsetof(struct weir_candidate_settings, field),                         \
        sizeof((struct weir_candidate_settings *)0)->field
static const struct dimension dimensions[] = {
    {"num-workers", DIMENSION(num_workers), 0, 512, true, "auto"},
    {"prefetch", DIMENSION(prefetch), 1, 4096, true, "auto"},
    {"batch-size", DIMENSION(batch_size), 1, 65536, false, "8"},
    {"io", DIMENSION(io), 0, 0, false, "auto"},
    {"decoder", DIMENSION(decoder), 0, 0, false, "auto"},
    {"device", DIMENSION(device), 0, 0, false, "cpu"},
};
enum { N_DIMENSIONS = sizeof dimensions / sizeof dimensions[0] };

static char *value_of(const struct weir_candidate_settings *settings, int d)
{
    return (char *)settings + dimensions[d].value;
}

static int check_value(const struct dimension *d, const char *value, struct weir_err *err)
{
    if (d->max == 0 || (d->allow_auto && strcmp(value, "auto") == 0))
        return strlen(value) < d->size ? 0 : weir_err_set(err, -EINVAL, "--%s: '%s' is too long", d->name, value);
    char *end;
    long number = strtol(value, &end, 10);
    if (end == value || *end || strlen(value) >= d->size || number < d->min || number > d->max)
        return weir_err_set(err, -EINVAL, "--%s: '%s' must be a number from %ld to %ld%s", d->name, value, d->min,
                            d->max, d->allow_auto ? ", or auto" : "");
    return 0;
}

struct lists {
    list_values values[N_DIMENSIONS];
    int n[N_DIMENSIONS];
    bool warm, cold;
};

static int read_lists(const struct weir_grid_config *config, struct lists *lists, struct weir_err *err)
{
    memset(lists, 0, sizeof *lists);
    for (int d = 0; d < N_DIMENSIONS; d++) {
        const char *list = *(const char *const *)((const char *)config + dimensions[d].list);
        lists->n[d] = weir_grid_split(dimensions[d].name, list ? list : dimensions[d].preset, lists->values[d], err);
        for (int i = 0; i < lists->n[d]; i++)
            if (check_value(&dimensions[d], lists->values[d][i], err) < 0)
                return -EINVAL;
        if (lists->n[d] < 0)
            return -EINVAL;
    }
    list_values cache;
    int n = weir_grid_split("cache", config->cache ? config->cache : "warm", cache, err);
    for (int i = 0; i < n; i++) {
        bool warm = strcmp(cache[i], "warm") == 0, cold = strcmp(cache[i], "cold") == 0;
        if (!warm && !cold)
            return weir_err_set(err, -EINVAL, "--cache: '%s' is neither warm nor cold", cache[i]);
        lists->warm |= warm;
        lists->cold |= cold;
    }
    return n < 0 ? n : 0;
}

int weir_grid_check(const struct weir_grid_config *config, struct weir_err *err)
{
    struct lists lists;
    return read_lists(config, &lists, err);
}

/* ---- command lines ---- */

static void add_number(struct weir_words *words, const char *option, double value)
{
    char text[32];
    snprintf(text, sizeof text, "%.9g", value);
    weir_words_add_option(words, option, text);
}

static void add_settings(struct weir_words *words, const struct weir_candidate *candidate)
{
    for (int d = 0; d < N_DIMENSIONS; d++) {
        const char *value = value_of(&candidate->settings, d);
        if (strcmp(value, dimensions[d].preset) != 0)
            weir_words_add_option(words, dimensions[d].name, value);
    }
}

static int make_argv(struct weir_candidate *candidate, const struct weir_grid_config *config)
{
    const struct weir_grid_format *format = &config->formats[candidate->format];
    struct weir_words words = {0};
    weir_words_add(&words, "weir");
    weir_words_add(&words, "run");
    weir_words_add(&words, format->path);
    if (format->is_source)
        weir_words_add_all(&words, config->source_only);
    weir_words_add_all(&words, config->common);
    add_settings(&words, candidate);
    if (config->step_ms > 0 && !candidate->limit)
        add_number(&words, "step-ms", config->step_ms);
    if (candidate->cold)
        weir_words_add_option(&words, "cold", NULL);
    if (candidate->limit) { /* repeats a few batches, which are loaded into memory before the measurement */
        weir_words_add_option(&words, "no-shuffle", NULL);
        add_number(&words, "max-batches", format->limit_batches);
    }
    add_number(&words, "seconds", config->seconds);
    weir_words_add_option(&words, "log", "-");
    candidate->argv = words.argv;
    return words.failed ? -ENOMEM : 0;
}

/* ---- candidates ---- */

static struct weir_candidate *add_candidate(struct weir_grid *grid, const struct weir_candidate *candidate,
                                            const struct weir_grid_config *config, struct weir_err *err)
{
    if (grid->n == WEIR_GRID_CANDIDATES) {
        weir_err_set(err, -EINVAL, "the grid has more than %d candidates; specify fewer values for the options",
                     WEIR_GRID_CANDIDATES);
        return NULL;
    }
    struct weir_candidate *added = &grid->candidates[grid->n];
    *added = *candidate;
    if (make_argv(added, config) < 0) {
        weir_err_set(err, -ENOMEM, "out of memory");
        return NULL;
    }
    grid->n++;
    return added;
}

/* Returns the index of the candidate's upper bound, which is added if it is missing, or -1 for none. All prefetch
 * values and engines share the same bound. */
static int limit_of(struct weir_grid *grid, const struct weir_candidate *candidate,
                    const struct weir_grid_config *config, struct weir_err *err)
{
    struct weir_candidate limit = {
        .format = candidate->format, .limit = true, .limit_candidate = -1, .settings = candidate->settings};
    if (config->formats[candidate->format].limit_batches == 0 || config->step_ms > 0)
        return -1;
    snprintf(limit.settings.io, sizeof limit.settings.io, "null");
    snprintf(limit.settings.prefetch, sizeof limit.settings.prefetch, "auto");
    for (int i = 0; i < grid->n; i++)
        if (grid->candidates[i].limit && grid->candidates[i].format == limit.format &&
            memcmp(&grid->candidates[i].settings, &limit.settings, sizeof limit.settings) == 0)
            return i;
    return add_candidate(grid, &limit, config, err) ? grid->n - 1 : -EINVAL;
}

static void set_settings(struct weir_candidate_settings *settings, const struct lists *lists, int combination)
{
    memset(settings, 0, sizeof *settings); /* includes the padding, because settings are compared with memcmp */
    for (int d = N_DIMENSIONS - 1; d >= 0; d--) {
        snprintf(value_of(settings, d), dimensions[d].size, "%s", lists->values[d][combination % lists->n[d]]);
        combination /= lists->n[d];
    }
}

/* Rejects GPU decoders for batches on the CPU. */
static bool goes_together(const struct weir_candidate_settings *settings)
{
    bool gpu = strncmp(settings->device, "cuda", 4) == 0;
    return weir_decoder_check_device(settings->decoder, gpu, NULL) != -EINVAL;
}

static int add_candidates(struct weir_grid *grid, const struct weir_grid_config *config, const struct lists *lists,
                          bool cold, struct weir_err *err)
{
    int combinations = 1;
    for (int d = 0; d < N_DIMENSIONS; d++)
        combinations *= lists->n[d]; /* at most 16^6 */
    for (int f = 0; f < config->n_formats; f++) {
        for (int c = 0; c < combinations; c++) {
            struct weir_candidate candidate = {
                .format = f, .cold = cold, .limit_candidate = -1, .default_candidate = c == 0};
            set_settings(&candidate.settings, lists, c);
            if (!goes_together(&candidate.settings) || (cold && config->formats[f].is_remote))
                continue;
            struct weir_candidate *added = add_candidate(grid, &candidate, config, err);
            int limit = added && !cold ? limit_of(grid, added, config, err) : -1;
            if (!added || limit < -1)
                return err->code ? err->code : -ENOMEM;
            added->limit_candidate = limit;
        }
    }
    return 0;
}

int weir_grid_open(struct weir_grid *grid, const struct weir_grid_config *config, struct weir_err *err)
{
    struct weir_err own = WEIR_ERR_NONE;
    struct lists lists;
    *grid = (struct weir_grid){.formats = config->formats, .n_formats = config->n_formats};
    int rc = read_lists(config, &lists, &own);
    if (rc == 0)
        grid->candidates = calloc(WEIR_GRID_CANDIDATES, sizeof *grid->candidates);
    if (rc == 0 && !grid->candidates)
        rc = weir_err_set(&own, -ENOMEM, "out of memory");
    if (rc == 0 && lists.warm)
        rc = add_candidates(grid, config, &lists, false, &own);
    grid->n_warm = grid->n;
    if (rc == 0 && lists.cold)
        rc = add_candidates(grid, config, &lists, true, &own);
    if (rc < 0) {
        weir_grid_close(grid);
        return weir_err_set(err, rc, "%s", own.text);
    }
    return 0;
}

void weir_grid_close(struct weir_grid *grid)
{
    for (int i = 0; i < grid->n; i++)
        weir_candidate_free(&grid->candidates[i]);
    free(grid->candidates);
    memset(grid, 0, sizeof *grid);
}

void weir_grid_settings(const struct weir_grid *grid, const struct weir_candidate *candidate, char *text, size_t size)
{
    size_t used = 0;
    *text = '\0';
    for (int d = 0; d < N_DIMENSIONS; d++) {
        bool varies = false;
        for (int i = 0; i < grid->n; i++)
            varies |= !grid->candidates[i].limit && strcmp(value_of(&grid->candidates[i].settings, d),
                                                           value_of(&grid->candidates[0].settings, d)) != 0;
        if (varies && used < size)
            used += (size_t)snprintf(text + used, size - used, "%s%s %s", used ? ", " : "", dimensions[d].name,
                                     value_of(&candidate->settings, d));
    }
}

const struct weir_candidate *weir_grid_best(const struct weir_grid *grid, int format, bool cold)
{
    const struct weir_candidate *best = NULL;
    double most = -1;
    for (int i = 0; i < grid->n; i++) {
        const struct weir_candidate *candidate = &grid->candidates[i];
        if (candidate->limit || candidate->format != format || candidate->cold != cold || candidate->n_trials == 0)
            continue;
        double median = weir_candidate_median(candidate, weir_trial_images_per_s);
        if (median > most) {
            best = candidate;
            most = median;
        }
    }
    return best;
}
