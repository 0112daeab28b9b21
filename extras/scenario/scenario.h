/* scenario.h: training steps with a deliberate bottleneck, or with its remedy, for the command weir scenario.
 *
 *     weir_scenario_open(&scenario, &config, &err);
 *     for (...) { weir_scenario_step(scenario, images, targets, &err); weir_scenario_measure(scenario, &err); }
 *     weir_scenario_close(&scenario);
 *
 * A step records a zone for each of its stages (07_h2d_copy, 20_train_forward_pass, 21_backward, 22_optimizer_step).
 * The caller gets the batches from mock_loader.h, whose items it configures with the costs from weir_scenario_item. A
 * scenario must be used by one thread only. */
#ifndef WEIR_EXTRAS_SCENARIO_SCENARIO_H
#define WEIR_EXTRAS_SCENARIO_SCENARIO_H

#include "extras/scenario/simple_cnn.h"
#include "weir/base.h"

enum weir_scenario_kind {
    WEIR_SCENARIO_DATALOADER,   /* items are slow to make */
    WEIR_SCENARIO_SYNC,         /* the loss is read back and used between the forward and backward passes */
    WEIR_SCENARIO_TINY_OPS,     /* many small kernels */
    WEIR_SCENARIO_MEMORY_CHURN, /* many short-lived allocations of device memory */
    WEIR_SCENARIOS
};

struct weir_scenario_config {
    enum weir_scenario_kind kind;
    bool fix;                       /* apply the remedy, except for dataloader, where the caller applies it */
    const struct weir_cnn_gpu *gpu; /* borrowed until close; NULL: the CPU */
    int batch_size;
    bool amp;
    uint64_t seed;
};

struct weir_scenario;

/* Sets the cost of an item: CPU work (in weir_cpu_units) and sleep. */
void weir_scenario_item(enum weir_scenario_kind kind, uint64_t *cpu_units, uint64_t *io_ns);

/* Returns 0 or an error of weir_simple_cnn_open. */
int weir_scenario_open(struct weir_scenario **out, const struct weir_scenario_config *config, struct weir_err *err);
/* Accepts a pointer to NULL. */
void weir_scenario_close(struct weir_scenario **scenario);

/* Queues a step. images and targets must stay valid until weir_scenario_measure returns. 0, -ENOMEM or -EIO. */
int weir_scenario_step(struct weir_scenario *scenario, const float *images, const float *targets, struct weir_err *err);
/* Waits for all queued work, in a range called "measurement". 0, or the error of a queued call (-EIO). */
int weir_scenario_measure(struct weir_scenario *scenario, struct weir_err *err);

/* Returns the network, to query its loss and other figures. The scenario owns it. */
struct weir_simple_cnn *weir_scenario_cnn(struct weir_scenario *scenario);

#endif
