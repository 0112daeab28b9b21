/* Networks on the CPU. Matrix products use a BLAS library. The compiler vectorises the other loops, here and in
 * compute_cpu_convolve.c. */
#include "extras/common/compute_cpu_priv.h"

#include <assert.h>
#include <errno.h>
#include <float.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#ifdef WEIR_REAL_DOUBLE
#define REAL_MIN DBL_MIN
#else
#define REAL_MIN FLT_MIN
#endif

enum {
    LINE_BYTES = 64,
    AFFINE_PIECE = 2048,
    GEMM_MIN = 1 << 16, /* one thread computes smaller products faster than several */
};

weir_real *weir_cpu_allocate(size_t numbers)
{
    if (numbers > (SIZE_MAX - LINE_BYTES) / sizeof(weir_real))
        return NULL;
    size_t bytes = (numbers * sizeof(weir_real) + LINE_BYTES - 1) / LINE_BYTES * LINE_BYTES;
    weir_real *memory = aligned_alloc(LINE_BYTES, bytes ? bytes : LINE_BYTES);
    if (memory)
        memset(memory, 0, bytes);
    return memory;
}

static void cpu_close(void *self)
{
    struct weir_cpu *cpu = self;
    if (!cpu)
        return;
    weir_team_close(&cpu->team);
    free(cpu->scratch);
    free(cpu);
}

static void use_one_thread(void *user, int part, int parts)
{
    (void)part;
    (void)parts;
    weir_blas_use_one_thread(user);
}

static int cpu_open(void **self, const struct weir_compute_config *config, struct weir_err *err)
{
    int threads = config->threads;
    *self = NULL;
    struct weir_cpu *cpu = calloc(1, sizeof *cpu);
    if (!cpu)
        return weir_err_set(err, -ENOMEM, "out of memory");
    int rc = weir_blas_open(&cpu->blas, err);
    cpu->memory_bytes = config->memory_bytes;
    threads = rc == 0 && threads > cpu->blas.callers_max ? cpu->blas.callers_max : threads;
    if (rc == 0 && (rc = weir_team_open(&cpu->team, threads)) < 0)
        weir_err_set(err, rc, "cannot start %d threads to compute the network on the CPU: %s; use fewer threads",
                     threads, strerror(-rc));
    if (rc < 0) {
        cpu_close(cpu);
        return rc;
    }
    weir_team_run(cpu->team, use_one_thread, &cpu->blas);
    snprintf(cpu->description, sizeof cpu->description, "%s, %d thread%s", cpu->blas.name, threads,
             threads == 1 ? "" : "s");
    *self = cpu;
    return 0;
}

static const char *cpu_describe(const void *self)
{
    return ((const struct weir_cpu *)self)->description;
}

static int cpu_finish(void *self, struct weir_err *err)
{
    (void)self;
    (void)err;
    return 0;
}

/* ---- memory ---- */

static uint64_t cpu_available_bytes(void *self)
{
    return ((struct weir_cpu *)self)->memory_bytes;
}

static weir_real *cpu_allocate(void *self, size_t numbers)
{
    (void)self;
    return weir_cpu_allocate(numbers);
}

static void cpu_release(void *self, weir_real *memory)
{
    (void)self;
    free(memory);
}

static void cpu_copy_in(void *self, weir_real *to, const float *from, size_t numbers)
{
    (void)self;
    for (size_t i = 0; i < numbers; i++)
        to[i] = from[i];
}

static void cpu_copy_out(void *self, weir_real *to, const weir_real *from, size_t numbers)
{
    (void)self;
    memcpy(to, from, numbers * sizeof *to);
}

static void cpu_send(void *self, const weir_real *number)
{
    struct weir_cpu *cpu = self;
    assert(cpu->sent_count - cpu->received_count < WEIR_SENT_MAX);
    cpu->sent[cpu->sent_count++ % WEIR_SENT_MAX] = *number;
}

static int cpu_receive(void *self, bool wait, weir_real *number, struct weir_err *err)
{
    struct weir_cpu *cpu = self;
    (void)wait;
    (void)err;
    if (cpu->received_count == cpu->sent_count)
        return 0;
    *number = cpu->sent[cpu->received_count++ % WEIR_SENT_MAX];
    return 1;
}

static void cpu_weigh(void *self, size_t rows, const uint8_t *is_pad, weir_real *weights)
{
    (void)self;
    for (size_t i = 0; i < rows; i++)
        weights[i] = !is_pad[i];
}

/* Processes x in pieces that fit in the L1 cache and applies all repetitions to a piece before the next one. */
static void cpu_affine(void *self, size_t numbers, double scale, double shift, int times, weir_real *x)
{
    (void)self;
    for (size_t begin = 0; begin < numbers; begin += AFFINE_PIECE) {
        size_t end = numbers - begin < AFFINE_PIECE ? numbers : begin + AFFINE_PIECE;
        for (int j = 0; j < times; j++)
            for (size_t i = begin; i < end; i++)
                x[i] = (weir_real)scale * x[i] + (weir_real)shift;
    }
}

/* ---- linear layers ---- */

struct gemm_work {
    const struct weir_cpu *cpu;
    const struct weir_gemm *gemm;
};

static void multiply(const struct weir_cpu *cpu, const struct weir_gemm *g)
{
    cpu->blas.gemm(WEIR_BLAS_ROW_MAJOR, g->transpose_a ? WEIR_BLAS_TRANSPOSED : WEIR_BLAS_AS_IS,
                   g->transpose_b ? WEIR_BLAS_TRANSPOSED : WEIR_BLAS_AS_IS, g->m, g->n, g->k, 1, g->a, g->lda, g->b,
                   g->ldb, g->beta, g->c, g->ldc);
}

/* Each thread computes a range of columns of c, or a range of rows if c has more rows than columns. */
static void gemm_part(void *user, int part, int parts)
{
    const struct gemm_work *work = user;
    struct weir_gemm g = *work->gemm;
    int all = g.n >= g.m ? g.n : g.m;
    int begin = (int)((int64_t)all * part / parts), end = (int)((int64_t)all * (part + 1) / parts);
    if (begin == end)
        return;
    if (g.n >= g.m) {
        g.b += g.transpose_b ? (size_t)begin * (size_t)g.ldb : (size_t)begin;
        g.c += begin;
        g.n = end - begin;
    } else {
        g.a += g.transpose_a ? (size_t)begin : (size_t)begin * (size_t)g.lda;
        g.c += (size_t)begin * (size_t)g.ldc;
        g.m = end - begin;
    }
    multiply(work->cpu, &g);
}

static void cpu_gemm(void *self, const struct weir_gemm *gemm)
{
    struct weir_cpu *cpu = self;
    if ((double)gemm->m * gemm->n * gemm->k < GEMM_MIN)
        multiply(cpu, gemm);
    else
        weir_team_run(cpu->team, gemm_part, &(struct gemm_work){cpu, gemm});
}

static void cpu_bias_relu(void *self, int rows, int columns, const weir_real *bias, bool relu, weir_real *y, int ld)
{
    (void)self;
    for (int i = 0; i < rows; i++, y += ld)
        for (int j = 0; j < columns; j++) {
            weir_real value = y[j] + bias[j];
            y[j] = relu && value < 0 ? 0 : value; /* NaN stays NaN */
        }
}

static void cpu_bias_gradient(void *self, int rows, int columns, const weir_real *dy, int ld, weir_real *gradient)
{
    (void)self;
    for (int i = 0; i < rows; i++, dy += ld)
        for (int j = 0; j < columns; j++)
            gradient[j] += dy[j];
}

static void cpu_relu_backward(void *self, int rows, int columns, const weir_real *y, weir_real *dy, int ld)
{
    (void)self;
    for (int i = 0; i < rows; i++, dy += ld, y += ld)
        for (int j = 0; j < columns; j++)
            dy[j] = y[j] > 0 ? dy[j] : 0;
}

/* ---- pooling ---- */

struct pool_work {
    int n, channels, pixels, ld;
    const weir_real *x, *dy;
    weir_real *y, *dx;
};

/* Uses eight accumulators, because with one each addition would depend on the previous one. */
static weir_real sum_of(const weir_real *x, int n)
{
    weir_real sums[8] = {0}, sum = 0;
    int i = 0;
    for (; i + 8 <= n; i += 8)
        for (int j = 0; j < 8; j++)
            sums[j] += x[i + j];
    for (int j = 0; j < 8; j++)
        sum += sums[j];
    for (; i < n; i++)
        sum += x[i];
    return sum;
}

static void pool_part(void *user, int part, int parts)
{
    const struct pool_work *w = user;
    int64_t planes = (int64_t)w->n * w->channels;
    for (int64_t i = planes * part / parts; i < planes * (part + 1) / parts; i++)
        w->y[i / w->channels * w->ld + i % w->channels] =
            sum_of(w->x + i * w->pixels, w->pixels) / (weir_real)w->pixels;
}

static void cpu_average_pool(void *self, int n, int channels, int pixels, const weir_real *x, weir_real *y, int ld)
{
    weir_team_run(((struct weir_cpu *)self)->team, pool_part,
                  &(struct pool_work){.n = n, .channels = channels, .pixels = pixels, .x = x, .y = y, .ld = ld});
}

static void pool_backward_part(void *user, int part, int parts)
{
    const struct pool_work *w = user;
    int64_t planes = (int64_t)w->n * w->channels;
    for (int64_t i = planes * part / parts; i < planes * (part + 1) / parts; i++) {
        weir_real gradient = w->dy[i / w->channels * w->ld + i % w->channels] / (weir_real)w->pixels;
        const weir_real *x = w->x + i * w->pixels;
        weir_real *dx = w->dx + i * w->pixels;
        for (int j = 0; j < w->pixels; j++)
            dx[j] = x[j] > 0 ? gradient : 0;
    }
}

static void cpu_average_pool_backward(void *self, int n, int channels, int pixels, const weir_real *x,
                                      const weir_real *dy, int ld, weir_real *dx)
{
    weir_team_run(
        ((struct weir_cpu *)self)->team, pool_backward_part,
        &(struct pool_work){.n = n, .channels = channels, .pixels = pixels, .x = x, .dy = dy, .dx = dx, .ld = ld});
}

/* ---- loss and optimiser ---- */

static void cpu_l1(void *self, int rows, int columns, const weir_real *y, const weir_real *wanted,
                   const weir_real *weights, weir_real *loss)
{
    (void)self;
    double sum = 0, values = 0;
    for (int i = 0; i < rows; i++, y += columns, wanted += columns) {
        if (weights[i] == 0)
            continue;
        values += columns;
        for (int j = 0; j < columns; j++)
            sum += fabs((double)y[j] - (double)wanted[j]);
    }
    loss[0] = (weir_real)(values > 0 ? sum / values : 0);
    loss[1] = (weir_real)(values > 0 ? 1 / values : 0);
}

static void cpu_l1_backward(void *self, int rows, int columns, const weir_real *y, const weir_real *wanted,
                            const weir_real *weights, const weir_real *loss, double scale, weir_real *dy)
{
    (void)self;
    weir_real one = (weir_real)(loss[1] * scale);
    for (int i = 0; i < rows; i++, y += columns, wanted += columns, dy += columns)
        for (int j = 0; j < columns; j++) {
            int sign = (y[j] > wanted[j]) - (y[j] < wanted[j]);
            dy[j] = weights[i] == 0 ? 0 : (weir_real)sign * one;
        }
}

static void cpu_loss_scale(void *self, struct weir_loss_scale *now)
{
    (void)self;
    *now = (struct weir_loss_scale){.scale = 1};
}

static void cpu_set_loss_scale(void *self, const struct weir_loss_scale *scale)
{
    (void)self;
    (void)scale;
}

struct adamw_work {
    const struct weir_adamw *adamw;
    size_t numbers;
    weir_real *parameters, *gradients, *mean, *variance;
};

/* Flushes subnormal numbers to 0, because arithmetic on them is slow and a decaying mean would stay subnormal forever.
 */
static weir_real without_denormals(weir_real value)
{
    return value < REAL_MIN && value > -REAL_MIN ? 0 : value;
}

static void adamw_part(void *user, int part, int parts)
{
    const struct adamw_work *w = user;
    const struct weir_adamw *a = w->adamw;
    double correction1 = 1 - pow(a->beta1, (double)a->step), correction2 = 1 - pow(a->beta2, (double)a->step);
    weir_real keep = (weir_real)(1 - a->learning_rate * a->weight_decay),
              rate = (weir_real)(a->learning_rate / correction1);
    weir_real beta1 = (weir_real)a->beta1, rest1 = (weir_real)(1 - a->beta1);
    weir_real beta2 = (weir_real)a->beta2, rest2 = (weir_real)(1 - a->beta2);
    weir_real root2 = (weir_real)(1 / sqrt(correction2)), eps = (weir_real)a->eps;
    size_t lines = (w->numbers + 15) / 16, begin = lines * (size_t)part / (size_t)parts * 16;
    size_t end = lines * (size_t)(part + 1) / (size_t)parts * 16;
    end = end < w->numbers ? end : w->numbers;
    weir_real *restrict p = w->parameters, *restrict g = w->gradients, *restrict m = w->mean, *restrict v = w->variance;
    for (size_t i = begin; i < end; i++) {
        m[i] = without_denormals(beta1 * m[i] + rest1 * g[i]);
        v[i] = without_denormals(beta2 * v[i] + rest2 * g[i] * g[i]);
#ifdef WEIR_REAL_DOUBLE
        weir_real root = sqrt(v[i]);
#else
        weir_real root = sqrtf(v[i]);
#endif
        p[i] = keep * p[i] - rate * m[i] / (root * root2 + eps);
        g[i] = 0;
    }
}

static void cpu_adamw(void *self, const struct weir_adamw *adamw, size_t numbers, weir_real *parameters,
                      weir_real *gradients, weir_real *mean, weir_real *variance)
{
    weir_team_run(((struct weir_cpu *)self)->team, adamw_part,
                  &(struct adamw_work){adamw, numbers, parameters, gradients, mean, variance});
}

const struct weir_compute_ops weir_compute_cpu = {
    .host_memory = true,
    .group_bytes = 16 << 20,
    .open = cpu_open,
    .close = cpu_close,
    .describe = cpu_describe,
    .finish = cpu_finish,
    .available_bytes = cpu_available_bytes,
    .allocate = cpu_allocate,
    .release = cpu_release,
    .copy_in = cpu_copy_in,
    .copy_out = cpu_copy_out,
    .send = cpu_send,
    .receive = cpu_receive,
    .weigh = cpu_weigh,
    .affine = cpu_affine,
    .gemm = cpu_gemm,
    .bias_relu = cpu_bias_relu,
    .bias_gradient = cpu_bias_gradient,
    .relu_backward = cpu_relu_backward,
    .reserve = weir_cpu_reserve,
    .convolve = weir_cpu_convolve,
    .convolve_backward = weir_cpu_convolve_backward,
    .average_pool = cpu_average_pool,
    .average_pool_backward = cpu_average_pool_backward,
    .l1 = cpu_l1,
    .l1_backward = cpu_l1_backward,
    .loss_scale = cpu_loss_scale,
    .set_loss_scale = cpu_set_loss_scale,
    .adamw = cpu_adamw,
};
