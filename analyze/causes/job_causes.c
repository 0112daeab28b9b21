#include "analyze/causes/job_causes.h"

#include <stdbool.h>
#include <string.h>

static const struct weir_job_cause_info causes[WEIR_JOB_CAUSES] = {
    [WEIR_JOB_UNSURE] = {"unsure", "the cause is not certain", WEIR_JOB_ADVICE_WATCH},
    [WEIR_JOB_NOT_DATA_BOUND] = {"not-data-bound", "training does not wait for data", WEIR_JOB_ADVICE_NONE},
    [WEIR_JOB_STEP] = {"step", "the step itself waits: launches or synchronisation", WEIR_JOB_ADVICE_TRACE},
    [WEIR_JOB_WORKERS_SATURATED] = {"workers-saturated", "the workers are busy all the time",
                                    WEIR_JOB_ADVICE_NUM_WORKERS},
    [WEIR_JOB_DECODE] = {"decode", "the workers spend their time decoding", WEIR_JOB_ADVICE_CHEAPER_DECODE},
    [WEIR_JOB_TRANSFORM] = {"transform", "the workers spend their time in transforms",
                            WEIR_JOB_ADVICE_CHEAPER_TRANSFORM},
    [WEIR_JOB_OWN_CODE] = {"own-code", "the workers spend their time in the dataset's own code",
                           WEIR_JOB_ADVICE_CHEAPER_ITEM},
    [WEIR_JOB_READ_CPU] = {"read-cpu", "the workers spend their CPU time reading files", WEIR_JOB_ADVICE_CHEAPER_READ},
    [WEIR_JOB_TOO_FEW_WORKERS] = {"too-few-workers", "there are too few workers", WEIR_JOB_ADVICE_NUM_WORKERS},
    [WEIR_JOB_STORAGE] = {"storage", "the workers wait for storage", WEIR_JOB_ADVICE_FASTER_STORAGE},
    [WEIR_JOB_SLOW_FILE] = {"slow-file", "one file is slower than the others", WEIR_JOB_ADVICE_SLOW_FILE},
    [WEIR_JOB_SLOW_WORKER] = {"slow-worker", "one worker is slower than the others", WEIR_JOB_ADVICE_SLOW_WORKER},
    [WEIR_JOB_LOCK] = {"lock", "the workers wait for a lock", WEIR_JOB_ADVICE_OPEN_PER_WORKER},
    [WEIR_JOB_TOO_MANY_THREADS] = {"too-many-threads", "the workers run more threads than there are cores",
                                   WEIR_JOB_ADVICE_THREADS},
    [WEIR_JOB_QUOTA] = {"quota", "a CPU quota stops the job", WEIR_JOB_ADVICE_QUOTA},
    [WEIR_JOB_NEIGHBOURS] = {"neighbours", "other processes take the cores", WEIR_JOB_ADVICE_NEIGHBOURS},
    [WEIR_JOB_COLLATE] = {"collate", "the workers spend their time collating batches", WEIR_JOB_ADVICE_CHEAPER_COLLATE},
    [WEIR_JOB_PIN_OFF] = {"pin-off", "copies to the GPU use pageable memory", WEIR_JOB_ADVICE_PIN_MEMORY},
    [WEIR_JOB_TRANSFER] = {"transfer", "batches are large to copy to the GPU", WEIR_JOB_ADVICE_SMALLER_TRANSFER},
    [WEIR_JOB_GIL] = {"gil", "the main process cannot take batches that are ready", WEIR_JOB_ADVICE_MAIN_PROCESS},
    [WEIR_JOB_START_UP] = {"start-up", "workers take long to start in each epoch", WEIR_JOB_ADVICE_PERSISTENT},
    [WEIR_JOB_IMBALANCE] = {"imbalance", "slow batches hold up the ones that are ready", WEIR_JOB_ADVICE_OUT_OF_ORDER},
};

static const struct weir_job_advice_info advices[WEIR_JOB_ADVICES] = {
    [WEIR_JOB_ADVICE_NONE] = {"none", "", ""},
    [WEIR_JOB_ADVICE_WATCH] = {"watch", "look inside with weir.watch(dataloader)",
                               "or without a change: python -m weir watch train.py"},
    [WEIR_JOB_ADVICE_OWN_REPORT] = {"own-report", "read the report of Weir's loader, which times every stage",
                                    "Ctrl-C prints it, --serve shows it live; weir.print_timing_stats() in Python"},
    [WEIR_JOB_ADVICE_TRACE] = {"trace", "trace the step", "with weir.profile, or torch.profiler"},
    [WEIR_JOB_ADVICE_TIME_PARTS] = {"time-parts", "time the parts of the iterable",
                                    "with weir.stage, if they run in this process"},
    [WEIR_JOB_ADVICE_NUM_WORKERS] = {"num-workers", "raise num_workers", ""},
    [WEIR_JOB_ADVICE_FEWER_WORKERS] = {"fewer-workers", "lower num_workers", ""},
    [WEIR_JOB_ADVICE_PREFETCH] = {"prefetch-factor", "raise prefetch_factor", ""},
    [WEIR_JOB_ADVICE_PERSISTENT] = {"persistent-workers", "set persistent_workers=True", ""},
    [WEIR_JOB_ADVICE_PIN_MEMORY] = {"pin-memory", "set pin_memory=True",
                                    "and copy with .to(device, non_blocking=True)"},
    [WEIR_JOB_ADVICE_THREADS] = {"threads", "use one thread per worker",
                                 "cv2.setNumThreads(0) and torch.set_num_threads(1) in worker_init_fn"},
    [WEIR_JOB_ADVICE_OPEN_PER_WORKER] = {"open-per-worker", "open the HDF5 file in each worker",
                                         "on the first __getitem__ or in worker_init_fn, not before the workers start "
                                         "and without a lock around it"},
    [WEIR_JOB_ADVICE_KEEP_OPEN] = {"keep-open", "keep the HDF5 file open",
                                   "each worker opens it once, on the first __getitem__ or in worker_init_fn"},
    [WEIR_JOB_ADVICE_CHEAPER_DECODE] = {"cheaper-decode", "decode fewer pixels",
                                        "store the images at the size that training uses, or decode with weir.Loader"},
    [WEIR_JOB_ADVICE_CHEAPER_TRANSFORM] =
        {"cheaper-transform", "make the transforms cheaper",
         "resize first, use torchvision.transforms.v2 on uint8, or move them to the GPU"},
    [WEIR_JOB_ADVICE_CHEAPER_ITEM] = {"cheaper-item", "make __getitem__ cheaper",
                                      "wrap its parts in weir.stage(...) to see which one it is"},
    [WEIR_JOB_ADVICE_CHEAPER_READ] = {"cheaper-read", "read less, or from a format that costs less to read",
                                      "uncompressed chunks of one item each"},
    [WEIR_JOB_ADVICE_CHEAPER_COLLATE] = {"cheaper-collate", "make collate_fn cheaper",
                                         "return uint8 from __getitem__, and convert after the copy to the GPU"},
    [WEIR_JOB_ADVICE_FASTER_STORAGE] =
        {"faster-storage", "read from faster storage",
         "copy the dataset to a local disk, or raise num_workers so that more reads overlap"},
    [WEIR_JOB_ADVICE_SLOW_FILE] = {"slow-file", "find out why this file is slow",
                                   "its size, its compression, or the storage it is on"},
    [WEIR_JOB_ADVICE_SLOW_WORKER] = {"slow-worker", "find out why this worker is slow",
                                     "its share of the data (worker_init_fn, IterableDataset), or the core it runs on"},
    [WEIR_JOB_ADVICE_OUT_OF_ORDER] = {"in-order", "set in_order=False",
                                      "if the order of batches does not matter; else raise prefetch_factor"},
    [WEIR_JOB_ADVICE_EVEN_SHARES] = {"even-shares", "divide the data evenly among the workers",
                                     "by samples or by many small shards, with get_worker_info() in __iter__"},
    [WEIR_JOB_ADVICE_SMALLER_TRANSFER] = {"smaller-transfer", "copy fewer bytes",
                                          "as uint8, converted on the GPU; overlap the copy with the step"},
    [WEIR_JOB_ADVICE_MAIN_PROCESS] =
        {"main-process", "take Python work out of the main process",
         "other threads hold the GIL; return few large tensors per batch, not many small ones"},
    [WEIR_JOB_ADVICE_QUOTA] = {"quota", "raise the CPU quota", "or lower num_workers to the cores it allows"},
    [WEIR_JOB_ADVICE_NEIGHBOURS] = {"neighbours", "stop the other processes", "or run the job on cores of its own"},
};

const struct weir_job_cause_info *weir_job_cause_info(enum weir_job_cause cause)
{
    return &causes[(unsigned)cause < WEIR_JOB_CAUSES ? cause : WEIR_JOB_UNSURE];
}

const struct weir_job_advice_info *weir_job_advice_info(enum weir_job_advice advice)
{
    return &advices[(unsigned)advice < WEIR_JOB_ADVICES ? advice : WEIR_JOB_ADVICE_NONE];
}

bool weir_job_advice_halves(enum weir_job_advice advice)
{
    return advice >= WEIR_JOB_ADVICE_CHEAPER_DECODE && advice <= WEIR_JOB_ADVICE_CHEAPER_COLLATE;
}

void weir_job_advice_print_why(FILE *out, const struct weir_job_advice_info *info)
{
    bool goes_on = strncmp(info->why, "or ", 3) == 0 || strncmp(info->why, "and ", 4) == 0;
    if (info->why[0])
        fprintf(out, "%s %s", goes_on ? "," : ":", info->why);
}

int weir_job_cause_find(const char *name)
{
    for (int i = 0; i < WEIR_JOB_CAUSES; i++)
        if (strcmp(causes[i].name, name) == 0)
            return i;
    return -1;
}

int weir_job_advice_find(const char *name)
{
    for (int i = 0; i < WEIR_JOB_ADVICES; i++)
        if (strcmp(advices[i].name, name) == 0)
            return i;
    return -1;
}
