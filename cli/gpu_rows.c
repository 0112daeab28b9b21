#include "cli/gpu_rows.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

typedef void row_fn(void *user, const char *name, bool present, const char *text);

struct line {
    char text[512];
    size_t length;
};

static void add(struct line *line, const char *format, ...) __attribute__((format(printf, 2, 3)));

static void add(struct line *line, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    int n = vsnprintf(line->text + line->length, sizeof line->text - line->length, format, args);
    va_end(args);
    if (n > 0 && line->length + (size_t)n < sizeof line->text)
        line->length += (size_t)n;
}

static void add_count(struct line *line, int n, const char *what)
{
    add(line, ", %d %s%s", n, what, n == 1 ? "" : "s");
}

static void gpu_row(const struct weir_gpu_fact *gpu, row_fn *row, void *user)
{
    char name[24];
    struct line line = {.length = 0};
    snprintf(name, sizeof name, "gpu %d", gpu->number);
    add(&line, "%s", gpu->name);
    if (gpu->memory_bytes)
        add(&line, ", %.1f GiB", (double)gpu->memory_bytes / 0x1p30);
    add(&line, ", compute capability %d.%d", gpu->major, gpu->minor);
    add_count(&line, gpu->sms, "multiprocessor");
    add_count(&line, gpu->copy_engines, "copy engine");
    if (gpu->jpeg_engines >= 0)
        add_count(&line, gpu->jpeg_engines, "JPEG engine");
    if (gpu->pcie_generation && gpu->pcie_width)
        add(&line, "; PCIe %d.0 x%d", gpu->pcie_generation, gpu->pcie_width);
    if (*gpu->pci)
        add(&line, " at %s", gpu->pci);
    if (gpu->copy_in_bytes_per_s > 0)
        add(&line, ", %.1f GB/s from pinned memory", gpu->copy_in_bytes_per_s / 1e9);
    else if (gpu->usable.present)
        add(&line, ", bandwidth not measured: %.200s", gpu->copying.text);
    if (!gpu->usable.present)
        add(&line, ": %.300s", gpu->usable.text);
    row(user, name, gpu->usable.present, line.text);
}

void weir_gpu_rows(const struct weir_gpu_facts *facts, row_fn *row, void *user)
{
    static const char needs_module[] = "opened by the CUDA module, which is not there";
    row(user, "cuda module", facts->module.present, facts->module.text);
    if (!facts->module.present) {
        row(user, "nvjpeg", false, needs_module);
        row(user, "cupti", false, needs_module);
        return;
    }
    for (int i = 0; i < facts->n; i++)
        gpu_row(&facts->gpus[i], row, user);
    row(user, "nvjpeg", facts->nvjpeg.present, facts->nvjpeg.text);
    row(user, "cupti", facts->cupti.present, facts->cupti.text);
}

static void gpu_json(struct weir_json *json, const struct weir_gpu_fact *gpu)
{
    weir_json_object(json, NULL);
    weir_json_int(json, "number", gpu->number);
    weir_json_text(json, "name", gpu->name);
    weir_json_text(json, "pci", gpu->pci);
    weir_json_uint(json, "memory_bytes", gpu->memory_bytes);
    weir_json_int(json, "compute_major", gpu->major);
    weir_json_int(json, "compute_minor", gpu->minor);
    weir_json_int(json, "multiprocessors", gpu->sms);
    weir_json_int(json, "copy_engines", gpu->copy_engines);
    if (gpu->jpeg_engines < 0)
        weir_json_null(json, "jpeg_engines");
    else
        weir_json_int(json, "jpeg_engines", gpu->jpeg_engines);
    weir_json_int(json, "pcie_generation", gpu->pcie_generation);
    weir_json_int(json, "pcie_width", gpu->pcie_width);
    if (gpu->copy_in_bytes_per_s > 0)
        weir_json_double(json, "pinned_copy_bytes_per_s", gpu->copy_in_bytes_per_s);
    else
        weir_json_null(json, "pinned_copy_bytes_per_s");
    bool unmeasured = gpu->usable.present && !gpu->copying.present;
    weir_json_text(json, "why_not_measured", unmeasured ? gpu->copying.text : NULL);
    weir_json_text(json, "why_not", gpu->usable.present ? NULL : gpu->usable.text);
    weir_json_text(json, "why_no_jpeg", gpu->jpeg.present ? NULL : gpu->jpeg.text);
    weir_json_end(json, '}');
}

void weir_gpu_rows_json(struct weir_json *json, const struct weir_gpu_facts *facts)
{
    weir_json_array(json, "gpus");
    for (int i = 0; i < facts->n; i++)
        gpu_json(json, &facts->gpus[i]);
    weir_json_end(json, ']');
}
