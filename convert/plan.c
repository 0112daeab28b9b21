#include "convert/plan.h"
#include "base/shortage.h"
#include "datasets/open_dataset.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const struct weir_writer_ops *writer_named(const char *name)
{
    for (int i = 0; weir_writer_at(i); i++)
        if (strcmp(weir_writer_at(i)->name, name) == 0)
            return weir_writer_at(i);
    return NULL;
}

static int choose_writer(struct weir_convert_plan *plan, struct weir_err *err)
{
    const char *to = plan->config->to;
    char names[256] = "";
    plan->ops = writer_named(to);
    if (plan->ops && plan->ops->why_not)
        return weir_err_set(err, -ENOTSUP, "%s: %s", to, plan->ops->why_not);
    if (plan->ops)
        return 0;
    for (int i = 0; weir_writer_at(i); i++)
        snprintf(names + strlen(names), sizeof names - strlen(names), "%s%s", i ? ", " : "", weir_writer_at(i)->name);
    return weir_err_set(err, -EINVAL, "--to %s: unknown format; choose one of %s", to, names);
}

static int check_name(const struct weir_convert_plan *plan, struct weir_err *err)
{
    const char *target = plan->config->target, *suffix = plan->ops->suffix;
    size_t n = strlen(target), ends = strlen(suffix);
    if (n == 0)
        return weir_err_set(err, -EINVAL, "the path of the copy is empty; specify a path");
    if (ends == 0 || (n > ends && strcmp(target + n - ends, suffix) == 0))
        return 0;
    return weir_err_set(err, -EINVAL, "%s: the name of a copy in format %s must end with %s; use %s%s", target,
                        plan->ops->name, suffix, target, suffix);
}

/* ---- cameras ---- */

/* Returns the depth kind for --codec jpeg, which cannot encode depth: the source's kind if the format can store it,
 * otherwise a lossless kind. */
static enum weir_frame_kind depth_beside_jpeg(const struct weir_convert_plan *plan, enum weir_frame_kind kind)
{
    if (weir_writer_holds(plan->ops, kind))
        return kind;
    return weir_writer_holds(plan->ops, WEIR_FRAME_PNG16) ? WEIR_FRAME_PNG16 : WEIR_FRAME_RAW16;
}

/* Returns the frame kind in the copy for a frame kind in the source. */
static enum weir_frame_kind kind_of_copy(const struct weir_convert_plan *plan, enum weir_frame_kind kind)
{
    bool depth = weir_frame_is_depth(kind);
    switch (plan->config->codec) {
    case WEIR_CONVERT_RAW:
        return depth ? WEIR_FRAME_RAW16 : WEIR_FRAME_RAW;
    case WEIR_CONVERT_JPEG:
        return depth ? depth_beside_jpeg(plan, kind) : WEIR_FRAME_JPEG;
    case WEIR_CONVERT_PNG:
        return depth ? WEIR_FRAME_PNG16 : WEIR_FRAME_PNG;
    default:
        return kind;
    }
}

static enum weir_make make_of(const struct weir_convert_plan *plan, int camera, enum weir_frame_kind from)
{
    enum weir_frame_kind to = plan->copy.cameras[camera].kind;
    bool keeps = plan->config->codec == WEIR_CONVERT_KEEP || (plan->is_depth[camera] && from == to);
    if (keeps && !plan->is_resized[camera])
        return WEIR_MAKE_COPY;
    if (!weir_frame_is_encoded(to))
        return WEIR_MAKE_PIXELS;
    return plan->config->codec == WEIR_CONVERT_JPEG && !plan->is_depth[camera] ? WEIR_MAKE_JPEG : WEIR_MAKE_PNG;
}

/* Video is decoded only if the user says what becomes of its pictures. */
static int cannot_hold_video(const struct weir_convert_plan *plan, const struct weir_copy_camera *camera,
                             struct weir_err *err)
{
    bool raw = weir_writer_holds(plan->ops, WEIR_FRAME_RAW), jpeg = weir_writer_holds(plan->ops, WEIR_FRAME_JPEG);
    return weir_err_set(err, -EINVAL, "camera %s is video, which %s cannot store; choose %s%s%s", camera->name,
                        plan->ops->name, raw ? "--frames raw (every pixel as it is decoded)" : "",
                        raw && jpeg ? " or " : "", jpeg ? "--frames jpeg:95 (smaller; the loss is measured)" : "");
}

static int cannot_hold(const struct weir_convert_plan *plan, const struct weir_copy_camera *camera,
                       struct weir_err *err)
{
    if (weir_frame_is_video(camera->kind))
        return cannot_hold_video(plan, camera, err);
    char kinds[128], choices[64] = "";
    weir_frame_kind_list(plan->ops->holds, ", ", kinds, sizeof kinds);
    if (weir_writer_holds(plan->ops, WEIR_FRAME_RAW))
        snprintf(choices, sizeof choices, "raw");
    if (weir_writer_holds(plan->ops, WEIR_FRAME_JPEG))
        snprintf(choices + strlen(choices), sizeof choices - strlen(choices), "%sjpeg|png", choices[0] ? "|" : "");
    return weir_err_set(err, -EINVAL,
                        "camera %s would have %s frames, but %s can store only %s; choose a codec with --codec %s",
                        camera->name, weir_frame_kind_name(camera->kind), plan->ops->name, kinds, choices);
}

/* Requires the same kind in all episodes if frames are copied unchanged: a dataset can mix raw and encoded episodes,
 * but a copy cannot. */
static int check_kinds(const struct weir_convert_plan *plan, int camera, struct weir_err *err)
{
    enum weir_frame_kind kind = weir_dataset_kind(plan->dataset, plan->episodes[0], camera);
    for (int e = 1; e < plan->copy.n_episodes && plan->makes[camera] == WEIR_MAKE_COPY; e++) {
        enum weir_frame_kind other = weir_dataset_kind(plan->dataset, plan->episodes[e], camera);
        if (other != kind)
            return weir_err_set(err, -EINVAL,
                                "camera %s has %s frames in %s but %s frames in %s; choose one codec with --codec "
                                "raw|jpeg|png",
                                plan->copy.cameras[camera].name, weir_frame_kind_name(kind),
                                weir_dataset_episode_path(plan->dataset, plan->episodes[0]),
                                weir_frame_kind_name(other),
                                weir_dataset_episode_path(plan->dataset, plan->episodes[e]));
    }
    return 0;
}

static int plan_camera(struct weir_convert_plan *plan, int camera, struct weir_err *err)
{
    const struct weir_convert_config *config = plan->config;
    enum weir_frame_kind kind = weir_dataset_kind(plan->dataset, plan->episodes[0], camera);
    struct weir_camera_probe *probe = &plan->probes[camera];
    struct weir_copy_camera *to = &plan->copy.cameras[camera];
    int rc = weir_probe_camera(plan->dataset, camera, probe, err);
    if (rc < 0)
        return rc;
    snprintf(to->name, sizeof to->name, "%s", weir_dataset_camera(plan->dataset, camera)->name);
    if (probe->width == 0)
        return weir_err_set(err, -EBADMSG,
                            "camera %s: none of its frames can be read; `weir verify` lists them, and "
                            "--cameras can leave the camera out",
                            to->name);
    plan->is_depth[camera] = weir_frame_is_depth(probe->kind);
    plan->is_resized[camera] = config->width > 0 && (config->width != probe->width || config->height != probe->height);
    if (plan->is_resized[camera] && config->codec == WEIR_CONVERT_KEEP && weir_frame_is_encoded(kind))
        return weir_err_set(
            err, -EINVAL,
            "--image-size changes the encoded frames of camera %s; choose a codec for the new frames with "
            "--codec raw|jpeg|png",
            to->name);
    to->kind = kind_of_copy(plan, kind);
    to->width = config->width > 0 ? config->width : probe->width;
    to->height = config->width > 0 ? config->height : probe->height;
    plan->makes[camera] = make_of(plan, camera, kind);
    if (to->kind == WEIR_FRAME_IMAGE && plan->makes[camera] == WEIR_MAKE_COPY && probe->image.kind == WEIR_FRAME_PNG)
        to->kind = WEIR_FRAME_PNG;
    if (!weir_writer_holds(plan->ops, to->kind))
        return cannot_hold(plan, to, err);
    return check_kinds(plan, camera, err);
}

/* ---- numbers ---- */

static const void *own(const struct weir_convert_plan *plan, int episode, bool actions, enum weir_number_type *type)
{
    int of = plan->episodes[episode];
    return actions ? weir_own_actions(plan->dataset, of, type) : weir_own_qpos(plan->dataset, of, type);
}

/* Returns the smallest number type that the format can store and that represents every value of `type`. If there is
 * none, sets *narrows and returns a narrower type. */
static enum weir_number_type held_type(const struct weir_convert_plan *plan, enum weir_number_type type, bool *narrows)
{
    uint32_t held = plan->ops->number_types;
    int best = -1;
    for (int t = 0; t < WEIR_NUMBER_TYPES; t++) {
        enum weir_number_type other = (enum weir_number_type)t;
        bool fits = held >> t & 1 && weir_number_common(type, other) == other;
        /* float64 also results for pairs of types that no type represents */
        fits = fits && (other != WEIR_F64 || type == WEIR_F64 || type == WEIR_F32 || weir_number_bytes(type) < 8);
        if (fits && (best < 0 || weir_number_bytes(other) < weir_number_bytes((enum weir_number_type)best)))
            best = t;
    }
    *narrows = best < 0;
    if (best >= 0)
        return (enum weir_number_type)best;
    bool is_float = type == WEIR_F32 || type == WEIR_F64;
    if (!is_float && held >> WEIR_I64 & 1)
        return WEIR_I64;
    return held >> WEIR_F64 & 1 ? WEIR_F64 : WEIR_F32;
}

static int plan_numbers(struct weir_convert_plan *plan, bool actions, enum weir_number_type *type, struct weir_err *err)
{
    bool narrows;
    own(plan, 0, actions, type);
    for (int e = 1; e < plan->copy.n_episodes; e++) {
        enum weir_number_type other;
        own(plan, e, actions, &other);
        *type = weir_number_common(*type, other);
    }
    enum weir_number_type held = held_type(plan, *type, &narrows);
    if (narrows && !plan->config->allow_narrowing)
        return weir_err_set(
            err, -EINVAL,
            "%s of %s are %s, which %s cannot store; use --allow-narrowing to round them to %s, or --to hdf5 "
            "to keep them",
            actions ? "actions" : "states", plan->config->source, weir_number_name(*type), plan->ops->name,
            weir_number_name(held));
    *type = held;
    return 0;
}

int weir_plan_numbers(const struct weir_convert_plan *plan, int episode, bool actions, void **values,
                      struct weir_err *err)
{
    enum weir_number_type from, to = actions ? plan->copy.action_type : plan->copy.qpos_type;
    const void *read = own(plan, episode, actions, &from);
    size_t n = (size_t)weir_dataset_steps(plan->dataset, plan->episodes[episode]) *
               (size_t)(actions ? plan->copy.action_dim : plan->copy.qpos_dim);
    *values = malloc(n * weir_number_bytes(to));
    if (!*values)
        return weir_no_memory(err);
    bool same = from == to;
    if (same)
        memcpy(*values, read, n * weir_number_bytes(to));
    else
        same = weir_numbers_convert(from, read, n, to, *values);
    if (same || plan->config->allow_narrowing)
        return 0;
    free(*values);
    *values = NULL;
    return weir_err_set(err, -EINVAL,
                        "%s: %s are %s and would become %s, which cannot represent all values; use "
                        "--allow-narrowing to round them",
                        weir_dataset_episode_path(plan->dataset, plan->episodes[episode]),
                        actions ? "actions" : "states", weir_number_name(from), weir_number_name(to));
}

/* ---- the plan ---- */

static int plan_episodes(struct weir_convert_plan *plan, struct weir_err *err)
{
    int n = weir_dataset_episodes(plan->dataset), sample = plan->config->sample;
    plan->copy.n_episodes = sample > 0 && sample < n ? sample : n;
    plan->episodes = malloc((size_t)plan->copy.n_episodes * sizeof *plan->episodes);
    if (!plan->episodes)
        return weir_no_memory(err);
    for (int e = 0; e < plan->copy.n_episodes; e++)
        plan->episodes[e] = e;
    return 0;
}

int weir_plan_open(struct weir_convert_plan *plan, struct weir_dataset *dataset,
                   const struct weir_convert_config *config, struct weir_err *err)
{
    *plan = (struct weir_convert_plan){.dataset = dataset, .config = config};
    struct weir_copy *copy = &plan->copy;
    copy->n_cameras = weir_dataset_cameras(dataset);
    copy->qpos_dim = weir_dataset_qpos_dim(dataset);
    copy->action_dim = weir_dataset_action_dim(dataset);
    copy->chunk_frames = config->chunk_frames;
    bool is_bgr =
        config->color == WEIR_CONVERT_AS_RECORDED ? weir_dataset_is_bgr(dataset) : config->color == WEIR_CONVERT_BGR;
    copy->is_bgr = is_bgr && config->codec == WEIR_CONVERT_KEEP;
    plan->swaps = is_bgr && !copy->is_bgr;
    int rc = choose_writer(plan, err);
    if (rc == 0)
        rc = check_name(plan, err);
    if (rc == 0)
        rc = plan_episodes(plan, err);
    for (int c = 0; c < copy->n_cameras && rc == 0; c++)
        rc = plan_camera(plan, c, err);
    if (rc == 0)
        rc = plan_numbers(plan, false, &copy->qpos_type, err);
    if (rc == 0)
        rc = plan_numbers(plan, true, &copy->action_type, err);
    if (rc < 0)
        weir_plan_close(plan);
    return rc;
}

void weir_plan_close(struct weir_convert_plan *plan)
{
    free(plan->episodes);
    plan->episodes = NULL;
}

uint64_t weir_plan_frames(const struct weir_convert_plan *plan)
{
    uint64_t steps = 0;
    for (int e = 0; e < plan->copy.n_episodes; e++)
        steps += (uint64_t)weir_dataset_steps(plan->dataset, plan->episodes[e]);
    return steps * (uint64_t)plan->copy.n_cameras;
}

/* ---- size of the copy ---- */

/* Returns the total size of the camera's encoded frames in an episode, as far as the sizes are known without reading
 * the frames. */
static uint64_t known_bytes(const struct weir_convert_plan *plan, int episode, int camera)
{
    uint64_t bytes = 0;
    for (int t = 0; t < weir_dataset_steps(plan->dataset, episode); t++) {
        struct weir_location location;
        int how = weir_locate(plan->dataset, episode, camera, t, &location);
        if (how == WEIR_HOW_EXTENT && !location.end && !location.heap_slot)
            bytes += location.length;
    }
    return bytes;
}

uint64_t weir_plan_bytes(const struct weir_convert_plan *plan)
{
    uint64_t bytes = 0;
    for (int e = 0; e < plan->copy.n_episodes; e++) {
        int episode = plan->episodes[e];
        uint64_t steps = (uint64_t)weir_dataset_steps(plan->dataset, episode);
        for (int c = 0; c < plan->copy.n_cameras; c++) {
            const struct weir_copy_camera *camera = &plan->copy.cameras[c];
            uint64_t pixels = (uint64_t)camera->width * (uint64_t)camera->height;
            if (!weir_frame_is_encoded(camera->kind) && !plan->ops->compresses)
                bytes += steps * pixels * (plan->is_depth[c] ? 2 : 3);
            else if (plan->makes[c] == WEIR_MAKE_COPY && weir_frame_is_encoded(camera->kind))
                bytes += known_bytes(plan, episode, c);
        }
    }
    return bytes;
}
