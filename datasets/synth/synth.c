#include "datasets/synth/synth.h"
#include "base/resources.h"
#include "datasets/synth/synth_priv.h"

#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

enum { SIZE_MIN = 16, SIZE_MAX_PIXELS = 8192, COUNT_MAX = 1000000 };

void weir_synth_config_default(struct weir_synth_config *config)
{
    *config = (struct weir_synth_config){
        .format = "act-jpeg", .episodes = 10, .steps = 50, .width = 640, .height = 480, .quality = 95};
}

const char *weir_synth_format_name(int index)
{
    const struct weir_synth_format *format = weir_synth_format_at(index);
    return format ? format->name : NULL;
}

const char *weir_synth_format_cameras(int index)
{
    const struct weir_synth_format *format = weir_synth_format_at(index);
    return format ? format->cameras : NULL;
}

/* ---- checking the configuration ---- */

static const struct weir_synth_format *find_format(const char *name, struct weir_err *err)
{
    const struct weir_synth_format *format;
    for (int i = 0; name && (format = weir_synth_format_at(i)); i++)
        if (strcmp(format->name, name) == 0)
            return format;
    weir_err_set(err, -EINVAL, "unknown format '%s'; the formats are %s", name ? name : "", weir_synth_format_names);
    return NULL;
}

static int check_numbers(const struct weir_synth_config *config, struct weir_err *err)
{
    const struct {
        const char *what;
        int value, min, max;
    } numbers[] = {
        {"episodes", config->episodes, 1, COUNT_MAX},
        {"steps", config->steps, 1, COUNT_MAX},
        {"width", config->width, SIZE_MIN, SIZE_MAX_PIXELS},
        {"height", config->height, SIZE_MIN, SIZE_MAX_PIXELS},
        {"quality", config->quality, 1, 100},
        {"threads", config->threads, 0, 1024},
    };
    for (size_t i = 0; i < sizeof numbers / sizeof numbers[0]; i++)
        if (numbers[i].value < numbers[i].min || numbers[i].value > numbers[i].max)
            return weir_err_set(err, -EINVAL, "%s is %d; it must be from %d to %d", numbers[i].what, numbers[i].value,
                                numbers[i].min, numbers[i].max);
    return 0;
}

/* Removes the prefix and suffix that the format adds to names. */
static void strip_name(const struct weir_synth_format *format, const char **name, size_t *length)
{
    size_t prefix = format->prefix ? strlen(format->prefix) : 0, suffix = format->suffix ? strlen(format->suffix) : 0;
    if (prefix > 0 && *length > prefix && strncmp(*name, format->prefix, prefix) == 0) {
        *name += prefix;
        *length -= prefix;
    }
    if (suffix > 0 && *length > suffix && strncmp(*name + *length - suffix, format->suffix, suffix) == 0)
        *length -= suffix;
}

static int add_camera(struct weir_synth_job *job, const char *name, size_t length, struct weir_err *err)
{
    strip_name(job->format, &name, &length);
    /* The name of the camera's dataset, which ends with the suffix, has the same length limit. */
    size_t most = WEIR_SYNTH_NAME - 1 - (job->format->suffix ? strlen(job->format->suffix) : 0);
    if (length == 0 || length > most)
        return weir_err_set(err, -EINVAL, "a camera's name must have 1 to %zu characters, not %zu", most, length);
    for (size_t i = 0; i < length; i++)
        if (!isascii(name[i]) || !(isalnum(name[i]) || name[i] == '_' || name[i] == '-'))
            return weir_err_set(err, -EINVAL, "camera '%.*s': names consist of letters, digits, _ and -", (int)length,
                                name);
    if (job->n_cameras == WEIR_SYNTH_CAMERAS)
        return weir_err_set(err, -EINVAL, "more than %d cameras", WEIR_SYNTH_CAMERAS);
    char *copy = job->camera[job->n_cameras];
    memcpy(copy, name, length);
    copy[length] = '\0';
    for (int i = 0; i < job->n_cameras; i++)
        if (strcmp(job->camera[i], copy) == 0)
            return weir_err_set(err, -EINVAL, "camera '%s' is named twice", copy);
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

static int check_empty(const char *path, struct weir_err *err)
{
    DIR *folder = opendir(path);
    if (!folder)
        return weir_err_set(err, -errno, "%s: %s; choose a new or empty folder", path, strerror(errno));
    int rc = 0;
    for (struct dirent *entry; rc == 0 && (entry = readdir(folder));)
        if (strcmp(entry->d_name, ".") != 0 && strcmp(entry->d_name, "..") != 0)
            rc = weir_err_set(err, -ENOTEMPTY, "%s: is not empty (it contains %s); choose a new or empty folder", path,
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
        return weir_err_set(err, rc, "cannot create the scene: %s", strerror(-rc));
    struct weir_synth_frames_config frames = {.scene = job->scene,
                                              .episodes = config->episodes,
                                              .cameras = job->n_cameras,
                                              .steps = config->steps,
                                              .width = config->width,
                                              .height = config->height,
                                              .jpeg = job->format->jpeg,
                                              .quality = config->quality,
                                              .comment = job->format->comment,
                                              .depth = job->format->depth,
                                              .threads = config->threads ? config->threads : weir_cores_usable()};
    return weir_synth_frames_open(&job->frames, &frames, err);
}

static int commit(struct weir_synth_job *job, struct weir_err *err)
{
    uint64_t bytes = 0;
    int rc = weir_h5w_commit(&job->file, &bytes, err);
    job->stats.bytes += bytes;
    return rc;
}

static int write_episode(struct weir_synth_job *job, int episode, struct weir_err *err)
{
    job->episode = episode;
    int rc = job->file ? 0 : weir_synth_create(job, err);
    if (rc == 0)
        rc = weir_synth_episode(job, err);
    if (rc == 0 && (job->format->file_end || episode == job->config->episodes - 1))
        rc = commit(job, err);
    if (rc < 0)
        return rc;
    job->stats.episodes++;
    weir_synth_report(job);
    return 0;
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
        rc = config->out ? weir_synth_make_folders(config->out, err)
                         : weir_err_set(err, -EINVAL, "no output folder specified");
    if (rc == 0)
        rc = check_empty(config->out, err);
    if (rc == 0)
        rc = open_scene(&job, err);
    for (int episode = 0; episode < config->episodes && rc == 0; episode++)
        rc = write_episode(&job, episode, err);
    weir_h5w_abandon(&job.file);
    weir_synth_frames_close(&job.frames);
    weir_scene_close(&job.scene);
    if (config->stats)
        *config->stats = job.stats;
    return rc;
}
