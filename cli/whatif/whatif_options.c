#include "cli/whatif/whatif_options.h"
#include "cli/commands.h"
#include "cli/option_values.h"
#include "pipeline/gpu/gpu.h"
#include "pipeline/read_ahead.h"
#include "pipeline/views.h"

#include <assert.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define FIELD(field) .offset = offsetof(struct whatif_options, field)

static const struct weir_opt own_opts[] = {
    {"check", WEIR_OPT_FLAG, FIELD(check), NULL, NULL,
     "make each change that this machine can make, and measure it beside the run as it is"},
    {"max-minutes", WEIR_OPT_DOUBLE, FIELD(max_minutes), "F", "10", "end after so long", 0.05, 1e5},
    {"log", WEIR_OPT_TEXT, FIELD(log), "FILE.jsonl", NULL, "write what was found as a JSON line, for weir report",
     .path = WEIR_PATH_WRITE},
    {"json", WEIR_OPT_FLAG, FIELD(json), NULL, NULL, "print one JSON object with everything"},
};

static const char *const not_opts[] = {
    "num-epochs", "max-batches",   "seconds",        "no-shuffle", "rank",       "world-size",
    "wrap",       "no-timing",     "every",          "lang",       "log",        "checksums",
    "state",      "json",          "profile",        "schedule",   "nvtx",       "sort-by",
    "row-limit",  "record-shapes", "profile-memory", "with-stack", "worker-ops", "drop-last",
};

struct weir_opt weir_whatif_opts[WEIR_WHATIF_OPTS];

static bool is_left_out(const char *name)
{
    for (size_t i = 0; i < sizeof not_opts / sizeof not_opts[0]; i++)
        if (strcmp(not_opts[i], name) == 0)
            return true;
    return false;
}

void weir_whatif_options_list(void)
{
    int n = 0;
    for (int i = 0; i < WEIR_WHATIF_OWN_OPTS; i++)
        weir_whatif_opts[n++] = own_opts[i];
    for (int i = 0; i < WEIR_RUN_OPTS; i++)
        if (!is_left_out(weir_run_opts[i].name) && n < WEIR_WHATIF_OPTS)
            weir_whatif_opts[n++] = weir_run_opts[i];
    assert(n == WEIR_WHATIF_OPTS);
}

int weir_whatif_options_check(const struct whatif_options *options, struct weir_err *err)
{
    const struct run_options *run = &options->run;
    int number, rc = weir_device_parse(run->device, &number, err);
    if (rc < 0) {
        weir_err_prefix(err, "--device");
        return -EINVAL;
    }
    if (weir_reading_check(run->io, run->direct, err) == -EINVAL ||
        weir_decoder_check_device(run->decoder, number >= 0, err) == -EINVAL || weir_crop_check(run->crop, err) < 0)
        return -EINVAL;
    if (run->output >= 2 && number < 0)
        return weir_err_set(err, -EINVAL, "--output f16 and bf16 are made on a GPU; add --device cuda, or take f32");
    return 0;
}

/* ---- a command line ---- */

struct line {
    char **argv;
    int n;
    bool failed;
};

static void add(struct line *line, const char *text)
{
    line->argv[line->n] = strdup(text);
    line->failed |= !line->argv[line->n];
    line->n += line->argv[line->n] != NULL;
}

static void add_option(struct line *line, const struct weir_opt *opt, const struct run_options *options)
{
    char buffer[WEIR_OPTION_TEXT], option[64];
    const char *value = weir_option_typed(opt, options, buffer);
    if (!value)
        return;
    snprintf(option, sizeof option, "--%s", opt->name);
    add(line, option);
    if (opt->kind != WEIR_OPT_FLAG)
        add(line, value);
}

char **weir_whatif_args(const struct run_options *options, const char *data, int room)
{
    struct line line = {.argv = calloc((size_t)(2 * WEIR_RUN_OPTS + 4 + room), sizeof(char *))};
    if (!line.argv)
        return NULL;
    add(&line, "weir");
    add(&line, "run");
    add(&line, data);
    for (int i = 0; i < WEIR_RUN_OPTS; i++)
        add_option(&line, &weir_run_opts[i], options);
    if (!line.failed)
        return line.argv;
    weir_whatif_args_free(line.argv);
    return NULL;
}

void weir_whatif_args_free(char **argv)
{
    for (char **arg = argv; arg && *arg; arg++)
        free(*arg);
    free(argv);
}
