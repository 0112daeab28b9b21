#include "cli/commands.h"
#include "cli/data_options.h"
#include "cli/progress.h"
#include "convert/convert_dataset.h"

#include <stddef.h>
#include <stdio.h>
#include <string.h>

struct convert_options {
    const char *cameras, *to;
    struct weir_data_options data;
    int codec, chunk_frames, sample;
    bool json;
};

#define FIELD(field) .offset = offsetof(struct convert_options, field)

static const struct weir_opt convert_opts[] = {
    {"to", WEIR_OPT_TEXT, FIELD(to), "FORMAT", NULL, "format of the copy"},
    {"codec", WEIR_OPT_ENUM, FIELD(codec), "keep|raw|jpeg|png", "keep", "codec of its frames; keep: as they are"},
    {"cameras", WEIR_OPT_TEXT, FIELD(cameras), "a,b", NULL, "copy these cameras only; default: all, depth too"},
    {"chunk-frames", WEIR_OPT_INT, FIELD(chunk_frames), "N", NULL, "frames a chunk, where the format has chunks", 1,
     1000000},
    {"sample", WEIR_OPT_INT, FIELD(sample), "N", NULL, "the first N episodes only", 1, 1000000000},
    WEIR_DATA_OPTIONS(offsetof(struct convert_options, data)),
    {"json", WEIR_OPT_FLAG, FIELD(json), NULL, NULL, "print JSON"},
};

static struct weir_dataset_config dataset_config(const struct convert_options *o, const char *path,
                                                 struct weir_index_progress *progress)
{
    return (struct weir_dataset_config){.path = path,
                                        .cameras = o->cameras,
                                        .depth = true,
                                        .qpos_keys = o->data.qpos_keys,
                                        .action_keys = o->data.action_keys,
                                        .image_keys = o->data.image_keys,
                                        .allow_ragged = o->data.allow_ragged,
                                        .allow_external = o->data.allow_external,
                                        .split = o->data.split,
                                        .index = o->data.index,
                                        .progress = weir_index_progress,
                                        .user = progress};
}

static int convert_main(const struct weir_command *command, int argc, char **argv)
{
    struct convert_options o;
    const char *paths[2];
    int n;
    enum weir_parse parse = weir_options_parse(command, &o, sizeof o, argc, argv, paths, &n);
    if (parse != WEIR_PARSE_RUN)
        return parse == WEIR_PARSE_HELP ? 0 : 2;
    struct weir_index_progress progress;
    struct weir_err err = WEIR_ERR_NONE;
    struct weir_dataset *dataset;
    struct weir_convert_report report;
    struct weir_convert_config config = {.to = o.to ? o.to : "hdf5",
                                         .target = paths[1],
                                         .codec = (enum weir_convert_codec)o.codec,
                                         .chunk_frames = o.chunk_frames,
                                         .sample = o.sample};
    weir_index_progress_begin(&progress);
    struct weir_dataset_config data = dataset_config(&o, paths[0], &progress);
    int rc = weir_dataset_open(&dataset, &data, &err);
    if (rc == 0)
        rc = weir_convert(dataset, &config, &report, &err);
    weir_dataset_close(&dataset);
    weir_progress_clear(&progress);
    if (rc < 0)
        return weir_cli_fail(command, &err);
    printf("episodes   %d\nframes     %llu\n", report.episodes, (unsigned long long)report.frames);
    return 0;
}

const struct weir_command weir_cmd_convert = {
    .name = "convert",
    .summary = "copy a dataset into another format",
    .args = "SRC DST",
    .min_args = 2,
    .max_args = 2,
    .opts = convert_opts,
    .n_opts = sizeof convert_opts / sizeof convert_opts[0],
    .run = convert_main,
};
