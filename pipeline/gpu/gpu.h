/* gpu.h: access to one GPU through the CUDA module (prof/gpu/cuda_module.h). A loader opens the GPU of config.device.
 * Programs can use it for streams, events, copies to the host, and a kernel of a given duration.
 *
 * Streams and events are CUDA's own handles, and NULL is the default stream. Functions with an err parameter return 0
 * or -errno: -ENODEV (no such GPU), -ENOMEM (out of GPU memory) or -EIO (the GPU is lost). Any thread may call them,
 * but only one thread at a time may use a stream. */
#ifndef WEIR_PIPELINE_GPU_GPU_H
#define WEIR_PIPELINE_GPU_GPU_H

#include "weir/base.h"
#include "weir/loader.h"

#include <stddef.h>
#include <stdint.h>

struct weir_device;
struct weir_loader;

/* Converts "cpu" (or NULL), "cuda" and "cuda:K" to -1, 0 and K. Returns -EINVAL for any other string. */
int weir_device_parse(const char *text, int *number, struct weir_err *err);

/* Stores the number of GPUs visible to this process in *n (CUDA_VISIBLE_DEVICES can hide some). Loads the CUDA module.
 */
int weir_device_count(int *n, struct weir_err *err);

/* Loads the CUDA module and opens GPU `number`. Returns -ENODEV with the reason if that GPU is not available. */
int weir_device_open(struct weir_device **out, int number, struct weir_err *err);
/* Adds a reference, which must be dropped with weir_device_close. */
struct weir_device *weir_device_share(struct weir_device *device);
/* Drops a reference. Free all streams, events and memory of the GPU before dropping the last reference. Accepts NULL.
 */
void weir_device_close(struct weir_device **device);

/* Returns the loader's GPU, or NULL if its batches stay in host memory. The result is valid until the loader is closed.
 */
struct weir_device *weir_device_of(const struct weir_loader *loader);

/* Returns the number of the GPU, or -1 (the CPU) if device is NULL. */
int weir_device_number(const struct weir_device *device);
/* Returns the name, such as "NVIDIA H200". */
const char *weir_device_name(const struct weir_device *device);
/* Returns the GPU memory in use by all programs, or 0 if unknown. */
uint64_t weir_device_used_bytes(struct weir_device *device);

int weir_device_stream(struct weir_device *device, void **stream, struct weir_err *err);
void weir_device_stream_free(struct weir_device *device, void *stream);
int weir_device_event(struct weir_device *device, void **event, struct weir_err *err);
void weir_device_event_free(struct weir_device *device, void *event);
int weir_device_record(struct weir_device *device, void *event, void *stream, struct weir_err *err);
/* Blocks until the work before the event has finished. Returns immediately if the event was never recorded. */
int weir_device_wait(struct weir_device *device, void *event, struct weir_err *err);
/* Allocates GPU memory. weir_device_free waits for all work queued on the GPU, and accepts NULL. */
int weir_device_alloc(struct weir_device *device, size_t bytes, void **memory, struct weir_err *err);
void weir_device_free(struct weir_device *device, void *memory);
/* Pins page-aligned host memory, so that copies run asynchronously. Before freeing the memory, unpin it once no queued
 * work uses it. Returns -ENOMEM if it cannot be pinned. */
int weir_device_pin(struct weir_device *device, void *memory, size_t bytes, struct weir_err *err);
void weir_device_unpin(struct weir_device *device, void *memory);
/* Queues a copy from host to GPU memory. If the host memory is not pinned, the copy may run before this returns. */
int weir_device_copy_in(struct weir_device *device, void *to, const void *from, size_t bytes, void *stream,
                        struct weir_err *err);
/* Queues a copy from GPU memory to GPU or host memory. */
int weir_device_copy(struct weir_device *device, void *to, const void *from, size_t bytes, void *stream,
                     struct weir_err *err);
int weir_device_copy_out(struct weir_device *device, void *to, const void *from, size_t bytes, void *stream,
                         struct weir_err *err);
/* Queues a kernel that runs for at least ns nanoseconds. */
int weir_device_busy(struct weir_device *device, uint64_t ns, void *stream, struct weir_err *err);

/* Copies a batch's tensors to host memory and waits for the copy. The copy runs on the stream, after the work that is
 * already queued there; call weir_loader_wait for that stream first. *host receives the batch with its tensors in host
 * memory. memory must hold at least weir_device_fetch_bytes(batch) bytes. */
int weir_device_fetch(struct weir_device *device, const struct weir_batch *batch, void *stream, void *memory,
                      struct weir_batch *host, struct weir_err *err);
size_t weir_device_fetch_bytes(const struct weir_batch *batch);

#endif
