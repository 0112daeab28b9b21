#include "base/terminal.h"
#include "extras/motion/cli/motion_cli.h"
#include "prof/gpu/gpu_trace.h"
#include "weir/trace.h"

enum { TOP_ROWS = 10, RULER = 80 };

static const char *const variants[] = {[WEIR_MOTION_OPS] = "ops", [WEIR_MOTION_FUSED] = "fused"};

void weir_motion_print_head(FILE *to, const struct motion_options *o, const struct weir_motion_clips *clips)
{
    double duration_s = 0;
    size_t loops = 0;
    struct weir_wrap wrap;
    FILE *out = weir_wrap_open(&wrap, to, 2, NULL);
    for (size_t i = 0; i < clips->clips; i++) {
        duration_s += clips->clip[i].duration_s;
        loops += clips->clip[i].loop;
    }
    if (o->task)
        fprintf(out, "%s: ", o->task);
    fprintf(out, "%d environments", o->num_envs);
    if (o->num_steps_to_use > 1)
        fprintf(out, " with %d steps each", o->num_steps_to_use);
    fprintf(out, ", %zu clip%s of %s (%zu frames, %.1f s, %zu of them loop%s), %zu dofs, %zu bodies; variant %s",
            clips->clips, clips->clips == 1 ? "" : "s", o->motion, clips->frames, duration_s, loops,
            loops == 1 ? "s" : "", clips->dofs, clips->bodies, variants[o->variant]);
    char advice[WEIR_OPTION_TEXT];
    weir_motion_advice_name(o, advice);
    if (o->advice != MOTION_ADVICE_NONE)
        fprintf(out, o->advice == MOTION_ADVICE_ALL ? " with %s advice" : " with advice %s", advice);
    fprintf(out, o->gpu < 0 ? " on the CPU" : " on GPU %d", o->gpu);
    fprintf(out, "; %d step%s, %d of them recorded after %d\n", o->num_steps, o->num_steps == 1 ? "" : "s", o->active,
            o->warmup);
    weir_wrap_close(&wrap);
}

static void print_ruler(FILE *out)
{
    for (int i = 0; i < RULER; i++)
        fputc('=', out);
    fputc('\n', out);
}

static void print_operations(FILE *out, const struct motion_figures *figures)
{
    static const struct weir_averages_config config = {0};
    struct weir_averages *averages;
    if (weir_averages_open(&averages, figures->trace, &config) < 0)
        return;
    bool gpu = averages->has_device_time;
    const struct weir_averages_table table = {gpu ? "cuda_time_total" : "cpu_time_total", TOP_ROWS, false, NULL};
    fputc('\n', out);
    print_ruler(out);
    fprintf(out, "Top %d operations by %s time:\n", TOP_ROWS, gpu ? "CUDA" : "CPU");
    print_ruler(out);
    weir_averages_print(out, averages, &table);
    weir_averages_close(&averages);
}

static double queries_per_s(const struct motion_options *o, const struct motion_figures *figures)
{
    double queries = (double)o->num_envs * o->num_steps_to_use;
    return figures->median_ms > 0 ? queries / figures->median_ms * 1e3 : 0;
}

void weir_motion_print(FILE *out, const struct motion_options *o, const struct motion_figures *f)
{
    print_operations(out, f);
    weir_kernel_clocks_print_trace(out, f->trace);
    struct weir_wrap wrap;
    FILE *text = weir_wrap_open(&wrap, out, 2, NULL);
    fprintf(text, "\n%s, %s: %d operator%s in a fetch of %.0f queries\n", variants[o->variant], f->engine, f->operators,
            f->operators == 1 ? "" : "s", (double)o->num_envs * o->num_steps_to_use);
    weir_wrap_close(&wrap);
    text = weir_wrap_open(&wrap, out, 2, NULL);
    wrap.highlight = true;
    if (f->timed < 1)
        fprintf(text, "no step ran without the profiler%s\n",
                o->num_steps > o->warmup + o->active ? "" : ": --num_steps equals --warmup plus --active");
    else
        fprintf(text,
                "%d steps without the profiler: median %.3f ms per step (min %.3f, p99 %.3f, max %.3f), %.0f "
                "queries/s\n",
                f->timed, f->median_ms, f->min_ms, f->p99_ms, f->max_ms, queries_per_s(o, f));
    weir_wrap_close(&wrap);
    if (*f->trace_path)
        fprintf(out, "trace: %s\n", f->trace_path);
    else if (!o->trace_path)
        fprintf(out, "not written: the trace (--trace_path ./profiler_logs)\n");
}

static void print_json_clocks(struct weir_json *json, const struct weir_trace *trace)
{
    struct weir_kernel_clocks clocks;
    if (weir_kernel_clocks_make(&clocks, trace) == 0)
        weir_kernel_clocks_json(json, &clocks);
    weir_kernel_clocks_clear(&clocks);
}

void weir_motion_print_json(FILE *out, const struct weir_command *command, const struct motion_options *o,
                            const struct motion_figures *f)
{
    struct weir_json json;
    weir_cli_json_open(&json, out);
    weir_json_text(&json, "type", "motion");
    weir_json_object(&json, "options");
    weir_options_json(command, o, &json);
    weir_json_end(&json, '}');
    weir_json_int(&json, "gpu", o->gpu);
    weir_json_text(&json, "engine", f->engine);
    weir_json_int(&json, "operators", f->operators);
    weir_json_int(&json, "timed_steps", f->timed);
    if (f->timed > 0) {
        weir_json_double(&json, "min_ms", f->min_ms);
        weir_json_double(&json, "median_ms", f->median_ms);
        weir_json_double(&json, "p99_ms", f->p99_ms);
        weir_json_double(&json, "max_ms", f->max_ms);
        weir_json_double(&json, "queries_per_s", queries_per_s(o, f));
    }
    print_json_clocks(&json, f->trace);
    weir_json_text(&json, "trace", *f->trace_path ? f->trace_path : NULL);
    weir_cli_json_close(&json);
}
