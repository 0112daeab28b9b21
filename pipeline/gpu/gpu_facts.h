/* gpu_facts.h: what there is of GPUs on this machine and what they can do, or why not: for weir doctor. */
#ifndef WEIR_PIPELINE_GPU_GPU_FACTS_H
#define WEIR_PIPELINE_GPU_GPU_FACTS_H

#include <stdbool.h>
#include <stdint.h>

enum { WEIR_GPU_FACTS_MAX = 16 };

/* There, and what; or not, and why. */
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
    int jpeg_engines;                  /* -1: not known */
    int pcie_generation, pcie_width;   /* as linked now; 0: not known */
    double copy_in_bytes_per_s;        /* from pinned memory of the host; 0: not measured */
    struct weir_gpu_part usable, jpeg; /* text: "" or why not */
    struct weir_gpu_part copying;      /* of a usable one: "" or why it was not measured */
};

struct weir_gpu_facts {
    struct weir_gpu_part module; /* its file, and what it was built with */
    struct weir_gpu_part driver; /* of module.present only, as all that follows */
    struct weir_gpu_part cupti, nvjpeg;
    int driver_version, runtime_version; /* 13000 = 13.0 */
    int n;                               /* GPUs; at most WEIR_GPU_FACTS_MAX are described */
    struct weir_gpu_fact gpus[WEIR_GPU_FACTS_MAX];
};

/* Opens the module, takes each GPU into use for a moment and copies 256 MiB to it ten times, or a quarter of what is
 * free there: about a second each. */
void weir_gpu_facts_find(struct weir_gpu_facts *facts);

#endif
