#include "base/text.h"
#include "cli/commands.h"
#include "cli/norms.h"
#include "cli/outputs.h"
#include "cli/progress.h"
#include "cli/ranks.h"
#include "cli/run_loop.h"
#include "cli/run_place.h"
#include "cli/sysinfo.h"
#include "pipeline/gpu/gpu.h"
#include "pipeline/read_ahead.h"
#include "pipeline/views.h"
#include "prof/report/machine.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

struct run_options {
    int batch_size, num_workers, prefetch, num_epochs, max_batches;
    int sampling, obs_history, chunk_size, pad, action_offset;
    uint64_t seed;
    bool no_shuffle, drop_last;
    const char *cameras, *qpos_keys, *action_keys, *image_keys, *index;
    bool allow_ragged, allow_external;
    int color, output, layout;
    const char *mean, *std, *crop;
    struct weir_pixel_format format; /* made of color, output, layout, mean and std */
    struct weir_opt_size image_size;
    double train_split;
    int rank, world_size;
    bool wrap;
    int on_error;
    const char *io, *decoder, *device;
    int io_depth;
    bool direct, cold;
    uint64_t decode_cache;
    double step_ms;
    bool deterministic, step_spin, sync_steps, no_timing;
    int every, lang;
    const char *log, *checksums, *state;
    bool json;
    const char *profile, *schedule, *sort_by;
    bool record_shapes, profile_memory, with_stack, worker_ops, nvtx;
    int row_limit;
};

#define FIELD(field) .offset = offsetof(struct run_options, field)

static const struct weir_opt run_opts[] = {
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
    {"qpos-keys", WEIR_OPT_TEXT, FIELD(qpos_keys), "a,b", NULL,
     "datasets of the state, side by side, in place of the layout's"},
    {"action-keys", WEIR_OPT_TEXT, FIELD(action_keys), "a,b", NULL, "datasets of the actions, the same"},
    {"image-keys", WEIR_OPT_TEXT, FIELD(image_keys), "a,name=b", NULL,
     "datasets of the cameras; with all three a file may have any layout"},
    {"allow-ragged", WEIR_OPT_FLAG, FIELD(allow_ragged), NULL, NULL,
     "cut episodes whose parts differ in length to the shortest"},
    {"allow-external", WEIR_OPT_FLAG, FIELD(allow_external), NULL, NULL,
     "read what HDF5 links, external storage and virtual datasets name outside the dataset's folder"},
    {"index", WEIR_OPT_TEXT, FIELD(index), "FILE", NULL,
     "keep the index in this file: read when it fits, else written"},
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
     "this process of a distributed run, from 0; auto: as torchrun, srun or mpirun say", 0, 1e6, true},
    {"world-size", WEIR_OPT_INT, FIELD(world_size), "N", "auto", "processes of that run", 1, 1e6, true},
    {"wrap", WEIR_OPT_FLAG, FIELD(wrap), NULL, NULL,
     "ranks that would be a batch short take one from the beginning; else the tail is cut"},
    {"on-error", WEIR_OPT_ENUM, FIELD(on_error), "fail|skip|substitute", "fail",
     "a bad frame ends the run, drops its sample, or becomes the last good one before it (without one, drops it)"},
    {"io", WEIR_OPT_TEXT, FIELD(io), "auto|pread|mmap|uring|null", "auto",
     "how bytes are read; auto: by what is cached, else the fastest of a short trial; null: from memory"},
    {"io-depth", WEIR_OPT_INT, FIELD(io_depth), "N", "auto", "reads in flight ahead of the workers; auto: 64", 1,
     WEIR_IO_DEPTH_MAX, true},
    {"direct", WEIR_OPT_FLAG, FIELD(direct), NULL, NULL, "reads pass the page cache by (O_DIRECT)"},
    {"cold", WEIR_OPT_FLAG, FIELD(cold), NULL, NULL, "drop the files from the page cache before the run"},
    {"decoder", WEIR_OPT_TEXT, FIELD(decoder), "auto|turbo|nvjpeg|hybrid|null", "auto",
     "how JPEGs are decoded: on the CPU; with --device cuda by its JPEG engines, or by all there is; null: not at all"},
    {"deterministic", WEIR_OPT_FLAG, FIELD(deterministic), NULL, NULL,
     "with hybrid, who decodes which frame is the same in every run"},
    {"device", WEIR_OPT_TEXT, FIELD(device), "cpu|cuda|cuda:K", "cpu",
     "where batches are made: on the host, or on a GPU, whose steps are then kernels; cuda: the local rank's"},
    {"decode-cache", WEIR_OPT_BYTES, FIELD(decode_cache), "BYTES", "0",
     "memory that keeps decoded frames for later epochs, such as 512M or 2G; 0: none"},
    {"step-ms", WEIR_OPT_DOUBLE, FIELD(step_ms), "F", "0", "busy time per batch, in place of a training step", 0, 1e7},
    {"step-spin", WEIR_OPT_FLAG, FIELD(step_spin), NULL, NULL, "with --step-ms: spin instead of sleeping"},
    {"sync-steps", WEIR_OPT_FLAG, FIELD(sync_steps), NULL, NULL, "on a GPU: wait for each step before the next"},
    {"no-timing", WEIR_OPT_FLAG, FIELD(no_timing), NULL, NULL, "no stage timing, only epochs"},
    {"every", WEIR_OPT_INT, FIELD(every), "N", "10", "epochs between tables; 0: only at the end", 0, 1e9},
    {"lang", WEIR_OPT_ENUM, FIELD(lang), "en|zh", "en", "language of epoch lines and tables"},
    {"log", WEIR_OPT_TEXT, FIELD(log), "FILE.jsonl", NULL, "write run, epochs and stages as JSON lines"},
    {"checksums", WEIR_OPT_TEXT, FIELD(checksums), "FILE", NULL, "write a line of hashes per batch"},
    {"state", WEIR_OPT_TEXT, FIELD(state), "FILE", NULL,
     "keep where the run is: it goes on from there the next time, with the batches that are left"},
    {"json", WEIR_OPT_FLAG, FIELD(json), NULL, NULL, "print JSON lines instead of tables"},
    {"profile", WEIR_OPT_TEXT, FIELD(profile), "DIR", NULL,
     "record steps (a step is a batch) as traces in this folder"},
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

static struct weir_loader *volatile running; /* for the signal handler */
static volatile sig_atomic_t interrupted;

static void on_signal(int number)
{
    (void)number;
    interrupted = 1;
    if (running)
        weir_loader_stop(running);
}

static void catch_signals(void)
{
    /* A write that is under way goes on, sleeps do not; the second signal kills. */
    struct sigaction action = {.sa_handler = on_signal, .sa_flags = (int)SA_RESETHAND | SA_RESTART};
    sigemptyset(&action.sa_mask);
    sigaction(SIGINT, &action, NULL);
    sigaction(SIGTERM, &action, NULL);
}

static void on_stall(void *user, const char *text)
{
    (void)user;
    fprintf(stderr, "weir run: %s", text);
}

static void to_config(const struct run_options *o, const char *data, const struct weir_ranks *ranks,
                      struct weir_index_progress *progress, struct weir_loader_config *config)
{
    weir_loader_config_default(config);
    config->data = data;
    config->cameras = o->cameras;
    config->qpos_keys = o->qpos_keys;
    config->action_keys = o->action_keys;
    config->image_keys = o->image_keys;
    config->allow_ragged = o->allow_ragged;
    config->allow_external = o->allow_external;
    config->index = o->index;
    config->batch_size = o->batch_size;
    config->num_workers = o->num_workers == WEIR_OPT_AUTO ? WEIR_WORKERS_AUTO : o->num_workers;
    config->prefetch = o->prefetch == WEIR_OPT_AUTO ? 0 : o->prefetch;
    config->num_epochs = o->num_epochs;
    config->max_batches = o->max_batches;
    config->sampling = (enum weir_sampling)o->sampling;
    config->obs_history = o->obs_history;
    config->chunk_size = o->chunk_size;
    config->pad = (enum weir_pad)o->pad;
    config->action_offset = o->action_offset;
    config->seed = o->seed;
    config->no_shuffle = o->no_shuffle;
    config->drop_last = o->drop_last;
    config->format = o->format;
    config->crop = o->crop;
    config->image_width = o->image_size.width;
    config->image_height = o->image_size.height;
    config->train_split = o->train_split;
    config->rank = ranks->rank;
    config->world_size = ranks->world_size;
    config->local_rank = ranks->local_rank;
    config->local_size = ranks->local_size;
    config->local_cores = ranks->local_cores;
    config->wrap = o->wrap;
    config->on_error = (enum weir_on_error)o->on_error;
    config->io = o->io;
    config->io_depth = o->io_depth == WEIR_OPT_AUTO ? 0 : o->io_depth;
    config->direct = o->direct;
    config->cold = o->cold;
    config->decoder = o->decoder;
    config->device = o->device;
    config->deterministic = o->deterministic;
    config->decode_cache_bytes = o->decode_cache;
    config->no_timing = o->no_timing;
    config->on_stall = on_stall;
    config->on_index = weir_index_progress;
    config->user = progress;
}

/* ---- the head of the output ---- */

static void print_camera(const char *name, const struct weir_loader_facts *facts, int c)
{
    const struct weir_view *view = &facts->views[c];
    fprintf(stderr, "%s %s %dx%d", c ? "," : "", name, view->out_width, view->out_height);
    if (!facts->whole[c])
        fprintf(stderr, " (of %dx%d+%d+%d)", view->width, view->height, view->x, view->y);
}

static void print_reading(const struct weir_loader_facts *facts, const struct run_options *o)
{
    fprintf(stderr, "reads: %s%s", facts->io_used, o->direct ? ", direct" : "");
    if (strcmp(facts->io_requested, facts->io_used) != 0)
        fprintf(stderr, " (%s: %s)", facts->io_requested, facts->io_why);
    if (facts->io_depth > 0)
        fprintf(stderr, "; up to %d ahead of the workers", facts->io_depth);
    if (facts->io_pool_bytes > 0)
        fprintf(stderr, " in %.0f MB", (double)facts->io_pool_bytes / 1e6);
    if (*facts->io_features)
        fprintf(stderr, ", %s", facts->io_features);
    if (facts->io_cached >= 0 && !o->direct)
        fprintf(stderr, "; %.0f %% in the page cache", 100 * facts->io_cached);
    fputc('\n', stderr);
    if (o->cold)
        fprintf(stderr, "cold: %.1f MB were dropped from the page cache, %.1f %% stayed\n",
                (double)facts->cold_bytes / 1e6, 100 * facts->cold_stayed);
}

static void print_decoding(const struct weir_loader_facts *facts)
{
    if (facts->device < 0)
        return;
    bool chosen = strcmp(facts->decoder_requested, "auto") == 0;
    if (*facts->decoder_why)
        fprintf(stderr, "decodes: %s (%s%s)\n", facts->decoder_used, chosen ? "auto: " : "", facts->decoder_why);
    else
        fprintf(stderr, "decodes: %s\n", facts->decoder_used);
}

static void print_head(const struct weir_loader *loader, const char *data, const struct run_options *o,
                       const struct weir_ranks *ranks)
{
    const struct weir_dataset *dataset = weir_loader_dataset(loader);
    const struct weir_sampler *sampler = weir_loader_sampler(loader);
    struct weir_loader_facts facts;
    int n_train, n_val;
    weir_loader_facts(loader, &facts);
    weir_sampler_episodes(sampler, WEIR_SPLIT_TRAIN, &n_train);
    weir_sampler_episodes(sampler, WEIR_SPLIT_VAL, &n_val);
    char shown[4096];
    snprintf(shown, sizeof shown, "%s", data);
    weir_text_printable(shown);
    fprintf(stderr, "%s: %s, %d episodes (%d to train on, %d to validate on)\n", shown, weir_dataset_layout(dataset, 0),
            weir_dataset_episodes(dataset), n_train, n_val);
    fprintf(stderr, "cameras:");
    for (int c = 0; c < weir_dataset_cameras(dataset); c++)
        print_camera(weir_dataset_camera(dataset, c)->name, &facts, c);
    fprintf(stderr, "; %d training and %d validation batches x %d epochs; %d workers, prefetch %d\n",
            weir_sampler_batches(sampler, WEIR_SPLIT_TRAIN), weir_sampler_batches(sampler, WEIR_SPLIT_VAL),
            o->num_epochs, facts.workers, facts.prefetch);
    print_reading(&facts, o);
    print_decoding(&facts);
    weir_run_place_print(&facts, ranks, o->sync_steps);
    if (facts.cache_budget_bytes > 0 && facts.cache_mapped_bytes == 0)
        fprintf(
            stderr,
            "the decode cache keeps nothing: its table and one frame are more than --decode-cache allows; all frames "
            "would take %.1f MB\n",
            (double)facts.cache_bytes_all / 1e6);
    if (weir_loader_position(loader) > 0)
        fprintf(stderr, "goes on after %llu of %llu batches\n", (unsigned long long)weir_loader_position(loader),
                (unsigned long long)weir_sampler_total(sampler));
    if (n_val == 0)
        fprintf(stderr, "the validation split is empty: all %d episodes are trained on\n", n_train);
    if (weir_dataset_bad_episodes(dataset) > 0)
        fprintf(stderr, "%d episodes cannot be opened and are left out; the first: %s\n",
                weir_dataset_bad_episodes(dataset), weir_dataset_bad_episode(dataset, 0));
}

static void write_reading(struct weir_json *json, const struct weir_loader_facts *facts, bool cold)
{
    weir_json_object(json, "io");
    weir_json_text(json, "requested", facts->io_requested);
    weir_json_text(json, "used", facts->io_used);
    weir_json_text(json, "why", *facts->io_why ? facts->io_why : NULL);
    weir_json_int(json, "depth", facts->io_depth);
    weir_json_uint(json, "pool_bytes", facts->io_pool_bytes);
    weir_json_text(json, "features", *facts->io_features ? facts->io_features : NULL);
    if (facts->io_cached < 0)
        weir_json_null(json, "page_cache_fraction");
    else
        weir_json_double(json, "page_cache_fraction", facts->io_cached);
    if (cold)
        weir_json_double(json, "cold_stayed_fraction", facts->cold_stayed);
    else
        weir_json_null(json, "cold_stayed_fraction");
    weir_json_end(json, '}');
}

static void write_run_line(FILE *out, const struct weir_command *command, const struct run_options *o, const char *data,
                           const struct weir_loader *loader, const struct weir_ranks *ranks, double load_average)
{
    struct weir_json json;
    struct weir_sysinfo machine;
    struct weir_loader_facts facts;
    char text[256];
    weir_sysinfo_read(&machine);
    weir_loader_facts(loader, &facts);
    weir_json_open(&json, out, false);
    weir_json_object(&json, NULL);
    weir_json_text(&json, "type", "run");
    weir_json_text(&json, "weir", weir_version());
    weir_json_text(&json, "git", weir_git_describe());
    weir_json_object(&json, "machine");
    weir_sysinfo_json(&machine, &json);
    if (load_average >= 0)
        weir_json_double(&json, "load_average", load_average);
    weir_filesystem_of(data, text, sizeof text);
    weir_json_text(&json, "data_filesystem", text);
    weir_json_end(&json, '}');
    weir_json_object(&json, "versions");
    weir_dataset_library(text, sizeof text);
    weir_json_text(&json, "hdf5", text);
    weir_decoder_library(text, sizeof text);
    weir_json_text(&json, "jpeg", text);
    weir_json_text(&json, "compiler", weir_compiler());
    weir_dataset_inflate(text, sizeof text);
    weir_json_text(&json, "inflate", text);
    weir_libc(text, sizeof text);
    weir_json_text(&json, "libc", text);
    weir_json_end(&json, '}');
    weir_json_object(&json, "config");
    weir_json_text(&json, "data", data);
    weir_options_json(command, o, &json);
    weir_json_end(&json, '}');
    weir_json_object(&json, "used"); /* what automatic settings became */
    weir_json_int(&json, "num_workers", facts.workers);
    weir_json_int(&json, "prefetch", facts.prefetch);
    weir_json_int(&json, "slots", facts.slots);
    weir_json_uint(&json, "slot_bytes", facts.slot_bytes);
    weir_json_uint(&json, "decode_cache_bytes", facts.cache_mapped_bytes);
    weir_json_uint(&json, "index_bytes", facts.index_bytes);
    weir_json_uint(&json, "largest_extent_bytes", facts.extent_max);
    weir_json_int(&json, "episodes", weir_dataset_episodes(weir_loader_dataset(loader)));
    weir_json_int(&json, "images_per_sample", facts.images_per_sample);
    weir_run_place_json(&json, &facts, ranks);
    weir_json_text(&json, "decoder", facts.decoder_used);
    weir_json_text(&json, "decoder_why", facts.decoder_why);
    write_reading(&json, &facts, o->cold);
    weir_json_end(&json, '}');
    weir_json_end(&json, '}');
    weir_json_close(&json);
    fflush(out);
}

/* ---- running ---- */

static bool same_file(const struct stat *a, uint64_t device, uint64_t inode)
{
    return S_ISREG(a->st_mode) && a->st_dev == device && a->st_ino == inode;
}

static int check_output(const char *path, int fd, const struct weir_dataset *dataset, struct weir_err *err)
{
    struct stat st;
    if (fstat(fd, &st) != 0)
        return weir_err_set(err, -errno, "%s: %s", path, strerror(errno));
    for (int i = 0; i < weir_dataset_files(dataset); i++) {
        struct weir_dataset_file file;
        weir_dataset_file(dataset, i, &file);
        if (same_file(&st, file.device, file.inode))
            return weir_err_set(err, -EINVAL, "%s: is a file of the dataset and will not be overwritten", path);
    }
    return 0;
}

/* Opens a file to write, and empties it only once it is known to be nobody else's. */
static int open_output(const char *path, const struct weir_dataset *dataset, FILE **file, struct weir_err *err)
{
    *file = NULL;
    if (!path)
        return 0;
    int fd = open(path, O_WRONLY | O_CREAT | O_CLOEXEC, 0666);
    if (fd < 0)
        return weir_err_set(err, -errno, "%s: cannot be written: %s", path, strerror(errno));
    int rc = check_output(path, fd, dataset, err);
    struct stat st;
    if (rc == 0 && fstat(fd, &st) == 0 && S_ISREG(st.st_mode) && ftruncate(fd, 0) != 0)
        rc = weir_err_set(err, -errno, "%s: cannot be written: %s", path, strerror(errno));
    *file = rc == 0 ? fdopen(fd, "w") : NULL;
    if (!*file)
        close(fd);
    return rc == 0 && !*file ? weir_err_set(err, -ENOMEM, "out of memory") : rc;
}

static int close_output(const char *path, FILE *file, struct weir_err *err)
{
    if (!file)
        return 0;
    bool bad = ferror(file) != 0;
    if (fclose(file) != 0 || bad)
        return weir_err_set(err, -EIO, "%s: could not be written completely; is the disk full?", path);
    return 0;
}

static int check_device(const struct run_options *o, struct weir_err *err)
{
    int number, rc = weir_device_parse(o->device, &number, err);
    if (rc < 0) {
        weir_err_prefix(err, "--device");
        return rc;
    }
    if (number < 0 && (o->format.dtype == WEIR_DTYPE_F16 || o->format.dtype == WEIR_DTYPE_BF16))
        return weir_err_set(err, -EINVAL, "--output f16 and bf16 are made on a GPU; add --device cuda, or take f32");
    if (number < 0 && o->sync_steps)
        return weir_err_set(err, -EINVAL, "--sync-steps waits for a GPU; add --device cuda");
    if (number >= 0 && o->step_spin)
        return weir_err_set(err, -EINVAL, "--step-spin is for steps on the CPU; with --device cuda they are kernels");
    return weir_decoder_check_device(o->decoder, number >= 0, err);
}

static int to_format(struct run_options *o, struct weir_err *err)
{
    static const enum weir_dtype dtypes[] = {WEIR_DTYPE_U8, WEIR_DTYPE_F32, WEIR_DTYPE_F16, WEIR_DTYPE_BF16};
    o->format = (struct weir_pixel_format){
        .color = (enum weir_color)o->color,
        .dtype = dtypes[o->output],
        .layout = (enum weir_image_layout)o->layout,
    };
    int rc = weir_crop_check(o->crop, err);
    if (rc == 0)
        rc = check_device(o, err);
    return rc < 0 ? rc : weir_norms_parse(&o->format, o->mean, o->std, err);
}

/* What is said about the profile, checked before anything is opened. */
static int to_profile(const struct run_options *o, struct weir_run_profile_config *profile, struct weir_err *err)
{
    *profile = (struct weir_run_profile_config){
        .folder = o->profile,
        .nvtx = o->nvtx,
        .record_shapes = o->record_shapes,
        .profile_memory = o->profile_memory,
        .with_stack = o->with_stack,
        .worker_ops = o->worker_ops,
        .sort_by = o->sort_by,
        .row_limit = o->row_limit,
    };
    if (!o->profile && (o->record_shapes || o->profile_memory || o->with_stack || o->worker_ops))
        return weir_err_set(err, -EINVAL,
                            "--record-shapes, --profile-memory, --with-stack and --worker-ops want --profile DIR");
    if ((o->profile || o->nvtx) && o->no_timing)
        return weir_err_set(err, -EINVAL, "--%s shows the timings that --no-timing leaves out; drop one of them",
                            o->profile ? "profile" : "nvtx");
    if (weir_averages_check_sort(o->sort_by, err) < 0) {
        weir_err_prefix(err, "--sort-by");
        return -EINVAL;
    }
    if (weir_schedule_parse(&profile->schedule, o->schedule, err) < 0) {
        weir_err_prefix(err, "--schedule");
        return -EINVAL;
    }
    return 0;
}

/* What is written before the first batch. */
static int begin_outputs(const struct weir_command *command, const struct run_options *o, const char *data,
                         const struct weir_ranks *ranks, const struct weir_run_profile_config *profile,
                         struct weir_loader *loader, struct weir_run_config *run, struct weir_err *err)
{
    WEIR_ZONE(WEIR_STAGE_REPORT);
    const struct weir_dataset *dataset = weir_loader_dataset(loader);
    int rc = open_output(o->log, dataset, &run->log, err);
    if (rc == 0)
        rc = open_output(o->checksums, dataset, &run->checksums, err);
    if (rc < 0)
        return rc;
    print_head(loader, data, o, ranks);
    weir_run_place_machine(&run->machine, loader);
    if (run->log)
        write_run_line(run->log, command, o, data, loader, ranks, run->machine.load_average);
    if (run->json)
        write_run_line(stdout, command, o, data, loader, ranks, run->machine.load_average);
    return weir_run_profile_open(&run->profile, profile, loader, err);
}

static int run_loader(const struct weir_command *command, const struct run_options *o, const char *data,
                      const struct weir_ranks *ranks, const struct weir_run_profile_config *profile,
                      struct weir_run_config *run, struct weir_err *err)
{
    struct weir_loader_config config;
    struct weir_loader *loader;
    struct weir_index_progress progress;
    weir_index_progress_begin(&progress);
    to_config(o, data, ranks, &progress, &config);
    int rc = o->state ? weir_loader_restore(&config, o->state, err) : 0;
    if (rc == 0)
        rc = weir_loader_open(&loader, &config, err);
    if (rc < 0)
        return rc;
    run->state = o->state;
    running = loader;
    if (interrupted)
        weir_loader_stop(loader);
    weir_zone_begin(WEIR_STAGE_WORKER_LOOP); /* the consumer's whole time adds up: run_loop.h */
    rc = begin_outputs(command, o, data, ranks, profile, loader, run, err);
    if (rc == 0)
        rc = weir_run_loop(loader, &config, run, &interrupted, err);
    else
        weir_zone_end();
    weir_run_profile_close(&run->profile);
    running = NULL;
    weir_loader_close(&loader);
    return rc;
}

static int check_outputs(const struct run_options *o, struct weir_err *err)
{
    const struct weir_output outputs[] = {
        {"--log", o->log}, {"--checksums", o->checksums}, {"--state", o->state}, {"--index", o->index}};
    return weir_outputs_check(outputs, sizeof outputs / sizeof outputs[0], err);
}

static int run_main(const struct weir_command *command, int argc, char **argv)
{
    struct run_options o;
    const char *data;
    int n;
    enum weir_parse parse = weir_options_parse(command, &o, sizeof o, argc, argv, &data, &n);
    if (parse != WEIR_PARSE_RUN)
        return parse == WEIR_PARSE_HELP ? 0 : 2;
    struct weir_err err = WEIR_ERR_NONE;
    if (weir_reading_check(o.io, o.direct, &err) == -EINVAL) {
        weir_cli_fail(command, &err);
        return 2;
    }
    struct weir_run_profile_config profile;
    struct weir_ranks ranks;
    if (check_outputs(&o, &err) < 0 || to_format(&o, &err) < 0 || to_profile(&o, &profile, &err) < 0 ||
        weir_ranks_find(&ranks, o.rank, o.world_size, &err) < 0) {
        weir_cli_fail(command, &err);
        return 2;
    }
    struct weir_run_config run = {.every = o.every,
                                  .lang = (enum weir_lang)o.lang,
                                  .json = o.json,
                                  .step_ms = o.step_ms,
                                  .step_spin = o.step_spin,
                                  .sync_steps = o.sync_steps};
    weir_machine_begin(&run.machine, 0, "");
    catch_signals();
    int rc = run_loader(command, &o, data, &ranks, &profile, &run, &err);
    int log_rc = close_output(o.log, run.log, &err);
    int sums_rc = close_output(o.checksums, run.checksums, &err);
    if (rc < 0 || log_rc < 0 || sums_rc < 0)
        return weir_cli_fail(command, &err);
    return interrupted ? 130 : 0;
}

const struct weir_command weir_cmd_run = {
    .name = "run",
    .summary = "load a dataset as a training run would, timing every stage",
    .args = "DATA",
    .min_args = 1,
    .max_args = 1,
    .opts = run_opts,
    .n_opts = sizeof run_opts / sizeof run_opts[0],
    .notes =
        "DATA is a folder of episodes or one HDF5 file. Ctrl-C ends the run with the table so far (exit status 130);\n"
        "a second one kills it.",
    .run = run_main,
};
