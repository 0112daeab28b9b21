/* demands.h: what a run's images have cost of each resource, and how many a second each could have given.
 *
 * By the utilisation law: of a resource that is busy for d seconds an image, capacity c gives at most c / d images/s,
 * and the least of these bounds holds the run. Demands are busy times: CPU time by the threads' own clocks, occupied
 * time of workers and of what serves one at a time; never shares of wall time, which say nothing about who waits for
 * whom.
 *
 * Pure: no clocks, no I/O, no memory. Any thread. */
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
    WEIR_RESOURCE_CONSUMER, /* the step */
    WEIR_RESOURCES
};

/* "cores", "engines", "consumer": as in logs. */
const char *weir_resource_name(enum weir_resource resource);

/* "cores", "GPU's decoders", "step": as in sentences, after an article. */
const char *weir_resource_text(enum weir_resource resource);

/* What workers use cores for. */
enum weir_cpu_part {
    WEIR_CPU_DECODE,
    WEIR_CPU_INFLATE,
    WEIR_CPU_CONVERT, /* to floats, or planes */
    WEIR_CPU_READ,    /* system calls, and copies out of the page cache */
    WEIR_CPU_COPY,    /* decode cache, shared frames, hand-over to the GPU */
    WEIR_CPU_REST,    /* state and actions, file handles, completing batches */
    WEIR_CPU_PARTS
};

/* Of the workers' wall time, all workers together; they add up to about 1. */
struct weir_worker_time {
    double cpu;       /* on a core */
    double throttled; /* ready, but the quota was used up */
    double core_wait; /* ready, but others had the cores */
    double blocked;   /* asleep at work: reading, mostly */
    double idle;      /* no free batch to work on, or nothing to do */
    double library;   /* waiting for the turn at the HDF5 helper process */
    double other_waits;
    double unattributed; /* in no stage */
};

struct weir_demands {
    bool known;          /* there were workers, images and time; else the rest is 0 */
    bool taken;          /* others, the quota or the host take cores that the process was ready for */
    bool delay_known;    /* the kernel said who waited for cores */
    int workers;         /* 0: their work was done by the consumer's thread */
    double images, rate; /* rate: images/s over the consumer's steps */
    double usable;       /* cores: the least of affinity, quota, and this process's part */
    double own_cores;    /* that the process and its helpers used, mean */
    double reachable;    /* cores that it could have used: usable, less what quota, host and neighbours took */
    struct weir_worker_time of;
    double cpu[WEIR_CPU_PARTS];          /* of the CPU time of the workers' stages, sum 1; -1 in all: not known */
    double blocked_read, blocked_decode; /* of blocked: in reads, in decoding, 0..1 */
    double decode_share;                 /* of a sample's work (self times), decoding and conversion, 0..1 */
    double load_s;                       /* a thread, for an image: on a core and asleep at work */
    double each_s[WEIR_RESOURCES];       /* busy time of an image; 0 = not used */
    double bound[WEIR_RESOURCES];        /* images/s; 0 = not used */
    enum weir_resource least;            /* which bound is lowest */
    double bound_rate, gap;              /* that bound; how far the run stayed below it, 0..1 */
};

void weir_demands_make(struct weir_demands *demands, const struct weir_loader_report *report);

/* A stage's row of one side; NULL when it was not called. */
const struct weir_report_row *weir_demands_row(const struct weir_loader_report *report, const char *name,
                                               enum weir_report_side side);

/* Of an image in a batch, the mean of the cameras; of the first camera in a log that is older than this figure. */
double weir_setup_image_bytes(const struct weir_report_setup *setup);

/* What a change would give: the least bound with these times of an image (0: not used), over the least bound now. NULL
 * cpu_s, worker_s or library_s: unchanged. limit gets the resource that is least then. */
struct weir_change {
    double cpu_s;     /* CPU time of an image, < 0 unchanged */
    double worker_s;  /* a worker's occupied time for an image, < 0 unchanged */
    double library_s; /* < 0 unchanged */
    double cores;     /* reachable cores, < 0 unchanged */
    double workers;   /* < 0 unchanged */
};
#define WEIR_NO_CHANGE ((struct weir_change){-1, -1, -1, -1, -1})
double weir_demands_predict(const struct weir_demands *demands, const struct weir_change *change,
                            enum weir_resource *limit);

#endif
