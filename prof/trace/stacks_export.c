/* Writes one line per stack, as input for flamegraph.pl, like torch's export_stacks. */
#include "base/gz_file.h"
#include "weir/trace.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

enum { FRAMES_MAX = 256 };

static const char translated[] = " ;\t\n";

/* Prints frames outermost first, as flamegraph.pl expects; traces store them innermost first. */
static void print_reversed(FILE *out, const char *stack)
{
    const char *frames[FRAMES_MAX];
    int n = 0;
    for (const char *at = stack; at && *at && n < FRAMES_MAX; at = strchr(at, ';') ? strchr(at, ';') + 1 : NULL)
        frames[n++] = at;
    while (n-- > 0) {
        size_t length = strcspn(frames[n], ";");
        for (size_t i = 0; i < length; i++)
            fputc(strchr(translated, frames[n][i]) ? '_' : frames[n][i], out);
        if (n > 0)
            fputc(';', out);
    }
}

static void print_rows(FILE *out, const struct weir_averages *averages, bool device)
{
    for (size_t i = 0; i < averages->n_rows; i++) {
        const struct weir_averages_row *row = &averages->rows[i];
        int64_t us = (device ? row->self_device_ns : row->self_cpu_ns) / 1000;
        if (!row->stack || us <= 0)
            continue;
        print_reversed(out, weir_trace_text(averages->trace, row->stack));
        fprintf(out, " %" PRId64 "\n", us);
    }
}

int weir_stacks_export(struct weir_trace *trace, const char *metric, const char *path, struct weir_err *err)
{
    bool device = strcmp(metric, "self_cuda_time_total") == 0;
    if (!device && strcmp(metric, "self_cpu_time_total") != 0)
        return weir_err_set(err, -EINVAL,
                            "the metric of stacks must be self_cpu_time_total or self_cuda_time_total, not %s", metric);
    const struct weir_averages_config config = {.by_stack = FRAMES_MAX};
    struct weir_averages *averages;
    int rc = weir_averages_open(&averages, trace, &config);
    if (rc < 0)
        return weir_err_set(err, rc, "out of memory for the stacks");
    char *text = NULL;
    size_t size;
    FILE *out = open_memstream(&text, &size);
    if (out)
        print_rows(out, averages, device);
    weir_averages_close(&averages);
    rc = out && fclose(out) == 0 ? weir_gz_write_plain(path, text, size, err)
                                 : weir_err_set(err, -ENOMEM, "out of memory for the stacks");
    free(text);
    return rc;
}
