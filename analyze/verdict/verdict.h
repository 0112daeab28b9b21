/* verdict.h: determines from a run's report what limits the run, the evidence for it, and what would help.
 *
 *     struct weir_verdict verdict;
 *     weir_verdict_make(&verdict, report, NULL);
 *     weir_verdict_print(stdout, &verdict, report);
 *
 * A verdict depends only on the report, so a report that is read back from a log gets the same verdict.
 * docs/internals/verdict.md explains the rules, the thresholds, and how similar causes are distinguished. These
 * functions read no clock and no file. They can be called on any thread. */
#ifndef WEIR_ANALYZE_VERDICT_VERDICT_H
#define WEIR_ANALYZE_VERDICT_VERDICT_H

#include "analyze/causes/diagnosis.h"
#include "analyze/causes/thresholds.h"
#include "analyze/prediction/demands.h"
#include "analyze/prediction/model.h"
#include "weir/base.h"
#include "weir/report.h"

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

/* Why a verdict cannot name a cause. */
enum weir_doubt {
    WEIR_DOUBT_NO_TIMING,
    WEIR_DOUBT_NO_FIGURES, /* the log comes from a version without these figures, or no batch or image was delivered */
    WEIR_DOUBT_TOO_SHORT,
    WEIR_DOUBT_OTHER,
    WEIR_DOUBT_EPOCHS,
    WEIR_DOUBT_SAMPLED, /* too few samples of the CPU clock */
    WEIR_DOUBT_NO_RESOURCE,
};

/* What limits a consumer that does not wait for data. */
enum weir_consumer {
    WEIR_CONSUMER_UNKNOWN,     /* only GPU events or a trace would show it */
    WEIR_CONSUMER_COMPUTING,   /* the GPU or the thread's core is busy */
    WEIR_CONSUMER_SYNC_BOUND,  /* the host waits for each step before it launches the next */
    WEIR_CONSUMER_LAUNCH_BOUND /* the GPU is idle because of launches or allocations; the host does not wait */
};

/* A cause and the evidence for it. */
struct weir_verdict_cause {
    enum weir_cause cause; /* selects the union's member */
    double share;          /* main evidence, a fraction whose meaning depends on the cause */
    double gain;           /* predicted images/s without this cause over current images/s; 0 = no prediction */
    union {
        struct {
            enum weir_doubt why;
            uint64_t batches; /* TOO_SHORT: number of training batches */
            double seconds;
            double slowest, fastest;    /* EPOCHS: images/s */
            double cores_used, at_work; /* NO_RESOURCE: parts of the usable cores and of the workers' time */
        } doubt;                        /* for CANNOT_TELL */
        struct {
            enum weir_consumer kind;
            double busy;      /* fraction of the time during which the GPU (or, without one, the thread) computed */
            double core_wait; /* fraction of the thread's time spent waiting for a core; 0 if it is small */
            bool traced;      /* a trace shows the reasons for the GPU's idle time */
            double idle_most; /* if traced: fraction of the traced time that the main reason takes */
        } consumer;
        struct {
            double own_cores, usable;
        } compute; /* for DECODE, INFLATE, CONVERT, READ_CPU and OTHER_CPU */
        struct {
            double p50_s, bytes_per_s;
        } storage; /* for STORAGE, STORAGE_BANDWIDTH and STORAGE_LATENCY */
        struct {
            double p50_s, p99_s;
        } tail; /* for STORAGE_TAIL */
        struct {
            char name[256];
            double each_s, others_s;
            bool decode; /* the camera's images are slow to decode rather than to read */
        } source;        /* for SLOW_CAMERA and SLOW_FILE */
        struct {
            char name[16];
            double others_share;
            bool on_core; /* the worker is busy rather than asleep */
        } worker;         /* for SLOW_WORKER */
        struct {
            double waiting; /* mean number of waiting workers */
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
        } count; /* for TOO_FEW_WORKERS, BUSY_WORKERS and TOO_MANY_WORKERS */
        struct {
            double periods_share, cores;
        } quota;
        struct {
            double steal_cores;
        } host;
        struct {
            double others_cores, own_cores; /* others_cores: -1 = unknown */
        } neighbours;
        struct {
            double first_rate, later_rate; /* images/s; later_rate is 0 without later epochs */
        } cold;
        struct {
            double first_byte_s, least_s; /* mean and min time to the first byte */
            double bytes_per_s;
        } server; /* for FEW_IN_FLIGHT and SERVER_* */
    };
};

struct weir_verdict_advice {
    enum weir_advice_kind kind;
    double ratio;             /* predicted images/s over current images/s; 0 = no prediction */
    bool measured;            /* the run itself shows the ratio, so it is not a prediction */
    bool if_latency;          /* the prediction holds only if latency, not bandwidth, makes reads slow */
    enum weir_resource limit; /* limit after the change; valid if there is a prediction */
    double figure;            /* bytes, images/s, cores, pictures or seconds, depending on kind */
    double part;              /* fraction of the frames that fit, 0..1 */
    char flag[64];            /* command-line option; can be empty */
};

/* Fractions of training time. They add up to 1. */
struct weir_step_shares {
    bool known;
    double wait, forward, backward, optimiser;
    double release; /* of the batch, by a loop of weir run; 0 with a GPU, which computes meanwhile */
    double unattributed;
    double backward_over_forward; /* usually 1 to 2; 0 = no backward pass was timed */
};

enum { WEIR_VERDICT_CAUSES = 4, WEIR_VERDICT_ADVICES = 5 };

/* Measurements from other runs, which a run's own report cannot contain. */
struct weir_verdict_facts {
    double cpu_growth;   /* CPU time per image over that with one worker; 0 = not measured */
    double more_workers; /* images/s with more workers over those of this run; 0 = not measured */
};

struct weir_verdict {
    enum weir_data_bound bound;
    double wait; /* fraction of training time spent waiting for data, without the run's first batch; -1 = unknown */
    int n_causes;
    struct weir_verdict_cause
        causes[WEIR_VERDICT_CAUSES]; /* in order of decreasing gain; the first one limits the run most */
    int n_advices;
    struct weir_verdict_advice advices[WEIR_VERDICT_ADVICES];
    struct weir_step_shares shares;
    bool decode_rule; /* decoding takes more than 40 % of a sample's time */
    struct weir_verdict_facts facts;
    struct weir_demands demands;
    struct weir_model model; /* predicts gains; can be unknown */
};

/* Makes the verdict of a report. facts can be NULL. */
void weir_verdict_make(struct weir_verdict *verdict, const struct weir_loader_report *report,
                       const struct weir_verdict_facts *facts);

/* If a loader has delivered only validation batches, treats them as training batches, so that it gets a verdict. */
void weir_verdict_judge_validation(struct weir_report_steps *steps);

bool weir_verdict_has(const struct weir_verdict *verdict, enum weir_cause cause);

/* Prints the main cause, further causes, advice, the limits, and the shares of the step, wrapped at the width of the
 * output. They are in English even if the table is in another language. */
void weir_verdict_print(FILE *out, const struct weir_verdict *verdict, const struct weir_loader_report *report);
/* Writes the same text with one line per cause, advice and so on, however long, and without colour. */
void weir_verdict_lines(FILE *out, const struct weir_verdict *verdict, const struct weir_loader_report *report);

/* Adds the member "verdict" (see docs/internals/log-format.md) to the open JSON object. */
void weir_verdict_json(struct weir_json *json, const struct weir_verdict *verdict,
                       const struct weir_loader_report *report);

/* Formats a size for --decode-cache, rounded up: "221M", or "11G" from 10 GiB on; in a sentence "221 MiB", "11 GiB". */
void weir_cache_bytes_text(char text[24], double bytes, bool flag);

/* ---- verdicts with tables and in logs ---- */

/* Adds a verdict to the reports of a loader. Register `addition` with weir_loader_report, and keep the structure at the
 * same address until the last report. */
struct weir_added_verdict {
    struct weir_report_addition addition;
    struct weir_loader *loader_;
    struct weir_verdict verdict_; /* verdict of the report that is being written */
};

/* loader (can be NULL) is borrowed. Its storage is probed if the last report alone does not show why reads are slow. */
void weir_add_verdict(struct weir_added_verdict *added, struct weir_loader *loader);

/* Returns whether the last report's verdict is anything but "cannot tell". Call it after the report was written. */
bool weir_added_verdict_tells(const struct weir_added_verdict *added);
/* Returns the data wait of the last report, as a fraction of the training time; -1 = unknown. */
double weir_added_verdict_wait(const struct weir_added_verdict *added);

/* Print the verdict of a report that was read from a log, and write it as JSON. */
void weir_verdict_of_log(FILE *out, const struct weir_loader_report *report);
void weir_verdict_of_log_json(struct weir_json *json, const struct weir_loader_report *report);

#endif
