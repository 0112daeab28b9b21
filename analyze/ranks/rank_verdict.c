#include "analyze/ranks/rank_verdict.h"
#include "base/numbers.h"
#include "prof/report/report_fields.h"

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

/* ---- one figure of all ranks ---- */

enum figure {
    STEP,
    DATA,
    OWN,
    BUSY,     /* time in which the rank does not wait for the others */
    SPINNING, /* fraction of the step outside data waits */
    DATA_WAIT,
    CORES,
    CORE_WAIT,
    LOOP_CORE_WAIT,
    THROTTLED,
    STALLED,
    COMPUTE, /* of the loop and the loading threads */
    WORK,
    READ,
    FIGURES
};

struct ranks {
    const struct weir_rank *ranks;
    int n;
    double (*figures)[FIGURES]; /* of each rank with a record */
    double *values;             /* room for n */
};

static void fill(double f[FIGURES], const struct weir_rank_record *record)
{
    double own_s = fmax(record->own_s, 0), outside_s = record->step_s - record->data_s;
    f[STEP] = record->step_s;
    f[DATA] = record->data_s;
    f[OWN] = record->own_s;
    f[BUSY] = record->data_s + own_s;
    f[SPINNING] = outside_s > 0 ? own_s / outside_s : 1;
    f[DATA_WAIT] = record->data_s / record->step_s;
    f[CORES] = record->cores;
    f[CORE_WAIT] = fmax(record->core_wait, 0);
    f[LOOP_CORE_WAIT] = fmax(record->core_wait_s, 0);
    f[THROTTLED] = fmax(record->throttled, 0);
    f[STALLED] = record->stalled_s;
    f[COMPUTE] = record->compute_s >= 0 ? record->compute_s : fmax(record->work_s + own_s - record->stalled_s, 0);
    f[WORK] = record->work_s;
    f[READ] = record->read_s;
}

static double of(const struct ranks *all, enum figure figure, const struct weir_rank *rank)
{
    return all->figures[rank - all->ranks][figure];
}

/* Returns the median of the ranks with a record, without `left_out`. */
static double median(const struct ranks *all, enum figure figure, const struct weir_rank *left_out)
{
    int n = 0;
    for (int i = 0; i < all->n; i++)
        if (all->ranks[i].record && &all->ranks[i] != left_out)
            all->values[n++] = all->figures[i][figure];
    return weir_median(all->values, (size_t)n);
}

static const struct weir_rank *largest(const struct ranks *all, enum figure figure)
{
    const struct weir_rank *found = NULL;
    for (int i = 0; i < all->n; i++)
        if (all->ranks[i].record && (!found || all->figures[i][figure] > of(all, figure, found)))
            found = &all->ranks[i];
    return found;
}

static bool all_own_known(const struct ranks *all)
{
    for (int i = 0; i < all->n; i++)
        if (all->ranks[i].record && all->figures[i][OWN] < 0)
            return false;
    return true;
}

static double excess(const struct ranks *all, enum figure figure, const struct weir_rank *rank)
{
    return of(all, figure, rank) - median(all, figure, rank);
}

/* ---- the slow rank ---- */

/* Where ranks do not wait for each other, the slow rank has the longest step. */
static bool find_independent(struct weir_rank_verdict *verdict, const struct ranks *all)
{
    const struct weir_rank *longest = largest(all, STEP);
    double excess_s = excess(all, STEP, longest);
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
    bool visible = all_own_known(all) && median(all, SPINNING, NULL) < WEIR_RANK_SPINNING;
    enum figure figure = visible ? BUSY : DATA;
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
    double compute_s = of(all, COMPUTE, slow), others_s = median(all, COMPUTE, slow);
    double others_ratio = others_s > 0 ? median(all, STALLED, slow) / others_s : 0;
    double by_computing_s = fmax(compute_s - others_s, 0) * (1 + others_ratio);
    return of(all, STALLED, slow) - compute_s * others_ratio > by_computing_s;
}

/* Returns what its host lacks, or WEIR_CAUSE_CANNOT_TELL. */
static enum weir_cause cause_of_host(const struct ranks *all, const struct weir_rank *slow)
{
    const struct weir_rank_record *record = slow->record;
    bool stalls = stalls_more(all, slow);
    if (stalls && record->throttled >= WEIR_VERDICT_THROTTLED && record->throttled >= 2 * median(all, THROTTLED, slow))
        return WEIR_CAUSE_QUOTA;
    if (stalls && record->core_wait >= median(all, CORE_WAIT, slow) + WEIR_VERDICT_OTHERS &&
        record->others_cores >= WEIR_VERDICT_OTHERS * record->machine_cores)
        return WEIR_CAUSE_NEIGHBOURS;
    if (record->cores > 0 && record->cores <= WEIR_RANK_FEWER_CORES * median(all, CORES, slow))
        return WEIR_CAUSE_FEWER_CORES;
    return WEIR_CAUSE_CANNOT_TELL;
}

static enum weir_cause cause_of_data(const struct ranks *all, const struct weir_rank *slow)
{
    enum weir_cause host = cause_of_host(all, slow);
    double read_s = excess(all, READ, slow), work_s = excess(all, WORK, slow);
    if (host != WEIR_CAUSE_CANNOT_TELL)
        return host;
    return read_s > WEIR_RANK_LEAST_S && read_s >= work_s / 2 ? WEIR_CAUSE_STORAGE : WEIR_CAUSE_MORE_DATA;
}

static enum weir_cause cause_of_step(const struct ranks *all, const struct weir_rank *slow)
{
    enum weir_cause host = cause_of_host(all, slow);
    bool starved = excess(all, LOOP_CORE_WAIT, slow) >= excess(all, OWN, slow) / 2;
    return host == WEIR_CAUSE_QUOTA || (host != WEIR_CAUSE_CANNOT_TELL && starved) ? host : WEIR_CAUSE_STEP;
}

static void say_cause(struct weir_diagnosis_cause *cause, const struct ranks *all, const struct weir_rank *slow)
{
    const struct weir_rank_record *record = slow->record;
    switch (cause->cause) {
    case WEIR_CAUSE_QUOTA:
        weir_diagnosis_say(cause, "its host: the CPU quota (%.1f cores) stops it %.0f %% of its working time",
                           record->quota_cores, 100 * record->throttled);
        break;
    case WEIR_CAUSE_NEIGHBOURS:
        weir_diagnosis_say(cause, "its host: it waits for a core %.0f %% of its working time", 100 * record->core_wait);
        if (record->others_cores >= 0)
            weir_diagnosis_say(cause, "; other processes use %.1f of %.0f core%s", record->others_cores,
                               record->machine_cores, record->machine_cores > 1 ? "s" : "");
        break;
    case WEIR_CAUSE_FEWER_CORES:
        weir_diagnosis_say(cause, "its host: %.0f core%s, the other ranks have %.0f", record->cores,
                           record->cores > 1 ? "s" : "", median(all, CORES, slow));
        break;
    default:
        weir_diagnosis_say(cause, "%s",
                           cause->cause == WEIR_CAUSE_STORAGE ? "its host: slow storage"
                           : cause->cause == WEIR_CAUSE_STEP  ? "its step"
                                                              : "data");
    }
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

/* Names the stage that explains the cause, with the largest excess: one of the loop for its step, one of the loading
 * threads otherwise. */
static void say_stage(struct weir_diagnosis_cause *cause, const struct ranks *all, const struct weir_rank *slow)
{
    const struct weir_rank_record *record = slow->record;
    const struct weir_rank_stage *found = NULL;
    bool of_loop = cause->cause == WEIR_CAUSE_STEP;
    double most_s = WEIR_RANK_LEAST_S;
    char a[24], b[24];
    for (int i = 0; i < record->n_stages; i++) {
        const struct weir_rank_stage *stage = &record->stages[i];
        bool in_loop = strcmp(stage->side, weir_report_side_name(WEIR_SIDE_CONSUMER)) == 0;
        double more_s = stage->s - median_stage(all, stage, slow);
        if (in_loop != of_loop || more_s < most_s)
            continue;
        most_s = more_s;
        found = stage;
    }
    if (!found)
        return;
    snprintf(cause->who, sizeof cause->who, "%s", found->name);
    weir_diagnosis_say(cause, "; %s takes %s per step, the others' median is %s", found->name,
                       weir_report_time(a, found->s), weir_report_time(b, found->s - most_s));
}

static void explain(struct weir_rank_verdict *verdict, const struct ranks *all)
{
    const struct weir_rank *slow = verdict->slow;
    struct weir_diagnosis_cause *cause = &verdict->cause;
    verdict->data_s = slow->record->data_s;
    verdict->others_data_s = median(all, DATA, slow);
    verdict->own_s = slow->record->own_s;
    verdict->others_own_s = all_own_known(all) ? median(all, OWN, slow) : -1;
    bool by_data = verdict->data_s - verdict->others_data_s >= verdict->excess_s / 2;
    cause->cause = by_data ? cause_of_data(all, slow) : cause_of_step(all, slow);
    say_cause(cause, all, slow);
    say_stage(cause, all, slow);
    if (cause->cause != WEIR_CAUSE_STEP && slow->record->slow_file[0])
        weir_diagnosis_say(cause, "; most waits are for %s", slow->record->slow_file);
    if (cause->cause != WEIR_CAUSE_STEP && slow->record->slow_worker[0])
        weir_diagnosis_say(cause, "; most waits are for worker %s", slow->record->slow_worker);
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
    size_t room = (size_t)(n > 0 ? n : 1);
    struct ranks all = {ranks, n, calloc(room, sizeof *all.figures), calloc(room, sizeof *all.values)};
    *verdict = (struct weir_rank_verdict){.own_s = -1, .others_own_s = -1};
    for (int i = 0; i < n && all.figures; i++)
        if (ranks[i].record) {
            fill(all.figures[i], ranks[i].record);
            verdict->reported++;
        }
    if (all.values && verdict->reported > 0) {
        verdict->step_s = median(&all, STEP, NULL);
        verdict->step_skew = largest(&all, STEP)->record->step_s / verdict->step_s;
        verdict->data_wait = median(&all, DATA_WAIT, NULL);
        verdict->bound = weir_data_bound(verdict->data_wait);
        verdict->data_s = verdict->others_data_s = median(&all, DATA, NULL);
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
    free(all.figures);
    free(all.values);
}
