#include "bench/series.h"
#include "base/numbers.h"
#include "cli/sysinfo.h"
#include "datasets/hdf5/h5_read.h"
#include "weir/dataset.h"
#include "weir/decoder.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

void series_add(struct series *series, double value)
{
    if (series->n < SERIES_MAX)
        series->values[series->n++] = value;
}

double series_at(const struct series *series, double q)
{
    if (series->n == 0)
        return 0;
    double sorted[SERIES_MAX];
    memcpy(sorted, series->values, sizeof *sorted * (size_t)series->n);
    qsort(sorted, (size_t)series->n, sizeof *sorted, weir_compare_double);
    double place = q * (series->n - 1);
    int low = (int)place, high = low + 1 < series->n ? low + 1 : low;
    return sorted[low] + (sorted[high] - sorted[low]) * (place - low);
}

void series_ratio(const struct series *above, const struct series *below, struct series *ratio)
{
    ratio->n = 0;
    for (int i = 0; i < above->n && i < below->n; i++)
        series_add(ratio, above->values[i] / below->values[i]);
}

void series_json(struct weir_json *json, const char *key, const struct series *series)
{
    weir_json_object(json, key);
    weir_json_int(json, "n", series->n);
    weir_json_double(json, "min", series_at(series, 0));
    weir_json_double(json, "median", series_at(series, 0.5));
    weir_json_double(json, "p99", series_at(series, 0.99));
    weir_json_double(json, "max", series_at(series, 1));
    weir_json_array(json, "values");
    for (int i = 0; i < series->n; i++)
        weir_json_double(json, NULL, series->values[i]);
    weir_json_end(json, ']');
    weir_json_end(json, '}');
}

int bench_counts(const char *option, const char *text, int largest, int *counts, int max, struct weir_err *err)
{
    int n = 0;
    do {
        bool is_auto = strncmp(text, "auto", 4) == 0;
        char *end = (char *)text + 4;
        long value = is_auto ? weir_cores_usable() : strtol(text, &end, 10);
        if (value < 1 || value > largest || (*end != ',' && *end != '\0') || n == max)
            return weir_err_set(err, -EINVAL,
                                "--%s accepts up to %d values, which are numbers (1..%d) or auto, such as 1,auto",
                                option, max, largest);
        counts[n++] = (int)value;
        text = *end ? end + 1 : NULL;
    } while (text);
    return n;
}

void bench_print_machine(void)
{
    struct weir_sysinfo info;
    char quota[32] = "none", jpeg[128], hdf5[128], libc[64];
    weir_sysinfo_read(&info);
    weir_decoder_library(jpeg, sizeof jpeg);
    weir_h5_library(hdf5, sizeof hdf5);
    weir_libc(libc, sizeof libc);
    if (info.cores.quota > 0)
        snprintf(quota, sizeof quota, "%g cores", info.cores.quota);
    printf("machine: %s (%s)\n", info.cpu_model, info.isa);
    printf("         %d usable cores (%d online, quota %s), governor %s, %.1f GB of memory, %s, %s\n",
           info.cores.usable, info.cores.online, quota, info.governor, (double)info.memory_total_bytes / 1e9,
           info.kernel, info.os);
    printf("build:   weir %s (%s), %s, %s, %s, %s\n", weir_version(), weir_git_describe(), weir_compiler(), libc, jpeg,
           hdf5);
}

static void json_machine(struct weir_json *json)
{
    struct weir_sysinfo info;
    char text[128];
    weir_sysinfo_read(&info);
    weir_json_text(json, "version", weir_version());
    weir_json_text(json, "git", weir_git_describe());
    weir_json_text(json, "compiler", weir_compiler());
    weir_libc(text, sizeof text);
    weir_json_text(json, "libc", text);
    weir_decoder_library(text, sizeof text);
    weir_json_text(json, "jpeg", text);
    weir_h5_library(text, sizeof text);
    weir_json_text(json, "hdf5", text);
    weir_fields_object(json, "machine", &weir_sysinfo_fields, &info);
}

void bench_json_begin(struct weir_json *json, const struct weir_command *command, const void *options)
{
    weir_json_open(json, stdout, true);
    weir_json_object(json, NULL);
    json_machine(json);
    weir_options_object(json, "config", NULL, command, options);
}
