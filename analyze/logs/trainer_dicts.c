/* Dictionaries of the Trainer of transformers: {'loss': 1.47, 'epoch': 0.31}. From version 5 on the numbers are
 * strings. */
#include "analyze/logs/trainer.h"

#include <inttypes.h>
#include <math.h>
#include <string.h>

enum { LOSS, EVAL_RUNTIME, EVAL_SAMPLES_PER_S, TRAIN_RUNTIME, SAMPLES_PER_S, STEPS_PER_S };

/* Returns the number after 'name': in the dictionary, or NAN. */
static double number_of(const char *dict, const char *name)
{
    size_t length = strlen(name);
    double value;
    for (const char *at = strstr(dict, name); at; at = strstr(at + 1, name)) {
        if (at == dict || at[-1] != '\'' || strncmp(at + length, "': ", 3) != 0)
            continue;
        const char *text = at + length + 3;
        return weir_trainer_decimal(text + (*text == '\''), &value) > 0 ? value : NAN;
    }
    return NAN;
}

static bool is_dict(const struct weir_trainer_log *log, const char *line)
{
    (void)log;
    const char *dict = strstr(line, "{'");
    return dict && strstr(dict, "'epoch': ") && (strstr(dict, "'loss': ") || strstr(dict, "_runtime': "));
}

/* Evaluations have the prefix of their dataset. */
static void read_evaluation(struct weir_trainer_row *row, const char *dict)
{
    char name[64];
    const char *end = strstr(dict, "_runtime': "), *start = end;
    while (start && start > dict && start[-1] != '\'')
        start--;
    if (!end || end - start > 32)
        return;
    snprintf(name, sizeof name, "%.*s_runtime", (int)(end - start), start);
    row->values[EVAL_RUNTIME] = number_of(dict, name);
    snprintf(name, sizeof name, "%.*s_samples_per_second", (int)(end - start), start);
    row->values[EVAL_SAMPLES_PER_S] = number_of(dict, name);
}

static int parse_dict(struct weir_trainer_log *log, const char *line, uint64_t number)
{
    struct weir_trainer_row *row;
    const char *dict = strstr(line, "{'");
    double epoch = number_of(dict, "epoch");
    int code = isnan(epoch) ? 0 : weir_trainer_add(log, number, &row);
    if (code < 0 || isnan(epoch) || !row)
        return code;
    row->values[LOSS] = number_of(dict, "loss");
    row->values[TRAIN_RUNTIME] = number_of(dict, "train_runtime");
    row->values[SAMPLES_PER_S] = number_of(dict, "train_samples_per_second");
    row->values[STEPS_PER_S] = number_of(dict, "train_steps_per_second");
    if (isnan(row->values[TRAIN_RUNTIME]))
        read_evaluation(row, dict);
    snprintf(row->label, sizeof row->label, "%.4g", epoch);
    return 0;
}

static void remark_on_run(FILE *out, const struct weir_trainer_log *log)
{
    for (size_t i = log->n_rows; i > 0; i--) {
        const double *values = log->rows[i - 1].values;
        if (isnan(values[TRAIN_RUNTIME]) || isnan(values[STEPS_PER_S]))
            continue;
        fprintf(out, "  the run took %.4gs with %.4g steps/s, evaluations included\n", values[TRAIN_RUNTIME],
                values[STEPS_PER_S]);
        return;
    }
}

const struct weir_trainer weir_trainer_transformers = {
    .name = "transformers",
    .title = "dictionaries of the Trainer of transformers",
    .label = "epoch",
    .columns = {[LOSS] = {"loss", NULL, WEIR_TRAINER_OTHER, .unit = WEIR_TRAINER_NUMBER},
                [EVAL_RUNTIME] = {"eval_runtime", "eval", WEIR_TRAINER_OTHER, .unit = WEIR_TRAINER_SECONDS},
                [EVAL_SAMPLES_PER_S] = {"eval_samples_per_second", "samples/s", WEIR_TRAINER_OTHER,
                                        .unit = WEIR_TRAINER_NUMBER},
                [TRAIN_RUNTIME] = {"train_runtime", "train", WEIR_TRAINER_OTHER, .unit = WEIR_TRAINER_SECONDS},
                [SAMPLES_PER_S] = {"train_samples_per_second", "samples/s", WEIR_TRAINER_OTHER,
                                   .unit = WEIR_TRAINER_NUMBER},
                [STEPS_PER_S] = {"train_steps_per_second", "steps/s", WEIR_TRAINER_OTHER, .unit = WEIR_TRAINER_NUMBER}},
    .series = true,
    .recognise = is_dict,
    .parse = parse_dict,
    .remark = remark_on_run,
    .means = "it has losses and rates, which contain the wait",
    .watch = "python -m weir watch SCRIPT ...",
};
