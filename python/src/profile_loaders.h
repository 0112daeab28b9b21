/* profile_loaders.h: the loaders that are open, for what a trace tells of the one that was opened last.
 *
 * Any thread, with the interpreter's lock or without. */
#ifndef WEIR_PYTHON_SRC_PROFILE_LOADERS_H
#define WEIR_PYTHON_SRC_PROFILE_LOADERS_H

#include <stddef.h>

struct weir_loader;

void weir_profile_loader_opened(const struct weir_loader *loader);
/* Before it is closed. */
void weir_profile_loader_closes(const struct weir_loader *loader);

/* Its counters (weir_profiler_config.on_sample). */
void weir_profile_count_loader(void *unused);
/* Its workers and memory as members of a trace file, JSON text; empty without a loader. */
void weir_profile_loader_text(char *text, size_t size);

#endif
