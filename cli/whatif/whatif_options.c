#include "cli/whatif/whatif_options.h"
#include "cli/commands.h"
#include "pipeline/gpu/gpu.h"
#include "pipeline/read_ahead.h"
#include "pipeline/views.h"

#include <errno.h>
#include <stdlib.h>

#define FIELD(field) .offset = offsetof(struct whatif_options, field)

const struct weir_opt weir_whatif_opts[WEIR_WHATIF_OPTS] = {
    {"check", WEIR_OPT_FLAG, FIELD(check), NULL, NULL, "predictions verified by trials", .topic = "Predictions",
     .details = "Makes each change that this machine can make, and measures it alongside the run as it is."},
    {"max-minutes", WEIR_OPT_DOUBLE, FIELD(max_minutes), "MIN", "10", "time limit", 0.05, 1e5, .unit = "minutes"},
    {"log", WEIR_OPT_TEXT, FIELD(log), "FILE.jsonl", NULL, "log of the findings, for weir report",
     .path = WEIR_PATH_WRITE},
    {"json", WEIR_OPT_FLAG, FIELD(json), NULL, NULL, "JSON output, one object"},
};
const struct weir_opt_set weir_whatif_sets[] = WEIR_RUN_SETS(0, WEIR_FOR_WHATIF);

int weir_whatif_options_check(const struct whatif_options *options, struct weir_err *err)
{
    const struct run_options *run = &options->run;
    int number, rc = weir_device_parse(run->loader.device, &number, err);
    if (rc < 0) {
        weir_err_prefix(err, "--device");
        return -EINVAL;
    }
    if (weir_reading_check(run->loader.io, run->loader.direct, err) == -EINVAL ||
        weir_decoder_check_device(run->loader.decoder, number >= 0, err) == -EINVAL ||
        weir_crop_check(run->loader.crop, err) < 0)
        return -EINVAL;
    if (run->loader.format.dtype >= WEIR_DTYPE_F16 && number < 0)
        return weir_err_set(err, -EINVAL, "--dtype: f16 and bf16 need a GPU; add --device cuda, or take f32");
    return 0;
}

char **weir_whatif_args(const struct run_options *options, const char *data, int room)
{
    static const struct weir_opt_set sets[] = WEIR_RUN_SETS(0, WEIR_FOR_RUN);
    struct weir_words words = {0};
    weir_words_add(&words, "weir");
    weir_words_add(&words, "run");
    weir_words_add(&words, data);
    weir_words_add_options(&words, sets, options);
    char **argv = words.failed ? NULL : realloc(words.argv, (size_t)(words.n + 1 + room) * sizeof *argv);
    if (!argv)
        weir_words_free(&words);
    for (int i = 0; argv && i < room; i++)
        argv[words.n + 1 + i] = NULL;
    return argv;
}

void weir_whatif_args_free(char **argv)
{
    for (char **arg = argv; arg && *arg; arg++)
        free(*arg);
    free(argv);
}
