/* Prints what follows the causes and the advice: stages, limits, and the shares of the step; and writes JSON. */
#include "analyze/verdict/verdict_priv.h"
#include "base/field_rows.h"
#include "base/numbers.h"

/* ---- text ---- */

static void print_bound(FILE *out, const struct weir_verdict *verdict)
{
    const struct weir_demands *d = &verdict->demands;
    if (!d->known || d->bound_rate <= 0 || verdict->found.bound == WEIR_BOUND_UNKNOWN)
        return;
    fputs("  limits in images/s:", out);
    const char *comma = " the ";
    for (int i = 0; i < WEIR_RESOURCES; i++) {
        if (d->bound[i] <= 0 || (i == WEIR_RESOURCE_CONSUMER && verdict->found.bound == WEIR_BOUND_NO_STEP))
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
    bool waits = verdict->found.bound == WEIR_BOUND_PARTLY || verdict->found.bound == WEIR_BOUND_STRONGLY;
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
    if (shares->backward_over_forward > 0)
        fprintf(out, "  backward over forward: %.2f (1 to 2 is usual)%s\n", shares->backward_over_forward,
                shares->backward_limits ? ": the backward pass is the step's bottleneck" : "");
}

static void print_more(FILE *out, const void *user)
{
    const struct weir_verdict *verdict = user;
    weir_stage_advice_print(out, &verdict->stages);
    print_bound(out, verdict);
    if (are_shares_worth_printing(verdict))
        print_shares(out, &verdict->shares);
}

void weir_verdict_lines(FILE *out, const struct weir_verdict *verdict)
{
    weir_diagnosis_lines(out, &verdict->found, print_more, verdict);
}

void weir_verdict_print(FILE *out, const struct weir_verdict *verdict)
{
    weir_diagnosis_print(out, &verdict->found, print_more, verdict);
}

/* ---- JSON ---- */

static void put_resources(struct weir_json *json, const void *from)
{
    const struct weir_demands *d = from;
    weir_json_object(json, "resources");
    for (int i = 0; i < WEIR_RESOURCES && d->known; i++) {
        if (d->bound[i] <= 0)
            continue;
        weir_json_object(json, weir_resource_name((enum weir_resource)i));
        weir_json_double(json, "busy_s_per_image", d->each_s[i]);
        weir_json_double(json, "images_per_s_at_most", d->bound[i]);
        weir_json_end(json, '}');
    }
    weir_json_end(json, '}');
}

#define S struct weir_worker_time
static const struct weir_field times[] = {
    PLAIN("cpu", cpu),
    PLAIN("throttled", throttled),
    PLAIN("core_wait", core_wait),
    PLAIN("blocked", blocked),
    PLAIN("idle", idle),
    PLAIN("library", library),
    PLAIN("other_waits", other_waits),
    {.key = "unattributed", .type = WEIR_FIELD_DOUBLE, WEIR_FIELD_AT(S, unattributed), .older = "other"},
};
static WEIR_FIELDS(times_fields, times);
#undef S

#define S struct weir_step_shares
static const struct weir_field shares[] = {
    PLAIN("data_wait", wait),
    PLAIN("forward", forward),
    PLAIN("backward", backward),
    PLAIN("optimizer", optimiser),
    PLAIN("release", release),
    {.key = "unattributed", .type = WEIR_FIELD_DOUBLE, WEIR_FIELD_AT(S, unattributed), .older = "other"},
    OMIT("backward_over_forward", backward_over_forward),
};
static WEIR_FIELDS(shares_fields, shares);
#undef S

#define S struct weir_verdict
static const struct weir_field verdict_rows[] = {
    PLAIN("decode_share", demands.decode_share),
    PLAIN("decode_rule", decode_rule),
    WRITTEN_AT(put_resources, demands),
    PLAIN("images_per_s", demands.rate),
    PLAIN("gap", demands.gap),
    PLAIN("usable_cores", demands.usable),
    PLAIN("own_cores", demands.own_cores),
    MEMBER("workers_time", times_fields, demands.of),
    MEMBER_IF("step_shares", shares_fields, shares, known),
};
static WEIR_FIELDS(verdict_fields, verdict_rows);
#undef S

void weir_verdict_json(struct weir_json *json, const struct weir_verdict *verdict)
{
    weir_json_object(json, "verdict");
    weir_diagnosis_json(json, &verdict->found);
    weir_stage_advice_json(json, &verdict->stages);
    weir_fields_json(json, &verdict_fields, verdict);
    weir_json_end(json, '}');
}
