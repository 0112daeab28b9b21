/* devices.h: what the kernel and the drivers of this machine offer, found by trying it. */
#ifndef WEIR_CLI_DEVICES_H
#define WEIR_CLI_DEVICES_H

#include "pipeline/gpu/gpu_facts.h"
#include "weir/base.h"

#include <stdbool.h>

struct weir_device {
    bool present;
    char text[512]; /* what was found, or why it is not there */
};

/* Whether this process may use io_uring. */
void weir_device_io_uring(struct weir_device *device);

/* liburing as built in: its version, and what of it this kernel has. */
void weir_device_liburing(struct weir_device *device);

/* The CUDA driver and its GPUs. Opens the driver library, which may take a second; nothing is kept. */
void weir_device_cuda(struct weir_device *device);

/* The rows below that of the driver: the module, each GPU and the way to it, CUPTI, nvJPEG. */
void weir_gpu_rows(const struct weir_gpu_facts *facts,
                   void (*row)(void *user, const char *name, bool present, const char *text), void *user);

/* "gpus": [...], with numbers. */
void weir_gpu_rows_json(struct weir_json *json, const struct weir_gpu_facts *facts);

#endif
