#include "convert/convert_dataset.h"
#include "convert/durable.h"
#include "convert/writer_ops.h"
#include "decoders/decoder.h"
#include "decoders/frame_end.h"
#include "pipeline/fetch.h"
#include "pipeline/probe.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

struct conversion {
    struct weir_dataset *dataset;
    const struct weir_convert_config *config;
    struct weir_convert_report *report;
    const struct weir_writer_ops *ops;
    struct weir_copy copy;
    struct weir_camera_probe probes[WEIR_CAMERAS_MAX];
    char *partial;
    struct weir_file_set *files;
    struct weir_fetcher fetcher;
    void *writer;
};

bool weir_convert_format(int i, const char **name, const char **summary, const char **why_not)
{
    const struct weir_writer_ops *ops = weir_writer_at(i);
    if (!ops)
        return false;
    *name = ops->name;
    *summary = ops->summary;
    *why_not = ops->why_not;
    return true;
}

static const struct weir_writer_ops *writer_named(const char *name)
{
    for (int i = 0; weir_writer_at(i); i++)
        if (strcmp(weir_writer_at(i)->name, name) == 0)
            return weir_writer_at(i);
    return NULL;
}

static bool holds(const struct weir_writer_ops *ops, const char *codec)
{
    for (int i = 0; ops->codecs[i]; i++)
        if (strcmp(ops->codecs[i], codec) == 0)
            return true;
    return false;
}

static int plan_camera(struct conversion *c, int camera, struct weir_err *err)
{
    const struct weir_camera *from = weir_dataset_camera(c->dataset, camera);
    struct weir_copy_camera *to = &c->copy.cameras[camera];
    int rc = weir_probe_camera(c->dataset, camera, &c->probes[camera], err);
    if (rc < 0)
        return rc;
    snprintf(to->name, sizeof to->name, "%s", from->name);
    to->codec = from->codec;
    to->width = c->probes[camera].width;
    to->height = c->probes[camera].height;
    to->is_png = strcmp(from->codec, "jpeg") == 0 && c->probes[camera].image.format &&
                 strcmp(c->probes[camera].image.format, "png") == 0;
    if (!holds(c->ops, to->codec))
        return weir_err_set(err, -EINVAL, "camera %s: %s cannot hold %s frames as they are", to->name, c->ops->name,
                            to->codec);
    return 0;
}

static int plan(struct conversion *c, struct weir_err *err)
{
    int n = weir_dataset_episodes(c->dataset), sample = c->config->sample;
    c->copy = (struct weir_copy){.n_episodes = sample > 0 && sample < n ? sample : n,
                                 .n_cameras = weir_dataset_cameras(c->dataset),
                                 .qpos_dim = weir_dataset_qpos_dim(c->dataset),
                                 .action_dim = weir_dataset_action_dim(c->dataset),
                                 .chunk_frames = c->config->chunk_frames};
    int rc = 0;
    for (int i = 0; i < c->copy.n_cameras && rc == 0; i++)
        rc = plan_camera(c, i, err);
    return rc;
}

static int copy_frame(struct conversion *c, int episode, int camera, int t, struct weir_err *err)
{
    const uint8_t *bytes;
    size_t length;
    int rc = weir_fetch_frame(&c->fetcher, episode, camera, t, NULL, 0, &bytes, &length);
    if (rc < 0)
        return weir_err_set(err, rc, "%s: %s", weir_dataset_episode_path(c->dataset, episode), c->fetcher.reason);
    size_t end = strncmp(c->copy.cameras[camera].codec, "raw", 3) == 0 ? 0 : weir_frame_end(bytes, length);
    length = end ? end : length;
    c->report->frames++;
    c->report->frame_bytes += length;
    return c->ops->frame(c->writer, camera, t, bytes, length, err);
}

static int copy_episode(struct conversion *c, int episode, struct weir_err *err)
{
    struct weir_copy_episode of = {.number = episode,
                                   .name = weir_dataset_episode_path(c->dataset, episode),
                                   .steps = weir_dataset_steps(c->dataset, episode),
                                   .qpos = weir_dataset_qpos(c->dataset, episode),
                                   .actions = weir_dataset_actions(c->dataset, episode)};
    int rc = c->ops->begin(c->writer, &of, err), n = of.steps * c->copy.n_cameras;
    for (int i = 0; i < n && rc == 0; i++) {
        int camera = c->ops->by_step ? i % c->copy.n_cameras : i / of.steps;
        rc = copy_frame(c, episode, camera, c->ops->by_step ? i / c->copy.n_cameras : i % of.steps, err);
    }
    return rc < 0 ? rc : c->ops->end(c->writer, err);
}

static int write_all(struct conversion *c, struct weir_err *err)
{
    int complete = 0;
    int rc = c->ops->open(&c->writer, &c->copy, c->partial, &complete, err);
    for (int e = complete; e < c->copy.n_episodes && rc == 0; e++)
        rc = copy_episode(c, e, err);
    if (rc < 0) {
        c->ops->abandon(&c->writer);
        return rc;
    }
    c->report->episodes = c->copy.n_episodes;
    rc = c->ops->finish(&c->writer, err);
    return rc < 0 ? rc : weir_durable_rename(c->partial, c->config->target, err);
}

int weir_convert(struct weir_dataset *dataset, const struct weir_convert_config *config,
                 struct weir_convert_report *report, struct weir_err *err)
{
    struct conversion c = {.dataset = dataset, .config = config, .report = report, .ops = writer_named(config->to)};
    *report = (struct weir_convert_report){0};
    if (!c.ops || c.ops->why_not)
        return weir_err_set(err, -EINVAL, "%s: %s", config->to, c.ops ? c.ops->why_not : "no such format");
    if (access(config->target, F_OK) == 0)
        return weir_err_set(err, -EEXIST, "%s: exists; remove it or give the copy another name", config->target);
    if (config->codec != WEIR_CONVERT_KEEP)
        return weir_err_set(err, -ENOTSUP, "--codec keep only");
    int rc = asprintf(&c.partial, "%s.partial", config->target) < 0 ? weir_err_set(err, -ENOMEM, "out of memory") : 0;
    if (rc == 0)
        rc = plan(&c, err);
    if (rc == 0 && weir_fetch_files(dataset, &c.files) < 0)
        rc = weir_err_set(err, -ENOMEM, "out of memory");
    if (rc == 0)
        rc = weir_fetcher_open(&c.fetcher, dataset, c.files, weir_io_default(), err);
    if (rc == 0)
        rc = write_all(&c, err);
    weir_fetcher_close(&c.fetcher);
    weir_file_set_close(&c.files);
    free(c.partial);
    return rc;
}
