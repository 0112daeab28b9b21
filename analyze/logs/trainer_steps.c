/* The formats whose rows are lines of fields. Those that record the wait for data come first. */
#include "analyze/logs/trainer.h"

#include <math.h>
#include <string.h>

#define SECONDS(name, role)                                                                                            \
    {                                                                                                                  \
        name, NULL, WEIR_TRAINER_##role, WEIR_TRAINER_SECONDS, NULL, 0, false                                          \
    }
#define NUMBER(name)                                                                                                   \
    {                                                                                                                  \
        name, NULL, WEIR_TRAINER_OTHER, WEIR_TRAINER_NUMBER, NULL, 0, false                                            \
    }
#define FIELDS .series = true, .recognise = weir_trainer_is_fields, .parse = weir_trainer_parse_fields

#define WATCH "python -m weir watch SCRIPT ..."

/* ---- LeRobot: step:1K smpl:8K ep:10 epch:1.25 loss:0.5 grdn:1.2 lr:1.0e-05 updt_s:0.120 data_s:0.004 smp/s:66 ---- */

static bool is_lerobot(const struct weir_trainer_log *log, const char *line)
{
    (void)log;
    return (strstr(line, "updt_s:") && strstr(line, "data_s:")) || strstr(line, "Effective batch size: ") ||
           strstr(line, "'log_freq': ");
}

/* Reads "Effective batch size: 8 x 2 = 16" and the configuration's "'log_freq': 200". */
static void read_setup(struct weir_trainer_log *log, const char *line)
{
    const char *batch = strstr(line, "Effective batch size: "), *times = batch ? strstr(batch, " x ") : NULL;
    const char *every = strstr(line, "'log_freq': ");
    double value;
    if (times && weir_trainer_decimal(times + strlen(" x "), &value) > 0 && value >= 1 && value < 1e6)
        log->ranks = (int)value;
    if (every && weir_trainer_decimal(every + strlen("'log_freq': "), &value) > 0 && value >= 1 && value < 1e9)
        log->steps_per_row = floor(value);
}

static int parse_lerobot(struct weir_trainer_log *log, const char *line, uint64_t number)
{
    if (strstr(line, "updt_s:"))
        return weir_trainer_parse_fields(log, line, number);
    read_setup(log, line);
    return 0;
}

enum { DATA_S, PREP_S, UPDT_S, STEP_S, SAMPLES_PER_S };

/* From 0.6 on, each figure is its maximum over the ranks, and the lines have the samples per second. */
static bool has_maxima(const struct weir_trainer_log *log)
{
    const double *values = log->rows[log->n_rows - 1].values;
    return log->ranks > 1 && !isnan(values[SAMPLES_PER_S]) && isnan(values[STEP_S]);
}

/* All ranks take equally long for a step, so the maximum wait plus the maximum of the rest is at least a step, and each
 * of them at most one. */
static void wait_of_lerobot(const struct weir_trainer_log *log, struct weir_trainer_wait *wait)
{
    double rest_s = wait->step_s - wait->wait_s;
    if (wait->recorded && has_maxima(log))
        wait->most = fmax(wait->most, wait->wait_s / fmax(rest_s, wait->wait_s));
}

static void remark_on_lerobot(FILE *out, const struct weir_trainer_log *log)
{
    if (has_maxima(log))
        fprintf(out,
                "  each figure is its maximum over %d ranks, not always of the same rank, so the sum of data_s and "
                "updt_s can exceed a step; the wait is that of the rank that waits longest\n",
                log->ranks);
    else if (log->ranks > 1)
        fprintf(out, "  the figures are those of rank 0 of %d\n", log->ranks);
}

static const struct weir_trainer lerobot = {
    .name = "lerobot",
    .title = "LeRobot's step lines",
    .label = "step",
    .columns = {[DATA_S] = SECONDS("data_s", WAIT),
                [PREP_S] = SECONDS("prep_s", WORK),
                [UPDT_S] = SECONDS("updt_s", WORK),
                [STEP_S] = SECONDS("step_s", STEP),
                [SAMPLES_PER_S] = NUMBER("smp/s")},
    .has = {"updt_s:", "data_s:"},
    .labelled = "step",
    .series = true,
    .rounding_s = 0.5e-3,
    .recognise = is_lerobot,
    .parse = parse_lerobot,
    .wait = wait_of_lerobot,
    .remark = remark_on_lerobot,
    .means =
        "data_s is the wait for a batch and, unless the line has prep_s, the preprocessor with the copy to the GPU",
    .watch = "python -m weir watch -m lerobot.scripts.lerobot_train ...",
};

/* ---- detectron2: eta: 0:01:40  iter: 19  loss: 1.9  time: 0.2540  data_time: 0.0084 ---- */

enum { DATA_TIME, TIME };
enum { UNTIMED = 2 }; /* steps at the start that are not in `time` */

/* `time` is the mean since the start. Two such means, and the number of steps in each, give that of the steps between
 * them, so the start of the workers does not count here either. */
static void wait_of_detectron2(const struct weir_trainer_log *log, struct weir_trainer_wait *wait)
{
    const struct weir_trainer_row *first = &log->rows[0], *last = &log->rows[log->n_rows - 1];
    double steps = log->steps_per_row - UNTIMED, between = last->step - first->step;
    double step_s = last->values[TIME], error_s = log->rounding_s, step_error_s = error_s;
    if (wait->first > 0 && steps > 0 && between > 0) {
        step_s += steps / between * (step_s - first->values[TIME]);
        step_error_s *= 1 + 2 * steps / between;
    }
    if (!wait->recorded || !(step_s > step_error_s))
        return;
    wait->step_s = step_s;
    wait->fraction = wait->wait_s / step_s;
    wait->least = fmax(wait->wait_s - error_s, 0) / (step_s + step_error_s);
    wait->most = (wait->wait_s + error_s) / (step_s - step_error_s);
}

static const struct weir_trainer detectron2 = {
    .name = "detectron2",
    .title = "detectron2's step lines",
    .label = "iter",
    .columns = {[DATA_TIME] = SECONDS("data_time", WAIT), [TIME] = SECONDS("time", STEP)},
    .has = {"data_time:", " iter:"},
    .labelled = "iter",
    FIELDS,
    .mean_since_start = true,
    .rounding_s = 0.05e-3,
    .wait = wait_of_detectron2,
    .means =
        "data_time is the wait for a batch, a mean of the last 20 steps; time is a step with its wait, a mean since "
        "the start, so the wait is compared with the last line's time",
    .watch = "python -m weir watch SCRIPT ...",
};

/* ---- others ---- */

/* Epoch(train) [1][10/50]  lr: 1.0e-02  time: 0.0201  data_time: 0.0190, and Epoch: [0]  [10/50]  time: 0.2  data: 0.1
 */
static const struct weir_trainer mmengine = {
    .name = "mmengine",
    .title = "step lines with data_time, as MMEngine prints them",
    .label = "step",
    .columns = {{"data_time", NULL, WEIR_TRAINER_WAIT, WEIR_TRAINER_SECONDS, "data_time|data", 0, false},
                SECONDS("time", STEP)},
    .has = {"time:", "data", "["},
    .lacks = {" iter:", "(val)", "(test)", "Test:"},
    FIELDS,
    .rounding_s = 0.05e-3,
    .means =
        "data_time (or data) is the wait for a batch; time is a step with its wait; both are means of recent steps",
    .watch = WATCH,
};

#define BRACKETED(name, role, key)                                                                                     \
    {                                                                                                                  \
        name, NULL, WEIR_TRAINER_##role, WEIR_TRAINER_SECONDS, key, 0, true                                            \
    }
#define OF_MEANS                                                                                                       \
    FIELDS,                                                                                                            \
        .mean_since_start = true, .rounding_s = 0.5e-3, .wait = weir_trainer_wait_of_means,                            \
        .means = "both figures are the means in brackets, since the first step of the epoch; Data is the wait for "    \
                 "a batch, and Time a step with its wait",                                                             \
        .watch = WATCH

/* Epoch: [0][  10/5005]  Time  0.355 ( 1.322)  Data  0.002 ( 0.910)  Loss 7.0434e+00 (7.0799e+00) */
static const struct weir_trainer imagenet = {
    .name = "imagenet",
    .title = "step lines of PyTorch's ImageNet example",
    .label = "step",
    .columns = {BRACKETED("data", WAIT, "Data"), BRACKETED("time", STEP, "Time")},
    .has = {"Epoch: [", "Time ", "Data "},
    OF_MEANS,
};

/* Train: 0 [  50/1251 (  4%)]  Loss: 6.931 (6.94)  Time: 0.912s, 1122.8/s  (0.998s, 1026.1/s)  Data: 0.611 (0.702) */
static const struct weir_trainer timm = {
    .name = "timm",
    .title = "step lines of timm",
    .label = "step",
    .columns = {BRACKETED("data", WAIT, "Data"), BRACKETED("time", STEP, "Time")},
    .has = {"Train: ", "Time: ", "Data: "},
    OF_MEANS,
};

/* [  10/1412]  iter_time: 0.645(0.645)  data_wait_time: 0.000(0.000)  data_load_time: 8.745(8.745) */
static const struct weir_trainer iter_time = {
    .name = "iter_time",
    .title = "step lines with iter_time and data_wait_time",
    .label = "step",
    .columns = {SECONDS("data_wait_time", WAIT), SECONDS("data_load_time", OTHER), SECONDS("iter_time", STEP)},
    .has = {"iter_time:", "data_wait_time:"},
    FIELDS,
    .rounding_s = 0.5e-3,
    .means = "data_wait_time is the wait for a batch, and iter_time a step with its wait",
    .watch = WATCH,
};

/* a progress bar with data_times=0.120, model_times=0.480 */
static const struct weir_trainer data_times = {
    .name = "data_times",
    .title = "progress bars with data_times and model_times",
    .label = "step",
    .columns = {SECONDS("data_times", WAIT), SECONDS("model_times", WORK)},
    .has = {"data_times", "model_times"},
    FIELDS,
    .rounding_s = 0.5e-3,
    .means = "data_times is the wait for a batch, and model_times the rest of the step",
    .watch = WATCH,
};

/* Train Epoch 1, and a JSON document. Its times are the epoch's, in minutes. */
#define MINUTES(name, heading, role, key)                                                                              \
    {                                                                                                                  \
        name, heading, WEIR_TRAINER_##role, WEIR_TRAINER_SECONDS, key, 60, false                                       \
    }
static const struct weir_trainer robomimic = {
    .name = "robomimic",
    .title = "epochs of robomimic",
    .label = "epoch",
    .each = "epoch",
    .columns = {MINUTES("time_data_loading", "data loading", WAIT, "Time_Data_Loading"),
                MINUTES("time_process_batch", "process batch", OTHER, "Time_Process_Batch"),
                MINUTES("time_train_batch", "train batch", OTHER, "Time_Train_Batch"),
                MINUTES("time_log_info", "log info", OTHER, "Time_Log_Info"),
                MINUTES("time_epoch", "epoch", STEP, "Time_Epoch")},
    .has = {"Train Epoch "},
    .lacks = {"["},
    .labelled = "Train Epoch",
    .ends = "}",
    FIELDS,
    .means = "Time_Data_Loading, in minutes, is the wait for the batches of an epoch",
    .watch = "python -m weir watch -m robomimic.scripts.train ...",
};

/* Learning iteration 0/101, "Computation: 83209 steps/s (collection: 0.861s, learning 0.320s)" or "Collection time:
 * 0.768s" and "Learning time: 0.238s", Iteration time: 1.18s: also Isaac Lab, with RSL-RL */
static const struct weir_trainer rsl_rl = {
    .name = "rsl_rl",
    .title = "iterations of RSL-RL",
    .label = "iteration",
    .each = "iteration",
    .columns = {{"collection", NULL, WEIR_TRAINER_WAIT, WEIR_TRAINER_SECONDS, "collection|Collection time", 0, false},
                {"learning", NULL, WEIR_TRAINER_WORK, WEIR_TRAINER_SECONDS, "learning|Learning time", 0, false}},
    .has = {"Learning iteration "},
    .labelled = "Learning iteration",
    .ends = "Iteration time:",
    FIELDS,
    .rounding_s = 0.5e-3,
    .means = "the wait is the collection: the simulator and the policy produce the data; no dataset is read",
    .watch = "weir top",
};

/* ---- logs without the wait ---- */

/* {"train_loss": 0.565159, "global_step": 1, "epoch": 0, "lr": 4e-07}: logs.json.txt */
static const struct weir_trainer diffusion_policy = {
    .name = "diffusion_policy",
    .title = "logs.json.txt of Diffusion Policy",
    .label = "step",
    .columns = {NUMBER("epoch"), NUMBER("train_loss"), NUMBER("val_loss"), NUMBER("test_mean_score")},
    .has = {"\"train_loss\":", "\"global_step\":"},
    .labelled = "global_step",
    FIELDS,
    .means = "it has losses and no times; the progress bars on the console show the rate of whole steps",
    .watch = "python -m weir watch train.py ...",
};

/* step=100 loss=0.1000 lr=2.50e-05 grad_norm=1.23 time=217.4s */
static const struct weir_trainer openpi = {
    .name = "openpi",
    .title = "step lines of openpi for PyTorch",
    .label = "step",
    .columns = {NUMBER("loss"), {"time", NULL, WEIR_TRAINER_OTHER, WEIR_TRAINER_CLOCK, NULL, 0, false}},
    .has = {"step=", "loss=", "grad_norm=", "time="},
    .labelled = "step",
    FIELDS,
    .means = "time is that of the steps since the previous line, which contains the wait",
    .watch = "python -m weir watch scripts/train_pytorch.py ...",
};

const struct weir_trainer *const weir_trainer_steps[] = {
    &lerobot,    &detectron2, &mmengine, &imagenet,         &timm,   &iter_time,
    &data_times, &robomimic,  &rsl_rl,   &diffusion_policy, &openpi,
};
const int weir_trainer_n_steps = sizeof weir_trainer_steps / sizeof *weir_trainer_steps;
