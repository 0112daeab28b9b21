/* run_place.h: the lines about rank, cores and GPU at the beginning of a run. */
#ifndef WEIR_CLI_RUN_RUN_PLACE_H
#define WEIR_CLI_RUN_RUN_PLACE_H

#include "base/ranks.h"
#include "weir/base.h"
#include "weir/loader.h"
#include "weir/profiler.h"

#include <stdbool.h>

/* To stderr; nothing without ranks and without a GPU. */
void weir_run_place_print(const struct weir_loader_facts *facts, const struct weir_ranks *ranks, bool sync_steps);
/* The machine line, to stderr; its part of the cores is the loader's. */
void weir_run_place_machine(struct weir_report_machine *machine, const struct weir_loader *loader);
/* Members of the object that is open in json. */
void weir_run_place_json(struct weir_json *json, const struct weir_loader_facts *facts, const struct weir_ranks *ranks);

#endif
