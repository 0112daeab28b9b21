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

static void add_clocks(struct weir_document *document, const struct weir_trace *trace)
{
    FILE *out = weir_document_stream(document);
    struct weir_kernel_clocks clocks;
    if (out)
        weir_kernel_clocks_print_trace(out, trace);
    else if (weir_kernel_clocks_make(&clocks, trace) == 0)
        weir_kernel_clocks_json(document->json, &clocks);
    if (!out)
        weir_kernel_clocks_clear(&clocks);
}

static void add_steps(struct weir_document *document, const struct motion_options *o, const struct motion_figures *f)
{
    FILE *text = weir_document_text(document, NULL, 2);
    fprintf(text, "\n%s, %s: %d operator%s in a fetch of %.0f queries\n", variants[o->variant], f->engine, f->operators,
            f->operators == 1 ? "" : "s", (double)o->num_envs * o->num_steps_to_use);
    text = weir_document_text(document, NULL, 2);
    document->text.highlight = true;
    if (f->timed < 1)
        fprintf(text, "no step ran without the profiler%s\n",
                o->num_steps > o->warmup + o->active ? "" : ": --num_steps equals --warmup plus --active");
    else
        fprintf(text,
                "%d steps without the profiler: median %.3f ms per step (min %.3f, p99 %.3f, max %.3f), %.0f "
                "queries/s\n",
                f->timed, f->median_ms, f->min_ms, f->p99_ms, f->max_ms, queries_per_s(o, f));
}

void weir_motion_describe(struct weir_document *document, const struct weir_command *command,
                          const struct motion_options *o, const struct motion_figures *f)
{
    FILE *out = weir_document_stream(document);
    weir_document_fact(document, "type", "motion");
    weir_options_document(document, "options", NULL, command, o);
    weir_document_fact(document, "gpu", o->gpu);
    weir_document_fact(document, "engine", f->engine);
    weir_document_fact(document, "operators", f->operators);
    weir_document_fact(document, "timed_steps", f->timed);
    if (f->timed > 0) {
        weir_document_fact(document, "min_ms", f->min_ms);
        weir_document_fact(document, "median_ms", f->median_ms);
        weir_document_fact(document, "p99_ms", f->p99_ms);
        weir_document_fact(document, "max_ms", f->max_ms);
        weir_document_fact(document, "queries_per_s", queries_per_s(o, f));
    }
    if (out)
        print_operations(out, f);
    add_clocks(document, f->trace);
    add_steps(document, o, f);
    if (*f->trace_path || document->json)
        weir_document_path(document, "trace", "trace: ", *f->trace_path ? f->trace_path : NULL);
    else if (!o->trace_path)
        fputs("not written: the trace (--trace_path ./profiler_logs)\n", weir_document_text(document, NULL, 0));
}
