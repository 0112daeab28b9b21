/* The recorded statistics of columns (meta/stats.json, meta/episodes_stats.jsonl), compared with the data. Training
 * normalises with them. */
#include "base/shortage.h"
#include "datasets/index.h"
#include "datasets/lerobot/lerobot_review_priv.h"

#include <errno.h>
#include <float.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <jansson.h>

#define STATS       "meta/stats.json"
#define STATS_LINES "meta/episodes_stats.jsonl"

#define HALF_EPSILON 0x1p-10 /* of float16 */
#define HALF_MAX     65504

/* ---- statistics of the data ---- */

void weir_lerobot_stats_close(struct weir_lerobot_stats *stats)
{
    free(stats->dims);
    *stats = (struct weir_lerobot_stats){0};
}

/* Joins the statistics of two sets of numbers. */
static void join(struct weir_lerobot_moments *all, const struct weir_lerobot_moments *more)
{
    if (more->n == 0)
        return;
    if (all->n == 0) {
        *all = *more;
        return;
    }
    double n = (double)all->n + (double)more->n, away = more->mean - all->mean;
    all->squares += more->squares + away * away * ((double)all->n * (double)more->n / n);
    all->mean += away * ((double)more->n / n);
    all->min = fmin(all->min, more->min);
    all->max = fmax(all->max, more->max);
    all->n += more->n;
}

static struct weir_lerobot_moments moments_of(const double *values, int64_t rows, int width)
{
    struct weir_lerobot_moments moments = {.min = values[0], .max = values[0], .n = (uint64_t)rows};
    for (int64_t t = 0; t < rows; t++) {
        double value = values[t * width];
        moments.mean += (value - moments.mean) / (double)(t + 1);
        moments.min = fmin(moments.min, value);
        moments.max = fmax(moments.max, value);
    }
    for (int64_t t = 0; t < rows; t++)
        moments.squares += (values[t * width] - moments.mean) * (values[t * width] - moments.mean);
    return moments;
}

int weir_lerobot_stats_add(struct weir_lerobot_stats *stats, const struct weir_lerobot_feature *feature,
                           enum weir_number_type type, const void *values, int64_t rows, int64_t *bad)
{
    size_t width = (size_t)feature->width, n = (size_t)rows * width;
    double *numbers = malloc(n * sizeof *numbers);
    *bad = -1;
    if (!stats->dims)
        stats->dims = calloc(width, sizeof *stats->dims);
    if (!numbers || !stats->dims) {
        free(numbers);
        return -ENOMEM;
    }
    weir_numbers_convert(type, values, n, WEIR_F64, numbers);
    for (size_t i = 0; i < n && *bad < 0; i++)
        *bad = isfinite(numbers[i]) ? -1 : (int64_t)i;
    stats->is_unknown = stats->is_unknown || *bad >= 0 || (stats->rows > 0 && stats->type != type);
    for (size_t d = 0; d < width && !stats->is_unknown; d++) {
        struct weir_lerobot_moments more = moments_of(numbers + d, rows, (int)width);
        join(&stats->dims[d], &more);
    }
    stats->type = type;
    stats->rows += rows;
    stats->longest = rows > stats->longest ? rows : stats->longest;
    free(numbers);
    return 0;
}

/* ---- how far recorded statistics may be off ---- */

/* LeRobot computes the statistics of each episode in the column's type, then joins them in double precision. Adding n
 * float32 numbers one after the other is off by up to n rounding errors. A deviation is the root of a difference of
 * mean squares, so that it is off as much as these. A column can be float32 in the file only.
 * The mean of float16 numbers and that of their squares are float16 too. */
static double rounding(const struct weir_lerobot_feature *feature, const struct weir_lerobot_stats *stats)
{
    return ((double)stats->longest + 8) * (FLT_EPSILON / 2) + (feature->is_half ? 4 * HALF_EPSILON : 0);
}

/* Squares that exceed the column's type wrap around or are infinite in LeRobot. */
static bool do_squares_fit(const struct weir_lerobot_feature *feature, const struct weir_lerobot_stats *stats,
                           const struct weir_lerobot_moments *data)
{
    static const double max[WEIR_NUMBER_TYPES] = {
        [WEIR_F32] = FLT_MAX,    [WEIR_F64] = DBL_MAX, [WEIR_I8] = INT8_MAX,  [WEIR_I16] = INT16_MAX,
        [WEIR_I32] = INT32_MAX,  [WEIR_I64] = 0x1p63,  [WEIR_U8] = UINT8_MAX, [WEIR_U16] = UINT16_MAX,
        [WEIR_U32] = UINT32_MAX, [WEIR_U64] = 0x1p64,
    };
    double most = fmax(fabs(data->min), fabs(data->max));
    return most * most <= (feature->is_half ? HALF_MAX : max[stats->type]);
}

/* ---- comparing ---- */

enum { MIN, MAX, MEAN, STD, STATISTICS };
static const char *const names[STATISTICS] = {"min", "max", "mean", "std"};

static double value_of(const struct weir_lerobot_moments *data, int statistic)
{
    const double values[STATISTICS] = {data->min, data->max, data->mean, sqrt(data->squares / (double)data->n)};
    return values[statistic];
}

static bool fits(const struct weir_lerobot_feature *feature, const struct weir_lerobot_stats *stats,
                 const struct weir_lerobot_moments *data, int statistic, double recorded)
{
    double value = value_of(data, statistic), off = rounding(feature, stats), n = (double)data->n;
    double variance = data->squares / n, square = variance + data->mean * data->mean;
    if (statistic == MIN || statistic == MAX)
        return fabs(recorded - value) <= 4 * (FLT_EPSILON / 2) * fabs(value) + FLT_MIN;
    if (statistic == MEAN)
        return fabs(recorded - value) <= off * sqrt(square) + FLT_MIN;
    double most = 4 * off * square + FLT_MIN, unbiased = n > 1 ? data->squares / (n - 1) : variance;
    bool is_near = fabs(recorded * recorded - variance) <= most || fabs(recorded * recorded - unbiased) <= most;
    return !isfinite(square) || !do_squares_fit(feature, stats, data) || (recorded >= 0 && is_near);
}

/* Appends the numbers of nested lists to values, which has room for max. Returns their number, which can be larger, or
 * -1 if there is anything else in the lists. */
static int64_t flatten(json_t *list, double *values, int64_t n, int64_t max)
{
    json_t *element;
    size_t i;
    if (json_is_number(list) || json_is_boolean(list)) {
        if (n < max)
            values[n] = json_is_number(list) ? json_number_value(list) : json_is_true(list);
        return n + 1;
    }
    if (!json_is_array(list))
        return -1;
    json_array_foreach(list, i, element)
    {
        if ((n = flatten(element, values, n, max)) < 0)
            return -1;
    }
    return n;
}

/* Recorded values of one statistic, and the data's; LeRobot 0.4 has one value per element of the last dimension. */
static bool compare(const struct weir_lerobot_feature *feature, const struct weir_lerobot_stats *stats, int statistic,
                    const double *recorded, int n, char *why, size_t size)
{
    int first = -1, more = -1;
    double value = 0;
    for (int i = 0; i < n; i++) {
        struct weir_lerobot_moments data = {0};
        for (int d = i; d < feature->width; d += n)
            join(&data, &stats->dims[d]);
        if (fits(feature, stats, &data, statistic, recorded[i]))
            continue;
        value = first < 0 ? value_of(&data, statistic) : value;
        first = first < 0 ? i : first;
        more++;
    }
    if (first < 0)
        return true;
    int length = snprintf(why, size, "%s: %s[%d] is %.9g, but that of the data is %.9g", feature->key, names[statistic],
                          first, recorded[first], value);
    if (more > 0 && length > 0 && (size_t)length < size)
        snprintf(why + length, size - (size_t)length, " (and %d more)", more);
    return false;
}

static bool does_count_fit(json_t *count, const struct weir_lerobot_feature *feature,
                           const struct weir_lerobot_stats *stats, char *why, size_t size)
{
    double recorded = 0;
    if (!count || flatten(count, &recorded, 0, 1) != 1 || recorded == (double)stats->rows)
        return true;
    snprintf(why, size, "%s: count is %.0f, but there are %" PRId64 " rows", feature->key, recorded, stats->rows);
    return false;
}

/* Returns 1 if the recorded statistics of a feature, such as {"min": [0, 1], "mean": ...}, fit those of the data; 0 if
 * they do not, and the first difference in why; or -ENOMEM. */
static int stats_fit(json_t *recorded, const struct weir_lerobot_feature *feature,
                     const struct weir_lerobot_stats *stats, char *why, size_t size)
{
    int last = feature->rank > 0 ? feature->dims[feature->rank - 1] : feature->width;
    double *values = malloc((size_t)feature->width * sizeof *values);
    if (!values)
        return -ENOMEM;
    bool fit = does_count_fit(json_object_get(recorded, "count"), feature, stats, why, size);
    for (int i = 0; i < STATISTICS && fit; i++) {
        json_t *list = json_object_get(recorded, names[i]);
        int64_t n = list ? flatten(list, values, 0, feature->width) : 0;
        if (list && n != feature->width && n != last) {
            snprintf(why, size, "%s: %s must have %d numbers", feature->key, names[i], feature->width);
            fit = false;
        }
        fit = fit && (n == 0 || compare(feature, stats, i, values, (int)n, why, size));
    }
    free(values);
    return fit;
}

/* ---- the files ---- */

/* LeRobot numbers episodes and tasks anew when it joins datasets or removes episodes, and keeps the statistics of the
 * old numbers. Nothing normalises with them. */
static bool is_renumbered(const char *key)
{
    return strcmp(key, "index") == 0 || strcmp(key, "episode_index") == 0 || strcmp(key, "task_index") == 0;
}

static int compare_stats(const struct weir_lerobot_review *r, json_t *recorded, const struct weir_lerobot_stats *stats,
                         const char *part)
{
    int rc = 0;
    for (int i = 0; i < r->lerobot->n_features && rc == 0; i++) {
        char why[320];
        const struct weir_lerobot_feature *feature = &r->lerobot->features[i];
        json_t *about = json_object_get(recorded, feature->key);
        if (stats[i].is_unknown || !stats[i].dims || !about || is_renumbered(feature->key))
            continue;
        int fits = stats_fit(about, feature, &stats[i], why, sizeof why);
        if (fits < 0)
            return weir_no_memory(r->err);
        rc = fits ? 0 : weir_lerobot_report(r, WEIR_REVIEW_STATS, part, -1, "%s; compute them again", why);
    }
    return rc;
}

/* Reports a file of statistics that cannot be read. */
static int report_unreadable(const struct weir_lerobot_review *r, const char *name, int rc, const struct weir_err *why)
{
    if (rc == -ENOMEM)
        return weir_no_memory(r->err);
    return rc == -EBADMSG ? weir_lerobot_report(r, WEIR_REVIEW_STATS, NULL, -1, "%s", why->text)
                          : weir_lerobot_report(r, WEIR_REVIEW_MISSING, name, -1,
                                                "%s; LeRobot normalises with these statistics", strerror(-rc));
}

/* Version 3.0: the statistics of the whole dataset. */
static int review_joined(const struct weir_lerobot_review *r)
{
    char *text;
    size_t n;
    json_t *recorded = NULL;
    struct weir_err why = WEIR_ERR_NONE, not_json = WEIR_ERR_NONE;
    int rc = weir_lerobot_read(r->lerobot, STATS, &text, &n, &why);
    if (rc == 0 && (rc = weir_json_object_parse(text, n, &recorded, &not_json)) < 0)
        weir_err_set(&why, rc, STATS ": %s", not_json.text);
    free(text);
    if (rc < 0)
        return report_unreadable(r, STATS, rc, &why);
    rc = compare_stats(r, recorded, r->stats, STATS);
    json_decref(recorded);
    return rc;
}

static int by_index(const void *key, const void *element)
{
    int64_t index = *(const int64_t *)key, other = ((const struct weir_lerobot_episode *)element)->index;
    return (index > other) - (index < other);
}

/* Version 2.1: the statistics of one episode. A negative result of report() is kept apart from errors of the file. */
static int review_line(void *user, json_t *object, int line, struct weir_err *err)
{
    struct weir_lerobot_review *r = user;
    const struct weir_lerobot *lerobot = r->lerobot;
    int64_t index = json_integer_value(json_object_get(object, "episode_index"));
    const struct weir_lerobot_episode *episode =
        bsearch(&index, lerobot->episodes, (size_t)lerobot->n_episodes, sizeof *episode, by_index);
    json_t *recorded = json_object_get(object, "stats");
    char part[64];
    (void)line, (void)err;
    if (!episode || !recorded)
        return 0;
    size_t number = (size_t)(episode - lerobot->episodes);
    r->has_line[number] = true;
    snprintf(part, sizeof part, STATS_LINES ": episode %" PRId64, index);
    r->stopped = compare_stats(r, recorded, r->stats + number * (size_t)lerobot->n_features, part);
    return r->stopped;
}

static int review_lines(struct weir_lerobot_review *r)
{
    struct weir_err why = WEIR_ERR_NONE;
    int rc = weir_lerobot_read_lines(r->lerobot, STATS_LINES, review_line, r, &why);
    if (rc < 0)
        return r->stopped < 0 ? r->stopped : report_unreadable(r, STATS_LINES, rc, &why);
    for (int i = 0; i < r->lerobot->n_episodes && rc == 0; i++)
        if (!r->has_line[i])
            rc = weir_lerobot_report(r, WEIR_REVIEW_MISSING, STATS_LINES, -1,
                                     "has no statistics of episode %" PRId64 "; LeRobot normalises with them",
                                     r->lerobot->episodes[i].index);
    return rc;
}

int weir_lerobot_review_stats(struct weir_lerobot_review *r)
{
    return r->lerobot->is_third ? review_joined(r) : review_lines(r);
}
