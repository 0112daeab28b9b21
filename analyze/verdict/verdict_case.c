/* How the rules state a cause. */
#include "analyze/verdict/verdict_priv.h"

struct weir_diagnosis_cause *weir_verdict_add(struct weir_verdict_case *c, enum weir_cause cause, double share,
                                              const struct weir_change *without)
{
    if (c->found & UINT64_C(1) << cause)
        return &c->verdict->found.causes[WEIR_DIAGNOSIS_CAUSES];
    c->found |= UINT64_C(1) << cause;
    c->without[cause] = without ? *without : WEIR_NO_CHANGE;
    double gain = without ? weir_verdict_predict(c->verdict, without, NULL) : 0;
    return weir_diagnosis_add(&c->verdict->found, cause, share, gain, "%s", "");
}

void weir_verdict_say_others(const struct weir_verdict_case *c, struct weir_diagnosis_cause *cause)
{
    double others = c->report->prof.machine.others_cores;
    if (others >= WEIR_VERDICT_OTHERS)
        weir_diagnosis_say(cause, " (other processes use %.2f cores)", others);
}

bool weir_verdict_workers_refuted(const struct weir_verdict_facts *facts)
{
    return facts->more_workers > 0 && facts->more_workers < WEIR_VERDICT_WORTH;
}
