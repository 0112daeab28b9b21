#include "pipeline/samples/sampler.h"
#include "base/grow.h"
#include "weir/loader.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

enum { FEISTEL_ROUNDS = 8 };

struct part {
    int n_episodes;
    int *episodes;
    uint64_t *ends; /* running sum of the episodes' steps */
    uint64_t samples;
    int all_batches; /* batches of all ranks together */
    int batches;     /* batches of this rank */
};

struct weir_sampler {
    struct weir_sampler_config config;
    int *steps;
    struct part parts[2];
};

/* splitmix64's finaliser (Steele, Lea, Flood 2014). */
static uint64_t mix(uint64_t x)
{
    x ^= x >> 30;
    x *= 0xbf58476d1ce4e5b9u;
    x ^= x >> 27;
    x *= 0x94d049bb133111ebu;
    return x ^ x >> 31;
}

static uint64_t hash3(uint64_t a, uint64_t b, uint64_t c)
{
    return mix(mix(mix(a + 0x9e3779b97f4a7c15u) + b + 0x9e3779b97f4a7c15u) + c + 0x9e3779b97f4a7c15u);
}

/* Returns a uniform value in 0..n-1 (Lemire's multiply-shift; its bias of n / 2^64 is negligible). */
static uint64_t below(uint64_t random, uint64_t n)
{
    return (uint64_t)(((unsigned __int128)random * n) >> 64);
}

static uint64_t feistel(uint64_t x, int half_bits, uint64_t key)
{
    uint64_t mask = (1ull << half_bits) - 1, left = x >> half_bits, right = x & mask;
    for (uint64_t round = 0; round < FEISTEL_ROUNDS; round++) {
        uint64_t next = left ^ (hash3(key, round, right) & mask);
        left = right;
        right = next;
    }
    return left << half_bits | right;
}

/* Returns the position of i in a permutation of 0..n-1. */
static uint64_t permute(uint64_t i, uint64_t n, uint64_t key)
{
    int half_bits = 1;
    while (half_bits < 31 && (1ull << (2 * half_bits)) < n)
        half_bits++;
    do
        i = feistel(i, half_bits, key);
    while (i >= n);
    return i;
}

static int fill_part(struct weir_sampler *s, struct part *part, uint64_t first, int n, uint64_t episodes)
{
    part->n_episodes = n;
    part->episodes = malloc(sizeof *part->episodes * (size_t)(n ? n : 1));
    part->ends = malloc(sizeof *part->ends * (size_t)(n ? n : 1));
    if (!part->episodes || !part->ends)
        return -ENOMEM;
    uint64_t steps = 0;
    for (int i = 0; i < n; i++) {
        uint64_t at = first + (uint64_t)i;
        part->episodes[i] = (int)(s->config.shuffle ? permute(at, episodes, hash3(s->config.seed, 1, 0)) : at);
        steps += (uint64_t)s->steps[part->episodes[i]];
        part->ends[i] = steps;
    }
    part->samples = s->config.sampling == WEIR_SAMPLING_EPISODE ? (uint64_t)n : steps;
    return 0;
}

static int count_batches(struct weir_sampler *s, struct part *part, bool drop_last, struct weir_err *err)
{
    uint64_t size = (uint64_t)s->config.batch_size;
    uint64_t batches = drop_last ? part->samples / size : (part->samples + size - 1) / size;
    if (batches > INT32_MAX)
        return weir_err_set(err, -EOVERFLOW, "more than 2^31 batches per epoch; use a larger --batch-size");
    uint64_t ranks = (uint64_t)s->config.world_size;
    part->all_batches = (int)batches;
    part->batches = (int)(s->config.wrap ? (batches + ranks - 1) / ranks : batches / ranks);
    if (batches > 0 && part->batches == 0 && part == &s->parts[WEIR_SPLIT_TRAIN])
        return weir_err_set(err, -EINVAL,
                            "%d training batches are not enough for %d ranks; use a smaller --batch-size, or --wrap",
                            part->all_batches, s->config.world_size);
    if (s->config.max_batches > 0 && part->batches > s->config.max_batches)
        part->batches = s->config.max_batches;
    if (drop_last && part->batches == 0)
        return weir_err_set(
            err, -EINVAL,
            "--drop-last leaves no batch: %llu training samples are not enough for a batch of %d; use a "
            "smaller --batch-size",
            (unsigned long long)part->samples, s->config.batch_size);
    return 0;
}

static int check_config(const struct weir_sampler_config *c, int episodes, struct weir_err *err)
{
    if (episodes < 1 || c->batch_size < 1 || c->num_epochs < 1)
        return weir_err_set(err, -EINVAL, "episodes (%d), batch_size (%d) and num_epochs (%d) must be at least 1",
                            episodes, c->batch_size, c->num_epochs);
    if (c->max_batches < 0)
        return weir_err_set(err, -EINVAL, "max_batches must be at least 0, not %d", c->max_batches);
    if (c->world_size < 1 || c->rank < 0 || c->rank >= c->world_size)
        return weir_err_set(err, -EINVAL, "rank %d of %d: rank must be at least 0 and less than the world size",
                            c->rank, c->world_size);
    if (!(c->train_split >= 0 && c->train_split <= 1))
        return weir_err_set(err, -EINVAL, "train_split must be between 0 and 1, not %g", c->train_split);
    return 0;
}

static int split(struct weir_sampler *s, int episodes, struct weir_err *err)
{
    int n_train = (int)(s->config.train_split * episodes + 1e-9); /* rounding must not turn 0.9 * 10 into 8 */
    n_train = n_train < 1 ? 1 : n_train > episodes ? episodes : n_train;
    if (fill_part(s, &s->parts[WEIR_SPLIT_TRAIN], 0, n_train, (uint64_t)episodes) < 0 ||
        fill_part(s, &s->parts[WEIR_SPLIT_VAL], (uint64_t)n_train, episodes - n_train, (uint64_t)episodes) < 0)
        return weir_err_set(err, -ENOMEM, "out of memory");
    int rc = count_batches(s, &s->parts[WEIR_SPLIT_TRAIN], s->config.drop_last, err);
    if (rc == 0)
        rc = count_batches(s, &s->parts[WEIR_SPLIT_VAL], false, err);
    if (rc < 0)
        return rc;
    if (s->config.splits == WEIR_SPLITS_TRAIN)
        s->parts[WEIR_SPLIT_VAL].batches = 0;
    if (s->config.splits == WEIR_SPLITS_VAL)
        s->parts[WEIR_SPLIT_TRAIN].batches = 0;
    if (s->config.splits == WEIR_SPLITS_VAL && s->parts[WEIR_SPLIT_VAL].batches == 0)
        return weir_err_set(
            err, -EINVAL,
            "no validation batch: %d of %d episodes are for training; use a smaller train_split or batch_size", n_train,
            episodes);
    return 0;
}

int weir_sampler_steps(const struct weir_sampler *sampler, int episode)
{
    return sampler->steps[episode];
}

int weir_sampler_open(struct weir_sampler **out, const struct weir_sampler_config *config, const int *steps,
                      int episodes, struct weir_err *err)
{
    struct weir_sampler_config filled = *config;
    filled.world_size = config->world_size ? config->world_size : 1;
    *out = NULL;
    int rc = check_config(&filled, episodes, err);
    if (rc < 0)
        return rc;
    struct weir_sampler *s = calloc(1, sizeof *s);
    if (!s)
        return weir_err_set(err, -ENOMEM, "out of memory");
    s->config = filled;
    s->steps = malloc(sizeof *steps * (size_t)episodes);
    if (s->steps)
        memcpy(s->steps, steps, sizeof *steps * (size_t)episodes);
    rc = s->steps ? split(s, episodes, err) : weir_err_set(err, -ENOMEM, "out of memory");
    if (rc < 0)
        weir_sampler_close(&s);
    *out = s;
    return rc;
}

void weir_sampler_close(struct weir_sampler **sampler)
{
    if (!*sampler)
        return;
    for (int i = 0; i < 2; i++) {
        free((*sampler)->parts[i].episodes);
        free((*sampler)->parts[i].ends);
    }
    free((*sampler)->steps);
    free(*sampler);
    *sampler = NULL;
}

const int *weir_sampler_episodes(const struct weir_sampler *sampler, enum weir_split of, int *n)
{
    *n = sampler->parts[of].n_episodes;
    return sampler->parts[of].episodes;
}

int weir_sampler_batches(const struct weir_sampler *sampler, enum weir_split of)
{
    return sampler->parts[of].batches;
}

/* Converts this rank's batch index to the index in the stream of a single loader. */
static int global_index(const struct weir_sampler *s, const struct part *part, int index)
{
    int64_t global = (int64_t)index * s->config.world_size + s->config.rank;
    return (int)(global % part->all_batches); /* has an effect only on a wrapped batch */
}

static int batch_size_of(const struct weir_sampler *s, const struct part *part, int index)
{
    uint64_t size = (uint64_t)s->config.batch_size;
    uint64_t left = part->samples - (uint64_t)global_index(s, part, index) * size;
    return (int)(left < size ? left : size);
}

uint64_t weir_sampler_samples(const struct weir_sampler *sampler, enum weir_split of)
{
    const struct part *part = &sampler->parts[of];
    uint64_t samples = (uint64_t)part->batches * (uint64_t)sampler->config.batch_size;
    /* Only the last batch of the stream can be short. It occurs once, as the last batch of one rank. */
    if (part->batches > 0)
        samples -= (uint64_t)(sampler->config.batch_size - batch_size_of(sampler, part, part->batches - 1));
    return samples;
}

uint64_t weir_sampler_total(const struct weir_sampler *sampler)
{
    uint64_t per_epoch = (uint64_t)sampler->parts[0].batches + (uint64_t)sampler->parts[1].batches;
    return per_epoch * (uint64_t)sampler->config.num_epochs;
}

/* Returns sample i of the split as (episode, t). Episodes are in the order of part->ends. */
static struct weir_sample timestep(const struct weir_sampler *s, const struct part *part, uint64_t i)
{
    int low = WEIR_FIRST(at, part->n_episodes - 1, i < part->ends[at]);
    int episode = part->episodes[low];
    return (struct weir_sample){episode, (int)(i - (part->ends[low] - (uint64_t)s->steps[episode]))};
}

static struct weir_sample draw(const struct weir_sampler *s, const struct part *part, enum weir_split of,
                               uint64_t epoch, uint64_t i)
{
    uint64_t seed = s->config.seed, which = of == WEIR_SPLIT_TRAIN ? epoch : 0;
    if (s->config.shuffle)
        i = permute(i, part->samples, hash3(seed, 2 + (uint64_t)of, which));
    if (s->config.sampling == WEIR_SAMPLING_TIMESTEP)
        return timestep(s, part, i);
    int episode = part->episodes[i];
    uint64_t random = hash3(hash3(seed, 4 + (uint64_t)of, which), (uint64_t)episode, 0);
    return (struct weir_sample){episode, (int)below(random, (uint64_t)s->steps[episode])};
}

/* Returns the plan of a batch, without its samples. */
static struct weir_plan plan_of(const struct weir_sampler *s, uint64_t sequence)
{
    uint64_t train = (uint64_t)s->parts[0].batches, per_epoch = train + (uint64_t)s->parts[1].batches;
    uint64_t within = sequence % per_epoch;
    struct weir_plan plan = {.sequence = sequence, .epoch = (int)(sequence / per_epoch)};
    plan.split = within < train ? WEIR_SPLIT_TRAIN : WEIR_SPLIT_VAL;
    plan.index = (int)(within < train ? within : within - train);
    plan.n = batch_size_of(s, &s->parts[plan.split], plan.index);
    return plan;
}

int weir_sampler_size(const struct weir_sampler *sampler, uint64_t sequence)
{
    return plan_of(sampler, sequence).n;
}

void weir_sampler_plan(const struct weir_sampler *s, uint64_t sequence, struct weir_plan *plan,
                       struct weir_sample *samples)
{
    *plan = plan_of(s, sequence);
    const struct part *part = &s->parts[plan->split];
    uint64_t first = (uint64_t)global_index(s, part, plan->index) * (uint64_t)s->config.batch_size;
    for (int i = 0; i < plan->n; i++)
        samples[i] = draw(s, part, plan->split, (uint64_t)plan->epoch, first + (uint64_t)i);
}
