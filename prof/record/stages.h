/* stages.h: what zones are zones of. A stage has a number, which zones carry, and a name, by which tables show it.
 *
 * The profiler has no stages of its own: whoever times something registers what it times, before its first zone. A
 * library that knows its stages when it is compiled has constants for them and registers them at once, as a table
 * (weir_stages_register; libweir's is pipeline/loader_stages.h); a program asks for numbers by name
 * (weir_stage_register). */
#ifndef WEIR_PROF_RECORD_STAGES_H
#define WEIR_PROF_RECORD_STAGES_H

#include <stdbool.h>

#ifdef __cplusplus
extern "C" {
#endif

enum weir_stage_kind {
    WEIR_KIND_WORK,      /* the CPU (or a device) does something; counted in shares */
    WEIR_KIND_INCLUSIVE, /* a zone around other zones; its self time is "other" */
    WEIR_KIND_SPAN,      /* first start to last end over several threads; no self time, never in shares */
    WEIR_KIND_WAIT,      /* blocked on somebody else */
    WEIR_KIND_LOOP,      /* the frame around a thread's loop, not shown; its self time is "other" */
};

/* Numbers from 0 on are those of the process's table, those behind them are given out by name. Tables of stages are in
 * the order of the numbers. */
enum { WEIR_STAGE_TABLE_MAX = 40, WEIR_STAGE_MAX = 72 };

struct weir_stage_info {
    const char *name;
    enum weir_stage_kind kind;
    bool consumer;  /* belongs to the consumer's thread: never in the workers' shares */
    bool data_wait; /* the consumer's wait for data, which traces show as the time of the DataLoader */
};

/* NULL for a number that nobody registered; its zones are counted all the same. Lent for the life of the process. */
const struct weir_stage_info *weir_stage_info(int stage);

/* No stage that is registered has this number or a greater one. */
int weir_stage_count(void);

/* Registers table[i] as stage i, for each i below n that has a name. The table is borrowed for the life of the process;
 * registering it again changes nothing. 0; -E2BIG: n is more than WEIR_STAGE_TABLE_MAX; -EEXIST: a number is another
 * table's. Any thread. */
int weir_stages_register(const struct weir_stage_info *table, int n);

/* Number of the stage with this name, made if new (name is borrowed for the life of the process); -ENOSPC when full.
 * Any thread. */
int weir_stage_register(const char *name, enum weir_stage_kind kind, bool consumer);

#ifdef __cplusplus
}
#endif

#endif
