/* scenario.h: training steps with a deliberate bottleneck, or with its remedy: what weir scenario runs.
 *
 *     weir_scenario_open(&scenario, &config, &err);
 *     for (...) { weir_scenario_step(scenario, images, targets, &err); weir_scenario_measure(scenario, &err); }
 *     weir_scenario_close(&scenario);
 *
 * The stages of a step are zones (07_h2d_copy, 20_train_forward_pass, 21_backward, 22_optimizer_step). The caller gets
 * the batches (mock_loader.h) and gives their items the costs of weir_scenario_item. One thread uses a scenario. */
#ifndef WEIR_EXTRAS_SCENARIO_SCENARIO_H
#define WEIR_EXTRAS_SCENARIO_SCENARIO_H

#include "extras/scenario/simple_cnn.h"
#include "weir/base.h"

enum weir_scenario_kind {
    WEIR_SCENARIO_DATALOADER,   /* items are slow to make */
    WEIR_SCENARIO_SYNC,         /* the loss is read back, and used, between forward and backward */
    WEIR_SCENARIO_TINY_OPS,     /* many small kernels */
    WEIR_SCENARIO_MEMORY_CHURN, /* many short-lived allocations of device memory */
    WEIR_SCENARIOS
};

struct weir_scenario_config {
    enum weir_scenario_kind kind;
    bool fix; /* apply the remedy: send the loss and use it later; one kernel; a pool. For dataloader the caller does */
    struct weir_device *device; /* borrowed until close; NULL: the CPU */
    int batch_size;
    bool amp;
    uint64_t seed;
};

struct weir_scenario;

/* Cost of an item: CPU work (weir_cpu_units) and sleep. */
void weir_scenario_item(enum weir_scenario_kind kind, uint64_t *cpu_units, uint64_t *io_ns);

/* Errors are those of weir_simple_cnn_open. */
int weir_scenario_open(struct weir_scenario **out, const struct weir_scenario_config *config, struct weir_err *err);
/* Accepts NULL. */
void weir_scenario_close(struct weir_scenario **scenario);

/* Queues a step, which uses images and targets until measure returns. 0, -ENOMEM or -EIO. */
int weir_scenario_step(struct weir_scenario *scenario, const float *images, const float *targets, struct weir_err *err);
/* Waits for all queued work, in a range "measurement". 0, or the error of a queued call (-EIO). */
int weir_scenario_measure(struct weir_scenario *scenario, struct weir_err *err);

/* The network, for its figures; owned by the scenario. */
struct weir_simple_cnn *weir_scenario_cnn(struct weir_scenario *scenario);

#endif
