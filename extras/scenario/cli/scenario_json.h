/* scenario_json.h: the file of --output-json: an object with the members of the original script, a file a run. */
#ifndef WEIR_EXTRAS_SCENARIO_CLI_SCENARIO_JSON_H
#define WEIR_EXTRAS_SCENARIO_CLI_SCENARIO_JSON_H

#include "extras/scenario/cli/scenario_run.h"

enum { SCENARIO_PATH = 4096 };

/* The file of this run: --output-json as it is, or one of several: FILE_SCENARIO.json, FILE_SCENARIO_fix.json. */
void weir_scenario_json_path(const struct scenario_run *run, bool one_of_several, char path[SCENARIO_PATH]);
/* Makes the folders of traces and of this file, and sees that they can be written. 0, or -errno. */
int weir_scenario_check_outputs(const struct scenario_options *options, struct weir_err *err);
/* Written aside and renamed. 0, or -errno. */
int weir_scenario_json_write(const char *path, const struct scenario_run *run, const struct scenario_result *result,
                             struct weir_err *err);

#endif
