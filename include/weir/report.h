/* report.h: reports of a loader's run, as tables for people and JSON for programs: the stage table, threads, queue,
 * reads, decoding, decode cache, GPU, cameras and files, errors.
 *
 *     weir_loader_reports_begin(&reports, loader, &config);      before the first weir_loader_next
 *     ... weir_loader_next ...
 *     weir_loader_report(reports, &options, stdout);             at the end, and at any time in between
 *     weir_loader_reports_end(&reports);                         before weir_loader_close
 *
 * Reports are plain data, so that one read back from a log prints exactly like the live one. All calls are for the
 * consumer's thread. */
#ifndef WEIR_REPORT_H
#define WEIR_REPORT_H

#include "weir/loader.h"
#include "weir/profiler.h"

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#ifdef __cplusplus
extern "C" {
#endif

/* ---- cameras and files ---- */

enum { WEIR_REPORT_CAMERAS = 16, WEIR_REPORT_FILES = 3, WEIR_REPORT_CALLS = 20, WEIR_REPORT_CALLS_SHOWN = 10 };

/* Reads, or decodes. */
struct weir_report_source {
    uint64_t count, bytes;
    double total_s, p50_s, p99_s, max_s;
};

struct weir_report_camera {
    char name[64];
    struct weir_report_source read, decode;
};

/* Reads of one file. */
struct weir_report_file {
    char name[256];
    uint64_t count;
    double mean_s, max_s;
};

struct weir_report_call {
    char file[256]; /* with the episode's group, if any */
    char camera[64];
    int64_t t;
    bool decode; /* false: a read */
    double s;
};

/* During the time covered. Nothing is printed without reads and decodes. */
struct weir_report_sources {
    int n_cameras;
    struct weir_report_camera cameras[WEIR_REPORT_CAMERAS];
    uint64_t files_read;   /* number of files read from */
    double files_median_s; /* median of their mean times */
    int n_files;           /* the slowest by mean, slowest first */
    struct weir_report_file files[WEIR_REPORT_FILES];
    int n_calls; /* the longest, longest first: at most ten reads and ten decodes */
    struct weir_report_call calls[WEIR_REPORT_CALLS];
};

/* ---- steps, setup, late batches, storage ----
 *
 * The consumer's batches and waits, the run's setup, and the tasks that completed late batches: the evidence of
 * analyze/verdict/verdict.h. */

/* A step lasts from one request for a batch to the next, or to the report. */
struct weir_report_steps {
    uint64_t train_batches, val_batches; /* delivered during the time covered; 0 = unknown */
    uint64_t images;                     /* in both */
    double train_s, val_s;               /* duration of their steps */
    double train_wait_s, val_wait_s;     /* of that, waiting for data, including the GPU stream's waits */
    double first_wait_s;                 /* of that, for the first batch of the run, while the pipeline fills */
    bool validation;                     /* there is no training part: train_* describe validation */
};

/* One or several epochs. */
struct weir_report_epochs {
    int n;
    uint64_t images;
    double s, wait_s;        /* training and validation */
    double slowest, fastest; /* images/s, of whole epochs */
    double device_bytes;     /* read from storage; -1 = unknown. Includes batches prefetched */
};

struct weir_report_setup {
    bool known; /* false: the log is older than these figures */
    int workers, slots, batch_size, images_per_sample;
    int device;        /* number of the GPU; -1 = none */
    int width, height; /* of the first camera's images, as stored */
    int out_width, out_height;
    bool normalised, encoded; /* images become floats on the CPU; frames are stored as JPEGs or PNGs */
    bool sizes_differ;        /* between cameras, as stored */
    bool reads_ahead;         /* an engine with many reads in flight ahead of the workers */
    bool direct;              /* reads bypass the page cache */
    char decoder[24], io[16];
    enum weir_frame_kind kind;  /* of the first frame; WEIR_FRAME_IMAGE: encoded, and not known */
    uint64_t image_bytes;       /* per image in a batch, mean of the cameras; 0 = unknown */
    uint64_t frames_bytes;      /* decode cache that would hold all frames of the dataset */
    uint64_t memory_free_bytes; /* when the report was made; 0 = unknown */
    double cached_at_start;     /* fraction of the dataset before the first read; -1 = unknown */
    int jpeg_engines;           /* of the GPU; 0 = none, or unknown */
    bool indexed;               /* the index file covered all files */
    double index_s;             /* time to open the dataset */
    double copy_bytes_per_s;    /* memory to memory, by one thread; 0 = not measured */
};

/* With fewer training batches there is no verdict, and copy_bytes_per_s is not measured. */
enum { WEIR_REPORT_BATCHES_LEAST = 8 };

/* Batches that the consumer waited for, by the last task of each, which the whole wait is attributed to. */
struct weir_report_late {
    uint64_t batches;                                 /* 0 = none, or unknown (completed by a GPU) */
    double wait_s;                                    /* for these batches */
    double task_s;                                    /* duration of their last tasks */
    double read_s;                                    /* of that, reading */
    double longest_wait_s;                            /* for one batch */
    char camera[64];                                  /* with the most waiting; empty = unknown */
    char file[256];                                   /* with the most waiting, without the dataset's folder */
    char worker[16];                                  /* with the most waiting */
    double camera_wait_s, file_wait_s, worker_wait_s; /* for tasks of these three */
};

struct weir_report_storage {
    double device_bytes; /* read from storage by the process during the time covered; -1 = unknown */
    /* Measured when the report was made, on frames dropped from the page cache (weir_loader_probe_storage): */
    int probe_depth;                     /* concurrent reads; 0 = not measured */
    double probe_small_s, probe_whole_s; /* a single read of 4 KiB, and of a frame */
    double probe_bytes_per_s;            /* of frames, with that many concurrent reads */
};

/* Causes of a GPU's idle time in the steps traced last, as fractions of the traced time (docs/trace-averages.md). */
struct weir_report_idle {
    double traced_s; /* 0 = no trace of a GPU */
    double busy, launching, sync, data, allocating, queued, other;
    double delay_p50_s, delay_p99_s; /* of launches into an empty queue; -1 = none */
    double kernels_per_step;         /* -1 = unknown */
};

/* ---- epoch lines: one line per epoch, and one at the first batch ---- */

/* Source of an epoch's bytes: almost none of the dataset was in the page cache when it began, almost all, or some; or
 * reads bypassed the cache. */
enum weir_reads { WEIR_READS_UNKNOWN, WEIR_READS_COLD, WEIR_READS_WARM, WEIR_READS_PARTLY, WEIR_READS_DIRECT };

struct weir_epoch_line {
    int epoch, epoch_count; /* 1-based */
    double total_s, train_s, val_s;
    double data_wait_fraction; /* 08 / time of the training part, including the GPU stream's waits */
    double samples_per_s, images_per_s;
    uint64_t peak_rss_bytes;
    bool interrupted; /* the epoch was cut short */
    enum weir_reads reads;
    double cached_fraction;       /* of the dataset, when the epoch began; -1 = unknown */
    bool gpu;                     /* the next two are known */
    double gpu_busy_fraction;     /* of the epoch's time, with a step or a preparation running */
    double copy_overlap_fraction; /* of the copies' time, with a step running; -1 = unknown */
    bool trained;                 /* the next two are known */
    double train_loss, val_loss;  /* means over samples; NAN = no samples */
};

/* One line per epoch. The Chinese one matches grep "Epoch.*总耗时" and grep "耗时:". */
void weir_epoch_print(FILE *out, const struct weir_epoch_line *line, enum weir_lang lang);

/* Time until the first batch; each time includes those after it. */
struct weir_start_line {
    double first_batch_s, open_s, index_s;
    int files, files_from_index;
};
void weir_start_print(FILE *out, const struct weir_start_line *line);

/* Result of weir run --seconds: a part of the run, across epochs. */
struct weir_measured_line {
    double seconds, warm_up_s; /* seconds 0: the run ended earlier */
    uint64_t batches, samples, images;
    double samples_per_s, images_per_s;
    double data_wait_fraction; /* of the seconds, including the GPU stream's waits */
    uint64_t peak_rss_bytes;
    enum weir_reads reads;
    double cached_fraction; /* of the dataset, when the run began; -1 = unknown */
};
void weir_measured_print(FILE *out, const struct weir_measured_line *line);

/* Write a line of the log, one JSON object each, and flush (docs/log-format.md). */
void weir_start_log(FILE *log, const struct weir_start_line *line);
void weir_epoch_log(FILE *log, const struct weir_epoch_line *line);
void weir_measured_log(FILE *log, const struct weir_measured_line *line);
/* Write the same members into the open object. */
void weir_start_json(struct weir_json *json, const struct weir_start_line *line);
void weir_epoch_json(struct weir_json *json, const struct weir_epoch_line *line);
/* "cold", "warm", "partly", "direct"; NULL = unknown. */
const char *weir_report_reads_name(enum weir_reads reads);

struct weir_loader;

/* ---- the report ---- */

/* A decode cache during the time covered, and its contents at the end. */
struct weir_report_cache {
    uint64_t budget_bytes, used_bytes; /* used includes tables. budget 0 = no cache, nothing is printed */
    uint64_t frames;                   /* in the cache */
    uint64_t hits, misses;
    double saved_s;                 /* work saved by hits minus the cost of copies; NAN = not measured */
    uint64_t all_frames, all_bytes; /* of the dataset, and the budget that would hold them all */
    double all_hit_rate;            /* hit rate with that budget, 0..1; -1 = unknown */
};

/* One decoder of a GPU. */
struct weir_report_engine {
    char by[48];             /* "7 JPEG engines", "the multiprocessors" */
    uint64_t frames, groups; /* decoded; groups are decode batches */
    double busy;             /* fraction of the time covered */
};

/* Division of decoding between GPU and CPU. */
enum { WEIR_REPORT_ENGINES = 2 };
struct weir_report_decode {
    int n_engines; /* 0 = the GPU decodes nothing */
    struct weir_report_engine engines[WEIR_REPORT_ENGINES];
    uint64_t cpu_frames;      /* decoded by the CPU */
    double cpu_busy;          /* fraction of the workers' time; -1 = unknown */
    uint64_t sent_back;       /* frames that the GPU refused or decoded wrongly */
    char reasons[256];        /* their reasons: "12 progressive, 3 truncated" */
    uint64_t compared, below; /* images compared with the CPU's, and those below the limit */
    double gate_db, least_db; /* the limit, and the lowest of all; 99 = identical */
};

/* A GPU during the time covered, by its own clock. */
enum { WEIR_REPORT_GPU_ROWS = 8 + WEIR_STAGE_MAX };
struct weir_report_gpu {
    bool used; /* false: nothing is printed */
    int number;
    char name[128];
    int n_rows;
    struct weir_report_row rows[WEIR_REPORT_GPU_ROWS];
    double copy_bytes_per_s; /* while copies ran; -1 = no copies */
    double overlap;          /* fraction of the copies' time with a step running; -1 = unknown */
    double busy;             /* fraction of the time covered with a step or a preparation running */
    double stall_s;          /* time that the consumer's stream waited for batches */
    bool sync_steps;         /* the consumer waits for each step before the next */
    uint64_t used_bytes;     /* of its memory, by all programs, at the end; 0 = unknown */
    struct weir_report_decode decode;
};

struct weir_report_error {
    char text[512]; /* file, dataset, frame, reason */
    uint64_t count;
};

enum { WEIR_REPORT_ERRORS_MAX = 64 };
/* Frames read through the HDF5 library, whose helper process serves one worker at a time. */
struct weir_report_fallbacks {
    uint64_t frames;
    double busy;    /* fraction of the time covered that it was serving */
    double each_s;  /* time per frame */
    double waiting; /* mean number of workers waiting for their turn */
};

struct weir_loader_report {
    int epoch_first, epoch_last; /* 1-based epochs covered */
    int epoch_count;             /* epochs of the run; 0 = the run is measured by time */
    bool final;                  /* covers the whole run, else the time since the last report */
    bool interrupted;            /* the run was interrupted */
    bool timing;                 /* false: --no-timing, there are no rows */
    double wall_s;               /* time covered */
    double cpu_s;                /* of this process and its HDF5 helper processes */
    struct weir_report prof;     /* rows, threads, machine, the profiler's own cost */
    int queue_slots;             /* batches that can be ready at a time */
    double queue_mean;           /* ready batches at each request */
    int queue_min, queue_max;    /* ready batches at a request */
    uint64_t queue_samples;      /* requests; 0 = no queue figures */
    uint64_t reads, read_bytes;  /* by the I/O engine and through the HDF5 library */
    struct weir_report_fallbacks fallbacks;
    struct weir_chunk_counts chunks;
    uint64_t stored_pixels, decoded_pixels; /* of decoded frames: as stored, and as decoded */
    uint64_t frames_shared;                 /* copied within their batch instead of decoded again */
    struct weir_report_cache cache;
    struct weir_report_gpu gpu;
    struct weir_report_sources sources;
    struct weir_report_setup setup;
    struct weir_report_steps steps;
    struct weir_report_epochs first_epoch, later_epochs; /* of those covered; n = 0 if the run is measured by time */
    struct weir_report_late late;
    struct weir_report_storage storage;
    struct weir_report_idle idle;
    uint64_t bad_frames;                          /* failed attempts to read or decode a frame */
    uint64_t skipped_samples, substituted_frames; /* under --on-error */
    uint64_t bad_episodes;                        /* left out at open */
    uint64_t changed_files;                       /* changed while they were read; their later frames are bad */
    int n_errors;                                 /* distinct errors kept */
    struct weir_report_error errors[WEIR_REPORT_ERRORS_MAX];
};

/* Adds a stage timed by a GPU's clock, replacing one of the same name. No effect without calls. */
void weir_report_gpu_add(struct weir_report_gpu *gpu, int stage, const struct weir_stage_stats *stats);

/* The stage table and everything below it. English: every stage that was called. Chinese: ACT's stages by total, then
 * Weir's own, then idle time; at most 16 rows, none without calls; GPU work is timed by the GPU's clock. All other
 * lines are English in both. */
void weir_loader_report_print(FILE *out, const struct weir_loader_report *report, enum weir_lang lang);
/* The tables of a program without a loader: stages, threads, the machine. */
void weir_loader_report_loop_print(FILE *out, const struct weir_loader_report *report, enum weir_lang lang);
/* The members of a log's line into an object that is open in json, and the whole line, flushed: docs/log-format.md. */
void weir_loader_report_json(struct weir_json *json, const struct weir_loader_report *report);
void weir_loader_report_log(FILE *log, const struct weir_loader_report *report);
/* Frees what the report owns. */
void weir_loader_report_clear(struct weir_loader_report *report);

/* Fraction of the copies between then and now during which steps ran; -1 = unknown. */
double weir_gpu_copy_overlap(const struct weir_gpu_figures *now, const struct weir_gpu_figures *then);

/* ---- a run's reports ---- */

/* State that a run's reports start from. */
struct weir_loader_reports;

struct weir_loader_reports_config {
    size_t size; /* sizeof this struct in the program; weir_loader_reports_config_default sets it, and the rest to 0 */
    int epochs;  /* of the run; 0 = it is measured by time (weir_loader_reports_restart) */
    const char *folder;                        /* prefix to omit from file names; NULL = none. Copied */
    bool sync_steps;                           /* on a GPU: the consumer waits for each step before the next */
    const struct weir_report_machine *machine; /* state when the run began; NULL = now. Copied */
};
static inline void weir_loader_reports_config_default(struct weir_loader_reports_config *config)
{
    memset(config, 0, sizeof *config);
    config->size = sizeof *config;
}

/* Starts counting. *out is owned by the caller. 0, -ENOMEM, or -EINVAL and -ENOTSUP for config's size. */
int weir_loader_reports_begin(struct weir_loader_reports **out, struct weir_loader *loader,
                              const struct weir_loader_reports_config *config);
/* Restarts counting: the next report and the final one cover the time from here on. 0 or -ENOMEM. */
int weir_loader_reports_restart(struct weir_loader_reports *reports);
/* Call before weir_loader_close. Accepts NULL. */
void weir_loader_reports_end(struct weir_loader_reports **reports);

/* A program's additions to each report: to its figures, after its tables, and in the object of its log line. */
struct weir_report_addition {
    void (*begin)(void *user, struct weir_loader_report *report); /* called first; may be NULL */
    void (*print)(void *user, FILE *out, const struct weir_loader_report *report, enum weir_lang lang);
    void (*json)(void *user, struct weir_json *json, const struct weir_loader_report *report);
    void *user;
};

struct weir_loader_report_options {
    size_t size; /* sizeof this struct in the program; weir_loader_report_options_default sets it, and the rest to 0 */
    bool final;  /* the whole run, after weir_loader_finish; else the time since the last report that was not final */
    bool interrupted; /* the run was interrupted */
    int epochs_done;  /* so far, including an interrupted one */
    enum weir_lang lang;
    bool json;                                   /* one line of JSON instead of tables */
    FILE *log;                                   /* also gets that line; NULL = no log */
    const struct weir_report_addition *addition; /* NULL = none */
    const struct weir_report_idle *idle;         /* from a trace of the run; NULL = none */
};
static inline void weir_loader_report_options_default(struct weir_loader_report_options *options)
{
    memset(options, 0, sizeof *options);
    options->size = sizeof *options;
}

/* Makes a report, prints it to out and flushes. 0, -ENOMEM, or -EINVAL and -ENOTSUP for options' size; check
 * ferror(out) for write errors. */
int weir_loader_report(struct weir_loader_reports *reports, const struct weir_loader_report_options *options,
                       FILE *out);

/* Measures storage alongside the run, for 0.2 s. Meant for the begin of an addition. */
void weir_loader_probe_storage(struct weir_loader *loader, struct weir_report_storage *storage);

#ifdef __cplusplus
}
#endif

#endif
