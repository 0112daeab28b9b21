#include "cli/commands.h"
#include "extras/train/cli/train_cli.h"
#include "pipeline/gpu/gpu.h"
#include "weir/loader.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define FIELD(field) .offset = offsetof(struct train_options, field)

const struct weir_opt weir_train_opts[TRAIN_OPTS] = {
    {"task-name", WEIR_OPT_TEXT, FIELD(task_name), "NAME", NULL, "name of the data folder in $WEIR_DATASETS",
     .topic = "Training"},
    {"dataset-dir", WEIR_OPT_TEXT, FIELD(dataset_dir), "DIR", NULL, "data folder, if DATA is not given",
     .path = WEIR_PATH_READ},
    {"ckpt-dir", WEIR_OPT_TEXT, FIELD(ckpt_dir), "DIR", NULL, "folder for checkpoints", .path = WEIR_PATH_WRITE_INTO,
     .files = WEIR_TRAIN_BEST " " WEIR_TRAIN_LAST,
     .details =
         "The files are policy_best.safetensors and policy_last.safetensors. Without --ckpt-dir nothing is saved.",
     .is_common = true},
    {"resume", WEIR_OPT_FLAG, FIELD(resume), NULL, NULL, "resumption from the last checkpoint in --ckpt-dir",
     .details = "Reads policy_last.safetensors if it exists, and trains up to --num-epochs.", .is_common = true},
    {"lr", WEIR_OPT_DOUBLE, FIELD(lr), "F", "1e-5", "learning rate of AdamW", 0, 10, .is_common = true},
    {"weight-decay", WEIR_OPT_DOUBLE, FIELD(weight_decay), "F", "1e-4", "weight decay of AdamW", 0, 10},
    {"grad-accumulation", WEIR_OPT_INT, FIELD(grad_accumulation), "N", "1", "batches per optimizer step", 1, 65536,
     .unit = "batches"},
    {"policy-class", WEIR_OPT_TEXT, FIELD(policy_class), "CNN|ACT", "CNN", "policy to train", .topic = "Policy",
     .details = "ACT is trained in PyTorch by python3 -m weir.examples.imitate_episodes, which gets all arguments. It "
                "needs the Python package and torch."},
    {"hidden-dim", WEIR_OPT_INT, FIELD(hidden_dim), "N", "512", "width of the hidden layers", 1, 65536},
    {"dim-feedforward", WEIR_OPT_INT, FIELD(dim_feedforward), "N", "3200", "width of the head's feed-forward layer", 1,
     65536},
    {"device", WEIR_OPT_TEXT, FIELD(run.loader.device), "cpu|cuda|cuda:K", "cpu", "device for training and batches",
     .is_common = true},
    {"amp", WEIR_OPT_FLAG, FIELD(amp), NULL, NULL, "mixed precision on a GPU",
     .details = "Matrix products use float16, with a dynamic loss scale. Ignored on the CPU."},
    {"kl-weight", WEIR_OPT_DOUBLE, FIELD(kl_weight), "F", NULL, "accepted for ACT's scripts; CNN ignores it", 0, 1e9},
    {"mean", WEIR_OPT_TEXT, FIELD(run.mean), "R,G,B|imagenet", NULL, "per-channel mean to subtract from 0..1",
     .topic = "Images"},
    {"std", WEIR_OPT_TEXT, FIELD(run.std), "R,G,B|imagenet", NULL, "per-channel standard deviation to divide by"},
    {"num-workers", WEIR_OPT_INT, FIELD(run.loader.num_workers), "N", "auto", "loading threads", 0, WEIR_WORKERS_MAX,
     true, .unit = "threads", .topic = "Reading and decoding",
     .details = "auto uses a quarter of the usable cores (at least one), because training needs the others. With a GPU "
                "it uses one thread per core. "
                "0 loads on the main thread."},
};

#define ROLLOUT   "it needs ACT's simulator or a robot, which weir does not have; leave it out"
#define OF_ACT    "only ACT has it; add --policy-class ACT"
#define NO_EFFECT "it has no effect on training here; leave it out"

/* Options of ACT's script, and of the DETR parser that it includes. */
const struct weir_opt_refused weir_train_refused[] = {
    {"eval", "CNN is validated after each epoch; with --policy-class ACT it validates a checkpoint"},
    {"onscreen-render", ROLLOUT},
    {"temporal-agg", ROLLOUT},
    {"backbone", OF_ACT},
    {"lr-backbone", OF_ACT},
    {"enc-layers", OF_ACT},
    {"dec-layers", OF_ACT},
    {"nheads", OF_ACT},
    {"dropout", OF_ACT},
    {"pre-norm", OF_ACT},
    {"position-embedding", OF_ACT},
    {"grad-checkpoint", OF_ACT},
    {"camera-names", "use --cameras A,B"},
    {"num-queries", "use --chunk-size"},
    {"epochs", "use --num-epochs"},
    {"num-steps", "use --num-epochs, and --max-batches for shorter epochs"},
    {"dilation", NO_EFFECT},
    {"masks", NO_EFFECT},
    {"lr-drop", NO_EFFECT},
    {"clip-max-norm", NO_EFFECT},
    {0}};

const struct weir_opt_set weir_train_sets[] = WEIR_RUN_SETS(0, WEIR_FOR_TRAIN);

const char weir_train_examples[] =
    "weir train episodes/ --num-epochs 10 --lr 1e-4\tTrain on a folder of episodes, and see where each step's time "
    "goes.\n"
    "weir train episodes/ --ckpt-dir ckpt --num-epochs 100 --resume\tResume from the last checkpoint if one exists.\n"
    "weir train --task_name astrobench_dual_arm --ckpt_dir ./ckpt_profile --policy_class CNN --kl_weight 10 "
    "--chunk_size 20 "
    "--hidden_dim 512 --batch_size 4 --dim_feedforward 3200 --num_epochs 1 --lr 1e-5 --seed 0\tThe usual arguments of "
    "ACT, with the data in $WEIR_DATASETS/astrobench_dual_arm; --policy_class ACT trains ACT itself, in PyTorch.\n";

int weir_train_options_check(struct train_options *o, struct weir_err *err)
{
    if (strcmp(o->policy_class, "ACT") == 0)
        return weir_err_set(err, -EINVAL,
                            "--policy-class ACT is in the --config file, which ACT does not read; type its "
                            "options");
    if (strcmp(o->policy_class, "CNN") != 0)
        return weir_err_set(err, -EINVAL, "--policy-class \"%.64s\" does not exist; use CNN, or ACT (in PyTorch)",
                            o->policy_class);
    if (o->resume && !o->ckpt_dir)
        return weir_err_set(err, -EINVAL, "--resume requires a checkpoint; add --ckpt-dir DIR");
    if (o->ckpt_dir && (!*o->ckpt_dir || strlen(o->ckpt_dir) > TRAIN_PATH / 2))
        return weir_err_set(err, -EINVAL, "--ckpt-dir is %s; specify a folder of at most 2048 bytes",
                            *o->ckpt_dir ? "too long" : "empty");
    if (weir_device_parse(o->run.loader.device, &o->gpu, err) < 0) {
        weir_err_prefix(err, "--device");
        return -EINVAL;
    }
    o->run.loader.format.dtype = WEIR_DTYPE_F32;
    o->run.loader.format.layout = WEIR_LAYOUT_NCHW;
    o->run.loader.rank = 0; /* ranks would train separate policies, because they do not exchange gradients */
    o->run.loader.world_size = 1;
    return 0;
}

const char *weir_train_data(const struct train_options *options, const char *data, char path[TRAIN_PATH],
                            struct weir_err *err)
{
    const char *folder = getenv("WEIR_DATASETS");
    if (data)
        return data;
    if (options->dataset_dir)
        return options->dataset_dir;
    if (folder && *folder && options->task_name &&
        snprintf(path, TRAIN_PATH, "%s/%s", folder, options->task_name) < TRAIN_PATH)
        return path;
    weir_err_set(err, -EINVAL,
                 "no data is given; use weir train DATA or --dataset-dir DIR, or put the data into "
                 "$WEIR_DATASETS/NAME and use --task-name NAME");
    return NULL;
}
