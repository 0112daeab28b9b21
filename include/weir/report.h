/* report.h: reports of a loader's run, as tables for people and JSON for programs: stages, threads, queue, reads,
 * decoding, decode cache, GPU, cameras and files, and errors.
 *
 *     weir_loader_reports_begin(&reports, loader, &config);      before the first weir_loader_next
 *     ... weir_loader_next ...
 *     weir_loader_report(reports, &options, stdout);             at the end, and at any time in between
 *     weir_loader_reports_end(&reports);                         before weir_loader_close
 *
 * Reports are plain data, so that a report read back from a log prints exactly like the original. All functions must be
 * called on the consumer's thread. */
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

/* Totals for reads or for decodes. */
struct weir_report_source {
    uint64_t count, bytes;
    double total_s, p50_s, p99_s, max_s;
};

struct weir_report_camera {
    char name[64];
    struct weir_report_source read, decode;
};

/* Reads from one file. */
struct weir_report_file {
    char name[256];
    uint64_t count;
    double mean_s, max_s;
};

struct weir_report_call {
    char file[256]; /* file name, followed by the episode's group if there is one */
    char camera[64];
    int64_t t;
    bool decode; /* true: a decode; false: a read */
    double s;
};

/* Figures for the time covered. Nothing is printed if there were neither reads nor decodes. */
struct weir_report_sources {
    int n_cameras;
    struct weir_report_camera cameras[WEIR_REPORT_CAMERAS];
    uint64_t files_read;   /* number of files that were read */
    double files_median_s; /* median of the files' mean read times */
    int n_files;           /* number of files listed, those with the longest mean time first */
    struct weir_report_file files[WEIR_REPORT_FILES];
    int n_calls; /* number of calls listed, the longest first: at most ten reads and ten decodes */
    struct weir_report_call calls[WEIR_REPORT_CALLS];
};

/* ---- steps, setup, late batches, storage ----
 *
 * The consumer's batches and waits, the configuration of the run, and the tasks that completed late batches.
 * analyze/verdict/verdict.h draws its conclusions from these figures. */

/* Steps of the consumer. A step lasts from one request for a batch to the next request, or to the report. */
struct weir_report_steps {
    uint64_t train_batches, val_batches; /* batches delivered during the time covered; 0 = unknown */
    uint64_t images;                     /* images in the batches of both splits */
    double train_s, val_s;               /* duration of the steps */
    double train_wait_s, val_wait_s;     /* time spent waiting for data, including waits of the GPU stream */
    double first_wait_s; /* part of the waits spent on the run's first batch, while the pipeline fills */
    bool validation;     /* there are no training steps, and train_* describes the validation steps */
    bool no_step;        /* the program does nothing with its batches, so it waits for data all the time */
    double step_ms;      /* duration of the simulated step; 0 = a real step, or none */
    bool own_step;       /* the step is that of weir train, so that advice names its options */
};

/* The figures of one or more epochs. */
struct weir_report_epochs {
    int n;
    uint64_t images;
    double s, wait_s;        /* total time and time spent waiting, for training and validation together */
    double slowest, fastest; /* images/s of the slowest and the fastest whole epoch */
    double device_bytes;     /* bytes read from storage, including those for prefetched batches; -1 = unknown */
};

struct weir_report_setup {
    bool known; /* false: the log was written before these figures existed */
    int workers, slots, batch_size, images_per_sample;
    int device;        /* GPU number; -1 = none */
    int width, height; /* stored size of the first camera's images */
    int out_width, out_height;
    bool normalised, encoded; /* images are converted to floats on the CPU; images are stored as JPEG or PNG */
    bool sizes_differ;        /* the cameras' stored sizes differ */
    bool reads_ahead;         /* the I/O engine keeps many reads in flight ahead of the workers */
    bool direct;              /* reads bypass the page cache */
    char decoder[24], io[16];
    enum weir_frame_kind kind;  /* of the first frame; WEIR_FRAME_IMAGE = encoded in an unknown format */
    uint64_t image_bytes;       /* bytes per image in a batch, averaged over the cameras; 0 = unknown */
    uint64_t frames_bytes;      /* size of a decode cache that would hold all frames of the dataset */
    uint64_t memory_free_bytes; /* free memory when the report was made; 0 = unknown */
    double cached_at_start;     /* fraction of the dataset in the page cache before the first read; -1 = unknown */
    int jpeg_engines;           /* JPEG engines of the GPU; 0 = none or unknown */
    bool indexed;               /* the index file covered all files, or none can describe them */
    double index_s;             /* time to open the dataset */
    double copy_bytes_per_s;    /* speed of a memory copy on one thread; 0 = not measured */
};

/* With fewer training batches than this, there is no verdict, and copy_bytes_per_s is not measured. */
enum { WEIR_REPORT_BATCHES_LEAST = 8 };

/* Batches that the consumer had to wait for. The whole wait for a batch is attributed to the last task that completed
 * it. */
struct weir_report_late {
    uint64_t batches;      /* number of late batches; 0 = none, or unknown because a GPU completed them */
    double wait_s;         /* time that the consumer waited for them */
    double task_s;         /* duration of the late batches' last tasks */
    double read_s;         /* part of task_s spent reading */
    double longest_wait_s; /* longest wait for a single batch */
    char camera[64];       /* camera that caused the longest total wait; empty = unknown */
    char file[256];        /* file that caused the longest total wait, relative to the dataset's folder */
    char worker[16];       /* worker that caused the longest total wait */
    double camera_wait_s, file_wait_s, worker_wait_s; /* total waits caused by this camera, file and worker */
};

struct weir_report_storage {
    double device_bytes; /* bytes that the process read from storage during the time covered; -1 = unknown */
    /* The next members are measured when the report is made, on frames dropped from the page cache
     * (weir_loader_probe_storage). */
    int probe_depth;                     /* number of concurrent reads; 0 = not measured */
    double probe_small_s, probe_whole_s; /* time of a single read of 4 KiB, and of a single read of a frame */
    double probe_bytes_per_s;            /* throughput of probe_depth concurrent reads of frames */
};

/* Causes of a GPU's idle time during the most recently traced steps, as fractions of the traced time
 * (docs/trace.md). */
struct weir_report_idle {
    double traced_s; /* 0 = no trace with a GPU */
    double busy, launching, sync, data, allocating, queued, other;
    double delay_p50_s, delay_p99_s; /* delay of a launch into an empty queue; -1 = no such launches */
    double kernels_per_step;         /* -1 = unknown */
};

/* ---- epoch lines: one line per epoch, and one at the first batch ---- */

/* Where an epoch's bytes came from. COLD: almost none of the dataset was in the page cache when the epoch began; WARM:
 * almost all of it; PARTLY: a part of it. DIRECT: the reads bypassed the page cache. */
enum weir_reads { WEIR_READS_UNKNOWN, WEIR_READS_COLD, WEIR_READS_WARM, WEIR_READS_PARTLY, WEIR_READS_DIRECT };

struct weir_epoch_line {
    int epoch, epoch_count; /* numbered from 1 */
    double total_s, train_s, val_s;
    double data_wait_fraction; /* stage 08 / time of the training part, including waits of the GPU stream */
    double samples_per_s, images_per_s;
    uint64_t peak_rss_bytes;
    bool interrupted; /* the epoch was not completed */
    enum weir_reads reads;
    double cached_fraction;       /* fraction of the dataset in the page cache when the epoch began; -1 = unknown */
    bool gpu;                     /* the next two members are known */
    double gpu_busy_fraction;     /* fraction of the epoch's time during which a step or a preparation ran */
    double copy_overlap_fraction; /* fraction of the copies' time during which a step ran; -1 = unknown */
    bool trained;                 /* the next two members are known */
    double train_loss, val_loss;  /* means over the samples; NAN = no samples */
};

/* Prints an epoch's line. The Chinese line matches grep "Epoch.*总耗时" and grep "耗时:". */
void weir_epoch_print(FILE *out, const struct weir_epoch_line *line, enum weir_lang lang);

/* Time until the first batch. Each time includes the times declared after it. */
struct weir_start_line {
    double first_batch_s, open_s, index_s;
    int files, files_from_index;
};
void weir_start_print(FILE *out, const struct weir_start_line *line);

/* Result of "weir run --seconds": a part of the run, which may span several epochs. */
struct weir_measured_line {
    double seconds, warm_up_s; /* seconds = 0: the run ended before a batch was measured */
    uint64_t batches, samples, images;
    double samples_per_s, images_per_s;
    double data_wait_fraction; /* fraction of the measured time, including waits of the GPU stream */
    uint64_t peak_rss_bytes;
    enum weir_reads reads;
    double cached_fraction; /* fraction of the dataset in the page cache when the run began; -1 = unknown */
};
void weir_measured_print(FILE *out, const struct weir_measured_line *line);

/* Write one line of the log, a JSON object, and flush it (docs/internals/log-format.md). */
void weir_start_log(FILE *log, const struct weir_start_line *line);
void weir_epoch_log(FILE *log, const struct weir_epoch_line *line);
void weir_measured_log(FILE *log, const struct weir_measured_line *line);
/* Write the members of that JSON object into the open object. */
void weir_start_json(struct weir_json *json, const struct weir_start_line *line);
void weir_measured_json(struct weir_json *json, const struct weir_measured_line *line);
void weir_epoch_json(struct weir_json *json, const struct weir_epoch_line *line);
/* Returns "cold", "warm", "partly" or "direct"; NULL = unknown. */
const char *weir_report_reads_name(enum weir_reads reads);

struct weir_loader;

/* ---- the report ---- */

/* A decode cache: its activity during the time covered, and its contents at the end. */
struct weir_report_cache {
    uint64_t budget_bytes, used_bytes; /* budget 0 = there is no cache, and nothing is printed; used includes tables */
    uint64_t frames;                   /* number of frames in the cache */
    uint64_t hits, misses;
    double saved_s;                 /* time saved by hits minus the cost of copying frames; NAN = not measured */
    uint64_t all_frames, all_bytes; /* number of frames in the dataset, and budget that would hold them all */
    double all_hit_rate;            /* expected hit rate with all_bytes, 0..1; -1 = unknown */
};

/* One JPEG decoder of a GPU. */
struct weir_report_engine {
    char by[48];             /* "7 JPEG engines" or "the multiprocessors" */
    uint64_t frames, groups; /* numbers of frames and groups decoded; a group is a batch of frames submitted together */
    double busy;             /* fraction of the time covered during which it was decoding */
};

/* How decoding was divided between the GPU and the CPU. */
enum { WEIR_REPORT_ENGINES = 2 };
struct weir_report_decode {
    int n_engines; /* 0 = the GPU decodes nothing */
    struct weir_report_engine engines[WEIR_REPORT_ENGINES];
    uint64_t cpu_frames;      /* number of frames that the CPU decoded */
    double cpu_busy;          /* fraction of the workers' time spent on cpu_frames; -1 = unknown */
    uint64_t sent_back;       /* number of frames that the GPU rejected or decoded wrongly */
    char reasons[256];        /* reasons for sent_back: "12 progressive, 3 truncated" */
    uint64_t compared, below; /* number of images compared with the CPU's result, and of those below the limit */
    double gate_db, least_db; /* the PSNR limit, and the lowest PSNR measured; 99 = identical images */
};

/* A GPU during the time covered, measured by the GPU's clock. */
enum { WEIR_REPORT_GPU_ROWS = 8 + WEIR_STAGE_MAX };
struct weir_report_gpu {
    bool used; /* false: there is no GPU, and nothing is printed */
    int number;
    char name[128];
    int n_rows;
    struct weir_report_row rows[WEIR_REPORT_GPU_ROWS];
    double copy_bytes_per_s; /* speed of the copies while they ran; -1 = no copies */
    double overlap;          /* fraction of the copies' time during which a step ran; -1 = unknown */
    double busy;             /* fraction of the time covered during which a step or a preparation ran */
    double stall_s;          /* time that the consumer's stream waited for batches */
    bool sync_steps;         /* the consumer waits for each step to finish before it starts the next */
    uint64_t used_bytes;     /* GPU memory that all programs use, at the end; 0 = unknown */
    struct weir_report_decode decode;
};

struct weir_report_error {
    char text[512]; /* file, dataset, frame and reason */
    uint64_t count;
};

enum { WEIR_REPORT_ERRORS_MAX = 64 };
/* Frames read through the HDF5 library, whose helper process serves one worker at a time. */
struct weir_report_fallbacks {
    uint64_t frames;
    double busy;    /* fraction of the time covered during which the helper was serving a worker */
    double each_s;  /* time the helper took per frame */
    double waiting; /* mean number of workers waiting for their turn */
};

/* Requests to servers. requests is 0 if there were none. */
struct weir_report_server {
    uint64_t requests, bytes, opening_requests, retries, limited, connections;
    double wait_s, transfer_s; /* means: until the first byte, and from there to the last */
    /* The cache on disk; all 0 without one. */
    uint64_t cache_bytes, cache_stored_bytes, cache_full_bytes, cache_damaged_blocks;
    uint64_t cache_errno;  /* errno that ended storing; 0 = none */
    double in_flight;      /* mean number of requests in flight */
    int limit, limit_most; /* number that read-ahead keeps in flight, at the end, and its bound; 0 = none */
    bool limit_fixed;      /* by --io-depth */
    char host[128];
};

/* Explains a number of warned_frames. */
#define WEIR_WARNED_FRAMES                                                                                             \
    "JPEGs have a flaw, such as extraneous bytes, that libjpeg passes over; --on-warning fail refuses them"

struct weir_loader_report {
    int epoch_first, epoch_last; /* first and last epoch covered, numbered from 1 */
    int epoch_count;             /* number of epochs in the run; 0 = the run is limited by time */
    bool final;                  /* covers the whole run; false: the time since the last report */
    bool interrupted;            /* the run was interrupted */
    bool timing;                 /* false: timing is off (--no-timing), so there are no rows */
    double wall_s;               /* duration of the time covered */
    double cpu_s;                /* CPU time of this process and its HDF5 helper processes */
    struct weir_report prof;     /* rows, threads, machine, and the profiler's own cost */
    int queue_slots;             /* maximum number of ready batches */
    double queue_mean;           /* mean number of ready batches when a batch is requested */
    int queue_min, queue_max;    /* minimum and maximum of the number of ready batches */
    uint64_t queue_samples;      /* number of requests; 0 = there are no queue figures */
    uint64_t reads, read_bytes;  /* by the I/O engine and by the HDF5 library */
    struct weir_report_fallbacks fallbacks;
    struct weir_report_server server;
    struct weir_chunk_counts chunks;
    uint64_t stored_pixels, decoded_pixels; /* of the decoded frames, at their stored and at their decoded size */
    uint64_t frames_shared; /* frames copied from another sample of their batch instead of being decoded again */
    struct weir_report_cache cache;
    struct weir_report_gpu gpu;
    struct weir_report_sources sources;
    struct weir_report_setup setup;
    struct weir_report_steps steps;
    struct weir_report_epochs first_epoch, later_epochs; /* of the time covered; n = 0 if the run is limited by time */
    struct weir_report_late late;
    struct weir_report_storage storage;
    struct weir_report_idle idle;
    uint64_t warned_frames;                       /* frames decoded despite a harmless flaw */
    uint64_t bad_frames;                          /* number of failed attempts to read or decode a frame */
    uint64_t skipped_samples, substituted_frames; /* as requested by --on-error */
    bool after_fill;                              /* final, but without the epochs that filled the decode cache */
    uint64_t bad_episodes;                        /* episodes skipped at open */
    uint64_t changed_files; /* files that changed while they were being read; their later frames are bad */
    int n_errors;           /* number of distinct errors listed */
    struct weir_report_error errors[WEIR_REPORT_ERRORS_MAX];
    struct weir_report_video {
        struct weir_video_counts counts;
        double jpeg_s; /* CPU time to decode a frame if it were a JPEG (weir_loader_probe_jpeg); 0 = not measured */
    } video;
    uint64_t ahead_reads; /* part of reads that the read-ahead performed entirely */
};

/* Adds a stage timed by the GPU's clock, or replaces the stage of the same name. No effect if the stage has no calls.
 */
void weir_report_gpu_add(struct weir_report_gpu *gpu, int stage, const struct weir_stage_stats *stats);

/* Prints the stage table and all sections below it, fitted to the width of the output: that of the terminal, otherwise
 * $COLUMNS, otherwise 80. Narrow tables have fewer columns. The Chinese stage table keeps its format, which is 92
 * columns wide, and has at most 16 rows, all for stages that were called: ACT's stages by total time, then Weir's own
 * stages, then idle time; GPU work is timed by the GPU's clock. The other sections are in English in both cases. */
void weir_loader_report_print(FILE *out, const struct weir_loader_report *report, enum weir_lang lang);
/* Prints the tables of a program that has no loader: stages, threads and machine. */
void weir_loader_report_loop_print(FILE *out, const struct weir_loader_report *report, enum weir_lang lang);
/* weir_loader_report_json writes the members of a log line into the open object. weir_loader_report_log writes the
 * whole line and flushes it (docs/internals/log-format.md). */
void weir_loader_report_json(struct weir_json *json, const struct weir_loader_report *report);
void weir_loader_report_log(FILE *log, const struct weir_loader_report *report);
/* Frees the memory that the report owns, but not the report itself. */
void weir_loader_report_clear(struct weir_loader_report *report);

/* Returns the fraction of the copies' time between then and now during which a step ran; -1 = unknown. */
double weir_gpu_copy_overlap(const struct weir_gpu_figures *now, const struct weir_gpu_figures *then);

/* ---- a run's reports ---- */

/* The counters at the start of a run, from which its reports are computed. */
struct weir_loader_reports;

struct weir_loader_reports_config {
    size_t size; /* sizeof this struct in the program; weir_loader_reports_config_default sets it and zeroes the rest */
    int epochs;  /* number of epochs in the run; 0 = the run is limited by time (weir_loader_reports_restart) */
    const char *folder; /* prefix to remove from file names (copied); NULL = none */
    bool sync_steps;    /* with a GPU: the consumer waits for each step to finish before it starts the next */
    const struct weir_report_machine *machine; /* state when the run began (copied); NULL = the current state */
    bool no_step;   /* the program does nothing with its batches, so the verdict is about the loader's top speed */
    double step_ms; /* duration of the simulated step; 0 = a real step, or none */
    bool own_step;  /* the step is that of weir train, so that advice names its options */
};
static inline void weir_loader_reports_config_default(struct weir_loader_reports_config *config)
{
    memset(config, 0, sizeof *config);
    config->size = sizeof *config;
}

/* Starts counting. The caller frees *out with weir_loader_reports_end. Returns 0, -ENOMEM, or -EINVAL or -ENOTSUP if
 * config has an unsupported size. */
int weir_loader_reports_begin(struct weir_loader_reports **out, struct weir_loader *loader,
                              const struct weir_loader_reports_config *config);
/* Restarts counting: the next report and the final one cover the time from this call. Returns 0 or -ENOMEM. */
int weir_loader_reports_restart(struct weir_loader_reports *reports);
/* To be called after each epoch. If the epoch added a tenth of the decode cache's frames, it was slower than later ones
 * will be: a final report with `after_fill` covers the time from this call. Returns 1 in this case, else 0, or -ENOMEM.
 */
int weir_loader_reports_fill(struct weir_loader_reports *reports, int epochs_done);
/* Must be called before weir_loader_close. Accepts NULL. */
void weir_loader_reports_end(struct weir_loader_reports **reports);

/* A program's additions to each report: begin modifies the figures, print writes before the tables, and json writes
 * into the object of the log line. */
struct weir_report_addition {
    void (*begin)(void *user, struct weir_loader_report *report); /* called first; may be NULL */
    void (*print)(void *user, FILE *out, const struct weir_loader_report *report, enum weir_lang lang);
    void (*json)(void *user, struct weir_json *json, const struct weir_loader_report *report);
    void *user;
};

struct weir_loader_report_options {
    size_t size; /* sizeof this struct in the program; weir_loader_report_options_default sets it and zeroes the rest */
    bool final;  /* cover the whole run, after weir_loader_finish; false: the time since the last report that was not
                    final */
    bool interrupted; /* the run was interrupted */
    int epochs_done;  /* number of epochs so far, including an interrupted one */
    enum weir_lang lang;
    bool json;                                   /* print one line of JSON instead of tables */
    FILE *log;                                   /* file that the JSON line is also written to; NULL = none */
    const struct weir_report_addition *addition; /* NULL = none */
    const struct weir_report_idle *idle;         /* result of a trace of the run; NULL = none */
    bool after_fill; /* final: without the epochs that filled the decode cache, if weir_loader_reports_fill found any */
};
static inline void weir_loader_report_options_default(struct weir_loader_report_options *options)
{
    memset(options, 0, sizeof *options);
    options->size = sizeof *options;
}

/* Makes a report, prints it to out and flushes out. Returns 0, -ENOMEM, or -EINVAL or -ENOTSUP if options has an
 * unsupported size. To detect write errors, check ferror(out). */
int weir_loader_report(struct weir_loader_reports *reports, const struct weir_loader_report_options *options,
                       FILE *out);

/* Measures the storage for 0.2 s while the run continues. Intended for the begin callback of an addition. */
void weir_loader_probe_storage(struct weir_loader *loader, struct weir_report_storage *storage);
/* Encodes a few frames of the first camera, which must be a video, as JPEGs of quality 95, and measures the CPU time to
 * decode one. Sets *jpeg_s to 0 if that is not possible. Takes about as long as loading 10 frames. */
void weir_loader_probe_jpeg(struct weir_loader *loader, double *jpeg_s);

#ifdef __cplusplus
}
#endif

#endif
