#include "pipeline/loader_options.h"
#include "base/option.h"
#include "io/ahead.h"
#include "io/io.h"
#include "pipeline/gpu/gpu.h"
#include "pipeline/loader_priv.h"
#include "pipeline/samples/read_ahead.h"

#include <assert.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>

#define FIELD(member) .offset = offsetof(struct weir_loader_config, member)

/* Groups of commands, for the member `users`. */
enum {
    RUNS = WEIR_FOR_RUN | WEIR_FOR_WHATIF,
    TRAIN = RUNS | WEIR_FOR_TRAIN | WEIR_FOR_PYTHON,
    ALL = TRAIN | WEIR_FOR_TUNE,
    DATA = ALL | WEIR_FOR_DATA,
    PYTHON = WEIR_FOR_PYTHON,
    CHOICES_MAX = 256
};

static char io_choices[CHOICES_MAX] = "auto", decoder_choices[CHOICES_MAX] = "auto";

_Static_assert(offsetof(struct weir_loader_config, image_height) ==
                   offsetof(struct weir_loader_config, image_width) + offsetof(struct weir_opt_size, height),
               "image_width and image_height are parsed as one struct weir_opt_size");

/* Positional members: name, kind, offset, value, preset, help, min, max, allow_auto. */
const struct weir_opt weir_loader_opts[] = {
    {"batch-size", WEIR_OPT_INT, FIELD(batch_size), "N", "8", "samples per batch", 1, 65536, .unit = "samples",
     .topic = "Main options", .users = ALL, .is_common = true},
    {"num-workers", WEIR_OPT_INT, FIELD(num_workers), "N", "auto", "worker threads", 0, WEIR_WORKERS_MAX, true,
     .unit = "threads", .users = RUNS | PYTHON,
     .details = "auto is one thread per usable core, divided among local ranks. 0 loads on the main thread.",
     .is_common = true},
    {"prefetch", WEIR_OPT_INT, FIELD(prefetch), "N", "auto", "batches to prefetch", 1, 4096, true, .zero_is_auto = true,
     .unit = "batches", .users = TRAIN, .keyword = "prefetch_factor", .keyword_preset = "None",
     .details = "auto keeps four frames per worker in flight, and more if chunks hold several frames or a GPU "
                "decodes.",
     .keyword_details = "For all workers together. None keeps four frames per worker in flight, and more if chunks "
                        "hold several frames or a GPU decodes."},
    {"num-epochs", WEIR_OPT_INT, FIELD(num_epochs), "N", "1", "number of epochs", 1, INT32_MAX, .unit = "epochs",
     .users = WEIR_FOR_RUN | WEIR_FOR_TRAIN, .is_common = true},
    {"device", WEIR_OPT_TEXT, FIELD(device), "cpu|cuda|cuda:K", "cpu", "location of batches: host memory or a GPU",
     .users = RUNS | WEIR_FOR_TUNE | PYTHON,
     .details = "With a GPU the simulated training steps are kernels. cuda without a number is the local rank's GPU.",
     .keyword_details = "\"cuda\" is torch's current GPU if torch uses CUDA, else the local rank's (docs/gpu.md).",
     .is_common = true},
    {"decoder", WEIR_OPT_TEXT, FIELD(decoder), decoder_choices, "auto", "JPEG decoder", .users = TRAIN,
     .details =
         "turbo decodes on the CPU. With --device cuda, nvjpeg decodes on the GPU and hybrid on CPU and GPU "
         "together; auto chooses by measuring. null decodes nothing. With --device cuda, all but turbo decode H.264 "
         "and HEVC video on the GPU's video engines."},
    {"image-size", WEIR_OPT_SIZE, FIELD(image_width), "WxH", NULL, "image size in the batch, after cropping", 1,
     WEIR_IMAGE_SIDE_MAX, .unit = "pixels", .users = ALL | WEIR_FOR_BENCH},
    {"decode-cache", WEIR_OPT_BYTES, FIELD(decode_cache_bytes), "BYTES", "0", "memory for decoded frames, such as 2G",
     .users = TRAIN, .details = "Keeps decoded frames for later epochs. 0 disables the cache.", .is_common = true},

    {"sampling", WEIR_OPT_ENUM, FIELD(sampling), "timestep|episode", "timestep", "unit that an epoch visits",
     .topic = "Samples", .users = ALL,
     .details = "timestep visits every (episode, t) once per epoch. episode draws one random start per episode and "
                "epoch, as ACT does."},
    {"obs-history", WEIR_OPT_INT, FIELD(obs_history), "N", "1", "frames per camera, the last one at t", 1, 1024,
     .unit = "frames", .users = ALL & ~WEIR_FOR_TRAIN,
     .keyword_details = "The states too. The first one is repeated at the episode's start."},
    {"chunk-size", WEIR_OPT_INT, FIELD(chunk_size), "N", "20", "actions per sample", 1, 65536, .unit = "actions",
     .users = ALL},
    {"pad", WEIR_OPT_ENUM, FIELD(pad), "zero|last", "zero", "actions past the episode's end", .users = ALL,
     .keyword_details = "Zeros are inserted before normalisation."},
    {"action-offset", WEIR_OPT_INT, FIELD(action_offset), "N", "0", "first action, relative to t", -1e6, 1e6,
     .unit = "steps", .users = ALL, .details = "-1 matches ACT on real robots."},
    {"delta-indices", WEIR_OPT_TEXT, FIELD(delta_indices), "KEY=LIST;..", NULL,
     "steps of a sample, by key, relative to t", .users = ALL & ~WEIR_FOR_TRAIN,
     .details = "\"top=-1,0;qpos=-1,0;actions=0:16\" takes two frames of the camera top, two states and 16 actions; "
                "FIRST:END excludes END. Steps outside the episode repeat its first or last step. Replaces "
                "--obs-history and --chunk-size for these keys.",
     .keyword_details =
         "A dict, such as {\"top\": [-1, 0], \"action\": range(16)}: names of cameras or of their arrays, \"qpos\" and "
         "\"action\". Replaces obs_history and chunk_size for these keys, each of which has a mask in the batch "
         "(is_pad). "
         "Steps outside the episode repeat its first or last step."},
    {"train-split", WEIR_OPT_DOUBLE, FIELD(train_split), "F", "0.9", "fraction of episodes for training", 0, 1,
     .users = ALL, .keyword_preset = "1.0", .details = "At least one episode is for training."},
    {"splits", WEIR_OPT_ENUM, FIELD(splits), "|train|val", NULL, "split of the batches", .users = PYTHON,
     .keyword = "split", .keyword_preset = "'train'", .details = "Statistics are always those of train."},
    {"seed", WEIR_OPT_UINT64, FIELD(seed), "N", "0", "seed of the split and the sample order", .users = ALL},
    {"no-shuffle", WEIR_OPT_FLAG, FIELD(no_shuffle), NULL, NULL, "samples and split in file order",
     .users = ALL & ~WEIR_FOR_WHATIF, .keyword = "shuffle", .keyword_inverted = true},
    {"drop-last", WEIR_OPT_FLAG, FIELD(drop_last), NULL, NULL, "no short last training batch",
     .users = ALL & ~WEIR_FOR_WHATIF},
    {"max-batches", WEIR_OPT_INT, FIELD(max_batches), "N", "0", "batches per epoch and split; 0: all", 0, 2e9,
     .unit = "batches", .users = TRAIN & ~WEIR_FOR_WHATIF},

    {"cameras", WEIR_OPT_TEXT, FIELD(cameras), "a,b", NULL, "cameras to load, in this order (default all)",
     .is_list = true, .topic = "Dataset", .users = DATA,
     .details = "Depth cameras are loaded only if named; weir convert and weir verify include them by default."},
    {"qpos-keys", WEIR_OPT_TEXT, FIELD(qpos_keys), "a,b", NULL, "state datasets, overriding the layout's",
     .is_list = true, .users = DATA, .details = "Several datasets are concatenated."},
    {"action-keys", WEIR_OPT_TEXT, FIELD(action_keys), "a,b", NULL, "action datasets, overriding the layout's",
     .is_list = true, .users = DATA, .details = "Several datasets are concatenated."},
    {"image-keys", WEIR_OPT_TEXT, FIELD(image_keys), "a,name=b", NULL, "camera datasets, overriding the layout's",
     .is_list = true, .users = DATA,
     .details = "Together with --qpos-keys and --action-keys, it reads files of any layout."},
    {"allow-ragged", WEIR_OPT_FLAG, FIELD(allow_ragged), NULL, NULL, "episodes cut to their shortest part",
     .users = DATA, .details = "Without this option, an episode whose parts differ in length is an error."},
    {"allow-external", WEIR_OPT_FLAG, FIELD(allow_external), NULL, NULL, "HDF5 links that leave the dataset's folder",
     .users = DATA, .details = "Covers external links, external storage and virtual datasets."},
    {"episodes", WEIR_OPT_TEXT, FIELD(episodes), "LIST", NULL, "episodes to load, such as 0,3,10:20", .users = DATA,
     .details = "For LeRobot datasets. FIRST:END excludes END.",
     .keyword_details = "For LeRobot datasets. A list of numbers, or text in which FIRST:END excludes END."},
    {"filter-key", WEIR_OPT_TEXT, FIELD(filter_key), "NAME", NULL, "demos to load: a list in the file, such as train",
     .users = DATA, .details = "For robomimic's files and others with demos, which name such lists in /mask."},
    {"split", WEIR_OPT_TEXT, FIELD(split), "NAME", NULL, "files of one split, by name: train, val or all",
     .users = DATA, .keyword = "file_split"},
    {"on-error", WEIR_OPT_ENUM, FIELD(on_error), "fail|skip|substitute", "fail", "treatment of bad frames",
     .users = ALL,
     .details = "fail ends the run. skip drops the sample. substitute uses the last good frame before the bad "
                "one, and drops the sample if there is none."},
    {"on-warning", WEIR_OPT_ENUM, FIELD(on_warning), "count|fail", "count", "treatment of harmless flaws in frames",
     .users = DATA,
     .details =
         "For JPEGs whose pixels are correct although libjpeg warns, as of extraneous bytes before a marker. "
         "count decodes and counts them. fail makes them bad frames, and needs the CPU as decoder. Damaged image data "
         "is always bad."},
    {"index", WEIR_OPT_TEXT, FIELD(index), "FILE", NULL, "index file: read if it matches, else written",
     .path = WEIR_PATH_WRITE, .users = DATA},
    {"endpoint", WEIR_OPT_TEXT, FIELD(endpoint), "URL", NULL, "server of s3:// paths", .users = DATA,
     .details = "Without it, AWS_ENDPOINT_URL_S3, AWS_ENDPOINT_URL, or Amazon's."},
    {"anonymous", WEIR_OPT_FLAG, FIELD(anonymous), NULL, NULL, "no credentials, for public buckets", .users = DATA},
    {"cache", WEIR_OPT_TEXT, FIELD(cache), "DIR[:SIZE]", NULL, "folder for copies of what URLs contain",
     .path = WEIR_PATH_WRITE_INTO, .files = "weir-cache.data weir-cache.table", .users = ALL | WEIR_FOR_CACHE,
     .details = "Later epochs and other processes of this machine read the copies. SIZE, such as 200G, should be 1.6 "
                "times the data; a new cache without it takes up to half of the free space. Another SIZE than before "
                "empties the cache."},

    {"color", WEIR_OPT_ENUM, FIELD(format.color), "rgb|bgr", "rgb", "channel order of images", .topic = "Images",
     .users = ALL},
    {"dtype", WEIR_OPT_ENUM, FIELD(format.dtype), "u8|f32|f16|bf16", "u8", "element type of images",
     .users = (ALL & ~WEIR_FOR_TRAIN) | WEIR_FOR_BENCH, .old_name = "output", .keyword_preset = "None",
     .old_keyword = "image_dtype", .keyword_choices = "uint8|float32|float16|bfloat16",
     .details = "Floats are scaled to 0..1, or normalised by --mean and --std. f16 and bf16 need --device cuda.",
     .keyword_details =
         "Also dtypes of torch and NumPy. None is uint8 with keys=\"weir\", else float32. Floats are scaled to "
         "0..1. float16 and bfloat16 need device=\"cuda\"."},
    {"image-layout", WEIR_OPT_ENUM, FIELD(format.layout), "nhwc|nchw", "nhwc", "interleaved or planar images",
     .users = (ALL & ~WEIR_FOR_TRAIN) | WEIR_FOR_BENCH, .old_name = "layout", .keyword_preset = "'nchw'"},
    {"crop", WEIR_OPT_TEXT, FIELD(crop), "WxH+X+Y", NULL, "part of the image to keep", .users = ALL,
     .details = "CAMERA=WxH+X+Y crops one camera; separate several with commas."},
    {"resize", WEIR_OPT_ENUM, FIELD(resize), "fast|exact", "fast", "method of --image-size", .users = ALL,
     .details = "fast decodes JPEGs at 1/2, 1/4 or 1/8 where that suffices, then averages areas. exact decodes at full "
                "size and equals the antialiased bilinear resizing of Pillow and torchvision within 1 level; it takes "
                "1.1 to 3.3 times as long."},

    {"rank", WEIR_OPT_INT, FIELD(rank), "N", "auto", "rank of this process in a distributed run", 0, 1e6, true,
     .topic = "Distributed runs", .users = WEIR_FOR_RUN | WEIR_FOR_TUNE | PYTHON, .keyword_preset = "None",
     .details = "auto reads the environment that torchrun, srun or mpirun sets.",
     .keyword_details =
         "None is that of torch.distributed if initialised, else of the environment that torchrun, mpirun, "
         "mpiexec or srun sets. Do not wrap the loader in a DistributedSampler."},
    {"world-size", WEIR_OPT_INT, FIELD(world_size), "N", "auto", "processes in the distributed run", 1, 1e6, true,
     .users = WEIR_FOR_RUN | WEIR_FOR_TUNE | PYTHON, .keyword_preset = "None"},
    {"wrap", WEIR_OPT_FLAG, FIELD(wrap), NULL, NULL, "first batches repeated for ranks that run short",
     .users = WEIR_FOR_RUN | WEIR_FOR_TUNE | PYTHON,
     .details = "Without this option the tail is dropped, so that all ranks have the same number of batches."},

    {"io", WEIR_OPT_TEXT, FIELD(io), io_choices, "auto", "I/O engine", .topic = "Reading and decoding", .users = TRAIN,
     .details =
         "auto decides by the contents of the page cache, or by a short measurement. null serves bytes from memory."},
    {"io-depth", WEIR_OPT_INT, FIELD(io_depth), "N", "auto", "reads in flight ahead of workers", 1, WEIR_IO_DEPTH_MAX,
     true, .zero_is_auto = true, .unit = "reads", .users = TRAIN & ~PYTHON,
     .details = "auto uses 64, and for files on servers as many as the measured throughput is worth."},
    {"direct", WEIR_OPT_FLAG, FIELD(direct), NULL, NULL, "reads that bypass the page cache (O_DIRECT)",
     .users = ALL & ~PYTHON},
    {"cold", WEIR_OPT_FLAG, FIELD(cold), NULL, NULL, "files dropped from the page cache first",
     .users = TRAIN & ~PYTHON},
    {"deterministic", WEIR_OPT_FLAG, FIELD(deterministic), NULL, NULL, "hybrid: reproducible choice of decoder",
     .users = RUNS | WEIR_FOR_TUNE | PYTHON},

    {"no-timing", WEIR_OPT_FLAG, FIELD(no_timing), NULL, NULL, "epochs only, no stage timing", .topic = "Reports",
     .users = WEIR_FOR_RUN | WEIR_FOR_TRAIN},
    {"raw-state", WEIR_OPT_FLAG, FIELD(raw_state), NULL, NULL, "state and actions as stored", .users = PYTHON,
     .keyword = "normalize", .keyword_inverted = true, .keyword_preset = "None",
     .details =
         "True normalises them by mean and deviation of the training episodes (.dataset.statistics). None is True "
         "except with keys=\"lerobot\", whose policies normalise."},
    {0},
};

static void add(char choices[CHOICES_MAX], const char *name)
{
    size_t used = strlen(choices);
    snprintf(choices + used, CHOICES_MAX - used, "|%s", name);
}

void weir_loader_options_complete(void)
{
    const char *name, *summary, *why_not;
    if (strchr(io_choices, '|'))
        return;
    for (int i = 0; weir_io_row(i, &name, &summary, &why_not); i++)
        add(io_choices, name);
    for (int i = 0; weir_decoder_row(i, &name, &summary, &why_not); i++)
        if (weir_decoder_check(name, NULL) != -EINVAL) /* the others are chosen by the frames' magic bytes */
            add(decoder_choices, name);
}

void weir_loader_options_dataset(const struct weir_loader_config *from, struct weir_dataset_config *to)
{
    to->cameras = from->cameras;
    to->qpos_keys = from->qpos_keys;
    to->action_keys = from->action_keys;
    to->image_keys = from->image_keys;
    to->allow_ragged = from->allow_ragged;
    to->allow_external = from->allow_external;
    to->split = from->split;
    to->index = from->index;
    to->episodes = from->episodes;
    to->endpoint = from->endpoint;
    to->anonymous = from->anonymous;
    to->cache = from->cache;
    to->filter_key = from->filter_key;
}

/* ---- the configuration: defaults and bounds ---- */

void weir_loader_config_init(struct weir_loader_config *config, size_t size)
{
    struct weir_loader_config full = {.size = 0};
    struct weir_err err = WEIR_ERR_NONE;
    for (const struct weir_opt *opt = weir_loader_opts; opt->name; opt++)
        if (opt->preset && weir_option_parse(opt, opt->preset, &full, &err) < 0)
            assert(!"every default in the table must parse");
    full.rank = full.world_size = 0; /* the library has no "auto": programs resolve it from the environment */
    weir_sized_fill(config, size, &full, sizeof full);
}

int weir_config_take(struct weir_loader_config *full, const struct weir_loader_config *given, struct weir_err *err)
{
    weir_loader_config_init(full, sizeof *full);
    return weir_sized_copy(full, sizeof *full, WEIR_SIZED_LEAST(struct weir_loader_config, user), given,
                           "struct weir_loader_config", err);
}

/* Checks values against the table's bounds, because a caller can set them without parsing. */
static int check_ranges(const struct weir_loader_config *c, struct weir_err *err)
{
    int rc = 0;
    for (const struct weir_opt *opt = weir_loader_opts; opt->name && rc == 0; opt++)
        if (opt->offset != offsetof(struct weir_loader_config, world_size)) /* 0 is allowed and means 1 */
            rc = weir_option_check(opt, c, err);
    if (rc == 0 && c->local_size < 0)
        rc = weir_err_set(err, -EINVAL, "local_size %d: must be at least 0", c->local_size);
    if (rc == 0 && (c->local_rank < 0 || c->local_rank >= (c->local_size ? c->local_size : 1)))
        rc = weir_err_set(err, -EINVAL, "local_rank %d: must be less than local_size (%d)", c->local_rank,
                          c->local_size);
    return rc;
}

int weir_loader_decoder_check(const char *decoder, bool gpu, enum weir_on_warning on_warning, struct weir_err *err)
{
    int rc = weir_decoder_check_device(decoder, gpu, err);
    if (rc == 0 && on_warning == WEIR_ON_WARNING_FAIL && weir_decoder_on_gpu(decoder))
        rc =
            weir_err_set(err, -EINVAL,
                         "--on-warning fail: a GPU does not report flaws of frames, but decodes with --decoder %s; use "
                         "--decoder %s",
                         decoder, weir_decoder_at(WEIR_DECODE_ON_CPU));
    return rc;
}

int weir_loader_config_check(const struct weir_loader_config *config, struct weir_err *err)
{
    struct weir_loader_config full, *c = &full;
    int rc = weir_config_take(c, config, err);
    if (rc < 0)
        return rc;
    if (!c->data || !c->io || !c->decoder)
        return weir_err_set(err, -EINVAL, "data, io and decoder must be set");
    rc = check_ranges(c, err);
    if (rc < 0)
        return rc;
    int number;
    rc = weir_device_parse(c->device, &number, err);
    if (rc == 0 && number < 0 && (c->format.dtype == WEIR_DTYPE_F16 || c->format.dtype == WEIR_DTYPE_BF16))
        rc = weir_err_set(err, -EINVAL, "--dtype: f16 and bf16 need a GPU; add --device cuda, or use f32");
    if (rc == 0)
        rc = weir_reading_check(c->io, c->direct, err);
    return rc < 0 ? rc : weir_loader_decoder_check(c->decoder, number >= 0, c->on_warning, err);
}
