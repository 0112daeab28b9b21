/* lent.h: memory of a batch, shared by a loader and by all arrays that show a part of it.
 *
 * Each has a reference. While the loader has one, the memory is the loader's, which gives it to another batch when its
 * reference is the last one; once the loader has given the memory away it goes with the last reference. That may be
 * dropped on any thread, without the interpreter's lock and after the interpreter has ended. In a child of fork() all
 * that came from the parent stays as it is: nothing is freed there.
 *
 * On a GPU a batch remembers the streams that it was handed over on. When the last array of it goes, the loader gets
 * it back at once, behind what is on those streams then. */
#ifndef WEIR_PYTHON_SRC_LENT_H
#define WEIR_PYTHON_SRC_LENT_H

#include "weir/base.h"

#include <stdbool.h>
#include <stddef.h>

struct weir_batch;
struct weir_device;
struct weir_lender;
struct weir_lent;
struct weir_loader;

/* What batches on a GPU have of their loader, which outlives all batches that were neither given back nor kept. One
 * reference; NULL without memory. */
struct weir_lender *weir_lender_new(struct weir_loader *loader);
void weir_lender_drop(struct weir_lender *lender);

/* With one reference; NULL without memory. With a lender the batch is on a GPU, and while the last reference but one is
 * being dropped it is given back. */
struct weir_lent *weir_lent_new(void);
struct weir_lent *weir_lent_new_on_gpu(struct weir_lender *lender, struct weir_batch *batch);
/* With new memory of its own and one reference: of the GPU, or of the host where device is NULL, page-aligned. NULL
 * with err (-ENOMEM, -EIO). */
struct weir_lent *weir_lent_new_memory(size_t bytes, struct weir_device *device, void **memory, struct weir_err *err);
void weir_lent_take(struct weir_lent *lent);
void weir_lent_drop(struct weir_lent *lent);
/* The caller's reference is the only one, and will be. On a GPU: the loader has the batch back. */
bool weir_lent_is_free(const struct weir_lent *lent);
/* The memory of the loader's batch is that of the references from now on (weir_loader_keep). The caller has one. */
int weir_lent_keep(struct weir_lent *lent, struct weir_loader *loader, struct weir_batch *batch, struct weir_err *err);
/* The memory of all batches that were kept and are not dropped yet. */
size_t weir_lent_kept_bytes(void);

/* What is on the stream from now on finds the batch there. With keep it has the batch until the last array of it goes;
 * without, the caller has an array for as long as the stream is at it. */
int weir_lent_ready(struct weir_lent *lent, void *stream, bool keep, struct weir_err *err);
/* The step with it ends on the stream that it was handed over on first. */
void weir_lent_step_end(struct weir_lent *lent);
/* It is of a process that this one was forked from. */
bool weir_lent_is_foreign(const struct weir_lent *lent);
/* The GPU that it is on; NULL = none. Borrowed. */
struct weir_device *weir_lent_device(const struct weir_lent *lent);

/* So many forks this process is from the one that loaded the module. */
int weir_fork_depth(void);
void weir_lent_begin(void);

#endif
