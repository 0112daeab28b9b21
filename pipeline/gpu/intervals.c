#include "pipeline/gpu/intervals.h"

#include <string.h>

int64_t weir_intervals_overlap(const struct weir_intervals *set, int64_t begin_ns, int64_t end_ns)
{
    int64_t covered = 0;
    for (int i = 0; i < set->n; i++) {
        int64_t from = set->at[i].begin_ns > begin_ns ? set->at[i].begin_ns : begin_ns;
        int64_t to = set->at[i].end_ns < end_ns ? set->at[i].end_ns : end_ns;
        covered += to > from ? to - from : 0;
    }
    return covered;
}

static void remove_at(struct weir_intervals *set, int i)
{
    set->n--;
    memmove(&set->at[i], &set->at[i + 1], (size_t)(set->n - i) * sizeof set->at[0]);
}

int64_t weir_intervals_add(struct weir_intervals *set, int64_t begin_ns, int64_t end_ns)
{
    if (end_ns <= begin_ns)
        return 0;
    int64_t added = end_ns - begin_ns - weir_intervals_overlap(set, begin_ns, end_ns);
    int i = 0;
    while (i < set->n && set->at[i].end_ns < begin_ns)
        i++;
    while (i < set->n && set->at[i].begin_ns <= end_ns) { /* merges an interval that overlaps or touches the new one */
        begin_ns = set->at[i].begin_ns < begin_ns ? set->at[i].begin_ns : begin_ns;
        end_ns = set->at[i].end_ns > end_ns ? set->at[i].end_ns : end_ns;
        remove_at(set, i);
    }
    if (set->n == WEIR_INTERVALS_MAX) {
        if (i == 0)
            return added; /* older than all kept intervals */
        remove_at(set, 0);
        i--;
    }
    memmove(&set->at[i + 1], &set->at[i], (size_t)(set->n - i) * sizeof set->at[0]);
    set->at[i] = (struct weir_interval){begin_ns, end_ns};
    set->n++;
    return added;
}
