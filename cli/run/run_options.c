#include "cli/run/run_options.h"
#include "cli/commands.h"

#include "io/io.h"
#include "pipeline/read_ahead.h"
#include "weir/loader.h"

#include <assert.h>
#include <string.h>

#define FIELD(field) .offset = offsetof(struct run_options, field)

const struct weir_opt weir_run_opts[WEIR_RUN_OPTS] = {
    {"batch-size", WEIR_OPT_INT, FIELD(batch_size), "N", "8", "samples per batch", 1, 65536},
    {"num-workers", WEIR_OPT_INT, FIELD(num_workers), "N", "auto",
     "worker threads; auto: one per usable core, of which local ranks have a part each; 0: on the main thread", 0,
     WEIR_WORKERS_MAX, true},
    {"prefetch", WEIR_OPT_INT, FIELD(prefetch), "N", "auto",
     "batches workers may be ahead; auto: four frames per worker, more where chunks hold several or a GPU decodes", 1,
     4096, true},
    {"num-epochs", WEIR_OPT_INT, FIELD(num_epochs), "N", "1", "epochs to run", 1, 1e9},
    {"max-batches", WEIR_OPT_INT, FIELD(max_batches), "N", "0",
     "batches per epoch, of training and of validation each; 0: all", 0, 2e9},
    {"seconds", WEIR_OPT_DOUBLE, FIELD(seconds), "F", "0",
     "measure for so long after a warm-up, over the borders of epochs, and end; with --cold one epoch at most", 0, 1e6},
    {"sampling", WEIR_OPT_ENUM, FIELD(sampling), "timestep|episode", "timestep",
     "every (episode, t), or one random start per episode and epoch (ACT)"},
    {"obs-history", WEIR_OPT_INT, FIELD(obs_history), "N", "1", "frames per camera, up to t", 1, 1024},
    {"chunk-size", WEIR_OPT_INT, FIELD(chunk_size), "N", "20", "actions per sample", 1, 65536},
    {"pad", WEIR_OPT_ENUM, FIELD(pad), "zero|last", "zero", "actions after the end of the episode"},
    {"action-offset", WEIR_OPT_INT, FIELD(action_offset), "N", "0", "first action at t + N (-1: ACT's real robots)",
     -1e6, 1e6},
    {"seed", WEIR_OPT_UINT64, FIELD(seed), "N", "0", "of the split and the order of samples"},
    {"no-shuffle", WEIR_OPT_FLAG, FIELD(no_shuffle), NULL, NULL, "samples and split in the order of the files"},
    {"drop-last", WEIR_OPT_FLAG, FIELD(drop_last), NULL, NULL, "leave out a short last training batch"},
    {"cameras", WEIR_OPT_TEXT, FIELD(cameras), "a,b", NULL, "these cameras, in this order; default: all but depth"},
    WEIR_DATA_OPTIONS(offsetof(struct run_options, data)),
    {"color", WEIR_OPT_ENUM, FIELD(color), "rgb|bgr", "rgb", "channel order of images"},
    {"output", WEIR_OPT_ENUM, FIELD(output), "u8|f32|f16|bf16", "u8",
     "type of images; but for u8 0..1, or normalised by --mean and --std; f16 and bf16 with --device cuda"},
    {"layout", WEIR_OPT_ENUM, FIELD(layout), "nhwc|nchw", "nhwc", "interleaved or planar images"},
    {"mean", WEIR_OPT_TEXT, FIELD(mean), "R,G,B|imagenet", NULL,
     "with --output f32 (f16, bf16): taken off the values of 0..1"},
    {"std", WEIR_OPT_TEXT, FIELD(std), "R,G,B|imagenet", NULL, "with them: what they are divided by then"},
    {"crop", WEIR_OPT_TEXT, FIELD(crop), "WxH+X+Y", NULL,
     "only this part of the images; CAMERA=WxH+X+Y for one camera, several with commas"},
    {"image-size", WEIR_OPT_SIZE, FIELD(image_size), "WxH", NULL, "size of the images in a batch, after the crop", 1,
     WEIR_IMAGE_SIDE_MAX},
    {"train-split", WEIR_OPT_DOUBLE, FIELD(train_split), "F", "0.9",
     "fraction of the episodes to train on, at least one", 0, 1},
    {"rank", WEIR_OPT_INT, FIELD(rank), "N", "auto",
     "this process of a distributed run, from 0; auto: by the environment of torchrun, srun or mpirun", 0, 1e6, true},
    {"world-size", WEIR_OPT_INT, FIELD(world_size), "N", "auto", "processes of that run", 1, 1e6, true},
    {"wrap", WEIR_OPT_FLAG, FIELD(wrap), NULL, NULL,
     "ranks that would be a batch short take one from the beginning; else the tail is cut"},
    {"on-error", WEIR_OPT_ENUM, FIELD(on_error), "fail|skip|substitute", "fail",
     "a bad frame ends the run, drops its sample, or becomes the last good one before it (without one, drops it)"},
    {"io", WEIR_OPT_TEXT, FIELD(io), weir_io_choices, "auto",
     "how bytes are read; auto: by what is cached, else the fastest in a short measurement; null: from memory"},
    {"io-depth", WEIR_OPT_INT, FIELD(io_depth), "N", "auto", "reads in flight ahead of the workers; auto: 64", 1,
     WEIR_IO_DEPTH_MAX, true},
    {"direct", WEIR_OPT_FLAG, FIELD(direct), NULL, NULL, "reads pass the page cache by (O_DIRECT)"},
    {"cold", WEIR_OPT_FLAG, FIELD(cold), NULL, NULL, "drop the files from the page cache before the run"},
    {"decoder", WEIR_OPT_TEXT, FIELD(decoder), weir_decoder_choices, "auto",
     "how JPEGs are decoded: on the CPU; with --device cuda by its JPEG engines, or by all there is; null: not at all"},
    {"deterministic", WEIR_OPT_FLAG, FIELD(deterministic), NULL, NULL,
     "with hybrid, who decodes which frame is the same in every run"},
    {"device", WEIR_OPT_TEXT, FIELD(device), "cpu|cuda|cuda:K", "cpu",
     "where batches are made: on the host, or on a GPU, whose steps are then kernels; cuda: the local rank's"},
    {"decode-cache", WEIR_OPT_BYTES, FIELD(decode_cache), "BYTES", "0",
     "memory that keeps decoded frames for later epochs, such as 512M or 2G; 0: none"},
    {"step-ms", WEIR_OPT_DOUBLE, FIELD(step_ms), "F", "0", "what a batch takes in the simulated training step", 0, 1e7},
    {"step-spin", WEIR_OPT_FLAG, FIELD(step_spin), NULL, NULL, "with --step-ms: spin instead of sleeping"},
    {"sync-steps", WEIR_OPT_FLAG, FIELD(sync_steps), NULL, NULL, "on a GPU: wait for each step before the next"},
    {"no-timing", WEIR_OPT_FLAG, FIELD(no_timing), NULL, NULL, "no stage timing, only epochs"},
    {"every", WEIR_OPT_INT, FIELD(every), "N", "10", "epochs between tables; 0: only at the end", 0, 1e9},
    {"lang", WEIR_OPT_ENUM, FIELD(lang), "en|zh", "en", "language of epoch lines and tables"},
    {"log", WEIR_OPT_TEXT, FIELD(log), "FILE.jsonl", NULL, "write run, epochs and stages as JSON lines",
     .path = WEIR_PATH_WRITE},
    {"checksums", WEIR_OPT_TEXT, FIELD(checksums), "FILE", NULL, "write a line of hashes per batch",
     .path = WEIR_PATH_WRITE},
    {"state", WEIR_OPT_TEXT, FIELD(state), "FILE", NULL, "save progress; resume from it", .path = WEIR_PATH_WRITE},
    {"json", WEIR_OPT_FLAG, FIELD(json), NULL, NULL, "print JSON lines instead of tables"},
    {"profile", WEIR_OPT_TEXT, FIELD(profile), "DIR", NULL, "record steps (a step is a batch) as traces in this folder",
     .path = WEIR_PATH_WRITE_INTO},
    {"schedule", WEIR_OPT_TEXT, FIELD(schedule), "NAME=N,...", "wait=1,warmup=1,active=3,repeat=1",
     "which steps: wait, warmup, active, repeat (0: for ever), skip_first, skip_first_wait; times: active=500ms"},
    {"record-shapes", WEIR_OPT_FLAG, FIELD(record_shapes), NULL, NULL, "with --profile: shapes and types of tensors"},
    {"profile-memory", WEIR_OPT_FLAG, FIELD(profile_memory), NULL, NULL, "with --profile: memory of batches"},
    {"with-stack", WEIR_OPT_FLAG, FIELD(with_stack), NULL, NULL, "with --profile: C call stacks"},
    {"worker-ops", WEIR_OPT_FLAG, FIELD(worker_ops), NULL, NULL,
     "with --profile: workers' stages as operators (TensorBoard then counts them as CPU time)"},
    {"nvtx", WEIR_OPT_FLAG, FIELD(nvtx), NULL, NULL,
     "show steps, stages and ranges to Nsight Systems (nsys profile weir run ...), with --profile or without"},
    {"sort-by", WEIR_OPT_TEXT, FIELD(sort_by), "KEY", "self_cpu_time_total", "with --profile: order of the averages"},
    {"row-limit", WEIR_OPT_INT, FIELD(row_limit), "N", "20", "with --profile: rows of the averages; -1: all", -1, 1e6},
};

/* Every option but --help is in one of them (tests/cli/test_cli.sh). */
const struct weir_opt_topic weir_run_topics[] = {
    {"What matters first",
     "batch-size num-workers prefetch num-epochs device decoder image-size decode-cache step-ms profile"},
    {"What is drawn",
     "sampling obs-history chunk-size pad action-offset train-split seed no-shuffle drop-last max-batches seconds"},
    {"What is read of a dataset",
     "cameras qpos-keys action-keys image-keys allow-ragged allow-external split on-error index state"},
    {"What a batch holds", "color output layout mean std crop"},
    {"Several processes", "rank world-size wrap"},
    {"Reading and decoding", "io io-depth direct cold deterministic"},
    {"The stand-in for a training step", "step-spin sync-steps"},
    {"Reports", "every lang log checksums json no-timing"},
    {"Recording, with --profile", "schedule record-shapes profile-memory with-stack worker-ops nvtx sort-by row-limit"},
    {NULL, NULL},
};

const char weir_run_examples[] =
    "weir run episodes/ --num-epochs 3 --step-ms 20\tThree epochs beside a training step of 20 ms, and what it waited "
    "for.\n"
    "weir run episodes/ --num-workers 8 --decode-cache 8G --num-epochs 10\tDecoded frames are kept: epochs after the "
    "first "
    "copy them.\n"
    "weir run episodes/ --device cuda --decoder auto --output f16 --layout nchw --mean imagenet --std "
    "imagenet\tBatches are "
    "made in the memory of a GPU.\n"
    "weir run episodes/ --step-ms 20 --profile runs/a && tensorboard --logdir runs\tA trace of three steps.\n"
    "weir run episodes/ --on-error substitute --log run.jsonl && weir report run.jsonl\tBad frames are replaced and "
    "counted; the tables once more, from the log.\n"
    "weir run episodes/ --checksums a.txt --num-workers 0\tA hash of every batch, the same with any number of "
    "workers.\n";

static const struct weir_opt *find(const char *name, size_t length)
{
    for (int i = 0; i < WEIR_RUN_OPTS; i++)
        if (strncmp(weir_run_opts[i].name, name, length) == 0 && weir_run_opts[i].name[length] == '\0')
            return &weir_run_opts[i];
    return NULL;
}

void weir_run_options_take(struct weir_opt *to, int n, const char *names)
{
    for (int i = 0; i < n; i++) {
        size_t length = strcspn(names, " ");
        const struct weir_opt *opt = find(names, length);
        assert(opt);
        to[i] = *opt;
        names += length + (names[length] == ' ');
    }
    assert(*names == '\0');
}
