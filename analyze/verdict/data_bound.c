/* How much training waits for data: what the verdicts of Weir's loader and of watched loaders begin with. */
#include "analyze/verdict/verdict.h"

#include <math.h>

enum weir_data_bound weir_data_bound(double wait)
{
    return wait < WEIR_VERDICT_WAIT_LEAST    ? WEIR_BOUND_NO
           : wait < WEIR_VERDICT_WAIT_STRONG ? WEIR_BOUND_PARTLY
                                             : WEIR_BOUND_STRONGLY;
}

const char *weir_data_bound_name(enum weir_data_bound bound)
{
    static const char *const names[] = {NULL, "no", "partly", "strongly", "no-step"};
    return names[bound];
}

/* Few batches are enough if training takes longer, and at most half of them were prefetched before it began. */
bool weir_verdict_suffices(uint64_t train_batches, double train_s, int slots)
{
    bool is_long = train_batches >= WEIR_VERDICT_BATCHES_LONG && train_s >= WEIR_VERDICT_SECONDS_LONG &&
                   train_batches >= 2 * (uint64_t)slots;
    return train_s >= WEIR_VERDICT_SECONDS_LEAST && (train_batches >= WEIR_VERDICT_BATCHES_LEAST || is_long);
}

void weir_verdict_lead_print(FILE *out, enum weir_data_bound bound, double wait, bool at_most, bool validation,
                             const char *part)
{
    fputs("verdict: ", out);
    if (bound == WEIR_BOUND_NO_STEP)
        fputs("No training step was simulated: this is the loader's top speed. ", out);
    else if (bound != WEIR_BOUND_UNKNOWN)
        fprintf(out, "%s waited for data %s%.0f %% of the %s%s. ", validation ? "Validation" : "Training",
                at_most ? "at most " : "", 100 * fmin(fmax(wait, 0), 1), part,
                bound == WEIR_BOUND_NO       ? ", so data loading is not the limit"
                : bound == WEIR_BOUND_PARTLY ? ", so faster loading helps only a little"
                                             : "");
}
