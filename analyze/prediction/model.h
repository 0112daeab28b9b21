/* model.h: predicts the effect of a change, by a simulation of the run calibrated to its measured rate.
 *
 *     struct weir_model model;
 *     weir_model_make(&model, &demands, report, NULL);
 *     struct weir_model_change change = WEIR_MODEL_AS_IT_IS;
 *     change.workers = 8;
 *     double ratio = weir_model_predict(&model, &change, &limit);
 *
 * Predictions are ratios: simulated images/s after the change over those before it. Pure. Any thread. */
#ifndef WEIR_ANALYZE_PREDICTION_MODEL_H
#define WEIR_ANALYZE_PREDICTION_MODEL_H

#include "analyze/prediction/simulate.h"

/* Optional measurements of the machine that one run cannot provide. */
struct weir_model_facts {
    double handover_s; /* wake-up time of a waiting thread; 0 = not measured */
    int n_growth;      /* points, ascending by busy; 0 = CPU time does not grow with busy threads */
    struct weir_growth_point growth[WEIR_SIMULATE_POINTS];
};

struct weir_model {
    bool known;                 /* false: nothing can be predicted */
    struct weir_simulation now; /* the base run */
    double images_each;         /* mean images per batch */
    double rate, simulated;     /* images/s, measured and simulated */
    double stretch;             /* factor of the workers' times that makes the two agree */
    enum weir_resource feed;    /* resource that the simulation's upload stands for: the bus, or a GPU's decoders */
    struct weir_simulated was;
};

/* A change of the run. Unchanged: numbers < 0, factors 1. */
struct weir_model_change {
    double workers, slots, cores;
    double cpu_times, asleep_times, library_times, feed_times, step_times;
    double step_s, step_cpu_s; /* of a batch, instead of the model's: asleep, and on a core */
    int n_growth;              /* > 0: growth of CPU time after the change, instead of the model's */
    struct weir_growth_point growth[WEIR_SIMULATE_POINTS];
};
#define WEIR_MODEL_AS_IT_IS ((struct weir_model_change){-1, -1, -1, 1, 1, 1, 1, 1, -1, -1, 0, {{0, 0}}})

/* facts may be NULL. An insufficient or implausible report gives a model that is not known. */
void weir_model_make(struct weir_model *model, const struct weir_demands *demands,
                     const struct weir_loader_report *report, const struct weir_model_facts *facts);

/* Returns images/s after the change over those before; 0 = not known. *limit, unless NULL, gets the resource that is
 * busiest then. */
double weir_model_predict(const struct weir_model *model, const struct weir_model_change *change,
                          enum weir_resource *limit);

/* The same for a change of the demands that the model was made from. Returns 0 where weir_demands_predict is more
 * accurate: without workers, and for other numbers of workers where other processes share the cores. */
double weir_model_predict_demands(const struct weir_model *model, const struct weir_demands *demands,
                                  const struct weir_change *demanded, enum weir_resource *limit);

#endif
