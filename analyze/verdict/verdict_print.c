/* Prints a verdict: its sentences, the advice, the limits, and the shares of the step. */
#include "analyze/verdict/stage_advice.h"
#include "analyze/verdict/verdict_priv.h"
#include "base/numbers.h"
#include "base/terminal.h"
#include "base/text.h"

#include <math.h>
#include <string.h>

/* ---- advice ---- */

static void say_cache(FILE *out, const struct weir_verdict_advice *advice)
{
    char size[24];
    weir_cache_bytes_text(size, advice->figure, false);
    if (advice->part >= 1)
        fprintf(out, "all frames fit in %s", size);
    else
        fprintf(out, "%.0f %% of the frames fit in %s", weir_percent(advice->part), size);
}

static void say_change(FILE *out, const struct weir_verdict *verdict, const struct weir_verdict_advice *advice)
{
    bool cores_idle = weir_verdict_has(verdict, WEIR_CAUSE_TOO_FEW_WORKERS);
    switch (advice->kind) {
    case WEIR_ADVICE_CACHE:
        say_cache(out, advice);
        break;
    case WEIR_ADVICE_MORE_CORES:
        fprintf(out, "about %.0f images/s per additional core", advice->figure);
        break;
    case WEIR_ADVICE_FREE_CORES:
        fprintf(out, "if this run had all %.3g cores", advice->figure);
        break;
    case WEIR_ADVICE_QUOTA:
        fprintf(out, "of %.3g cores", advice->figure);
        break;
    case WEIR_ADVICE_ENGINES:
        fprintf(out, "the GPU's %.0f engines are idle", advice->figure);
        break;
    case WEIR_ADVICE_INDEX:
        fprintf(out, "opening the dataset took %.1f s and is repeated by every run", advice->figure);
        break;
    case WEIR_ADVICE_KEY_FRAMES:
        fprintf(out, "encode the videos with one every 2 pictures; now %.1f pictures are decoded per frame",
                advice->figure);
        break;
    case WEIR_ADVICE_JPEGS:
        fprintf(out, "one takes %.2f ms to decode, measured on a few frames", 1e3 * advice->figure);
        break;
    default:
        fputs(advice->kind == WEIR_ADVICE_MORE_WORKERS && cores_idle
                  ? "cores are idle"
                  : weir_advice_words(WEIR_SUBJECT_LOADER, advice->kind)->what,
              out);
    }
}

static void say_limit(FILE *out, enum weir_resource limit)
{
    bool plural = limit == WEIR_RESOURCE_CORES || limit == WEIR_RESOURCE_WORKERS || limit == WEIR_RESOURCE_ENGINES;
    fprintf(out, ", until the %s %s the limit", weir_resource_text(limit), plural ? "are" : "is");
}

static void say_effect(FILE *out, const struct weir_verdict *verdict, const struct weir_verdict_advice *advice)
{
    bool faster_step = advice->kind == WEIR_ADVICE_FASTER_STEP;
    say_change(out, verdict, advice);
    if (advice->ratio <= 0 || advice->kind == WEIR_ADVICE_FEWER_WORKERS)
        return;
    fputs(faster_step ? ": up to " : ": ", out);
    weir_ratio_print(out, advice->ratio);
    fputs(faster_step ? " x" : advice->measured ? " x (measured)" : " x (predicted)", out);
    if (advice->if_latency)
        fputs(" if latency is the cause", out);
    if (!advice->measured && (faster_step || advice->limit != verdict->demands.least))
        say_limit(out, advice->limit);
    if (advice->kind == WEIR_ADVICE_CACHE)
        fputs(", from the second epoch on; the first, which fills it, is slower", out);
}

static void print_advice(FILE *out, const struct weir_verdict *verdict, const struct weir_verdict_advice *advice)
{
    fprintf(out, "  %-22s  ", weir_advice_words(WEIR_SUBJECT_LOADER, advice->kind)->name);
    say_effect(out, verdict, advice);
    if (*advice->flag)
        fprintf(out, "  %s", advice->flag);
    fputc('\n', out);
}

/* ---- the whole verdict ---- */

static void print_cause(FILE *out, const struct weir_verdict *verdict, int i, const struct weir_loader_report *report)
{
    char text[768];
    weir_verdict_sentence(text, sizeof text, verdict, &verdict->causes[i], report);
    if (i == 0 && text[0] >= 'a' && text[0] <= 'z')
        text[0] = (char)(text[0] - 'a' + 'A');
    fprintf(out, "%s%s.\n", i > 0 ? "  also: " : "", text);
}

static void print_bound(FILE *out, const struct weir_verdict *verdict)
{
    const struct weir_demands *d = &verdict->demands;
    if (!d->known || d->bound_rate <= 0 || verdict->bound == WEIR_BOUND_UNKNOWN)
        return;
    fputs("  limits in images/s:", out);
    const char *comma = " the ";
    for (int i = 0; i < WEIR_RESOURCES; i++) {
        if (d->bound[i] <= 0 || (i == WEIR_RESOURCE_CONSUMER && verdict->bound == WEIR_BOUND_NO_STEP))
            continue;
        fprintf(out, "%s%s %.0f", comma, weir_resource_text((enum weir_resource)i), d->bound[i]);
        comma = ", the ";
    }
    fprintf(out, "; measured %.0f, %.0f %% below the lowest\n", d->rate, weir_percent(d->gap));
}

/* With a single stage, the line says no more than the data wait. If nothing waits, that is nothing. */
static bool are_shares_worth_printing(const struct weir_verdict *verdict)
{
    const struct weir_step_shares *shares = &verdict->shares;
    bool waits = verdict->bound == WEIR_BOUND_PARTLY || verdict->bound == WEIR_BOUND_STRONGLY;
    return shares->known && (shares->backward > 0 || shares->optimiser > 0 || (waits && shares->forward > 0));
}

static void print_shares(FILE *out, const struct weir_step_shares *shares)
{
    static const double PRINTED = 0.0005; /* smaller parts would be printed as 0.0 % */
    const struct {
        const char *name;
        double share;
    } parts[] = {{"forward", shares->forward},
                 {"backward", shares->backward},
                 {"optimiser", shares->optimiser},
                 {"batch release", shares->release}};
    fprintf(out, "  shares of the step: data wait %.1f %%", 100 * shares->wait);
    for (size_t i = 0; i < sizeof parts / sizeof *parts; i++)
        if (parts[i].share >= PRINTED)
            fprintf(out, " | %s %.1f %%", parts[i].name, 100 * parts[i].share);
    fprintf(out, " | unattributed %.1f %%\n", 100 * shares->unattributed);
    double ratio = shares->backward_over_forward;
    if (ratio <= 0)
        return;
    double most =
        fmax(fmax(shares->wait, shares->forward), fmax(shares->optimiser, fmax(shares->release, shares->unattributed)));
    fprintf(out, "  backward over forward: %.2f (1 to 2 is usual)%s\n", ratio,
            ratio > WEIR_VERDICT_BACKWARD && shares->backward > most ? ": the backward pass is the step's bottleneck"
                                                                     : "");
}

static void put_headline(FILE *out, const struct weir_verdict *verdict, const struct weir_loader_report *report)
{
    const char *part = !report->final || report->epoch_count == 0 ? "time"
                       : report->after_fill                       ? "time after the epoch that filled the cache"
                                                                  : "run";
    weir_diagnosis_lead(
        out, &(struct weir_diagnosis){
                 .bound = verdict->bound, .wait = verdict->wait, .validation = report->steps.validation, .part = part});
    if (verdict->n_causes > 0)
        print_cause(out, verdict, 0, report);
}

static void put_rest(FILE *out, const struct weir_verdict *verdict, const struct weir_loader_report *report)
{
    for (int i = 1; i < verdict->n_causes; i++)
        print_cause(out, verdict, i, report);
    for (int i = 0; i < verdict->n_advices; i++)
        print_advice(out, verdict, &verdict->advices[i]);
    struct weir_stage_times times;
    weir_stage_times_of(&times, verdict, report);
    weir_stage_advice_print(out, &times);
    print_bound(out, verdict);
    if (are_shares_worth_printing(verdict))
        print_shares(out, &verdict->shares);
}

void weir_verdict_lines(FILE *out, const struct weir_verdict *verdict, const struct weir_loader_report *report)
{
    put_headline(out, verdict, report);
    put_rest(out, verdict, report);
}

void weir_verdict_print(FILE *out, const struct weir_verdict *verdict, const struct weir_loader_report *report)
{
    struct weir_wrap wrap;
    put_headline(weir_wrap_open(&wrap, out, WEIR_WRAP_COLUMN, NULL), verdict, report);
    wrap.highlight = true;
    weir_wrap_close(&wrap);
    put_rest(weir_wrap_open(&wrap, out, WEIR_WRAP_COLUMN, " | "), verdict, report);
    weir_wrap_close(&wrap);
}
