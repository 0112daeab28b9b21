#include "analyze/causes/causes.h"

#include <stddef.h>

static const struct {
    const char *names[WEIR_SUBJECTS];
    const char *sentence;
    enum weir_advice_kind advice;
} causes[WEIR_CAUSES] = {
    [WEIR_CAUSE_CANNOT_TELL] = {{"cannot-tell", "unsure"}, "the cause is not certain", WEIR_ADVICE_WATCH},
    [WEIR_CAUSE_CONSUMER] = {{"consumer", "not-data-bound"}, "training does not wait for data", WEIR_ADVICE_NONE},
    [WEIR_CAUSE_STEP] = {{NULL, "step", "step"},
                         "the step itself waits: launches or synchronisation",
                         WEIR_ADVICE_TRACE},
    [WEIR_CAUSE_DECODE] = {{"decode", "decode"}, "the workers spend their time decoding", WEIR_ADVICE_CHEAPER_DECODE},
    [WEIR_CAUSE_INFLATE] = {.names = {"inflate"}},
    [WEIR_CAUSE_CONVERT] = {.names = {"convert"}},
    [WEIR_CAUSE_READ_CPU] = {{"page-cache", "read-cpu"},
                             "the workers spend their CPU time reading files",
                             WEIR_ADVICE_CHEAPER_READ},
    [WEIR_CAUSE_OTHER_CPU] = {.names = {"other-cpu"}},
    [WEIR_CAUSE_TRANSFORM] = {{NULL, "transform"},
                              "the workers spend their time in transforms",
                              WEIR_ADVICE_CHEAPER_TRANSFORM},
    [WEIR_CAUSE_OWN_CODE] = {{NULL, "own-code"},
                             "the workers spend their time in the dataset's own code",
                             WEIR_ADVICE_CHEAPER_ITEM},
    [WEIR_CAUSE_COLLATE] = {{NULL, "collate"},
                            "the workers spend their time collating batches",
                            WEIR_ADVICE_CHEAPER_COLLATE},
    [WEIR_CAUSE_STORAGE] = {{"storage", "storage", "storage"},
                            "the workers wait for storage",
                            WEIR_ADVICE_FASTER_STORAGE},
    [WEIR_CAUSE_STORAGE_BANDWIDTH] = {.names = {"storage-bandwidth"}},
    [WEIR_CAUSE_STORAGE_LATENCY] = {.names = {"storage-latency"}},
    [WEIR_CAUSE_STORAGE_TAIL] = {.names = {"storage-tail"}},
    [WEIR_CAUSE_SLOW_CAMERA] = {.names = {"slow-camera"}},
    [WEIR_CAUSE_SLOW_FILE] = {{"slow-file", "slow-file"}, "one file is slower than the others", WEIR_ADVICE_SLOW_FILE},
    [WEIR_CAUSE_SLOW_WORKER] = {{"slow-worker", "slow-worker"},
                                "one worker is slower than the others",
                                WEIR_ADVICE_SLOW_WORKER},
    [WEIR_CAUSE_LOCK] = {{NULL, "lock"}, "the workers wait for a lock", WEIR_ADVICE_OPEN_PER_WORKER},
    [WEIR_CAUSE_LIBRARY] = {.names = {"library"}},
    [WEIR_CAUSE_COLD] = {.names = {"cold"}},
    [WEIR_CAUSE_FEW_IN_FLIGHT] = {.names = {"few-in-flight"}},
    [WEIR_CAUSE_SERVER_LATENCY] = {.names = {"server-latency"}},
    [WEIR_CAUSE_SERVER_BANDWIDTH] = {.names = {"server-bandwidth"}},
    [WEIR_CAUSE_SERVER_LIMIT] = {.names = {"server-limit"}},
    [WEIR_CAUSE_TOO_FEW_WORKERS] = {{"too-few-workers", "too-few-workers"},
                                    "there are too few workers",
                                    WEIR_ADVICE_MORE_WORKERS},
    [WEIR_CAUSE_BUSY_WORKERS] = {{"workers", "workers-saturated"},
                                 "the workers are busy all the time",
                                 WEIR_ADVICE_MORE_WORKERS},
    [WEIR_CAUSE_TOO_MANY_WORKERS] = {.names = {"too-many-workers"}},
    [WEIR_CAUSE_BURSTS] = {.names = {"bursts"}},
    [WEIR_CAUSE_IMBALANCE] = {{NULL, "imbalance"},
                              "slow batches hold up the ones that are ready",
                              WEIR_ADVICE_OUT_OF_ORDER},
    [WEIR_CAUSE_START_UP] = {{NULL, "start-up"}, "workers take long to start in each epoch", WEIR_ADVICE_PERSISTENT},
    [WEIR_CAUSE_QUOTA] = {{"quota", "quota", "throttled"}, "a CPU quota stops the job", WEIR_ADVICE_QUOTA},
    [WEIR_CAUSE_HOST] = {.names = {"host"}},
    [WEIR_CAUSE_NEIGHBOURS] = {{"neighbours", "neighbours", "neighbour"},
                               "other processes take the cores",
                               WEIR_ADVICE_FREE_CORES},
    [WEIR_CAUSE_TOO_MANY_THREADS] = {{NULL, "too-many-threads"},
                                     "the workers run more threads than there are cores",
                                     WEIR_ADVICE_THREADS},
    [WEIR_CAUSE_MEMORY_BANDWIDTH] = {.names = {"memory-bandwidth"}},
    [WEIR_CAUSE_FEWER_CORES] = {.names = {NULL, NULL, "cores"}},
    [WEIR_CAUSE_MORE_DATA] = {.names = {NULL, NULL, "data"}},
    [WEIR_CAUSE_BUS] = {.names = {"bus"}},
    [WEIR_CAUSE_GPU_DECODER] = {.names = {"gpu-decoder"}},
    [WEIR_CAUSE_PIN_OFF] = {{NULL, "pin-off"}, "copies to the GPU use pageable memory", WEIR_ADVICE_PIN_MEMORY},
    [WEIR_CAUSE_TRANSFER] = {{NULL, "transfer"}, "batches are large to copy to the GPU", WEIR_ADVICE_SMALLER_TRANSFER},
    [WEIR_CAUSE_GIL] = {{NULL, "gil"}, "the main process cannot take batches that are ready", WEIR_ADVICE_MAIN_PROCESS},
};

#define FOR_LOADER(...)                                                                                                \
    {                                                                                                                  \
        [WEIR_SUBJECT_LOADER] = { __VA_ARGS__ }                                                                        \
    }
#define FOR_JOB(...)                                                                                                   \
    {                                                                                                                  \
        [WEIR_SUBJECT_JOB] = { __VA_ARGS__ }                                                                           \
    }

static const struct weir_advice_words advices[WEIR_ADVICES][WEIR_SUBJECTS] = {
    [WEIR_ADVICE_NONE] = FOR_JOB("none", .what = ""),
    [WEIR_ADVICE_MORE_WORKERS] = {{"more workers", .what = "more concurrent reads"},
                                  {"num-workers", .what = "raise num_workers"}},
    [WEIR_ADVICE_FEWER_WORKERS] = {{"fewer workers",
                                    .what = "the same rate with less memory and fewer context switches"},
                                   {"fewer-workers", .what = "lower num_workers"}},
    [WEIR_ADVICE_MORE_BATCHES] = {{"more prefetch", .what = "absorbs slow batches"},
                                  {"prefetch-factor", .what = "raise prefetch_factor"}},
    [WEIR_ADVICE_FREE_CORES] = {{.name = "stop other processes"},
                                {"neighbours", "stop the other processes",
                                 .how = "or run the job on cores of its own"}},
    [WEIR_ADVICE_QUOTA] = {{.name = "a larger quota"},
                           {"quota", "raise the CPU quota", .how = "or lower num_workers to the cores it allows"}},
    [WEIR_ADVICE_TRACE] = {{"a trace", .what = "shows what the step does"},
                           {"trace", "trace the step", .how = "with weir.profile, or torch.profiler"}},
    [WEIR_ADVICE_LONG_DECODING] =
        {{"image decoding", .what =
                                "--decode-cache, fewer --cameras, or a copy with smaller or uncompressed frames (weir "
                                "convert --image-size, --codec raw)"},
         {"image decoding", .what =
                                "a cache of decoded images, fewer cameras, smaller images, or uncompressed ones (weir "
                                "convert --codec raw)"}},
    [WEIR_ADVICE_LONG_LOADING] =
        {{"loading data",
          .what = "--num-workers, an SSD, --io uring, or another format (weir convert --to packed, or lmdb)"},
         {"loading data",
          .what = "more workers (num_workers) if memory allows, an SSD, or another format (weir convert --to "
                  "lmdb, or tfrecord)"}},
    [WEIR_ADVICE_LONG_FORWARD] =
        {{"forward pass",
          .what = "a smaller model (--hidden-dim, --dim-feedforward), smaller or fewer images (--image-size, "
                  "--cameras), a larger --batch-size, or a GPU (--device cuda, --amp)"},
         {"forward pass",
          .what = "a smaller model (hidden_dim, dim_feedforward), mixed precision (AMP), a larger batch_size if "
                  "memory allows, or a lighter backbone such as MobileNet"}},
    [WEIR_ADVICE_LONG_BACKWARD] =
        {{"backward pass", .what = "a smaller --chunk-size or --hidden-dim, smaller images (--image-size), or "
                                   "--grad-accumulation in place of a large --batch-size"},
         {"backward pass",
          .what = "a smaller chunk_size or model (hidden_dim), or AMP; to save memory, gradient accumulation in "
                  "place of a large batch_size, or gradient checkpointing, which takes more time"}},
    [WEIR_ADVICE_CACHE] = FOR_LOADER(.name = "decode cache"),
    [WEIR_ADVICE_HALF_SIZE] = FOR_LOADER("half-size frames", .what = "fewer pixels to decode"),
    [WEIR_ADVICE_MORE_CORES] = FOR_LOADER(.name = "more cores"),
    [WEIR_ADVICE_READ_AHEAD] = FOR_LOADER("read-ahead", .what = "64 concurrent reads"),
    [WEIR_ADVICE_U8] = FOR_LOADER("bytes, not floats", .what = "the training code converts, so omit --mean and --std"),
    [WEIR_ADVICE_CONVERT] = FOR_LOADER("another format", .what = "frames that Weir reads without the HDF5 library"),
    [WEIR_ADVICE_HOST] = FOR_LOADER("another host", .what = "without stolen time"),
    [WEIR_ADVICE_WARM] = FOR_LOADER("a warm page cache", .what = "later epochs read from memory"),
    [WEIR_ADVICE_LOOK_AT] = FOR_LOADER("find out why", .what = "if it were as fast as the others"),
    [WEIR_ADVICE_FASTER_STEP] = FOR_LOADER("a faster step", .what = "loading could keep up"),
    [WEIR_ADVICE_HYBRID] = FOR_LOADER("CPU cores decode too", .what = "alongside the GPU"),
    [WEIR_ADVICE_LONGER] = FOR_LOADER("a longer run", .what = "for example"),
    [WEIR_ADVICE_ENGINES] = FOR_LOADER(.name = "JPEG engines"),
    [WEIR_ADVICE_INDEX] = FOR_LOADER(.name = "a saved index"),
    [WEIR_ADVICE_KEY_FRAMES] = FOR_LOADER(.name = "closer key frames"),
    [WEIR_ADVICE_JPEGS] = FOR_LOADER(.name = "a copy of JPEGs"),
    [WEIR_ADVICE_IN_FLIGHT] = FOR_LOADER("more in flight", .what = "hides the latency of requests"),
    [WEIR_ADVICE_NEAR] = FOR_LOADER("a cache on disk", .what = "no requests after the first epoch"),
    [WEIR_ADVICE_WATCH] = FOR_JOB("watch", "look inside with weir.watch(dataloader)",
                                  .how = "or without a change: python -m weir watch train.py"),
    [WEIR_ADVICE_OWN_REPORT] =
        FOR_JOB("own-report", "read the report of Weir's loader, which times every stage",
                .how = "Ctrl-C prints it, --serve shows it live; weir.print_timing_stats() in Python"),
    [WEIR_ADVICE_TIME_PARTS] =
        FOR_JOB("time-parts", "time the parts of the iterable", .how = "with weir.stage, if they run in this process"),
    [WEIR_ADVICE_PERSISTENT] =
        FOR_JOB("persistent-workers", "set persistent_workers=True", .setting = "persistent_workers=True"),
    [WEIR_ADVICE_PIN_MEMORY] =
        FOR_JOB("pin-memory", "set pin_memory=True", "and copy with .to(device, non_blocking=True)", "pin_memory=True"),
    [WEIR_ADVICE_THREADS] = FOR_JOB("threads", "use one thread per worker", "in worker_init_fn",
                                    "cv2.setNumThreads(0), torch.set_num_threads(1)"),
    [WEIR_ADVICE_OPEN_PER_WORKER] = FOR_JOB(
        "open-per-worker", "open the HDF5 file in each worker",
        .how = "on the first __getitem__ or in worker_init_fn, not before the workers start and without a lock around "
               "it"),
    [WEIR_ADVICE_KEEP_OPEN] =
        FOR_JOB("keep-open", "keep the HDF5 file open",
                .how = "each worker opens it once, on the first __getitem__ or in worker_init_fn"),
    [WEIR_ADVICE_CHEAPER_DECODE] =
        FOR_JOB("cheaper-decode", "decode fewer pixels",
                .how = "store the images at the size that training uses, or decode with weir.Loader"),
    [WEIR_ADVICE_CHEAPER_TRANSFORM] =
        FOR_JOB("cheaper-transform", "make the transforms cheaper",
                .how = "resize first, use torchvision.transforms.v2 on uint8, or move them to the GPU"),
    [WEIR_ADVICE_CHEAPER_ITEM] = FOR_JOB("cheaper-item", "make __getitem__ cheaper",
                                         .how = "wrap its parts in weir.stage(...) to see which one it is"),
    [WEIR_ADVICE_CHEAPER_READ] = FOR_JOB("cheaper-read", "read less, or from a format that costs less to read",
                                         .how = "uncompressed chunks of one item each"),
    [WEIR_ADVICE_CHEAPER_COLLATE] =
        FOR_JOB("cheaper-collate", "make collate_fn cheaper",
                .how = "return uint8 from __getitem__, and convert after the copy to the GPU"),
    [WEIR_ADVICE_FASTER_STORAGE] =
        FOR_JOB("faster-storage", "read from faster storage",
                .how = "copy the dataset to a local disk, or raise num_workers so that more reads overlap"),
    [WEIR_ADVICE_SLOW_FILE] = FOR_JOB("slow-file", "find out why this file is slow",
                                      .how = "its size, its compression, or the storage it is on"),
    [WEIR_ADVICE_SLOW_WORKER] =
        FOR_JOB("slow-worker", "find out why this worker is slow",
                .how = "its share of the data (worker_init_fn, IterableDataset), or the core it runs on"),
    [WEIR_ADVICE_OUT_OF_ORDER] =
        FOR_JOB("in-order", "set in_order=False", "if the order of batches does not matter; else raise prefetch_factor",
                "in_order=False"),
    [WEIR_ADVICE_EVEN_SHARES] =
        FOR_JOB("even-shares", "divide the data evenly among the workers",
                .how = "by samples or by many small shards, with get_worker_info() in __iter__"),
    [WEIR_ADVICE_SMALLER_TRANSFER] = FOR_JOB("smaller-transfer", "copy fewer bytes",
                                             .how = "as uint8, converted on the GPU; overlap the copy with the step"),
    [WEIR_ADVICE_MAIN_PROCESS] =
        FOR_JOB("main-process", "take Python work out of the main process",
                .how = "other threads hold the GIL; return few large tensors per batch, not many small ones"),
};

const char *weir_cause_name(enum weir_subject subject, enum weir_cause cause)
{
    return causes[cause].names[subject];
}

const char *weir_cause_sentence(enum weir_cause cause)
{
    return causes[cause].sentence;
}

enum weir_advice_kind weir_cause_advice(enum weir_cause cause)
{
    return causes[cause].advice;
}

const struct weir_advice_words *weir_advice_words(enum weir_subject subject, enum weir_advice_kind kind)
{
    return &advices[kind][subject];
}

bool weir_advice_halves(enum weir_advice_kind kind)
{
    return kind >= WEIR_ADVICE_CHEAPER_DECODE && kind <= WEIR_ADVICE_CHEAPER_COLLATE;
}
