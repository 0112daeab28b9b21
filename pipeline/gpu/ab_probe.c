#include "pipeline/gpu/ab_probe.h"
#include "pipeline/defaults.h"

static bool is_with(int window)
{
    return window == 1 || window == 2;
}

static void pause(struct weir_ab_probe *probe, uint64_t now_ns, uint64_t ns)
{
    probe->since_ns = now_ns;
    probe->pause_ns = ns;
    probe->probing = probe->counting = false;
}

/* False: the halves disagree, or the helper, or nobody, had anything to do. What a pause spoils of a half that agrees
 * all the same is in the gain that is farther from the limit. */
static bool judge(struct weir_ab_probe *probe, bool helped)
{
    const double *rates = probe->rates;
    if (!helped || rates[0] <= 0 || rates[3] <= 0)
        return false;
    double first = rates[1] / rates[0] - 1, second = rates[2] / rates[3] - 1;
    bool helps = first >= WEIR_AB_PROBE_WORTH_IT;
    if (helps != (second >= WEIR_AB_PROBE_WORTH_IT))
        return false;
    probe->helps = helps;
    probe->gain = (first < second) == helps ? first : second;
    probe->n_probes++;
    return true;
}

static void end_window(struct weir_ab_probe *probe, uint64_t now_ns, struct weir_ab_counts counts)
{
    probe->rates[probe->window] = (double)(counts.all - probe->from.all) * 1e9 / (double)(now_ns - probe->from_ns);
    probe->since_ns = now_ns;
    probe->counting = false;
    if (++probe->window == WEIR_AB_PROBE_WINDOWS)
        pause(probe, now_ns,
              judge(probe, counts.helper > probe->from.helper) ? WEIR_AB_PROBE_EVERY_NS : WEIR_AB_PROBE_AGAIN_NS);
}

static void begin(struct weir_ab_probe *probe, uint64_t now_ns)
{
    probe->probing = true;
    probe->since_ns = now_ns;
    probe->window = 0;
}

static void begin_window(struct weir_ab_probe *probe, uint64_t now_ns, struct weir_ab_counts counts)
{
    probe->counting = true;
    probe->from_ns = now_ns;
    probe->from.all = counts.all;
    if (probe->window == 0) /* it has worked off what it had */
        probe->from.helper = counts.helper;
}

static void probe_on(struct weir_ab_probe *probe, uint64_t now_ns, struct weir_ab_counts counts)
{
    if (probe->counting && now_ns - probe->from_ns >= WEIR_AB_PROBE_COUNT_NS)
        end_window(probe, now_ns, counts);
    else if (!probe->counting && now_ns - probe->since_ns >= WEIR_AB_PROBE_DRAIN_NS)
        begin_window(probe, now_ns, counts);
}

bool weir_ab_probe_step(struct weir_ab_probe *probe, uint64_t now_ns, struct weir_ab_counts counts)
{
    if (probe->since_ns == 0) {
        probe->helps = true; /* nobody knows otherwise */
        pause(probe, now_ns, WEIR_AB_PROBE_FIRST_NS);
    }
    if (probe->probing)
        probe_on(probe, now_ns, counts);
    else if (now_ns - probe->since_ns >= probe->pause_ns)
        begin(probe, now_ns);
    return probe->probing ? is_with(probe->window) : probe->helps;
}
