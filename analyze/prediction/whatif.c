#include "analyze/prediction/whatif.h"
#include "analyze/prediction/demands.h"
#include "base/numbers.h"
#include "base/table.h"
#include "base/terminal.h"

#include <math.h>
#include <string.h>

struct weir_whatif_rung *weir_whatif_add_rung(struct weir_whatif *found, const char *name)
{
    if (found->n_rungs == WEIR_WHATIF_RUNGS)
        return NULL;
    struct weir_whatif_rung *rung = &found->rungs[found->n_rungs++];
    *rung = (struct weir_whatif_rung){.data_wait = -1};
    snprintf(rung->name, sizeof rung->name, "%s", name);
    return rung;
}

struct weir_whatif_change *weir_whatif_add_change(struct weir_whatif *found, const char *name)
{
    if (found->n_changes == WEIR_WHATIF_CHANGES)
        return NULL;
    struct weir_whatif_change *change = &found->changes[found->n_changes++];
    *change = (struct weir_whatif_change){.predicted = 0};
    snprintf(change->name, sizeof change->name, "%s", name);
    return change;
}

/* ---- errors ---- */

/* Statistics of the absolute prediction errors of checked changes that are not noisy. */
struct errors {
    int pairs, noisy;
    double median, p90; /* 0 if there are no pairs */
};

static bool is_checked(const struct weir_whatif_change *change)
{
    return change->trials > 0 && change->measured > 0 && change->predicted > 0;
}

bool weir_whatif_is_noisy(const struct weir_whatif_change *change)
{
    return fabs(change->noise) > WEIR_WHATIF_NOISY || change->others >= WEIR_VERDICT_OTHERS;
}

/* Returns predicted / measured - 1, or 0 if the change was not checked. */
static double error_of(const struct weir_whatif_change *change)
{
    return is_checked(change) ? change->predicted / change->measured - 1 : 0;
}

static void find_errors(const struct weir_whatif *found, struct errors *errors)
{
    double values[WEIR_WHATIF_CHANGES];
    *errors = (struct errors){.pairs = 0};
    for (int i = 0; i < found->n_changes; i++) {
        const struct weir_whatif_change *change = &found->changes[i];
        if (!is_checked(change))
            continue;
        if (weir_whatif_is_noisy(change))
            errors->noisy++;
        else
            values[errors->pairs++] = fabs(error_of(change));
    }
    int n = errors->pairs;
    if (n == 0)
        return;
    errors->median = weir_median(values, (size_t)n);
    errors->p90 = values[(int)ceil(0.9 * n) - 1]; /* nearest rank */
}

/* ---- the best change ---- */

static bool is_measured(const struct weir_whatif_change *change)
{
    return is_checked(change) && !weir_whatif_is_noisy(change);
}

double weir_whatif_ratio(const struct weir_whatif_change *change)
{
    return is_measured(change) ? change->measured : change->predicted;
}

/* Whether the change is worth recommending. If the step is the limit, predictions differ from 1 by their error only. */
static bool is_worth(const struct weir_whatif *found, const struct weir_whatif_change *change)
{
    bool beyond_noise = is_measured(change) ? change->measured_low > 1 : !found->step_is_limit;
    return weir_whatif_ratio(change) >= 1 + WEIR_CLOSE && beyond_noise;
}

/* Returns the worthwhile change with the highest ratio, or NULL if none qualifies. Skips changes without an option, and
 * steps of other durations, which no option provides to a training program. Sets *n to the number of changes. */
static const struct weir_whatif_change *best_change(const struct weir_whatif *found, int *n)
{
    static const char STEP[] = "--step-ms ";
    const struct weir_whatif_change *best = NULL;
    *n = 0;
    for (int i = 0; i < found->n_changes; i++) {
        const struct weir_whatif_change *change = &found->changes[i];
        if (!*change->flag || strncmp(change->flag, STEP, sizeof STEP - 1) == 0 || weir_whatif_ratio(change) <= 0)
            continue;
        *n += 1;
        if (is_worth(found, change) && (!best || weir_whatif_ratio(change) > weir_whatif_ratio(best)))
            best = change;
    }
    return best;
}

static void print_best(FILE *out, const struct weir_whatif *found)
{
    struct weir_wrap wrap;
    int n;
    const struct weir_whatif_change *best = best_change(found, &n);
    if (n == 0)
        return;
    FILE *text = weir_wrap_open(&wrap, out, 2, "  ");
    if (!best && found->step_is_limit)
        fputs("no change helps: the step is the limit\n", text);
    else if (!best)
        fprintf(text, "best change: none is more than %.0f %% faster\n", 100 * WEIR_CLOSE);
    else if (is_measured(best))
        fprintf(text, "best change: %s: %.2fx (measured; %.2fx predicted)  %s\n", best->name, best->measured,
                best->predicted, best->flag);
    else
        fprintf(text, "best change: %s: %.2fx (predicted)  %s\n", best->name, best->predicted, best->flag);
    wrap.highlight = true;
    weir_wrap_close(&wrap);
    fputc('\n', out);
}

/* Says first that other processes used the cores. */
static void print_busy(FILE *out, const struct weir_whatif *found)
{
    struct weir_wrap wrap;
    if (found->others_cores < WEIR_VERDICT_OTHERS * found->cores || found->others_cores <= 0)
        return;
    fprintf(weir_wrap_open(&wrap, out, 2, NULL),
            "busy machine: other processes used %.2f of %d cores, so all figures hold with this load only; stop them "
            "and repeat\n",
            found->others_cores, found->cores);
    weir_wrap_close(&wrap);
}

/* Says first that most measurements are too noisy to rely on. */
static void print_noise(FILE *out, const struct weir_whatif *found)
{
    struct weir_wrap wrap;
    struct errors errors;
    find_errors(found, &errors);
    if (errors.noisy <= errors.pairs)
        return;
    fprintf(
        weir_wrap_open(&wrap, out, 2, NULL),
        "noisy machine: in %d of %d checked pairs (~) two identical base runs differ by more than %.0f %%, or other "
        "processes used %.0f %% of the cores, so predictions stand for them; stop other processes and repeat\n",
        errors.noisy, errors.pairs + errors.noisy, 100 * WEIR_WHATIF_NOISY, 100 * WEIR_VERDICT_OTHERS);
    weir_wrap_close(&wrap);
}

/* Says how the verdict's figures differ from those of the tables. Rows of the ladder have different numbers of trials
 * if time ran out. */
static void say_sources(FILE *out, const struct weir_whatif *found)
{
    int least = 0, most = 0;
    for (int i = 0; i < found->n_rungs; i++) {
        int n = *found->rungs[i].why ? 0 : found->rungs[i].trials;
        least = n > 0 && (least == 0 || n < least) ? n : least;
        most = n > most ? n : most;
    }
    fputs("; the verdict is of one run and assumes what a change costs, the table of changes measured it; ", out);
    if (most == 1)
        fputs("each row of the ladder is of one trial", out);
    else if (least == most)
        fprintf(out, "the ladder has medians of %d trials", most);
    else
        fprintf(out, "the ladder has medians of %d to %d trials", least, most);
}

/* The ladder's first row has the base run's figures. Without it, they are those of the run with the median rate. */
static void print_head(FILE *out, const struct weir_whatif *found)
{
    struct weir_wrap wrap;
    bool in_ladder = found->n_rungs > 0 && !*found->rungs[0].why;
    FILE *text = weir_wrap_open(&wrap, out, 2, NULL);
    fprintf(text, "%s: ", found->data);
    if (!in_ladder)
        fprintf(text, "%.0f images/s, data wait %.0f %%; ", found->images_per_s, 100 * found->data_wait);
    fprintf(text, "%d workers, prefetch %d, batches of %d, %d usable cores%s", found->workers, found->prefetch,
            found->batch_size, found->cores, found->cold ? "; cold" : "");
    if (in_ladder && *found->verdict)
        say_sources(text, found);
    fputc('\n', text);
    weir_wrap_close(&wrap);
}

/* ---- the tables ---- */

/* Prints the reason why a row has no figures. */
static void print_reason(FILE *out, const char *name, const char *before, const char *why)
{
    struct weir_wrap wrap;
    fprintf(weir_wrap_open(&wrap, out, WEIR_WRAP_COLUMN, NULL), "%s  %s%s\n", name, before, why);
    weir_wrap_close(&wrap);
}

static void print_ladder(FILE *out, const struct weir_whatif *found)
{
    static const struct weir_column columns[] = {
        {"ladder", .left = true},   {.heading = "images/s"},  {.heading = "ratio"},
        {"interval", .left = true}, {.heading = "data wait"}, {.heading = "trials"},
    };
    struct weir_table table;
    weir_table_open(&table, columns, sizeof columns / sizeof *columns);
    for (int i = 0; i < found->n_rungs; i++) {
        const struct weir_whatif_rung *rung = &found->rungs[i];
        if (*rung->why)
            continue;
        char wait[16] = "-";
        if (rung->data_wait >= 0)
            snprintf(wait, sizeof wait, "%.0f %%", 100 * rung->data_wait);
        weir_table_cell(&table, "%s", rung->name);
        weir_table_cell(&table, "%.0f", rung->images_per_s);
        weir_table_cell(&table, "%.2fx", rung->ratio);
        if (i == 0 || rung->trials < 2) /* the ratio to itself, or a single ratio, has no interval */
            weir_table_cell(&table, "-");
        else
            weir_table_cell(&table, "[%.2f, %.2f]", rung->ratio_low, rung->ratio_high);
        weir_table_cell(&table, "%s", wait);
        weir_table_cell(&table, "%d", rung->trials);
    }
    weir_table_print(out, &table);
    for (int i = 0; i < found->n_rungs; i++)
        if (*found->rungs[i].why)
            print_reason(out, found->rungs[i].name, "left out: ", found->rungs[i].why);
}

/* Converts a resource's short name, which logs contain, to its name in sentences. */
static const char *limit_text(const char *name)
{
    for (int i = 0; i < WEIR_RESOURCES; i++)
        if (strcmp(name, weir_resource_name((enum weir_resource)i)) == 0)
            return weir_resource_text((enum weir_resource)i);
    return *name ? name : "-";
}

static void add_change(struct weir_table *table, const struct weir_whatif_change *change, bool checked)
{
    char predicted[16] = "-", measured[24] = "-", error[16] = "-";
    if (change->predicted > 0)
        snprintf(predicted, sizeof predicted, "%.2fx", change->predicted);
    if (change->trials > 0)
        snprintf(measured, sizeof measured, "%s%.2fx", weir_whatif_is_noisy(change) ? "~" : "", change->measured);
    if (is_checked(change))
        snprintf(error, sizeof error, "%+.1f %%", 100 * error_of(change));
    weir_table_cell(table, "%s", change->name);
    weir_table_cell(table, "%s", predicted);
    if (checked) {
        weir_table_cell(table, "%s", measured);
        weir_table_cell(table, "%s", error);
    }
    weir_table_cell(table, "%s", limit_text(change->limit));
    weir_table_cell(table, "%s", change->flag);
}

/* Returns the reason to print for the change; can be empty. */
static const char *reason_of(const struct weir_whatif *found, int i)
{
    static const char NOT_CHECKED[] = "not checked: ";
    const char *why = found->changes[i].why;
    return found->checked || strncmp(why, NOT_CHECKED, sizeof NOT_CHECKED - 1) != 0 ? why : "";
}

/* Prints why changes have no figures. A reason of several changes is one line unless the output is wide. */
static void print_reasons(FILE *out, const struct weir_whatif *found)
{
    for (int i = 0; i < found->n_changes; i++) {
        const char *why = reason_of(found, i);
        char count[32];
        int before = 0, same = 0;
        for (int j = 0; j < found->n_changes && weir_terminal_folds(); j++) {
            bool equal = strcmp(why, reason_of(found, j)) == 0;
            before += equal && j < i;
            same += equal;
        }
        if (!*why || before > 0)
            continue;
        snprintf(count, sizeof count, "%d changes", same);
        print_reason(out, same > 1 ? count : found->changes[i].name, "", why);
    }
}

static void print_changes(FILE *out, const struct weir_whatif *found)
{
    static const struct weir_column predicted[] = {
        {"change", .left = true, .shrink_to = 23},
        {.heading = "predicted"},
        {"the limit is then", .priority = 1, .left = true},
        {"what to type", .left = true, .shrink_to = 44},
    };
    static const struct weir_column checked[] = {
        {"change", .left = true, .shrink_to = 23},
        {.heading = "predicted"},
        {.heading = "measured"},
        {"error", .priority = 1},
        {"the limit is then", .priority = 2, .left = true},
        {"what to type", .left = true, .shrink_to = 33},
    };
    struct weir_table table;
    weir_table_open(&table, found->checked ? checked : predicted,
                    (int)(found->checked ? sizeof checked / sizeof *checked : sizeof predicted / sizeof *predicted));
    for (int i = 0; i < found->n_changes; i++)
        add_change(&table, &found->changes[i], found->checked);
    weir_table_print(out, &table);
    print_reasons(out, found);
}

static void print_errors(FILE *out, const struct weir_whatif *found)
{
    struct weir_wrap wrap;
    struct errors errors;
    find_errors(found, &errors);
    if (errors.pairs == 0 && errors.noisy == 0)
        return;
    FILE *text = weir_wrap_open(&wrap, out, 2, NULL);
    fprintf(text, "\nchecked: %d pairs", errors.pairs);
    if (errors.pairs > 0)
        fprintf(text, ", error of the ratio: median %.1f %%, 90th percentile %.1f %%", 100 * errors.median,
                100 * errors.p90);
    if (errors.noisy > 0)
        fprintf(text, "; %d more pairs are noisy (~)", errors.noisy);
    fputc('\n', text);
    weir_wrap_close(&wrap);
}

void weir_whatif_print(FILE *out, const struct weir_whatif *found)
{
    print_busy(out, found);
    print_noise(out, found);
    print_best(out, found);
    print_head(out, found);
    if (*found->verdict) {
        fputc('\n', out);
        weir_wrap_print(out, found->verdict, WEIR_WRAP_COLUMN, " | ");
    }
    if (found->n_rungs > 0) {
        fputc('\n', out);
        print_ladder(out, found);
    }
    if (found->n_changes > 0) {
        fputc('\n', out);
        print_changes(out, found);
    }
    print_errors(out, found);
    if (found->interrupted)
        fprintf(out, "interrupted: results so far\n");
}

/* ---- JSON ---- */

#define FIELD(s, key, member, flags) WEIR_FIELD(struct s, key, member, flags)

static const struct weir_field rung_numbers[] = {
    FIELD(weir_whatif_rung, "images_per_s", images_per_s, 0),
    FIELD(weir_whatif_rung, "ratio", ratio, 0),
    FIELD(weir_whatif_rung, "ratio_low", ratio_low, 0),
    FIELD(weir_whatif_rung, "ratio_high", ratio_high, 0),
    FIELD(weir_whatif_rung, "data_wait_fraction", data_wait, WEIR_FIELD_KNOWN),
    FIELD(weir_whatif_rung, "turns", trials, 0),
};
static WEIR_FIELDS(rung_measured, rung_numbers);
static const struct weir_field rung_fields[] = {
    FIELD(weir_whatif_rung, "name", name, 0),
    {.type = WEIR_FIELD_GROUP, .inner = &rung_measured, WEIR_FIELD_PRESENT(struct weir_whatif_rung, trials)},
};
WEIR_FIELDS(weir_whatif_rung_fields, rung_fields);

static const struct weir_field change_numbers[] = {
    FIELD(weir_whatif_change, "measured", measured, 0),
    FIELD(weir_whatif_change, "measured_low", measured_low, 0),
    FIELD(weir_whatif_change, "measured_high", measured_high, 0),
    FIELD(weir_whatif_change, "noise", noise, 0),
    FIELD(weir_whatif_change, "others_fraction", others, 0),
};
static WEIR_FIELDS(change_measured, change_numbers);
static const struct weir_field change_fields[] = {
    FIELD(weir_whatif_change, "name", name, 0),
    FIELD(weir_whatif_change, "flag", flag, WEIR_FIELD_OPTIONAL),
    FIELD(weir_whatif_change, "basis", basis, WEIR_FIELD_OPTIONAL),
    FIELD(weir_whatif_change, "limit", limit, WEIR_FIELD_OPTIONAL),
    FIELD(weir_whatif_change, "why", why, WEIR_FIELD_OPTIONAL),
    FIELD(weir_whatif_change, "turns", trials, 0),
    {.type = WEIR_FIELD_GROUP, .inner = &change_measured, WEIR_FIELD_PRESENT(struct weir_whatif_change, trials)},
};
WEIR_FIELDS(weir_whatif_change_fields, change_fields);

static const struct weir_field whatif_fields[] = {
    FIELD(weir_whatif, "data", data, 0),
    FIELD(weir_whatif, "cold", cold, 0),
    FIELD(weir_whatif, "checked", checked, 0),
    FIELD(weir_whatif, "interrupted", interrupted, 0),
    FIELD(weir_whatif, "step_is_limit", step_is_limit, 0),
    FIELD(weir_whatif, "num_workers", workers, 0),
    FIELD(weir_whatif, "prefetch", prefetch, 0),
    FIELD(weir_whatif, "batch_size", batch_size, 0),
    FIELD(weir_whatif, "cores", cores, 0),
    FIELD(weir_whatif, "images_per_s", images_per_s, 0),
    FIELD(weir_whatif, "data_wait_fraction", data_wait, 0),
    FIELD(weir_whatif, "others_cores", others_cores, 0),
    FIELD(weir_whatif, "simulated_images_per_s", simulated, 0),
    FIELD(weir_whatif, "stretch", stretch, 0),
    FIELD(weir_whatif, "seconds", seconds, 0),
};
WEIR_FIELDS(weir_whatif_fields, whatif_fields);

static void change_json(struct weir_json *json, const struct weir_whatif_change *change)
{
    weir_json_object(json, NULL);
    weir_fields_json(json, &weir_whatif_change_fields, change);
    weir_json_known(json, "predicted", change->predicted > 0 ? change->predicted : -1);
    if (change->trials > 0)
        weir_json_bool(json, "noisy", weir_whatif_is_noisy(change));
    if (is_checked(change))
        weir_json_double(json, "error", error_of(change));
    weir_json_end(json, '}');
}

static void errors_json(struct weir_json *json, const struct weir_whatif *found)
{
    struct errors errors;
    find_errors(found, &errors);
    weir_json_object(json, "errors");
    weir_json_int(json, "pairs", errors.pairs);
    weir_json_int(json, "noisy", errors.noisy);
    weir_json_known(json, "median", errors.pairs > 0 ? errors.median : -1);
    weir_json_known(json, "p90", errors.pairs > 0 ? errors.p90 : -1);
    weir_json_end(json, '}');
}

/* Writes the lines of the verdict as elements of an array. */
static void verdict_json(struct weir_json *json, const char *text)
{
    char line[1024];
    weir_json_array(json, "verdict");
    for (const char *at = text; *at;) {
        size_t length = strcspn(at, "\n");
        snprintf(line, sizeof line, "%.*s", (int)(length < sizeof line ? length : sizeof line - 1), at);
        weir_json_text(json, NULL, line);
        at += length + (at[length] == '\n');
    }
    weir_json_end(json, ']');
}

void weir_whatif_json(struct weir_json *json, const struct weir_whatif *found)
{
    weir_fields_json(json, &weir_whatif_fields, found);
    verdict_json(json, found->verdict);
    weir_json_array(json, "ladder");
    for (int i = 0; i < found->n_rungs; i++) {
        weir_json_object(json, NULL);
        weir_fields_json(json, &weir_whatif_rung_fields, &found->rungs[i]);
        if (*found->rungs[i].why)
            weir_json_text(json, "left_out", found->rungs[i].why);
        weir_json_end(json, '}');
    }
    weir_json_end(json, ']');
    weir_json_array(json, "changes");
    for (int i = 0; i < found->n_changes; i++)
        change_json(json, &found->changes[i]);
    weir_json_end(json, ']');
    errors_json(json, found);
}
