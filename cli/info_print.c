#include "cli/info_print.h"
#include "base/field_rows.h"
#include "base/numbers.h"
#include "base/text.h"
#include "cli/sysinfo.h"
#include "datasets/open_dataset.h"
#include "pipeline/samples/probe.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

/* Read amplification above which weir info prints a warning. It is fixed, so that all machines warn alike. */
static const double AMPLIFICATION_MAX = 4;

/* ---- facts ---- */

struct camera_facts {
    const struct weir_dataset *dataset;
    int camera; /* its number in the dataset */
    const char *name;
    const char *codec; /* name of the frame kind; for encoded colour images, the kind of the first readable frame */
    struct weir_camera_probe probe;
    uint64_t frames;
    uint64_t measured, bytes_min, bytes_max; /* number of frames with known size; their smallest and largest size */
    double bytes_mean;
    struct weir_frame_cost cost;       /* total cost of reading every frame separately */
    double read_ratio, inflated_ratio; /* bytes that are then read and inflated, over the frames' own bytes */
    bool is_amplified;                 /* a ratio is above AMPLIFICATION_MAX */
    double fetch_s;                    /* measured seconds to load a frame; 0 if it is as fast as any other */
    double epoch_s;                    /* the same for all frames */
};

struct state_facts {
    const char *key;
    uint64_t steps;
    int dim;
    double *mean, *std;
};

struct facts {
    const struct weir_dataset *dataset;
    int episodes;
    struct weir_lengths lengths;
    uint64_t steps, files_bytes, index_bytes;
    int n_cameras;
    struct camera_facts cameras[WEIR_CAMERAS_MAX];
    const char *color;
    uint64_t frames;                    /* of all cameras */
    double extent_share, library_share; /* of the frames: read by extents, and through the HDF5 library */
    int ragged;                         /* episodes that are cut to their shortest part */
    uint64_t rows_cut;                  /* rows of their longest parts that are left out */
    struct state_facts qpos, actions;
    char unturned[512]; /* line of weir_probe_unturned; may be empty */
};

static void count_bytes(const struct weir_dataset *dataset, int camera, struct camera_facts *facts)
{
    double sum = 0;
    facts->cost = (struct weir_frame_cost){0};
    facts->frames = facts->measured = facts->bytes_min = facts->bytes_max = 0;
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
            facts->bytes_min = facts->measured == 1 || bytes < facts->bytes_min ? bytes : facts->bytes_min;
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
    facts->key = actions ? weir_dataset_action_key(dataset, 0) : weir_dataset_qpos_key(dataset, 0);
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

static int gather_camera(struct weir_dataset *dataset, int c, const struct weir_camera_probe *probe,
                         struct camera_facts *camera, struct weir_err *err)
{
    struct weir_video_facts video;
    *camera = (struct camera_facts){
        .dataset = dataset,
        .camera = c,
        .name = weir_dataset_camera(dataset, c)->name,
        .codec = weir_frame_kind_name(weir_frame_is_depth(probe->kind) ? probe->kind : weir_probe_kind(probe)),
        .probe = *probe};
    int rc = measure_bytes(dataset, c, camera, err);
    camera->read_ratio = amplification(&camera->cost, camera->cost.read);
    camera->inflated_ratio = amplification(&camera->cost, camera->cost.unpacked);
    camera->is_amplified = camera->inflated_ratio > AMPLIFICATION_MAX || camera->read_ratio > AMPLIFICATION_MAX;
    if (rc == 0 && (camera->is_amplified || weir_dataset_video_facts(dataset, c, &video)))
        rc = weir_probe_fetch_s(dataset, c, 15, &camera->fetch_s, err);
    camera->epoch_s = camera->fetch_s * (double)camera->frames;
    return rc;
}

bool weir_lengths_of(const struct weir_dataset *dataset, struct weir_lengths *lengths)
{
    int n = weir_dataset_episodes(dataset);
    int *sorted = malloc(sizeof *sorted * (size_t)n);
    if (!sorted)
        return false;
    for (int e = 0; e < n; e++)
        sorted[e] = weir_dataset_steps(dataset, e);
    qsort(sorted, (size_t)n, sizeof *sorted, weir_compare_int);
    *lengths = (struct weir_lengths){sorted[0], sorted[n - 1], (sorted[(n - 1) / 2] + (double)sorted[n / 2]) / 2};
    free(sorted);
    return true;
}

static int gather(struct weir_dataset *dataset, bool tolerant, struct facts *facts, struct weir_err *err)
{
    struct weir_camera_probe probes[WEIR_CAMERAS_MAX];
    uint64_t library = 0;
    facts->dataset = dataset;
    int rc = weir_probe_cameras(dataset, tolerant, -1, probes, err);
    if (rc < 0)
        return rc;
    weir_probe_unturned(dataset, probes, facts->unturned, sizeof facts->unturned);
    if (!weir_lengths_of(dataset, &facts->lengths) || state(dataset, false, &facts->qpos) < 0 ||
        state(dataset, true, &facts->actions) < 0)
        return weir_err_set(err, -ENOMEM, "out of memory");
    facts->episodes = weir_dataset_episodes(dataset);
    for (int e = 0; e < facts->episodes; e++)
        facts->steps += (uint64_t)weir_dataset_steps(dataset, e);
    facts->qpos.steps = facts->actions.steps = facts->steps;
    for (int i = 0; i < weir_dataset_files(dataset); i++) {
        struct weir_dataset_file file;
        weir_dataset_file(dataset, i, &file);
        facts->files_bytes += file.size_bytes;
    }
    facts->color = weir_dataset_is_bgr(dataset) ? "bgr" : "rgb";
    facts->ragged = weir_dataset_ragged(dataset, &facts->rows_cut);
    facts->n_cameras = weir_dataset_cameras(dataset);
    for (int c = 0; c < facts->n_cameras && rc == 0; c++) {
        struct weir_storage_kind kind;
        for (int k = 0; weir_dataset_storage(dataset, c, k, &kind); k++)
            library += kind.library ? kind.frames : 0;
        rc = gather_camera(dataset, c, &probes[c], &facts->cameras[c], err);
        facts->frames += facts->cameras[c].frames;
    }
    facts->index_bytes = weir_dataset_index_bytes(dataset); /* measuring can have added to it */
    facts->extent_share = (double)(facts->frames - library) / (double)facts->frames;
    facts->library_share = (double)library / (double)facts->frames;
    return rc;
}

static void drop(struct facts *facts)
{
    free(facts->qpos.mean);
    free(facts->qpos.std);
    free(facts->actions.mean);
    free(facts->actions.std);
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

/* ---- as text ---- */

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

static void print_camera(FILE *out, const struct camera_facts *camera)
{
    const struct weir_image_info *image = &camera->probe.image;
    fprintf(out, "  %-20s %dx%d  %s", camera->name, camera->probe.width, camera->probe.height, camera->codec);
    if (image->process)
        fprintf(out, " %s %s", image->process, image->subsampling);
    else if (image->width > 0)
        fprintf(out, " %dx%d bits", image->components, image->bit_depth);
    print_bytes(out, camera);
    struct weir_storage_kind kind;
    for (int k = 0; weir_dataset_storage(camera->dataset, camera->camera, k, &kind); k++) {
        fprintf(out, "%s%s", k ? ", " : "", kind.text);
        if (kind.frames != camera->frames)
            fprintf(out, " x%llu", (unsigned long long)kind.frames);
    }
    fprintf(out, "\n");
}

static void print_amplification(FILE *out, const struct facts *facts)
{
    for (int c = 0; c < facts->n_cameras; c++) {
        const struct camera_facts *camera = &facts->cameras[c];
        const struct weir_frame_cost *cost = &camera->cost;
        struct weir_video_facts video;
        if ((cost->read == cost->stored && cost->unpacked == cost->stored) ||
            weir_dataset_video_facts(facts->dataset, c, &video)) /* weir_info_video describes those */
            continue;
        fprintf(out,
                "chunk amplification: %s: loading a random frame reads %.2f and inflates %.1f times its own bytes\n",
                camera->name, camera->read_ratio, camera->inflated_ratio);
        if (camera->is_amplified)
            fprintf(out,
                    "  warning: an epoch of %llu frames in random order inflates %.3g GB to use %.3g GB, which takes "
                    "%.3g s on one core; store one frame per chunk (h5repack -l CHUNK=1xHxWx3), or store JPEGs\n",
                    (unsigned long long)camera->frames, (double)cost->unpacked / 1e9, (double)cost->stored / 1e9,
                    camera->epoch_s);
    }
}

static void add_state(struct weir_document *document, const char *name, const struct state_facts *state_)
{
    FILE *out = weir_document_text(document, NULL, WEIR_WRAP_COLUMN);
    fprintf(out, "%s: %s (%llu steps, %d dimensions)\n", name, state_->key, (unsigned long long)state_->steps,
            state_->dim);
    fprintf(out, "  mean");
    for (int d = 0; d < state_->dim; d++)
        fprintf(out, " %.4g", state_->mean[d]);
    fprintf(out, "\n  std ");
    for (int d = 0; d < state_->dim; d++)
        fprintf(out, " %.4g", state_->std[d]);
    fprintf(out, "\n");
    weir_document_begin(document, name, '{');
    weir_document_fact(document, "key", state_->key);
    weir_document_numbers(document, "shape", (const double[]){(double)state_->steps, state_->dim}, 2);
    weir_document_numbers(document, "mean", state_->mean, state_->dim);
    weir_document_numbers(document, "std", state_->std, state_->dim);
    weir_document_end(document, '}');
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

static void put_storage_and_video(struct weir_json *json, const void *from)
{
    const struct camera_facts *camera = from;
    struct weir_storage_kind kind;
    weir_json_array(json, "storage");
    for (int k = 0; weir_dataset_storage(camera->dataset, camera->camera, k, &kind); k++) {
        weir_json_object(json, NULL);
        weir_json_text(json, "kind", kind.text);
        weir_json_uint(json, "frames", kind.frames);
        weir_json_bool(json, "library", kind.library);
        weir_json_end(json, '}');
    }
    weir_json_end(json, ']');
    weir_info_video_json(json, camera->dataset, camera->camera, &camera->probe, camera->fetch_s);
}

#define S struct camera_facts
static const struct weir_field amplification_rows[] = {
    PLAIN("read", read_ratio),
    PLAIN("inflated", inflated_ratio),
    PLAIN("epoch_read_bytes", cost.read),
    PLAIN("epoch_inflated_bytes", cost.unpacked),
    PLAIN("warning", is_amplified),
    PLAIN("epoch_core_s", epoch_s),
};
static WEIR_FIELDS(amplification_fields, amplification_rows);
static const struct weir_field camera_rows[] = {
    PLAIN("name", name),
    PLAIN("width", probe.width),
    PLAIN("height", probe.height),
    PLAIN("codec", codec),
    PLAIN("process", probe.image.process),
    PLAIN("subsampling", probe.image.subsampling),
    PLAIN("frames", frames),
    PLAIN("frames_measured", measured),
    POSITIVE("frame_bytes_mean", bytes_mean),
    OMIT("frame_bytes_min", bytes_min),
    OMIT("frame_bytes_max", bytes_max),
    WRITTEN(put_storage_and_video),
    OBJECT("chunk_amplification", amplification_fields),
};
static WEIR_FIELDS(camera_fields, camera_rows);
#undef S

#define S struct weir_lengths
static const struct weir_field length_rows[] = {
    PLAIN("min", min),
    PLAIN("median", median),
    PLAIN("max", max),
};
WEIR_FIELDS(weir_lengths_fields, length_rows);
#undef S

#define S struct facts
static const struct weir_field facts_rows[] = {
    PLAIN("episodes", episodes),
    PLAIN("steps", steps),
    MEMBER("lengths", weir_lengths_fields, lengths),
    PLAIN("files_bytes", files_bytes),
    PLAIN("index_bytes", index_bytes),
    ARRAY("cameras", camera_fields, cameras, n_cameras),
    PLAIN("color", color),
    PLAIN("frames", frames),
    PLAIN("extent_share", extent_share),
    PLAIN("fallback_share", library_share),
};
static WEIR_FIELDS(facts_fields, facts_rows);
#undef S

static void add_layouts(struct weir_document *document, const struct facts *facts)
{
    const struct weir_dataset *dataset = facts->dataset;
    int at = 0, count;
    FILE *out = weir_document_text(document, NULL, WEIR_WRAP_COLUMN);
    fputs("layout:", out);
    for (const char *name; (name = next_layout(dataset, &at, &count));)
        count == facts->episodes ? fprintf(out, " %s", name) : fprintf(out, " %s (%d)", name, count);
    if (weir_dataset_about(dataset))
        fprintf(out, " (%s)", weir_dataset_about(dataset));
    fputc('\n', out);
    weir_document_fact(document, "layout", weir_dataset_layout(dataset, 0));
    weir_document_begin(document, "layouts", '{');
    at = 0;
    for (const char *name; (name = next_layout(dataset, &at, &count));)
        weir_document_fact(document, name, count);
    weir_document_end(document, '}');
    weir_document_fact(document, "about", weir_dataset_about(dataset));
}

static void print_cameras(FILE *out, const struct facts *facts, const char *path)
{
    fprintf(out, "episodes: %d, %llu steps, lengths min %d median %g max %d\n", facts->episodes,
            (unsigned long long)facts->steps, facts->lengths.min, facts->lengths.median, facts->lengths.max);
    fprintf(out, "files: %s; index: %s in memory\n", weir_size((double)facts->files_bytes).text,
            weir_size((double)facts->index_bytes).text);
    print_filesystem(out, path);
    if (facts->n_cameras == 0)
        fprintf(out, "cameras: none, so batches have state and actions only\n");
    else
        fprintf(out, "cameras: %d, %llu frames\n", facts->n_cameras, (unsigned long long)facts->frames);
    for (int c = 0; c < facts->n_cameras; c++)
        print_camera(out, &facts->cameras[c]);
    if (weir_dataset_is_bgr(facts->dataset))
        fprintf(out,
                "colors: red and blue of the frames are stored swapped, except in JPEGs with the comment XPL-RGB1; "
                "--color selects the order in batches\n");
    if (facts->frames > 0)
        fprintf(out, "reading: %.1f %% of the frames by extents, %.1f %% through the HDF5 library (fallback)\n",
                100 * facts->extent_share, 100 * facts->library_share);
    for (int c = 0; c < facts->n_cameras; c++)
        weir_info_video(out, facts->dataset, c, &facts->cameras[c].probe, facts->cameras[c].fetch_s);
    print_amplification(out, facts);
    if (facts->ragged > 0)
        fprintf(out, "ragged: %d episodes cut to their shortest part; %llu rows of their longest parts are left out\n",
                facts->ragged, (unsigned long long)facts->rows_cut);
}

static void add_texts(struct weir_document *document, const struct weir_dataset *dataset)
{
    const char *key, *value;
    weir_document_begin(document, "texts", '[');
    for (int e = 0; e < weir_dataset_episodes(dataset); e++)
        for (int i = 0; weir_dataset_text(dataset, e, i, &key, &value); i++) {
            weir_document_begin(document, NULL, '{');
            weir_document_fact(document, "episode", e);
            weir_document_fact(document, "key", key);
            weir_document_fact(document, "value", value);
            weir_document_end(document, '}');
        }
    weir_document_end(document, ']');
    print_texts(weir_document_text(document, NULL, WEIR_WRAP_COLUMN), dataset);
}

static void add_notes(struct weir_document *document, const struct facts *facts)
{
    const struct weir_dataset *dataset = facts->dataset;
    char note[1024];
    weir_document_begin(document, "notes", '[');
    for (int i = 0; weir_dataset_note(dataset, i, note, sizeof note); i++)
        weir_document_line(document, NULL, "note: ", note);
    if (weir_dataset_drift(dataset, note, sizeof note))
        weir_document_line(document, NULL, "note: ", note);
    if (*facts->unturned)
        weir_document_line(document, NULL, "note: ", facts->unturned);
    weir_document_end(document, ']');
    weir_document_begin(document, "left_out", '[');
    for (int i = 0; i < weir_dataset_bad_episodes(dataset); i++)
        weir_document_line(document, NULL, "left out: ", weir_dataset_bad_episode(dataset, i));
    weir_document_end(document, ']');
}

static void describe(struct weir_document *document, const struct facts *facts, const char *path, bool in_list)
{
    const struct weir_dataset *dataset = facts->dataset;
    if (in_list) {
        putc('\n', weir_document_text(document, NULL, 0));
        weir_document_begin(document, NULL, '{');
    }
    weir_document_path(document, "path", "", path);
    add_layouts(document, facts);
    weir_document_members(document, &facts_fields, facts);
    print_cameras(weir_document_text(document, NULL, WEIR_WRAP_COLUMN), facts, path);
    add_state(document, "state", &facts->qpos);
    add_state(document, "actions", &facts->actions);
    weir_document_line(document, "not_used", "not used: ", weir_dataset_not_used(dataset));
    weir_document_fact(document, "ragged_episodes", facts->ragged);
    weir_document_fact(document, "ragged_rows_cut", facts->rows_cut);
    add_texts(document, dataset);
    add_notes(document, facts);
    if (in_list)
        weir_document_end(document, '}');
}

int weir_info_describe(struct weir_document *document, struct weir_dataset *dataset, const char *path, bool tolerant,
                       bool in_list, struct weir_err *err)
{
    struct facts *facts = calloc(1, sizeof *facts);
    int rc = facts ? gather(dataset, tolerant, facts, err) : weir_err_set(err, -ENOMEM, "out of memory");
    if (rc == 0)
        describe(document, facts, path, in_list);
    if (facts)
        drop(facts);
    free(facts);
    return rc;
}
