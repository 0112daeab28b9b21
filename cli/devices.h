/* devices.h: probes the kernel and the drivers for their capabilities, for weir doctor. */
#ifndef WEIR_CLI_DEVICES_H
#define WEIR_CLI_DEVICES_H

#include "base/fields.h"
#include "pipeline/gpu/gpu_facts.h"
#include "weir/base.h"

#include <stdbool.h>

struct weir_device {
    bool present;
    char text[512]; /* description, or the reason why it is missing */
};

/* Probes whether this process can use io_uring. */
void weir_device_io_uring(struct weir_device *device);

/* Describes the built-in liburing: its version and which of its features the kernel supports. */
void weir_device_liburing(struct weir_device *device);

/* Describes the Python package installed with this program, or another package in its place. */
void weir_device_python(struct weir_device *device);

/* Describes the CUDA driver and its GPUs. Loads the driver library, which can take a second. */
void weir_device_cuda(struct weir_device *device);

/* Calls row for the CUDA module, for each GPU, for nvJPEG and for CUPTI. */
void weir_gpu_rows(const struct weir_gpu_facts *facts,
                   void (*row)(void *user, const char *name, bool present, const char *text), void *user);

extern const struct weir_fields weir_gpu_fields; /* of struct weir_gpu_fact */

#endif
