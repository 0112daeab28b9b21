/* demands.h: what an image of a run costs in each resource, and the bound on images/s that each resource sets.
 *
 * By the utilisation law, a resource of capacity c that is busy for d seconds per image allows at most c / d images/s,
 * and the lowest of these bounds limits the run. Demands are busy times: the CPU time of threads, and the time for
 * which workers and resources that serve one request at a time are occupied. Shares of wall time would not show which
 * thread waits for which resource.
 *
 * These functions use no clock, no I/O and no allocation. They can be called on any thread. */
#ifndef WEIR_ANALYZE_PREDICTION_DEMANDS_H
#define WEIR_ANALYZE_PREDICTION_DEMANDS_H

#include "weir/report.h"

#include <stdbool.h>

enum weir_resource {
    WEIR_RESOURCE_CORES,
    WEIR_RESOURCE_WORKERS,
    WEIR_RESOURCE_LIBRARY,  /* the HDF5 helper process */
    WEIR_RESOURCE_BUS,      /* copies to the GPU */
    WEIR_RESOURCE_ENGINES,  /* the busiest of the GPU's ways to decode */
    WEIR_RESOURCE_CONSUMER, /* the training or validation step */
    WEIR_RESOURCES
};

/* Returns the name in logs, such as "cores", "engines" or "consumer". */
const char *weir_resource_name(enum weir_resource resource);

/* Returns the name in sentences, to be used after "the", such as "cores", "GPU's decoders" or "step". */
const char *weir_resource_text(enum weir_resource resource);

/* What workers use CPU time for. */
enum weir_cpu_part {
    WEIR_CPU_DECODE,
    WEIR_CPU_INFLATE,
    WEIR_CPU_CONVERT, /* conversion to floats or planes */
    WEIR_CPU_READ,    /* system calls and copying from the page cache */
    WEIR_CPU_COPY,    /* decode cache, shared frames, passing frames to the GPU */
    WEIR_CPU_REST,    /* state and actions, file handles, completing batches */
    WEIR_CPU_PARTS
};

/* Fractions of the wall time of all workers. They add up to about 1. */
struct weir_worker_time {
    double cpu;       /* on a core */
    double throttled; /* ready to run, but the quota is used up */
    double core_wait; /* ready to run, but waiting for a core */
    double blocked;   /* asleep inside a task, mostly in reads */
    double idle;      /* waiting for a slot or for a task */
    double library;   /* waiting for the HDF5 helper process */
    double other_waits;
    double unattributed; /* in no stage */
};

struct weir_demands {
    bool known;       /* false if there are no workers, images or times; all figures are then 0 */
    bool taken;       /* the process was ready to use more cores, which other processes, the quota or the host took */
    bool delay_known; /* the kernel reported waits for cores */
    int workers;      /* 0: the consumer's thread loads the data */
    double images, rate; /* rate: images/s, measured over the consumer's steps */
    double usable;       /* usable cores: the min of affinity, quota and this process's share */
    double own_cores;    /* mean number of cores used by the process and its helpers */
    double left;         /* usable cores that other processes leave; all of them if their use is unknown */
    double reachable;    /* usable cores, less those taken by quota, host and other processes */
    struct weir_worker_time of;
    double cpu[WEIR_CPU_PARTS];          /* fractions of the workers' CPU time; all -1 = unknown */
    double blocked_read, blocked_decode; /* fractions of the blocked time spent in reads and in decoding */
    double decode_share;                 /* fraction of a sample's work spent in decoding and conversion (self times) */
    double load_s;                       /* time of a thread per image, running or asleep inside a task */
    double each_s[WEIR_RESOURCES];       /* busy time per image; 0 = not used */
    double bound[WEIR_RESOURCES];        /* images/s; 0 = not used */
    enum weir_resource least;            /* resource with the lowest bound */
    double bound_rate, gap;              /* the lowest bound, and the fraction by which the run stayed below it */
};

void weir_demands_make(struct weir_demands *demands, const struct weir_loader_report *report);

/* Returns the row of a stage on one side, or NULL if the stage was not called. */
const struct weir_report_row *weir_demands_row(const struct weir_loader_report *report, const char *name,
                                               enum weir_report_side side);

/* Returns the mean size of an image in a batch. For older logs, this is the size for the first camera. */
double weir_setup_image_bytes(const struct weir_report_setup *setup);

/* A change of demands. Times are per image (0 = resource not used); negative numbers mean no change. */
struct weir_change {
    double cpu_s;    /* CPU time */
    double worker_s; /* time for which a worker is occupied */
    double library_s;
    double cores; /* reachable cores */
    double workers;
};
#define WEIR_NO_CHANGE ((struct weir_change){-1, -1, -1, -1, -1})
double weir_demands_predict(const struct weir_demands *demands, const struct weir_change *change,
                            enum weir_resource *limit);

#endif
