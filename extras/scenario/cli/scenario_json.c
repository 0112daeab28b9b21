#include "base/gz_file.h"
#include "cli/outputs.h"
#include "extras/scenario/cli/scenario_cli.h"
#include "pipeline/gpu/gpu.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

void weir_scenario_json_path(const struct scenario_run *run, bool one_of_several, char path[SCENARIO_PATH])
{
    const char *given = run->options->output_json, *name = strrchr(given, '/');
    const char *end = strrchr(name ? name : given, '.');
    size_t stem = end && end > (name ? name + 1 : given) ? (size_t)(end - given) : strlen(given);
    if (one_of_several)
        snprintf(path, SCENARIO_PATH, "%.*s_%s%s%s", (int)stem, given, weir_scenario_texts[run->kind].name,
                 run->fix ? "_fix" : "", given + stem);
    else
        snprintf(path, SCENARIO_PATH, "%s", given);
}

int weir_scenario_check_outputs(const struct scenario_options *options, struct weir_err *err)
{
    char folder[SCENARIO_PATH];
    struct stat st;
    int rc = options->trace_dir ? weir_output_folder(options->trace_dir, "the folder of --trace_dir", err) : 0;
    if (rc < 0 || !options->output_json || !*options->output_json)
        return rc;
    const char *slash = strrchr(options->output_json, '/');
    snprintf(folder, sizeof folder, "%.*s", slash ? (int)(slash - options->output_json + 1) : 1,
             slash ? options->output_json : ".");
    rc = weir_output_folder(folder, "the folder of --output_json", err);
    if (rc == 0 && stat(options->output_json, &st) == 0 && S_ISDIR(st.st_mode))
        rc = weir_err_set(err, -EISDIR, "%s: --output_json must be a file, not a folder; choose another name",
                          options->output_json);
    return rc;
}

static void add_members(struct weir_document *document, const struct scenario_run *run,
                        const struct scenario_result *result)
{
    char device[32] = "cpu";
    if (run->device)
        snprintf(device, sizeof device, "cuda:%d", weir_device_number(run->device));
    weir_document_fact(document, "scenario", weir_scenario_texts[run->kind].name);
    weir_document_fact(document, "device", device);
    weir_document_fact(document, "batch_size", run->options->batch_size);
    weir_document_fact(document, "num_workers", run->workers);
    weir_document_fact(document, "pin_memory", run->options->pin_memory);
    weir_document_fact(document, "amp", run->options->amp);
    weir_document_fact(document, "avg_iteration_time_s", result->iteration_s);
    weir_document_fact(document, "avg_step_time_s", result->step_s);
    weir_document_fact(document, "avg_dataloader_wait_s", result->wait_s);
    weir_document_fact(document, "trace_dir", run->options->trace_dir);
}

static void write_file(FILE *out, const struct scenario_run *run, const struct scenario_result *result)
{
    struct weir_document document;
    struct weir_json json;
    weir_json_open(&json, out, true);
    weir_json_object(&json, NULL);
    weir_document_over(&document, NULL, &json);
    add_members(&document, run, result);
    weir_json_end(&json, '}');
    weir_json_close(&json);
}

void weir_scenario_json_print(FILE *out, const struct scenario_run *runs, const struct scenario_result *results, int n)
{
    struct weir_document document;
    weir_document_open(&document, &weir_json_writer, out);
    weir_document_begin(&document, "runs", '[');
    for (int i = 0; i < n; i++) {
        weir_document_begin(&document, NULL, '{');
        add_members(&document, &runs[i], &results[i]);
        weir_document_fact(&document, "fix", runs[i].fix);
        weir_document_fact(&document, "trace", *results[i].trace_path ? results[i].trace_path : NULL);
        weir_document_end(&document, '}');
    }
    weir_document_end(&document, ']');
    weir_document_close(&document);
}

int weir_scenario_json_write(const char *path, const struct scenario_run *run, const struct scenario_result *result,
                             struct weir_err *err)
{
    struct weir_gz_file *file = NULL;
    char *text = NULL;
    size_t n = 0;
    FILE *out = open_memstream(&text, &n);
    if (out)
        write_file(out, run, result);
    int rc = out && fclose(out) == 0 ? weir_gz_open(&file, path, WEIR_GZ_PLAIN, err)
                                     : weir_err_set(err, -ENOMEM, "out of memory");
    if (rc == 0) {
        weir_gz_write(file, text, n);
        rc = weir_gz_commit(&file, err);
    }
    free(text);
    return rc;
}
