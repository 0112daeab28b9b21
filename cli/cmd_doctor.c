#include "analyze/live/http_server.h"
#include "base/document.h"
#include "base/field_rows.h"
#include "base/text.h"
#include "cli/commands.h"
#include "cli/devices.h"
#include "cli/sysinfo.h"
#include "convert/convert_dataset.h"
#include "datasets/hdf5/h5_read.h"
#include "decoders/video/video.h"
#include "io/io.h"
#include "origin/http.h"
#include "prof/record/switches.h"
#include "prof/symbols/symbols.h"
#include "weir/base.h"
#include "weir/dataset.h"
#include "weir/decoder.h"

struct doctor_options {
    bool json;
};

static const struct weir_opt doctor_opts[] = {
    {.name = "json",
     .kind = WEIR_OPT_FLAG,
     .offset = offsetof(struct doctor_options, json),
     .help = "JSON output, one object"},
};

/* One row of the output: a component, and its description or the reason why it is missing. */
struct finding {
    char name[24];
    struct weir_device device;
};

struct findings {
    struct finding at[14 + WEIR_GPU_FACTS_MAX];
    int n;
    struct weir_gpu_facts gpu;
};

static struct weir_device *add(struct findings *findings, const char *name)
{
    struct finding *finding = &findings->at[findings->n++];
    snprintf(finding->name, sizeof finding->name, "%s", name);
    finding->device.present = true;
    return &finding->device;
}

static void add_gpu_row(void *user, const char *name, bool present, const char *text)
{
    struct weir_device *device = add(user, name);
    device->present = present;
    snprintf(device->text, sizeof device->text, "%s", text);
}

static void look_for_gpus(struct findings *findings)
{
    const struct weir_gpu_facts *gpu = &findings->gpu;
    weir_gpu_facts_find(&findings->gpu);
    if (gpu->module.present)
        add_gpu_row(findings, "cuda", gpu->driver.present, gpu->driver.text);
    else
        weir_device_cuda(add(findings, "cuda"));
    weir_gpu_rows(gpu, add_gpu_row, findings);
}

static void look(struct findings *findings)
{
    char why[128];
    struct weir_device *device = add(findings, "hdf5");
    weir_h5_library(device->text, sizeof device->text);
    device = add(findings, "jpeg");
    weir_decoder_library(device->text, sizeof device->text);
    device = add(findings, "inflate");
    weir_dataset_inflate(device->text, sizeof device->text);
    weir_device_io_uring(add(findings, "io_uring"));
    weir_device_liburing(add(findings, "liburing"));
    device = add(findings, "http");
    device->present = weir_http_library(device->text, sizeof device->text);
    device = add(findings, "servers");
    device->present = weir_client_describe(device->text, sizeof device->text);
    device = add(findings, "stacks");
    device->present = weir_symbols_library(why, sizeof why);
    if (device->present)
        snprintf(device->text, sizeof device->text, "functions and source lines, resolved by %s", why);
    else
        snprintf(device->text, sizeof device->text, "only function+offset of exported functions: %s", why);
    device = add(findings, "perf_event");
    snprintf(device->text, sizeof device->text, "CPU time of stages is measured at context switches");
    device->present = weir_switches_try(why, sizeof why) == 0;
    if (!device->present)
        snprintf(device->text, sizeof device->text, "CPU time of stages is sampled: %s", why);
    weir_device_python(add(findings, "python"));
    look_for_gpus(findings);
}

static int decoder_ready(const char *name, struct weir_err *err)
{
    return weir_decoder_ready(name, 0, err);
}

/* Registries of the values that options accept by name. */
static const struct registry {
    const char *title, *key;
    bool (*row)(int i, const char **name, const char **summary, const char **why_not);
    /* tests a row on this machine; NULL if built-in rows always work */
    int (*ready)(const char *name, struct weir_err *err);
} registries[] = {
    {"I/O engines", "io", weir_io_row, weir_io_ready},
    {"Decoders", "decoders", weir_decoder_row, decoder_ready},
    {"Video codecs", "video", weir_video_row, weir_video_ready},
    {"Dataset formats", "formats", weir_dataset_format_row, NULL},
    {"Dataset layouts", "layouts", weir_dataset_layout_row, NULL},
    {"Formats that weir convert writes", "convert", weir_convert_format, NULL},
};
enum { N_REGISTRIES = sizeof registries / sizeof *registries };

/* Indent of the lines that continue a row: the start of its text. */
enum { MACHINE_INDENT = 17, FOUND_INDENT = 22 };

struct line {
    const char *name;
    bool present;
    const char *text, *why_not; /* NULL = none */
};

#define S struct line
static const struct weir_field line[] = {
    PLAIN("name", name),
    PLAIN("present", present),
    PLAIN("text", text),
    PLAIN("why_not", why_not),
};
static WEIR_FIELDS(line_fields, line);
#undef S

static void add_line(struct weir_document *document, const char *name, const char *text, const char *why_not)
{
    const struct line to = {name, !why_not, text, why_not};
    weir_document_object(document, NULL, &line_fields, &to);
    fprintf(weir_document_text(document, NULL, FOUND_INDENT), "  %-14s %-3s  %s\n", name, why_not ? "no" : "yes",
            why_not ? why_not : text);
}

/* Gets row i. *why_not is NULL if the row is usable on this machine. Otherwise it points into err or the table. */
static bool registry_row(const struct registry *registry, int i, const char **name, const char **summary,
                         const char **why_not, struct weir_err *err)
{
    if (!registry->row(i, name, summary, why_not))
        return false;
    *err = WEIR_ERR_NONE;
    if (!*why_not && registry->ready && registry->ready(*name, err) < 0)
        *why_not = err->text;
    return true;
}

static void add_registry(struct weir_document *document, const struct registry *registry)
{
    const char *name, *summary, *why_not;
    struct weir_err err;
    fprintf(weir_document_text(document, NULL, 0), "\n%s\n", registry->title);
    weir_document_begin(document, registry->key, '[');
    for (int i = 0; registry_row(registry, i, &name, &summary, &why_not, &err); i++)
        add_line(document, name, summary, why_not);
    weir_document_end(document, ']');
}

static void add_findings(struct weir_document *document, const struct findings *findings)
{
    fputs("\nLibraries and devices\n", weir_document_text(document, NULL, 0));
    weir_document_begin(document, "found", '[');
    for (int i = 0; i < findings->n; i++) {
        const struct weir_device *device = &findings->at[i].device;
        add_line(document, findings->at[i].name, device->present ? device->text : NULL,
                 device->present ? NULL : device->text);
    }
    weir_document_end(document, ']');
    weir_document_table(document, "gpus", &weir_gpu_fields, findings->gpu.gpus, findings->gpu.n,
                        sizeof *findings->gpu.gpus, NULL);
}

static void print_memory(FILE *out, const struct weir_sysinfo *info)
{
    fprintf(out, "  %-14s %s total, %s available, ", "memory", weir_size((double)info->memory_total_bytes).text,
            weir_size((double)info->memory_available_bytes).text);
    if (info->cores.memory_limit_bytes > 0)
        fprintf(out, "cgroup limit %s (%s)\n", weir_size((double)info->cores.memory_limit_bytes).text,
                info->cores.memory_file);
    else
        fprintf(out, "no cgroup limit\n");
}

static void print_cores(FILE *out, const struct weir_cores *cores)
{
    fprintf(out, "  %-14s %d usable: %d online, affinity allows %d, ", "cores", cores->usable, cores->online,
            cores->affinity);
    if (cores->quota > 0)
        fprintf(out, "cgroup quota is %.2f (%s)\n", cores->quota, cores->quota_file);
    else
        fprintf(out, "no cgroup quota\n");
}

static void print_machine(FILE *out, const struct weir_sysinfo *info)
{
    char filesystem[64];
    weir_filesystem_of(".", filesystem, sizeof filesystem);
    fprintf(out, "\nMachine\n  %-14s %s\n  %-14s %s\n", "CPU", info->cpu_model, "ISA", info->isa);
    print_cores(out, &info->cores);
    print_memory(out, info);
    fprintf(out, "  %-14s %s, %s\n", "system", info->os, info->kernel);
    fprintf(out, "  %-14s %s\n", "governor", info->governor);
    fprintf(out, "  %-14s %s (of the current folder)\n", "filesystem", filesystem);
    if (weir_clock.tsc)
        fprintf(out, "  %-14s TSC (invariant), calibration error %.2f ppm\n", "clock", weir_clock.error_ppm);
    else
        fprintf(out, "  %-14s clock_gettime, because the TSC is not invariant\n", "clock");
}

struct build {
    const char *version, *git_describe, *compiler;
    char libc[32];
    struct weir_sysinfo machine;
    const char *clock;
    double clock_error_ppm;
};

#define S struct build
static const struct weir_field clock_rows[] = {
    PLAIN("source", clock),
    PLAIN("calibration_error_ppm", clock_error_ppm),
};
static WEIR_FIELDS(clock_fields, clock_rows);
static const struct weir_field build[] = {
    PLAIN("version", version),
    PLAIN("git_describe", git_describe),
    PLAIN("compiler", compiler),
    PLAIN("libc", libc),
    MEMBER("machine", weir_sysinfo_fields, machine),
    OBJECT("clock", clock_fields),
};
static WEIR_FIELDS(build_fields, build);
#undef S

static void describe(struct weir_document *document, const struct build *of, const struct findings *findings)
{
    weir_document_members(document, &build_fields, of);
    FILE *text = weir_document_text(document, NULL, MACHINE_INDENT);
    fprintf(text, "weir %s (%s), %s, %s\n", of->version, of->git_describe, of->compiler, of->libc);
    print_machine(text, &of->machine);
    add_findings(document, findings);
    for (int i = 0; i < N_REGISTRIES; i++)
        add_registry(document, &registries[i]);
}

static int doctor(const struct weir_command *command, int argc, char **argv)
{
    struct doctor_options options;
    int n_args;
    enum weir_parse parse = weir_options_parse(command, &options, sizeof options, argc, argv, NULL, &n_args);
    if (parse != WEIR_PARSE_RUN)
        return weir_parse_status(parse);
    static struct findings findings;
    struct weir_document document;
    weir_clock_init();
    struct build of = {weir_version(), weir_git_describe(), weir_compiler(), .clock_error_ppm = weir_clock.error_ppm};
    of.clock = weir_clock.tsc ? "tsc" : "clock_gettime";
    weir_libc(of.libc, sizeof of.libc);
    weir_sysinfo_read(&of.machine);
    look(&findings);
    weir_document_open(&document, options.json ? &weir_json_writer : &weir_terminal_writer, stdout);
    describe(&document, &of, &findings);
    weir_document_close(&document);
    return 0;
}

const struct weir_command weir_cmd_doctor = {
    .name = "doctor",
    .summary = "list what this machine and this build support",
    .group = WEIR_GROUP_MEASURE,
    .opts = doctor_opts,
    .n_opts = sizeof doctor_opts / sizeof *doctor_opts,
    .run = doctor,
};
