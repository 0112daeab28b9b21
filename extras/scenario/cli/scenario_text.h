/* scenario_text.h: what the scenarios show, in sentences. */
#ifndef WEIR_EXTRAS_SCENARIO_CLI_SCENARIO_TEXT_H
#define WEIR_EXTRAS_SCENARIO_CLI_SCENARIO_TEXT_H

#include "analyze/gpu_idle/gpu_idle.h"
#include "extras/scenario/scenario.h"

struct scenario_text {
    const char *name;           /* as it is typed */
    enum weir_idle_cause cause; /* of GPU idle time, that it is there to show */
    const char *shows;          /* what its steps do */
    const char *rule;           /* how to see it in a table and in a trace */
    const char *remedy;         /* a sentence */
    const char *cpu_range;      /* beginning of the names of ranges that show it on the CPU */
    const char *cpu_rule;       /* how to see it there, and what differs */
    const char *fix;            /* the same as --fix applies it, in a few words */
};
extern const struct scenario_text weir_scenario_texts[WEIR_SCENARIOS];

#endif
