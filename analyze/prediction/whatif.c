#include "analyze/prediction/whatif.h"
#include "analyze/prediction/demands.h"
#include "base/field_rows.h"
#include "base/numbers.h"

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

static void add_best(struct weir_document *document, const struct weir_whatif *found)
{
    int n;
    const struct weir_whatif_change *best = best_change(found, &n);
    if (n == 0)
        return;
    FILE *text = weir_document_text(document, NULL, 2);
    document->text.highlight = true;
    document->text.separator = "  ";
    if (!best && found->step_is_limit)
        fputs("no change helps: the step is the limit\n", text);
    else if (!best)
        fprintf(text, "best change: none is more than %.0f %% faster\n", 100 * WEIR_CLOSE);
    else if (is_measured(best))
        fprintf(text, "best change: %s: %.2fx (measured; %.2fx predicted)  %s\n", best->name, best->measured,
                best->predicted, best->flag);
    else
        fprintf(text, "best change: %s: %.2fx (predicted)  %s\n", best->name, best->predicted, best->flag);
    putc('\n', weir_document_text(document, NULL, 0));
}

/* Begins with the reasons why figures may not hold: other processes used the cores, or measurements are noisy. */
static void add_doubts(struct weir_document *document, const struct weir_whatif *found, const struct errors *errors)
{
    FILE *text = weir_document_text(document, NULL, 2);
    if (found->others_cores >= WEIR_VERDICT_OTHERS * found->cores && found->others_cores > 0)
        fprintf(text,
                "busy machine: other processes used %.2f of %d cores, so all figures hold with this load only; stop "
                "them and repeat\n",
                found->others_cores, found->cores);
    if (errors->noisy > errors->pairs)
        fprintf(text,
                "noisy machine: in %d of %d checked pairs (~) two identical base runs differ by more than %.0f %%, or "
                "other processes used %.0f %% of the cores, so predictions stand for them; stop other processes and "
                "repeat\n",
                errors->noisy, errors->pairs + errors->noisy, 100 * WEIR_WHATIF_NOISY, 100 * WEIR_VERDICT_OTHERS);
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
static void print_head(FILE *text, const struct weir_whatif *found)
{
    bool in_ladder = found->n_rungs > 0 && !*found->rungs[0].why;
    fprintf(text, "%s: ", found->data);
    if (!in_ladder)
        fprintf(text, "%.0f images/s, data wait %.0f %%; ", found->images_per_s, 100 * found->data_wait);
    fprintf(text, "%d workers, prefetch %d, batches of %d, %d usable cores%s", found->workers, found->prefetch,
            found->batch_size, found->cores, found->cold ? "; cold" : "");
    if (in_ladder && *found->verdict)
        say_sources(text, found);
    fputc('\n', text);
}

/* ---- the tables ---- */

/* The ratio of the base run to itself, and a single ratio, have no interval. */
static void print_interval(FILE *out, const void *object)
{
    const struct weir_whatif_rung *rung = object;
    if (rung->trials < 2 || (rung->ratio_low >= 1 && rung->ratio_high <= 1))
        putc('-', out);
    else
        fprintf(out, "[%.2f, %.2f]", rung->ratio_low, rung->ratio_high);
}

#define S struct weir_whatif_rung
static const struct weir_field rung_numbers[] = {
    PLAIN("images_per_s", images_per_s, COLUMN("images/s")),
    PLAIN("ratio", ratio, RATIO("ratio")),
    CELL("interval", print_interval, .left = true),
    PLAIN("ratio_low", ratio_low),
    PLAIN("ratio_high", ratio_high),
    KNOWN("data_wait_fraction", data_wait, PERCENT("data wait", 0, .suffix = " %")),
    PLAIN("turns", trials, COLUMN("trials")),
};
static WEIR_FIELDS(rung_measured, rung_numbers);
static const struct weir_field rung_fields[] = {
    PLAIN("name", name, COLUMN("ladder", .left = true)),
    {.type = WEIR_FIELD_GROUP, .inner = &rung_measured, WEIR_FIELD_PRESENT(struct weir_whatif_rung, trials)},
    WEIR_FIELD(S, "left_out", why, WEIR_FIELD_OMIT | WEIR_FIELD_OPTIONAL),
};
WEIR_FIELDS(weir_whatif_rung_fields, rung_fields);
#undef S

static bool is_shown(const void *rung)
{
    return !*((const struct weir_whatif_rung *)rung)->why;
}

/* Converts a resource's short name, which logs contain, to its name in sentences. */
static const char *limit_text(const char *name)
{
    for (int i = 0; i < WEIR_RESOURCES; i++)
        if (strcmp(name, weir_resource_name((enum weir_resource)i)) == 0)
            return weir_resource_text((enum weir_resource)i);
    return *name ? name : "-";
}

static void print_measured(FILE *out, const void *object)
{
    const struct weir_whatif_change *change = object;
    if (change->trials > 0)
        fprintf(out, "%s%.2fx", weir_whatif_is_noisy(change) ? "~" : "", change->measured);
    else
        putc('-', out);
}

static void print_error(FILE *out, const void *change)
{
    if (is_checked(change))
        fprintf(out, "%+.1f %%", 100 * error_of(change));
    else
        putc('-', out);
}

static void print_limit(FILE *out, const void *change)
{
    fputs(limit_text(((const struct weir_whatif_change *)change)->limit), out);
}

static void write_checked(struct weir_json *json, const void *object)
{
    const struct weir_whatif_change *change = object;
    if (change->trials > 0)
        weir_json_bool(json, "noisy", weir_whatif_is_noisy(change));
    if (is_checked(change))
        weir_json_double(json, "error", error_of(change));
}

#define S struct weir_whatif_change
static const struct weir_field change_numbers[] = {
    PLAIN("measured", measured), PLAIN("measured_low", measured_low), PLAIN("measured_high", measured_high),
    PLAIN("noise", noise),       PLAIN("others_fraction", others),
};
static WEIR_FIELDS(change_measured, change_numbers);
static const struct weir_field change_fields[] = {
    PLAIN("name", name),
    OPTIONAL("flag", flag),
    OPTIONAL("basis", basis),
    OPTIONAL("limit", limit),
    OPTIONAL("why", why),
    PLAIN("turns", trials),
    {.type = WEIR_FIELD_GROUP, .inner = &change_measured, WEIR_FIELD_PRESENT(struct weir_whatif_change, trials)},
    POSITIVE("predicted", predicted),
    WRITTEN(write_checked),
};
WEIR_FIELDS(weir_whatif_change_fields, change_fields);
static const struct weir_field predicted_columns[] = {
    PLAIN(NULL, name, COLUMN("change", .left = true, .shrink_to = 23)),
    POSITIVE(NULL, predicted, RATIO("predicted")),
    CELL("the limit is then", print_limit, .priority = 1, .left = true),
    PLAIN(NULL, flag, COLUMN("what to type", .left = true, .shrink_to = 44)),
};
static WEIR_FIELDS(predicted_fields, predicted_columns);
static const struct weir_field checked_columns[] = {
    PLAIN(NULL, name, COLUMN("change", .left = true, .shrink_to = 23)),
    POSITIVE(NULL, predicted, RATIO("predicted")),
    CELL("measured", print_measured),
    CELL("error", print_error, .priority = 1),
    CELL("the limit is then", print_limit, .priority = 2, .left = true),
    PLAIN(NULL, flag, COLUMN("what to type", .left = true, .shrink_to = 33)),
};
static WEIR_FIELDS(checked_fields, checked_columns);
#undef S

/* Returns the reason to print for the change; can be empty. */
static const char *reason_of(const struct weir_whatif *found, int i)
{
    static const char NOT_CHECKED[] = "not checked: ";
    const char *why = found->changes[i].why;
    return found->checked || strncmp(why, NOT_CHECKED, sizeof NOT_CHECKED - 1) != 0 ? why : "";
}

/* Prints why changes have no figures. A reason of several changes is one line unless the output is wide. */
static void print_reasons(FILE *text, const struct weir_whatif *found)
{
    for (int i = 0; i < found->n_changes; i++) {
        const char *why = reason_of(found, i);
        int before = 0, same = 0;
        for (int j = 0; j < found->n_changes && weir_terminal_folds(); j++) {
            bool equal = strcmp(why, reason_of(found, j)) == 0;
            before += equal && j < i;
            same += equal;
        }
        if (*why && before == 0 && same > 1)
            fprintf(text, "%d changes  %s\n", same, why);
        else if (*why && before == 0)
            fprintf(text, "%s  %s\n", found->changes[i].name, why);
    }
}

static void add_tables(struct weir_document *document, const struct weir_whatif *found)
{
    int n = found->n_changes;
    if (found->n_rungs > 0)
        putc('\n', weir_document_text(document, NULL, 0));
    weir_document_table(document, "ladder", &weir_whatif_rung_fields, found->rungs, found->n_rungs,
                        sizeof *found->rungs, is_shown);
    FILE *text = weir_document_text(document, NULL, WEIR_WRAP_COLUMN);
    for (int i = 0; i < found->n_rungs; i++)
        if (*found->rungs[i].why)
            fprintf(text, "%s  left out: %s\n", found->rungs[i].name, found->rungs[i].why);
    weir_document_table(document, "changes", &weir_whatif_change_fields, found->changes, n, sizeof *found->changes,
                        NULL);
    if (n > 0)
        putc('\n', weir_document_text(document, NULL, 0));
    weir_document_table(document, NULL, found->checked ? &checked_fields : &predicted_fields, found->changes, n,
                        sizeof *found->changes, NULL);
    print_reasons(weir_document_text(document, NULL, WEIR_WRAP_COLUMN), found);
}

/* ---- the result ---- */

static void add_errors(struct weir_document *document, const struct errors *errors)
{
    weir_document_begin(document, "errors", '{');
    weir_document_fact(document, "pairs", errors->pairs);
    weir_document_fact(document, "noisy", errors->noisy);
    weir_document_known(document, "median", errors->pairs > 0 ? errors->median : -1);
    weir_document_known(document, "p90", errors->pairs > 0 ? errors->p90 : -1);
    weir_document_end(document, '}');
    if (errors->pairs == 0 && errors->noisy == 0)
        return;
    FILE *text = weir_document_text(document, NULL, 2);
    fprintf(text, "\nchecked: %d pairs", errors->pairs);
    if (errors->pairs > 0)
        fprintf(text, ", error of the ratio: median %.1f %%, 90th percentile %.1f %%", 100 * errors->median,
                100 * errors->p90);
    if (errors->noisy > 0)
        fprintf(text, "; %d more pairs are noisy (~)", errors->noisy);
    fputc('\n', text);
}

/* The lines of the verdict are elements of an array in JSON. */
static void add_verdict(struct weir_document *document, const char *verdict)
{
    char line[1024];
    if (*verdict)
        putc('\n', weir_document_text(document, NULL, 0));
    fputs(verdict, weir_document_text(document, NULL, WEIR_WRAP_COLUMN));
    document->text.separator = " | ";
    weir_document_begin(document, "verdict", '[');
    for (const char *at = verdict; *at;) {
        size_t length = strcspn(at, "\n");
        snprintf(line, sizeof line, "%.*s", (int)(length < sizeof line ? length : sizeof line - 1), at);
        weir_document_fact(document, NULL, (const char *)line);
        at += length + (at[length] == '\n');
    }
    weir_document_end(document, ']');
}

#define S struct weir_whatif
static const struct weir_field whatif_fields[] = {
    PLAIN("data", data),
    PLAIN("cold", cold),
    PLAIN("checked", checked),
    PLAIN("interrupted", interrupted),
    PLAIN("step_is_limit", step_is_limit),
    PLAIN("num_workers", workers),
    PLAIN("prefetch", prefetch),
    PLAIN("batch_size", batch_size),
    PLAIN("cores", cores),
    PLAIN("images_per_s", images_per_s),
    PLAIN("data_wait_fraction", data_wait),
    PLAIN("others_cores", others_cores),
    PLAIN("simulated_images_per_s", simulated),
    PLAIN("stretch", stretch),
    PLAIN("seconds", seconds),
};
WEIR_FIELDS(weir_whatif_fields, whatif_fields);
#undef S

void weir_whatif_describe(struct weir_document *document, const struct weir_whatif *found)
{
    struct errors errors;
    find_errors(found, &errors);
    weir_document_members(document, &weir_whatif_fields, found);
    add_doubts(document, found, &errors);
    add_best(document, found);
    print_head(weir_document_text(document, NULL, 2), found);
    add_verdict(document, found->verdict);
    add_tables(document, found);
    add_errors(document, &errors);
    if (found->interrupted)
        fputs("interrupted: results so far\n", weir_document_text(document, NULL, 0));
}
