/* loader_report.h: what a run of a loader was like, as tables for people and as JSON for programs: the stage table,
 * threads, queue, reads, decoding, decode cache, GPU, cameras and files, errors.
 *
 *     weir_loader_reports_begin(&reports, loader, &config);      when the first batch is about to be asked for
 *     ... weir_loader_next ...
 *     weir_loader_report(reports, &options, stdout);             at the end, and whenever a table is wanted in between
 *     weir_loader_reports_end(&reports);                         before weir_loader_close
 *
 * Reports are plain data, so that one that was read back from a log prints exactly like the live one. All of it is for
 * the consumer's thread. */
#ifndef WEIR_PIPELINE_REPORT_LOADER_REPORT_H
#define WEIR_PIPELINE_REPORT_LOADER_REPORT_H

#include "pipeline/facts.h"
#include "pipeline/gpu_figures.h"
#include "pipeline/report/epoch_lines.h"
#include "pipeline/report/report_sources.h"
#include "pipeline/report/report_steps.h"
#include "prof/report/report.h"

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#ifdef __cplusplus
extern "C" {
#endif

struct weir_loader;

/* A cache of decoded frames, in the time covered and (what is kept) at its end. */
struct weir_report_cache {
    uint64_t budget_bytes, used_bytes; /* used: its tables included. budget 0 = there is no cache, nothing is printed */
    uint64_t frames;                   /* kept */
    uint64_t hits, misses;
    double saved_s;                 /* work that hits saved, less what copies cost; NAN = not measured */
    uint64_t all_frames, all_bytes; /* of the dataset, and the budget that would keep them all */
    double all_hit_rate;            /* what the hit rate would have been with it, 0..1; -1 = not known */
};

/* One of a GPU's ways to decode. */
struct weir_report_engine {
    char by[48];             /* "7 JPEG engines", "the multiprocessors" */
    uint64_t frames, groups; /* decoded by it, handed over in so many groups */
    double busy;             /* of the time covered, 0..1 */
};

/* Who decoded, where a GPU takes part in it. */
enum { WEIR_REPORT_ENGINES = 2 };
struct weir_report_decode {
    int n_engines; /* 0 = it takes no part */
    struct weir_report_engine engines[WEIR_REPORT_ENGINES];
    uint64_t cpu_frames;      /* by the CPU */
    double cpu_busy;          /* of the workers' time, 0..1; -1 = not known */
    uint64_t sent_back;       /* frames that the GPU did not take, or got wrong */
    char reasons[256];        /* of these: "12 progressive, 3 truncated" */
    uint64_t compared, below; /* its pictures that were compared with the CPU's, and those below the gate */
    double gate_db, least_db; /* the gate, and the lowest of all; at 99 they are identical */
};

/* What a GPU did in the time covered, by its own clock. */
enum { WEIR_REPORT_GPU_ROWS = 8 + WEIR_STAGE_MAX };
struct weir_report_gpu {
    bool used; /* else nothing is printed */
    int number;
    char name[128];
    int n_rows;
    struct weir_report_row rows[WEIR_REPORT_GPU_ROWS];
    double copy_bytes_per_s; /* while copies ran; -1 = none did */
    double overlap;          /* of the copies' time, that in which a step ran, 0..1; -1 = not known */
    double busy;             /* of the time covered, that in which a step or a preparation ran, 0..1 */
    double stall_s;          /* the consumer's stream waited for batches */
    bool sync_steps;         /* each step was waited for before the next */
    uint64_t used_bytes;     /* of its memory, by all programs, at the end; 0 = not known */
    struct weir_report_decode decode;
};

struct weir_report_error {
    char text[512]; /* file, dataset, frame, reason */
    uint64_t count;
};

enum { WEIR_REPORT_ERRORS_MAX = 64 };
/* Frames that went through the HDF5 library, whose helper process serves one worker at a time. */
struct weir_report_fallbacks {
    uint64_t frames;
    double busy;    /* of the time covered, that in which it served, 0..1 */
    double each_s;  /* that takes, a frame */
    double waiting; /* workers that waited for their turn, the mean over the time covered */
};

struct weir_loader_report {
    int epoch_first, epoch_last; /* 1-based epochs that the report covers */
    int epoch_count;             /* epochs of the run; 0 = it was measured by time */
    bool final;                  /* the whole run, else the time since the last report */
    bool interrupted;            /* the run was cut short */
    bool timing;                 /* false: --no-timing, there are no rows */
    double wall_s;               /* time covered */
    double cpu_s;                /* in it, of this process and its HDF5 helper processes */
    struct weir_report prof;     /* what the profiler knows: rows, threads, the machine, its own cost */
    int queue_slots;             /* batches that may be ready at once */
    double queue_mean;           /* ready batches seen by the consumer at each request */
    int queue_min, queue_max;    /* likewise */
    uint64_t queue_samples;      /* requests seen; 0 = no queue figures */
    uint64_t reads, read_bytes;  /* by the io engine and through the library */
    struct weir_report_fallbacks fallbacks;
    struct weir_chunk_counts chunks;
    uint64_t stored_pixels, decoded_pixels; /* of the frames decoded: as stored, and as they left the decoder */
    uint64_t frames_shared;                 /* copied within their batch, not decoded again */
    struct weir_report_cache cache;
    struct weir_report_gpu gpu;
    struct weir_report_sources sources;
    struct weir_report_setup setup;
    struct weir_report_steps steps;
    struct weir_report_epochs first_epoch, later_epochs; /* of those covered; n = 0 with the run measured by time */
    struct weir_report_late late;
    struct weir_report_storage storage;
    struct weir_report_idle idle;
    uint64_t bad_frames;                          /* attempts on frames that could not be read or decoded */
    uint64_t skipped_samples, substituted_frames; /* what --on-error did about them */
    uint64_t bad_episodes;                        /* episodes left out at open */
    uint64_t changed_files;                       /* while they were read: frames of theirs are bad since */
    int n_errors;                                 /* distinct ones kept */
    struct weir_report_error errors[WEIR_REPORT_ERRORS_MAX];
};

/* Adds a stage that a GPU's clock timed, in place of one of its name, unless it has no calls. */
void weir_report_gpu_add(struct weir_report_gpu *gpu, int stage, const struct weir_stage_stats *stats);

/* The tables and all that follows them. English: every stage that was called. Chinese: ACT's stages by total, then
 * Weir's own, then idle time; at most 16 rows, none without calls; what a GPU does is by its clock. */
void weir_loader_report_print(FILE *out, const struct weir_loader_report *report, enum weir_lang lang);
/* The Chinese tables of a program without a loader. */
void weir_loader_report_loop_zh(FILE *out, const struct weir_loader_report *report);
/* The members of a log's line into an object that is open in json, and the whole line, flushed: docs/log-format.md. */
void weir_loader_report_json(struct weir_json *json, const struct weir_loader_report *report);
void weir_loader_report_log(FILE *log, const struct weir_loader_report *report);
/* Frees what a report owns. */
void weir_loader_report_clear(struct weir_loader_report *report);

/* The share of the copies between then and now that ran beside steps; -1 = not known. */
double weir_gpu_copy_overlap(const struct weir_gpu_figures *now, const struct weir_gpu_figures *then);

/* ---- a run's reports ---- */

/* What the reports of a run start from. */
struct weir_loader_reports;

struct weir_loader_reports_config {
    int epochs;         /* of the run; 0 = it is measured by time (weir_loader_reports_restart) */
    const char *folder; /* files are named without it; NULL = whole paths. Copied */
    bool sync_steps;    /* on a GPU the consumer waits for each step before the next, which reports say */
    const struct weir_report_machine *machine; /* as it was when the run began; NULL = it begins here. Copied */
};

/* Begins to count here. *out is owned by the caller. 0 or -ENOMEM. */
int weir_loader_reports_begin(struct weir_loader_reports **out, struct weir_loader *loader,
                              const struct weir_loader_reports_config *config);
/* Forgets what was counted so far: the next report and the final one will cover the time from here on. 0 or -ENOMEM. */
int weir_loader_reports_restart(struct weir_loader_reports *reports);
/* Before weir_loader_close. Accepts NULL. */
void weir_loader_reports_end(struct weir_loader_reports **reports);

/* What a program adds to each report that it makes: called with the figures, behind the tables, and into the object of
 * the log's line. */
struct weir_report_addition {
    void (*begin)(void *user, struct weir_loader_report *report); /* before any of the others; may be NULL */
    void (*print)(void *user, FILE *out, const struct weir_loader_report *report, enum weir_lang lang);
    void (*json)(void *user, struct weir_json *json, const struct weir_loader_report *report);
    void *user;
};

struct weir_loader_report_options {
    bool final;       /* the whole run; weir_loader_finish was called before. Else the time since the last report that
                         was not final */
    bool interrupted; /* the run was cut short */
    int epochs_done;  /* of the run so far, the one that was cut short included */
    enum weir_lang lang;
    bool json;                                   /* one line of JSON in place of tables */
    FILE *log;                                   /* gets that line, too; NULL = nobody does */
    const struct weir_report_addition *addition; /* NULL = nothing is added */
    const struct weir_report_idle *idle;         /* of a trace of the run; NULL = there is none */
};

/* Makes a report, writes it to out and flushes it. 0 or -ENOMEM; whether it could be written is for the caller to ask
 * (ferror). */
int weir_loader_report(struct weir_loader_reports *reports, const struct weir_loader_report_options *options,
                       FILE *out);

/* Measures what storage gives beside the run, for 0.2 s; for the beginning of an addition. */
void weir_loader_probe_storage(struct weir_loader *loader, struct weir_report_storage *storage);

#ifdef __cplusplus
}
#endif

#endif
