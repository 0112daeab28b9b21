/* Writes the member "verdict" of a log line. */
#include "analyze/verdict/stage_advice.h"
#include "analyze/verdict/verdict_priv.h"

/* Returns the name of the camera, file or worker, or NULL if the cause has none. */
static const char *name_in(const struct weir_verdict_cause *cause)
{
    if (cause->cause == WEIR_CAUSE_SLOW_WORKER)
        return cause->worker.name;
    return cause->cause == WEIR_CAUSE_SLOW_CAMERA || cause->cause == WEIR_CAUSE_SLOW_FILE ? cause->source.name : NULL;
}

static void write_causes(struct weir_json *json, const struct weir_verdict *verdict,
                         const struct weir_loader_report *report)
{
    char text[768];
    weir_json_array(json, "causes");
    for (int i = 0; i < verdict->n_causes; i++) {
        const struct weir_verdict_cause *cause = &verdict->causes[i];
        const char *name = name_in(cause);
        weir_verdict_sentence(text, sizeof text, verdict, cause, report);
        weir_json_object(json, NULL);
        weir_json_text(json, "cause", weir_cause_name(WEIR_SUBJECT_LOADER, cause->cause));
        if (name)
            weir_json_text(json, "name", name);
        weir_json_double(json, "share", cause->share);
        weir_json_known(json, "gain", cause->gain > 0 ? cause->gain : -1);
        weir_json_text(json, "text", text);
        weir_json_end(json, '}');
    }
    weir_json_end(json, ']');
}

static void write_advices(struct weir_json *json, const struct weir_verdict *verdict)
{
    weir_json_array(json, "advice");
    for (int i = 0; i < verdict->n_advices; i++) {
        const struct weir_verdict_advice *advice = &verdict->advices[i];
        weir_json_object(json, NULL);
        weir_json_text(json, "what", weir_advice_words(WEIR_SUBJECT_LOADER, advice->kind)->name);
        weir_json_text(json, "flag", *advice->flag ? advice->flag : NULL);
        weir_json_known(json, "ratio", advice->ratio > 0 ? advice->ratio : -1);
        weir_json_bool(json, "measured", advice->measured);
        weir_json_bool(json, "if_latency", advice->if_latency);
        weir_json_text(json, "then", advice->ratio > 0 && !advice->measured ? weir_resource_name(advice->limit) : NULL);
        weir_json_end(json, '}');
    }
    weir_json_end(json, ']');
}

static void write_demands(struct weir_json *json, const struct weir_demands *d)
{
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
    weir_json_double(json, "images_per_s", d->rate);
    weir_json_double(json, "gap", d->gap);
    weir_json_double(json, "usable_cores", d->usable);
    weir_json_double(json, "own_cores", d->own_cores);
    weir_json_object(json, "workers_time");
    weir_json_double(json, "cpu", d->of.cpu);
    weir_json_double(json, "throttled", d->of.throttled);
    weir_json_double(json, "core_wait", d->of.core_wait);
    weir_json_double(json, "blocked", d->of.blocked);
    weir_json_double(json, "idle", d->of.idle);
    weir_json_double(json, "library", d->of.library);
    weir_json_double(json, "other_waits", d->of.other_waits);
    weir_json_double(json, "unattributed", d->of.unattributed);
    weir_json_double(json, "other", d->of.unattributed); /* older name, kept for one release */
    weir_json_end(json, '}');
}

void weir_verdict_json(struct weir_json *json, const struct weir_verdict *verdict,
                       const struct weir_loader_report *report)
{
    const struct weir_step_shares *shares = &verdict->shares;
    struct weir_stage_times times;
    weir_stage_times_of(&times, verdict, report);
    weir_json_object(json, "verdict");
    weir_json_text(json, "data_bound", weir_data_bound_name(verdict->bound));
    weir_json_known(json, "data_wait_fraction", verdict->wait);
    write_causes(json, verdict, report);
    write_advices(json, verdict);
    weir_stage_advice_json(json, &times);
    weir_json_double(json, "decode_share", verdict->demands.decode_share);
    weir_json_bool(json, "decode_rule", verdict->decode_rule);
    write_demands(json, &verdict->demands);
    if (shares->known) {
        weir_json_object(json, "step_shares");
        weir_json_double(json, "data_wait", shares->wait);
        weir_json_double(json, "forward", shares->forward);
        weir_json_double(json, "backward", shares->backward);
        weir_json_double(json, "optimizer", shares->optimiser);
        weir_json_double(json, "release", shares->release);
        weir_json_double(json, "unattributed", shares->unattributed);
        weir_json_double(json, "other", shares->unattributed); /* older name, kept for one release */
        if (shares->backward_over_forward > 0)
            weir_json_double(json, "backward_over_forward", shares->backward_over_forward);
        weir_json_end(json, '}');
    }
    weir_json_end(json, '}');
}
