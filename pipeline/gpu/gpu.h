/* gpu.h: a GPU in use, by the functions of the CUDA module (prof/gpu/cuda_module.h): what a loader opens for
 * config.device, and what a program may use it for beside: streams, events, copies back, a kernel that keeps it busy.
 *
 * Streams and events are CUDA's own handles; a stream of NULL is the default stream. Calls that take an err return 0 or
 * -errno: -ENODEV no such GPU, -ENOMEM its memory is used up, -EIO it is lost. Any thread, each stream by one thread at
 * a time. */
#ifndef WEIR_PIPELINE_GPU_GPU_H
#define WEIR_PIPELINE_GPU_GPU_H

#include "weir/base.h"
#include "weir/loader.h"

#include <stddef.h>
#include <stdint.h>

struct weir_device;
struct weir_loader;

/* What "cpu" (or NULL), "cuda" and "cuda:K" stand for: *number is -1, 0 or K. -EINVAL for anything else. */
int weir_device_parse(const char *text, int *number, struct weir_err *err);

/* How many GPUs this process sees (CUDA_VISIBLE_DEVICES hides some). Opens the module. */
int weir_device_count(int *n, struct weir_err *err);

/* Opens the module and takes GPU number into use. -ENODEV: why there is none. */
int weir_device_open(struct weir_device **out, int number, struct weir_err *err);
/* For another user of it, who closes it, too. */
struct weir_device *weir_device_share(struct weir_device *device);
/* Of the last user, all streams, events and memory of it were freed before. Accepts NULL. */
void weir_device_close(struct weir_device **device);

/* The loader's, borrowed until its close; NULL when its batches stay with the CPU. */
struct weir_device *weir_device_of(const struct weir_loader *loader);

/* -1 of NULL: the CPU. */
int weir_device_number(const struct weir_device *device);
/* "NVIDIA H200" */
const char *weir_device_name(const struct weir_device *device);
/* Of its memory, what is in use now, by all programs; 0 when it cannot be asked. */
uint64_t weir_device_used_bytes(struct weir_device *device);

int weir_device_stream(struct weir_device *device, void **stream, struct weir_err *err);
void weir_device_stream_free(struct weir_device *device, void *stream);
int weir_device_event(struct weir_device *device, void **event, struct weir_err *err);
void weir_device_event_free(struct weir_device *device, void *event);
int weir_device_record(struct weir_device *device, void *event, void *stream, struct weir_err *err);
/* Blocks until what the event was recorded after has passed; at once when it was never recorded. */
int weir_device_wait(struct weir_device *device, void *event, struct weir_err *err);
/* Memory of the GPU; freeing it waits for all that is queued there, and accepts NULL. */
int weir_device_alloc(struct weir_device *device, size_t bytes, void **memory, struct weir_err *err);
void weir_device_free(struct weir_device *device, void *memory);
/* Pins memory of the host, page-aligned, so that copies of it run beside the program; unpinned before it is freed, when
 * nothing that is queued uses it any more. -ENOMEM: it cannot be pinned. */
int weir_device_pin(struct weir_device *device, void *memory, size_t bytes, struct weir_err *err);
void weir_device_unpin(struct weir_device *device, void *memory);
/* Queues a copy of the host's memory to the GPU's. What is not pinned may be copied before the call returns. */
int weir_device_copy_in(struct weir_device *device, void *to, const void *from, size_t bytes, void *stream,
                        struct weir_err *err);
/* Queues a copy of bytes of the GPU's memory to other memory of it, or to the host's. */
int weir_device_copy(struct weir_device *device, void *to, const void *from, size_t bytes, void *stream,
                     struct weir_err *err);
int weir_device_copy_out(struct weir_device *device, void *to, const void *from, size_t bytes, void *stream,
                         struct weir_err *err);
/* Queues a kernel that lasts so long. */
int weir_device_busy(struct weir_device *device, uint64_t ns, void *stream, struct weir_err *err);

/* Copies a batch's tensors to memory of the host, behind what is on the stream (weir_loader_wait, that is), and waits
 * for it. host: the batch with its tensors there; memory: weir_device_fetch_bytes of the batch, or of a larger one. */
int weir_device_fetch(struct weir_device *device, const struct weir_batch *batch, void *stream, void *memory,
                      struct weir_batch *host, struct weir_err *err);
size_t weir_device_fetch_bytes(const struct weir_batch *batch);

#endif
