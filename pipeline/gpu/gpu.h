/* gpu.h: an open GPU, through the functions of the CUDA module (prof/gpu/cuda_module.h). A loader opens one for
 * config.device; programs can use it for streams, events, copies to the host, and a kernel of a given duration.
 *
 * Streams and events are CUDA's own handles; NULL is the default stream. Calls that take an err return 0 or -errno:
 * -ENODEV no such GPU, -ENOMEM out of GPU memory, -EIO the GPU is lost. Any thread, each stream by one thread at a
 * time. */
#ifndef WEIR_PIPELINE_GPU_GPU_H
#define WEIR_PIPELINE_GPU_GPU_H

#include "weir/base.h"
#include "weir/loader.h"

#include <stddef.h>
#include <stdint.h>

struct weir_device;
struct weir_loader;

/* Parses "cpu" (or NULL), "cuda" and "cuda:K" to -1, 0 and K. Returns -EINVAL for anything else. */
int weir_device_parse(const char *text, int *number, struct weir_err *err);

/* Stores the number of GPUs that this process sees (CUDA_VISIBLE_DEVICES hides some). Opens the module. */
int weir_device_count(int *n, struct weir_err *err);

/* Opens the module and GPU `number`. Returns -ENODEV with the reason if there is none. */
int weir_device_open(struct weir_device **out, int number, struct weir_err *err);
/* Adds a reference; its owner calls weir_device_close too. */
struct weir_device *weir_device_share(struct weir_device *device);
/* Drops a reference. Before the last one is dropped, free all streams, events and memory of the GPU. Accepts NULL. */
void weir_device_close(struct weir_device **device);

/* Returns the loader's GPU, borrowed until the loader is closed; NULL when its batches stay in host memory. */
struct weir_device *weir_device_of(const struct weir_loader *loader);

/* Returns -1 for NULL: the CPU. */
int weir_device_number(const struct weir_device *device);
/* Returns the name, such as "NVIDIA H200". */
const char *weir_device_name(const struct weir_device *device);
/* Returns the GPU memory in use by all programs; 0 when unknown. */
uint64_t weir_device_used_bytes(struct weir_device *device);

int weir_device_stream(struct weir_device *device, void **stream, struct weir_err *err);
void weir_device_stream_free(struct weir_device *device, void *stream);
int weir_device_event(struct weir_device *device, void **event, struct weir_err *err);
void weir_device_event_free(struct weir_device *device, void *event);
int weir_device_record(struct weir_device *device, void *event, void *stream, struct weir_err *err);
/* Blocks until the work before the event has finished; returns at once for an event that was never recorded. */
int weir_device_wait(struct weir_device *device, void *event, struct weir_err *err);
/* Allocates GPU memory. Freeing it waits for all queued work of the GPU, and accepts NULL. */
int weir_device_alloc(struct weir_device *device, size_t bytes, void **memory, struct weir_err *err);
void weir_device_free(struct weir_device *device, void *memory);
/* Pins page-aligned host memory, so that copies run asynchronously. Unpin it before freeing it, when no queued work
 * uses it. Returns -ENOMEM if it cannot be pinned. */
int weir_device_pin(struct weir_device *device, void *memory, size_t bytes, struct weir_err *err);
void weir_device_unpin(struct weir_device *device, void *memory);
/* Queues a copy from host to GPU memory. Unpinned memory may be copied before the call returns. */
int weir_device_copy_in(struct weir_device *device, void *to, const void *from, size_t bytes, void *stream,
                        struct weir_err *err);
/* Queues a copy from GPU memory to GPU or host memory. */
int weir_device_copy(struct weir_device *device, void *to, const void *from, size_t bytes, void *stream,
                     struct weir_err *err);
int weir_device_copy_out(struct weir_device *device, void *to, const void *from, size_t bytes, void *stream,
                         struct weir_err *err);
/* Queues a kernel that lasts ns. */
int weir_device_busy(struct weir_device *device, uint64_t ns, void *stream, struct weir_err *err);

/* Copies a batch's tensors to host memory, after the work on the stream (and so after weir_loader_wait), and waits for
 * the copy. host: the batch with its tensors in host memory. memory: weir_device_fetch_bytes of the batch or of a
 * larger one. */
int weir_device_fetch(struct weir_device *device, const struct weir_batch *batch, void *stream, void *memory,
                      struct weir_batch *host, struct weir_err *err);
size_t weir_device_fetch_bytes(const struct weir_batch *batch);

#endif
