#include "base/resources.h"
#include "base/terminal.h"
#include "base/text.h"
#include "cli/outputs.h"
#include "cli/run/run_step.h"
#include "extras/train/cli/safetensors.h"
#include "extras/train/cli/train_cli.h"
#include "pipeline/gpu/gpu.h"
#include "prof/gpu/cuda_module.h"
#include "weir/stages.h"

#include <assert.h>
#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>
#include <sys/param.h>
#include <unistd.h>

/* ---- before the first batch ---- */

static int find_checkpoint(struct train *t, struct weir_err *err)
{
    const char *folder = t->options->ckpt_dir;
    if (!folder)
        return 0;
    snprintf(t->last, sizeof t->last, "%s/" WEIR_TRAIN_LAST, folder);
    snprintf(t->best, sizeof t->best, "%s/" WEIR_TRAIN_BEST, folder);
    if (!t->options->resume)
        return 0;
    t->resumed = access(t->last, F_OK) == 0;
    return t->resumed ? weir_checkpoint_progress(t->last, t->options, &t->now, err) : 0;
}

static int set_config(void *user, struct weir_loader_config *config, struct weir_err *err)
{
    struct train *t = user;
    if (config->num_workers == WEIR_WORKERS_AUTO && t->options->gpu < 0) /* with a GPU, the loader may use all cores */
        config->num_workers = MAX(weir_cores_usable() / 4, 1);
    int rc = find_checkpoint(t, err);
    config->resume = t->now.data;
    return rc;
}

/* Adds the colour cameras to the policy's config. Depth cameras are skipped, because they do not have three channels.
 */
static int add_cameras(const struct weir_loader *loader, struct weir_policy_config *config, struct weir_err *err)
{
    const struct weir_dataset *dataset = weir_loader_dataset(loader);
    struct weir_loader_facts facts;
    weir_loader_facts(loader, &facts);
    for (int c = 0; c < weir_dataset_cameras(dataset); c++) {
        if (weir_frame_is_depth(weir_dataset_camera(dataset, c)->kind))
            continue;
        if (config->n_cameras == WEIR_POLICY_CAMERAS_MAX)
            return weir_err_set(err, -EINVAL, "the policy supports at most %d cameras; choose some with --cameras",
                                WEIR_POLICY_CAMERAS_MAX);
        config->cameras[config->n_cameras++] = (struct weir_policy_camera){weir_dataset_camera(dataset, c)->name,
                                                                           facts.image_height[c], facts.image_width[c]};
    }
    if (config->n_cameras == 0)
        return weir_err_set(err, -EINVAL, "the policy needs a colour camera, but none is loaded; check --cameras");
    return 0;
}

/* If the loader uses a GPU, queues training steps on that GPU, on a new stream. */
static int use_gpu(struct train *t, struct weir_policy_config *config, struct weir_err *err)
{
    struct weir_device *device = weir_device_of(t->loader);
    if (!device)
        return 0;
    int rc = weir_device_stream(device, &t->stream, err);
    config->gpu_ops = rc == 0 ? weir_cuda_module_extra("compute", err) : NULL;
    config->gpu = weir_device_number(device);
    config->stream = t->stream;
    config->amp = t->options->amp;
    return rc == 0 && !config->gpu_ops ? -ENODEV : rc;
}

static int open_policy(struct train *t, struct weir_err *err)
{
    const struct train_options *o = t->options;
    const struct weir_dataset *dataset = weir_loader_dataset(t->loader);
    struct weir_loader_facts facts;
    weir_loader_facts(t->loader, &facts);
    struct weir_policy_config config = {
        .state_dim = weir_dataset_qpos_dim(dataset),
        .action_dim = weir_dataset_action_dim(dataset),
        .chunk = o->run.loader.chunk_size,
        .hidden_dim = o->hidden_dim,
        .feedforward_dim = o->dim_feedforward,
        .learning_rate = o->lr,
        .weight_decay = o->weight_decay,
        .seed = o->run.loader.seed,
        .batch_max = o->run.loader.batch_size,
        .accumulation = o->grad_accumulation,
        .threads = MAX(facts.cores - facts.workers, 1),
        .memory_bytes = weir_memory_available_bytes(),
    };
    int rc = add_cameras(t->loader, &config, err);
    if (rc == 0)
        rc = use_gpu(t, &config, err);
    if (rc == 0)
        rc = weir_policy_open(&t->policy, &config, err);
    if (rc == 0 && t->resumed)
        rc = weir_checkpoint_read(t->last, t->policy, err);
    return rc;
}

static int open_training(void *user, struct weir_loader *loader, struct weir_err *err)
{
    struct train *t = user;
    t->loader = loader;
    int rc = t->options->ckpt_dir ? weir_output_folder(t->options->ckpt_dir, "--ckpt-dir", err) : 0;
    if (rc == 0 && *t->last)
        rc = weir_safetensors_check(t->last, err);
    if (rc == 0 && *t->best)
        rc = weir_safetensors_check(t->best, err);
    if (rc == 0)
        rc = open_policy(t, err);
    weir_loader_state(loader, &t->now.data);
    t->safe = t->now;
    return rc;
}

static void print_depth(FILE *out, const struct weir_dataset *dataset)
{
    const char *before = "depth cameras are ignored: ";
    for (int c = 0; c < weir_dataset_cameras(dataset); c++) {
        if (!weir_frame_is_depth(weir_dataset_camera(dataset, c)->kind))
            continue;
        fprintf(out, "%s%s", before, weir_dataset_camera(dataset, c)->name);
        before = ", ";
    }
    if (*before == ',')
        fputc('\n', out);
}

static void print_checkpoints(FILE *out, const struct train *t)
{
    char shown[TRAIN_PATH];
    struct weir_policy_progress done;
    weir_policy_progress(t->policy, &done);
    snprintf(shown, sizeof shown, "%s", t->last);
    weir_text_printable(shown);
    if (!*t->last)
        fputs("checkpoints: none; use --ckpt-dir DIR to save the policy\n", out);
    else if (t->resumed)
        fprintf(out, "checkpoints: resuming from %s, after %d epochs and %" PRIu64 " optimizer steps\n", shown,
                t->now.epoch, done.steps);
    else
        fprintf(out, "checkpoints: %s%s\n", shown,
                t->options->resume ? "; no checkpoint yet, training starts from scratch" : "");
}

static void print_head(void *user)
{
    const struct train *t = user;
    const struct train_options *o = t->options;
    struct weir_wrap wrap;
    FILE *out = weir_wrap_open(&wrap, stderr, 2, NULL);
    fprintf(out, "policy: CNN, %" PRIu64 " parameters; %s\n", weir_policy_parameters(t->policy),
            weir_policy_engine(t->policy));
    if (o->kl_weight > 0)
        fputs("ignored by CNN: --kl-weight\n", out);
    if (o->amp && !t->stream)
        fputs("--amp is ignored: the CPU computes in float32\n", out);
    print_depth(out, weir_loader_dataset(t->loader));
    print_checkpoints(out, t);
    weir_wrap_close(&wrap);
}

static void write_head(void *user, struct weir_json *json)
{
    const struct train *t = user;
    weir_json_object(json, "policy");
    weir_json_text(json, "class", "CNN");
    weir_json_uint(json, "parameters", weir_policy_parameters(t->policy));
    weir_json_text(json, "engine", weir_policy_engine(t->policy));
    weir_json_bool(json, "amp", t->options->amp && t->stream);
    weir_json_bool(json, "resumed", t->resumed);
    weir_json_end(json, '}');
}

/* ---- losses, which on a GPU arrive some time after their batch was queued ---- */

static void send_loss(struct train *t, const struct weir_batch *batch)
{
    t->late[t->losses_sent++ % WEIR_POLICY_LOSSES] = (struct train_late_loss){
        batch->plan.split, batch->n, batch->plan.index, batch->plan.epoch, weir_loader_position(t->loader)};
    weir_policy_send_loss(t->policy);
}

static int check_loss(struct train *t, const struct train_late_loss *of, double loss, struct weir_err *err)
{
    t->diverged = !isfinite(loss);
    if (!t->diverged)
        return 0;
    return weir_err_set(err, -ERANGE,
                        "the loss of %s batch %d of epoch %d is %s: the training has diverged; try a smaller --lr "
                        "(now %g)",
                        of->split == WEIR_SPLIT_TRAIN ? "training" : "validation", of->index + 1, of->epoch + 1,
                        isnan(loss) ? "not a number" : "infinite", t->options->lr);
}

static void add(struct train_progress *to, const struct train_late_loss *of, double loss)
{
    struct train_sum *sum = of->split == WEIR_SPLIT_TRAIN ? &to->train : &to->val;
    sum->loss += loss * of->n;
    sum->samples += (uint64_t)of->n;
}

/* Adds the losses that have arrived to the sums in t->now. Losses of batches before the position in t->safe are also
 * added to t->safe. With wait, waits for all losses in flight. 0, -ERANGE (a loss is not finite), or an error of the
 * queued work.
 */
static int take_losses(struct train *t, bool wait, struct weir_err *err)
{
    double loss;
    int rc = 0;
    while (t->losses_received != t->losses_sent && (rc = weir_policy_receive_loss(t->policy, wait, &loss, err)) > 0) {
        const struct train_late_loss *of = &t->late[t->losses_received++ % WEIR_POLICY_LOSSES];
        rc = check_loss(t, of, loss, err);
        if (rc < 0)
            return rc;
        add(&t->now, of, loss);
        if (of->position <= t->safe.data.next)
            add(&t->safe, of, loss);
    }
    return rc < 0 ? rc : 0;
}

/* ---- a step ---- */

static const struct weir_tensor *find_tensor(const struct weir_batch *batch, const char *name)
{
    for (int i = 0; i < batch->n_tensors; i++)
        if (strcmp(batch->tensors[i].name, name) == 0)
            return &batch->tensors[i];
    return NULL;
}

/* Cameras with images of the same size share a tensor, [n, cameras, 3, H, W]. Otherwise each camera has a tensor,
 * [n, 3, H, W]. */
static void find_images(struct weir_policy_inputs *inputs, const struct weir_batch *batch)
{
    int n = 0;
    for (int i = 0; i < batch->n_tensors; i++) {
        const struct weir_tensor *tensor = &batch->tensors[i];
        if (strncmp(tensor->name, "images", 6) != 0)
            continue;
        int cameras = tensor->ndim == 5 ? (int)tensor->shape[1] : 1;
        size_t row = tensor->sample_bytes / sizeof(float);
        for (int c = 0; c < cameras && n < WEIR_POLICY_CAMERAS_MAX; c++)
            inputs->images[n++] =
                (struct weir_policy_images){(const float *)tensor->data + (size_t)c * (row / (size_t)cameras), row};
    }
}

static void make_inputs(struct weir_policy_inputs *inputs, const struct weir_batch *batch)
{
    const struct weir_tensor *state = find_tensor(batch, "qpos"), *actions = find_tensor(batch, "actions"),
                             *is_pad = find_tensor(batch, "is_pad");
    assert(state && actions && is_pad);
    *inputs = (struct weir_policy_inputs){
        .n = batch->n, .state = state->data, .actions = actions->data, .is_pad = is_pad->data};
    find_images(inputs, batch);
}

/* Attributes the GPU time since the previous mark to the stage. */
static int mark(const struct train *t, const struct weir_batch *batch, int stage, struct weir_err *err)
{
    return weir_loader_mark(t->loader, batch, stage, t->stream, err);
}

static int forward(struct train *t, const struct weir_batch *batch, const struct weir_policy_inputs *inputs,
                   struct weir_err *err)
{
    int stage = batch->plan.split == WEIR_SPLIT_TRAIN ? WEIR_STAGE_TRAIN_FORWARD : WEIR_STAGE_VAL_FORWARD;
    WEIR_ZONE(stage);
    weir_run_step_shapes(batch);
    weir_policy_forward(t->policy, inputs);
    send_loss(t, batch);
    return mark(t, batch, stage, err);
}

static int learn(struct train *t, const struct weir_batch *batch, struct weir_err *err)
{
    int rc;
    {
        WEIR_ZONE(WEIR_STAGE_BACKWARD);
        weir_policy_backward(t->policy);
        rc = mark(t, batch, WEIR_STAGE_BACKWARD, err);
    }
    WEIR_ZONE(WEIR_STAGE_OPTIMIZER);
    weir_policy_step(t->policy);
    t->pending = (t->pending + 1) % t->options->grad_accumulation;
    return rc == 0 ? mark(t, batch, WEIR_STAGE_OPTIMIZER, err) : rc;
}

/* Checkpoints do not contain gradients. So the progress to save advances only when no gradients are pending, and a
 * resumed run repeats the batches after it. */
static void note_progress(struct train *t)
{
    t->now.data.next = weir_loader_position(t->loader);
    if (t->pending > 0)
        return;
    t->safe = t->now;
    t->unsaved = true;
}

static int train_step(void *user, const struct weir_batch *batch, struct weir_err *err)
{
    struct train *t = user;
    struct weir_policy_inputs inputs;
    int rc = 0;
    if (batch->n > 0) { /* with --on-error skip, a batch can be empty */
        make_inputs(&inputs, batch);
        rc = forward(t, batch, &inputs, err);
        if (rc == 0)
            rc = take_losses(t, false, err);
        if (rc == 0 && batch->plan.split == WEIR_SPLIT_TRAIN)
            rc = learn(t, batch, err);
    }
    if (rc == 0)
        note_progress(t);
    return rc;
}

/* ---- epochs ---- */

static double mean(const struct train_sum *sum)
{
    return sum->samples ? sum->loss / (double)sum->samples : NAN;
}

/* Waits for the epoch's last losses. If that fails, end_epoch returns the error, after the line has been printed. */
static void fill_line(void *user, struct weir_epoch_line *line)
{
    struct train *t = user;
    take_losses(t, true, &t->late_err);
    line->trained = true;
    line->train_loss = mean(&t->now.train);
    line->val_loss = mean(&t->now.val);
}

static int save(struct train *t, const char *path, struct weir_err *err)
{
    WEIR_ZONE(WEIR_STAGE_CHECKPOINT);
    return weir_checkpoint_write(path, t->options, t->policy, &t->safe, err);
}

static int end_epoch(void *user, struct weir_err *err)
{
    struct train *t = user;
    if (t->late_err.code < 0)
        return weir_err_set(err, t->late_err.code, "%s", t->late_err.text);
    double loss = mean(t->now.val.samples ? &t->now.val : &t->now.train);
    bool best = isfinite(loss) && (t->now.best_epoch == 0 || loss < t->now.best_loss);
    t->now.epoch++;
    if (best) {
        t->now.best_epoch = t->now.epoch;
        t->now.best_loss = loss;
    }
    t->now.train = t->now.val = (struct train_sum){0};
    note_progress(t);
    if (!*t->last)
        return 0;
    int rc = best ? save(t, t->best, err) : 0;
    if (rc == 0)
        rc = save(t, t->last, err);
    t->unsaved = rc < 0;
    return rc;
}

static int end_training(void *user, struct weir_err *err)
{
    struct train *t = user;
    int rc = t->diverged ? 0 : take_losses(t, true, err);
    if (rc < 0 || !*t->last || !t->unsaved || t->diverged)
        return rc;
    t->unsaved = false;
    return save(t, t->last, err);
}

static void *stream_of(void *user)
{
    return ((struct train *)user)->stream;
}

static void close_training(void *user)
{
    struct train *t = user;
    weir_policy_close(&t->policy);
    if (t->stream)
        weir_device_stream_free(weir_device_of(t->loader), t->stream);
    t->stream = NULL;
}

struct weir_run_consumer weir_train_consumer(struct train *train)
{
    return (struct weir_run_consumer){
        .user = train,
        .config = set_config,
        .open = open_training,
        .head = print_head,
        .json = write_head,
        .stream = stream_of,
        .step = train_step,
        .line = fill_line,
        .epoch = end_epoch,
        .end = end_training,
        .close = close_training,
    };
}
