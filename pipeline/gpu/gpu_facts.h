/* gpu_facts.h: the GPUs of this machine, their properties, and why one cannot be used: for weir doctor. */
#ifndef WEIR_PIPELINE_GPU_GPU_FACTS_H
#define WEIR_PIPELINE_GPU_GPU_FACTS_H

#include <stdbool.h>
#include <stdint.h>

enum { WEIR_GPU_FACTS_MAX = 16 };

/* Present, with a description; or missing, with the reason. */
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
    int pcie_generation, pcie_width;   /* current link; 0 = unknown */
    double copy_in_bytes_per_s;        /* from pinned host memory; 0 = not measured */
    struct weir_gpu_part usable, jpeg; /* text: empty, or why not */
    struct weir_gpu_part copying;      /* if usable; text: empty, or why it was not measured */
};

struct weir_gpu_facts {
    struct weir_gpu_part module; /* its file, and the versions it was built with */
    struct weir_gpu_part driver; /* valid only if module.present, like all members below */
    struct weir_gpu_part cupti, nvjpeg;
    int driver_version, runtime_version; /* 13000 = 13.0 */
    int n;                               /* number of GPUs; at most WEIR_GPU_FACTS_MAX are described */
    struct weir_gpu_fact gpus[WEIR_GPU_FACTS_MAX];
};

/* Opens the module, opens each GPU briefly and copies 256 MiB, or a quarter of its free memory, to it ten times: about
 * a second per GPU. */
void weir_gpu_facts_find(struct weir_gpu_facts *facts);

#endif
