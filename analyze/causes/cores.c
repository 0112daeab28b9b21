#include "analyze/causes/cores.h"
#include "analyze/causes/thresholds.h"

#include <math.h>

double weir_core_wait_least(const struct weir_core_figures *f)
{
    return f->others_cores >= WEIR_VERDICT_OTHERS_MANY * f->usable ? WEIR_VERDICT_CORE_WAIT / 2
                                                                   : WEIR_VERDICT_CORE_WAIT;
}

bool weir_quota_is_used_up(const struct weir_core_figures *f)
{
    bool throttled = fmax(f->throttled, f->periods) >= WEIR_VERDICT_THROTTLED;
    bool all_used = f->quota_cores < f->cores && f->own_cores >= WEIR_VERDICT_CORES_BUSY * f->quota_cores;
    return f->quota_cores > 0 && (throttled || all_used);
}

bool weir_host_takes_cores(const struct weir_core_figures *f)
{
    return f->steal_cores >= WEIR_VERDICT_STEAL * f->usable && f->ready >= WEIR_VERDICT_RUNNABLE;
}

bool weir_others_take_cores(const struct weir_core_figures *f)
{
    bool own_busy = f->own_cores >= WEIR_VERDICT_CORES_BUSY * f->usable;
    bool others = f->others_cores < 0 || f->others_cores >= WEIR_VERDICT_OTHERS * f->usable;
    return f->core_wait >= weir_core_wait_least(f) && !own_busy && others;
}
