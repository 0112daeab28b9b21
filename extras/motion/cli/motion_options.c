#include "extras/motion/cli/motion_options.h"
#include "extras/motion/motion.h"
#include "pipeline/gpu/gpu.h"

#include <errno.h>
#include <string.h>

#define FIELD(field) .offset = offsetof(struct motion_options, field)

const struct weir_opt weir_motion_opts[MOTION_OPTS] = {
    {"motion", WEIR_OPT_TEXT, FIELD(motion), "FILE.npz|FILE.hdf5|DIR|synthetic", "synthetic",
     "the clips: a file, a folder of them, or ones that are made up", .path = WEIR_PATH_READ},
    {"task", WEIR_OPT_TEXT, FIELD(task), "NAME", NULL, "a label, for the output and the trace (weir_task)"},
    {"num-envs", WEIR_OPT_INT, FIELD(num_envs), "N", "4096", "environments", 1, MOTION_ENVS_MAX},
    {"num-steps-to-use", WEIR_OPT_INT, FIELD(num_steps_to_use), "N", "1",
     "times that an environment asks for in each step, 0.02 s apart", 1, 4096},
    {"warmup", WEIR_OPT_INT, FIELD(warmup), "N", "5", "steps before those that are recorded", 0, MOTION_STEPS_MAX},
    {"active", WEIR_OPT_INT, FIELD(active), "N", "10", "steps that are recorded", 1, 10000},
    {"num-steps", WEIR_OPT_INT, FIELD(num_steps), "N", "100",
     "steps in all; those behind the recorded ones are timed without a profiler", 1, MOTION_STEPS_MAX},
    {"trace-path", WEIR_OPT_TEXT, FIELD(trace_path), "DIR", "./profiler_logs",
     "where the trace is written, HOST_PID.NS.pt.trace.json.gz", .path = WEIR_PATH_WRITE_INTO},
    {"headless", WEIR_OPT_FLAG, FIELD(headless), NULL, NULL, "accepted: nothing is ever drawn"},
    {"variant", WEIR_OPT_ENUM, FIELD(variant), "ops|fused", "ops",
     "an operator at a time, as an eager framework computes; or all of a query in one pass"},
    {"advice", WEIR_OPT_ENUM, FIELD(advice),
     "none|indices|in_place_lerp|fast_slerp|rotations|no_copies|preallocated|all", "none",
     "the usual advice that the variant ops follows"},
    {"device", WEIR_OPT_TEXT, FIELD(device), "auto|cpu|cuda|cuda:K", "auto",
     "where it is computed; auto: a GPU, where there is one that can"},
    {"threads", WEIR_OPT_INT, FIELD(threads), "N", "auto", "of the CPU; auto: one per usable core", 1, 1024, true},
    {"seed", WEIR_OPT_UINT64, FIELD(seed), "N", "0", "of made-up clips, and of the clip and time of each environment"},
    {"loop", WEIR_OPT_ENUM, FIELD(loop), "as-file|never|always", "as-file",
     "clips begin again at their end, or stay in their last frame"},
    {"root-body", WEIR_OPT_TEXT, FIELD(root_body), "NAME", NULL, "the body of a file that is the root; else the first"},
    {"key-bodies", WEIR_OPT_TEXT, FIELD(key_bodies), "A,B,...", NULL,
     "the bodies of a file that are looked at; else all but the root"},
    {"no-shapes", WEIR_OPT_FLAG, FIELD(no_shapes), NULL, NULL, "leave shapes out of the trace"},
    {"no-memory", WEIR_OPT_FLAG, FIELD(no_memory), NULL, NULL, "leave allocations out of the trace"},
    {"no-stack", WEIR_OPT_FLAG, FIELD(no_stack), NULL, NULL, "leave call stacks out of the trace"},
    {"json", WEIR_OPT_FLAG, FIELD(json), NULL, NULL, "print the figures as an object of JSON, in place of the report"},
};

/* Every option but --help is in one of them. */
const struct weir_opt_topic weir_motion_topics[] = {
    {"The motion", "motion loop root-body key-bodies seed"},
    {"What is run", "task num-envs num-steps-to-use num-steps variant advice device threads headless"},
    {"Recording", "warmup active trace-path no-shapes no-memory no-stack json"},
    {NULL, NULL},
};

const char weir_motion_examples[] =
    "weir motion --task Isaac-Velocity-Rough-Unitree-G1-v0 --num_envs 4096 --warmup 5 --active 10 --num_steps 100 "
    "--trace_path ./profiler_logs --headless\tWhat users of the trainer's profile_motion_loading.py type.\n"
    "weir motion --variant fused\tThe same queries in one pass.\n"
    "weir motion --advice fast_slerp\tWhat one piece of the usual advice gives.\n"
    "weir motion --motion walk.npz --loop always --num_envs 16384\tThe clip of a file, for more environments.\n"
    "tensorboard --logdir ./profiler_logs\tThe trace, as any of torch.profiler.\n";

int weir_motion_options_check(struct motion_options *o, struct weir_err *err)
{
    o->any_device = strcmp(o->device, "auto") == 0;
    o->gpu = -1;
    if (!o->any_device && weir_device_parse(o->device, &o->gpu, err) < 0) {
        weir_err_prefix(err, "--device");
        return -EINVAL;
    }
    if ((o->root_body || o->key_bodies) && strcmp(o->motion, "synthetic") == 0)
        return weir_err_set(err, -EINVAL, "--%s is of the bodies of a file; name one: --motion FILE",
                            o->root_body ? "root-body" : "key-bodies");
    if (o->advice != MOTION_ADVICE_NONE && o->variant == WEIR_MOTION_FUSED) {
        char advice[WEIR_OPTION_TEXT];
        weir_motion_advice_name(o, advice);
        return weir_err_set(err, -EINVAL,
                            "--advice %s: the variant fused has no operators to change; leave out --variant", advice);
    }
    if (o->warmup + o->active > MOTION_STEPS_MAX)
        return weir_err_set(err, -EINVAL, "--warmup %d and --active %d are more than %d steps; give less", o->warmup,
                            o->active, MOTION_STEPS_MAX);
    if (o->warmup + o->active > o->num_steps)
        return weir_err_set(err, -EINVAL,
                            "--num-steps %d is less than --warmup %d and --active %d take together; give %d or more",
                            o->num_steps, o->warmup, o->active, o->warmup + o->active);
    return 0;
}

void weir_motion_advice_name(const struct motion_options *o, char text[WEIR_OPTION_TEXT])
{
    for (int i = 0; i < MOTION_OPTS; i++)
        if (weir_motion_opts[i].offset == offsetof(struct motion_options, advice))
            weir_option_choice(&weir_motion_opts[i], o->advice, text);
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
