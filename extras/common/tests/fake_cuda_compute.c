/* The fake GPU's backend for networks. It runs the CPU backend's functions on the thread of the fake stream and on fake
 * GPU memory. Every call waits, because its arguments may be on the caller's stack. It has no mixed precision, so the
 * loss scale is 1. */
#include "extras/common/compute_ops.h"
#include "tests/fakes/fake_cuda.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct fake_compute {
    struct weir_gpu gpu;
    void *stream;
    bool own_stream;
    void *cpu; /* context of weir_compute_cpu */
    struct weir_err err;
    char description[128];
};

static const struct weir_compute_ops *const cpu_ops = &weir_compute_cpu;

/* ---- on the stream ---- */

struct call {
    struct fake_compute *self;
    void (*run)(struct fake_compute *self, void *arguments);
    void *arguments;
};

static void run_call(void *user)
{
    const struct call *call = user;
    call->run(call->self, call->arguments);
}

static void on_stream(struct fake_compute *self, const char *name,
                      void (*run)(struct fake_compute *self, void *arguments), void *arguments)
{
    struct call *call = malloc(sizeof *call);
    void *event;
    if (!call)
        fake_die("out of host memory");
    *call = (struct call){self, run, arguments};
    const struct fake_operation operation = {.name = name, .run = run_call, .user = call};
    if (self->err.code < 0 || fake_queue(&self->gpu, self->stream, &operation, &self->err) < 0) {
        free(call);
        return;
    }
    if (fake_event_new(&self->gpu, false, &event, &self->err) < 0)
        return;
    if (fake_record(&self->gpu, event, self->stream, &self->err) < 0 || fake_wait(&self->gpu, event, &self->err) < 0)
        fake_drain(&self->gpu); /* the operation is still queued and uses the caller's arguments */
    fake_event_free(&self->gpu, event);
}

/* Returns the host address of a matrix in GPU memory with leading dimension ld. Aborts if it exceeds its allocation. */
static weir_real *rows_at(const weir_real *gpu, int rows, int columns, int ld, const char *what)
{
    if (!gpu || rows < 1)
        return NULL;
    return fake_memory(gpu, ((size_t)(rows - 1) * (size_t)ld + (size_t)columns) * sizeof *gpu, what);
}

static weir_real *at(const weir_real *gpu, size_t numbers, const char *what)
{
    return gpu ? fake_memory(gpu, numbers * sizeof *gpu, what) : NULL;
}

/* ---- open ---- */

static void fake_compute_close(void *user)
{
    struct fake_compute *self = user;
    if (!self)
        return;
    cpu_ops->close(self->cpu);
    if (self->own_stream && self->stream)
        fake_stream_free(&self->gpu, self->stream);
    free(self);
}

static int fake_compute_open(void **out, const struct weir_compute_config *config, struct weir_err *err)
{
    *out = NULL;
    if (config->gpu < 0 || config->gpu >= fake_config()->gpus)
        return weir_err_set(err, -ENODEV, "there is no GPU %d (stand-in)", config->gpu);
    struct fake_compute *self = calloc(1, sizeof *self);
    if (!self)
        return weir_err_set(err, -ENOMEM, "out of memory");
    self->gpu.number = config->gpu;
    self->stream = config->stream;
    self->own_stream = !config->stream;
    int rc = cpu_ops->open(&self->cpu, &(struct weir_compute_config){.threads = 1}, err);
    if (rc == 0 && self->own_stream)
        rc = fake_stream_new(&self->gpu, false, &self->stream, err);
    if (rc < 0) {
        fake_compute_close(self);
        return rc;
    }
    snprintf(self->description, sizeof self->description, "GPU %d (stand-in)%s", config->gpu,
             config->amp ? ", mixed precision" : "");
    *out = self;
    return 0;
}

static const char *describe(const void *self)
{
    return ((const struct fake_compute *)self)->description;
}

static int finish(void *user, struct weir_err *err)
{
    struct fake_compute *self = user;
    return self->err.code < 0 ? weir_err_set(err, self->err.code, "%s", self->err.text) : 0;
}

/* ---- memory ---- */

static uint64_t available_bytes(void *user)
{
    struct fake_compute *self = user;
    uint64_t free_bytes = 0, total_bytes;
    fake_memory_info(&self->gpu, &free_bytes, &total_bytes, NULL);
    return free_bytes;
}

struct numbers {
    void *to;
    const void *from;
    size_t n, rows;
    double scale, shift;
    int times;
};

static void run_clear(struct fake_compute *self, void *arguments)
{
    const struct numbers *a = arguments;
    (void)self;
    memset(at(a->to, a->n, "new memory"), 0, a->n * sizeof(weir_real));
}

static weir_real *allocate(void *user, size_t n)
{
    struct fake_compute *self = user;
    void *memory = NULL;
    if (fake_alloc(&self->gpu, (n > 0 ? n : 1) * sizeof(weir_real), &memory, NULL) < 0)
        return NULL;
    on_stream(self, "memset", run_clear, &(struct numbers){.to = memory, .n = n});
    return memory;
}

static void release(void *user, weir_real *memory)
{
    if (memory)
        fake_free(&((struct fake_compute *)user)->gpu, memory);
}

static void run_copy_in(struct fake_compute *self, void *arguments)
{
    const struct numbers *a = arguments;
    cpu_ops->copy_in(self->cpu, at(a->to, a->n, "copy_in's target"), a->from, a->n);
}

static void copy_in(void *self, weir_real *to, const float *from, size_t n)
{
    on_stream(self, "copy_in", run_copy_in, &(struct numbers){.to = to, .from = from, .n = n});
}

static void run_copy_out(struct fake_compute *self, void *arguments)
{
    const struct numbers *a = arguments;
    cpu_ops->copy_out(self->cpu, a->to, at(a->from, a->n, "copy_out's source"), a->n);
}

static void copy_out(void *self, weir_real *to, const weir_real *from, size_t n)
{
    memset(to, 0, n * sizeof *to);
    on_stream(self, "copy_out", run_copy_out, &(struct numbers){.to = to, .from = from, .n = n});
}

static void run_send(struct fake_compute *self, void *arguments)
{
    cpu_ops->send(self->cpu, at(arguments, 1, "send's number"));
}

static void send_number(void *self, const weir_real *number)
{
    on_stream(self, "copy_out", run_send, (void *)number);
}

static int receive(void *user, bool wait, weir_real *number, struct weir_err *err)
{
    struct fake_compute *self = user;
    int rc = finish(self, err);
    return rc < 0 ? rc : cpu_ops->receive(self->cpu, wait, number, err);
}

static void run_weigh(struct fake_compute *self, void *arguments)
{
    const struct numbers *a = arguments;
    cpu_ops->weigh(self->cpu, a->n, fake_memory(a->from, a->n, "weigh's is_pad"), at(a->to, a->n, "weigh's weights"));
}

static void weigh(void *self, size_t rows, const uint8_t *is_pad, weir_real *weights)
{
    on_stream(self, "weigh", run_weigh, &(struct numbers){.to = weights, .from = is_pad, .n = rows});
}

static void run_affine(struct fake_compute *self, void *arguments)
{
    const struct numbers *a = arguments;
    cpu_ops->affine(self->cpu, a->n, a->scale, a->shift, a->times, at(a->to, a->n, "affine's numbers"));
}

static void affine(void *self, size_t n, double scale, double shift, int times, weir_real *x)
{
    on_stream(self, "affine", run_affine,
              &(struct numbers){.to = x, .n = n, .scale = scale, .shift = shift, .times = times});
}

/* ---- layers ---- */

static void run_gemm(struct fake_compute *self, void *arguments)
{
    struct weir_gemm g = *(const struct weir_gemm *)arguments;
    g.a = rows_at(g.a, g.transpose_a ? g.k : g.m, g.transpose_a ? g.m : g.k, g.lda, "gemm's a");
    g.b = rows_at(g.b, g.transpose_b ? g.n : g.k, g.transpose_b ? g.k : g.n, g.ldb, "gemm's b");
    g.c = rows_at(g.c, g.m, g.n, g.ldc, "gemm's c");
    cpu_ops->gemm(self->cpu, &g);
}

static void gemm(void *self, const struct weir_gemm *g)
{
    on_stream(self, "gemm", run_gemm, (void *)g);
}

struct matrix {
    int rows, columns, ld;
    bool relu;
    const weir_real *in;
    weir_real *out;
};

static void run_bias_relu(struct fake_compute *self, void *arguments)
{
    const struct matrix *a = arguments;
    cpu_ops->bias_relu(self->cpu, a->rows, a->columns, at(a->in, (size_t)a->columns, "a bias"), a->relu,
                       rows_at(a->out, a->rows, a->columns, a->ld, "bias_relu's y"), a->ld);
}

static void bias_relu(void *self, int rows, int columns, const weir_real *bias, bool relu, weir_real *y, int ld)
{
    on_stream(self, "bias_relu", run_bias_relu, &(struct matrix){rows, columns, ld, relu, bias, y});
}

static void run_bias_gradient(struct fake_compute *self, void *arguments)
{
    const struct matrix *a = arguments;
    cpu_ops->bias_gradient(self->cpu, a->rows, a->columns,
                           rows_at(a->in, a->rows, a->columns, a->ld, "bias_gradient's dy"), a->ld,
                           at(a->out, (size_t)a->columns, "a bias gradient"));
}

static void bias_gradient(void *self, int rows, int columns, const weir_real *dy, int ld, weir_real *gradient)
{
    on_stream(self, "bias_gradient", run_bias_gradient, &(struct matrix){rows, columns, ld, false, dy, gradient});
}

static void run_relu_backward(struct fake_compute *self, void *arguments)
{
    const struct matrix *a = arguments;
    cpu_ops->relu_backward(self->cpu, a->rows, a->columns,
                           rows_at(a->in, a->rows, a->columns, a->ld, "relu_backward's y"),
                           rows_at(a->out, a->rows, a->columns, a->ld, "relu_backward's dy"), a->ld);
}

static void relu_backward(void *self, int rows, int columns, const weir_real *y, weir_real *dy, int ld)
{
    on_stream(self, "relu_backward", run_relu_backward, &(struct matrix){rows, columns, ld, false, y, dy});
}

/* ---- convolutions ---- */

static int reserve(void *self, const struct weir_convolution *convolution)
{
    return cpu_ops->reserve(((struct fake_compute *)self)->cpu, convolution);
}

struct convolving {
    const struct weir_convolution *c;
    int n;
    size_t x_stride;
    const weir_real *x, *weight, *bias, *dy;
    weir_real *y, *weight_gradient, *bias_gradient, *dx;
};

static struct convolving translated(const struct convolving *given)
{
    struct convolving a = *given;
    size_t input = (size_t)a.c->channels * (size_t)a.c->height * (size_t)a.c->width;
    size_t output = (size_t)a.c->filters * (size_t)a.c->out_height * (size_t)a.c->out_width, n = (size_t)a.n;
    size_t weights = (size_t)a.c->filters * (size_t)a.c->channels * WEIR_KERNEL * WEIR_KERNEL;
    a.x = at(a.x, (n - 1) * a.x_stride + input, "a convolution's x");
    a.weight = at(a.weight, weights, "a convolution's weight");
    a.bias = at(a.bias, (size_t)a.c->filters, "a convolution's bias");
    a.dy = at(a.dy, n * output, "a convolution's dy");
    a.y = at(a.y, n * output, "a convolution's y");
    a.weight_gradient = at(a.weight_gradient, weights, "a weight's gradient");
    a.bias_gradient = at(a.bias_gradient, (size_t)a.c->filters, "a bias gradient");
    a.dx = at(a.dx, n * input, "a convolution's dx");
    return a;
}

static void run_convolve(struct fake_compute *self, void *arguments)
{
    const struct convolving a = translated(arguments);
    cpu_ops->convolve(self->cpu, a.c, a.n, a.x, a.x_stride, a.weight, a.bias, a.y);
}

static void convolve(void *self, const struct weir_convolution *c, int n, const weir_real *x, size_t x_stride,
                     const weir_real *weight, const weir_real *bias, weir_real *y)
{
    on_stream(
        self, "convolve", run_convolve,
        &(struct convolving){.c = c, .n = n, .x_stride = x_stride, .x = x, .weight = weight, .bias = bias, .y = y});
}

static void run_convolve_backward(struct fake_compute *self, void *arguments)
{
    const struct convolving a = translated(arguments);
    cpu_ops->convolve_backward(self->cpu, a.c, a.n, a.x, a.x_stride, a.weight, a.dy, a.weight_gradient, a.bias_gradient,
                               a.dx);
}

static void convolve_backward(void *self, const struct weir_convolution *c, int n, const weir_real *x, size_t x_stride,
                              const weir_real *weight, const weir_real *dy, weir_real *weight_gradient,
                              weir_real *bias_gradient, weir_real *dx)
{
    on_stream(self, "convolve_backward", run_convolve_backward,
              &(struct convolving){.c = c,
                                   .n = n,
                                   .x_stride = x_stride,
                                   .x = x,
                                   .weight = weight,
                                   .dy = dy,
                                   .weight_gradient = weight_gradient,
                                   .bias_gradient = bias_gradient,
                                   .dx = dx});
}

struct pooling {
    int n, channels, pixels, ld;
    const weir_real *x, *dy;
    weir_real *y, *dx;
};

static struct pooling translated_pool(const struct pooling *given)
{
    struct pooling a = *given;
    size_t numbers = (size_t)a.n * (size_t)a.channels * (size_t)a.pixels;
    a.x = at(a.x, numbers, "a pool's x");
    a.dx = at(a.dx, numbers, "a pool's dx");
    a.y = rows_at(a.y, a.n, a.channels, a.ld, "a pool's y");
    a.dy = rows_at(a.dy, a.n, a.channels, a.ld, "a pool's dy");
    return a;
}

static void run_average_pool(struct fake_compute *self, void *arguments)
{
    const struct pooling a = translated_pool(arguments);
    cpu_ops->average_pool(self->cpu, a.n, a.channels, a.pixels, a.x, a.y, a.ld);
}

static void average_pool(void *self, int n, int channels, int pixels, const weir_real *x, weir_real *y, int ld)
{
    on_stream(self, "average_pool", run_average_pool,
              &(struct pooling){.n = n, .channels = channels, .pixels = pixels, .ld = ld, .x = x, .y = y});
}

static void run_average_pool_backward(struct fake_compute *self, void *arguments)
{
    const struct pooling a = translated_pool(arguments);
    cpu_ops->average_pool_backward(self->cpu, a.n, a.channels, a.pixels, a.x, a.dy, a.ld, a.dx);
}

static void average_pool_backward(void *self, int n, int channels, int pixels, const weir_real *x, const weir_real *dy,
                                  int ld, weir_real *dx)
{
    on_stream(self, "average_pool_backward", run_average_pool_backward,
              &(struct pooling){.n = n, .channels = channels, .pixels = pixels, .ld = ld, .x = x, .dy = dy, .dx = dx});
}

/* ---- loss and optimiser ---- */

struct losing {
    int rows, columns;
    const weir_real *y, *wanted, *weights;
    weir_real *loss, *dy;
    double scale;
};

static struct losing translated_loss(const struct losing *given)
{
    struct losing a = *given;
    size_t numbers = (size_t)a.rows * (size_t)a.columns;
    a.y = at(a.y, numbers, "the loss's y");
    a.wanted = at(a.wanted, numbers, "the loss's target");
    a.weights = at(a.weights, (size_t)a.rows, "the loss's weights");
    a.loss = at(a.loss, 2, "the loss");
    a.dy = at(a.dy, numbers, "the loss's dy");
    return a;
}

static void run_l1(struct fake_compute *self, void *arguments)
{
    const struct losing a = translated_loss(arguments);
    cpu_ops->l1(self->cpu, a.rows, a.columns, a.y, a.wanted, a.weights, a.loss);
}

static void l1(void *self, int rows, int columns, const weir_real *y, const weir_real *wanted, const weir_real *weights,
               weir_real *loss)
{
    on_stream(self, "l1", run_l1, &(struct losing){rows, columns, y, wanted, weights, loss, NULL, 0});
}

static void run_l1_backward(struct fake_compute *self, void *arguments)
{
    const struct losing a = translated_loss(arguments);
    cpu_ops->l1_backward(self->cpu, a.rows, a.columns, a.y, a.wanted, a.weights, a.loss, a.scale, a.dy);
}

static void l1_backward(void *self, int rows, int columns, const weir_real *y, const weir_real *wanted,
                        const weir_real *weights, const weir_real *loss, double scale, weir_real *dy)
{
    on_stream(self, "l1_backward", run_l1_backward,
              &(struct losing){rows, columns, y, wanted, weights, (weir_real *)loss, dy, scale});
}

static void loss_scale(void *self, struct weir_loss_scale *now)
{
    (void)self;
    *now = (struct weir_loss_scale){.scale = 1};
}

static void set_loss_scale(void *self, const struct weir_loss_scale *scale)
{
    (void)self;
    (void)scale;
}

struct optimising {
    const struct weir_adamw *adamw;
    size_t numbers;
    weir_real *parameters, *gradients, *mean, *variance;
};

static void run_adamw(struct fake_compute *self, void *arguments)
{
    const struct optimising *a = arguments;
    cpu_ops->adamw(self->cpu, a->adamw, a->numbers, at(a->parameters, a->numbers, "adamw's parameters"),
                   at(a->gradients, a->numbers, "adamw's gradients"), at(a->mean, a->numbers, "adamw's mean"),
                   at(a->variance, a->numbers, "adamw's variance"));
}

static void adamw(void *self, const struct weir_adamw *a, size_t numbers, weir_real *parameters, weir_real *gradients,
                  weir_real *mean, weir_real *variance)
{
    on_stream(self, "adamw", run_adamw, &(struct optimising){a, numbers, parameters, gradients, mean, variance});
}

const struct weir_compute_ops weir_compute_fake = {
    .group_bytes = SIZE_MAX,
    .open = fake_compute_open,
    .close = fake_compute_close,
    .describe = describe,
    .finish = finish,
    .available_bytes = available_bytes,
    .allocate = allocate,
    .release = release,
    .copy_in = copy_in,
    .copy_out = copy_out,
    .send = send_number,
    .receive = receive,
    .weigh = weigh,
    .affine = affine,
    .gemm = gemm,
    .bias_relu = bias_relu,
    .bias_gradient = bias_gradient,
    .relu_backward = relu_backward,
    .reserve = reserve,
    .convolve = convolve,
    .convolve_backward = convolve_backward,
    .average_pool = average_pool,
    .average_pool_backward = average_pool_backward,
    .l1 = l1,
    .l1_backward = l1_backward,
    .loss_scale = loss_scale,
    .set_loss_scale = set_loss_scale,
    .adamw = adamw,
};
