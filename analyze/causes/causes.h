/* causes.h: what can limit a training job, and what helps: one row per cause and per piece of advice, with its name in
 * JSON and its words for each kind of job. docs/internals/verdict.md explains how rules find causes. */
#ifndef WEIR_ANALYZE_CAUSES_CAUSES_H
#define WEIR_ANALYZE_CAUSES_CAUSES_H

#include <stdbool.h>

/* Whose names and words a verdict uses. */
enum weir_subject {
    WEIR_SUBJECT_LOADER, /* Weir's: options such as --num-workers */
    WEIR_SUBJECT_JOB,    /* a PyTorch DataLoader, timed inside or seen from outside: settings such as num_workers= */
    WEIR_SUBJECT_RANK,   /* the slow one of several */
    WEIR_SUBJECTS
};

enum weir_cause {
    WEIR_CAUSE_CANNOT_TELL,
    WEIR_CAUSE_CONSUMER, /* the job is not data-bound */
    WEIR_CAUSE_STEP,     /* everything is idle between steps: launches or synchronisation */
    /* ---- the workers are busy with: */
    WEIR_CAUSE_DECODE,
    WEIR_CAUSE_INFLATE,
    WEIR_CAUSE_CONVERT,
    WEIR_CAUSE_READ_CPU, /* system calls and copying from the page cache */
    WEIR_CAUSE_OTHER_CPU,
    WEIR_CAUSE_TRANSFORM,
    WEIR_CAUSE_OWN_CODE, /* of the dataset */
    WEIR_CAUSE_COLLATE,
    /* ---- the workers wait for: */
    WEIR_CAUSE_STORAGE, /* bandwidth or latency; reads at one depth do not show which */
    WEIR_CAUSE_STORAGE_BANDWIDTH,
    WEIR_CAUSE_STORAGE_LATENCY,
    WEIR_CAUSE_STORAGE_TAIL,
    WEIR_CAUSE_SLOW_CAMERA,
    WEIR_CAUSE_SLOW_FILE,
    WEIR_CAUSE_SLOW_WORKER,
    WEIR_CAUSE_LOCK,
    WEIR_CAUSE_LIBRARY,
    WEIR_CAUSE_COLD,
    WEIR_CAUSE_FEW_IN_FLIGHT, /* requests to a server, by --io-depth or at the bound */
    WEIR_CAUSE_SERVER_LATENCY,
    WEIR_CAUSE_SERVER_BANDWIDTH, /* of the link or of the server */
    WEIR_CAUSE_SERVER_LIMIT,     /* refusals: 429, 503 */
    /* ---- workers and batches */
    WEIR_CAUSE_TOO_FEW_WORKERS,
    WEIR_CAUSE_BUSY_WORKERS, /* no core is idle for more of them, or the stage that takes most is unknown */
    WEIR_CAUSE_TOO_MANY_WORKERS,
    WEIR_CAUSE_BURSTS,    /* too few batches are prefetched */
    WEIR_CAUSE_IMBALANCE, /* batches differ too much in time for the batches that are prefetched */
    WEIR_CAUSE_START_UP,
    /* ---- who takes the cores */
    WEIR_CAUSE_QUOTA,
    WEIR_CAUSE_HOST,
    WEIR_CAUSE_NEIGHBOURS,
    WEIR_CAUSE_TOO_MANY_THREADS,
    WEIR_CAUSE_MEMORY_BANDWIDTH,
    WEIR_CAUSE_FEWER_CORES, /* than the other ranks have */
    WEIR_CAUSE_MORE_DATA,   /* a rank's data needs more work than that of the others */
    /* ---- on the way to the GPU */
    WEIR_CAUSE_BUS,
    WEIR_CAUSE_GPU_DECODER,
    WEIR_CAUSE_PIN_OFF,
    WEIR_CAUSE_TRANSFER,
    WEIR_CAUSE_GIL, /* the main process cannot take batches that are ready */
    WEIR_CAUSES
};

enum weir_advice_kind {
    WEIR_ADVICE_NONE,
    WEIR_ADVICE_MORE_WORKERS,
    WEIR_ADVICE_FEWER_WORKERS,
    WEIR_ADVICE_MORE_BATCHES, /* prefetched */
    WEIR_ADVICE_FREE_CORES,   /* stop other processes */
    WEIR_ADVICE_QUOTA,
    WEIR_ADVICE_TRACE,         /* the step */
    WEIR_ADVICE_LONG_DECODING, /* these four: stages that take much of a loop's time */
    WEIR_ADVICE_LONG_LOADING,
    WEIR_ADVICE_LONG_FORWARD,
    WEIR_ADVICE_LONG_BACKWARD,
    /* ---- to Weir's loader */
    WEIR_ADVICE_CACHE,
    WEIR_ADVICE_HALF_SIZE,
    WEIR_ADVICE_MORE_CORES,
    WEIR_ADVICE_READ_AHEAD,
    WEIR_ADVICE_U8,
    WEIR_ADVICE_CONVERT, /* convert the dataset to frames that Weir can read without the HDF5 library */
    WEIR_ADVICE_HOST,    /* use a host without stolen time */
    WEIR_ADVICE_WARM,    /* later epochs are faster */
    WEIR_ADVICE_LOOK_AT, /* find out why a camera, a file or a worker is slow */
    WEIR_ADVICE_FASTER_STEP,
    WEIR_ADVICE_HYBRID,     /* --decoder hybrid */
    WEIR_ADVICE_LONGER,     /* a longer run */
    WEIR_ADVICE_ENGINES,    /* --decoder auto, because the GPU's JPEG engines are idle */
    WEIR_ADVICE_INDEX,      /* --index, which saves the result of opening the dataset */
    WEIR_ADVICE_KEY_FRAMES, /* encode the videos again, with a key frame every 2 pictures */
    WEIR_ADVICE_JPEGS,      /* convert the videos to JPEGs */
    WEIR_ADVICE_IN_FLIGHT,  /* more requests in flight */
    WEIR_ADVICE_NEAR,       /* --cache, which keeps what servers sent */
    /* ---- to jobs with a DataLoader */
    WEIR_ADVICE_WATCH,      /* look inside, with weir.watch */
    WEIR_ADVICE_OWN_REPORT, /* of Weir's loader */
    WEIR_ADVICE_TIME_PARTS,
    WEIR_ADVICE_PERSISTENT,
    WEIR_ADVICE_PIN_MEMORY,
    WEIR_ADVICE_THREADS,
    WEIR_ADVICE_OPEN_PER_WORKER,
    WEIR_ADVICE_KEEP_OPEN,
    WEIR_ADVICE_CHEAPER_DECODE, /* these five: weir_advice_halves */
    WEIR_ADVICE_CHEAPER_TRANSFORM,
    WEIR_ADVICE_CHEAPER_ITEM,
    WEIR_ADVICE_CHEAPER_READ,
    WEIR_ADVICE_CHEAPER_COLLATE,
    WEIR_ADVICE_FASTER_STORAGE,
    WEIR_ADVICE_SLOW_FILE,
    WEIR_ADVICE_SLOW_WORKER,
    WEIR_ADVICE_OUT_OF_ORDER,
    WEIR_ADVICE_EVEN_SHARES,
    WEIR_ADVICE_SMALLER_TRANSFER,
    WEIR_ADVICE_MAIN_PROCESS,
    WEIR_ADVICES
};

/* Returns the name in JSON and logs, such as "too-few-workers"; NULL if no rule of the subject finds this cause. */
const char *weir_cause_name(enum weir_subject subject, enum weir_cause cause);
/* Returns what a job's verdict says of the cause before the evidence, such as "the workers wait for storage"; NULL for
 * causes of Weir's loader only, whose rules write whole sentences. */
const char *weir_cause_sentence(enum weir_cause cause);
/* Returns the usual advice to a job with this cause. */
enum weir_advice_kind weir_cause_advice(enum weir_cause cause);

struct weir_advice_words {
    const char *name;    /* in JSON and, with spaces for a job's hyphens, in text; NULL: no advice to this subject */
    const char *what;    /* "raise num_workers"; NULL: the rule that gives the advice writes it, with figures */
    const char *how;     /* how to do it, or what to try first; NULL = no more to say */
    const char *setting; /* "pin_memory=True"; NULL: none, or one with a number */
};

/* Returns the words for the subject, valid for the life of the process. */
const struct weir_advice_words *weir_advice_words(enum weir_subject subject, enum weir_advice_kind kind);
/* Returns whether a predicted gain is that of halving what the advice makes cheaper. */
bool weir_advice_halves(enum weir_advice_kind kind);

#endif
