#include "pipeline/samples/sampler.h"
#include "weir/loader.h"

#include <criterion/criterion.h>
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

static struct weir_sampler_config base(void)
{
    return (struct weir_sampler_config){
        .shuffle = true,
        .batch_size = 4,
        .num_epochs = 1,
        .train_split = 0.9,
    };
}

static struct weir_sampler *open_or_fail(const struct weir_sampler_config *config, const int *steps, int episodes)
{
    struct weir_sampler *sampler;
    struct weir_err err = WEIR_ERR_NONE;
    cr_assert_eq(weir_sampler_open(&sampler, config, steps, episodes, &err), 0, "%s", err.text);
    return sampler;
}

/* Returns all *n samples of a split in one epoch, in order, and checks the plans. The caller frees them. */
static struct weir_sample *collect(const struct weir_sampler *s, const struct weir_sampler_config *config, int epoch,
                                   enum weir_split split, uint64_t *n)
{
    struct weir_sample *all = malloc(sizeof *all * (weir_sampler_samples(s, split) + (size_t)config->batch_size));
    int train = weir_sampler_batches(s, WEIR_SPLIT_TRAIN), val = weir_sampler_batches(s, WEIR_SPLIT_VAL);
    uint64_t first = (uint64_t)epoch * (uint64_t)(train + val) + (split == WEIR_SPLIT_VAL ? (uint64_t)train : 0);
    *n = 0;
    for (int i = 0; i < weir_sampler_batches(s, split); i++) {
        struct weir_plan plan;
        weir_sampler_plan(s, first + (uint64_t)i, &plan, all + *n);
        cr_assert_eq(plan.sequence, first + (uint64_t)i);
        cr_assert_eq(plan.epoch, epoch);
        cr_assert_eq(plan.split, split);
        cr_assert_eq(plan.index, i);
        cr_assert_eq(plan.n, weir_sampler_size(s, plan.sequence));
        cr_assert(plan.n >= 1 && plan.n <= config->batch_size);
        *n += (uint64_t)plan.n;
    }
    cr_assert_eq(*n, weir_sampler_samples(s, split));
    return all;
}

/* ---- permutations ---- */

/* Returns the order of the n steps of a single episode, which must be a permutation of 0..n-1. */
static int *order_of(int n, uint64_t seed, int epoch, bool shuffle)
{
    struct weir_sampler_config config = base();
    config.seed = seed;
    config.shuffle = shuffle;
    config.num_epochs = epoch + 1;
    config.batch_size = 7;
    struct weir_sampler *s = open_or_fail(&config, &n, 1);
    uint64_t count;
    struct weir_sample *all = collect(s, &config, epoch, WEIR_SPLIT_TRAIN, &count);
    cr_assert_eq(count, (uint64_t)n);
    int *order = malloc(sizeof *order * (size_t)n);
    for (int i = 0; i < n; i++) {
        cr_assert_eq(all[i].episode, 0);
        order[i] = all[i].t;
    }
    free(all);
    weir_sampler_close(&s);
    return order;
}

static void assert_permutation(const int *order, int n)
{
    char *seen = calloc(1, (size_t)n);
    for (int i = 0; i < n; i++) {
        cr_assert(order[i] >= 0 && order[i] < n);
        cr_assert(!seen[order[i]], "%d occurs twice among %d", order[i], n);
        seen[order[i]] = 1;
    }
    free(seen);
}

Test(sampler, every_size_is_permuted_completely)
{
    for (int n = 1; n <= 300; n++) {
        int *order = order_of(n, 11, 0, true);
        assert_permutation(order, n);
        free(order);
    }
    static const int large[] = {1023, 1024, 1025, 4095, 4096, 4097, 65537, 100003};
    for (size_t i = 0; i < sizeof large / sizeof large[0]; i++) {
        int *order = order_of(large[i], 3, 1, true);
        assert_permutation(order, large[i]);
        free(order);
    }
}

static int agreeing(const int *a, const int *b, int n)
{
    int same = 0;
    for (int i = 0; i < n; i++)
        same += a[i] == b[i];
    return same;
}

Test(sampler, order_depends_on_seed_and_epoch_and_on_nothing_else)
{
    enum { N = 1000 };
    int *a = order_of(N, 1, 0, true), *again = order_of(N, 1, 0, true), *seed = order_of(N, 2, 0, true);
    int *epoch = order_of(N, 1, 1, true), *plain = order_of(N, 1, 1, false);
    cr_assert_eq(agreeing(a, again, N), N);
    /* Two random permutations agree in one position on average. The probability of 12 is below 10^-9. */
    cr_assert_lt(agreeing(a, seed, N), 12);
    cr_assert_lt(agreeing(a, epoch, N), 12);
    cr_assert_lt(agreeing(seed, epoch, N), 12);
    for (int i = 0; i < N; i++)
        cr_assert_eq(plain[i], i);
    int *all[] = {a, again, seed, epoch, plain};
    for (int i = 0; i < 5; i++)
        free(all[i]);
}

/* Chi-square test: each item must be equally likely at each position. The limit is the mean plus 5 standard deviations.
 */
static void assert_places_uniform(int n, int rounds)
{
    int *count = calloc((size_t)n * (size_t)n, sizeof *count);
    for (int round = 0; round < rounds; round++) {
        int *order = order_of(n, (uint64_t)round, round % 3, true);
        for (int i = 0; i < n; i++)
            count[i * n + order[i]]++;
        free(order);
    }
    double expected = (double)rounds / n, chi2 = 0, freedom = (double)(n - 1) * (n - 1);
    for (int i = 0; i < n * n; i++)
        chi2 += (count[i] - expected) * (count[i] - expected) / expected;
    cr_assert_lt(chi2, freedom + 5 * sqrt(2 * freedom), "n %d: chi-square %.1f with %.0f degrees of freedom", n, chi2,
                 freedom);
    free(count);
}

Test(sampler, every_place_is_equally_likely)
{
    static const int sizes[] = {2, 3, 4, 5, 7, 8, 13, 16, 17, 31, 64};
    for (size_t i = 0; i < sizeof sizes / sizeof sizes[0]; i++)
        assert_places_uniform(sizes[i], 4000);
}

/* Not only positions: all 24 orders of four items and all 6 of three must be equally likely. */
Test(sampler, every_order_of_a_few_is_equally_likely)
{
    for (int n = 3; n <= 4; n++) {
        int count[256] = {0}, orders = n == 3 ? 6 : 24, rounds = 6000, found = 0;
        for (int round = 0; round < rounds; round++) {
            int *order = order_of(n, (uint64_t)round + 77, 0, true), code = 0;
            for (int i = 0; i < n; i++)
                code = code * 4 + order[i];
            count[code]++;
            free(order);
        }
        double expected = (double)rounds / orders, chi2 = 0;
        for (int i = 0; i < 256; i++) {
            found += count[i] > 0;
            chi2 += count[i] ? (count[i] - expected) * (count[i] - expected) / expected : 0;
        }
        cr_assert_eq(found, orders);
        cr_assert_lt(chi2, orders - 1 + 5 * sqrt(2.0 * (orders - 1)), "n %d: chi-square %.1f", n, chi2);
    }
}

/* Neighbours in the file must not stay neighbours, since a batch should have unrelated samples. */
Test(sampler, neighbours_are_torn_apart)
{
    enum { N = 5000 };
    int *order = order_of(N, 4, 0, true), close_by = 0;
    for (int i = 1; i < N; i++)
        close_by += abs(order[i] - order[i - 1]) == 1;
    cr_assert_lt(close_by, 16, "%d of %d neighbours stayed together (2 expected)", close_by, N);
    free(order);
}

/* ---- splits ---- */

static void split_of(int episodes, double fraction, int *n_train, int *n_val)
{
    struct weir_sampler_config config = base();
    int steps[200];
    config.train_split = fraction;
    for (int i = 0; i < episodes; i++)
        steps[i] = 1 + i % 5;
    struct weir_sampler *s = open_or_fail(&config, steps, episodes);
    const int *train = weir_sampler_episodes(s, WEIR_SPLIT_TRAIN, n_train);
    const int *val = weir_sampler_episodes(s, WEIR_SPLIT_VAL, n_val);
    char seen[200] = {0};
    for (int i = 0; i < *n_train; i++)
        seen[train[i]]++;
    for (int i = 0; i < *n_val; i++)
        seen[val[i]]++;
    for (int i = 0; i < episodes; i++)
        cr_assert_eq(seen[i], 1, "episode %d is in the splits %d times", i, seen[i]);
    weir_sampler_close(&s);
}

Test(sampler, splits_are_rounded_down_with_one_to_train_on)
{
    static const struct {
        int episodes;
        double fraction;
        int train;
    } cases[] = {{10, 0.9, 9},  {10, 0.99, 9}, {11, 0.9, 9},    {1, 0.9, 1}, {1, 0, 1},
                 {2, 0.1, 1},   {2, 0.9, 1},   {100, 0.29, 29}, {7, 1, 7},   {25, 0.8, 20},
                 {50, 0.8, 40}, {3, 0.34, 1},  {100, 0.57, 57}};
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        int n_train, n_val;
        split_of(cases[i].episodes, cases[i].fraction, &n_train, &n_val);
        cr_assert_eq(n_train, cases[i].train, "%d x %g: %d", cases[i].episodes, cases[i].fraction, n_train);
        cr_assert_eq(n_train + n_val, cases[i].episodes);
    }
}

Test(sampler, split_is_drawn_by_the_seed_or_follows_the_files)
{
    struct weir_sampler_config config = base();
    int steps[40], n, first[2] = {-1, -1};
    for (int i = 0; i < 40; i++)
        steps[i] = 3;
    config.train_split = 0.5;
    for (int seed = 0; seed < 2; seed++) {
        config.seed = (uint64_t)seed;
        struct weir_sampler *s = open_or_fail(&config, steps, 40);
        const int *train = weir_sampler_episodes(s, WEIR_SPLIT_TRAIN, &n);
        int high = 0;
        for (int i = 0; i < n; i++)
            high += train[i] >= 20;
        cr_assert(high > 2 && high < 18, "%d of %d come from the second half", high, n);
        first[seed] = train[0] * 64 + train[1];
        weir_sampler_close(&s);
    }
    cr_assert_neq(first[0], first[1]);
    config.shuffle = false;
    struct weir_sampler *s = open_or_fail(&config, steps, 40);
    const int *train = weir_sampler_episodes(s, WEIR_SPLIT_TRAIN, &n);
    for (int i = 0; i < n; i++)
        cr_assert_eq(train[i], i);
    weir_sampler_close(&s);
}

/* ---- timestep and episode sampling ---- */

static const int lengths[] = {5, 1, 12, 3, 30, 2, 8, 8, 1, 17};
enum { EPISODES = sizeof lengths / sizeof lengths[0] };

Test(sampler, timestep_visits_every_step_once_an_epoch)
{
    for (int shuffle = 0; shuffle < 2; shuffle++) {
        struct weir_sampler_config config = base();
        config.shuffle = shuffle;
        config.num_epochs = 3;
        struct weir_sampler *s = open_or_fail(&config, lengths, EPISODES);
        for (int epoch = 0; epoch < 3; epoch++) {
            char seen[EPISODES][32] = {{0}};
            for (int split = 0; split < 2; split++) {
                uint64_t n;
                struct weir_sample *all = collect(s, &config, epoch, (enum weir_split)split, &n);
                for (uint64_t i = 0; i < n; i++) {
                    cr_assert(all[i].t >= 0 && all[i].t < lengths[all[i].episode]);
                    seen[all[i].episode][all[i].t]++;
                }
                free(all);
            }
            for (int e = 0; e < EPISODES; e++)
                for (int t = 0; t < lengths[e]; t++)
                    cr_assert_eq(seen[e][t], 1, "(%d, %d) occurs %d times", e, t, seen[e][t]);
        }
        weir_sampler_close(&s);
    }
}

Test(sampler, validation_is_the_same_in_every_epoch)
{
    struct weir_sampler_config config = base();
    config.num_epochs = 4;
    config.train_split = 0.5;
    for (int sampling = 0; sampling < 2; sampling++) {
        config.sampling = (enum weir_sampling)sampling;
        struct weir_sampler *s = open_or_fail(&config, lengths, EPISODES);
        uint64_t n, n0;
        struct weir_sample *first = collect(s, &config, 0, WEIR_SPLIT_VAL, &n0);
        for (int epoch = 1; epoch < 4; epoch++) {
            struct weir_sample *val = collect(s, &config, epoch, WEIR_SPLIT_VAL, &n);
            cr_assert_eq(n, n0);
            cr_assert_eq(memcmp(val, first, sizeof *val * n), 0);
            free(val);
        }
        free(first);
        weir_sampler_close(&s);
    }
}

Test(sampler, episode_sampling_draws_one_uniform_start_of_each)
{
    enum { EPOCHS = 3000 };
    struct weir_sampler_config config = base();
    config.sampling = WEIR_SAMPLING_EPISODE;
    config.num_epochs = EPOCHS;
    config.train_split = 1;
    struct weir_sampler *s = open_or_fail(&config, lengths, EPISODES);
    static int starts[EPISODES][32];
    for (int epoch = 0; epoch < EPOCHS; epoch++) {
        uint64_t n;
        int seen[EPISODES] = {0};
        struct weir_sample *all = collect(s, &config, epoch, WEIR_SPLIT_TRAIN, &n);
        cr_assert_eq(n, EPISODES);
        for (uint64_t i = 0; i < n; i++) {
            cr_assert(all[i].t >= 0 && all[i].t < lengths[all[i].episode]);
            seen[all[i].episode]++;
            starts[all[i].episode][all[i].t]++;
        }
        for (int e = 0; e < EPISODES; e++)
            cr_assert_eq(seen[e], 1);
        free(all);
    }
    for (int e = 0; e < EPISODES; e++) {
        double expected = (double)EPOCHS / lengths[e], chi2 = 0, freedom = lengths[e] - 1;
        for (int t = 0; t < lengths[e]; t++)
            chi2 += (starts[e][t] - expected) * (starts[e][t] - expected) / expected;
        cr_assert_leq(chi2, freedom + 5 * sqrt(2 * freedom), "episode %d: chi-square %.1f with %.0f degrees of freedom",
                      e, chi2, freedom);
    }
    weir_sampler_close(&s);
}

/* ---- numbers of batches ---- */

Test(sampler, sizes_and_totals_follow_batch_size_drop_last_and_max_batches)
{
    static const struct {
        int steps, batch, max;
        bool drop;
        int batches, samples;
    } cases[] = {
        {10, 4, 0, false, 3, 10}, {10, 4, 0, true, 2, 8},    {8, 4, 0, false, 2, 8},   {8, 4, 0, true, 2, 8},
        {10, 4, 2, false, 2, 8},  {10, 4, 3, false, 3, 10},  {10, 4, 9, false, 3, 10}, {10, 4, 1, true, 1, 4},
        {3, 8, 0, false, 1, 3},   {10, 1, 0, false, 10, 10}, {10, 10, 0, true, 1, 10},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct weir_sampler_config config = base();
        int steps[2] = {cases[i].steps, cases[i].steps};
        config.train_split = 0.5;
        config.batch_size = cases[i].batch;
        config.max_batches = cases[i].max;
        config.drop_last = cases[i].drop;
        config.num_epochs = 3;
        struct weir_sampler *s = open_or_fail(&config, steps, 2);
        cr_assert_eq(weir_sampler_batches(s, WEIR_SPLIT_TRAIN), cases[i].batches, "case %zu", i);
        cr_assert_eq((int)weir_sampler_samples(s, WEIR_SPLIT_TRAIN), cases[i].samples, "case %zu", i);
        config.drop_last = false; /* validation keeps its last, smaller batch */
        struct weir_sampler *whole = open_or_fail(&config, steps, 2);
        int val = weir_sampler_batches(s, WEIR_SPLIT_VAL);
        cr_assert_eq(val, weir_sampler_batches(whole, WEIR_SPLIT_TRAIN), "case %zu", i);
        cr_assert_eq((int)weir_sampler_total(s), 3 * (cases[i].batches + val), "case %zu", i);
        for (int epoch = 0; epoch < 3; epoch++)
            for (int split = 0; split < 2; split++) {
                uint64_t n;
                free(collect(s, &config, epoch, (enum weir_split)split, &n));
            }
        weir_sampler_close(&whole);
        weir_sampler_close(&s);
    }
}

/* max_batches selects the first samples in each epoch's own order, so different epochs use different samples. */
Test(sampler, max_batches_takes_other_samples_in_other_epochs)
{
    struct weir_sampler_config config = base();
    int steps = 1000, common = 0;
    config.max_batches = 5;
    config.num_epochs = 2;
    struct weir_sampler *s = open_or_fail(&config, &steps, 1);
    uint64_t n;
    struct weir_sample *a = collect(s, &config, 0, WEIR_SPLIT_TRAIN, &n),
                       *b = collect(s, &config, 1, WEIR_SPLIT_TRAIN, &n);
    cr_assert_eq(n, 20);
    for (int i = 0; i < 20; i++)
        for (int j = 0; j < 20; j++)
            common += a[i].t == b[j].t;
    cr_assert_lt(common, 6, "%d of 20 samples are repeated", common);
    free(a);
    free(b);
    weir_sampler_close(&s);
}

/* ---- ranks ---- */

static bool same_samples(const struct weir_sample *a, const struct weir_sample *b, int n)
{
    for (int i = 0; i < n; i++)
        if (a[i].episode != b[i].episode || a[i].t != b[i].t)
            return false;
    return true;
}

/* Returns the plan of batch `index` in a split of an epoch. */
static struct weir_plan plan_at(const struct weir_sampler *s, int epoch, enum weir_split split, int index,
                                struct weir_sample *samples)
{
    int train = weir_sampler_batches(s, WEIR_SPLIT_TRAIN), val = weir_sampler_batches(s, WEIR_SPLIT_VAL);
    struct weir_plan plan;
    uint64_t sequence = (uint64_t)epoch * (uint64_t)(train + val) + (uint64_t)(split == WEIR_SPLIT_VAL ? train : 0);
    weir_sampler_plan(s, sequence + (uint64_t)index, &plan, samples);
    cr_assert_eq(plan.index, index);
    return plan;
}

static void check_ranks(const struct weir_sampler_config *config, const int *steps, int episodes, int world)
{
    struct weir_sampler *one = open_or_fail(config, steps, episodes), *ranks[8];
    struct weir_sampler_config c = *config;
    struct weir_sample mine[16], theirs[16];
    for (c.world_size = world, c.rank = 0; c.rank < world; c.rank++)
        ranks[c.rank] = open_or_fail(&c, steps, episodes);
    for (int epoch = 0; epoch < config->num_epochs; epoch++)
        for (enum weir_split split = WEIR_SPLIT_TRAIN; split <= WEIR_SPLIT_VAL; split++) {
            int all = weir_sampler_batches(one, split), each = config->wrap ? (all + world - 1) / world : all / world;
            for (int r = 0; r < world; r++) {
                uint64_t samples = 0;
                cr_assert_eq(weir_sampler_batches(ranks[r], split), each, "rank %d of %d", r, world);
                for (int i = 0; i < each; i++) {
                    struct weir_plan plan = plan_at(ranks[r], epoch, split, i, mine);
                    struct weir_plan whole = plan_at(one, epoch, split, (i * world + r) % all, theirs);
                    cr_assert_eq(plan.n, whole.n);
                    cr_assert(same_samples(mine, theirs, plan.n), "rank %d of %d, batch %d", r, world, i);
                    samples += (uint64_t)plan.n;
                }
                cr_assert_eq(weir_sampler_samples(ranks[r], split), samples);
            }
        }
    for (int r = 0; r < world; r++)
        weir_sampler_close(&ranks[r]);
    weir_sampler_close(&one);
}

Test(sampler, ranks_in_turn_are_the_stream_of_one)
{
    static const int worlds[] = {1, 2, 3, 8};
    int steps[30];
    for (int i = 0; i < 30; i++)
        steps[i] = 3 + i % 7;
    for (int w = 0; w < 4; w++)
        for (int variant = 0; variant < 16; variant++) {
            struct weir_sampler_config config = base();
            config.num_epochs = 2;
            config.seed = (uint64_t)variant;
            config.shuffle = variant & 1;
            config.drop_last = variant & 2;
            config.wrap = variant & 4;
            config.sampling = variant & 8 ? WEIR_SAMPLING_EPISODE : WEIR_SAMPLING_TIMESTEP;
            config.batch_size = config.sampling == WEIR_SAMPLING_EPISODE ? 2 : 5;
            check_ranks(&config, steps, 30, worlds[w]);
        }
}

Test(sampler, ranks_that_cannot_be)
{
    int steps[] = {4, 4};
    struct weir_sampler *sampler;
    struct weir_sampler_config config = base();
    struct weir_err err = WEIR_ERR_NONE;
    config.world_size = 2;
    config.rank = 2;
    cr_assert_eq(weir_sampler_open(&sampler, &config, steps, 2, &err), -EINVAL);
    cr_assert(strstr(err.text, "rank 2 of 2"), "%s", err.text);
    config.rank = 0;
    config.world_size = 3; /* more ranks than the two batches */
    err = WEIR_ERR_NONE;
    config.batch_size = 2;
    cr_assert_eq(weir_sampler_open(&sampler, &config, steps, 2, &err), -EINVAL);
    cr_assert(strstr(err.text, "2 training batches are not enough for 3 ranks"), "%s", err.text);
    config.wrap = true;
    cr_assert_eq(weir_sampler_open(&sampler, &config, steps, 2, &err), 0);
    cr_assert_eq(weir_sampler_batches(sampler, WEIR_SPLIT_TRAIN), 1);
    weir_sampler_close(&sampler);
}

Test(sampler, numbers_too_large_for_32_bits_work)
{
    enum { MANY = 3 };
    struct weir_sampler_config config = base();
    int steps[MANY] = {2000000000, 2000000000, 2000000000};
    config.batch_size = 65536;
    config.train_split = 1;
    struct weir_sampler *s = open_or_fail(&config, steps, MANY);
    cr_assert_eq(weir_sampler_samples(s, WEIR_SPLIT_TRAIN), UINT64_C(6000000000));
    struct weir_sample *samples = malloc(sizeof *samples * 65536);
    struct weir_plan plan;
    weir_sampler_plan(s, weir_sampler_total(s) - 1, &plan, samples);
    cr_assert_eq(plan.n, (int)(UINT64_C(6000000000) % 65536));
    int seen[MANY] = {0};
    for (int i = 0; i < plan.n; i++) {
        cr_assert(samples[i].episode >= 0 && samples[i].episode < MANY && samples[i].t >= 0);
        seen[samples[i].episode]++;
    }
    for (int i = 0; i < MANY; i++)
        cr_assert_gt(seen[i], plan.n / 4);
    free(samples);
    weir_sampler_close(&s);
}

Test(sampler, nonsense_is_refused_in_one_line)
{
    const int steps[2] = {5, 5};
    static const struct {
        int batch, max, epochs, episodes;
        double split;
        bool drop;
    } bad[] = {{0, 0, 1, 2, 0.9, false},  {4, -1, 1, 2, 0.9, false}, {4, 0, 0, 2, 0.9, false}, {4, 0, 1, 0, 0.9, false},
               {4, 0, 1, 2, -0.1, false}, {4, 0, 1, 2, 1.1, false},  {4, 0, 1, 2, NAN, false}, {6, 0, 1, 2, 0.5, true}};
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        struct weir_sampler_config config = base();
        struct weir_sampler *s = (struct weir_sampler *)&config;
        struct weir_err err = WEIR_ERR_NONE;
        config.batch_size = bad[i].batch;
        config.max_batches = bad[i].max;
        config.num_epochs = bad[i].epochs;
        config.train_split = bad[i].split;
        config.drop_last = bad[i].drop;
        cr_assert_eq(weir_sampler_open(&s, &config, steps, bad[i].episodes, &err), -EINVAL, "case %zu", i);
        cr_assert_null(s);
        cr_assert_gt(strlen(err.text), 20);
    }
}
