/* report_steps.h: the part of a report that says what the consumer got and when, what the run was set up with, and what
 * completed the batches that it waited for. analyze/verdict/verdict.h draws its conclusions from these. */
#ifndef WEIR_PIPELINE_REPORT_REPORT_STEPS_H
#define WEIR_PIPELINE_REPORT_REPORT_STEPS_H

#include <stdbool.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

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
    char codec[16];             /* of the first frame: "jpeg", "png", "raw"; empty = not known */
    uint64_t image_bytes;       /* of an image in a batch, the mean of the cameras; 0 = not known */
    uint64_t frames_bytes;      /* all frames of the dataset as they lie in batches: the decode cache that holds them */
    uint64_t memory_free_bytes; /* when the report was made; 0 = not known */
    double cached_at_start;     /* of the dataset, before the first read, 0..1; -1 = not known */
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

#ifdef __cplusplus
}
#endif

#endif
