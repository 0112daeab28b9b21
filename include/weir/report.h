/* report.h: what a run of a loader was like, as tables for people and as JSON for programs: the stage table,
 * threads, queue, reads, decoding, decode cache, GPU, cameras and files, errors.
 *
 *     weir_loader_reports_begin(&reports, loader, &config);      when the first batch is about to be asked for
 *     ... weir_loader_next ...
 *     weir_loader_report(reports, &options, stdout);             at the end, and whenever a table is wanted in between
 *     weir_loader_reports_end(&reports);                         before weir_loader_close
 *
 * Reports are plain data, so that one that was read back from a log prints exactly like the live one. All of it is for
 * the consumer's thread. */
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

/* The part of a report that says which camera, which file. */

enum { WEIR_REPORT_CAMERAS = 16, WEIR_REPORT_FILES = 3, WEIR_REPORT_CALLS = 20, WEIR_REPORT_CALLS_SHOWN = 10 };

/* Reading or decoding. */
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
    char file[256]; /* and the episode's group there */
    char camera[64];
    int64_t t;
    bool decode; /* else it is a read */
    double s;
};

/* In the time covered; nothing is printed where nothing was read or decoded. */
struct weir_report_sources {
    int n_cameras;
    struct weir_report_camera cameras[WEIR_REPORT_CAMERAS];
    uint64_t files_read;   /* files that were read from */
    double files_median_s; /* the median of their means */
    int n_files;           /* the slowest, by mean, slowest first */
    struct weir_report_file files[WEIR_REPORT_FILES];
    int n_calls; /* the longest, longest first: at most ten reads and ten of decoding */
    struct weir_report_call calls[WEIR_REPORT_CALLS];
};

/* The part of a report that says what the consumer got and when, what the run was set up with, and what
 * completed the batches that it waited for. analyze/verdict/verdict.h draws its conclusions from these. */

/* Steps: each from one request for a batch to the next one, or to the report. */
struct weir_report_steps {
    uint64_t train_batches, val_batches; /* handed out in the time covered; 0 = not known */
    uint64_t images;                     /* in both */
    double train_s, val_s;               /* what their steps took */
    double train_wait_s, val_wait_s;     /* of it, waiting for data; on a GPU its stream's waits too */
    double first_wait_s;                 /* of these, for the first batch of the run: the pipeline fills */
    bool validation;                     /* there is no training part: the train_* are of the validation */
};

/* One epoch, or several. */
struct weir_report_epochs {
    int n;
    uint64_t images;
    double s, wait_s;        /* training and validation */
    double slowest, fastest; /* images/s; of epochs that are whole */
    double device_bytes;     /* read from storage; -1 = not known. Workers are some batches ahead */
};

struct weir_report_setup {
    bool known; /* false: the log is older than these figures */
    int workers, slots, batch_size, images_per_sample;
    int device;        /* the GPU's number; -1 = none */
    int width, height; /* of the first camera's images as they are stored */
    int out_width, out_height;
    bool normalised, encoded; /* images become floats on the CPU; frames are stored as JPEGs or PNGs */
    bool sizes_differ;        /* between cameras, as they are stored */
    bool reads_ahead;         /* many reads in flight ahead of the workers */
    bool direct;              /* reads pass the page cache by */
    char decoder[24], io[16];
    enum weir_frame_kind kind;  /* of the first frame; WEIR_FRAME_IMAGE: encoded, and not known */
    uint64_t image_bytes;       /* of an image in a batch, the mean of the cameras; 0 = not known */
    uint64_t frames_bytes;      /* all frames of the dataset as they lie in batches: the decode cache that holds them */
    uint64_t memory_free_bytes; /* when the report was made; 0 = not known */
    double cached_at_start;     /* of the dataset, before the first read, 0..1; -1 = not known */
    int jpeg_engines;           /* of that GPU; 0 = none, or not known */
    bool indexed;               /* the index file had all files */
    double index_s;             /* that opening the dataset took */
    double copy_bytes_per_s;    /* one thread copies so much from memory to memory; 0 = not measured */
};

/* With fewer training batches nothing can be said of a run, and copy_bytes_per_s is not measured. */
enum { WEIR_REPORT_BATCHES_LEAST = 8 };

/* Batches that the consumer waited for, by the task that completed each. A wait is whole the last task's. */
struct weir_report_late {
    uint64_t batches;                                 /* waited for, 0 = none, or not known (a GPU completes them) */
    double wait_s;                                    /* for these */
    double task_s;                                    /* what the completing tasks took from begin to end */
    double read_s;                                    /* of it, reading */
    double longest_wait_s;                            /* for one batch */
    char camera[64];                                  /* that most of the waiting was for; empty = not known */
    char file[256];                                   /* likewise, without the dataset's folder */
    char worker[16];                                  /* likewise */
    double camera_wait_s, file_wait_s, worker_wait_s; /* for tasks of these */
};

struct weir_report_storage {
    double device_bytes; /* read from storage by the process in the time covered; -1 = not known */
    /* Measured when the report was made, some frames dropped from the page cache before (weir_loader_probe_storage): */
    int probe_depth;                     /* reads at once; 0 = it was not */
    double probe_small_s, probe_whole_s; /* a read of 4 KiB, and of a frame, alone */
    double probe_bytes_per_s;            /* of frames, so many at once */
};

/* What a GPU waited for while it was idle in the steps that were traced last, as fractions of the time traced;
 * docs/trace-averages.md has the rules. */
struct weir_report_idle {
    double traced_s; /* 0 = no trace of a GPU */
    double busy, launching, sync, data, allocating, queued, other;
    double delay_p50_s, delay_p99_s; /* of launches into an empty queue; -1 = there were none */
    double kernels_per_step;         /* -1 = not known */
};

/* One line an epoch, and one when the first batch is there; as text and as JSON. */

/* Where an epoch's bytes came from: nearly none of the dataset was in the page cache when it began, nearly all, some;
 * or reads passed the cache by. */
enum weir_reads { WEIR_READS_UNKNOWN, WEIR_READS_COLD, WEIR_READS_WARM, WEIR_READS_PARTLY, WEIR_READS_DIRECT };

struct weir_epoch_line {
    int epoch, epoch_count; /* 1-based */
    double total_s, train_s, val_s;
    double data_wait_fraction; /* 08 over training time of the training part; on a GPU its stream's waits too */
    double samples_per_s, images_per_s;
    uint64_t peak_rss_bytes;
    bool interrupted; /* the epoch was cut short */
    enum weir_reads reads;
    double cached_fraction;       /* of the dataset, when the epoch began; -1 = not known */
    bool gpu;                     /* there was one: */
    double gpu_busy_fraction;     /* of the epoch's time, that in which a step or a preparation ran */
    double copy_overlap_fraction; /* of the copies' time, that in which a step ran; -1 = not known */
    bool trained;                 /* something was trained: */
    double train_loss, val_loss;  /* means over the samples; NAN = there were none */
};

/* One line per epoch; the Chinese one matches grep "Epoch.*总耗时" and grep "耗时:". */
void weir_epoch_print(FILE *out, const struct weir_epoch_line *line, enum weir_lang lang);

/* How long it took until the first batch was there; each time includes the ones below it. */
struct weir_start_line {
    double first_batch_s, open_s, index_s;
    int files, files_from_index;
};
void weir_start_print(FILE *out, const struct weir_start_line *line);

/* What `weir run --seconds` measured: a part of the run, whatever epochs it lay in. */
struct weir_measured_line {
    double seconds, warm_up_s; /* seconds 0: the run ended before */
    uint64_t batches, samples, images;
    double samples_per_s, images_per_s;
    double data_wait_fraction; /* of the seconds, those in which the consumer waited; on a GPU its stream's waits too */
    uint64_t peak_rss_bytes;
    enum weir_reads reads;
    double cached_fraction; /* of the dataset, when the run began; -1 = not known */
};
void weir_measured_print(FILE *out, const struct weir_measured_line *line);

/* The log's lines, each one JSON object and a newline, flushed: docs/log-format.md. */
void weir_start_log(FILE *log, const struct weir_start_line *line);
void weir_epoch_log(FILE *log, const struct weir_epoch_line *line);
void weir_measured_log(FILE *log, const struct weir_measured_line *line);
/* The same members into an object that is open in json. */
void weir_start_json(struct weir_json *json, const struct weir_start_line *line);
void weir_epoch_json(struct weir_json *json, const struct weir_epoch_line *line);
/* "cold", "warm", "partly", "direct"; NULL = unknown. */
const char *weir_report_reads_name(enum weir_reads reads);

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

/* The stage table and everything below it. English: every stage that was called. Chinese: ACT's stages by total, then
 * Weir's own, then idle time; at most 16 rows, none without calls; GPU work is timed by the GPU's clock. All other
 * lines are English in both. */
void weir_loader_report_print(FILE *out, const struct weir_loader_report *report, enum weir_lang lang);
/* The tables of a program without a loader: stages, threads, the machine. */
void weir_loader_report_loop_print(FILE *out, const struct weir_loader_report *report, enum weir_lang lang);
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
    size_t size;        /* as the program knows it; weir_loader_reports_config_default sets it, and all else to 0 */
    int epochs;         /* of the run; 0 = it is measured by time (weir_loader_reports_restart) */
    const char *folder; /* files are named without it; NULL = whole paths. Copied */
    bool sync_steps;    /* on a GPU the consumer waits for each step before the next, which reports say */
    const struct weir_report_machine *machine; /* as it was when the run began; NULL = it begins here. Copied */
};
static inline void weir_loader_reports_config_default(struct weir_loader_reports_config *config)
{
    memset(config, 0, sizeof *config);
    config->size = sizeof *config;
}

/* Begins to count here. *out is owned by the caller. 0, -ENOMEM, or of config's size -EINVAL and -ENOTSUP. */
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
    size_t size;      /* as the program knows it; weir_loader_report_options_default sets it, and all else to 0 */
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
static inline void weir_loader_report_options_default(struct weir_loader_report_options *options)
{
    memset(options, 0, sizeof *options);
    options->size = sizeof *options;
}

/* Makes a report, writes it to out and flushes it. 0, -ENOMEM, or of options' size -EINVAL and -ENOTSUP; whether it
 * could be written is for the caller to ask (ferror). */
int weir_loader_report(struct weir_loader_reports *reports, const struct weir_loader_report_options *options,
                       FILE *out);

/* Measures what storage gives beside the run, for 0.2 s; for the beginning of an addition. */
void weir_loader_probe_storage(struct weir_loader *loader, struct weir_report_storage *storage);

#ifdef __cplusplus
}
#endif

#endif
