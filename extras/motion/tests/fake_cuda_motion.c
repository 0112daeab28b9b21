/* The fake GPU's backend for motion. It runs the CPU backend's functions on the thread of the fake stream and on fake
 * GPU memory. Operators and passes are queued, and reported to observers as kernels with names of their own. Copies
 * wait. */
#include "extras/motion/motion.h"
#include "extras/motion/motion_ops.h"
#include "tests/fakes/fake_cuda.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct fake_motion {
    struct weir_gpu gpu;
    void *stream;
    bool own_stream;
    void *cpu; /* context of weir_motion_cpu */
    struct weir_err err;
    char description[64];
};

static const struct weir_motion_ops *const cpu_ops = &weir_motion_cpu;

/* ---- on the stream ---- */

/* A queued call. The stream frees it. */
struct call {
    struct fake_motion *self;
    void (*run)(const struct call *call);
    struct weir_motion_operator operation;
    struct weir_motion_pass pass;
    void *to;
    const void *from;
    size_t n;
    float dt_s;
};

static void run_call(void *user)
{
    const struct call *call = user;
    call->run(call);
}

static void queue(struct fake_motion *self, const char *name, const struct call *given)
{
    struct call *call = malloc(sizeof *call);
    if (!call)
        fake_die("out of host memory");
    *call = *given;
    call->self = self;
    const struct fake_operation operation = {.name = name, .run = run_call, .user = call, .bytes = given->n};
    if (self->err.code < 0 || fake_queue(&self->gpu, self->stream, &operation, &self->err) < 0)
        free(call);
}

static void wait_for(struct fake_motion *self)
{
    void *event;
    if (self->err.code < 0 || fake_event_new(&self->gpu, false, &event, &self->err) < 0) {
        fake_drain(&self->gpu);
        return;
    }
    if (fake_record(&self->gpu, event, self->stream, &self->err) < 0 || fake_wait(&self->gpu, event, &self->err) < 0)
        fake_drain(&self->gpu);
    fake_event_free(&self->gpu, event);
}

/* ---- open ---- */

static void motion_close(void *user)
{
    struct fake_motion *self = user;
    if (!self)
        return;
    fake_drain(&self->gpu);
    fake_memory_check_empty(&self->gpu);
    cpu_ops->close(self->cpu);
    if (self->own_stream && self->stream)
        fake_stream_free(&self->gpu, self->stream);
    free(self);
}

static int motion_open(void **out, const struct weir_motion_device *device, struct weir_err *err)
{
    *out = NULL;
    if (device->gpu < 0 || device->gpu >= fake_config()->gpus)
        return weir_err_set(err, -ENODEV, "there is no GPU %d (stand-in)", device->gpu);
    struct fake_motion *self = calloc(1, sizeof *self);
    if (!self)
        return weir_err_set(err, -ENOMEM, "out of memory");
    self->gpu.number = device->gpu;
    self->stream = device->stream;
    self->own_stream = !device->stream;
    int rc = cpu_ops->open(&self->cpu, &(struct weir_motion_device){.threads = 1}, err);
    if (rc == 0 && self->own_stream)
        rc = fake_stream_new(&self->gpu, false, &self->stream, err);
    if (rc < 0) {
        motion_close(self);
        return rc;
    }
    snprintf(self->description, sizeof self->description, "GPU %d (stand-in)", device->gpu);
    *out = self;
    return 0;
}

static const char *describe(const void *self)
{
    return ((const struct fake_motion *)self)->description;
}

static void *stream(void *self)
{
    return ((struct fake_motion *)self)->stream;
}

static int finish(void *user, struct weir_err *err)
{
    struct fake_motion *self = user;
    wait_for(self);
    return self->err.code < 0 ? weir_err_set(err, self->err.code, "%s", self->err.text) : 0;
}

/* ---- memory ---- */

static uint64_t available_bytes(void *user)
{
    struct fake_motion *self = user;
    uint64_t free_bytes = 0, total_bytes;
    fake_memory_info(&self->gpu, &free_bytes, &total_bytes, NULL);
    return free_bytes;
}

static void *allocate(void *user, size_t bytes)
{
    struct fake_motion *self = user;
    void *memory = NULL;
    return fake_alloc(&self->gpu, bytes > 0 ? bytes : 1, &memory, NULL) < 0 ? NULL : memory;
}

static void release(void *user, void *memory, size_t bytes)
{
    (void)bytes;
    fake_free(&((struct fake_motion *)user)->gpu, memory);
}

static uint64_t reserved(void *self)
{
    (void)self;
    return 0;
}

static void run_copy_in(const struct call *call)
{
    memcpy(fake_memory(call->to, call->n, "copy_in's target"), call->from, call->n);
}

static void copy_in(void *self, void *to, const void *from, size_t bytes)
{
    queue(self, "copy_in", &(struct call){.run = run_copy_in, .to = to, .from = from, .n = bytes});
    wait_for(self);
}

static void run_copy_out(const struct call *call)
{
    memcpy(call->to, fake_memory(call->from, call->n, "copy_out's source"), call->n);
}

static void copy_out(void *self, void *to, const void *from, size_t bytes)
{
    memset(to, 0, bytes);
    queue(self, "copy_out", &(struct call){.run = run_copy_out, .to = to, .from = from, .n = bytes});
    wait_for(self);
}

/* ---- calculations ---- */

static struct weir_motion_array translated(struct weir_motion_array a, const char *what)
{
    static const size_t sizes[] = {[WEIR_MOTION_F32] = sizeof(float), [WEIR_MOTION_I64] = sizeof(int64_t), 1};
    if (!a.data || a.rows == 0)
        return a;
    size_t last = (a.rows - 1) / (size_t)a.repeat;
    a.data = fake_memory(a.data, (last * a.stride + (size_t)a.columns) * sizes[a.type], what);
    return a;
}

static void run_operate(const struct call *call)
{
    struct weir_motion_operator o = call->operation;
    o.r = translated(o.r, "an operator's result");
    o.x = translated(o.x, "an operator's x");
    o.y = translated(o.y, "an operator's y");
    o.z = translated(o.z, "an operator's z");
    cpu_ops->operate(call->self->cpu, &o);
}

static void operate(void *self, const struct weir_motion_operator *operation)
{
    static const char *const names[WEIR_MOTION_KINDS] = {
        [WEIR_MOTION_ARANGE] = "motion_arange",   [WEIR_MOTION_INDEX] = "motion_index",
        [WEIR_MOTION_INDEX_PUT] = "motion_put",   [WEIR_MOTION_COPY] = "motion_copy",
        [WEIR_MOTION_ADD] = "motion_add",         [WEIR_MOTION_SUB] = "motion_sub",
        [WEIR_MOTION_RSUB] = "motion_rsub",       [WEIR_MOTION_MUL] = "motion_mul",
        [WEIR_MOTION_DIV] = "motion_div",         [WEIR_MOTION_MINIMUM] = "motion_minimum",
        [WEIR_MOTION_FLOOR] = "motion_floor",     [WEIR_MOTION_CLAMP] = "motion_clamp",
        [WEIR_MOTION_NEG] = "motion_neg",         [WEIR_MOTION_ABS] = "motion_abs",
        [WEIR_MOTION_LT] = "motion_lt",           [WEIR_MOTION_WHERE] = "motion_where",
        [WEIR_MOTION_ACOS] = "motion_acos",       [WEIR_MOTION_SIN] = "motion_sin",
        [WEIR_MOTION_SUM] = "motion_sum",         [WEIR_MOTION_LERP] = "motion_lerp",
        [WEIR_MOTION_ADDCMUL] = "motion_addcmul", [WEIR_MOTION_CROSS] = "motion_cross",
        [WEIR_MOTION_CAT] = "motion_cat",         [WEIR_MOTION_SLERP] = "motion_slerp"};
    queue(self, names[operation->kind], &(struct call){.run = run_operate, .operation = *operation});
}

/* Does not check the size of the frames array beyond two rows, because a pass does not contain the number of rows. */
static void run_pass(const struct call *call)
{
    const struct fake_clocks clocks = {.what = "a pass's clocks",
                                       .stages = WEIR_MOTION_STAGES,
                                       .rows_max = WEIR_MOTION_ITERATIONS,
                                       .iterations = 1,
                                       .threads = 128,
                                       .first = {1, 2, 1, 1, 2}};
    int64_t start_ns = fake_now_ns();
    struct weir_motion_pass p = call->pass;
    const int widths[WEIR_MOTION_OUTPUTS] = {3, 4, 3, 3, 3, 3, p.dofs, p.dofs, 3 * p.bodies};
    size_t queries = p.envs * (size_t)p.steps, spare = WEIR_MOTION_SPARE;
    p.frames = fake_memory(p.frames, (2 * (size_t)p.row.stride + spare) * sizeof *p.frames, "a pass's frames");
    p.spans = fake_memory(p.spans, sizeof *p.spans, "a pass's spans");
    p.clip_of = fake_memory(p.clip_of, p.envs * sizeof *p.clip_of, "a pass's clips");
    p.times = fake_memory(p.times, queries * sizeof *p.times, "a pass's times");
    for (int i = 0; i < WEIR_MOTION_OUTPUTS; i++)
        p.results[i] =
            fake_memory(p.results[i], (queries * (size_t)widths[i] + spare) * sizeof(float), "a pass's result");
    cpu_ops->pass(call->self->cpu, &p);
    fake_write_clocks(&p.clocks, &clocks, start_ns);
}

static void pass(void *self, const struct weir_motion_pass *given)
{
    queue(self, given->clocks.memory ? "motion_pass_clocked" : "motion_pass",
          &(struct call){.run = run_pass, .pass = *given});
}

static void run_advance(const struct call *call)
{
    cpu_ops->advance(call->self->cpu, call->n, fake_memory(call->to, call->n * sizeof(float), "advance's times"),
                     call->dt_s);
}

static void advance(void *self, size_t n, float *times, float dt_s)
{
    queue(self, "motion_advance", &(struct call){.run = run_advance, .to = times, .n = n, .dt_s = dt_s});
}

const struct weir_motion_ops weir_motion_fake = {
    .open = motion_open,
    .close = motion_close,
    .describe = describe,
    .stream = stream,
    .finish = finish,
    .available_bytes = available_bytes,
    .allocate = allocate,
    .release = release,
    .reserved = reserved,
    .copy_in = copy_in,
    .copy_out = copy_out,
    .operate = operate,
    .pass = pass,
    .advance = advance,
};
