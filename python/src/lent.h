/* lent.h: reference-counted memory of a batch, shared by a loader and by all arrays that view parts of it.
 *
 * While the loader holds a reference, it owns the memory, and it reuses the memory when no other references are left.
 * After the loader has given the memory away, dropping the last reference frees it. References can be dropped on any
 * thread, without the interpreter's lock and even after the interpreter has ended. A child of fork() never frees memory
 * of its parent.
 *
 * A batch on a GPU records the streams that it was delivered on. When its last array is dropped, the batch is returned
 * to the loader immediately. Its memory is reused after the work that is queued on these streams at that time. */
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

/* Creates the link from batches on a GPU to their loader, with one reference. The loader must outlive all batches that
 * are neither returned nor kept. Returns NULL if out of memory. */
struct weir_lender *weir_lender_new(struct weir_loader *loader);
void weir_lender_drop(struct weir_lender *lender);

/* Create a handle for the memory of a loader's batch, with one reference. Return NULL if out of memory. On a GPU, the
 * batch is returned to the lender when only one reference is left. */
struct weir_lent *weir_lent_new(void);
struct weir_lent *weir_lent_new_on_gpu(struct weir_lender *lender, struct weir_batch *batch);
/* Allocates separate memory, with one reference: on the GPU, or page-aligned on the host if device is NULL. Returns
 * NULL with err (-ENOMEM or -EIO) on failure. */
struct weir_lent *weir_lent_new_memory(size_t bytes, struct weir_device *device, void **memory, struct weir_err *err);
void weir_lent_take(struct weir_lent *lent);
void weir_lent_drop(struct weir_lent *lent);
/* Returns whether the caller has the only reference or, on a GPU, whether the batch was returned to the loader. */
bool weir_lent_is_free(const struct weir_lent *lent);
/* Gives the memory of the loader's batch to the holders of references (weir_loader_keep). The caller must hold a
 * reference. */
int weir_lent_keep(struct weir_lent *lent, struct weir_loader *loader, struct weir_batch *batch, struct weir_err *err);
/* Returns the total memory of the kept batches that still have references. */
size_t weir_lent_kept_bytes(void);

/* Makes later work on the stream wait for the batch. With keep, the stream is recorded as using the batch until the
 * batch's last array is dropped. Without keep, the caller must hold an array while the stream uses the batch. */
int weir_lent_ready(struct weir_lent *lent, void *stream, bool keep, struct weir_err *err);
/* Ends the batch's step on the stream that it was first delivered on. */
void weir_lent_step_end(struct weir_lent *lent);
/* Returns whether the memory belongs to a process that this process was forked from. */
bool weir_lent_is_foreign(const struct weir_lent *lent);
/* Returns the GPU of the memory, borrowed, or NULL for host memory. */
struct weir_device *weir_lent_device(const struct weir_lent *lent);

/* Returns the number of forks between the process that loaded the module and this process. */
int weir_fork_depth(void);
void weir_lent_begin(void);

#endif
