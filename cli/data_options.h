/* data_options.h: options of every command that opens a dataset. */
#ifndef WEIR_CLI_DATA_OPTIONS_H
#define WEIR_CLI_DATA_OPTIONS_H

#include "cli/options.h"
#include "weir/dataset.h"

struct weir_data_options {
    const char *qpos_keys, *action_keys, *image_keys, *index, *split;
    bool allow_ragged, allow_external;
};

/* Their rows in a command's table; at: offset of the struct weir_data_options in the command's struct. */
#define WEIR_DATA_OPTION(at, field) .offset = (at) + offsetof(struct weir_data_options, field)
#define WEIR_DATA_OPTIONS(at)                                                                                          \
    {"qpos-keys", WEIR_OPT_TEXT, WEIR_DATA_OPTION(at, qpos_keys),                                                      \
     "a,b",       NULL,          "datasets of the state, side by side, in place of the layout's"},                     \
        {"action-keys", WEIR_OPT_TEXT, WEIR_DATA_OPTION(at, action_keys),                                              \
         "a,b",         NULL,          "datasets of the actions, the same"},                                           \
        {"image-keys", WEIR_OPT_TEXT, WEIR_DATA_OPTION(at, image_keys),                                                \
         "a,name=b",   NULL,          "datasets of the cameras; with all three a file may have any layout"},           \
        {"allow-ragged", WEIR_OPT_FLAG, WEIR_DATA_OPTION(at, allow_ragged),                                            \
         NULL,           NULL,          "cut episodes whose parts differ in length to the shortest"},                  \
        {"allow-external",                                                                                             \
         WEIR_OPT_FLAG,                                                                                                \
         WEIR_DATA_OPTION(at, allow_external),                                                                         \
         NULL,                                                                                                         \
         NULL,                                                                                                         \
         "read what HDF5 links, external storage and virtual datasets name outside the dataset's folder"},             \
        {"split", WEIR_OPT_TEXT, WEIR_DATA_OPTION(at, split),                                                          \
         "NAME",  NULL,          "files of this split (train, val) where names tell them apart; all: of every split"}, \
    {                                                                                                                  \
        "index", WEIR_OPT_TEXT, WEIR_DATA_OPTION(at, index), "FILE", NULL,                                             \
            "keep the index in this file: read when it fits, else written", .path = WEIR_PATH_WRITE                    \
    }

/* What they say of a dataset; the rest of config is left as it is. */
void weir_data_options_apply(const struct weir_data_options *options, struct weir_dataset_config *config);

#endif
