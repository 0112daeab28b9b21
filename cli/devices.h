/* devices.h: capabilities of the kernel and the drivers, found by probing, for weir doctor. */
#ifndef WEIR_CLI_DEVICES_H
#define WEIR_CLI_DEVICES_H

#include "pipeline/gpu/gpu_facts.h"
#include "weir/base.h"

#include <stdbool.h>

struct weir_device {
    bool present;
    char text[512]; /* description, or the reason why it is missing */
};

/* Probes io_uring for this process. */
void weir_device_io_uring(struct weir_device *device);

/* Describes the built-in liburing: its version, and the features that the kernel supports. */
void weir_device_liburing(struct weir_device *device);

/* Describes the CUDA driver and its GPUs. Loads the driver library, which may take a second. */
void weir_device_cuda(struct weir_device *device);

/* Calls row for the CUDA module, each GPU with its bus, CUPTI and nvJPEG. */
void weir_gpu_rows(const struct weir_gpu_facts *facts,
                   void (*row)(void *user, const char *name, bool present, const char *text), void *user);

/* Writes the member "gpus" with the same facts as numbers. */
void weir_gpu_rows_json(struct weir_json *json, const struct weir_gpu_facts *facts);

#endif
