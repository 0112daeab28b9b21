#include "analyze/compare/comparison.h"
#include "base/grow.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#define SMALL       0.01 /* of the largest stage */
#define CALLS_APART 0.10
#define FASTEST_S   1e-4 /* shorter calls depend on the state of caches */
#define FASTEST     0.02 /* smaller changes of the fastest call are noise */

/* Of more calls, the fastest one is faster. */
static bool has_equal_calls(const struct weir_compared_stage *before, const struct weir_compared_stage *after)
{
    double ratio = weir_series_median(&after->calls) / weir_series_median(&before->calls);
    return ratio > 1 - CALLS_APART && ratio < 1 / (1 - CALLS_APART);
}

static int add_row(struct weir_comparison *comparison, const char *name)
{
    static const struct weir_series none = {0};
    const struct weir_compared_stage *before = weir_compared_find(comparison->before, name);
    const struct weir_compared_stage *after = weir_compared_find(comparison->after, name);
    if (!weir_grow(&comparison->rows, (size_t)comparison->n_rows, sizeof *comparison->rows))
        return -ENOMEM;
    struct weir_comparison_row *row = &comparison->rows[comparison->n_rows++];
    *row = (struct weir_comparison_row){.name = name};
    bool alike = before && after && has_equal_calls(before, after);
    int code = weir_delta_of(&row->fastest, alike ? &before->fastest : &none, alike ? &after->fastest : &none, false);
    return code < 0
               ? code
               : weir_delta_of(&row->change, before ? &before->seconds : &none, after ? &after->seconds : &none, false);
}

static double either(const struct weir_delta *change)
{
    return fmax(isnan(change->before) ? 0 : change->before, isnan(change->after) ? 0 : change->after);
}

static void mark_small(struct weir_comparison *comparison)
{
    double most = 0;
    for (int i = 0; i < comparison->n_rows; i++)
        most = fmax(most, either(&comparison->rows[i].change));
    for (int i = 0; i < comparison->n_rows; i++)
        comparison->rows[i].small = either(&comparison->rows[i].change) < SMALL * most;
}

static void confirm_fastest(struct weir_delta *fastest, int rows)
{
    weir_delta_confirm(fastest, rows);
    bool large = fabs(fastest->change) >= FASTEST && fastest->before >= FASTEST_S && fastest->after >= FASTEST_S;
    if (fastest->kind != WEIR_DELTA_UNKNOWN && !large)
        fastest->kind = WEIR_DELTA_NOISE;
}

static int add_rows(struct weir_comparison *comparison)
{
    const struct weir_compared *before = comparison->before, *after = comparison->after;
    int code = 0;
    comparison->stages_differ = before->per && after->per && strcmp(before->per, after->per) != 0;
    if (comparison->stages_differ)
        return 0;
    for (int i = 0; i < before->n_stages && code == 0; i++)
        code = add_row(comparison, before->stages[i].name);
    for (int i = 0; i < after->n_stages && code == 0; i++)
        if (!weir_compared_find(before, after->stages[i].name))
            code = add_row(comparison, after->stages[i].name);
    mark_small(comparison);
    for (int i = 0; i < comparison->n_rows; i++)
        weir_delta_confirm(&comparison->rows[i].change, comparison->n_rows);
    for (int i = 0; i < comparison->n_rows; i++)
        confirm_fastest(&comparison->rows[i].fastest, comparison->n_rows);
    return code;
}

int weir_comparison_make(struct weir_comparison *comparison, const struct weir_compared *before,
                         const struct weir_compared *after, struct weir_err *err)
{
    *comparison = (struct weir_comparison){.before = before, .after = after};
    if (strcmp(before->family, after->family) != 0 || strcmp(before->whole_name, after->whole_name) != 0)
        return weir_err_set(err, -EINVAL, "%s is %s, but %s is %s: files of different kinds cannot be compared",
                            before->path, before->what, after->path, after->what);
    int code = weir_delta_of(&comparison->whole, &before->whole, &after->whole, false);
    if (code == 0)
        code = weir_delta_of(&comparison->wait, &before->wait, &after->wait, true);
    if (code == 0)
        code = add_rows(comparison);
    return code < 0 ? weir_err_set(err, code, "out of memory") : 0;
}

void weir_comparison_free(struct weir_comparison *comparison)
{
    free(comparison->rows);
    *comparison = (struct weir_comparison){0};
}

double weir_comparison_slower(const struct weir_comparison *comparison)
{
    double change = comparison->whole.change;
    return comparison->before->more_is_better ? -change : change;
}
