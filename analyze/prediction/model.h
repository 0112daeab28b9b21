/* model.h: what a change would give a run: its report, as a simulation that is calibrated to the rate that was
 * measured.
 *
 *     struct weir_model model;
 *     weir_model_make(&model, &demands, report, NULL);
 *     struct weir_model_change change = WEIR_MODEL_AS_IT_IS;
 *     change.workers = 8;
 *     double ratio = weir_model_predict(&model, &change, &limit);
 *
 * Predictions are ratios: images/s of the simulation after the change over those before it. Pure. Any thread. */
#ifndef WEIR_ANALYZE_PREDICTION_MODEL_H
#define WEIR_ANALYZE_PREDICTION_MODEL_H

#include "analyze/prediction/simulate.h"

/* What one run cannot know of the machine, where somebody has measured it. */
struct weir_model_facts {
    double handover_s; /* until a thread that waits goes on; 0 = not measured, taken to be nothing */
    int n_growth;      /* ascending by busy; 0 = CPU time is taken to stay as it is, whoever runs beside */
    struct weir_growth_point growth[WEIR_SIMULATE_POINTS];
};

struct weir_model {
    bool known;                 /* else nothing can be predicted */
    struct weir_simulation now; /* the run as it was */
    double images_each;         /* of a batch, mean */
    double rate, simulated;     /* images/s: measured, and by the simulation */
    double stretch;             /* of the workers' times, that made the two agree */
    enum weir_resource feed;    /* what the simulation's feed is: the bus, or a GPU's decoders */
    struct weir_simulated was;
};

/* Numbers < 0: as it is; times 1: as it is. */
struct weir_model_change {
    double workers, slots, cores;
    double cpu_times, asleep_times, library_times, feed_times, step_times;
    double step_s, step_cpu_s; /* of a batch, in place of the model's: asleep, and on a core */
    int n_growth;              /* > 0: of the CPU time after the change, in place of the model's */
    struct weir_growth_point growth[WEIR_SIMULATE_POINTS];
};
#define WEIR_MODEL_AS_IT_IS ((struct weir_model_change){-1, -1, -1, 1, 1, 1, 1, 1, -1, -1, 0, {{0, 0}}})

/* facts may be NULL. A report that says too little, or no sense, gives a model that is not known. */
void weir_model_make(struct weir_model *model, const struct weir_demands *demands,
                     const struct weir_loader_report *report, const struct weir_model_facts *facts);

/* images/s then over images/s now; 0 = not known. limit, which may be NULL, gets the resource that is busiest then. */
double weir_model_predict(const struct weir_model *model, const struct weir_model_change *change,
                          enum weir_resource *limit);

/* The same for a change of demands (demands.h), from which the model was made. 0 where weir_demands_predict knows more:
 * without workers, and for other numbers of them where other processes have some of the cores. */
double weir_model_predict_demands(const struct weir_model *model, const struct weir_demands *demands,
                                  const struct weir_change *demanded, enum weir_resource *limit);

#endif
