/* model.h: predicts the effect of a change by simulating the run. The simulation is calibrated to the measured rate.
 *
 *     struct weir_model model;
 *     weir_model_make(&model, &demands, report, NULL);
 *     struct weir_model_change change = WEIR_MODEL_AS_IT_IS;
 *     change.workers = 8;
 *     double ratio = weir_model_predict(&model, &change, &limit);
 *
 * Predictions are ratios: simulated images/s after the change divided by those before it. These functions have no side
 * effects and can be called on any thread. */
#ifndef WEIR_ANALYZE_PREDICTION_MODEL_H
#define WEIR_ANALYZE_PREDICTION_MODEL_H

#include "analyze/prediction/simulate.h"

/* Optional measurements of the machine, which a single run cannot provide. */
struct weir_model_facts {
    double handover_s; /* time until a waiting thread wakes up; 0 = not measured */
    int n_growth; /* number of points, ascending by busy; 0 = CPU time does not grow with the number of busy threads */
    struct weir_growth_point growth[WEIR_SIMULATE_POINTS];
};

struct weir_model {
    bool known;                 /* if false, nothing can be predicted */
    struct weir_simulation now; /* the run before any change */
    double images_each;         /* mean number of images per batch */
    double rate, simulated;     /* images/s, as measured and as simulated */
    double stretch;             /* factor of the workers' times that makes the simulated rate equal the measured rate */
    enum weir_resource feed;    /* resource that the simulated upload represents: the bus or the GPU's decoders */
    struct weir_simulated was;
};

/* A change of the run. Numbers below 0 and factors of 1 mean no change. */
struct weir_model_change {
    double workers, slots, cores;
    double cpu_times, asleep_times, library_times, feed_times, step_times;
    double step_s, step_cpu_s; /* time per batch of the step, asleep and on a core, instead of the model's */
    int n_growth;              /* if > 0: growth of CPU time to use instead of the model's */
    struct weir_growth_point growth[WEIR_SIMULATE_POINTS];
};
#define WEIR_MODEL_AS_IT_IS ((struct weir_model_change){-1, -1, -1, 1, 1, 1, 1, 1, -1, -1, 0, {{0, 0}}})

/* Makes a model from a report. facts can be NULL. If the report is insufficient or implausible, model->known is false.
 */
void weir_model_make(struct weir_model *model, const struct weir_demands *demands,
                     const struct weir_loader_report *report, const struct weir_model_facts *facts);

/* Calibrates a model whose `now`, `rate` and `images_each` the caller has filled, and sets its other members. wait: the
 * fraction of the time that the consumer waited. */
void weir_model_calibrate(struct weir_model *model, double wait);

/* Returns images/s after the change over those before it, or 0 if unknown. Sets *limit, unless NULL, to the resource
 * that is busiest after the change. */
double weir_model_predict(const struct weir_model *model, const struct weir_model_change *change,
                          enum weir_resource *limit);

/* Same, for a change of the demands from which the model was made. Returns 0 if weir_demands_predict is more accurate:
 * without workers, and for a different number of workers if other processes share the cores. */
double weir_model_predict_demands(const struct weir_model *model, const struct weir_demands *demands,
                                  const struct weir_change *demanded, enum weir_resource *limit);

#endif
