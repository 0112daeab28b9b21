/* verdict.h: what holds a run back, with what evidence, and what would help, from the figures of its report.
 *
 *     struct weir_verdict verdict;
 *     weir_verdict_make(&verdict, report, NULL);
 *     weir_verdict_print(stdout, &verdict, report);
 *
 * A verdict is a function of the report alone, so that one that was read back from a log gets the same. docs/verdict.md
 * has the rules, the thresholds and what tells neighbours apart. Nothing here reads a clock or a file. Any thread. */
#ifndef WEIR_ANALYZE_VERDICT_VERDICT_H
#define WEIR_ANALYZE_VERDICT_VERDICT_H

#include "analyze/prediction/demands.h"
#include "analyze/prediction/model.h"
#include "weir/base.h"
#include "weir/report.h"

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

/* Thresholds; docs/verdict.md explains each. Fractions are of the time that their names say. */
#define WEIR_VERDICT_WAIT_LEAST    0.05  /* of training: less is not data-bound */
#define WEIR_VERDICT_WAIT_STRONG   0.20  /* of training: more is strongly data-bound */
#define WEIR_VERDICT_TRACED_LEAST  0.05  /* of the traced time: less is no cause of the GPU's idle time */
#define WEIR_VERDICT_BATCHES_LEAST 20    /* training batches */
#define WEIR_VERDICT_SECONDS_LEAST 0.5   /* of training */
#define WEIR_VERDICT_BATCHES_LONG  8     /* enough, when they took at least: */
#define WEIR_VERDICT_SECONDS_LONG  1.0   /* of training */
#define WEIR_VERDICT_OTHER_MOST    0.10  /* of the workers' time: not accounted for */
#define WEIR_VERDICT_EPOCHS_APART  2.0   /* images/s of the fastest later epoch over the slowest */
#define WEIR_VERDICT_EPOCH_LEAST   0.2   /* s: shorter epochs differ by chance */
#define WEIR_VERDICT_THROTTLED     0.10  /* of the workers' time, or of the quota's periods */
#define WEIR_VERDICT_STEAL         0.05  /* of the usable cores */
#define WEIR_VERDICT_RUNNABLE      0.30  /* of the workers' time: on a core, or ready for one */
#define WEIR_VERDICT_CORE_WAIT     0.10  /* of the workers' time */
#define WEIR_VERDICT_OTHERS        0.10  /* of the usable cores, by other processes */
#define WEIR_VERDICT_OTHERS_MANY   0.50  /* then half of WEIR_VERDICT_CORE_WAIT is enough */
#define WEIR_VERDICT_CORES_BUSY    0.90  /* of the usable cores */
#define WEIR_VERDICT_WORKERS_BUSY  0.90  /* of the workers' time */
#define WEIR_VERDICT_BLOCKED       0.10  /* of the workers' time */
#define WEIR_VERDICT_IDLE          0.10  /* of the workers' time */
#define WEIR_VERDICT_SERIAL_BUSY   0.80  /* of the time: the helper process, the bus, the GPU's engines */
#define WEIR_VERDICT_DECODE_RULE   0.40  /* of a sample's time */
#define WEIR_VERDICT_COLD_BYTES    0.50  /* of an epoch's bytes, from storage */
#define WEIR_VERDICT_SLOW_TIMES    4.0   /* a camera's median read or a file's mean read, over that of the others */
#define WEIR_VERDICT_SLOW_SHARE    0.30  /* of all reading, by the slow camera or file */
#define WEIR_VERDICT_TAIL_TIMES    20.0  /* p99 over p50 of reads */
#define WEIR_VERDICT_TAIL_SHARE    0.50  /* of all reading, by the slowest tenth */
#define WEIR_VERDICT_HALF_SIZE     0.85  /* CPU time of decoding to half the width and height, over that of the whole */
#define WEIR_VERDICT_BACKWARD      2.0   /* backward over forward: more is a backward bottleneck */
#define WEIR_VERDICT_CPU_GROWTH    1.30  /* CPU time of an image, over that with one worker */
#define WEIR_VERDICT_TAKEN_GAIN    1.10  /* predicted, for a cause that takes cores away to precede their use */
#define WEIR_VERDICT_CONVERT       0.10  /* of the workers' CPU time: --dtype u8 is worth a line */
#define WEIR_VERDICT_ENGINE_PIXELS 1.1e9 /* pixels/s of one JPEG engine: H200, 640x480 at quality 95 */
#define WEIR_VERDICT_INDEX_S       1.0   /* s that opening took, and */
#define WEIR_VERDICT_INDEX_PART    0.10  /* of the time covered by the report: --index is worth a line */

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

/* Limit of the consumer when it does not wait for data. */
enum weir_consumer {
    WEIR_CONSUMER_UNKNOWN,     /* only GPU events or a trace can tell */
    WEIR_CONSUMER_COMPUTING,   /* a GPU, or its own core, is busy */
    WEIR_CONSUMER_SYNC_BOUND,  /* waits for each step before the next */
    WEIR_CONSUMER_LAUNCH_BOUND /* the GPU is idle and nobody waits: launches, or allocations */
};

/* A cause with its evidence. */
struct weir_verdict_cause {
    enum weir_cause cause; /* selects the member of the union */
    double share;          /* the most telling figure: a fraction; its meaning depends on the cause */
    double gain;           /* predicted images/s without this cause over those now; 0 = no prediction */
    union {
        struct {
            enum weir_doubt why;
            uint64_t batches; /* TOO_SHORT: of training */
            double seconds;
            double slowest, fastest;    /* EPOCHS: images/s */
            double cores_used, at_work; /* NO_RESOURCE: fractions of the usable cores and of the workers' time */
        } doubt;                        /* CANNOT_TELL */
        struct {
            enum weir_consumer kind;
            double busy;      /* fraction of the time that the GPU, or the consumer's thread, computed */
            double core_wait; /* fraction of the thread's time waiting for a core; 0 = little */
            bool traced;      /* the GPU's idle time was traced: */
            double idle_most; /* fraction of the traced time by the main reason */
        } consumer;
        struct {
            double own_cores, usable;
        } compute; /* DECODE, INFLATE, CONVERT, READ_CPU, OTHER_CPU */
        struct {
            double p50_s, bytes_per_s;
        } storage; /* STORAGE, STORAGE_BANDWIDTH, STORAGE_LATENCY */
        struct {
            double p50_s, p99_s;
        } tail; /* STORAGE_TAIL */
        struct {
            char name[256];
            double each_s, others_s;
            bool decode; /* a camera whose images are slow to decode, not to read */
        } source;        /* SLOW_CAMERA, SLOW_FILE */
        struct {
            char name[16];
            double others_share;
            bool on_core; /* the worker is busy, not asleep */
        } worker;         /* SLOW_WORKER */
        struct {
            double waiting; /* workers, on average */
        } library;
        struct {
            double bytes_per_s;
        } bus;
        struct {
            int slots;
            bool uneven_steps;
        } bursts;
        struct {
            double workers, cores;
        } count; /* TOO_FEW_WORKERS, TOO_MANY_WORKERS */
        struct {
            double periods_share, cores;
        } quota;
        struct {
            double steal_cores;
        } host;
        struct {
            double others_cores, own_cores; /* others: -1 = not known */
        } neighbours;
        struct {
            double first_rate, later_rate; /* images/s; later: 0 = there were no later epochs */
        } cold;
    };
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
    WEIR_ADVICE_FREE_CORES, /* of other processes */
    WEIR_ADVICE_HOST,       /* that steals no time */
    WEIR_ADVICE_QUOTA,
    WEIR_ADVICE_WARM,    /* later epochs, measured */
    WEIR_ADVICE_LOOK_AT, /* a camera, a file, a worker's core */
    WEIR_ADVICE_FASTER_STEP,
    WEIR_ADVICE_HYBRID,  /* --decoder hybrid */
    WEIR_ADVICE_TRACE,   /* --profile */
    WEIR_ADVICE_LONGER,  /* a longer run */
    WEIR_ADVICE_ENGINES, /* --decoder auto: the GPU's JPEG engines are idle */
    WEIR_ADVICE_INDEX,   /* --index: keep the result of opening */
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

/* Fractions of training time; their sum is 1. */
struct weir_step_shares {
    bool known;
    double wait, forward, backward, optimiser, unattributed;
    double backward_over_forward; /* 1 to 2 is usual; 0 = no backward pass was timed */
};

enum weir_data_bound { WEIR_BOUND_UNKNOWN, WEIR_BOUND_NO, WEIR_BOUND_PARTLY, WEIR_BOUND_STRONGLY };

enum { WEIR_VERDICT_CAUSES = 4, WEIR_VERDICT_ADVICES = 5 };

struct weir_verdict {
    enum weir_data_bound bound;
    double wait; /* of training, without the first batch of the run; -1 = not known */
    int n_causes;
    struct weir_verdict_cause causes[WEIR_VERDICT_CAUSES]; /* by gain: the first limits the run most */
    int n_advices;
    struct weir_advice advices[WEIR_VERDICT_ADVICES];
    struct weir_step_shares shares;
    bool decode_rule; /* decoding is more than 40 % of a sample's time */
    struct weir_demands demands;
    struct weir_model model; /* predicts gains; may be unknown */
};

/* Measurements that one run's report does not contain; from other runs. */
struct weir_verdict_facts {
    double cpu_growth; /* of the CPU time of an image, from one worker to these; 0 = not measured */
};

/* facts may be NULL. */
void weir_verdict_make(struct weir_verdict *verdict, const struct weir_loader_report *report,
                       const struct weir_verdict_facts *facts);

bool weir_verdict_has(const struct weir_verdict *verdict, enum weir_cause cause);

/* Prints some lines: the sentence, further causes, advice, the limits, the shares of the step. English in every
 * language of the tables. */
void weir_verdict_print(FILE *out, const struct weir_verdict *verdict, const struct weir_loader_report *report);
/* Prints the beginning: how long training waited (at most, where only a limit is known); and the sentence on the 40 %
 * rule. Also for logs that no report can be made from. */
void weir_verdict_lead_print(FILE *out, enum weir_data_bound bound, double wait, bool at_most, bool validation);
void weir_decode_rule_print(FILE *out, double decode_share, enum weir_data_bound bound);
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

/* ---- verdicts after tables and in logs ---- */

/* For weir_loader_report, which takes the addition in it; it stays where it is until then. */
struct weir_added_verdict {
    struct weir_report_addition addition;
    struct weir_loader *loader_;
    struct weir_verdict verdict_; /* of the report that is being written */
};

/* loader (may be NULL) is borrowed, and probed when the last report cannot tell otherwise what storage lacks. */
void weir_add_verdict(struct weir_added_verdict *added, struct weir_loader *loader);

/* After the report: the verdict is another than "cannot tell". */
bool weir_added_verdict_tells(const struct weir_added_verdict *added);

/* The same for a report that was read back. */
void weir_verdict_of_log(FILE *out, const struct weir_loader_report *report);
void weir_verdict_of_log_json(struct weir_json *json, const struct weir_loader_report *report);

#endif
