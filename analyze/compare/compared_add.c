/* Adds measurements and settings to what is known of a file. */
#include "analyze/compare/compared_priv.h"
#include "base/grow.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

void weir_compared_begin(struct weir_compared *compared, const char *path)
{
    *compared = (struct weir_compared){.path = path, .cores = -1, .others_cores = -1};
}

static void free_stage(struct weir_compared_stage *stage)
{
    weir_series_free(&stage->seconds);
    weir_series_free(&stage->fastest);
    weir_series_free(&stage->calls);
}

void weir_compared_free(struct weir_compared *compared)
{
    for (int i = 0; i < compared->n_stages; i++)
        free_stage(&compared->stages[i]);
    free(compared->stages);
    free(compared->settings);
    weir_series_free(&compared->whole);
    weir_series_free(&compared->wait);
    *compared = (struct weir_compared){0};
}

struct weir_compared_stage *weir_compared_find(const struct weir_compared *compared, const char *name)
{
    for (int i = 0; i < compared->n_stages; i++)
        if (strcmp(compared->stages[i].name, name) == 0)
            return &compared->stages[i];
    return NULL;
}

int weir_compared_fastest(struct weir_compared *compared, const char *name, double fastest_s, double calls)
{
    struct weir_compared_stage *stage = weir_compared_find(compared, name);
    int code = stage ? weir_series_add(&stage->fastest, fastest_s) : 0;
    return stage && code == 0 ? weir_series_add(&stage->calls, calls) : code;
}

int weir_compared_stage(struct weir_compared *compared, const char *name, double seconds)
{
    struct weir_compared_stage *stage = weir_compared_find(compared, name);
    if (stage)
        return weir_series_add(&stage->seconds, seconds);
    if (compared->n_stages == WEIR_COMPARED_STAGES)
        return 0;
    if (!weir_grow(&compared->stages, (size_t)compared->n_stages, sizeof *compared->stages))
        return -ENOMEM;
    stage = &compared->stages[compared->n_stages++];
    *stage = (struct weir_compared_stage){0};
    snprintf(stage->name, sizeof stage->name, "%s", name);
    return weir_series_add(&stage->seconds, seconds);
}

int weir_compared_setting(struct weir_compared *compared, const char *name, const char *value)
{
    struct weir_compared_setting *setting = NULL;
    for (int i = 0; i < compared->n_settings && !setting; i++)
        if (strcmp(compared->settings[i].name, name) == 0)
            setting = &compared->settings[i];
    if (!setting && compared->n_settings == WEIR_COMPARED_SETTINGS)
        return 0;
    if (!setting && !weir_grow(&compared->settings, (size_t)compared->n_settings, sizeof *compared->settings))
        return -ENOMEM;
    if (!setting)
        setting = &compared->settings[compared->n_settings++];
    snprintf(setting->name, sizeof setting->name, "%s", name);
    snprintf(setting->value, sizeof setting->value, "%s", value);
    return 0;
}

void weir_series_drop_first(struct weir_series *series, size_t from)
{
    if (series->n <= from + WEIR_DELTA_LEAST)
        return;
    memmove(series->values + from, series->values + from + 1, (series->n - from - 1) * sizeof *series->values);
    series->n--;
}
