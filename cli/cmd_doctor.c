#include "cli/commands.h"
#include "cli/devices.h"
#include "cli/sysinfo.h"
#include "datasets/dataset.h"
#include "decoders/decoder.h"
#include "io/io.h"
#include "prof/clock.h"

struct doctor_options {
    bool json;
};

static const struct weir_opt doctor_opts[] = {
    {.name = "json", .kind = WEIR_OPT_FLAG, .offset = offsetof(struct doctor_options, json), .help = "print JSON"},
};

/* One thing that is there, or why not. */
struct finding {
    const char *name;
    struct weir_device device;
};

enum { FINDINGS = 6 };

static void look(struct finding findings[FINDINGS])
{
    findings[0] = (struct finding){.name = "hdf5", .device.present = true};
    weir_dataset_library(findings[0].device.text, sizeof findings[0].device.text);
    findings[1] = (struct finding){.name = "jpeg", .device.present = true};
    weir_decoder_library(findings[1].device.text, sizeof findings[1].device.text);
    findings[2] = (struct finding){.name = "inflate", .device.present = true};
    weir_dataset_inflate(findings[2].device.text, sizeof findings[2].device.text);
    findings[3].name = "io_uring";
    weir_device_io_uring(&findings[3].device);
    findings[4].name = "liburing";
    weir_device_liburing(&findings[4].device);
    findings[5].name = "cuda";
    weir_device_cuda(&findings[5].device);
}

/* The registries of what can be chosen by name. */
static const struct registry {
    const char *title, *key;
    bool (*row)(int i, const char **name, const char **summary, const char **why_not);
} registries[] = {
    {"Ways to read", "io", weir_io_row},
    {"Decoders", "decoders", weir_decoder_row},
    {"Dataset layouts", "layouts", weir_dataset_layout_row},
};
enum { N_REGISTRIES = sizeof registries / sizeof *registries };

static void print_line(const char *name, bool present, const char *text)
{
    printf("  %-14s %-3s  %s\n", name, present ? "yes" : "no", text);
}

static void print_registry(const struct registry *registry)
{
    const char *name, *summary, *why_not;
    printf("\n%s\n", registry->title);
    for (int i = 0; registry->row(i, &name, &summary, &why_not); i++)
        print_line(name, !why_not, why_not ? why_not : summary);
}

static void print_memory(const struct weir_sysinfo *info)
{
    printf("  %-14s %.1f GiB total, %.1f GiB available, ", "memory", (double)info->memory_total_bytes / 0x1p30,
           (double)info->memory_available_bytes / 0x1p30);
    if (info->cores.memory_limit_bytes > 0)
        printf("cgroup limit %.1f GiB (%s)\n", (double)info->cores.memory_limit_bytes / 0x1p30,
               info->cores.memory_file);
    else
        printf("no cgroup limit\n");
}

static void print_cores(const struct weir_cores *cores)
{
    printf("  %-14s %d usable: %d online, affinity allows %d, ", "cores", cores->usable, cores->online,
           cores->affinity);
    if (cores->quota > 0)
        printf("cgroup quota is %.2f (%s)\n", cores->quota, cores->quota_file);
    else
        printf("no cgroup quota\n");
}

static void print_machine(const struct weir_sysinfo *info)
{
    char libc[32], filesystem[64];
    weir_libc(libc, sizeof libc);
    weir_filesystem_of(".", filesystem, sizeof filesystem);
    printf("weir %s (%s), %s, %s\n\nMachine\n", weir_version(), weir_git_describe(), weir_compiler(), libc);
    printf("  %-14s %s\n", "CPU", info->cpu_model);
    printf("  %-14s %s\n", "ISA", info->isa);
    print_cores(&info->cores);
    print_memory(info);
    printf("  %-14s %s, %s\n", "system", info->os, info->kernel);
    printf("  %-14s %s\n", "governor", info->governor);
    printf("  %-14s %s (of the current folder)\n", "filesystem", filesystem);
    if (weir_clock.tsc)
        printf("  %-14s TSC (invariant), calibration error %.2f ppm\n", "clock", weir_clock.error_ppm);
    else
        printf("  %-14s clock_gettime: there is no invariant TSC here\n", "clock");
}

static void print_text(const struct weir_sysinfo *info, const struct finding findings[FINDINGS])
{
    print_machine(info);
    printf("\nLibraries and devices\n");
    for (int i = 0; i < FINDINGS; i++)
        print_line(findings[i].name, findings[i].device.present, findings[i].device.text);
    for (int i = 0; i < N_REGISTRIES; i++)
        print_registry(&registries[i]);
}

static void json_row(struct weir_json *json, const char *name, const char *text, const char *why_not)
{
    weir_json_object(json, NULL);
    weir_json_text(json, "name", name);
    weir_json_bool(json, "present", !why_not);
    weir_json_text(json, "text", text);
    weir_json_text(json, "why_not", why_not);
    weir_json_end(json, '}');
}

static void json_registry(struct weir_json *json, const struct registry *registry)
{
    const char *name, *summary, *why_not;
    weir_json_array(json, registry->key);
    for (int i = 0; registry->row(i, &name, &summary, &why_not); i++)
        json_row(json, name, summary, why_not);
    weir_json_end(json, ']');
}

static void print_json(const struct weir_sysinfo *info, const struct finding findings[FINDINGS])
{
    struct weir_json json;
    char libc[32];
    weir_libc(libc, sizeof libc);
    weir_json_open(&json, stdout, true);
    weir_json_object(&json, NULL);
    weir_json_text(&json, "version", weir_version());
    weir_json_text(&json, "git_describe", weir_git_describe());
    weir_json_text(&json, "compiler", weir_compiler());
    weir_json_text(&json, "libc", libc);
    weir_json_object(&json, "machine");
    weir_sysinfo_json(info, &json);
    weir_json_end(&json, '}');
    weir_json_object(&json, "clock");
    weir_json_text(&json, "source", weir_clock.tsc ? "tsc" : "clock_gettime");
    weir_json_double(&json, "calibration_error_ppm", weir_clock.error_ppm);
    weir_json_end(&json, '}');
    weir_json_array(&json, "found");
    for (int i = 0; i < FINDINGS; i++) {
        const struct weir_device *device = &findings[i].device;
        json_row(&json, findings[i].name, device->present ? device->text : NULL, device->present ? NULL : device->text);
    }
    weir_json_end(&json, ']');
    for (int i = 0; i < N_REGISTRIES; i++)
        json_registry(&json, &registries[i]);
    weir_json_end(&json, '}');
    weir_json_close(&json);
}

static int doctor(const struct weir_command *command, int argc, char **argv)
{
    struct doctor_options options;
    int n_args;
    enum weir_parse parse = weir_options_parse(command, &options, sizeof options, argc, argv, NULL, &n_args);
    if (parse != WEIR_PARSE_RUN)
        return parse == WEIR_PARSE_HELP ? 0 : 2;
    struct weir_sysinfo info;
    struct finding findings[FINDINGS] = {0};
    weir_clock_init();
    weir_sysinfo_read(&info);
    look(findings);
    if (options.json)
        print_json(&info, findings);
    else
        print_text(&info, findings);
    return 0;
}

const struct weir_command weir_cmd_doctor = {
    .name = "doctor",
    .summary = "what this machine and this build have: present, or why not",
    .opts = doctor_opts,
    .n_opts = sizeof doctor_opts / sizeof *doctor_opts,
    .run = doctor,
};
