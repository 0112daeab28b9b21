#include "datasets/synth.h"

#include "datasets/synth_layouts_priv.h"
#include "prof/cores.h"

#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

static const struct weir_synth_format formats[] = {
    {.name = "act", .cameras = "top,wrist", .prefix = "", .rate_hz = 50, .write = weir_synth_act},
    {.name = "act-jpeg",
     .cameras = "top,wrist",
     .prefix = "",
     .rate_hz = 50,
     .jpeg = true,
     .write = weir_synth_act_jpeg},
    {.name = "astrobench",
     .cameras = "main,left,right,under",
     .prefix = "rgb_",
     .rate_hz = 10,
     .jpeg = true,
     .depth = true,
     .write = weir_synth_astrobench},
};
enum { N_FORMATS = sizeof formats / sizeof formats[0], SIZE_MIN = 16, SIZE_MAX_PIXELS = 8192, COUNT_MAX = 1000000 };

void weir_synth_config_default(struct weir_synth_config *config)
{
    *config = (struct weir_synth_config){
        .format = "act-jpeg", .episodes = 10, .steps = 50, .width = 640, .height = 480, .quality = 95};
}

const char *weir_synth_format_name(int index)
{
    return index >= 0 && index < N_FORMATS ? formats[index].name : NULL;
}

const char *weir_synth_format_cameras(int index)
{
    return index >= 0 && index < N_FORMATS ? formats[index].cameras : NULL;
}

/* ---- checking the configuration ---- */

static const struct weir_synth_format *find_format(const char *name, struct weir_err *err)
{
    for (int i = 0; name && i < N_FORMATS; i++)
        if (strcmp(formats[i].name, name) == 0)
            return &formats[i];
    weir_err_set(err, -EINVAL, "unknown format '%s'; there are act, act-jpeg, astrobench", name ? name : "");
    return NULL;
}

static int in_range(const char *what, int value, int least, int most, struct weir_err *err)
{
    if (value >= least && value <= most)
        return 0;
    return weir_err_set(err, -EINVAL, "%s is %d; it must be %d to %d", what, value, least, most);
}

static int check_numbers(const struct weir_synth_config *config, struct weir_err *err)
{
    int rc = in_range("episodes", config->episodes, 1, COUNT_MAX, err);
    if (rc == 0)
        rc = in_range("steps", config->steps, 1, COUNT_MAX, err);
    if (rc == 0)
        rc = in_range("width", config->width, SIZE_MIN, SIZE_MAX_PIXELS, err);
    if (rc == 0)
        rc = in_range("height", config->height, SIZE_MIN, SIZE_MAX_PIXELS, err);
    if (rc == 0)
        rc = in_range("quality", config->quality, 1, 100, err);
    return rc < 0 ? rc : in_range("threads", config->threads, 0, 1024, err);
}

static int add_camera(struct weir_synth_job *job, const char *name, size_t length, struct weir_err *err)
{
    size_t prefix = strlen(job->format->prefix);
    if (length > prefix && strncmp(name, job->format->prefix, prefix) == 0) {
        name += prefix;
        length -= prefix;
    }
    if (length == 0 || length >= WEIR_SYNTH_NAME)
        return weir_err_set(err, -EINVAL, "a camera's name must have 1 to %d characters, not %zu", WEIR_SYNTH_NAME - 1,
                            length);
    for (size_t i = 0; i < length; i++)
        if (!isascii(name[i]) || !(isalnum(name[i]) || name[i] == '_' || name[i] == '-'))
            return weir_err_set(err, -EINVAL, "camera '%.*s': names are made of letters, digits, _ and -", (int)length,
                                name);
    if (job->n_cameras == WEIR_SYNTH_CAMERAS)
        return weir_err_set(err, -EINVAL, "more than %d cameras", WEIR_SYNTH_CAMERAS);
    char *own = job->camera[job->n_cameras];
    memcpy(own, name, length);
    own[length] = '\0';
    for (int i = 0; i < job->n_cameras; i++)
        if (strcmp(job->camera[i], own) == 0)
            return weir_err_set(err, -EINVAL, "camera '%s' is named twice", own);
    job->n_cameras++;
    return 0;
}

static int parse_cameras(struct weir_synth_job *job, struct weir_err *err)
{
    const char *names = job->config->cameras ? job->config->cameras : job->format->cameras;
    for (;;) {
        size_t length = strcspn(names, ",");
        int rc = add_camera(job, names, length, err);
        if (rc < 0 || !names[length])
            return rc;
        names += length + 1;
    }
}

/* ---- the folder ---- */

static int make_folders(const char *path, struct weir_err *err)
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

static int check_empty(const char *path, struct weir_err *err)
{
    DIR *folder = opendir(path);
    if (!folder)
        return weir_err_set(err, -errno, "%s: %s; give a new or empty folder", path, strerror(errno));
    int rc = 0;
    for (struct dirent *entry; rc == 0 && (entry = readdir(folder));)
        if (strcmp(entry->d_name, ".") != 0 && strcmp(entry->d_name, "..") != 0)
            rc = weir_err_set(err, -ENOTEMPTY, "%s: is not empty (it has %s); give a new or empty folder", path,
                              entry->d_name);
    closedir(folder);
    return rc;
}

/* ---- writing ---- */

static int open_scene(struct weir_synth_job *job, struct weir_err *err)
{
    const struct weir_synth_config *config = job->config;
    const char *names[WEIR_SYNTH_CAMERAS];
    for (int i = 0; i < job->n_cameras; i++)
        names[i] = job->camera[i];
    struct weir_scene_config scene = {.seed = config->seed,
                                      .steps = config->steps,
                                      .rate_hz = job->format->rate_hz,
                                      .width = config->width,
                                      .height = config->height,
                                      .camera = names,
                                      .n_cameras = job->n_cameras};
    int rc = weir_scene_open(&job->scene, &scene);
    if (rc < 0)
        return weir_err_set(err, rc, "scene cannot be made: %s", strerror(-rc));
    struct weir_frames_config frames = {.scene = job->scene,
                                        .episodes = config->episodes,
                                        .cameras = job->n_cameras,
                                        .steps = config->steps,
                                        .width = config->width,
                                        .height = config->height,
                                        .jpeg = job->format->jpeg,
                                        .quality = config->quality,
                                        .depth = job->format->depth,
                                        .threads = config->threads ? config->threads : weir_cores_usable()};
    return weir_frames_open(&job->frames, &frames, err);
}

int weir_synth_write(const struct weir_synth_config *config, struct weir_err *err)
{
    struct weir_synth_job job = {.config = config, .format = find_format(config->format, err)};
    if (!job.format)
        return -EINVAL;
    int rc = check_numbers(config, err);
    if (rc == 0)
        rc = parse_cameras(&job, err);
    if (rc == 0)
        rc = config->out ? make_folders(config->out, err) : weir_err_set(err, -EINVAL, "no output folder given");
    if (rc == 0)
        rc = check_empty(config->out, err);
    if (rc == 0)
        rc = open_scene(&job, err);
    for (int episode = 0; episode < config->episodes && rc == 0; episode++)
        rc = job.format->write(&job, episode, err);
    weir_frames_close(&job.frames);
    weir_scene_close(&job.scene);
    if (config->stats)
        *config->stats = job.stats;
    return rc;
}
