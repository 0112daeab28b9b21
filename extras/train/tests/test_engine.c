/* Tests the network engine compiled with double. The gradients of each function of the CPU backend, and of the whole
 * policy, must equal central differences. The policy must equal PyTorch's except for rounding. */
#include "extras/common/compute_ops.h"
#include "extras/train/tests/policy_fixture.h"

#include <criterion/criterion.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { PROBES = 12 }; /* number of values to check per array */
static const double width = 1e-6, tolerance = 1e-7;

/* ---- single layers: the differentiated function is a sum of the outputs with random weights ---- */

struct array {
    weir_real *values, *gradient;
    size_t n;
};

static struct array random_array(size_t n, uint64_t seed, double least)
{
    struct array array = {calloc(n, sizeof(weir_real)), calloc(n, sizeof(weir_real)), n};
    cr_assert(array.values && array.gradient);
    for (size_t i = 0; i < n; i++) {
        double value = fixture_uniform(&seed);
        array.values[i] = value < least ? least : value;
    }
    return array;
}

static void free_array(struct array *array)
{
    free(array->values);
    free(array->gradient);
}

typedef double function_of(void *user);

static double derivative(function_of *function, void *user, weir_real *value)
{
    weir_real before = *value;
    *value = before + width;
    double above = function(user);
    *value = before - width;
    double below = function(user);
    *value = before;
    return (above - below) / (2 * width);
}

/* With zero_stays, the gradient must be 0 where a ReLU set the value to 0, whatever the central difference is. */
static void check_gradient(const char *what, struct array *array, function_of *function, void *user, bool zero_stays)
{
    double largest = 1;
    for (size_t i = 0; i < array->n; i++)
        largest = fmax(largest, fabs(array->gradient[i]));
    for (size_t i = 0; i < PROBES; i++) {
        size_t at = i * (array->n - 1) / (PROBES - 1);
        double wanted = zero_stays && array->values[at] == 0 ? 0 : derivative(function, user, &array->values[at]);
        cr_assert(fabs(wanted - array->gradient[at]) <= tolerance * largest,
                  "%s[%zu] is %.12g, but the central difference is %.12g", what, at, (double)array->gradient[at],
                  wanted);
    }
}

/* ---- convolution ---- */

struct convolution_case {
    const struct weir_compute_ops *ops;
    void *self;
    struct weir_convolution shape;
    int n;
    struct array x, weight, bias, y, factors;
};

static double convolve(void *user)
{
    struct convolution_case *c = user;
    size_t image = (size_t)c->shape.channels * (size_t)c->shape.height * (size_t)c->shape.width;
    c->ops->convolve(c->self, &c->shape, c->n, c->x.values, image, c->weight.values, c->bias.values, c->y.values);
    double sum = 0;
    for (size_t i = 0; i < c->y.n; i++)
        sum += c->y.values[i] * c->factors.values[i];
    return sum;
}

static void check_convolution(int threads, int n, int channels, int height, int width_, int filters)
{
    struct convolution_case c = {
        .ops = &weir_compute_cpu,
        .shape = {channels, height, width_, filters, (height + 1) / 2, (width_ + 1) / 2, 1},
        .n = n,
    };
    cr_assert_eq(c.ops->open(&c.self, &(struct weir_compute_config){.threads = threads}, NULL), 0);
    cr_assert_eq(c.ops->reserve(c.self, &c.shape), 0);
    size_t image = (size_t)channels * (size_t)height * (size_t)width_;
    size_t out = (size_t)n * (size_t)filters * (size_t)c.shape.out_height * (size_t)c.shape.out_width;
    c.x = random_array((size_t)n * image, 1, 0);
    c.weight = random_array((size_t)filters * (size_t)channels * 9, 2, -1);
    c.bias = random_array((size_t)filters, 3, -1);
    c.y = random_array(out, 4, -1);
    c.factors = random_array(out, 5, -1);
    convolve(&c);
    for (size_t i = 0; i < out; i++)
        c.y.gradient[i] = c.y.values[i] > 0 ? c.factors.values[i] : 0;
    for (size_t i = 0; i < c.x.n; i++)
        c.x.gradient[i] = NAN; /* must be overwritten */
    c.ops->convolve_backward(c.self, &c.shape, n, c.x.values, image, c.weight.values, c.y.gradient, c.weight.gradient,
                             c.bias.gradient, c.x.gradient);
    check_gradient("weight", &c.weight, convolve, &c, false);
    check_gradient("bias", &c.bias, convolve, &c, false);
    check_gradient("x", &c.x, convolve, &c, true);
    struct array *arrays[] = {&c.x, &c.weight, &c.bias, &c.y, &c.factors};
    for (size_t i = 0; i < sizeof arrays / sizeof *arrays; i++)
        free_array(arrays[i]);
    c.ops->close(c.self);
}

Test(engine, convolution_has_its_gradients)
{
    const struct {
        int n, channels, height, width, filters;
    } cases[] = {{1, 3, 1, 1, 2},   {2, 1, 2, 3, 4},  {1, 2, 5, 4, 3},
                 {3, 3, 17, 31, 5}, {2, 4, 16, 8, 8}, {1, 16, 40, 200, 4} /* large enough for several bands */};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        for (int threads = 1; threads <= 5; threads += 2)
            check_convolution(threads, cases[i].n, cases[i].channels, cases[i].height, cases[i].width,
                              cases[i].filters);
}

/* Computes the convolution by its definition, without im2col. */
Test(engine, convolution_is_the_sum_over_its_kernel)
{
    const struct weir_compute_ops *ops = &weir_compute_cpu;
    struct weir_convolution c = {2, 7, 9, 3, 4, 5, 1};
    void *self;
    cr_assert_eq(ops->open(&self, &(struct weir_compute_config){.threads = 2}, NULL), 0);
    cr_assert_eq(ops->reserve(self, &c), 0);
    struct array x = random_array(2 * 7 * 9, 1, -1), weight = random_array(3 * 2 * 9, 2, -1);
    struct array bias = random_array(3, 3, -1), y = random_array(3 * 4 * 5, 4, -1);
    ops->convolve(self, &c, 1, x.values, x.n, weight.values, bias.values, y.values);
    for (int f = 0; f < 3; f++)
        for (int row = 0; row < 4; row++)
            for (int column = 0; column < 5; column++) {
                double sum = bias.values[f];
                for (int tap = 0; tap < 2 * 9; tap++) {
                    int in_row = 2 * row - 1 + tap % 9 / 3, in_column = 2 * column - 1 + tap % 3;
                    bool inside = in_row >= 0 && in_row < 7 && in_column >= 0 && in_column < 9;
                    sum += inside ? weight.values[f * 18 + tap] * x.values[(tap / 9 * 7 + in_row) * 9 + in_column] : 0;
                }
                cr_assert_float_eq(y.values[(f * 4 + row) * 5 + column], fmax(sum, 0), 1e-12);
            }
    struct array *arrays[] = {&x, &weight, &bias, &y};
    for (size_t i = 0; i < sizeof arrays / sizeof *arrays; i++)
        free_array(arrays[i]);
    ops->close(self);
}

/* ---- pool, loss and products ---- */

struct pool_case {
    const struct weir_compute_ops *ops;
    void *self;
    struct array x, y, factors;
};

static double pool(void *user)
{
    struct pool_case *c = user;
    c->ops->average_pool(c->self, 2, 3, 35, c->x.values, c->y.values, 4);
    double sum = 0;
    for (int i = 0; i < 2; i++)
        for (int j = 0; j < 3; j++)
            sum += c->y.values[i * 4 + j] * c->factors.values[i * 4 + j];
    return sum;
}

Test(engine, pooling_has_its_gradient)
{
    struct pool_case c = {.ops = &weir_compute_cpu};
    cr_assert_eq(c.ops->open(&c.self, &(struct weir_compute_config){.threads = 2}, NULL), 0);
    c.x = random_array(2 * 3 * 35, 1, 0);
    c.y = random_array(8, 2, -1);
    c.factors = random_array(8, 3, -1);
    c.ops->average_pool_backward(c.self, 2, 3, 35, c.x.values, c.factors.values, 4, c.x.gradient);
    check_gradient("x", &c.x, pool, &c, true);
    free_array(&c.x);
    free_array(&c.y);
    free_array(&c.factors);
    c.ops->close(c.self);
}

/* Compares products computed with one thread and with several, for all transposes, and with leading dimensions larger
 * than needed. */
Test(engine, products_are_the_same_in_any_number_of_threads)
{
    const struct weir_compute_ops *ops = &weir_compute_cpu;
    enum { LD = 80 };
    struct array a = random_array(LD * LD, 1, -1), b = random_array(LD * LD, 2, -1);
    const int sizes[][3] = {{3, 70, 5}, {70, 3, 60}, {60, 77, 40}, {1, 1, 1}};
    for (int test = 0; test < 4 * 4 * 2; test++) {
        const int *size = sizes[test / 8];
        struct array c = random_array(LD * LD, 3, -1), wanted = random_array(LD * LD, 3, -1);
        struct weir_gemm gemm = {.transpose_a = test & 1,
                                 .transpose_b = test & 2,
                                 .m = size[0],
                                 .n = size[1],
                                 .k = size[2],
                                 .a = a.values,
                                 .b = b.values,
                                 .lda = LD,
                                 .ldb = LD,
                                 .beta = test & 4 ? 1 : 0,
                                 .c = c.values,
                                 .ldc = LD};
        void *self;
        cr_assert_eq(ops->open(&self, &(struct weir_compute_config){.threads = 1 + test % 3}, NULL), 0);
        ops->gemm(self, &gemm);
        ops->close(self);
        for (int i = 0; i < size[0]; i++)
            for (int j = 0; j < size[1]; j++) {
                double sum = gemm.beta * wanted.values[i * LD + j];
                for (int k = 0; k < size[2]; k++)
                    sum += a.values[gemm.transpose_a ? k * LD + i : i * LD + k] *
                           b.values[gemm.transpose_b ? j * LD + k : k * LD + j];
                wanted.values[i * LD + j] = sum;
            }
        for (size_t i = 0; i < c.n; i++)
            cr_assert_float_eq(c.values[i], wanted.values[i], 1e-12, "product %d, number %zu", test, i);
        free_array(&c);
        free_array(&wanted);
    }
    free_array(&a);
    free_array(&b);
}

/* ---- the whole policy ---- */

struct policy_case {
    struct weir_policy *policy;
    const struct weir_policy_inputs *inputs;
};

static double loss_of(void *user)
{
    struct policy_case *c = user;
    weir_policy_forward(c->policy, c->inputs);
    return weir_policy_loss(c->policy);
}

static void check_policy(const struct weir_policy_config *config, int n)
{
    struct policy_case c;
    struct fixture_batch batch;
    cr_assert_eq(weir_policy_open(&c.policy, config, NULL), 0);
    fixture_batch_open(&batch, config, n, 3);
    c.inputs = &batch.inputs;
    loss_of(&c);
    weir_policy_backward(c.policy);
    int arrays_n, gradients_n;
    struct weir_policy_array *arrays, *gradients = fixture_gradients(c.policy, &gradients_n);
    cr_assert_eq(weir_policy_arrays(c.policy, false, &arrays, &arrays_n), 0);
    cr_assert_eq(arrays_n, gradients_n);
    for (int i = 0; i < arrays_n; i++) {
        struct array array = {arrays[i].data, gradients[i].data, 1};
        for (int j = 0; j < arrays[i].ndim; j++)
            array.n *= (size_t)arrays[i].shape[j];
        check_gradient(arrays[i].name, &array, loss_of, &c, false);
    }
    free(arrays);
    fixture_gradients_free(gradients, gradients_n);
    fixture_batch_close(&batch);
    weir_policy_close(&c.policy);
}

Test(engine, the_policy_has_its_gradients)
{
    struct weir_policy_config config = fixture_config();
    config.learning_rate = 0;
    check_policy(&config, 3);
    config.state_dim = 0;
    config.threads = 1;
    config.n_cameras = 1;
    check_policy(&config, 2); /* fewer samples than batch_max */
}

Test(engine, the_policy_is_that_of_torch)
{
    fixture_compare_with_torch(1e-9);
}
