/* lent.h: memory of a batch, shared by a loader and by all arrays that show a part of it.
 *
 * Each has a reference. While the loader has one, the memory is the loader's, which gives it to another batch when its
 * reference is the last one; once the loader has given the memory away it goes with the last reference. That may be
 * dropped on any thread, without the interpreter's lock and after the interpreter has ended. In a child of fork() all
 * that came from the parent stays as it is: nothing is freed there. */
#ifndef WEIR_PYTHON_SRC_LENT_H
#define WEIR_PYTHON_SRC_LENT_H

#include <stdbool.h>
#include <stddef.h>

struct weir_lent;

/* With one reference; NULL without memory. */
struct weir_lent *weir_lent_new(void);
void weir_lent_take(struct weir_lent *lent);
void weir_lent_drop(struct weir_lent *lent);
/* The caller's reference is the only one, and will be. */
bool weir_lent_is_free(const struct weir_lent *lent);
/* The memory (of weir_loader_keep) is that of the references from now on. The caller has one. */
void weir_lent_give(struct weir_lent *lent, void *memory, size_t bytes);

/* So many forks this process is from the one that loaded the module. */
int weir_fork_depth(void);
void weir_lent_begin(void);

#endif
