#include "cli/run/run_options.h"
#include "cli/outputs.h"

#include <string.h>

#define FIELD(field) .offset = offsetof(struct run_options, field)

enum {
    ALL = WEIR_FOR_RUN | WEIR_FOR_WHATIF | WEIR_FOR_TUNE,
    RUN = WEIR_FOR_RUN,
    TRAIN = WEIR_FOR_RUN | WEIR_FOR_TRAIN,
};

/* A value of --serve ends in a colon and digits, as no dataset's name does. */
static bool has_port(const char *text)
{
    const char *colon = strrchr(text, ':');
    return colon && colon[1] && colon[1 + strspn(colon + 1, "0123456789")] == '\0';
}

const struct weir_opt weir_run_opts[] = {
    {"step-ms", WEIR_OPT_DOUBLE, FIELD(step_ms), "MS", "0", "duration of a simulated training step", 0, 1e7,
     .unit = "ms", .topic = "Main options", .users = ALL, .is_common = true},
    {"profile", WEIR_OPT_TEXT, FIELD(profile), "DIR", NULL, "folder for traces of the steps in --schedule",
     .path = WEIR_PATH_WRITE_INTO, .users = TRAIN, .details = "A step is a batch.", .is_common = true},

    {"seconds", WEIR_OPT_DOUBLE, FIELD(seconds), "S", "0", "measured time after a warm-up; 0: whole epochs", 0, 1e6,
     .unit = "seconds", .topic = "Samples", .users = RUN,
     .details = "The measurement continues across epochs. With --cold it covers at most one epoch.", .is_common = true},
    {"state", WEIR_OPT_TEXT, FIELD(state), "FILE", NULL, "file to save progress to and to resume from",
     .path = WEIR_PATH_WRITE, .topic = "Dataset", .users = RUN, .details = "With several ranks, one file per rank."},

    {"mean", WEIR_OPT_TEXT, FIELD(mean), "R,G,B|imagenet", NULL, "per-channel mean to subtract, in units of 0..1",
     .topic = "Images", .users = ALL, .details = "Requires a float --dtype."},
    {"std", WEIR_OPT_TEXT, FIELD(std), "R,G,B|imagenet", NULL, "per-channel standard deviation to divide by",
     .users = ALL, .details = "Requires a float --dtype."},

    {"step-spin", WEIR_OPT_FLAG, FIELD(step_spin), NULL, NULL, "busy-waiting instead of sleeping during --step-ms",
     .topic = "Simulated training step", .users = ALL},
    {"sync-steps", WEIR_OPT_FLAG, FIELD(sync_steps), NULL, NULL, "wait for each GPU step before the next one starts",
     .users = ALL},

    {"every", WEIR_OPT_INT, FIELD(every), "N", "10", "epochs between tables; 0: only at the end", 0, 1e9,
     .unit = "epochs", .topic = "Reports", .users = TRAIN,
     .details = "With several ranks under torchrun, rank 0 also prints which rank is slow, and why."},
    {"lang", WEIR_OPT_ENUM, FIELD(lang), "en|zh", "en", "language of the epoch line and the stage table",
     .users = TRAIN, .is_common = true},
    {"log", WEIR_OPT_TEXT, FIELD(log), "FILE.jsonl", NULL, "log of the run, epochs and stages as JSON lines",
     .path = WEIR_PATH_WRITE, .users = TRAIN,
     .details = "With several ranks, rank 3 writes FILE.rank3.jsonl. With -, the lines replace the tables on standard "
                "output.",
     .is_common = true},
    {"serve", WEIR_OPT_TEXT, FIELD(serve), "[ADDRESS]", NULL, "live figures over HTTP, such as on 127.0.0.1:9464",
     .otherwise = "127.0.0.1:9464", .is_value = has_port, .users = TRAIN,
     .details = "A page at / and metrics for Prometheus at /metrics. Without ADDRESS: 127.0.0.1:9464, which only this "
                "machine can reach. ADDRESS is HOST:PORT or [IPV6]:PORT; port 0 is any free port. With several ranks, "
                "local rank 3 adds 3 to the port."},
    {"prometheus", WEIR_OPT_TEXT, FIELD(prometheus), "FILE", NULL, "metrics for Prometheus, rewritten every 10 s",
     .path = WEIR_PATH_WRITE, .users = TRAIN,
     .details = "Also after each epoch. The file is replaced as a whole, as the textfile collector of node_exporter "
                "requires. With several ranks, one file per rank."},
    {"html", WEIR_OPT_TEXT, FIELD(html), "FILE.html", NULL, "report as a web page that needs no network",
     .path = WEIR_PATH_WRITE, .users = TRAIN,
     .details = "Verdict, limits, charts over the epochs, stages, threads, and with --profile a timeline. weir report "
                "LOG --html makes the same page later. With several ranks, one file per rank."},
    {"checksums", WEIR_OPT_TEXT, FIELD(checksums), "FILE", NULL, "output file with one line of hashes per batch",
     .path = WEIR_PATH_WRITE, .users = RUN, .details = "With several ranks, one file per rank."},
    {"max-wait", WEIR_OPT_DOUBLE, FIELD(max_wait), "PERCENT", "100", "max data wait; above it, the exit status is 3", 0,
     100, .unit = "%", .users = RUN,
     .details =
         "For CI, such as 10%. The data wait is that of the verdict: the part of the training time that is spent "
         "waiting for data. The exit status is 0 up to this limit, 3 above it, 1 if the run was too short to judge or "
         "failed, and 2 with wrong options. Requires a training step (--step-ms)."},
    {"json", WEIR_OPT_FLAG, FIELD(json), NULL, NULL, "JSON output at the end, one object", .users = TRAIN},
    {"wide", WEIR_OPT_FLAG, FIELD(wide), NULL, NULL, "all columns and rows of the tables, and no wrapping",
     .users = TRAIN},

    {"schedule", WEIR_OPT_TEXT, FIELD(schedule), "NAME=N,...", "wait=1,warmup=1,active=3,repeat=1", "steps to trace",
     .topic = "Recording, with --profile", .users = TRAIN,
     .details =
         "wait, warmup, active and skip_first are numbers of steps, repeat is the number of cycles (0: until the end), "
         "skip_first_wait=1 leaves out the first wait. wait and active take a time as well: wait=5 is 5 steps, wait=5s "
         "all steps of 5 seconds, and active=500ms those of half a second."},
    {"record-shapes", WEIR_OPT_FLAG, FIELD(record_shapes), NULL, NULL, "recording of the shapes and types of tensors",
     .users = TRAIN},
    {"profile-memory", WEIR_OPT_FLAG, FIELD(profile_memory), NULL, NULL, "recording of the memory used by batches",
     .users = TRAIN},
    {"with-stack", WEIR_OPT_FLAG, FIELD(with_stack), NULL, NULL, "recording of C call stacks", .users = TRAIN},
    {"worker-ops", WEIR_OPT_FLAG, FIELD(worker_ops), NULL, NULL, "recording of workers' stages as operators",
     .users = TRAIN, .details = "TensorBoard then counts them as CPU time."},
    {"nvtx", WEIR_OPT_FLAG, FIELD(nvtx), NULL, NULL, "NVTX ranges for Nsight Systems", .users = TRAIN,
     .details = "Shows steps, stages and ranges under nsys profile weir run ... This also works without --profile."},
    {"sort-by", WEIR_OPT_TEXT, FIELD(sort_by), "KEY", "self_cpu_time_total", "sort key of the averages",
     .users = TRAIN},
    {"row-limit", WEIR_OPT_INT, FIELD(row_limit), "N", "20", "rows of the averages; -1: all", -1, 1e6, .unit = "rows",
     .users = TRAIN},
    {0},
};

const char weir_run_examples[] =
    "weir run episodes/ --num-epochs 3 --step-ms 20\tThree epochs with a simulated training step of 20 ms.\n"
    "weir run episodes/ --num-workers 8 --decode-cache 8G --num-epochs 10\tLater epochs copy decoded frames from a "
    "cache of "
    "8 GiB.\n"
    "weir run episodes/ --device cuda --decoder auto --dtype f16 --image-layout nchw --mean imagenet --std "
    "imagenet\tBatches in "
    "GPU memory, normalised.\n"
    "weir run episodes/ --step-ms 20 --profile runs/a && tensorboard --logdir runs\tA trace of three steps.\n"
    "weir run episodes/ --on-error substitute --log run.jsonl && weir report run.jsonl\tBad frames are "
    "substituted, and the tables are printed again from the log.\n"
    "weir run episodes/ --checksums a.txt --num-workers 0\tA hash of every batch, which is the same for any "
    "number of workers.\n";

void weir_run_options_copy(struct weir_run_options *to, const struct run_options *from)
{
    *to = (struct weir_run_options){.loader = from->loader,
                                    .mean = from->mean,
                                    .std = from->std,
                                    .step_ms = from->step_ms,
                                    .step_spin = from->step_spin,
                                    .sync_steps = from->sync_steps};
}

int weir_run_source(const struct weir_command *command, const void *values, const struct weir_loader_config *loader,
                    const char *data, struct weir_copy_source *source, struct weir_path_list *files, uint64_t *bytes,
                    struct weir_err *err)
{
    struct weir_dataset_config config = {.size = sizeof config, .path = data};
    struct weir_dataset *dataset;
    uint64_t sum;
    weir_loader_options_dataset(loader, &config);
    int rc = weir_dataset_open(&dataset, &config, err);
    if (rc < 0)
        return rc;
    rc = weir_outputs_spare(command, values, dataset, err);
    if (rc == 0 && source)
        rc = weir_copy_source_of(dataset, source, err);
    if (rc == 0)
        rc = weir_copy_source_files(dataset, files, bytes ? bytes : &sum, err);
    weir_dataset_close(&dataset);
    return rc < 0 ? rc : 0;
}
