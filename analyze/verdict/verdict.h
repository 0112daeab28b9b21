/* verdict.h: what holds a run back, with what evidence, and what would help, from the figures of its report.
 *
 *     struct weir_verdict verdict;
 *     weir_verdict_make(&verdict, report, NULL);
 *     weir_verdict_print(stdout, &verdict, report, WEIR_LANG_EN);
 *
 * A verdict is a function of the report alone, so that one that was read back from a log gets the same. docs/verdict.md
 * has the rules, the thresholds and what tells neighbours apart. Nothing here reads a clock or a file. Any thread. */
#ifndef WEIR_ANALYZE_VERDICT_VERDICT_H
#define WEIR_ANALYZE_VERDICT_VERDICT_H

#include "analyze/demands.h"
#include "analyze/model.h"
#include "weir/base.h"
#include "weir/report.h"

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

/* Thresholds; docs/verdict.md explains each. Fractions are of the time that their names say. */
#define WEIR_VERDICT_WAIT_LEAST    0.05 /* of training: less is not data-bound */
#define WEIR_VERDICT_WAIT_STRONG   0.20 /* of training: more is strongly data-bound */
#define WEIR_VERDICT_TRACED_LEAST  0.05 /* of the traced time: less is no cause of the GPU's idle time */
#define WEIR_VERDICT_BATCHES_LEAST 20   /* training batches */
#define WEIR_VERDICT_SECONDS_LEAST 0.5  /* of training */
#define WEIR_VERDICT_BATCHES_LONG  8    /* enough, when they took at least: */
#define WEIR_VERDICT_SECONDS_LONG  1.0  /* of training */
#define WEIR_VERDICT_OTHER_MOST    0.10 /* of the workers' time: not accounted for */
#define WEIR_VERDICT_EPOCHS_APART  2.0  /* images/s of the fastest later epoch over the slowest */
#define WEIR_VERDICT_EPOCH_LEAST   0.2  /* s: shorter epochs differ by chance */
#define WEIR_VERDICT_THROTTLED     0.10 /* of the workers' time, or of the quota's periods */
#define WEIR_VERDICT_STEAL         0.05 /* of the usable cores */
#define WEIR_VERDICT_RUNNABLE      0.30 /* of the workers' time: on a core, or ready for one */
#define WEIR_VERDICT_CORE_WAIT     0.10 /* of the workers' time */
#define WEIR_VERDICT_OTHERS        0.10 /* of the usable cores, by other processes */
#define WEIR_VERDICT_OTHERS_MANY   0.50 /* then half of WEIR_VERDICT_CORE_WAIT is enough */
#define WEIR_VERDICT_CORES_BUSY    0.90 /* of the usable cores */
#define WEIR_VERDICT_WORKERS_BUSY  0.90 /* of the workers' time */
#define WEIR_VERDICT_BLOCKED       0.10 /* of the workers' time */
#define WEIR_VERDICT_IDLE          0.10 /* of the workers' time */
#define WEIR_VERDICT_SERIAL_BUSY   0.80 /* of the time: the helper process, the bus, the GPU's engines */
#define WEIR_VERDICT_DECODE_RULE   0.40 /* of a sample's time */
#define WEIR_VERDICT_COLD_BYTES    0.50 /* of an epoch's bytes, from storage */
#define WEIR_VERDICT_SLOW_TIMES    4.0  /* a camera's median read or a file's mean read, over that of the others */
#define WEIR_VERDICT_SLOW_SHARE    0.30 /* of all reading, by the slow camera or file */
#define WEIR_VERDICT_TAIL_TIMES    20.0 /* p99 over p50 of reads */
#define WEIR_VERDICT_TAIL_SHARE    0.50 /* of all reading, by the slowest tenth */
#define WEIR_VERDICT_HALF_SIZE     0.85 /* CPU time of decoding to half the width and height, over that of the whole */
#define WEIR_VERDICT_BACKWARD      2.0  /* backward over forward: more is a backward bottleneck */
#define WEIR_VERDICT_CPU_GROWTH    1.30 /* CPU time of an image, over that with one worker */

enum weir_cause {
    WEIR_CAUSE_CANNOT_TELL,
    WEIR_CAUSE_CONSUMER, /* not data-bound */
    WEIR_CAUSE_DECODE,
    WEIR_CAUSE_INFLATE,
    WEIR_CAUSE_CONVERT,
    WEIR_CAUSE_READ_CPU, /* system calls, and copies out of the page cache */
    WEIR_CAUSE_OTHER_CPU,
    WEIR_CAUSE_STORAGE, /* bandwidth or latency, not separable at one depth */
    WEIR_CAUSE_STORAGE_BANDWIDTH,
    WEIR_CAUSE_STORAGE_LATENCY,
    WEIR_CAUSE_STORAGE_TAIL,
    WEIR_CAUSE_SLOW_CAMERA,
    WEIR_CAUSE_SLOW_FILE,
    WEIR_CAUSE_SLOW_WORKER,
    WEIR_CAUSE_LIBRARY,
    WEIR_CAUSE_BUS,
    WEIR_CAUSE_GPU_DECODER,
    WEIR_CAUSE_BURSTS, /* too few batches ahead */
    WEIR_CAUSE_TOO_FEW_WORKERS,
    WEIR_CAUSE_TOO_MANY_WORKERS,
    WEIR_CAUSE_QUOTA,
    WEIR_CAUSE_HOST,
    WEIR_CAUSE_NEIGHBOURS,
    WEIR_CAUSE_MEMORY_BANDWIDTH,
    WEIR_CAUSE_COLD,
    WEIR_CAUSES
};

/* Why a verdict cannot tell. */
enum weir_doubt {
    WEIR_DOUBT_NO_TIMING,
    WEIR_DOUBT_NO_FIGURES, /* the log is older than they are, or nothing was handed out */
    WEIR_DOUBT_TOO_SHORT,
    WEIR_DOUBT_OTHER,
    WEIR_DOUBT_EPOCHS,
    WEIR_DOUBT_SAMPLED, /* too few readings of the CPU clock */
    WEIR_DOUBT_NO_RESOURCE,
};

/* What the consumer is, when it does not wait for data. */
enum weir_consumer {
    WEIR_CONSUMER_UNKNOWN,     /* only GPU events or a trace can tell */
    WEIR_CONSUMER_COMPUTING,   /* a GPU, or its own core, is busy */
    WEIR_CONSUMER_SYNC_BOUND,  /* waits for each step before the next */
    WEIR_CONSUMER_LAUNCH_BOUND /* the GPU is idle and nobody waits: launches, or allocations */
};

struct weir_found {
    enum weir_cause cause;
    double share;     /* the figure that shows it best: a fraction, by cause */
    double a, b;      /* and two more */
    double core_wait; /* of the consumer: of its thread's time, ready to run while others had the cores; 0 = little */
    char name[256];   /* of the camera, file or worker */
    bool decode;      /* of a slow camera: decoding its images, not reading them */
    bool on_core;     /* of a slow worker: it is busy, not asleep */
    enum weir_doubt doubt;
    enum weir_consumer consumer;
    bool traced; /* which the report's GPU idle time says; b is then its largest part */
};

enum weir_advice_kind {
    WEIR_ADVICE_CACHE,
    WEIR_ADVICE_HALF_SIZE,
    WEIR_ADVICE_MORE_CORES,
    WEIR_ADVICE_MORE_WORKERS,
    WEIR_ADVICE_FEWER_WORKERS,
    WEIR_ADVICE_MORE_BATCHES,
    WEIR_ADVICE_READ_AHEAD,
    WEIR_ADVICE_U8,
    WEIR_ADVICE_CONVERT,    /* the dataset, to frames that need no library */
    WEIR_ADVICE_FREE_CORES, /* of others' processes */
    WEIR_ADVICE_QUOTA,
    WEIR_ADVICE_WARM,    /* later epochs, measured */
    WEIR_ADVICE_LOOK_AT, /* a camera, a file, a worker's core */
    WEIR_ADVICE_FASTER_STEP,
    WEIR_ADVICE_HYBRID, /* --decoder hybrid */
    WEIR_ADVICE_TRACE,  /* --profile */
    WEIR_ADVICE_LONGER, /* a longer run */
    WEIR_ADVICES
};

struct weir_advice {
    enum weir_advice_kind kind;
    double ratio;             /* predicted images/s over those now; 0 = no prediction */
    bool measured;            /* by this run itself */
    bool if_latency;          /* holds when it is latency that makes reads slow, not bandwidth */
    enum weir_resource limit; /* what is the limit then, where there is a prediction */
    double figure;            /* bytes, images/s, cores: by kind */
    double part;              /* of the frames that fit, 0..1 */
    char flag[64];            /* to type; may be empty */
};

/* Of the time of training; sum 1. */
struct weir_step_shares {
    bool known;
    double wait, forward, backward, optimiser, other;
    double backward_over_forward; /* 1 to 2 is usual; 0 = no backward pass was timed */
};

enum weir_data_bound { WEIR_BOUND_UNKNOWN, WEIR_BOUND_NO, WEIR_BOUND_PARTLY, WEIR_BOUND_STRONGLY };

enum { WEIR_VERDICT_CAUSES = 4, WEIR_VERDICT_ADVICES = 3 };

struct weir_verdict {
    enum weir_data_bound bound;
    double wait; /* of training, without the first batch of the run; -1 = not known */
    int n_causes;
    struct weir_found causes[WEIR_VERDICT_CAUSES]; /* the first holds the run back most */
    int n_advices;
    struct weir_advice advices[WEIR_VERDICT_ADVICES];
    struct weir_step_shares shares;
    bool decode_rule; /* decoding is more than 40 % of a sample's time */
    struct weir_demands demands;
    struct weir_model model;     /* that advices are predicted by; not known where there is none */
    struct weir_found no_cause_; /* written where there is no room for one more, and never read */
    struct weir_advice no_advice_;
};

/* What one run's report cannot know, where somebody has measured it. */
struct weir_verdict_facts {
    double cpu_growth; /* of the CPU time of an image, from one worker to these; 0 = not measured */
};

/* facts may be NULL. */
void weir_verdict_make(struct weir_verdict *verdict, const struct weir_loader_report *report,
                       const struct weir_verdict_facts *facts);

bool weir_verdict_has(const struct weir_verdict *verdict, enum weir_cause cause);

/* Some lines: the sentence, further causes, what would help, the bound, the shares of the step. */
void weir_verdict_print(FILE *out, const struct weir_verdict *verdict, const struct weir_loader_report *report,
                        enum weir_lang lang);
/* Its first words, how long training waited (at most, where only a bound is known), and the sentence on the 40 % rule,
 * for logs that no report can be made from. */
void weir_verdict_lead_print(FILE *out, enum weir_data_bound bound, double wait, bool at_most, bool validation,
                             enum weir_lang lang);
void weir_decode_rule_print(FILE *out, double decode_share, enum weir_data_bound bound, enum weir_lang lang);
enum weir_data_bound weir_data_bound(double wait);
/* "no", "partly", "strongly"; NULL = not known. */
const char *weir_data_bound_name(enum weir_data_bound bound);
/* The member "verdict" of an object that is open in json: docs/log-format.md. */
void weir_verdict_json(struct weir_json *json, const struct weir_verdict *verdict,
                       const struct weir_loader_report *report);

/* Bytes as --decode-cache takes them, rounded up: "221M", from 10 GiB on "11G". */
void weir_cache_bytes_text(char text[24], double bytes);

/* "decode", "slow-camera": as in logs. */
const char *weir_cause_name(enum weir_cause cause);

#endif
