/* The table of formats. */
#include "analyze/logs/trainer.h"

#include <stdlib.h>

static const struct weir_trainer *const others[] = {
    &weir_trainer_lightning,    &weir_trainer_traceml, &weir_trainer_keys,
    &weir_trainer_transformers, &weir_trainer_act,     &weir_trainer_tqdm,
};

static void add(struct weir_trainers *trainers, const struct weir_trainer *const *formats, int n)
{
    for (int i = 0; i < n && trainers->n < WEIR_TRAINERS_MAX; i++)
        trainers->logs[trainers->n++] =
            (struct weir_trainer_log){.trainer = formats[i], .rounding_s = formats[i]->rounding_s};
}

void weir_trainers_open(struct weir_trainers *trainers)
{
    *trainers = (struct weir_trainers){0};
    add(trainers, weir_trainer_steps, weir_trainer_n_steps);
    add(trainers, others, sizeof others / sizeof *others);
}

void weir_trainers_close(struct weir_trainers *trainers)
{
    for (int i = 0; i < trainers->n; i++) {
        free(trainers->logs[i].rows);
        free(trainers->logs[i].document_);
    }
    *trainers = (struct weir_trainers){0};
}

int weir_trainers_line(struct weir_trainers *trainers, const char *line, uint64_t number)
{
    for (int i = 0; i < trainers->n; i++) {
        struct weir_trainer_log *log = &trainers->logs[i];
        int code = log->trainer->recognise(log, line) ? log->trainer->parse(log, line, number) : 0;
        if (code < 0)
            return code;
    }
    return 0;
}

int weir_trainers_finish(struct weir_trainers *trainers)
{
    int code = 0;
    for (int i = 0; i < trainers->n && code == 0; i++)
        if (trainers->logs[i].trainer->finish)
            code = trainers->logs[i].trainer->finish(&trainers->logs[i]);
    return code;
}

const struct weir_trainer_log *weir_trainers_found(const struct weir_trainers *trainers)
{
    for (int i = 0; i < trainers->n; i++)
        if (trainers->logs[i].n_rows > 0)
            return &trainers->logs[i];
    return NULL;
}
