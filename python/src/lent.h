/* lent.h: reference-counted memory of a batch, shared by a loader and by all arrays on parts of it.
 *
 * While the loader has a reference, the memory is the loader's: it is reused when that is the only one left. Once the
 * loader has given the memory away, the last reference frees it. References may be dropped on any thread, without the
 * interpreter's lock and after the interpreter has ended. In a child of fork() nothing from the parent is freed.
 *
 * A batch on a GPU remembers the streams that it was delivered on. When its last array goes, the loader gets it back at
 * once, to be reused after the work then queued on these streams. */
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

/* The link from batches on a GPU to their loader, which outlives all batches neither returned nor kept. Has one
 * reference; NULL without memory. */
struct weir_lender *weir_lender_new(struct weir_loader *loader);
void weir_lender_drop(struct weir_lender *lender);

/* New memory with one reference; NULL without memory. On a GPU the batch is returned to the lender when the last
 * reference but one is dropped. */
struct weir_lent *weir_lent_new(void);
struct weir_lent *weir_lent_new_on_gpu(struct weir_lender *lender, struct weir_batch *batch);
/* Allocates memory of its own: on the GPU, or page-aligned on the host if device is NULL. One reference. NULL with err
 * (-ENOMEM, -EIO). */
struct weir_lent *weir_lent_new_memory(size_t bytes, struct weir_device *device, void **memory, struct weir_err *err);
void weir_lent_take(struct weir_lent *lent);
void weir_lent_drop(struct weir_lent *lent);
/* Whether the caller has the only reference. On a GPU: whether the loader has the batch back. */
bool weir_lent_is_free(const struct weir_lent *lent);
/* Gives the memory of the loader's batch to the references (weir_loader_keep). The caller has one. */
int weir_lent_keep(struct weir_lent *lent, struct weir_loader *loader, struct weir_batch *batch, struct weir_err *err);
/* Memory of all batches that are kept and not yet dropped. */
size_t weir_lent_kept_bytes(void);

/* Makes later work on the stream wait for the batch. With keep, the stream is one of those that use the batch until its
 * last array goes; without, the caller holds an array while the stream uses it. */
int weir_lent_ready(struct weir_lent *lent, void *stream, bool keep, struct weir_err *err);
/* Ends the batch's step on the stream that it was first delivered on. */
void weir_lent_step_end(struct weir_lent *lent);
/* Whether it belongs to a process that this one was forked from. */
bool weir_lent_is_foreign(const struct weir_lent *lent);
/* Its GPU, borrowed; NULL = none. */
struct weir_device *weir_lent_device(const struct weir_lent *lent);

/* Number of forks between the process that loaded the module and this one. */
int weir_fork_depth(void);
void weir_lent_begin(void);

#endif
