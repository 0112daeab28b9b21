#include "analyze/causes/diagnosis.h"
#include "analyze/causes/thresholds.h"
#include "base/text.h"

#include <stdarg.h>
#include <string.h>

__attribute__((format(printf, 2, 0))) static void say(struct weir_diagnosis_cause *cause, const char *format,
                                                      va_list arguments)
{
    size_t length = strlen(cause->text);
    vsnprintf(cause->text + length, sizeof cause->text - length, format, arguments);
    weir_text_printable(cause->text + length);
}

void weir_diagnosis_say(struct weir_diagnosis_cause *cause, const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    say(cause, format, arguments);
    va_end(arguments);
}

struct weir_diagnosis_cause *weir_diagnosis_add(struct weir_diagnosis *diagnosis, enum weir_cause cause, double share,
                                                double gain, const char *format, ...)
{
    struct weir_diagnosis_cause *to = &diagnosis->causes[diagnosis->n_causes];
    diagnosis->n_causes += diagnosis->n_causes < WEIR_DIAGNOSIS_CAUSES;
    for (int i = 0; i < WEIR_DIAGNOSIS_CAUSES && to == &diagnosis->causes[WEIR_DIAGNOSIS_CAUSES]; i++)
        if (diagnosis->causes[i].gain < gain)
            to = &diagnosis->causes[i];
    *to = (struct weir_diagnosis_cause){
        .cause = cause,
        .certainty = cause == WEIR_CAUSE_CANNOT_TELL ? WEIR_CERTAINTY_UNSURE : WEIR_CERTAINTY_SURE,
        .share = share,
        .gain = gain,
        .advice = diagnosis->subject == WEIR_SUBJECT_JOB ? weir_cause_advice(cause) : WEIR_ADVICE_NONE,
    };
    va_list arguments;
    va_start(arguments, format);
    say(to, format, arguments);
    va_end(arguments);
    return to;
}

bool weir_diagnosis_has(const struct weir_diagnosis *diagnosis, enum weir_cause cause)
{
    for (int i = 0; i < diagnosis->n_causes; i++)
        if (diagnosis->causes[i].cause == cause)
            return true;
    return false;
}

void weir_diagnosis_sort(struct weir_diagnosis *diagnosis, int most,
                         double (*rank)(const void *user, const struct weir_diagnosis_cause *cause), const void *user)
{
    struct weir_diagnosis_cause *causes = diagnosis->causes;
    for (int i = 1; i < diagnosis->n_causes; i++)
        for (int k = i; k > 0 && rank(user, &causes[k]) > rank(user, &causes[k - 1]); k--) {
            struct weir_diagnosis_cause earlier = causes[k - 1];
            causes[k - 1] = causes[k];
            causes[k] = earlier;
        }
    diagnosis->n_causes = diagnosis->n_causes < most ? diagnosis->n_causes : most;
}

bool weir_ratio_is_worth(double ratio)
{
    return ratio >= WEIR_VERDICT_WORTH;
}

struct weir_advice *weir_diagnosis_advise(struct weir_diagnosis *diagnosis, enum weir_advice_kind kind, double ratio)
{
    for (int i = 0; i < diagnosis->n_advices; i++)
        if (diagnosis->advices[i].kind == kind)
            return NULL;
    if (kind == WEIR_ADVICE_NONE || diagnosis->n_advices == WEIR_DIAGNOSIS_ADVICES)
        return NULL;
    struct weir_advice *to = &diagnosis->advices[diagnosis->n_advices++];
    const char *setting = weir_advice_words(diagnosis->subject, kind)->setting;
    *to = (struct weir_advice){.kind = kind, .ratio = weir_ratio_is_worth(ratio) ? ratio : 0};
    snprintf(to->setting, sizeof to->setting, "%s", setting ? setting : "");
    return to;
}

void weir_advice_set(struct weir_advice *advice, const char *name, double now, double value)
{
    if (!advice || value <= 0)
        return;
    advice->now = now;
    advice->value = value;
    snprintf(advice->setting, sizeof advice->setting, "%s=%.0f", name, value);
}

/* ---- how much training waits for data ---- */

enum weir_data_bound weir_data_bound(double wait)
{
    return wait < WEIR_VERDICT_WAIT_LEAST    ? WEIR_BOUND_NO
           : wait < WEIR_VERDICT_WAIT_STRONG ? WEIR_BOUND_PARTLY
                                             : WEIR_BOUND_STRONGLY;
}

/* Few batches are enough if training takes longer, and at most half of them were prefetched before it began. */
bool weir_verdict_suffices(uint64_t train_batches, double train_s, int slots)
{
    bool is_long = train_batches >= WEIR_VERDICT_BATCHES_LONG && train_s >= WEIR_VERDICT_SECONDS_LONG &&
                   train_batches >= 2 * (uint64_t)slots;
    return train_s >= WEIR_VERDICT_SECONDS_LEAST && (train_batches >= WEIR_VERDICT_BATCHES_LEAST || is_long);
}
