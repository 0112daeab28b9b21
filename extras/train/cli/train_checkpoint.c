#include "base/hash.h"
#include "extras/train/cli/safetensors.h"
#include "extras/train/cli/train_cli.h"

#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

/* Options that affect the results, and must be the same when training resumes. num-epochs is missing because it may be
 * increased. */
static const char *const kept_options[] = {
    "policy-class", "hidden-dim",  "dim-feedforward", "lr",         "weight-decay", "grad-accumulation",
    "batch-size",   "max-batches", "sampling",        "chunk-size", "pad",          "action-offset",
    "train-split",  "seed",        "no-shuffle",      "drop-last",  "cameras",      "qpos-keys",
    "action-keys",  "image-keys",  "split",           "image-size", "crop",         "color",
    "mean",         "std",         "resize",          "filter-key",
};
enum { KEPT = sizeof kept_options / sizeof kept_options[0] };

/* Indices of the metadata keys, in order. The kept options follow, with their names as keys. */
enum {
    VERSION,
    EPOCH,
    STEPS,
    SCALE,
    GROWTH,
    SKIPPED,
    TRAIN_LOSS,
    TRAIN_SAMPLES,
    VAL_LOSS,
    VAL_SAMPLES,
    BEST_EPOCH,
    BEST_LOSS,
    NEXT,
    ORDER
};
static const char *const keys[ORDER + WEIR_STATE_FIELDS] = {
    "weir_train",
    "epoch",
    "optimizer_steps",
    "loss_scale",
    "loss_scale_growth",
    "loss_scale_skipped",
    "epoch_train_loss_sum",
    "epoch_train_samples",
    "epoch_val_loss_sum",
    "epoch_val_samples",
    "best_epoch",
    "best_loss",
    "next_batch",
    "data_0",
    "data_1",
    "data_2",
    "data_3",
    "data_4",
    "data_5",
    "data_6",
    "data_7",
    "data_8",
    "data_9",
    "data_10",
    "data_11",
    "data_12",
    "data_13",
    "data_14",
    "data_15",
};
enum { OPTIONS = ORDER + WEIR_STATE_FIELDS, META = OPTIONS + KEPT };
static const char version[] = "3";
static const uint64_t STEPS_MAX = UINT64_C(1) << 53; /* because AdamW's bias correction is computed in double */

/* Writes the option's value, its default if it was not set or options is NULL, or a hash if the value is too long. */
static void option_text(const struct train_options *options, const char *name, char *text, size_t size)
{
    char buffer[WEIR_OPTION_TEXT];
    const struct weir_command command = {.opts = weir_train_opts, .n_opts = TRAIN_OPTS, .sets = weir_train_sets};
    struct weir_opt_walk walk = {.command = &command};
    while (weir_opt_next(&walk) && strcmp(walk.opt->name, name) != 0)
        ;
    const char *typed = options ? weir_option_typed(walk.opt, (const char *)options + walk.at, buffer) : NULL;
    if (walk.opt->kind == WEIR_OPT_FLAG)
        typed = typed ? "true" : "false";
    else if (!typed)
        typed = walk.opt->preset ? walk.opt->preset : "";
    if (strlen(typed) < size)
        snprintf(text, size, "%s", typed);
    else
        snprintf(text, size, "xxh3 %016" PRIx64, weir_hash64(typed, strlen(typed)));
}

static void begin_meta(struct weir_safetensors_meta meta[META])
{
    for (int i = 0; i < META; i++)
        meta[i] = (struct weir_safetensors_meta){.key = i < OPTIONS ? keys[i] : kept_options[i - OPTIONS]};
}

/* ---- writing ---- */

static void put_count(struct weir_safetensors_meta *meta, uint64_t value)
{
    snprintf(meta->value, sizeof meta->value, "%" PRIu64, value);
}

static void put_number(struct weir_safetensors_meta *meta, double value)
{
    snprintf(meta->value, sizeof meta->value, "%.17g", value);
}

static void make_meta(struct weir_safetensors_meta meta[META], const struct train_options *options,
                      struct weir_policy *policy, const struct train_progress *progress)
{
    struct weir_policy_progress done;
    weir_policy_progress(policy, &done);
    begin_meta(meta);
    snprintf(meta[VERSION].value, sizeof meta[VERSION].value, "%s", version);
    put_count(&meta[EPOCH], (uint64_t)progress->epoch);
    put_count(&meta[STEPS], done.steps);
    put_number(&meta[SCALE], done.loss_scale);
    put_count(&meta[GROWTH], done.growth);
    put_count(&meta[SKIPPED], done.skipped);
    put_number(&meta[TRAIN_LOSS], progress->train.loss);
    put_count(&meta[TRAIN_SAMPLES], progress->train.samples);
    put_number(&meta[VAL_LOSS], progress->val.loss);
    put_count(&meta[VAL_SAMPLES], progress->val.samples);
    put_count(&meta[BEST_EPOCH], (uint64_t)progress->best_epoch);
    put_number(&meta[BEST_LOSS], progress->best_loss);
    put_count(&meta[NEXT], progress->data.next);
    for (int i = 0; i < WEIR_STATE_FIELDS; i++)
        put_count(&meta[ORDER + i], progress->data.values[i]);
    for (int i = 0; i < KEPT; i++)
        option_text(options, kept_options[i], meta[OPTIONS + i].value, sizeof meta->value);
}

/* Lists the policy's arrays as tensors of a file. The caller frees *arrays and *tensors. */
static int tensors_of(struct weir_policy *policy, struct weir_policy_array **arrays, struct weir_safetensor **tensors,
                      int *n, struct weir_err *err)
{
    int rc = weir_policy_arrays(policy, true, arrays, n);
    *tensors = rc == 0 ? calloc((size_t)*n, sizeof **tensors) : NULL;
    if (!*tensors) {
        free(rc == 0 ? *arrays : NULL);
        return weir_err_set(err, rc < 0 ? rc : -ENOMEM, "out of memory for the checkpoint");
    }
    for (int i = 0; i < *n; i++) {
        struct weir_safetensor *to = &(*tensors)[i];
        *to = (struct weir_safetensor){.name = (*arrays)[i].name, .ndim = (*arrays)[i].ndim, .data = (*arrays)[i].data};
        memcpy(to->shape, (*arrays)[i].shape, sizeof to->shape);
    }
    return 0;
}

int weir_checkpoint_write(const char *path, const struct train_options *options, struct weir_policy *policy,
                          const struct train_progress *progress, struct weir_err *err)
{
    struct weir_policy_array *arrays;
    struct weir_safetensor *tensors;
    struct weir_safetensors_meta meta[META];
    int n, rc = tensors_of(policy, &arrays, &tensors, &n, err);
    if (rc < 0)
        return rc;
    make_meta(meta, options, policy, progress);
    rc = weir_safetensors_write(path, tensors, n, meta, META, err);
    free(tensors);
    free(arrays);
    return rc;
}

/* ---- reading ---- */

static bool take_count(const struct weir_safetensors_meta *meta, uint64_t *value)
{
    char *end;
    errno = 0;
    *value = strtoull(meta->value, &end, 10);
    return meta->value[0] >= '0' && meta->value[0] <= '9' && *end == '\0' && errno == 0;
}

static bool take_int(const struct weir_safetensors_meta *meta, int *value)
{
    uint64_t count;
    bool fine = take_count(meta, &count) && count <= INT32_MAX;
    *value = fine ? (int)count : 0;
    return fine;
}

static bool take_number(const struct weir_safetensors_meta *meta, double *value)
{
    char *end;
    *value = strtod(meta->value, &end);
    return end != meta->value && *end == '\0' && isfinite(*value);
}

static bool take_progress(const struct weir_safetensors_meta meta[META], struct train_progress *progress)
{
    bool fine = take_int(&meta[EPOCH], &progress->epoch) && take_number(&meta[TRAIN_LOSS], &progress->train.loss) &&
                take_count(&meta[TRAIN_SAMPLES], &progress->train.samples) &&
                take_number(&meta[VAL_LOSS], &progress->val.loss) &&
                take_count(&meta[VAL_SAMPLES], &progress->val.samples) &&
                take_int(&meta[BEST_EPOCH], &progress->best_epoch) &&
                take_number(&meta[BEST_LOSS], &progress->best_loss) && take_count(&meta[NEXT], &progress->data.next);
    for (int i = 0; i < WEIR_STATE_FIELDS && fine; i++)
        fine = take_count(&meta[ORDER + i], &progress->data.values[i]);
    progress->data.given = fine;
    return fine;
}

int weir_checkpoint_progress(const char *path, const struct train_options *options, struct train_progress *progress,
                             struct weir_err *err)
{
    struct weir_safetensors_meta meta[META];
    *progress = (struct train_progress){0};
    begin_meta(meta);
    int rc = weir_safetensors_read(path, NULL, 0, meta, META, err);
    if (rc < 0)
        return rc;
    if (strcmp(meta[VERSION].value, version) != 0 || !take_progress(meta, progress))
        return weir_err_set(err, -EINVAL,
                            "%s: is not a checkpoint of this version of weir train; remove --resume to start again "
                            "(which overwrites the file), or choose another --ckpt-dir",
                            path);
    for (int i = 0; i < KEPT; i++) {
        char now[sizeof meta->value];
        char *then = meta[OPTIONS + i].value;
        if (!*then) /* an option that is newer than the checkpoint */
            option_text(NULL, kept_options[i], then, sizeof meta->value);
        option_text(options, kept_options[i], now, sizeof now);
        if (strcmp(now, then) != 0)
            return weir_err_set(err, -EINVAL,
                                "%s: --%s was %s when this checkpoint was saved, but now it is %s; use the same value, "
                                "or choose another "
                                "--ckpt-dir",
                                path, kept_options[i], *then ? then : "not set", *now ? now : "not set");
    }
    return 0;
}

static bool take_done(const struct weir_safetensors_meta meta[META], struct weir_policy_progress *done)
{
    return take_count(&meta[STEPS], &done->steps) && done->steps <= STEPS_MAX &&
           take_number(&meta[SCALE], &done->loss_scale) && done->loss_scale > 0 &&
           take_count(&meta[GROWTH], &done->growth) && take_count(&meta[SKIPPED], &done->skipped) &&
           done->skipped <= done->steps;
}

int weir_checkpoint_read(const char *path, struct weir_policy *policy, struct weir_err *err)
{
    struct weir_policy_array *arrays;
    struct weir_safetensor *tensors;
    struct weir_safetensors_meta meta[META];
    struct weir_policy_progress done;
    int n, rc = tensors_of(policy, &arrays, &tensors, &n, err);
    if (rc < 0)
        return rc;
    begin_meta(meta);
    rc = weir_safetensors_read(path, tensors, n, meta, META, err);
    if (rc == 0 && !take_done(meta, &done))
        rc = weir_err_set(err, -EINVAL, "%s: its metadata contains no valid optimiser state; the file may be damaged",
                          path);
    if (rc == 0) {
        weir_policy_set_arrays(policy);
        weir_policy_set_progress(policy, &done);
    }
    free(tensors);
    free(arrays);
    return rc;
}
