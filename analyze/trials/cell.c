#include "analyze/trials/cell.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

static const double WIDE = 0.10; /* an interval that reaches further proves no likeness */

int weir_cell_add(struct weir_cell *cell, const struct weir_turn *turn)
{
    struct weir_turn *turns = realloc(cell->turns, sizeof *turns * (size_t)(cell->n_turns + 1));
    if (!turns)
        return -ENOMEM;
    cell->turns = turns;
    turns[cell->n_turns++] = *turn;
    return 0;
}

void weir_cell_free(struct weir_cell *cell)
{
    for (char **arg = cell->argv; arg && *arg; arg++)
        free(*arg);
    free(cell->argv);
    free(cell->turns);
    memset(cell, 0, sizeof *cell);
}

/* ---- figures ---- */

double weir_turn_samples_per_s(const struct weir_turn *turn)
{
    return turn->measured.samples_per_s;
}

double weir_turn_images_per_s(const struct weir_turn *turn)
{
    return turn->measured.images_per_s;
}

double weir_turn_cpu_s_per_1000_images(const struct weir_turn *turn)
{
    return turn->measured.images > 0 ? 1000 * turn->cpu_s / (double)turn->measured.images : -1;
}

double weir_turn_bytes_per_image(const struct weir_turn *turn)
{
    return turn->measured.images > 0 ? turn->read_bytes / (double)turn->measured.images : -1;
}

double weir_turn_wait_p99_s(const struct weir_turn *turn)
{
    return turn->wait_p99_s;
}

double weir_turn_peak_bytes(const struct weir_turn *turn)
{
    return (double)turn->measured.peak_rss_bytes;
}

double weir_turn_data_wait(const struct weir_turn *turn)
{
    return turn->measured.data_wait_fraction;
}

double weir_turn_cached(const struct weir_turn *turn)
{
    return turn->measured.cached_fraction;
}

double weir_turn_others_cores(const struct weir_turn *turn)
{
    return turn->others_cores;
}

void weir_cell_interval(const struct weir_cell *cell, weir_turn_figure *figure, struct weir_interval *interval)
{
    double values[WEIR_INTERVAL_MAX];
    int n = 0;
    for (int i = 0; i < cell->n_turns && n < WEIR_INTERVAL_MAX; i++) {
        double value = figure(&cell->turns[i]);
        if (value >= 0)
            values[n++] = value;
    }
    weir_interval_of(values, n, interval);
}

double weir_cell_median(const struct weir_cell *cell, weir_turn_figure *figure)
{
    struct weir_interval interval;
    weir_cell_interval(cell, figure, &interval);
    return interval.n > 0 ? interval.median : -1;
}

void weir_cell_ratio(const struct weir_cell *cell, const struct weir_cell *other, struct weir_interval *ratio)
{
    double values[WEIR_INTERVAL_MAX];
    int n = 0, j = 0;
    for (int i = 0; i < cell->n_turns && n < WEIR_INTERVAL_MAX; i++) {
        while (j < other->n_turns && other->turns[j].round < cell->turns[i].round)
            j++;
        if (j == other->n_turns || other->turns[j].round != cell->turns[i].round)
            continue;
        if (other->turns[j].measured.images_per_s > 0)
            values[n++] = cell->turns[i].measured.images_per_s / other->turns[j].measured.images_per_s;
    }
    weir_interval_of(values, n, ratio);
}

enum weir_relation weir_relation_of(const struct weir_interval *ratio)
{
    if (ratio->n == 0)
        return WEIR_UNKNOWN;
    bool holds_one = ratio->low <= 1 && ratio->high >= 1;
    double furthest = fmax(ratio->high - 1, 1 - ratio->low);
    if (furthest <= WEIR_CLOSE || (holds_one && fabs(ratio->median - 1) <= WEIR_CLOSE && furthest <= WIDE))
        return WEIR_SAME;
    if (holds_one)
        return WEIR_UNSURE;
    return ratio->median > 1 ? WEIR_FASTER : WEIR_SLOWER;
}

bool weir_relation_is_tie(enum weir_relation relation)
{
    return relation == WEIR_SAME || relation == WEIR_UNSURE;
}

const struct weir_turn *weir_cell_typical(const struct weir_cell *cell)
{
    const struct weir_turn *best = NULL;
    double median = weir_cell_median(cell, weir_turn_images_per_s);
    for (int i = 0; i < cell->n_turns; i++)
        if (!best || fabs(cell->turns[i].measured.images_per_s - median) < fabs(best->measured.images_per_s - median))
            best = &cell->turns[i];
    return best;
}
