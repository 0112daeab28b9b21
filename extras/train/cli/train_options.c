#include "extras/train/cli/train_options.h"
#include "cli/commands.h"
#include "pipeline/gpu/gpu.h"
#include "weir/loader.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define FIELD(field) .offset = offsetof(struct train_options, field)

struct weir_opt weir_train_opts[TRAIN_OPTS] = {
    {"task-name", WEIR_OPT_TEXT, FIELD(task_name), "NAME", NULL, "the data is $WEIR_DATASETS/NAME, without DATA"},
    {"dataset-dir", WEIR_OPT_TEXT, FIELD(dataset_dir), "DIR", NULL, "the data, without DATA", .path = WEIR_PATH_READ},
    {"ckpt-dir", WEIR_OPT_TEXT, FIELD(ckpt_dir), "DIR", NULL,
     "write policy_best.safetensors and policy_last.safetensors there; without it nothing is kept",
     .path = WEIR_PATH_WRITE_INTO, .files = WEIR_TRAIN_BEST " " WEIR_TRAIN_LAST},
    {"resume", WEIR_OPT_FLAG, FIELD(resume), NULL, NULL,
     "go on from policy_last.safetensors in --ckpt-dir, where there is one, up to --num-epochs"},
    {"policy-class", WEIR_OPT_TEXT, FIELD(policy_class), "CNN", "CNN",
     "the policy that is trained; ACT: prints the command of examples/imitate_episodes.py"},
    {"hidden-dim", WEIR_OPT_INT, FIELD(hidden_dim), "N", "512", "width of the policy's hidden layers", 1, 65536},
    {"dim-feedforward", WEIR_OPT_INT, FIELD(dim_feedforward), "N", "3200", "width of the head's layer", 1, 65536},
    {"lr", WEIR_OPT_DOUBLE, FIELD(lr), "F", "1e-5", "learning rate of AdamW", 0, 10},
    {"weight-decay", WEIR_OPT_DOUBLE, FIELD(weight_decay), "F", "1e-4", "of AdamW", 0, 10},
    {"grad-accumulation", WEIR_OPT_INT, FIELD(grad_accumulation), "N", "1",
     "batches whose gradients are summed for a step of the optimiser", 1, 65536},
    {"num-workers", WEIR_OPT_INT, FIELD(run.num_workers), "N", "auto",
     "threads that load; auto: a quarter of the usable cores, at least one, and the others compute; beside a GPU one "
     "per "
     "core; 0: on the main thread",
     0, WEIR_WORKERS_MAX, true},
    {"mean", WEIR_OPT_TEXT, FIELD(run.mean), "R,G,B|imagenet", NULL, "taken off the values of images, which are 0..1"},
    {"std", WEIR_OPT_TEXT, FIELD(run.std), "R,G,B|imagenet", NULL, "what they are divided by then"},
    {"device", WEIR_OPT_TEXT, FIELD(run.device), "cpu|cuda|cuda:K", "cpu",
     "where the policy is trained, and batches are made"},
    {"amp", WEIR_OPT_FLAG, FIELD(amp), NULL, NULL,
     "mixed precision: float16 products and a dynamic loss scale, on a GPU; the CPU ignores it"},
    {"kl-weight", WEIR_OPT_DOUBLE, FIELD(kl_weight), "F", NULL, "accepted; CNN has no use for it", 0, 1e9},
    {"temporal-agg", WEIR_OPT_FLAG, FIELD(temporal_agg), NULL, NULL, "likewise"},
    {"onscreen-render", WEIR_OPT_FLAG, FIELD(onscreen_render), NULL, NULL, "likewise"},
};

#define DRAWN    "sampling chunk-size pad action-offset train-split seed no-shuffle drop-last max-batches"
#define READ     "cameras qpos-keys action-keys image-keys allow-ragged allow-external split on-error index"
#define IMAGES   "image-size crop color"
#define READING  "prefetch decoder decode-cache io io-depth direct cold"
#define REPORTS  "every lang log json no-timing"
#define RECORDED "profile schedule record-shapes profile-memory with-stack worker-ops nvtx sort-by row-limit"
static const char run_names[] =
    "batch-size " DRAWN " " READ " " IMAGES " " READING " " REPORTS " " RECORDED " num-epochs";

/* Every option but --help is in one of them (tests/cli/test_cli.sh). */
const struct weir_opt_topic weir_train_topics[] = {
    {"The training", "task-name dataset-dir ckpt-dir resume num-epochs batch-size lr weight-decay grad-accumulation"},
    {"The policy", "policy-class hidden-dim dim-feedforward device amp kl-weight temporal-agg onscreen-render"},
    {"What is drawn", DRAWN},
    {"What is read of a dataset", READ},
    {"What the policy sees", IMAGES " mean std"},
    {"Loading", "num-workers " READING},
    {"Reports", REPORTS},
    {"Recording, with --profile", RECORDED},
    {NULL, NULL},
};

const char weir_train_examples[] =
    "weir train episodes/ --num-epochs 10 --lr 1e-4\tTrain on a folder of episodes, and see where each step's time "
    "goes.\n"
    "weir train episodes/ --ckpt-dir ckpt --num-epochs 100 --resume\tGo on from the last checkpoint, if there is one.\n"
    "weir train --task_name astrobench_dual_arm --ckpt_dir ./ckpt_profile --policy_class CNN --kl_weight 10 "
    "--chunk_size 20 "
    "--hidden_dim 512 --batch_size 4 --dim_feedforward 3200 --num_epochs 1 --lr 1e-5 --seed 0\tWhat people of ACT "
    "type, with "
    "the data in $WEIR_DATASETS/astrobench_dual_arm.\n";

void weir_train_options_list(void)
{
    weir_run_options_take(weir_train_opts + TRAIN_OWN_OPTS, TRAIN_RUN_OPTS, run_names);
}

int weir_train_options_check(struct train_options *o, struct weir_err *err)
{
    if (strcmp(o->policy_class, "CNN") != 0)
        return weir_err_set(err, -EINVAL, "--policy-class: there is no \"%.64s\"; there is CNN, and ACT in PyTorch",
                            o->policy_class);
    if (o->resume && !o->ckpt_dir)
        return weir_err_set(err, -EINVAL, "--resume goes on from a checkpoint; add --ckpt-dir DIR");
    if (o->ckpt_dir && (!*o->ckpt_dir || strlen(o->ckpt_dir) > TRAIN_PATH / 2))
        return weir_err_set(err, -EINVAL, "--ckpt-dir is %s; give a folder", *o->ckpt_dir ? "too long" : "empty");
    if (weir_device_parse(o->run.device, &o->gpu, err) < 0) {
        weir_err_prefix(err, "--device");
        return -EINVAL;
    }
    o->run.output = 1; /* f32 */
    o->run.layout = WEIR_LAYOUT_NCHW;
    o->run.obs_history = 1;
    o->run.rank = 0; /* processes that a launcher starts do not exchange gradients: each trains a policy of its own */
    o->run.world_size = 1;
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
                 "no data is given; name it as in weir train DATA, or by --dataset-dir DIR, or put it into "
                 "$WEIR_DATASETS/NAME and give --task-name NAME");
    return NULL;
}

void weir_train_unused(const struct train_options *options, char *text, size_t size)
{
    const struct {
        bool typed;
        const char *name;
    } unused[] = {{options->kl_weight > 0, "--kl-weight"},
                  {options->temporal_agg, "--temporal-agg"},
                  {options->onscreen_render, "--onscreen-render"}};
    size_t used = 0;
    *text = '\0';
    for (size_t i = 0; i < sizeof unused / sizeof unused[0]; i++)
        if (unused[i].typed && used < size)
            used += (size_t)snprintf(text + used, size - used, "%s%s", used ? ", " : "", unused[i].name);
}
