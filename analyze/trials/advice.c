#include "analyze/trials/grid.h"

#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

static const double SIZE_MAX_TIMES = 1.5, WORTH_TIMES = 1.1, COLD_TURN_S = 0.1, NOISE = 0.10;
enum { ROUNDS_LEAST = 3 }; /* fewer rounds compare nothing */

/* A format and its comparison with the source's format. */
struct rival {
    const struct weir_grid_format *format;
    const struct weir_candidate *candidate[2]; /* the format's best candidates with a warm and a cold page cache */
    enum weir_relation relation[2];            /* relation of each to the source's best candidate */
    struct weir_interval ratio[2];
    bool overlaps[2];  /* the range of its trials, min to max, overlaps that of the source's best candidate */
    double size_times; /* size of a frame relative to the source; 0 = unknown */
};

struct field {
    const struct weir_grid *grid;
    struct rival rivals[WEIR_GRID_FORMATS];
    int n;
    struct rival *source;
    bool measured[2];
};

struct text {
    char *to;
    size_t size, used;
};

static void say(struct text *text, const char *format, ...) __attribute__((format(printf, 2, 3)));

static void say(struct text *text, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    if (text->used < text->size) {
        int n = vsnprintf(text->to + text->used, text->size - text->used, format, args);
        text->used += n > 0 ? (size_t)n : 0;
    }
    va_end(args);
}

/* Computes the ratio of two candidates. Returns WEIR_UNKNOWN if they have too few rounds in common. */
static enum weir_relation relation(const struct weir_candidate *candidate, const struct weir_candidate *other,
                                   struct weir_interval *ratio)
{
    weir_candidate_ratio(candidate, other, 1, ratio);
    return ratio->n < ROUNDS_LEAST ? WEIR_UNKNOWN : weir_relation_of(ratio);
}

static bool overlaps(const struct weir_candidate *a, const struct weir_candidate *b)
{
    struct weir_interval of_a, of_b;
    weir_candidate_interval(a, weir_trial_images_per_s, &of_a);
    weir_candidate_interval(b, weir_trial_images_per_s, &of_b);
    return of_a.least <= of_b.most && of_b.least <= of_a.most;
}

static void compare(struct field *field)
{
    for (int i = 0; i < field->n; i++) {
        struct rival *r = &field->rivals[i];
        for (int cold = 0; cold < 2; cold++) {
            const struct weir_candidate *source = field->source->candidate[cold];
            r->relation[cold] = WEIR_UNKNOWN;
            if (!r->candidate[cold] || !source)
                continue;
            r->relation[cold] = relation(r->candidate[cold], source, &r->ratio[cold]);
            r->overlaps[cold] = overlaps(r->candidate[cold], source);
        }
        if (field->source->format->bytes_each > 0)
            r->size_times = r->format->bytes_each / field->source->format->bytes_each;
    }
}

static void find_rivals(struct field *field, const struct weir_grid *grid)
{
    *field = (struct field){.grid = grid};
    for (int f = 0; f < grid->n_formats && field->n < WEIR_GRID_FORMATS; f++) {
        struct rival r = {.format = &grid->formats[f]};
        for (int cold = 0; cold < 2; cold++) {
            r.candidate[cold] = weir_grid_best(grid, f, cold);
            field->measured[cold] |= r.candidate[cold] != NULL;
        }
        if (r.candidate[0] || r.candidate[1])
            field->rivals[field->n++] = r;
    }
    for (int i = 0; i < field->n; i++)
        if (!field->source || (field->rivals[i].format->is_source && !field->source->format->is_source))
            field->source = &field->rivals[i];
    if (field->source)
        compare(field);
}

static bool faster_somewhere(const struct rival *r)
{
    return r->relation[0] == WEIR_FASTER || r->relation[1] == WEIR_FASTER;
}

static bool slower_somewhere(const struct rival *r)
{
    return r->relation[0] == WEIR_SLOWER || r->relation[1] == WEIR_SLOWER;
}

/* Returns the format's speed-up with a warm page cache, or with a cold one if it is not faster with a warm one. */
static double gain(const struct rival *r)
{
    return r->relation[0] == WEIR_FASTER ? r->ratio[0].median : r->relation[1] == WEIR_FASTER ? r->ratio[1].median : 0;
}

static double seconds_of(const struct weir_trial *trial)
{
    return trial->measured.seconds;
}

/* Returns whether the whole interval of the speed-up is large enough to be worth a conversion. A cold trial must not be
 * too short: it is one epoch, which for a small dataset ends before the workers reach their full rate. is_clear: also
 * requires that the slowest trial was faster than the source's fastest. */
static bool is_worthwhile(const struct rival *r, bool is_clear)
{
    for (int cold = 0; cold < 2; cold++)
        if (r->relation[cold] == WEIR_FASTER && r->ratio[cold].low >= WORTH_TIMES && !(is_clear && r->overlaps[cold]) &&
            (!cold || weir_candidate_median(r->candidate[1], seconds_of) >= COLD_TURN_S))
            return true;
    return false;
}

static bool is_better(const struct rival *r, bool is_clear)
{
    return is_worthwhile(r, is_clear) && !slower_somewhere(r) && r->size_times <= SIZE_MAX_TIMES;
}

/* Returns whether r is a better choice than best. A format that is faster warm is preferred to one that is faster cold.
 */
static bool beats(const struct rival *r, const struct rival *best)
{
    bool warm = r->relation[0] == WEIR_FASTER, best_warm = best->relation[0] == WEIR_FASTER;
    return warm != best_warm ? warm : gain(r) > gain(best);
}

/* Returns the best format, or the source if no other one is better. */
static const struct rival *choose(const struct field *field, bool is_clear)
{
    const struct rival *best = NULL;
    for (int i = 0; i < field->n; i++) {
        const struct rival *r = &field->rivals[i];
        if (r != field->source && is_better(r, is_clear) && (!best || beats(r, best)))
            best = r;
    }
    return best ? best : field->source;
}

/* Appends the formats that have this relation to the chosen format, as "a, b and c". Returns their number. */
static int list(struct text *text, const struct field *field, const struct rival *chosen, enum weir_relation wanted)
{
    const char *names[WEIR_GRID_FORMATS];
    int n = 0, cold = chosen->candidate[0] ? 0 : 1;
    for (int i = 0; i < field->n; i++) {
        const struct rival *r = &field->rivals[i];
        struct weir_interval ratio;
        if (r == chosen || !r->candidate[cold])
            continue;
        if (relation(r->candidate[cold], chosen->candidate[cold], &ratio) == wanted &&
            (r == field->source || !slower_somewhere(r) || !faster_somewhere(r)))
            names[n++] = r->format->name;
    }
    for (int i = 0; i < n; i++)
        say(text, "%s%s", i == 0 ? "" : i + 1 == n ? " and " : ", ", names[i]);
    return n;
}

/* Appends the speed-ups: those whose trials do not overlap the source's, or all if none is that clear. */
static void times(struct text *text, const struct rival *r)
{
    const char *const states[] = {"warm", "cold"};
    bool clear[2];
    int n = 0;
    for (int cold = 0; cold < 2; cold++)
        clear[cold] = r->relation[cold] == WEIR_FASTER && !r->overlaps[cold];
    for (int cold = 0; cold < 2; cold++)
        if (clear[cold] || (r->relation[cold] == WEIR_FASTER && !clear[0] && !clear[1]))
            say(text, "%s%.1f x faster %s", n++ ? " and " : "", r->ratio[cold].median, states[cold]);
}

static void size(struct text *text, const struct rival *r, const char *before)
{
    if (r->size_times > 1 + WEIR_CLOSE)
        say(text, "%s%.1f x larger", before, r->size_times);
    else if (r->size_times > 0 && r->size_times < 1 - WEIR_CLOSE)
        say(text, "%s%.1f x smaller", before, 1 / r->size_times);
}

/* Appends the fastest format that is not recommended, and the reason, if it is faster than the chosen one. Returns the
 * number of formats appended. */
static int objections(struct text *text, const struct field *field, const struct rival *chosen, const char *before)
{
    const struct rival *best = NULL;
    for (int i = 0; i < field->n; i++) {
        const struct rival *r = &field->rivals[i];
        if (r != chosen && r != field->source && faster_somewhere(r) && !is_better(r, true) &&
            (!best || beats(r, best)))
            best = r;
    }
    if (!best || gain(best) <= gain(chosen))
        return 0;
    say(text, "%s%s is ", before, best->format->name);
    times(text, best);
    size(text, best, " and ");
    if (best->relation[1] == WEIR_SLOWER)
        say(text, ", and slower from this disk when cold");
    else if (best->relation[0] == WEIR_SLOWER)
        say(text, ", and slower when warm");
    else if (best->size_times <= SIZE_MAX_TIMES)
        say(text, "%s",
            is_worthwhile(best, false) ? ", but the ranges of the trials overlap"
                                       : ", which is not worth a conversion");
    return 1;
}

/* Appends the fastest of the other formats, all of which are slower, or that none was measured. */
static void nearest(struct text *text, const struct field *field, const struct rival *chosen)
{
    const struct rival *best = NULL;
    int cold = chosen->candidate[0] ? 0 : 1;
    double most = 0;
    for (int i = 0; i < field->n; i++) {
        struct weir_interval ratio;
        if (&field->rivals[i] == chosen || !field->rivals[i].candidate[cold])
            continue;
        if (relation(field->rivals[i].candidate[cold], chosen->candidate[cold], &ratio) != WEIR_UNKNOWN &&
            ratio.median > most) {
            most = ratio.median;
            best = &field->rivals[i];
        }
    }
    if (best)
        say(text, "every other format is slower, %s by the least (%.1f x)", best->format->name, 1 / most);
    else
        say(text, "no other format was measured");
}

static double width(const struct weir_candidate *candidate)
{
    struct weir_interval interval;
    weir_candidate_interval(candidate, weir_trial_images_per_s, &interval);
    return interval.median > 0 ? (interval.high - interval.low) / 2 / interval.median : 0;
}

/* Returns whether no format can be distinguished from the source because the widest interval hides differences. */
static bool only_noise(const struct field *field, double *widest)
{
    int n = 0;
    *widest = 0;
    for (int i = 0; i < field->n; i++) {
        const struct rival *r = &field->rivals[i];
        for (int cold = 0; cold < 2; cold++) {
            if (r->candidate[cold] && width(r->candidate[cold]) > *widest)
                *widest = width(r->candidate[cold]);
            if (r == field->source || r->relation[cold] == WEIR_UNKNOWN)
                continue;
            n++;
            if (r->relation[cold] != WEIR_UNSURE)
                return false;
        }
    }
    return n > 0 && *widest > NOISE;
}

/* Appends the format with the lowest CPU time per image, which other processes disturb less than the rate. */
static void by_cpu(struct text *text, const struct field *field)
{
    const struct rival *least = NULL;
    int cold = field->source->candidate[0] ? 0 : 1;
    double lowest = 0,
           of_source = weir_candidate_median(field->source->candidate[cold], weir_trial_cpu_s_per_1000_images);
    for (int i = 0; i < field->n; i++) {
        const struct weir_candidate *candidate = field->rivals[i].candidate[cold];
        double cpu_s = candidate ? weir_candidate_median(candidate, weir_trial_cpu_s_per_1000_images) : -1;
        if (cpu_s > 0 && (!least || cpu_s < lowest)) {
            least = &field->rivals[i];
            lowest = cpu_s;
        }
    }
    if (!least)
        return;
    if (of_source <= lowest * (1 + WEIR_CLOSE))
        say(text, " In CPU time per image, no format is more than 3 %% cheaper than %s either.",
            field->source->format->name);
    else
        say(text, " In CPU time per image, %s is the cheapest: %.2f s per 1,000 images, but %s takes %.2f s.",
            least->format->name, lowest, field->source->format->name, of_source);
}

/* Returns the number of rounds in which any format was compared with the source. */
static int rounds_of(const struct field *field)
{
    int most = 0;
    for (int i = 0; i < field->n; i++)
        for (int cold = 0; cold < 2 && &field->rivals[i] != field->source; cold++)
            most = field->rivals[i].ratio[cold].n > most ? field->rivals[i].ratio[cold].n : most;
    return most;
}

/* Appends why formats cannot be compared, and what to do. Returns whether there is a reason. */
static bool doubt(struct text *text, const struct field *field, double others_cores, double cores)
{
    const struct rival *seems = choose(field, false);
    double widest;
    int rounds = rounds_of(field);
    if (field->n < 2)
        return false;
    if (rounds < ROUNDS_LEAST)
        say(text,
            "No recommendation: the formats were compared in %d round%s, and %d are needed; raise --max-minutes, or "
            "specify fewer --formats.",
            rounds, rounds == 1 ? "" : "s", ROUNDS_LEAST);
    else if (others_cores > WEIR_VERDICT_OTHERS * cores)
        say(text, "No recommendation: other processes used up to %.1f of %.0f cores; measure again on a quiet machine.",
            others_cores, cores);
    else if (only_noise(field, &widest))
        say(text,
            "No format is distinguishable from another here: identical trials differ by up to %.0f %%; stop other "
            "processes, or raise --max-minutes.",
            100 * widest);
    else if (seems != field->source && !is_better(choose(field, true), true)) {
        say(text, "No recommendation: %s seems ", seems->format->name);
        times(text, seems);
        say(text, " than %s, but the ranges of their trials overlap; stop other processes, or raise --max-minutes.",
            field->source->format->name);
    } else
        return false;
    if (rounds >= ROUNDS_LEAST)
        by_cpu(text, field);
    return true;
}

static void advise_format(struct text *text, const struct field *field, const struct rival *chosen)
{
    if (chosen == field->source)
        say(text, "Keep %s: ", chosen->format->what);
    else {
        say(text, "Convert to %s: it is ", chosen->format->name);
        times(text, chosen);
        size(text, chosen, " and ");
        say(text, " than %s; ", field->source->format->name);
    }
    size_t begin = text->used;
    const char *state = field->measured[0] && field->measured[1] ? chosen->candidate[0] ? " warm" : " cold" : "";
    int n = list(text, field, chosen, WEIR_SAME);
    if (n > 0)
        say(text, " %s within 3 %%%s", n > 1 ? "are" : "is", state);
    size_t before = text->used;
    if (n > 0)
        say(text, ", ");
    n = list(text, field, chosen, WEIR_UNSURE);
    if (n > 0)
        say(text, " shows no clear difference");
    else
        text->used = before;
    objections(text, field, chosen, text->used > begin ? ", " : "");
    if (text->used == begin && chosen == field->source)
        nearest(text, field, chosen);
    else if (text->used == begin)
        text->used -= 2; /* removes the "; " */
    say(text, ".");
}

/* ---- the second sentence ---- */

/* What to say about the stage that takes the most time. The first row whose prefix matches applies. */
static const struct {
    const char *stage, *why, *todo;
} causes[] = {
    {"03b_", "decoding is the limit", "more cores, a smaller --image-size, --decode-cache or a GPU make it faster"},
    {"03c_", "reading is the limit",
     "more memory for the page cache, a faster disk, --io uring or a smaller format make "
     "it faster; more workers hardly help"},
    {"09e_", "reading ahead is the limit", "a faster disk or a smaller format makes it faster"},
    {"03d_", "unpacking compressed chunks is the limit", "store frames as JPEG, or uncompressed"},
    {"09c_", "the HDF5 library is the limit, because it serves one worker at a time",
     "convert to a format that does not need it"},
    {"05_", "conversion to float is the limit", "use --dtype u8 and normalise on the GPU"},
    {"03h_", "passing frames to the GPU is the limit", "try larger batches"},
    {"09d_", "the GPU's decoder is the limit", "try --decoder hybrid"},
    {"08b_", "the GPU is the limit", "faster loading does not help"},
    {"20_", "the training step is the limit", "faster loading does not help"},
    {"10_", "the validation step is the limit", "faster loading does not help"},
};

static void advise_next(struct text *text, const struct weir_grid *grid, const struct weir_candidate *candidate,
                        double step_ms)
{
    char settings[256];
    double part, wait = weir_candidate_median(candidate, weir_trial_data_wait);
    const struct weir_trial *trial = weir_candidate_typical(candidate);
    const struct weir_report_row *stage = trial ? weir_trial_bound(trial, &part) : NULL;
    weir_grid_settings(grid, candidate, settings, sizeof settings);
    say(text, "%s%s%s", *settings ? "With " : "", settings, *settings ? " " : "");
    if (step_ms > 0 && wait < WEIR_VERDICT_WAIT_LEAST) {
        say(text,
            "%s step of %g ms waits for data %.1f %% of the time: loading is not the limit, and no other format or "
            "setting makes training faster.",
            *settings ? "a" : "A", step_ms, 100 * wait);
        return;
    }
    size_t i = 0, n = sizeof causes / sizeof causes[0];
    while (stage && i < n && strncmp(stage->name, causes[i].stage, strlen(causes[i].stage)) != 0)
        i++;
    if (!stage || i == n) {
        say(text, "%s%s%s is the limit; see the stages.", *settings ? "" : "The stage ", *settings ? "the stage " : "",
            stage ? stage->name : "(unknown)");
        return;
    }
    char first = causes[i].why[0];
    say(text, "%c%s (%s, %.0f %% of the %s time",
        *settings      ? first
        : first >= 'a' ? (char)(first - 'a' + 'A')
                       : first,
        causes[i].why + 1, stage->name, 100 * part, stage->side == WEIR_SIDE_WORKER ? "workers'" : "loop's");
    if (candidate->limit_candidate >= 0) {
        struct weir_interval of_limit;
        weir_candidate_ratio(candidate, &grid->candidates[candidate->limit_candidate], 1, &of_limit);
        if (of_limit.n > 0 && of_limit.median <= 1 + WEIR_CLOSE) /* more is noise */
            say(text, "; %.0f %% of the rate without reading", 100 * of_limit.median);
    }
    say(text, "): %s.", causes[i].todo);
}

static double others_of(const struct weir_grid *grid)
{
    double most = -1;
    for (int i = 0; i < grid->n; i++)
        most = fmax(most, weir_candidate_median(&grid->candidates[i], weir_trial_others_cores));
    return most;
}

void weir_advise(const struct weir_grid *grid, double step_ms, double cores, struct weir_grid_advice *advice)
{
    struct field field;
    struct text format = {advice->format, sizeof advice->format, 0}, next = {advice->next, sizeof advice->next, 0};
    memset(advice, 0, sizeof *advice);
    find_rivals(&field, grid);
    if (field.n == 0) {
        const char *why = "";
        for (int i = grid->n - 1; i >= 0; i--)
            why = *grid->candidates[i].why ? grid->candidates[i].why : why;
        say(&format, "Nothing was measured%s%s.", *why ? ": " : "", why);
        say(&next, "%s", *why ? "Run the command below by itself to see more." : "Raise --max-minutes.");
        return;
    }
    double others_cores = others_of(grid);
    advice->others_cores = others_cores > WEIR_VERDICT_OTHERS * cores ? others_cores : 0;
    bool doubtful = doubt(&format, &field, others_cores, cores);
    const struct rival *chosen = doubtful ? field.source : choose(&field, true);
    advice->cold_best = !chosen->candidate[0];
    advice->best = chosen->candidate[advice->cold_best];
    if (!doubtful)
        advise_format(&format, &field, chosen);
    advise_next(&next, grid, advice->best, step_ms);
}
