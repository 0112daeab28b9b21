#include "pipeline/trial.h"

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

/* False: the halves disagree, or nothing was done. */
static bool judge(struct weir_trial *trial)
{
    const double *rates = trial->rates;
    if (rates[0] <= 0 || rates[3] <= 0)
        return false;
    bool first = rates[1] >= (1 + WORTH_IT) * rates[0], second = rates[2] >= (1 + WORTH_IT) * rates[3];
    if (first != second)
        return false;
    trial->helps = first;
    trial->gain = (rates[1] + rates[2]) / (rates[0] + rates[3]) - 1;
    trial->n_trials++;
    return true;
}

static void end_window(struct weir_trial *trial, uint64_t now_ns, uint64_t count)
{
    trial->rates[trial->window] = (double)(count - trial->from_count) * 1e9 / (double)(now_ns - trial->from_ns);
    trial->since_ns = now_ns;
    trial->counting = false;
    if (++trial->window == WEIR_TRIAL_WINDOWS)
        rest(trial, now_ns, judge(trial) ? EVERY_NS : AGAIN_NS);
}

static void begin(struct weir_trial *trial, uint64_t now_ns)
{
    trial->trying = true;
    trial->since_ns = now_ns;
    trial->window = 0;
}

static void try(struct weir_trial *trial, uint64_t now_ns, uint64_t count)
{
    if (trial->counting && now_ns - trial->from_ns >= COUNT_NS) {
        end_window(trial, now_ns, count);
    } else if (!trial->counting && now_ns - trial->since_ns >= SETTLE_NS) {
        trial->counting = true;
        trial->from_ns = now_ns;
        trial->from_count = count;
    }
}

bool weir_trial_step(struct weir_trial *trial, uint64_t now_ns, uint64_t count)
{
    if (trial->since_ns == 0) {
        trial->helps = true; /* nobody knows otherwise */
        rest(trial, now_ns, FIRST_NS);
    }
    if (trial->trying)
        try(trial, now_ns, count);
    else if (now_ns - trial->since_ns >= trial->rest_ns)
        begin(trial, now_ns);
    return trial->trying ? is_with(trial->window) : trial->helps;
}
