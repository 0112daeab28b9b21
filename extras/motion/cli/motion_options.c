#include "extras/motion/cli/motion_cli.h"
#include "pipeline/gpu/gpu.h"

#include <errno.h>
#include <string.h>

#define FIELD(field) .offset = offsetof(struct motion_options, field)

const struct weir_opt weir_motion_opts[MOTION_OPTS] = {
    {"motion", WEIR_OPT_TEXT, FIELD(motion), "FILE.npz|FILE.hdf5|DIR|synthetic", "synthetic",
     "motion clips: a file or a folder", .path = WEIR_PATH_READ, .topic = "Motion", .is_common = true},
    {"loop", WEIR_OPT_ENUM, FIELD(loop), "as-file|never|always", "as-file", "whether clips loop",
     .details = "always: clips restart at their end; never: they hold their last frame."},
    {"root-body", WEIR_OPT_TEXT, FIELD(root_body), "NAME", NULL, "root body in a file (default the first body)"},
    {"key-bodies", WEIR_OPT_TEXT, FIELD(key_bodies), "A,B,...", NULL,
     "key bodies in a file (default all except the root)"},
    {"seed", WEIR_OPT_UINT64, FIELD(seed), "N", "0", "seed of synthetic clips, and of the queries"},
    {"task", WEIR_OPT_TEXT, FIELD(task), "NAME", NULL, "label for the output and the trace (weir_task)",
     .topic = "Queries", .is_common = true},
    {"num-envs", WEIR_OPT_INT, FIELD(num_envs), "N", "4096", "number of environments", 1, MOTION_ENVS_MAX,
     .unit = "environments", .is_common = true},
    {"num-steps-to-use", WEIR_OPT_INT, FIELD(num_steps_to_use), "N", "1", "queries per environment and step", 1, 4096,
     .unit = "times", .details = "Their times are 0.02 s apart."},
    {"num-steps", WEIR_OPT_INT, FIELD(num_steps), "N", "100", "total number of steps", 1, MOTION_STEPS_MAX,
     .unit = "steps", .details = "Steps after the recorded ones are timed without a profiler.", .is_common = true},
    {"variant", WEIR_OPT_ENUM, FIELD(variant), "ops|fused", "ops", "implementation of the query",
     .details = "ops computes one operator at a time, like an eager framework. fused computes a query in one pass.",
     .is_common = true},
    {"advice", WEIR_OPT_ENUM, FIELD(advice),
     "none|indices|in_place_lerp|fast_slerp|rotations|no_copies|preallocated|all", "none",
     "usual advice to apply to --variant ops"},
    {"device", WEIR_OPT_TEXT, FIELD(device), "auto|cpu|cuda|cuda:K", "auto", "device to compute on",
     .details = "auto selects GPU 0 if it is usable, otherwise the CPU.", .is_common = true},
    {"threads", WEIR_OPT_INT, FIELD(threads), "N", "auto", "CPU threads", 1, 1024, true, .unit = "threads",
     .details = "auto uses one thread per usable core."},
    {"headless", WEIR_OPT_FLAG, FIELD(headless), NULL, NULL, "accepted for the trainer's scripts; nothing is drawn"},
    {"warmup", WEIR_OPT_INT, FIELD(warmup), "N", "5", "steps before the recorded ones", 0, MOTION_STEPS_MAX,
     .unit = "steps", .topic = "Recording", .is_common = true},
    {"active", WEIR_OPT_INT, FIELD(active), "N", "10", "recorded steps", 1, 10000, .unit = "steps", .is_common = true},
    {"trace-path", WEIR_OPT_TEXT, FIELD(trace_path), "DIR", NULL, "folder for the trace (default: none)",
     .path = WEIR_PATH_WRITE_INTO, .details = "The file is HOST_PID.NS.pt.trace.json.gz.", .is_common = true},
    {"no-shapes", WEIR_OPT_FLAG, FIELD(no_shapes), NULL, NULL, "no shapes in the trace"},
    {"no-memory", WEIR_OPT_FLAG, FIELD(no_memory), NULL, NULL, "no allocations in the trace"},
    {"no-stack", WEIR_OPT_FLAG, FIELD(no_stack), NULL, NULL, "no call stacks in the trace"},
    {"json", WEIR_OPT_FLAG, FIELD(json), NULL, NULL, "JSON output, one object", .is_common = true},
    {"wide", WEIR_OPT_FLAG, FIELD(wide), NULL, NULL, "all columns of the tables, and no wrapping"},
};

const char weir_motion_examples[] =
    "weir motion --task Isaac-Velocity-Rough-Unitree-G1-v0 --num_envs 4096 --warmup 5 --active 10 --num_steps 100 "
    "--trace_path ./profiler_logs --headless\tThe usual arguments of the trainer's profile_motion_loading.py.\n"
    "weir motion --variant fused\tThe same queries in one pass.\n"
    "weir motion --advice fast_slerp\tThe effect of one piece of the usual advice.\n"
    "weir motion --motion walk.npz --loop always --num_envs 16384\tThe clip in a file, for more environments.\n"
    "tensorboard --logdir ./profiler_logs\tShow the trace, like one from torch.profiler.\n";

int weir_motion_options_check(struct motion_options *o, struct weir_err *err)
{
    o->any_device = strcmp(o->device, "auto") == 0;
    o->gpu = -1;
    if (!o->any_device && weir_device_parse(o->device, &o->gpu, err) < 0) {
        weir_err_prefix(err, "--device");
        return -EINVAL;
    }
    if ((o->root_body || o->key_bodies) && strcmp(o->motion, "synthetic") == 0)
        return weir_err_set(err, -EINVAL, "--%s selects bodies in a file; add --motion FILE",
                            o->root_body ? "root-body" : "key-bodies");
    if (o->advice != MOTION_ADVICE_NONE && o->variant == WEIR_MOTION_FUSED) {
        char advice[WEIR_OPTION_TEXT];
        weir_motion_advice_name(o, advice);
        return weir_err_set(err, -EINVAL, "--advice %s: the variant fused has no operators to change; remove --variant",
                            advice);
    }
    if (o->warmup + o->active > MOTION_STEPS_MAX)
        return weir_err_set(err, -EINVAL, "--warmup %d and --active %d exceed %d steps together; use smaller numbers",
                            o->warmup, o->active, MOTION_STEPS_MAX);
    if (o->warmup + o->active > o->num_steps)
        return weir_err_set(err, -EINVAL,
                            "--num-steps %d is less than --warmup %d and --active %d together; use at least %d",
                            o->num_steps, o->warmup, o->active, o->warmup + o->active);
    return 0;
}

void weir_motion_advice_name(const struct motion_options *o, char text[WEIR_OPTION_TEXT])
{
    for (int i = 0; i < MOTION_OPTS; i++)
        if (weir_motion_opts[i].offset == offsetof(struct motion_options, advice))
            weir_option_choice(weir_motion_opts[i].value, o->advice, text);
}

struct weir_motion_advice weir_motion_advice_of(const struct motion_options *o)
{
    bool all = o->advice == MOTION_ADVICE_ALL;
    return (struct weir_motion_advice){
        .indices = all || o->advice == MOTION_ADVICE_INDICES,
        .in_place_lerp = all || o->advice == MOTION_ADVICE_IN_PLACE_LERP,
        .fast_slerp = all || o->advice == MOTION_ADVICE_FAST_SLERP,
        .rotations = all || o->advice == MOTION_ADVICE_ROTATIONS,
        .no_copies = all || o->advice == MOTION_ADVICE_NO_COPIES,
        .preallocated = all || o->advice == MOTION_ADVICE_PREALLOCATED,
    };
}

int weir_motion_choose_device(struct motion_options *o, struct weir_err *err)
{
    struct weir_err none = WEIR_ERR_NONE;
    if (!o->any_device)
        return o->gpu < 0 ? 0 : weir_motion_gpu_check(o->gpu, err);
    if (weir_motion_gpu_check(0, &none) == 0)
        o->gpu = 0;
    return 0;
}
