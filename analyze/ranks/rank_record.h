/* rank_record.h: the figures of one rank of a distributed run over some epochs, per step, and the text that ranks send
 * to rank 0. */
#ifndef WEIR_ANALYZE_RANKS_RANK_RECORD_H
#define WEIR_ANALYZE_RANKS_RANK_RECORD_H

#include "weir/base.h"
#include "weir/report.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { WEIR_RANK_STAGES = 24, WEIR_RANK_RECORDS = 4, WEIR_RANK_HOST = 64 };

struct weir_rank_stage {
    char name[40];
    char side[16]; /* as weir_report_side_name: whose time it is */
    double s;      /* per step, without the stages inside it */
};

/* Times are in seconds per step unless stated otherwise. -1 = unknown. */
struct weir_rank_record {
    int table;                   /* number of this record among those of its rank, from 1 */
    int epoch_first, epoch_last; /* numbered from 1; 0 = unknown */
    uint64_t steps;
    double step_s;               /* from one request for a batch to the next */
    double data_s;               /* part of step_s spent waiting for data */
    double own_s;                /* part of the rest in which the loop's thread had a core or was ready for one */
    double core_wait_s;          /* part of own_s without a free core */
    double throttled_s;          /* part of own_s with the CPU quota used up */
    double work_s, read_s;       /* work of all loading threads; part of it spent reading files */
    double stalled_s;            /* loop and loading threads without a free core, or throttled; waits included */
    double compute_s;            /* their CPU time, without waits */
    double core_wait, throttled; /* as fractions of the time of the loop and the loading threads */
    double cores, quota_cores;   /* usable cores of this rank; CPU quota, 0 = none */
    double machine_cores;        /* usable cores, which local ranks share */
    double others_cores;         /* of these, kept busy by other processes, also by other ranks */
    double device_bytes_per_s;   /* read from storage */
    bool gpu;                    /* batches are in GPU memory */
    char slow_file[128];         /* file or worker that caused most of the waits; empty = none */
    char slow_worker[16];
    int n_stages;
    struct weir_rank_stage stages[WEIR_RANK_STAGES]; /* those with the most time, in the report's order */
};

/* Fills in the record from a report. Returns false if the report has no steps. */
bool weir_rank_record_fill(struct weir_rank_record *record, const struct weir_loader_report *report);
/* Returns the record's time in the stage of this name and side; 0 without it. */
double weir_rank_record_stage_s(const struct weir_rank_record *record, const struct weir_rank_stage *stage);
/* Writes the members of the record into the open object. */
void weir_rank_record_json(struct weir_json *json, const struct weir_rank_record *record);

/* A rank and its latest records. */
struct weir_rank_status {
    int rank, world_size, pid;
    char host[WEIR_RANK_HOST];
    char place[48]; /* names the machine since its boot, and the PID namespace */
    uint64_t start; /* of the process, which tells it from a later one with the same PID */
    bool ended;     /* it has said that there will be no further records */
    int n_records;
    struct weir_rank_record records[WEIR_RANK_RECORDS]; /* oldest first */
};

/* Fills in the calling process. */
void weir_rank_status_here(struct weir_rank_status *status, int rank, int world_size);
/* Appends a record; the oldest one goes if there are too many. */
void weir_rank_status_add(struct weir_rank_status *status, const struct weir_rank_record *record);
/* Returns whether the process has ended, if it is one of this machine; false if that is unknown. */
bool weir_rank_status_dead(const struct weir_rank_status *status);

/* Writes the status as text, of at most size - 1 bytes. If it does not fit, the last stages are left out. */
void weir_rank_status_write(const struct weir_rank_status *status, char *text, size_t size);
/* Reads such a text, which can come from a newer version or be damaged: unknown lines are skipped, and every text and
 * number is bounded. Returns 0 or -EBADMSG. */
int weir_rank_status_read(struct weir_rank_status *status, const char *text);

#endif
