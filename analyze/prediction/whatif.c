#include "analyze/prediction/whatif.h"
#include "analyze/prediction/demands.h"

#include <math.h>
#include <stdlib.h>
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

bool weir_whatif_is_checked(const struct weir_whatif_change *change)
{
    return change->trials > 0 && change->measured > 0 && change->predicted > 0;
}

bool weir_whatif_is_noisy(const struct weir_whatif_change *change)
{
    return fabs(change->noise) > WEIR_WHATIF_NOISY;
}

double weir_whatif_error(const struct weir_whatif_change *change)
{
    return weir_whatif_is_checked(change) ? change->predicted / change->measured - 1 : 0;
}

static int by_value(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

void weir_whatif_errors(const struct weir_whatif *found, struct weir_whatif_errors *errors)
{
    double values[WEIR_WHATIF_CHANGES];
    *errors = (struct weir_whatif_errors){.pairs = 0};
    for (int i = 0; i < found->n_changes; i++) {
        const struct weir_whatif_change *change = &found->changes[i];
        if (!weir_whatif_is_checked(change))
            continue;
        if (weir_whatif_is_noisy(change))
            errors->noisy++;
        else
            values[errors->pairs++] = fabs(weir_whatif_error(change));
    }
    int n = errors->pairs;
    if (n == 0)
        return;
    qsort(values, (size_t)n, sizeof values[0], by_value);
    errors->median = (values[(n - 1) / 2] + values[n / 2]) / 2;
    errors->p90 = values[(int)ceil(0.9 * n) - 1]; /* nearest rank */
}

/* ---- the tables ---- */

static void print_ladder(FILE *out, const struct weir_whatif *found)
{
    fprintf(out, "%-46s %9s %7s %-15s %9s %5s\n", "ladder", "images/s", "ratio", "  interval", "data wait", "trials");
    for (int i = 0; i < found->n_rungs; i++) {
        const struct weir_whatif_rung *rung = &found->rungs[i];
        if (*rung->why) {
            fprintf(out, "%-46s left out: %s\n", rung->name, rung->why);
            continue;
        }
        char interval[32], wait[16] = "-";
        snprintf(interval, sizeof interval, "[%.2f, %.2f]", rung->ratio_low, rung->ratio_high);
        if (rung->data_wait >= 0)
            snprintf(wait, sizeof wait, "%.0f %%", 100 * rung->data_wait);
        fprintf(out, "%-46s %9.0f %6.2fx %-15s %9s %5d\n", rung->name, rung->images_per_s, rung->ratio, interval, wait,
                rung->trials);
    }
}

/* Name of the resource in sentences; logs have its short name. */
static const char *limit_text(const char *name)
{
    for (int i = 0; i < WEIR_RESOURCES; i++)
        if (strcmp(name, weir_resource_name((enum weir_resource)i)) == 0)
            return weir_resource_text((enum weir_resource)i);
    return *name ? name : "-";
}

static const char NOT_CHECKED[] = "not checked: ";

static void print_change(FILE *out, const struct weir_whatif_change *change, bool checked)
{
    char predicted[16] = "-", measured[16] = "-", error[24] = "-";
    if (change->predicted > 0)
        snprintf(predicted, sizeof predicted, "%.2fx", change->predicted);
    if (change->trials > 0)
        snprintf(measured, sizeof measured, "%.2fx", change->measured);
    if (weir_whatif_is_checked(change))
        snprintf(error, sizeof error, "%+.1f %%%s", 100 * weir_whatif_error(change),
                 weir_whatif_is_noisy(change) ? " noisy" : "");
    fprintf(out, "%-46s %9s", change->name, predicted);
    if (checked)
        fprintf(out, " %9s %-13s", measured, error);
    fprintf(out, "  %-20s %s\n", limit_text(change->limit), change->flag);
    bool about_check = strncmp(change->why, NOT_CHECKED, sizeof NOT_CHECKED - 1) == 0;
    if (*change->why && (checked || !about_check))
        fprintf(out, "    %s\n", change->why);
}

static void print_errors(FILE *out, const struct weir_whatif *found)
{
    struct weir_whatif_errors errors;
    weir_whatif_errors(found, &errors);
    if (errors.pairs == 0 && errors.noisy == 0)
        return;
    fprintf(out, "\nchecked: %d pairs", errors.pairs);
    if (errors.pairs > 0)
        fprintf(out, ", error of the ratio: median %.1f %%, 90th percentile %.1f %%", 100 * errors.median,
                100 * errors.p90);
    if (errors.noisy > 0)
        fprintf(out, "; %d more are noisy: two identical runs alongside differ by over 5 %%", errors.noisy);
    fputc('\n', out);
}

void weir_whatif_print(FILE *out, const struct weir_whatif *found)
{
    fprintf(out, "%s: %.0f images/s, data wait %.0f %%; %d workers, prefetch %d, batches of %d, %d usable cores%s\n",
            found->data, found->images_per_s, 100 * found->data_wait, found->workers, found->prefetch,
            found->batch_size, found->cores, found->cold ? "; cold" : "");
    if (*found->verdict)
        fprintf(out, "\n%s", found->verdict);
    if (found->n_rungs > 0) {
        fputc('\n', out);
        print_ladder(out, found);
    }
    if (found->n_changes > 0) {
        fprintf(out, "\n%-46s %9s", "change", "predicted");
        if (found->checked)
            fprintf(out, " %9s %-13s", "measured", "error");
        fprintf(out, "  %-20s %s\n", "the limit is then", "to type");
    }
    for (int i = 0; i < found->n_changes; i++)
        print_change(out, &found->changes[i], found->checked);
    print_errors(out, found);
    if (found->interrupted)
        fprintf(out, "interrupted; this is what was known\n");
}

/* ---- JSON ---- */

static void rung_json(struct weir_json *json, const struct weir_whatif_rung *rung)
{
    weir_json_object(json, NULL);
    weir_json_text(json, "name", rung->name);
    if (*rung->why) {
        weir_json_text(json, "left_out", rung->why);
    } else {
        weir_json_double(json, "images_per_s", rung->images_per_s);
        weir_json_double(json, "ratio", rung->ratio);
        weir_json_double(json, "ratio_low", rung->ratio_low);
        weir_json_double(json, "ratio_high", rung->ratio_high);
        weir_json_known(json, "data_wait_fraction", rung->data_wait);
        weir_json_int(json, "turns", rung->trials);
    }
    weir_json_end(json, '}');
}

static void known_text(struct weir_json *json, const char *key, const char *text)
{
    weir_json_text(json, key, *text ? text : NULL);
}

static void change_json(struct weir_json *json, const struct weir_whatif_change *change)
{
    weir_json_object(json, NULL);
    weir_json_text(json, "name", change->name);
    known_text(json, "flag", change->flag);
    known_text(json, "basis", change->basis);
    weir_json_known(json, "predicted", change->predicted > 0 ? change->predicted : -1);
    known_text(json, "limit", change->limit);
    known_text(json, "why", change->why);
    weir_json_int(json, "turns", change->trials);
    if (change->trials > 0) {
        weir_json_double(json, "measured", change->measured);
        weir_json_double(json, "measured_low", change->measured_low);
        weir_json_double(json, "measured_high", change->measured_high);
        weir_json_double(json, "noise", change->noise);
        weir_json_bool(json, "noisy", weir_whatif_is_noisy(change));
        if (weir_whatif_is_checked(change))
            weir_json_double(json, "error", weir_whatif_error(change));
    }
    weir_json_end(json, '}');
}

static void errors_json(struct weir_json *json, const struct weir_whatif *found)
{
    struct weir_whatif_errors errors;
    weir_whatif_errors(found, &errors);
    weir_json_object(json, "errors");
    weir_json_int(json, "pairs", errors.pairs);
    weir_json_int(json, "noisy", errors.noisy);
    weir_json_known(json, "median", errors.pairs > 0 ? errors.median : -1);
    weir_json_known(json, "p90", errors.pairs > 0 ? errors.p90 : -1);
    weir_json_end(json, '}');
}

/* One element per line. */
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
    weir_json_text(json, "data", found->data);
    weir_json_bool(json, "cold", found->cold);
    weir_json_bool(json, "checked", found->checked);
    weir_json_bool(json, "interrupted", found->interrupted);
    weir_json_int(json, "num_workers", found->workers);
    weir_json_int(json, "prefetch", found->prefetch);
    weir_json_int(json, "batch_size", found->batch_size);
    weir_json_int(json, "cores", found->cores);
    weir_json_double(json, "images_per_s", found->images_per_s);
    weir_json_double(json, "data_wait_fraction", found->data_wait);
    weir_json_double(json, "simulated_images_per_s", found->simulated);
    weir_json_double(json, "stretch", found->stretch);
    weir_json_double(json, "seconds", found->seconds);
    verdict_json(json, found->verdict);
    weir_json_array(json, "ladder");
    for (int i = 0; i < found->n_rungs; i++)
        rung_json(json, &found->rungs[i]);
    weir_json_end(json, ']');
    weir_json_array(json, "changes");
    for (int i = 0; i < found->n_changes; i++)
        change_json(json, &found->changes[i]);
    weir_json_end(json, ']');
    errors_json(json, found);
}
