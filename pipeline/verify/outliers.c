/* Finds outliers using the quartiles of each dimension, which a few outliers do not change. */
#include "pipeline/verify/findings.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

enum { SAMPLE_MAX = 65536 /* max values used to compute the quartiles */ };
/* Min distance of an outlier from the median, as a multiple of the distance between the quartiles. If that distance is
 * less than 1, 1 is used instead, because the quartiles of a gripper that rarely opens are equal. */
static const double FAR_RATIO = 1000;

struct spread {
    double low, median, high;
};

/* State or actions of the whole dataset. */
struct columns {
    const struct weir_dataset *dataset;
    bool actions;
    int dim;
};

static const float *rows_of(const struct columns *c, int episode)
{
    return c->actions ? weir_dataset_actions(c->dataset, episode) : weir_dataset_qpos(c->dataset, episode);
}

static int by_value(const void *a, const void *b)
{
    float left = *(const float *)a, right = *(const float *)b;
    return (left > right) - (left < right);
}

/* Computes the quartiles of dimension d from equally spaced values. sample has room for SAMPLE_MAX values. */
static struct spread spread_of(const struct columns *c, int d, uint64_t steps, float *sample)
{
    uint64_t every = steps / SAMPLE_MAX + 1, next = 0;
    size_t n = 0;
    for (int e = 0; e < weir_dataset_episodes(c->dataset); e++) {
        const float *rows = rows_of(c, e);
        uint64_t of = (uint64_t)weir_dataset_steps(c->dataset, e);
        for (; next < of; next += every)
            sample[n++] = rows[next * (uint64_t)c->dim + (uint64_t)d];
        next -= of;
    }
    qsort(sample, n, sizeof *sample, by_value);
    return (struct spread){sample[n / 4], sample[n / 2], sample[n - 1 - n / 4]};
}

static void report(const struct columns *c, int episode, int d, int t, int times, const struct spread *spread,
                   const struct weir_verify_config *config, struct weir_verify_totals *totals)
{
    char why[192];
    int n = snprintf(why, sizeof why, "is %g, but half of all values are between %g and %g",
                     (double)rows_of(c, episode)[(size_t)t * (size_t)c->dim + (size_t)d], spread->low, spread->high);
    if (times > 1)
        snprintf(why + n, sizeof why - (size_t)n, " (%d such steps in the episode)", times);
    struct weir_finding finding = {.kind = WEIR_FOUND_OUTLIER,
                                   .file = weir_dataset_episode_path(c->dataset, episode),
                                   .dataset = c->actions ? weir_dataset_action_key(c->dataset, episode)
                                                         : weir_dataset_qpos_key(c->dataset, episode),
                                   .t = t,
                                   .dimension = d,
                                   .dimensions = 1,
                                   .why = why};
    weir_finding_report(&finding, config, totals);
}

static void look_at_dimension(const struct columns *c, int d, const struct spread *spread,
                              const struct weir_verify_config *config, struct weir_verify_totals *totals)
{
    double between = spread->high - spread->low, most = FAR_RATIO * (between > 1 ? between : 1);
    for (int e = 0; e < weir_dataset_episodes(c->dataset); e++) {
        const float *rows = rows_of(c, e);
        int first = -1, times = 0;
        for (int t = 0; t < weir_dataset_steps(c->dataset, e); t++)
            if (fabs(rows[(size_t)t * (size_t)c->dim + (size_t)d] - spread->median) > most) {
                first = first < 0 ? t : first;
                times++;
            }
        if (times > 0)
            report(c, e, d, first, times, spread, config, totals);
    }
}

int weir_findings_outliers(const struct weir_dataset *dataset, const struct weir_verify_config *config,
                           struct weir_verify_totals *totals)
{
    struct columns both[] = {{dataset, false, weir_dataset_qpos_dim(dataset)},
                             {dataset, true, weir_dataset_action_dim(dataset)}};
    uint64_t steps = 0;
    float *sample = malloc(SAMPLE_MAX * sizeof *sample);
    if (!sample)
        return -ENOMEM;
    for (int e = 0; e < weir_dataset_episodes(dataset); e++)
        steps += (uint64_t)weir_dataset_steps(dataset, e);
    for (int i = 0; i < 2 && steps > 0; i++)
        for (int d = 0; d < both[i].dim; d++) {
            struct spread spread = spread_of(&both[i], d, steps, sample);
            look_at_dimension(&both[i], d, &spread, config, totals);
        }
    free(sample);
    return 0;
}
