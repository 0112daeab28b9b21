/* report.h: turns snapshots and counts into the tables people read, and into rows for the log.
 *
 * The rows are plain data (seconds), so that a table read back from a log prints exactly like the live one. */
#ifndef WEIR_PROF_REPORT_REPORT_H
#define WEIR_PROF_REPORT_REPORT_H

#include "base/json.h"
#include "prof/record/recorder.h"
#include "prof/report/report_sources.h"

#include <stdio.h>

#ifdef __cplusplus
extern "C" {
#endif

enum weir_lang { WEIR_LANG_EN, WEIR_LANG_ZH };

/* Who did what a row counts. */
enum weir_report_side {
    WEIR_SIDE_WORKER,
    WEIR_SIDE_CONSUMER,
    WEIR_SIDE_HELPER, /* a stage of the workers', but by threads that are none: those that feed a GPU */
    WEIR_SIDE_GPU,    /* by a GPU's clock: between events on its streams */
    WEIR_SIDES
};

enum { WEIR_REPORT_NAME = 80 };

struct weir_report_row {
    char name[64];
    enum weir_stage_kind kind;
    enum weir_report_side side;
    uint64_t count;
    double total_s, self_s;
    double mean_s, min_s, p50_s, p90_s, p99_s, max_s;
    double cpu_s;         /* CPU time of self_s; -1 = not known (weir_stage_cpu_ns) */
    double preempted_s;   /* of self_s, ready to run while others had the core; -1 = not known */
    double cpu_over_wall; /* cpu_s over self_s; -1 = not known */
    double share;         /* 0..1 of the workers' work, -1 where shares do not apply */
};

/* A thread's time, once by what it did and once by what the kernel did with it. */
struct weir_report_worker {
    char name[16];
    double wall_s, work_s, wait_s, other_s;     /* work + wait + other = wall within 1 % */
    double cpu_s;                               /* on a core, by its CPU clock: the sum of the next three */
    double work_cpu_s, wait_cpu_s, other_cpu_s; /* -1 = not known: CPU time was sampled */
    double throttled_s, core_wait_s, blocked_s; /* with cpu_s = wall; -1 = not known: ready to run, but its cgroup had
                                                   used up its quota (its part of it, estimated); ready to run, and
                                                   others had the cores; asleep */
    double steal_s; /* of cpu_s, what a hypervisor is likely to have taken: the machine's part; -1 = not known */
};

/* A cache of decoded frames, in the time covered and (what is kept) at its end. */
struct weir_report_cache {
    uint64_t budget_bytes, used_bytes; /* used: its tables included. budget 0 = there is no cache, nothing is printed */
    uint64_t frames;                   /* kept */
    uint64_t hits, misses;
    double saved_s;                 /* work that hits saved, less what copies cost; NAN = not measured */
    uint64_t all_frames, all_bytes; /* of the dataset, and the budget that would keep them all */
    double all_hit_rate;            /* what the hit rate would have been with it, 0..1; -1 = not known */
};

/* What a GPU did in the time covered, by its own clock. */
enum { WEIR_REPORT_GPU_ROWS = 8 };
/* One of a GPU's ways to decode. */
struct weir_report_engine {
    char by[48];             /* "7 JPEG engines", "the multiprocessors" */
    uint64_t frames, groups; /* decoded by it, handed over in so many groups */
    double busy;             /* of the time covered, 0..1 */
    bool tried;              /* whether all are faster with it: */
    double gain;             /* by so much, 0.05 = 5 %; at less than 3 % it rests */
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

/* The machine that the run had, and what others did on it in the time covered. */
struct weir_report_machine {
    bool used;                   /* else nothing is printed */
    int cores, online;           /* usable, of so many that are on */
    int part;                    /* of the usable ones this process's, where local ranks share them */
    double quota_cores;          /* CPU time per second that its cgroups allow; 0 = no limit */
    bool throttling;             /* known: */
    uint64_t periods, throttled; /* of the quota, and of these so many in which it was used up */
    double throttled_s;          /* then held back, summed over CPUs */
    uint64_t memory_limit_bytes; /* of its cgroups; 0 = none */
    double others_cores; /* of the CPUs that the process may use, busy with other processes, mean; -1 = not known */
    double steal_cores;  /* and taken by the hypervisor for other guests */
    double load_average; /* of a minute, when the run began; -1 = not known */
};

struct weir_report_error {
    char text[512]; /* file, dataset, frame, reason */
    uint64_t count;
};

enum { WEIR_REPORT_ERRORS_MAX = 64 };
/* A stage has a second row when threads that are not workers did of it, too. */
enum { WEIR_REPORT_ROWS = 2 * WEIR_STAGE_MAX };

/* Frames that went through the HDF5 library, whose helper process serves one worker at a time. */
struct weir_report_fallbacks {
    uint64_t frames;
    double busy;    /* of the time covered, that in which it served, 0..1 */
    double each_s;  /* that takes, a frame */
    double waiting; /* workers that waited for their turn, the mean over the time covered */
};

/* What frames in chunks that are compressed or cut frames have cost. All chunks over the same frames are a block. */
struct weir_chunk_counts {
    uint64_t frames, blocks, chunks;      /* frames put together, from so many loads of blocks, of so many chunks */
    uint64_t frame_bytes, unpacked_bytes; /* of the frames, and of the chunks unpacked for them */
    uint64_t stored_bytes, read_bytes;    /* the frames' part of their blocks as stored, and what was read */
};

struct weir_report {
    int epoch_first, epoch_last; /* 1-based epochs that the report covers */
    int epoch_count;             /* epochs of the run */
    bool final;                  /* the whole run, else the time since the last report */
    bool interrupted;            /* the run was cut short */
    bool timing;                 /* false: --no-timing, there are no rows */
    double wall_s;               /* time covered */
    int n_rows;
    struct weir_report_row rows[WEIR_REPORT_ROWS]; /* in stage order, stages of kind LOOP left out */
    int n_workers;
    struct weir_report_worker *workers; /* owned */
    struct weir_report_worker consumer; /* likewise of the thread that takes the batches; no name = it is not known, or
                                           it is the one in workers */
    int queue_slots;                    /* batches that may be ready at once */
    double queue_mean;                  /* ready batches seen by the consumer at each request */
    int queue_min, queue_max;           /* likewise */
    uint64_t queue_samples;             /* requests seen; 0 = no queue figures */
    uint64_t reads, read_bytes;         /* by the io engine and through the library */
    struct weir_report_fallbacks fallbacks;
    struct weir_chunk_counts chunks;
    uint64_t stored_pixels, decoded_pixels; /* of the frames decoded: as stored, and as they left the decoder */
    uint64_t frames_shared;                 /* copied within their batch, not decoded again */
    struct weir_report_cache cache;
    struct weir_report_gpu gpu;
    struct weir_report_machine machine;
    struct weir_report_sources sources;
    uint64_t bad_frames;                          /* attempts on frames that could not be read or decoded */
    uint64_t skipped_samples, substituted_frames; /* what --on-error did about them */
    uint64_t bad_episodes;                        /* episodes left out at open */
    uint64_t changed_files;                       /* while they were read: frames of theirs are bad since */
    int n_errors;                                 /* distinct ones kept */
    struct weir_report_error errors[WEIR_REPORT_ERRORS_MAX];
    uint64_t zones;         /* zones recorded in this time */
    uint64_t too_deep;      /* zones dropped: nested deeper than WEIR_ZONES_DEEP */
    double zone_cost_ns;    /* measured cost of one */
    double thread_s;        /* sum of the threads' wall time */
    double profiler_share;  /* zones x cost / thread time, 0..1 */
    double clock_error_ppm; /* calibration error */
    char cpu_sampled[96];   /* why CPU time was sampled and not measured; empty = it was measured */
};

/* Fills rows, workers and profiler figures from a snapshot (a difference or a whole one); the other fields are the
 * caller's. Returns 0 or -ENOMEM. */
int weir_report_from_snapshot(struct weir_report *report, const struct weir_snapshot *snapshot);
void weir_report_free(struct weir_report *report);
/* Adds a stage that a GPU's clock timed, unless it has no calls. */
void weir_report_gpu_add(struct weir_report_gpu *gpu, int stage, const struct weir_stage_stats *stats);

/* The stage table with all that follows it (workers, queue, fallbacks, errors, own cost), English. */
void weir_report_print_en(FILE *out, const struct weir_report *report);
/* The Chinese stage table: ACT's stages by total, then Weir's own, then idle time; at most 16 rows, none without calls.
 * What a GPU does is by its clock. */
void weir_report_print_zh(FILE *out, const struct weir_report *report);
void weir_report_print(FILE *out, const struct weir_report *report, enum weir_lang lang);

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
};

/* One line per epoch; the Chinese one matches grep "Epoch.*总耗时" and grep "耗时:". */
void weir_epoch_print(FILE *out, const struct weir_epoch_line *line, enum weir_lang lang);

/* How long it took until the first batch was there; each time includes the ones below it. */
struct weir_start_line {
    double first_batch_s, open_s, index_s;
    int files, files_from_index;
};
void weir_start_print(FILE *out, const struct weir_start_line *line, enum weir_lang lang);

/* The log's lines, each one JSON object and a newline, flushed: docs/log-format.md. */
void weir_start_log(FILE *log, const struct weir_start_line *line);
void weir_epoch_log(FILE *log, const struct weir_epoch_line *line);
void weir_report_log(FILE *log, const struct weir_report *report);
/* The same members into an object that is open in json. */
void weir_start_json(struct weir_json *json, const struct weir_start_line *line);
void weir_epoch_json(struct weir_json *json, const struct weir_epoch_line *line);
void weir_report_json(struct weir_json *json, const struct weir_report *report);
/* "worker", "consumer", "helper", "gpu". */
const char *weir_report_side_name(enum weir_report_side side);
/* The stage's name, and " (helper)" or " (gpu)" behind it: of rows that are not told apart otherwise. */
void weir_report_row_name(const struct weir_report_row *row, char name[WEIR_REPORT_NAME]);
/* "work", "inclusive", "span", "wait", "loop". */
const char *weir_stage_kind_name(enum weir_stage_kind kind);
/* "cold", "warm", "partly", "direct"; NULL = unknown. */
const char *weir_report_reads_name(enum weir_reads reads);

#ifdef __cplusplus
}
#endif

#endif
