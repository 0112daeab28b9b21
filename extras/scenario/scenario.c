#include "extras/scenario/scenario.h"
#include "extras/scenario/cpu_units.h"
#include "extras/scenario/temporaries.h"
#include "pipeline/gpu/gpu.h"
#include "weir/recorder.h"
#include "weir/stages.h"

#include <errno.h>
#include <stdlib.h>

/* What a script does with a value that it has read back (a progress bar, a line of a log), in units of 50 ns. */
enum { VALUE_UNITS = 16000, PARTS = 3 };

struct weir_scenario {
    struct weir_scenario_config config;
    void *stream;
    struct weir_simple_cnn *cnn;
    struct weir_temporaries temporaries; /* of memory_churn: ops is NULL else */
    uint32_t shapes;                     /* of what the passes work on */
};

void weir_scenario_item(enum weir_scenario_kind kind, uint64_t *cpu_units, uint64_t *io_ns)
{
    bool slow = kind == WEIR_SCENARIO_DATALOADER;
    *cpu_units = slow ? 4000 : 200;
    *io_ns = slow ? 2000000 : 0;
}

static enum weir_tiny_ops tiny_of(const struct weir_scenario_config *config)
{
    if (config->kind != WEIR_SCENARIO_TINY_OPS)
        return WEIR_TINY_NONE;
    return config->fix ? WEIR_TINY_FUSED : WEIR_TINY_SEPARATE;
}

static int open_temporaries(struct weir_scenario *scenario, struct weir_err *err)
{
    struct weir_temporaries *t = &scenario->temporaries;
    if (scenario->config.kind != WEIR_SCENARIO_MEMORY_CHURN)
        return 0;
    t->ops = weir_simple_cnn_ops(scenario->cnn, &t->self);
    t->device = weir_device_number(scenario->config.device);
    t->pool = scenario->config.fix;
    return weir_temporaries_open(t, err);
}

int weir_scenario_open(struct weir_scenario **out, const struct weir_scenario_config *config, struct weir_err *err)
{
    static const char *const types[] = {"float", "float"};
    *out = NULL;
    struct weir_scenario *scenario = calloc(1, sizeof *scenario);
    if (!scenario)
        return weir_err_set(err, -ENOMEM, "out of memory");
    scenario->config = *config;
    scenario->shapes = weir_shapes_intern(
        2, (int[]){4, 2},
        (int64_t[]){config->batch_size, 3, WEIR_CNN_SIDE, WEIR_CNN_SIDE, config->batch_size, WEIR_CNN_OUTPUTS}, types);
    int rc = config->device ? weir_device_stream(config->device, &scenario->stream, err) : 0;
    const struct weir_simple_cnn_config cnn = {
        .device = config->device,
        .stream = scenario->stream,
        .batch_size = config->batch_size,
        .amp = config->amp,
        .seed = config->seed,
        .tiny = tiny_of(config),
    };
    if (rc == 0)
        rc = weir_simple_cnn_open(&scenario->cnn, &cnn, err);
    if (rc == 0)
        rc = open_temporaries(scenario, err);
    if (rc < 0)
        weir_scenario_close(&scenario);
    *out = scenario;
    return rc;
}

void weir_scenario_close(struct weir_scenario **out)
{
    struct weir_scenario *scenario = *out;
    if (!scenario)
        return;
    if (scenario->temporaries.ops)
        weir_temporaries_close(&scenario->temporaries);
    weir_simple_cnn_close(&scenario->cnn);
    if (scenario->stream)
        weir_device_stream_free(scenario->config.device, scenario->stream);
    free(scenario);
    *out = NULL;
}

/* ---- a step ---- */

/* Part i of the temporaries, of which a step uses a third in each of its parts. */
static int use_temporaries(struct weir_scenario *scenario, int i, struct weir_err *err)
{
    if (!scenario->temporaries.ops)
        return 0;
    return weir_temporaries_use(&scenario->temporaries, i * WEIR_TEMPORARIES / PARTS,
                                (i + 1) * WEIR_TEMPORARIES / PARTS, err);
}

static int forward(struct weir_scenario *scenario, struct weir_err *err)
{
    WEIR_ZONE(WEIR_STAGE_TRAIN_FORWARD);
    weir_zone_shapes(scenario->shapes);
    weir_simple_cnn_forward(scenario->cnn);
    return use_temporaries(scenario, 0, err);
}

/* The value is needed here and now: everything before it has to be done first. */
static void read_loss(struct weir_scenario *scenario)
{
    WEIR_OPERATOR("read_loss_back");
    weir_simple_cnn_loss(scenario->cnn);
    weir_cpu_units(VALUE_UNITS);
}

static int backward(struct weir_scenario *scenario, struct weir_err *err)
{
    WEIR_ZONE(WEIR_STAGE_BACKWARD);
    weir_zone_shapes(scenario->shapes);
    weir_simple_cnn_backward(scenario->cnn);
    return use_temporaries(scenario, 1, err);
}

static int optimise(struct weir_scenario *scenario, struct weir_err *err)
{
    WEIR_ZONE(WEIR_STAGE_OPTIMIZER);
    weir_simple_cnn_optimise(scenario->cnn);
    return use_temporaries(scenario, 2, err);
}

/* The remedy: the same value, a step later, while the GPU is busy with this one. */
static int use_sent_loss(struct weir_scenario *scenario, struct weir_err *err)
{
    double loss;
    WEIR_OPERATOR("use_loss_sent_before");
    int rc = weir_simple_cnn_receive_loss(scenario->cnn, &loss, err);
    if (rc > 0)
        weir_cpu_units(VALUE_UNITS);
    return rc < 0 ? rc : 0;
}

static int copy_in(struct weir_scenario *scenario, const float *images, const float *targets, struct weir_err *err)
{
    WEIR_ZONE(WEIR_STAGE_H2D_COPY);
    weir_zone_shapes(scenario->shapes);
    return weir_simple_cnn_copy_in(scenario->cnn, images, targets, err);
}

int weir_scenario_step(struct weir_scenario *scenario, const float *images, const float *targets, struct weir_err *err)
{
    bool sync = scenario->config.kind == WEIR_SCENARIO_SYNC, fix = scenario->config.fix;
    int rc = copy_in(scenario, images, targets, err);
    if (rc == 0)
        rc = forward(scenario, err);
    if (rc == 0 && sync && fix)
        weir_simple_cnn_send_loss(scenario->cnn);
    else if (rc == 0 && sync)
        read_loss(scenario);
    if (rc == 0)
        rc = backward(scenario, err);
    if (rc == 0)
        rc = optimise(scenario, err);
    return rc == 0 && sync && fix ? use_sent_loss(scenario, err) : rc;
}

int weir_scenario_measure(struct weir_scenario *scenario, struct weir_err *err)
{
    WEIR_RANGE("measurement");
    return weir_simple_cnn_finish(scenario->cnn, err);
}

struct weir_simple_cnn *weir_scenario_cnn(struct weir_scenario *scenario)
{
    return scenario->cnn;
}
