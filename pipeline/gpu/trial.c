#include "pipeline/gpu/trial.h"

static const uint64_t FIRST_NS = 300000000, AGAIN_NS = 2000000000, EVERY_NS = 30000000000;
/* Of a window: what was begun before it is first worked off. */
static const uint64_t SETTLE_NS = 100000000, COUNT_NS = 500000000;
/* Less is not worth a helper that takes what others could use. */
static const double WORTH_IT = 0.03;

static bool is_with(int window)
{
    return window == 1 || window == 2;
}

static void rest(struct weir_trial *trial, uint64_t now_ns, uint64_t ns)
{
    trial->since_ns = now_ns;
    trial->rest_ns = ns;
    trial->trying = trial->counting = false;
}

/* False: the halves disagree, or the helper, or nobody, had anything to do. What a pause spoils of a half that agrees
 * all the same is in the gain that is farther from the limit. */
static bool judge(struct weir_trial *trial, bool helped)
{
    const double *rates = trial->rates;
    if (!helped || rates[0] <= 0 || rates[3] <= 0)
        return false;
    double first = rates[1] / rates[0] - 1, second = rates[2] / rates[3] - 1;
    bool helps = first >= WORTH_IT;
    if (helps != (second >= WORTH_IT))
        return false;
    trial->helps = helps;
    trial->gain = (first < second) == helps ? first : second;
    trial->n_trials++;
    return true;
}

static void end_window(struct weir_trial *trial, uint64_t now_ns, struct weir_trial_counts counts)
{
    trial->rates[trial->window] = (double)(counts.all - trial->from.all) * 1e9 / (double)(now_ns - trial->from_ns);
    trial->since_ns = now_ns;
    trial->counting = false;
    if (++trial->window == WEIR_TRIAL_WINDOWS)
        rest(trial, now_ns, judge(trial, counts.helper > trial->from.helper) ? EVERY_NS : AGAIN_NS);
}

static void begin(struct weir_trial *trial, uint64_t now_ns)
{
    trial->trying = true;
    trial->since_ns = now_ns;
    trial->window = 0;
}

static void begin_window(struct weir_trial *trial, uint64_t now_ns, struct weir_trial_counts counts)
{
    trial->counting = true;
    trial->from_ns = now_ns;
    trial->from.all = counts.all;
    if (trial->window == 0) /* it has worked off what it had */
        trial->from.helper = counts.helper;
}

static void try(struct weir_trial *trial, uint64_t now_ns, struct weir_trial_counts counts)
{
    if (trial->counting && now_ns - trial->from_ns >= COUNT_NS)
        end_window(trial, now_ns, counts);
    else if (!trial->counting && now_ns - trial->since_ns >= SETTLE_NS)
        begin_window(trial, now_ns, counts);
}

bool weir_trial_step(struct weir_trial *trial, uint64_t now_ns, struct weir_trial_counts counts)
{
    if (trial->since_ns == 0) {
        trial->helps = true; /* nobody knows otherwise */
        rest(trial, now_ns, FIRST_NS);
    }
    if (trial->trying)
        try(trial, now_ns, counts);
    else if (now_ns - trial->since_ns >= trial->rest_ns)
        begin(trial, now_ns);
    return trial->trying ? is_with(trial->window) : trial->helps;
}
