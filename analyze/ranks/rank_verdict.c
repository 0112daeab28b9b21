#include "analyze/ranks/rank_verdict.h"
#include "analyze/verdict/verdict.h"
#include "base/numbers.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

void weir_rank_history_add(struct weir_rank_history *history, int slow, double data_wait)
{
    if (history->n == WEIR_RANK_TABLES) {
        history->n--;
        memmove(history->slow, history->slow + 1, (size_t)history->n * sizeof *history->slow);
        memmove(history->data_wait, history->data_wait + 1, (size_t)history->n * sizeof *history->data_wait);
    }
    history->slow[history->n] = slow;
    history->data_wait[history->n++] = data_wait;
}

const char *weir_rank_cause_name(enum weir_rank_cause cause)
{
    static const char *const names[WEIR_RANK_CAUSES] = {"none",      "data",  "step",   "throttled",
                                                        "neighbour", "cores", "storage"};
    return names[cause];
}

/* ---- one figure of all ranks ---- */

typedef double figure_fn(const struct weir_rank_record *record);

static double step_of(const struct weir_rank_record *record)
{
    return record->step_s;
}

static double data_of(const struct weir_rank_record *record)
{
    return record->data_s;
}

static double own_of(const struct weir_rank_record *record)
{
    return record->own_s;
}

/* The time in which a rank does not wait for the others. */
static double busy_of(const struct weir_rank_record *record)
{
    return record->data_s + fmax(record->own_s, 0);
}

static double spinning_of(const struct weir_rank_record *record)
{
    double outside_s = record->step_s - record->data_s;
    return outside_s > 0 ? fmax(record->own_s, 0) / outside_s : 1;
}

static double wait_of(const struct weir_rank_record *record)
{
    return record->data_s / record->step_s;
}

static double cores_of(const struct weir_rank_record *record)
{
    return record->cores;
}

static double core_wait_of(const struct weir_rank_record *record)
{
    return fmax(record->core_wait, 0);
}

static double loop_core_wait_of(const struct weir_rank_record *record)
{
    return fmax(record->core_wait_s, 0);
}

static double throttled_of(const struct weir_rank_record *record)
{
    return fmax(record->throttled, 0);
}

static double stalled_of(const struct weir_rank_record *record)
{
    return record->stalled_s;
}

/* The time that the loop and the loading threads compute. */
static double compute_of(const struct weir_rank_record *record)
{
    if (record->compute_s >= 0)
        return record->compute_s;
    return fmax(record->work_s + fmax(record->own_s, 0) - record->stalled_s, 0);
}

static double work_of(const struct weir_rank_record *record)
{
    return record->work_s;
}

static double read_of(const struct weir_rank_record *record)
{
    return record->read_s;
}

struct ranks {
    const struct weir_rank *ranks;
    int n;
    double *values; /* room for n */
};

/* Returns the median of the ranks with a record, without `left_out`. */
static double median(const struct ranks *all, figure_fn *figure, const struct weir_rank *left_out)
{
    int n = 0;
    for (int i = 0; i < all->n; i++)
        if (all->ranks[i].record && &all->ranks[i] != left_out)
            all->values[n++] = figure(all->ranks[i].record);
    return weir_median(all->values, (size_t)n);
}

static const struct weir_rank *largest(const struct ranks *all, figure_fn *figure)
{
    const struct weir_rank *found = NULL;
    for (int i = 0; i < all->n; i++)
        if (all->ranks[i].record && (!found || figure(all->ranks[i].record) > figure(found->record)))
            found = &all->ranks[i];
    return found;
}

static double least(const struct ranks *all, figure_fn *figure)
{
    double found = INFINITY;
    for (int i = 0; i < all->n; i++)
        if (all->ranks[i].record)
            found = fmin(found, figure(all->ranks[i].record));
    return found;
}

static double excess(const struct ranks *all, figure_fn *figure, const struct weir_rank *rank)
{
    return figure(rank->record) - median(all, figure, rank);
}

/* ---- the slow rank ---- */

/* Where ranks do not wait for each other, the slow rank has the longest step. */
static bool find_independent(struct weir_rank_verdict *verdict, const struct ranks *all)
{
    const struct weir_rank *longest = largest(all, step_of);
    double excess_s = excess(all, step_of, longest);
    if (excess_s < WEIR_RANK_SKEW * (longest->record->step_s - excess_s))
        return false;
    verdict->finding = WEIR_RANKS_SLOW;
    verdict->slow = longest;
    verdict->excess_s = excess_s;
    return true;
}

/* In a synchronous loop all steps take equally long: the others wait inside their step, asleep in a collective. The
 * slow rank is the one that waits least for the others. If loops spin in collectives, or their CPU time is unknown,
 * only waits for data tell ranks apart. */
static void find_synchronous(struct weir_rank_verdict *verdict, const struct ranks *all)
{
    bool visible = least(all, own_of) >= 0 && median(all, spinning_of, NULL) < WEIR_RANK_SPINNING;
    figure_fn *figure = visible ? busy_of : data_of;
    const struct weir_rank *busiest = largest(all, figure);
    double excess_s = excess(all, figure, busiest);
    verdict->blind = !visible;
    if (excess_s < fmax(WEIR_RANK_EXCESS * verdict->step_s, WEIR_RANK_LEAST_S))
        return;
    verdict->finding = WEIR_RANKS_SLOW;
    verdict->slow = busiest;
    verdict->excess_s = excess_s;
}

/* ---- its cause ---- */

/* Returns whether stalls explain the slow rank's extra time rather than computing. A rank with more to compute also
 * waits more for cores, in proportion, where cores are short for all ranks: only stalls beyond the others' proportion
 * count. */
static bool stalls_more(const struct ranks *all, const struct weir_rank *slow)
{
    double compute_s = compute_of(slow->record), others_s = median(all, compute_of, slow);
    double others_ratio = others_s > 0 ? median(all, stalled_of, slow) / others_s : 0;
    double by_computing_s = fmax(compute_s - others_s, 0) * (1 + others_ratio);
    return stalled_of(slow->record) - compute_s * others_ratio > by_computing_s;
}

/* Returns what its host lacks, or NONE. */
static enum weir_rank_cause cause_of_host(const struct ranks *all, const struct weir_rank *slow)
{
    const struct weir_rank_record *record = slow->record;
    bool stalls = stalls_more(all, slow);
    if (stalls && record->throttled >= WEIR_VERDICT_THROTTLED &&
        record->throttled >= 2 * median(all, throttled_of, slow))
        return WEIR_RANK_CAUSE_THROTTLED;
    if (stalls && record->core_wait >= median(all, core_wait_of, slow) + WEIR_VERDICT_OTHERS &&
        record->others_cores >= WEIR_VERDICT_OTHERS * record->machine_cores)
        return WEIR_RANK_CAUSE_NEIGHBOUR;
    if (record->cores > 0 && record->cores <= WEIR_RANK_FEWER_CORES * median(all, cores_of, slow))
        return WEIR_RANK_CAUSE_CORES;
    return WEIR_RANK_CAUSE_NONE;
}

static enum weir_rank_cause cause_of_data(const struct ranks *all, const struct weir_rank *slow)
{
    enum weir_rank_cause host = cause_of_host(all, slow);
    double read_s = excess(all, read_of, slow), work_s = excess(all, work_of, slow);
    if (host != WEIR_RANK_CAUSE_NONE)
        return host;
    return read_s > WEIR_RANK_LEAST_S && read_s >= work_s / 2 ? WEIR_RANK_CAUSE_STORAGE : WEIR_RANK_CAUSE_DATA;
}

static enum weir_rank_cause cause_of_step(const struct ranks *all, const struct weir_rank *slow)
{
    enum weir_rank_cause host = cause_of_host(all, slow);
    bool starved = excess(all, loop_core_wait_of, slow) >= excess(all, own_of, slow) / 2;
    if (host == WEIR_RANK_CAUSE_THROTTLED || (host != WEIR_RANK_CAUSE_NONE && starved))
        return host;
    return WEIR_RANK_CAUSE_STEP;
}

static double median_stage(const struct ranks *all, const struct weir_rank_stage *stage,
                           const struct weir_rank *left_out)
{
    int n = 0;
    for (int i = 0; i < all->n; i++)
        if (all->ranks[i].record && &all->ranks[i] != left_out)
            all->values[n++] = weir_rank_record_stage_s(all->ranks[i].record, stage);
    return weir_median(all->values, (size_t)n);
}

/* Finds the stage that explains the cause: one of the loop for its step, one of the loading threads otherwise. */
static void find_stage(struct weir_rank_verdict *verdict, const struct ranks *all)
{
    const struct weir_rank_record *record = verdict->slow->record;
    bool of_loop = verdict->cause == WEIR_RANK_CAUSE_STEP;
    double most_s = WEIR_RANK_LEAST_S;
    for (int i = 0; i < record->n_stages; i++) {
        const struct weir_rank_stage *stage = &record->stages[i];
        bool in_loop = strcmp(stage->side, weir_report_side_name(WEIR_SIDE_CONSUMER)) == 0;
        double others_s = median_stage(all, stage, verdict->slow);
        if (in_loop != of_loop || stage->s - others_s < most_s)
            continue;
        most_s = stage->s - others_s;
        verdict->stage = stage;
        verdict->others_stage_s = others_s;
    }
}

static void explain(struct weir_rank_verdict *verdict, const struct ranks *all)
{
    const struct weir_rank *slow = verdict->slow;
    verdict->data_s = slow->record->data_s;
    verdict->others_data_s = median(all, data_of, slow);
    verdict->own_s = slow->record->own_s;
    verdict->others_own_s = least(all, own_of) < 0 ? -1 : median(all, own_of, slow);
    verdict->others_cores = median(all, cores_of, slow);
    bool by_data = verdict->data_s - verdict->others_data_s >= verdict->excess_s / 2;
    verdict->cause = by_data ? cause_of_data(all, slow) : cause_of_step(all, slow);
    find_stage(verdict, all);
}

/* Counts the different slow ranks of the latest tables with this one. Loading is too slow everywhere if each of them
 * waits for data and no rank is slow in more than half of at least three. */
static void judge_changes(struct weir_rank_verdict *verdict, const struct weir_rank_history *history)
{
    int counts = 0, most = 0, waits = verdict->data_wait >= WEIR_VERDICT_WAIT_LEAST, n = history ? history->n : 0;
    for (int i = 0; i <= n; i++) {
        int slow = i < n ? history->slow[i] : verdict->slow->rank, same = 0, before = 0;
        for (int j = 0; j <= n; j++) {
            bool is_same = (j < n ? history->slow[j] : verdict->slow->rank) == slow;
            same += is_same;
            before += is_same && j < i;
        }
        counts += before == 0 && slow >= 0;
        most = slow >= 0 && same > most ? same : most;
        waits += i < n && history->data_wait[i] >= WEIR_VERDICT_WAIT_LEAST;
    }
    verdict->changing = counts;
    if (n + 1 >= 3 && waits == n + 1 && counts >= 2 && 2 * most <= n + 1)
        verdict->finding = WEIR_RANKS_CHANGING;
}

void weir_rank_verdict_make(struct weir_rank_verdict *verdict, const struct weir_rank *ranks, int n,
                            const struct weir_rank_history *history)
{
    struct ranks all = {ranks, n, calloc((size_t)(n > 0 ? n : 1), sizeof(double))};
    *verdict = (struct weir_rank_verdict){.own_s = -1, .others_own_s = -1};
    for (int i = 0; i < n; i++)
        verdict->reported += ranks[i].record != NULL;
    if (all.values && verdict->reported > 0) {
        verdict->step_s = median(&all, step_of, NULL);
        verdict->step_skew = largest(&all, step_of)->record->step_s / verdict->step_s;
        verdict->data_wait = median(&all, wait_of, NULL);
        verdict->data_s = verdict->others_data_s = median(&all, data_of, NULL);
    }
    if (all.values && verdict->reported >= 2) {
        verdict->finding = WEIR_RANKS_EVEN;
        verdict->synchronous = !find_independent(verdict, &all);
        if (verdict->synchronous)
            find_synchronous(verdict, &all);
        if (verdict->finding == WEIR_RANKS_SLOW) {
            explain(verdict, &all);
            judge_changes(verdict, history);
        }
    }
    free(all.values);
}
