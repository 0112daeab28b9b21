#include "analyze/verdict/stage_advice.h"
#include "analyze/causes/thresholds.h"
#include "base/numbers.h"

#include <math.h>
#include <string.h>

static double percent(double part_s, double whole_s)
{
    return whole_s > 0 ? weir_percent(part_s / whole_s) : 0;
}

/* ---- conditions ---- */

/* Returns whether a part of the whole is among the largest. */
static bool is_large(const struct weir_stage_times *times, double part_s)
{
    double largest_s = fmax(fmax(times->data_s, times->other_s), fmax(times->forward_s, times->backward_s));
    return times->whole_s > 0 && part_s > 0 && part_s >= WEIR_ADVICE_PART_LEAST * largest_s;
}

static bool is_forward_long(const struct weir_stage_times *times)
{
    return is_large(times, times->forward_s);
}

static bool is_backward_long(const struct weir_stage_times *times)
{
    return is_large(times, times->backward_s) && times->backward_s >= WEIR_ADVICE_BACKWARD_LIKE * times->forward_s;
}

static bool is_decoding_long(const struct weir_stage_times *times)
{
    return times->sample_s > 0 && times->decode_s > WEIR_VERDICT_DECODE_RULE * times->sample_s;
}

/* Returns whether nothing waits for loading, or other parts take far more time. */
static bool is_loading_short(const struct weir_stage_times *times)
{
    return times->bound == WEIR_BOUND_NO || (times->whole_s > 0 && !is_large(times, times->data_s));
}

static bool is_decoding_advised(const struct weir_stage_times *times)
{
    return is_decoding_long(times) && !is_loading_short(times);
}

static bool is_reading_advised(const struct weir_stage_times *times)
{
    return times->whole_s > 0 && times->sample_s > 0 && !is_decoding_long(times) && !is_loading_short(times);
}

/* ---- the table ---- */

enum group { DECODE, READ, FORWARD, BACKWARD, GROUPS };

static const struct stage {
    const char *name, *stages; /* stages: NULL = those that the times name */
    enum weir_advice_kind advice;
    bool (*applies)(const struct weir_stage_times *times);
} table[GROUPS] = {
    [DECODE] = {"decode", "03b_image_decode", WEIR_ADVICE_LONG_DECODING, is_decoding_advised},
    [READ] = {"read", NULL, WEIR_ADVICE_LONG_LOADING, is_reading_advised},
    [FORWARD] = {"forward", "20_train_forward_pass", WEIR_ADVICE_LONG_FORWARD, is_forward_long},
    [BACKWARD] = {"backward", "21_backward", WEIR_ADVICE_LONG_BACKWARD, is_backward_long},
};

/* ---- output ---- */

static double seconds_of(const struct weir_stage_times *times, enum group group)
{
    const double seconds[GROUPS] = {[DECODE] = times->decode_s,
                                    [READ] = times->data_s,
                                    [FORWARD] = times->forward_s,
                                    [BACKWARD] = times->backward_s};
    return seconds[group];
}

static const struct weir_advice_words *words_of(const struct weir_stage_times *times, enum group group)
{
    return weir_advice_words(group == DECODE || group == READ ? times->loader : times->step, table[group].advice);
}

/* A rule of thumb that users of imitate_episodes know, in its usual wording. */
static void print_rule(FILE *out, const struct weir_stage_times *times)
{
    fprintf(out, "  the 40 %% rule: decoding is %.0f %% of a sample's time, ",
            percent(times->decode_s, times->sample_s));
    if (!is_decoding_long(times))
        fputs("not more than 40 %: improve other parts first\n", out);
    else if (times->bound == WEIR_BOUND_NO)
        fputs("more than 40 %, but nothing waits for it\n", out);
    else if (is_loading_short(times))
        fprintf(out, "more than 40 %%, but loading is at most %.0f %% of %s: improve other parts first\n",
                percent(times->data_s, times->whole_s), times->whole);
    else
        fprintf(out, "more than 40 %%: %s\n", words_of(times, DECODE)->what);
}

/* Lists the groups that get advice, the largest first after decoding, which has a whole of its own. Returns their
 * number. */
static int choose(enum group chosen[GROUPS], const struct weir_stage_times *times)
{
    int n = 0;
    for (int i = 0; i < GROUPS; i++) {
        int at = n;
        if (!table[i].applies(times))
            continue;
        for (;
             at > 0 && chosen[at - 1] != DECODE && seconds_of(times, chosen[at - 1]) < seconds_of(times, (enum group)i);
             at--)
            chosen[at] = chosen[at - 1];
        chosen[at] = (enum group)i;
        n++;
    }
    return n;
}

void weir_stage_advice_print(FILE *out, const struct weir_stage_times *times)
{
    enum group chosen[GROUPS];
    int n = choose(chosen, times);
    if (times->sample_s > 0 && times->decode_s >= 0)
        print_rule(out, times);
    for (int i = 0; i < n; i++) {
        enum group group = chosen[i];
        const struct stage *row = &table[group];
        const struct weir_advice_words *words = words_of(times, group);
        double part_s = seconds_of(times, group);
        if (group != DECODE)
            fprintf(out, "  %-22s  %s%.0f %% of %s (%s, %.2fs): %s\n", words->name,
                    group == READ && times->data_at_most ? "at most " : "", percent(part_s, times->whole_s),
                    times->whole, group == READ ? times->data : row->stages, part_s, words->what);
    }
}

void weir_stage_advice_json(struct weir_json *json, const struct weir_stage_times *times)
{
    enum group chosen[GROUPS];
    int n = choose(chosen, times);
    weir_json_array(json, "stage_advice");
    for (int i = 0; i < n; i++) {
        enum group group = chosen[i];
        const struct stage *row = &table[group];
        const struct weir_advice_words *words = words_of(times, group);
        weir_json_object(json, NULL);
        weir_json_text(json, "name", row->name);
        weir_json_text(json, "cause", words->name);
        weir_json_text(json, "stages", group == READ ? times->data : row->stages);
        weir_json_double(json, "share",
                         seconds_of(times, group) / (group == DECODE ? times->sample_s : times->whole_s));
        weir_json_text(json, "of", group == DECODE ? "a sample's time" : times->whole);
        weir_json_text(json, "advice", words->what);
        weir_json_end(json, '}');
    }
    weir_json_end(json, ']');
}

const char *weir_stage_advice_of(const char *stage, enum weir_subject owner)
{
    for (int i = 0; i < GROUPS; i++)
        if (table[i].stages && strcmp(table[i].stages, stage) == 0)
            return weir_advice_words(owner, table[i].advice)->what;
    return NULL;
}
