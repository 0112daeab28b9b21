/* What the formats share. */
#include "datasets/synth/synth_layouts_priv.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

/* ---- files, folders, groups ---- */

int weir_synth_make_folders(const char *path, struct weir_err *err)
{
    char part[4096];
    size_t length = strlen(path);
    /* Room for the names below it. */
    if (length == 0 || length > sizeof part - 256)
        return weir_err_set(err, length ? -ENAMETOOLONG : -EINVAL, "%s: %s", length ? path : "output folder",
                            length ? "path is too long" : "no name given");
    for (size_t i = 1; i <= length; i++) {
        if (path[i] != '/' && path[i] != '\0')
            continue;
        memcpy(part, path, i);
        part[i] = '\0';
        if (mkdir(part, 0777) < 0 && errno != EEXIST)
            return weir_err_set(err, -errno, "%s: folder cannot be made: %s", part, strerror(errno));
    }
    return 0;
}

int weir_synth_create_file(struct weir_synth_job *job, const char *name, struct weir_err *err)
{
    char path[4096];
    const char *slash = strrchr(name, '/');
    int folder = slash ? (int)(slash - name) : 0;
    snprintf(path, sizeof path, "%s/%.*s", job->config->out, folder, name);
    int rc = folder ? weir_synth_make_folders(path, err) : 0;
    snprintf(path, sizeof path, "%s/%s", job->config->out, name);
    return rc < 0 ? rc : weir_h5w_create(&job->file, path, err);
}

int weir_synth_groups(struct weir_synth_job *job, const char *parent, const char *const *names, struct weir_err *err)
{
    int rc = 0;
    for (; *names && rc == 0; names++) {
        char name[WEIR_SYNTH_PATH];
        snprintf(name, sizeof name, "%s%s", parent, *names);
        rc = weir_h5w_group(job->file, name, err);
    }
    return rc;
}

/* ---- frames ---- */

int weir_synth_next_frame(struct weir_synth_job *job, const struct weir_frame **frame, struct weir_err *err)
{
    int rc = weir_frames_next(job->frames, frame);
    if (rc < 0)
        return weir_err_set(err, rc, "a frame cannot be made: %s", strerror(-rc));
    job->stats.frames++;
    if (job->format->jpeg) {
        job->stats.jpeg_frames++;
        job->stats.jpeg_bytes += (*frame)->image.size;
    }
    return 0;
}

void weir_synth_report(struct weir_synth_job *job)
{
    const struct weir_synth_config *config = job->config;
    if (config->stats)
        *config->stats = job->stats;
    if (config->progress)
        config->progress(config->user, job->stats.episodes, config->episodes);
}

/* The sets are ids; depth_set -1: there is no depth. */
static int take_camera(struct weir_synth_job *job, int image_set, int depth_set, struct weir_err *err)
{
    int rc = 0;
    for (uint64_t t = 0; t < (uint64_t)job->config->steps && rc == 0; t++) {
        const struct weir_frame *frame;
        rc = weir_synth_next_frame(job, &frame, err);
        if (rc == 0)
            rc = weir_h5w_frame(job->file, image_set, t, frame->image.data, frame->image.size, err);
        if (rc == 0 && depth_set >= 0)
            rc = weir_h5w_frame(job->file, depth_set, t, frame->depth.data, frame->depth.size, err);
        if (rc == 0)
            weir_synth_report(job);
    }
    return rc;
}

int weir_synth_raw_camera(struct weir_synth_job *job, const char *image, const char *depth,
                          enum weir_h5w_storage storage, struct weir_err *err)
{
    const struct weir_synth_config *config = job->config;
    uint64_t steps = (uint64_t)config->steps, height = (uint64_t)config->height, width = (uint64_t)config->width;
    const struct weir_h5w_shape pixels = {4, {steps, height, width, 3}}, values = {3, {steps, height, width}};
    int depth_set = -1, image_set = weir_h5w_frames(job->file, image, WEIR_U8, &pixels, storage, err);
    if (image_set < 0)
        return image_set;
    if (depth)
        depth_set = weir_h5w_frames(job->file, depth, WEIR_U16, &values, storage, err);
    return depth && depth_set < 0 ? depth_set : take_camera(job, image_set, depth_set, err);
}

int weir_synth_vlen_camera(struct weir_synth_job *job, const char *image, const char *depth, struct weir_err *err)
{
    uint64_t steps = (uint64_t)job->config->steps;
    int depth_set = -1, image_set = weir_h5w_vlen_frames(job->file, image, steps, err);
    if (image_set < 0)
        return image_set;
    if (depth)
        depth_set = weir_h5w_vlen_frames(job->file, depth, steps, err);
    return depth && depth_set < 0 ? depth_set : take_camera(job, image_set, depth_set, err);
}
