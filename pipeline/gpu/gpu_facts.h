/* gpu_facts.h: the GPUs of this machine, their properties, and the reason why a GPU cannot be used. Used by weir
 * doctor. */
#ifndef WEIR_PIPELINE_GPU_GPU_FACTS_H
#define WEIR_PIPELINE_GPU_GPU_FACTS_H

#include <stdbool.h>
#include <stdint.h>

enum { WEIR_GPU_FACTS_MAX = 16 };

/* text describes the part if it is present; otherwise text contains the reason. */
struct weir_gpu_part {
    bool present;
    char text[512];
};

struct weir_gpu_fact {
    int number;
    char name[128], pci[32];
    int major, minor; /* compute capability */
    uint64_t memory_bytes;
    int sms, copy_engines;
    int jpeg_engines;                  /* -1 = unknown */
    int pcie_generation, pcie_width;   /* of the current link; 0 = unknown */
    double copy_in_bytes_per_s;        /* of copies from pinned host memory; 0 = not measured */
    struct weir_gpu_part usable, jpeg; /* text: empty if present, otherwise the reason */
    struct weir_gpu_part copying;      /* only if usable; text: empty, or why the rate was not measured */
};

struct weir_gpu_facts {
    struct weir_gpu_part module; /* path, and the versions used to build the module */
    struct weir_gpu_part driver; /* valid only if module.present, as are all members below */
    struct weir_gpu_part cupti, nvjpeg;
    int driver_version, runtime_version; /* 13000 means version 13.0 */
    int n;                               /* number of GPUs; at most WEIR_GPU_FACTS_MAX are described */
    struct weir_gpu_fact gpus[WEIR_GPU_FACTS_MAX];
};

/* Loads the CUDA module, opens each GPU briefly, and copies 256 MiB (or a quarter of its free memory, if that is less)
 * to it ten times. Takes about a second per GPU. */
void weir_gpu_facts_find(struct weir_gpu_facts *facts);

#endif
