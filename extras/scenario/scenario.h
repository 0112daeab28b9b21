/* scenario.h: training steps that have a bottleneck on purpose, or the remedy of it: what weir scenario runs.
 *
 *     weir_scenario_open(&scenario, &config, &err);
 *     for (...) { weir_scenario_step(scenario, images, targets, &err); weir_scenario_measure(scenario, &err); }
 *     weir_scenario_close(&scenario);
 *
 * The stages of a step are zones (07_h2d_copy, 20_train_forward_pass, 21_backward, 22_optimizer_step). Waiting for data
 * is the caller's (item_feed.h), who gives the items the work that weir_scenario_item names. One thread uses it. */
#ifndef WEIR_EXTRAS_SCENARIO_SCENARIO_H
#define WEIR_EXTRAS_SCENARIO_SCENARIO_H

#include "extras/scenario/simple_cnn.h"
#include "weir/base.h"

enum weir_scenario_kind {
    WEIR_SCENARIO_DATALOADER,   /* items take long to be made */
    WEIR_SCENARIO_SYNC,         /* the loss is read back between forward and backward, and used at once */
    WEIR_SCENARIO_TINY_OPS,     /* many small kernels */
    WEIR_SCENARIO_MEMORY_CHURN, /* many temporary allocations of device memory */
    WEIR_SCENARIOS
};

struct weir_scenario_config {
    enum weir_scenario_kind kind;
    bool fix; /* the remedy is applied: the loss is sent and used later; one kernel; a pool; of items it is the caller's
               */
    struct weir_device *device; /* borrowed until close; NULL: the CPU */
    int batch_size;
    bool amp;
    uint64_t seed;
};

struct weir_scenario;

/* What making an item of it takes: units of CPU work (cpu_units.h), and ns asleep. */
void weir_scenario_item(enum weir_scenario_kind kind, uint64_t *cpu_units, uint64_t *io_ns);

/* As weir_simple_cnn_open. */
int weir_scenario_open(struct weir_scenario **out, const struct weir_scenario_config *config, struct weir_err *err);
/* Accepts NULL. */
void weir_scenario_close(struct weir_scenario **scenario);

/* Queues a step; images and targets are in use until measure returns. 0, -ENOMEM, -EIO. */
int weir_scenario_step(struct weir_scenario *scenario, const float *images, const float *targets, struct weir_err *err);
/* Waits for all that is queued, in a range "measurement". 0, or what went wrong since (-EIO). */
int weir_scenario_measure(struct weir_scenario *scenario, struct weir_err *err);

/* The network, for what can be seen of it; owned by the scenario. */
struct weir_simple_cnn *weir_scenario_cnn(struct weir_scenario *scenario);

#endif
