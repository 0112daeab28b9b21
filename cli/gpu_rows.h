/* gpu_rows.h: GPUs in weir doctor: rows of text, and JSON. */
#ifndef WEIR_CLI_GPU_ROWS_H
#define WEIR_CLI_GPU_ROWS_H

#include "pipeline/gpu/gpu_facts.h"
#include "weir/base.h"

/* The rows below that of the driver: the module, each GPU and the way to it, CUPTI, nvJPEG. */
void weir_gpu_rows(const struct weir_gpu_facts *facts,
                   void (*row)(void *user, const char *name, bool present, const char *text), void *user);

/* "gpus": [...], with numbers. */
void weir_gpu_rows_json(struct weir_json *json, const struct weir_gpu_facts *facts);

#endif
