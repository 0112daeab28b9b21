#include "cli/info_print.h"
#include "base/numbers.h"
#include "base/terminal.h"
#include "base/text.h"
#include "cli/sysinfo.h"
#include "datasets/video_frames.h"
#include "pipeline/samples/probe.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

/* Read amplification above which weir info prints a warning. It is fixed, so that all machines warn alike. */
static const double AMPLIFICATION_MAX = 4;

/* ---- facts ---- */

struct camera_facts {
    struct weir_camera_probe probe;
    uint64_t frames, by_library;
    uint64_t measured, bytes_min, bytes_max; /* number of frames with known size; their smallest and largest size */
    double bytes_mean;
    struct weir_frame_cost cost; /* total cost of reading every frame separately */
    double fetch_s;              /* measured seconds to load a frame; 0 if it is as fast as any other */
};

struct state_facts {
    int dim;
    double *mean, *std;
};

struct facts {
    const struct weir_dataset *dataset;
    int *lengths; /* sorted episode lengths */
    uint64_t steps, files_bytes;
    struct camera_facts cameras[WEIR_CAMERAS_MAX];
    struct state_facts qpos, actions;
    char unturned[512]; /* line of weir_probe_unturned; may be empty */
};

static void count_bytes(const struct weir_dataset *dataset, int camera, struct camera_facts *facts)
{
    double sum = 0;
    facts->cost = (struct weir_frame_cost){0};
    facts->frames = facts->measured = facts->bytes_max = 0;
    facts->bytes_min = UINT64_MAX;
    for (int e = 0; e < weir_dataset_episodes(dataset); e++)
        for (int t = 0; t < weir_dataset_steps(dataset, e); t++) {
            uint64_t bytes = weir_frame_stored_bytes(dataset, e, camera, t);
            struct weir_frame_cost cost;
            weir_frame_cost(dataset, e, camera, t, &cost);
            facts->cost.stored += cost.stored;
            facts->cost.read += cost.read;
            facts->cost.unpacked += cost.unpacked;
            facts->frames++;
            if (bytes == 0)
                continue;
            facts->measured++;
            sum += (double)bytes;
            facts->bytes_min = bytes < facts->bytes_min ? bytes : facts->bytes_min;
            facts->bytes_max = bytes > facts->bytes_max ? bytes : facts->bytes_max;
        }
    facts->bytes_mean = facts->measured ? sum / (double)facts->measured : 0;
}

/* Finds the sizes of the camera's frames. A frame in a padded row must be read to find its size, so if only some sizes
 * are known, this reads up to 64 frames. */
static int measure_bytes(struct weir_dataset *dataset, int camera, struct camera_facts *facts, struct weir_err *err)
{
    double fetch_s;
    count_bytes(dataset, camera, facts);
    if (facts->measured == 0 || facts->measured == facts->frames)
        return 0;
    int rc = weir_probe_fetch_s(dataset, camera, 64, &fetch_s, err);
    count_bytes(dataset, camera, facts);
    return rc;
}

static int state(const struct weir_dataset *dataset, bool actions, struct state_facts *facts)
{
    int n = weir_dataset_episodes(dataset);
    facts->dim = actions ? weir_dataset_action_dim(dataset) : weir_dataset_qpos_dim(dataset);
    facts->mean = malloc(sizeof *facts->mean * (size_t)facts->dim);
    facts->std = malloc(sizeof *facts->std * (size_t)facts->dim);
    int *all = malloc(sizeof *all * (size_t)n);
    int rc = facts->mean && facts->std && all ? 0 : -ENOMEM;
    for (int i = 0; i < n && rc == 0; i++)
        all[i] = i;
    if (rc == 0)
        rc = weir_dataset_stats(dataset, all, n, actions, facts->mean, facts->std);
    free(all);
    return rc;
}

/* Returns bytes / stored bytes, where bytes is the number of bytes read or inflated to load every frame separately. */
static double amplification(const struct weir_frame_cost *cost, uint64_t bytes)
{
    return cost->stored ? (double)bytes / (double)cost->stored : 1;
}

static bool is_amplified(const struct camera_facts *camera)
{
    return amplification(&camera->cost, camera->cost.unpacked) > AMPLIFICATION_MAX ||
           amplification(&camera->cost, camera->cost.read) > AMPLIFICATION_MAX;
}

static int gather(struct weir_dataset *dataset, bool tolerant, struct facts *facts, struct weir_err *err)
{
    int n = weir_dataset_episodes(dataset), cameras = weir_dataset_cameras(dataset);
    struct weir_camera_probe probes[WEIR_CAMERAS_MAX];
    facts->dataset = dataset;
    int rc = weir_probe_cameras(dataset, tolerant, -1, probes, err);
    if (rc < 0)
        return rc;
    weir_probe_unturned(dataset, probes, facts->unturned, sizeof facts->unturned);
    facts->lengths = malloc(sizeof *facts->lengths * (size_t)n);
    if (!facts->lengths || state(dataset, false, &facts->qpos) < 0 || state(dataset, true, &facts->actions) < 0)
        return weir_err_set(err, -ENOMEM, "out of memory");
    for (int i = 0; i < weir_dataset_files(dataset); i++) {
        struct weir_dataset_file file;
        weir_dataset_file(dataset, i, &file);
        facts->files_bytes += file.size_bytes;
    }
    for (int i = 0; i < n; i++) {
        facts->lengths[i] = weir_dataset_steps(dataset, i);
        facts->steps += (uint64_t)facts->lengths[i];
    }
    qsort(facts->lengths, (size_t)n, sizeof *facts->lengths, weir_compare_int);
    for (int c = 0; c < cameras; c++) {
        facts->cameras[c].probe = probes[c];
        struct weir_storage_kind kind;
        for (int k = 0; weir_dataset_storage(dataset, c, k, &kind); k++)
            facts->cameras[c].by_library += kind.library ? kind.frames : 0;
        rc = measure_bytes(dataset, c, &facts->cameras[c], err);
        struct weir_video_facts video;
        if (rc == 0 && (is_amplified(&facts->cameras[c]) || weir_dataset_video_facts(dataset, c, &video)))
            rc = weir_probe_fetch_s(dataset, c, 15, &facts->cameras[c].fetch_s, err);
        if (rc < 0)
            return rc;
    }
    return 0;
}

static void drop(struct facts *facts)
{
    free(facts->lengths);
    free(facts->qpos.mean);
    free(facts->qpos.std);
    free(facts->actions.mean);
    free(facts->actions.std);
}

static double median(const int *sorted, int n)
{
    return n % 2 ? sorted[n / 2] : (sorted[n / 2 - 1] + sorted[n / 2]) / 2.0;
}

/* Returns the next layout of the registry that occurs in the dataset, and its number of episodes. *at is the position
 * in the registry, which starts at 0. */
static const char *next_layout(const struct weir_dataset *dataset, int *at, int *count)
{
    const char *name, *summary, *why_not;
    while (weir_dataset_layout_row((*at)++, &name, &summary, &why_not)) {
        *count = 0;
        for (int i = 0; i < weir_dataset_episodes(dataset); i++)
            *count += strcmp(weir_dataset_layout(dataset, i), name) == 0;
        if (*count > 0)
            return name;
    }
    return NULL;
}

static uint64_t by_library(const struct facts *facts, uint64_t *frames)
{
    uint64_t library = 0;
    *frames = 0;
    for (int c = 0; c < weir_dataset_cameras(facts->dataset); c++) {
        library += facts->cameras[c].by_library;
        *frames += facts->cameras[c].frames;
    }
    return library;
}

/* ---- as text ---- */

/* Returns the name of the frame kind. For encoded colour images, this is the kind of the first readable frame. */
static const char *kind_name(const struct facts *facts, int c)
{
    const struct weir_camera_probe *probe = &facts->cameras[c].probe;
    return weir_frame_kind_name(weir_frame_is_depth(probe->kind) ? probe->kind : weir_probe_kind(probe));
}

static void print_bytes(FILE *out, const struct camera_facts *camera)
{
    if (camera->measured == 0) {
        fprintf(out, "  bytes/frame unknown  ");
        return;
    }
    fprintf(out, "  %.0f bytes/frame (%llu to %llu", camera->bytes_mean, (unsigned long long)camera->bytes_min,
            (unsigned long long)camera->bytes_max);
    if (camera->measured < camera->frames)
        fprintf(out, " in %llu frames read", (unsigned long long)camera->measured);
    fprintf(out, ")  ");
}

static void print_camera(FILE *out, const struct facts *facts, int c)
{
    const struct camera_facts *camera = &facts->cameras[c];
    const struct weir_image_info *image = &camera->probe.image;
    fprintf(out, "  %-20s %dx%d  ", weir_dataset_camera(facts->dataset, c)->name, camera->probe.width,
            camera->probe.height);
    fprintf(out, "%s", kind_name(facts, c));
    if (image->process)
        fprintf(out, " %s %s", image->process, image->subsampling);
    else if (image->width > 0)
        fprintf(out, " %dx%d bits", image->components, image->bit_depth);
    print_bytes(out, camera);
    struct weir_storage_kind kind;
    for (int k = 0; weir_dataset_storage(facts->dataset, c, k, &kind); k++) {
        fprintf(out, "%s%s", k ? ", " : "", kind.text);
        if (kind.frames != camera->frames)
            fprintf(out, " x%llu", (unsigned long long)kind.frames);
    }
    fprintf(out, "\n");
}

/* Prints how stored colours are treated, if that is not obvious. */
static void print_colors(FILE *out, const struct weir_dataset *dataset)
{
    if (weir_dataset_is_bgr(dataset))
        fprintf(out,
                "colors: red and blue of the frames are stored swapped, except in JPEGs with the comment XPL-RGB1; "
                "--color selects the order in batches\n");
}

static void print_amplification(FILE *out, const struct facts *facts)
{
    for (int c = 0; c < weir_dataset_cameras(facts->dataset); c++) {
        const struct camera_facts *camera = &facts->cameras[c];
        const char *name = weir_dataset_camera(facts->dataset, c)->name;
        const struct weir_frame_cost *cost = &camera->cost;
        struct weir_video_facts video;
        if ((cost->read == cost->stored && cost->unpacked == cost->stored) ||
            weir_dataset_video_facts(facts->dataset, c, &video)) /* weir_info_video describes those */
            continue;
        fprintf(out,
                "chunk amplification: %s: loading a random frame reads %.2f and inflates %.1f times its own bytes\n",
                name, amplification(cost, cost->read), amplification(cost, cost->unpacked));
        if (is_amplified(camera))
            fprintf(out,
                    "  warning: an epoch of %llu frames in random order inflates %.3g GB to use %.3g GB, which takes "
                    "%.3g s on one core; store one frame per chunk (h5repack -l CHUNK=1xHxWx3), or store JPEGs\n",
                    (unsigned long long)camera->frames, (double)cost->unpacked / 1e9, (double)cost->stored / 1e9,
                    camera->fetch_s * (double)camera->frames);
    }
}

static void print_state(FILE *out, const char *name, const char *key, const struct facts *facts,
                        const struct state_facts *state_)
{
    fprintf(out, "%s: %s (%llu steps, %d dimensions)\n", name, key, (unsigned long long)facts->steps, state_->dim);
    fprintf(out, "  mean");
    for (int d = 0; d < state_->dim; d++)
        fprintf(out, " %.4g", state_->mean[d]);
    fprintf(out, "\n  std ");
    for (int d = 0; d < state_->dim; d++)
        fprintf(out, " %.4g", state_->std[d]);
    fprintf(out, "\n");
}

/* Prints the texts of the first episode, such as its task description. */
static void print_texts(FILE *out, const struct weir_dataset *dataset)
{
    enum { SHOWN = 4, SHOWN_BYTES = 60 };
    const char *key, *value;
    int n = 0;
    for (; weir_dataset_text(dataset, 0, n, &key, &value); n++) {
        char name[80], text[SHOWN_BYTES + 1];
        snprintf(name, sizeof name, "%s", key);
        snprintf(text, sizeof text, "%s", value);
        weir_text_printable(name);
        weir_text_printable(text);
        if (n < SHOWN)
            fprintf(out, "%s %s \"%s%s\"", n ? "," : "texts:", name, text, strlen(value) > SHOWN_BYTES ? "..." : "");
    }
    if (n > SHOWN)
        fprintf(out, ", and %d more", n - SHOWN);
    if (n > 0)
        fprintf(out, "%s\n", weir_dataset_episodes(dataset) > 1 ? " (first episode)" : "");
}

/* Names a filesystem only if it needs advice. */
static void print_filesystem(FILE *out, const char *path)
{
    char type[64];
    weir_filesystem_of(path, type, sizeof type);
    const char *advice = weir_filesystem_advice(type);
    if (advice)
        fprintf(out, "filesystem: %s, %s\n", type, advice);
}

static void print_text(const struct facts *facts, const char *path)
{
    const struct weir_dataset *dataset = facts->dataset;
    int n = weir_dataset_episodes(dataset), at = 0, count;
    char shown[4096];
    struct weir_wrap wrap;
    snprintf(shown, sizeof shown, "%s", path);
    weir_text_printable(shown);
    printf("%s\n", shown);
    FILE *out = weir_wrap_open(&wrap, stdout, WEIR_WRAP_COLUMN, NULL);
    fputs("layout:", out);
    for (const char *name; (name = next_layout(dataset, &at, &count));)
        count == n ? fprintf(out, " %s", name) : fprintf(out, " %s (%d)", name, count);
    if (weir_dataset_about(dataset))
        fprintf(out, " (%s)", weir_dataset_about(dataset));
    fprintf(out, "\nepisodes: %d, %llu steps, lengths min %d median %g max %d\n", n, (unsigned long long)facts->steps,
            facts->lengths[0], median(facts->lengths, n), facts->lengths[n - 1]);
    fprintf(out, "files: %s; index: %s in memory\n", weir_size((double)facts->files_bytes).text,
            weir_size((double)weir_dataset_index_bytes(dataset)).text);
    print_filesystem(out, path);
    uint64_t frames, library = by_library(facts, &frames);
    if (weir_dataset_cameras(dataset) == 0)
        fprintf(out, "cameras: none, so batches have state and actions only\n");
    else
        fprintf(out, "cameras: %d, %llu frames\n", weir_dataset_cameras(dataset), (unsigned long long)frames);
    for (int c = 0; c < weir_dataset_cameras(dataset); c++)
        print_camera(out, facts, c);
    print_colors(out, dataset);
    if (frames > 0)
        fprintf(out, "reading: %.1f %% of the frames by extents, %.1f %% through the HDF5 library (fallback)\n",
                100.0 * (double)(frames - library) / (double)frames, 100.0 * (double)library / (double)frames);
    for (int c = 0; c < weir_dataset_cameras(dataset); c++)
        weir_info_video(out, dataset, c, &facts->cameras[c].probe, facts->cameras[c].fetch_s);
    print_amplification(out, facts);
    uint64_t cut;
    int ragged = weir_dataset_ragged(dataset, &cut);
    if (ragged > 0)
        fprintf(out, "ragged: %d episodes cut to their shortest part; %llu rows of their longest parts are left out\n",
                ragged, (unsigned long long)cut);
    print_state(out, "state", weir_dataset_qpos_key(dataset, 0), facts, &facts->qpos);
    print_state(out, "actions", weir_dataset_action_key(dataset, 0), facts, &facts->actions);
    if (weir_dataset_not_used(dataset))
        fprintf(out, "not used: %s\n", weir_dataset_not_used(dataset));
    print_texts(out, dataset);
    char note[1024];
    for (int i = 0; weir_dataset_note(dataset, i, note, sizeof note); i++)
        fprintf(out, "note: %s\n", note);
    if (weir_dataset_drift(dataset, note, sizeof note))
        fprintf(out, "note: %s\n", note);
    if (*facts->unturned)
        fprintf(out, "note: %s\n", facts->unturned);
    for (int i = 0; i < weir_dataset_bad_episodes(dataset); i++)
        fprintf(out, "left out: %s\n", weir_dataset_bad_episode(dataset, i));
    weir_wrap_close(&wrap);
}

/* ---- as JSON ---- */

static void json_camera(struct weir_json *json, const struct facts *facts, int c)
{
    const struct camera_facts *camera = &facts->cameras[c];
    weir_json_object(json, NULL);
    weir_json_text(json, "name", weir_dataset_camera(facts->dataset, c)->name);
    weir_json_int(json, "width", camera->probe.width);
    weir_json_int(json, "height", camera->probe.height);
    weir_json_text(json, "codec", kind_name(facts, c));
    weir_json_text(json, "process", camera->probe.image.process);
    weir_json_text(json, "subsampling", camera->probe.image.subsampling);
    weir_json_uint(json, "frames", camera->frames);
    weir_json_uint(json, "frames_measured", camera->measured);
    if (camera->measured > 0) {
        weir_json_double(json, "frame_bytes_mean", camera->bytes_mean);
        weir_json_uint(json, "frame_bytes_min", camera->bytes_min);
        weir_json_uint(json, "frame_bytes_max", camera->bytes_max);
    } else {
        weir_json_text(json, "frame_bytes_mean", NULL);
    }
    weir_json_array(json, "storage");
    struct weir_storage_kind kind;
    for (int k = 0; weir_dataset_storage(facts->dataset, c, k, &kind); k++) {
        weir_json_object(json, NULL);
        weir_json_text(json, "kind", kind.text);
        weir_json_uint(json, "frames", kind.frames);
        weir_json_bool(json, "library", kind.library);
        weir_json_end(json, '}');
    }
    weir_json_end(json, ']');
    weir_info_video_json(json, facts->dataset, c, &camera->probe, camera->fetch_s);
    weir_json_object(json, "chunk_amplification");
    weir_json_double(json, "read", amplification(&camera->cost, camera->cost.read));
    weir_json_double(json, "inflated", amplification(&camera->cost, camera->cost.unpacked));
    weir_json_uint(json, "epoch_read_bytes", camera->cost.read);
    weir_json_uint(json, "epoch_inflated_bytes", camera->cost.unpacked);
    weir_json_bool(json, "warning", is_amplified(camera));
    weir_json_double(json, "epoch_core_s", camera->fetch_s * (double)camera->frames);
    weir_json_end(json, '}');
    weir_json_end(json, '}');
}

static void json_state(struct weir_json *json, const char *name, const char *key, const struct facts *facts,
                       const struct state_facts *state_)
{
    weir_json_object(json, name);
    weir_json_text(json, "key", key);
    weir_json_array(json, "shape");
    weir_json_uint(json, NULL, facts->steps);
    weir_json_int(json, NULL, state_->dim);
    weir_json_end(json, ']');
    weir_json_array(json, "mean");
    for (int d = 0; d < state_->dim; d++)
        weir_json_double(json, NULL, state_->mean[d]);
    weir_json_end(json, ']');
    weir_json_array(json, "std");
    for (int d = 0; d < state_->dim; d++)
        weir_json_double(json, NULL, state_->std[d]);
    weir_json_end(json, ']');
    weir_json_end(json, '}');
}

static void json_layouts(struct weir_json *json, const struct weir_dataset *dataset)
{
    int at = 0, count;
    weir_json_text(json, "layout", weir_dataset_layout(dataset, 0));
    weir_json_object(json, "layouts");
    for (const char *name; (name = next_layout(dataset, &at, &count));)
        weir_json_int(json, name, count);
    weir_json_end(json, '}');
}

static void json_texts(struct weir_json *json, const struct weir_dataset *dataset)
{
    const char *key, *value;
    weir_json_array(json, "texts");
    for (int e = 0; e < weir_dataset_episodes(dataset); e++)
        for (int i = 0; weir_dataset_text(dataset, e, i, &key, &value); i++) {
            weir_json_object(json, NULL);
            weir_json_int(json, "episode", e);
            weir_json_text(json, "key", key);
            weir_json_text(json, "value", value);
            weir_json_end(json, '}');
        }
    weir_json_end(json, ']');
}

static void print_json(struct weir_json *json, const struct facts *facts, const char *path)
{
    const struct weir_dataset *dataset = facts->dataset;
    int n = weir_dataset_episodes(dataset);
    bool alone = json->depth == 0;
    if (alone)
        weir_cli_json_open(json, json->out);
    else
        weir_json_object(json, NULL);
    weir_json_text(json, "path", path);
    json_layouts(json, dataset);
    weir_json_text(json, "about", weir_dataset_about(dataset));
    weir_json_int(json, "episodes", n);
    weir_json_uint(json, "steps", facts->steps);
    weir_json_object(json, "lengths");
    weir_json_int(json, "min", facts->lengths[0]);
    weir_json_double(json, "median", median(facts->lengths, n));
    weir_json_int(json, "max", facts->lengths[n - 1]);
    weir_json_end(json, '}');
    weir_json_uint(json, "files_bytes", facts->files_bytes);
    weir_json_uint(json, "index_bytes", weir_dataset_index_bytes(dataset));
    weir_json_array(json, "cameras");
    for (int c = 0; c < weir_dataset_cameras(dataset); c++)
        json_camera(json, facts, c);
    weir_json_end(json, ']');
    uint64_t frames, library = by_library(facts, &frames);
    weir_json_text(json, "color", weir_dataset_is_bgr(dataset) ? "bgr" : "rgb");
    weir_json_uint(json, "frames", frames);
    weir_json_double(json, "extent_share", (double)(frames - library) / (double)frames);
    weir_json_double(json, "fallback_share", (double)library / (double)frames);
    json_state(json, "state", weir_dataset_qpos_key(dataset, 0), facts, &facts->qpos);
    json_state(json, "actions", weir_dataset_action_key(dataset, 0), facts, &facts->actions);
    weir_json_text(json, "not_used", weir_dataset_not_used(dataset));
    uint64_t cut;
    weir_json_int(json, "ragged_episodes", weir_dataset_ragged(dataset, &cut));
    weir_json_uint(json, "ragged_rows_cut", cut);
    json_texts(json, dataset);
    char note[1024];
    weir_json_array(json, "notes");
    for (int i = 0; weir_dataset_note(dataset, i, note, sizeof note); i++)
        weir_json_text(json, NULL, note);
    if (weir_dataset_drift(dataset, note, sizeof note))
        weir_json_text(json, NULL, note);
    if (*facts->unturned)
        weir_json_text(json, NULL, facts->unturned);
    weir_json_end(json, ']');
    weir_json_array(json, "left_out");
    for (int i = 0; i < weir_dataset_bad_episodes(dataset); i++)
        weir_json_text(json, NULL, weir_dataset_bad_episode(dataset, i));
    weir_json_end(json, ']');
    if (alone)
        weir_cli_json_close(json);
    else
        weir_json_end(json, '}');
}

int weir_info_print(struct weir_dataset *dataset, const char *path, bool tolerant, struct weir_json *json,
                    struct weir_err *err)
{
    struct facts *facts = calloc(1, sizeof *facts);
    int rc = facts ? gather(dataset, tolerant, facts, err) : weir_err_set(err, -ENOMEM, "out of memory");
    if (rc == 0 && json)
        print_json(json, facts, path);
    else if (rc == 0)
        print_text(facts, path);
    if (facts)
        drop(facts);
    free(facts);
    return rc;
}
