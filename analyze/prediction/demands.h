/* demands.h: cost of an image of a run in each resource, and the bound on images/s that each resource sets.
 *
 * By the utilisation law a resource that is busy for d seconds per image, with capacity c, gives at most c / d
 * images/s, and the lowest of these bounds limits the run. Demands are busy times: CPU time by the threads' own clocks,
 * occupied time of workers and of resources that serve one request at a time. Shares of wall time do not show who waits
 * for whom.
 *
 * Pure: no clocks, no I/O, no allocation. Any thread. */
#ifndef WEIR_ANALYZE_PREDICTION_DEMANDS_H
#define WEIR_ANALYZE_PREDICTION_DEMANDS_H

#include "weir/report.h"

#include <stdbool.h>

enum weir_resource {
    WEIR_RESOURCE_CORES,
    WEIR_RESOURCE_WORKERS,
    WEIR_RESOURCE_LIBRARY,  /* the HDF5 helper process */
    WEIR_RESOURCE_BUS,      /* copies to the GPU */
    WEIR_RESOURCE_ENGINES,  /* the busiest of the GPU's decoders */
    WEIR_RESOURCE_CONSUMER, /* the step */
    WEIR_RESOURCES
};

/* Name in logs: "cores", "engines", "consumer". */
const char *weir_resource_name(enum weir_resource resource);

/* Name in sentences, after an article: "cores", "GPU's decoders", "step". */
const char *weir_resource_text(enum weir_resource resource);

/* Use of the cores by workers. */
enum weir_cpu_part {
    WEIR_CPU_DECODE,
    WEIR_CPU_INFLATE,
    WEIR_CPU_CONVERT, /* conversion to floats or planes */
    WEIR_CPU_READ,    /* system calls, and copies out of the page cache */
    WEIR_CPU_COPY,    /* decode cache, shared frames, hand-over to the GPU */
    WEIR_CPU_REST,    /* state and actions, file handles, completing batches */
    WEIR_CPU_PARTS
};

/* Fractions of the wall time of all workers; their sum is about 1. */
struct weir_worker_time {
    double cpu;       /* on a core */
    double throttled; /* ready, quota used up */
    double core_wait; /* waiting for a core */
    double blocked;   /* blocked inside a task, mostly in reads */
    double idle;      /* slot waits and waits for tasks */
    double library;   /* waiting for the HDF5 helper process */
    double other_waits;
    double unattributed; /* in no stage */
};

struct weir_demands {
    bool known;          /* false: no workers, images or time; the other members are 0 */
    bool taken;          /* other processes, the quota or the host took cores that the process was ready for */
    bool delay_known;    /* the kernel reported waits for cores */
    int workers;         /* 0: the consumer's thread loads */
    double images, rate; /* rate: images/s over the consumer's steps */
    double usable;       /* cores: the min of affinity, quota, and this process's part */
    double own_cores;    /* mean cores used by the process and its helpers */
    double reachable;    /* usable cores without those that quota, host and neighbours took */
    struct weir_worker_time of;
    double cpu[WEIR_CPU_PARTS];          /* fractions of the workers' CPU time in stages; all -1: not known */
    double blocked_read, blocked_decode; /* fractions of blocked: in reads, in decoding */
    double decode_share;                 /* decoding and conversion, as a fraction of a sample's work (self times) */
    double load_s;                       /* of a thread per image: on a core, or blocked inside a task */
    double each_s[WEIR_RESOURCES];       /* busy time per image; 0 = not used */
    double bound[WEIR_RESOURCES];        /* images/s; 0 = not used */
    enum weir_resource least;            /* resource with the lowest bound */
    double bound_rate, gap;              /* that bound; fraction by which the run stayed below it */
};

void weir_demands_make(struct weir_demands *demands, const struct weir_loader_report *report);

/* Row of a stage on one side; NULL if it was not called. */
const struct weir_report_row *weir_demands_row(const struct weir_loader_report *report, const char *name,
                                               enum weir_report_side side);

/* Mean bytes of an image in a batch; older logs only have those of the first camera. */
double weir_setup_image_bytes(const struct weir_report_setup *setup);

/* A change of demands. Times are per image (0: not used). */
struct weir_change {
    double cpu_s;     /* CPU time, < 0: unchanged */
    double worker_s;  /* a worker's occupied time, < 0: unchanged */
    double library_s; /* < 0: unchanged */
    double cores;     /* reachable cores, < 0: unchanged */
    double workers;   /* < 0: unchanged */
};
#define WEIR_NO_CHANGE ((struct weir_change){-1, -1, -1, -1, -1})
double weir_demands_predict(const struct weir_demands *demands, const struct weir_change *change,
                            enum weir_resource *limit);

#endif
