#include "extras/scenario/scenario.h"
#include "extras/common/compute_ops.h"
#include "extras/scenario/mock_loader.h"
#include "weir/recorder.h"
#include "weir/stages.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>

/* ---- temporaries: short-lived device memory, which has names in traces ---- */

enum { TEMPORARIES = 24 };

struct temporaries {
    const struct weir_compute_ops *ops; /* NULL: the scenario has no temporaries */
    void *self;                         /* the backend's context */
    int device;                         /* device number to record with memory events */
    bool pool;                          /* allocate once instead of in each step */
    weir_name names[TEMPORARIES];
    weir_real *kept[TEMPORARIES]; /* the pool's arrays */
};

enum { NUMBERS_PER_MIB = (1 << 20) / sizeof(weir_real), SIZES = 4 };

static size_t numbers_of(int i)
{
    return (size_t)(1 + i % SIZES) * NUMBERS_PER_MIB;
}

/* On the CPU, maps fresh memory, because malloc would reuse freed blocks and so act like a pool. */
static weir_real *take(const struct temporaries *t, size_t numbers)
{
    if (!t->ops->host_memory)
        return t->ops->allocate(t->self, numbers);
    void *memory = mmap(NULL, numbers * sizeof(weir_real), PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    return memory == MAP_FAILED ? NULL : memory;
}

static weir_real *allocate(const struct temporaries *t, int i, struct weir_err *err)
{
    weir_real *memory = take(t, numbers_of(i));
    if (memory)
        weir_memory_reserved((int64_t)(numbers_of(i) * sizeof *memory), t->device);
    else
        weir_err_set(err, -ENOMEM, "%s: cannot allocate %d MiB; use a smaller batch size", weir_name_text(t->names[i]),
                     1 + i % SIZES);
    return memory;
}

static void release(const struct temporaries *t, int i, weir_real *memory)
{
    if (!memory)
        return;
    weir_memory_reserved(-(int64_t)(numbers_of(i) * sizeof *memory), t->device);
    if (t->ops->host_memory)
        munmap(memory, numbers_of(i) * sizeof *memory);
    else
        t->ops->release(t->self, memory);
}

static int open_pool(struct temporaries *t, struct weir_err *err)
{
    for (int i = 0; i < TEMPORARIES; i++) {
        char name[32];
        snprintf(name, sizeof name, "temporary_%02d", i);
        t->names[i] = weir_name_intern(name, WEIR_CAT_CPU_OP);
        t->kept[i] = NULL;
    }
    for (int i = 0; i < TEMPORARIES && t->pool; i++)
        if (!(t->kept[i] = allocate(t, i, err)))
            return -ENOMEM;
    return 0;
}

static void close_pool(struct temporaries *t)
{
    for (int i = 0; i < TEMPORARIES; i++) {
        release(t, i, t->kept[i]);
        t->kept[i] = NULL;
    }
}
/* Uses the temporaries first .. end-1: allocates (unless they are in the pool), fills and releases each. 0 or -ENOMEM.
 */
static int use_some(struct temporaries *t, int first, int end, struct weir_err *err)
{
    for (int i = first; i < end; i++) {
        struct weir_range range = weir_range_begin(t->names[i]);
        weir_real *memory = t->pool ? t->kept[i] : allocate(t, i, err);
        if (memory) {
            weir_memory_allocated(memory, numbers_of(i) * sizeof *memory, t->device);
            t->ops->affine(t->self, numbers_of(i), 0, 1, 1, memory);
            weir_memory_freed(memory, numbers_of(i) * sizeof *memory, t->device);
        }
        if (!t->pool)
            release(t, i, memory);
        weir_range_end(&range);
        if (!memory)
            return -ENOMEM;
    }
    return 0;
}

/* ---- open ---- */

/* VALUE_UNITS is the CPU work (weir_cpu_units) of a script that uses the loss it has read back, for example for a
 * progress bar or a log line. */
enum { VALUE_UNITS = 16000, PARTS = 3 };

struct weir_scenario {
    struct weir_scenario_config config;
    struct weir_simple_cnn *cnn;
    struct temporaries temporaries; /* memory_churn only */
    uint32_t shapes;                /* input shapes of the forward and backward passes */
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
    struct temporaries *t = &scenario->temporaries;
    if (scenario->config.kind != WEIR_SCENARIO_MEMORY_CHURN)
        return 0;
    t->ops = weir_simple_cnn_ops(scenario->cnn, &t->self);
    t->device = scenario->config.gpu ? scenario->config.gpu->number : WEIR_MEMORY_CPU;
    t->pool = scenario->config.fix;
    return open_pool(t, err);
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
    const struct weir_simple_cnn_config cnn = {
        .gpu = config->gpu,
        .batch_size = config->batch_size,
        .amp = config->amp,
        .seed = config->seed,
        .tiny = tiny_of(config),
    };
    int rc = weir_simple_cnn_open(&scenario->cnn, &cnn, err);
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
        close_pool(&scenario->temporaries);
    weir_simple_cnn_close(&scenario->cnn);
    free(scenario);
    *out = NULL;
}

/* ---- a step ---- */

/* Uses the i-th third of the temporaries. Forward, backward and optimiser step use one third each. */
static int use_temporaries(struct weir_scenario *scenario, int i, struct weir_err *err)
{
    if (!scenario->temporaries.ops)
        return 0;
    return use_some(&scenario->temporaries, i * TEMPORARIES / PARTS, (i + 1) * TEMPORARIES / PARTS, err);
}

static int forward(struct weir_scenario *scenario, struct weir_err *err)
{
    WEIR_ZONE(WEIR_STAGE_TRAIN_FORWARD);
    weir_zone_shapes(scenario->shapes);
    weir_simple_cnn_forward(scenario->cnn);
    return use_temporaries(scenario, 0, err);
}

/* Reads the loss back immediately, and so waits for all queued work. */
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

/* Remedy for sync: uses the previous step's loss while the GPU computes this step. */
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
