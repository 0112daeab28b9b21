#include "cli/data_options.h"

void weir_data_options_apply(const struct weir_data_options *options, struct weir_dataset_config *config)
{
    config->qpos_keys = options->qpos_keys;
    config->action_keys = options->action_keys;
    config->image_keys = options->image_keys;
    config->allow_ragged = options->allow_ragged;
    config->allow_external = options->allow_external;
    config->split = options->split;
    config->index = options->index;
}
