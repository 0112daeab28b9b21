/* Writes the diagnosis of a verdict as text and as JSON. */
#include "analyze/causes/diagnosis.h"
#include "base/terminal.h"

#include <ctype.h>
#include <math.h>
#include <string.h>

const char *weir_certainty_name(enum weir_certainty certainty)
{
    static const char *const names[] = {"unsure", "likely", "sure"};
    return names[certainty];
}

const char *weir_data_bound_name(enum weir_data_bound bound)
{
    static const char *const names[] = {NULL, "no", "partly", "strongly", "no-step"};
    return names[bound];
}

/* ---- text ---- */

/* Prints how long training waits. */
static void print_wait(FILE *out, const struct weir_diagnosis *diagnosis)
{
    enum weir_data_bound bound = diagnosis->bound;
    if (bound == WEIR_BOUND_NO_STEP)
        fputs("No training step was simulated: this is the loader's top speed. ", out);
    else if (bound != WEIR_BOUND_UNKNOWN)
        fprintf(out, "%s waited for data %s%.0f %% of the %s%s. ", diagnosis->validation ? "Validation" : "Training",
                diagnosis->at_most ? "at most " : "", 100 * fmin(fmax(diagnosis->wait, 0), 1),
                diagnosis->part ? diagnosis->part : "time",
                bound == WEIR_BOUND_NO       ? ", so data loading is not the limit"
                : bound == WEIR_BOUND_PARTLY ? ", so faster loading helps only a little"
                                             : "");
}

static void print_cause(FILE *out, const struct weir_diagnosis *diagnosis, int i)
{
    const struct weir_diagnosis_cause *cause = &diagnosis->causes[i];
    const char *sentence = diagnosis->subject == WEIR_SUBJECT_JOB ? weir_cause_sentence(cause->cause) : NULL;
    const char *text = sentence ? sentence : cause->text;
    bool named =
        cause->certainty == WEIR_CERTAINTY_LIKELY || (diagnosis->sampled && cause->certainty == WEIR_CERTAINTY_SURE);
    fprintf(out, "%s%c%s", i > 0 ? "  also: " : "", i > 0 ? text[0] : toupper((unsigned char)text[0]), text + 1);
    if (sentence && named)
        fprintf(out, " (%s)", weir_certainty_name(cause->certainty));
    fprintf(out, "%s%s.\n", sentence ? ": " : "", sentence ? cause->text : "");
}

void weir_ratio_print(FILE *out, double ratio)
{
    if (ratio > 50)
        fputs("over 50", out);
    else
        fprintf(out, "%.*f", ratio < 2 ? 2 : ratio < 10 ? 1 : 0, ratio);
}

/* Writes the first column: a job's setting, or the name of the advice. */
static void label_of(char label[80], const struct weir_diagnosis *diagnosis, const struct weir_advice *advice)
{
    bool of_job = diagnosis->subject == WEIR_SUBJECT_JOB, is_setting = of_job && advice->setting[0];
    snprintf(label, 80, "%s", is_setting ? advice->setting : weir_advice_words(diagnosis->subject, advice->kind)->name);
    for (char *c = label; *c && of_job && !is_setting; c++)
        *c = *c == '-' ? ' ' : *c;
    size_t length = strlen(label);
    if (is_setting && advice->value > 0)
        snprintf(label + length, 80 - length, " (now %.0f)", advice->now);
}

/* Writes what the advice is, as a part of the same sentence, and returns whether that is anything. */
static bool print_what(FILE *out, const struct weir_diagnosis *diagnosis, const struct weir_advice *advice)
{
    const struct weir_advice_words *words = weir_advice_words(diagnosis->subject, advice->kind);
    bool is_setting = diagnosis->subject == WEIR_SUBJECT_JOB && advice->setting[0];
    bool says_enough = is_setting && (words->how || advice->ratio > 0);
    const char *what = advice->what[0] ? advice->what : says_enough ? "" : words->what;
    bool goes_on = words->how && (strncmp(words->how, "or ", 3) == 0 || strncmp(words->how, "and ", 4) == 0);
    fputs(what, out);
    if (words->how)
        fprintf(out, "%s%s", !what[0] ? "" : goes_on ? ", " : ": ", words->how);
    return what[0] || words->how;
}

static void print_ratio(FILE *out, const struct weir_advice *advice)
{
    fputs(advice->at_most ? "up to " : "", out);
    weir_ratio_print(out, advice->ratio);
    fputs(advice->measured                   ? " x (measured)"
          : advice->at_most                  ? " x"
          : weir_advice_halves(advice->kind) ? " x (predicted, for half its time)"
                                             : " x (predicted)",
          out);
    fprintf(out, "%s%s", advice->if_latency ? " if latency is the cause" : "", advice->after);
}

static void print_advice(FILE *out, const struct weir_diagnosis *diagnosis, const struct weir_advice *advice)
{
    bool of_job = diagnosis->subject == WEIR_SUBJECT_JOB;
    char label[80];
    label_of(label, diagnosis, advice);
    fprintf(out, "  %-*s  ", of_job ? 23 : 22, label);
    bool described = print_what(out, diagnosis, advice);
    if (advice->ratio > 0 && advice->kind != WEIR_ADVICE_FEWER_WORKERS) {
        fputs(described ? ": " : "", out);
        print_ratio(out, advice);
    }
    fprintf(out, "%s%s\n", of_job || !advice->setting[0] ? "" : "  ", of_job ? "" : advice->setting);
}

static void print_headline(FILE *out, const struct weir_diagnosis *diagnosis)
{
    fputs("verdict: ", out);
    print_wait(out, diagnosis);
    if (diagnosis->n_causes > 0)
        print_cause(out, diagnosis, 0);
    else
        fprintf(out, "%s\n", diagnosis->remark);
}

static void print_rest(FILE *out, const struct weir_diagnosis *diagnosis, weir_diagnosis_more_fn *more,
                       const void *user)
{
    for (int i = 1; i < diagnosis->n_causes; i++)
        print_cause(out, diagnosis, i);
    for (int i = 0; i < diagnosis->n_advices; i++)
        print_advice(out, diagnosis, &diagnosis->advices[i]);
    if (more)
        more(out, user);
}

void weir_diagnosis_lines(FILE *out, const struct weir_diagnosis *diagnosis, weir_diagnosis_more_fn *more,
                          const void *user)
{
    print_headline(out, diagnosis);
    print_rest(out, diagnosis, more, user);
}

void weir_diagnosis_print(FILE *out, const struct weir_diagnosis *diagnosis, weir_diagnosis_more_fn *more,
                          const void *user)
{
    struct weir_wrap wrap;
    print_headline(weir_wrap_open(&wrap, out, WEIR_WRAP_COLUMN, NULL), diagnosis);
    wrap.highlight = true;
    weir_wrap_close(&wrap);
    print_rest(weir_wrap_open(&wrap, out, WEIR_WRAP_COLUMN, " | "), diagnosis, more, user);
    weir_wrap_close(&wrap);
}

/* ---- JSON ---- */

/* In diagnosis 0 means no prediction, for weir_json_known it is -1. */
static double known(double figure)
{
    return figure > 0 ? figure : -1;
}

static void cause_json(struct weir_json *json, const struct weir_diagnosis *diagnosis,
                       const struct weir_diagnosis_cause *cause)
{
    weir_json_object(json, NULL);
    weir_json_text(json, "cause", weir_cause_name(diagnosis->subject, cause->cause));
    weir_json_text(json, "certainty", weir_certainty_name(cause->certainty));
    weir_json_text(json, "name", cause->who[0] ? cause->who : NULL);
    weir_json_known(json, "share", cause->share);
    weir_json_known(json, "gain", known(cause->gain));
    weir_json_text(json, "text", cause->text);
    if (diagnosis->sampled)
        weir_json_text(json, "evidence", cause->text); /* older name, kept for one release */
    weir_json_end(json, '}');
}

static void advice_json(struct weir_json *json, const struct weir_diagnosis *diagnosis,
                        const struct weir_advice *advice)
{
    const struct weir_advice_words *words = weir_advice_words(diagnosis->subject, advice->kind);
    weir_json_object(json, NULL);
    weir_json_text(json, "what", words->name);
    weir_json_text(json, "flag", advice->setting[0] ? advice->setting : NULL);
    weir_json_known(json, "ratio", known(advice->ratio));
    weir_json_bool(json, "measured", advice->measured);
    weir_json_bool(json, "if_latency", advice->if_latency);
    weir_json_text(json, "then", advice->resource);
    weir_json_text(json, "text", advice->what[0] ? advice->what : words->what);
    if (diagnosis->sampled)
        weir_json_text(json, "advice", words->name); /* older name, kept for one release */
    if (advice->value > 0) {
        char key[sizeof advice->setting];
        snprintf(key, sizeof key, "%.*s", (int)strcspn(advice->setting, "="), advice->setting);
        weir_json_object(json, "setting");
        weir_json_double(json, key, advice->value);
        weir_json_end(json, '}');
    }
    weir_json_end(json, '}');
}

void weir_diagnosis_json(struct weir_json *json, const struct weir_diagnosis *diagnosis)
{
    weir_json_text(json, "data_bound", weir_data_bound_name(diagnosis->bound));
    weir_json_known(json, "data_wait_fraction", diagnosis->wait);
    weir_json_array(json, "causes");
    for (int i = 0; i < diagnosis->n_causes; i++)
        cause_json(json, diagnosis, &diagnosis->causes[i]);
    weir_json_end(json, ']');
    weir_json_array(json, "advice");
    for (int i = 0; i < diagnosis->n_advices; i++)
        advice_json(json, diagnosis, &diagnosis->advices[i]);
    weir_json_end(json, ']');
}
