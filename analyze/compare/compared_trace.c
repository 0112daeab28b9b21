/* Traces: the steps (ProfilerStep#N) and the parts of their time. */
#include "analyze/compare/compared_priv.h"
#include "prof/trace/trace_read.h"

#include <errno.h>
#include <stdlib.h>

static int add_step(struct weir_compared *compared, const struct weir_step *step)
{
    double step_s = (double)(step->end_ns - step->start_ns) / 1e9;
    int code = weir_series_add(&compared->whole, step_s);
    if (code == 0 && step_s > 0)
        code = weir_series_add(&compared->wait, (double)step->part_ns[WEIR_STEP_DATALOADER] / 1e9 / step_s);
    for (int part = 0; part < WEIR_STEP_PARTS && code == 0; part++)
        code = weir_compared_stage(compared, weir_step_part_name((enum weir_step_part)part),
                                   (double)step->part_ns[part] / 1e9);
    return code;
}

static int add_steps(struct weir_compared *compared, struct weir_trace *trace)
{
    struct weir_step *steps = NULL;
    int64_t n = weir_steps_split(trace, &steps);
    int code = n < 0 ? (int)n : 0;
    for (int64_t i = 0; i < n && code == 0; i++)
        code = add_step(compared, &steps[i]);
    free(steps);
    for (int i = 0; i < trace->n_devices && code == 0; i++) {
        char name[WEIR_COMPARED_SETTING];
        snprintf(name, sizeof name, "machine.gpu%d", trace->devices[i].id);
        code = weir_compared_setting(compared, name, weir_trace_text(trace, trace->devices[i].name));
    }
    if (compared->wait.n > 0)
        compared->bound = weir_data_bound(weir_series_median(&compared->wait));
    return code;
}

int weir_compared_trace(struct weir_compared *compared, struct weir_err *err)
{
    struct weir_trace *trace = NULL;
    compared->what = "a trace";
    compared->family = "trace";
    compared->unit = compared->per = "step";
    compared->whole_name = "step";
    int code = weir_trace_read(&trace, compared->path, err);
    if (code < 0)
        return code;
    code = add_steps(compared, trace);
    weir_trace_free(&trace);
    if (code == 0 && compared->whole.n == 0)
        return weir_err_set(err, -ENODATA,
                            "%s is a trace without steps (ProfilerStep#N); call prof.step() after each "
                            "batch",
                            compared->path);
    return code;
}
