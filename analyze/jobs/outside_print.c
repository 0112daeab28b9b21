/* The verdict on a job that is seen from outside, as text and as JSON. */
#include "analyze/jobs/outside.h"
#include "base/terminal.h"

#include <string.h>

enum { HANG = 9 };

static void print_advice(FILE *out, const struct weir_outside_cause *cause)
{
    const struct weir_job_advice_info *advice = weir_job_advice_info(cause->advice);
    struct weir_wrap wrap;
    if (!advice->what[0])
        return;
    FILE *text = weir_wrap_open(&wrap, out, HANG, NULL);
    if (cause->num_workers > 0)
        fprintf(text, "next:    set num_workers=%d (now %d)", cause->num_workers, cause->num_workers_now);
    else
        fprintf(text, "next:    %s", advice->what);
    weir_job_advice_print_why(text, advice);
    if (cause->gain > 1)
        fprintf(text, ", for up to %.2f times the steps/s", cause->gain);
    fputc('\n', text);
    weir_wrap_close(&wrap);
}

void weir_outside_print(FILE *out, const struct weir_outside_verdict *verdict)
{
    for (int i = 0; i < verdict->n_causes; i++) {
        const struct weir_outside_cause *cause = &verdict->causes[i];
        struct weir_wrap wrap;
        FILE *text = weir_wrap_open(&wrap, out, HANG, NULL);
        wrap.highlight = i == 0;
        fprintf(text, "%s %s", i == 0 ? "verdict:" : "also:   ", weir_job_cause_info(cause->cause)->sentence);
        if (cause->certainty != WEIR_CERTAINTY_UNSURE)
            fprintf(text, " (%s)", weir_certainty_name(cause->certainty));
        fprintf(text, ": %s\n", cause->evidence);
        weir_wrap_close(&wrap);
    }
    for (int i = 0; i < verdict->n_causes; i++) {
        bool said = false;
        for (int before = 0; before < i; before++)
            said = said || verdict->causes[before].advice == verdict->causes[i].advice;
        if (!said)
            print_advice(out, &verdict->causes[i]);
    }
}

static void put_cause(struct weir_json *json, const struct weir_outside_cause *cause)
{
    weir_json_object(json, NULL);
    weir_json_text(json, "cause", weir_job_cause_info(cause->cause)->name);
    weir_json_text(json, "certainty", weir_certainty_name(cause->certainty));
    weir_json_text(json, "evidence", cause->evidence);
    if (cause->gain > 0)
        weir_json_double(json, "gain", cause->gain);
    weir_json_end(json, '}');
}

static void put_advice(struct weir_json *json, const struct weir_outside_cause *cause)
{
    const struct weir_job_advice_info *advice = weir_job_advice_info(cause->advice);
    weir_json_object(json, NULL);
    weir_json_text(json, "advice", advice->name);
    weir_json_text(json, "text", advice->what);
    if (cause->num_workers > 0) {
        weir_json_object(json, "setting");
        weir_json_int(json, "num_workers", cause->num_workers);
        weir_json_end(json, '}');
    }
    weir_json_end(json, '}');
}

void weir_outside_json(struct weir_json *json, const struct weir_outside_verdict *verdict)
{
    weir_json_object(json, "verdict");
    weir_json_bool(json, "ready", verdict->ready);
    weir_json_text(json, "certainty", verdict->n_causes ? weir_certainty_name(verdict->causes[0].certainty) : NULL);
    weir_json_array(json, "causes");
    for (int i = 0; i < verdict->n_causes; i++)
        put_cause(json, &verdict->causes[i]);
    weir_json_end(json, ']');
    weir_json_array(json, "advice");
    for (int i = 0; i < verdict->n_causes; i++)
        if (verdict->causes[i].advice != WEIR_JOB_ADVICE_NONE)
            put_advice(json, &verdict->causes[i]);
    weir_json_end(json, ']');
    weir_json_end(json, '}');
}
