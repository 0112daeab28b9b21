#include "extras/common/network.h"

#include <assert.h>
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { LINE_NUMBERS = 16 };

static struct weir_parameter *add_one(struct weir_parameters *parameters, const char *name, const char *kind)
{
    assert(parameters->n < WEIR_PARAMETERS_MAX);
    struct weir_parameter *added = &parameters->list[parameters->n++];
    *added = (struct weir_parameter){.at = parameters->numbers, .count = 1};
    int length = snprintf(added->name, sizeof added->name, "%s.%s", name, kind);
    assert(length < (int)sizeof added->name);
    (void)length;
    return added;
}

static void end_one(struct weir_parameters *parameters, struct weir_parameter *added, int ndim, const int64_t *shape)
{
    added->ndim = ndim;
    for (int i = 0; i < ndim; i++) {
        added->shape[i] = shape[i];
        added->count *= (size_t)shape[i];
    }
    parameters->numbers += (added->count + LINE_NUMBERS - 1) / LINE_NUMBERS * LINE_NUMBERS;
}

int weir_parameters_add(struct weir_parameters *parameters, const char *name, int ndim, const int64_t *shape)
{
    struct weir_parameter *weight = add_one(parameters, name, "weight");
    end_one(parameters, weight, ndim, shape);
    double fan_in = (double)(weight->count / (size_t)shape[0]);
    weight->bound = sqrt(6 / fan_in); /* because a uniform distribution from -b to b has variance b^2 / 3 */
    end_one(parameters, add_one(parameters, name, "bias"), 1, shape);
    return parameters->n - 2;
}

size_t weir_parameters_count(const struct weir_parameters *parameters)
{
    size_t count = 0;
    for (int i = 0; i < parameters->n; i++)
        count += parameters->list[i].count;
    return count;
}

int weir_parameters_allocate(struct weir_parameters *parameters)
{
    weir_real **const arrays[] = {&parameters->values, &parameters->gradients, &parameters->mean,
                                  &parameters->variance};
    for (int i = 0; i < 4; i++)
        if (!(*arrays[i] = parameters->ops->allocate(parameters->self, parameters->numbers)))
            return -ENOMEM;
    return 0;
}

uint64_t weir_next_random(uint64_t *state)
{
    uint64_t z = *state += 0x9e3779b97f4a7c15u;
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
    return z ^ (z >> 31);
}

/* Returns a number from -1 (inclusive) to 1 (exclusive). */
static double next_uniform(uint64_t *state)
{
    return (double)(weir_next_random(state) >> 11) * 0x1p-52 - 1;
}

int weir_parameters_initialise(struct weir_parameters *parameters, uint64_t seed)
{
    float *host = calloc(parameters->numbers, sizeof *host);
    if (!host)
        return -ENOMEM;
    for (int i = 0; i < parameters->n; i++) {
        const struct weir_parameter *parameter = &parameters->list[i];
        for (size_t j = 0; parameter->bound > 0 && j < parameter->count; j++)
            host[parameter->at + j] = (float)(next_uniform(&seed) * parameter->bound);
    }
    parameters->ops->copy_in(parameters->self, parameters->values, host, parameters->numbers);
    free(host);
    return 0;
}

void weir_parameters_release(struct weir_parameters *parameters)
{
    weir_real *const arrays[] = {parameters->values, parameters->gradients, parameters->mean, parameters->variance};
    for (int i = 0; i < 4; i++)
        parameters->ops->release(parameters->self, arrays[i]);
}
