/* Writes the JSON files that tensorflow_datasets stores next to TFRecord files. */
#include "base/files.h"
#include "base/grow.h"
#include "datasets/tfrecord/features.h"
#include "datasets/tfrecord/tfrecord_writer_priv.h"
#include "weir/base.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define CLASS    "tensorflow_datasets.core.features."
#define METADATA "episode_metadata/"
#define STEPS    "steps/"

enum { TEXT_NAMES_MAX = 256 };

/* ---- names ---- */

bool weir_tfw_text_feature(const char *key, char name[WEIR_TFW_NAME_MAX])
{
    if (strncmp(key, "weir_", 5) == 0 || !*key)
        return false;
    const char *group = strstr(key, "instruction") ? STEPS : METADATA;
    return snprintf(name, WEIR_TFW_NAME_MAX, "%s%s", group, key) < WEIR_TFW_NAME_MAX;
}

void weir_tfw_camera_feature(const struct weir_copy_camera *camera, char name[WEIR_TFW_NAME_MAX])
{
    snprintf(name, WEIR_TFW_NAME_MAX, STEPS "observation/%s", camera->name);
}

int weir_tfw_add_text(struct weir_tfw_texts *texts, const char *name)
{
    int at = 0, order = 1;
    while (at < texts->n && (order = strcmp(texts->names[at], name)) < 0)
        at++;
    if (order == 0 || texts->n == TEXT_NAMES_MAX)
        return 0;
    if (!weir_grow(&texts->names, (size_t)texts->n, sizeof *texts->names))
        return -ENOMEM;
    memmove(texts->names[at + 1], texts->names[at], sizeof *texts->names * (size_t)(texts->n++ - at));
    snprintf(texts->names[at], WEIR_TFW_NAME_MAX, "%s", name);
    return 1;
}

/* ---- files ---- */

/* Closes the document and replaces the file with it, whose new contents are then on the storage device. */
static int write_document(const struct weir_writer *writer, const char *name, struct weir_json_document *document,
                          struct weir_err *err)
{
    char *path = NULL, *aside = NULL;
    int rc = weir_json_document_close(writer, document, err);
    if (rc == 0 &&
        (asprintf(&path, "%s/%s", writer->path, name) < 0 || asprintf(&aside, "%s/.%s", writer->path, name) < 0))
        rc = weir_writer_no_memory(writer, err);
    if (rc == 0)
        unlink(aside); /* an interrupted call may have left a file, and a link would be followed */
    FILE *file = rc == 0 ? fopen(aside, "wxe") : NULL;
    bool fine = file && fwrite(document->text, 1, document->n, file) == document->n;
    fine = (!file || fclose(file) == 0) && fine;
    if (rc == 0 && !fine)
        rc = weir_err_set(err, errno ? -errno : -EIO, "%s: cannot be written: %s", path, strerror(errno ? errno : EIO));
    if (rc == 0)
        rc = weir_durable_sync(aside, err);
    if (rc == 0)
        rc = weir_durable_replace(aside, path, err);
    free(path);
    free(aside);
    free(document->text);
    return rc;
}

/* ---- features.json ---- */

/* Begins a feature, which has a class and one member. */
static void begin_feature(struct weir_json *json, const char *name, const char *class, const char *member)
{
    char text[96];
    snprintf(text, sizeof text, CLASS "%s", class);
    if (name)
        weir_json_object(json, name);
    weir_json_text(json, "pythonClassName", text);
    weir_json_object(json, member);
}

static void end_feature(struct weir_json *json, bool is_named)
{
    weir_json_end(json, '}');
    if (is_named)
        weir_json_end(json, '}');
}

/* In JSON, protocol buffers write 64-bit numbers as strings. */
static void put_shape(struct weir_json *json, const int *dimensions, int rank)
{
    weir_json_object(json, "shape");
    if (rank > 0)
        weir_json_array(json, "dimensions");
    for (int i = 0; i < rank; i++) {
        char text[16];
        snprintf(text, sizeof text, "%d", dimensions[i]);
        weir_json_text(json, NULL, text);
    }
    if (rank > 0)
        weir_json_end(json, ']');
    weir_json_end(json, '}');
}

/* dim 0 is a scalar. */
static void put_tensor(struct weir_json *json, const char *name, int dim, const char *type)
{
    begin_feature(json, name, dim ? "tensor_feature.Tensor" : "scalar.Scalar", "tensor");
    put_shape(json, &dim, dim > 0);
    weir_json_text(json, "dtype", type);
    weir_json_text(json, "encoding", "none");
    end_feature(json, true);
}

static void put_image(struct weir_json *json, const struct weir_copy_camera *camera)
{
    bool depth = weir_frame_is_depth(camera->kind);
    const int shape[3] = {camera->height, camera->width, depth ? 1 : 3};
    begin_feature(json, camera->name, "image_feature.Image", "image");
    put_shape(json, shape, 3);
    weir_json_text(json, "dtype", depth ? "uint16" : "uint8");
    weir_json_text(json, "encodingFormat", weir_frame_kind_row(camera->kind)->imagecodecs);
    end_feature(json, true);
}

static void begin_dictionary(struct weir_json *json, const char *name)
{
    begin_feature(json, name, "features_dict.FeaturesDict", "featuresDict");
    weir_json_object(json, "features");
}

static void end_dictionary(struct weir_json *json, bool is_named)
{
    weir_json_end(json, '}');
    end_feature(json, is_named);
}

/* Writes the string features of this group, but not those of groups below it: "steps/observation/note" is not in
 * "steps/". */
static void put_texts(struct weir_json *json, const char *group, const struct weir_tfw_texts *texts)
{
    size_t n = strlen(group);
    for (int i = 0; i < texts->n; i++) {
        const char *name = texts->names[i] + n;
        if (strncmp(texts->names[i], group, n) != 0 || strchr(name, '/'))
            continue;
        begin_feature(json, name, "text_feature.Text", "text");
        end_feature(json, true);
    }
}

static void put_steps(struct weir_json *json, const struct weir_copy *copy, const struct weir_tfw_texts *texts)
{
    begin_feature(json, "steps", "dataset_feature.Dataset", "sequence");
    begin_dictionary(json, "feature");
    put_tensor(json, "action", copy->action_dim, weir_number_name(copy->action_type));
    put_tensor(json, "is_first", 0, "bool");
    put_tensor(json, "is_last", 0, "bool");
    put_tensor(json, "is_terminal", 0, "bool");
    put_texts(json, STEPS, texts);
    begin_dictionary(json, "observation");
    put_tensor(json, "state", copy->qpos_dim, weir_number_name(copy->qpos_type));
    for (int c = 0; c < copy->n_cameras; c++)
        put_image(json, &copy->cameras[c]);
    put_texts(json, STEPS "observation/", texts);
    end_dictionary(json, true);
    end_dictionary(json, true);
    weir_json_text(json, "length", "-1");
    end_feature(json, true);
}

int weir_tfw_write_features(const struct weir_writer *writer, const struct weir_tfw_texts *texts, struct weir_err *err)
{
    struct weir_json_document document;
    struct weir_json *json = &document.json;
    int rc = weir_json_document_open(writer, &document, true, err);
    if (rc < 0)
        return rc;
    begin_dictionary(json, NULL);
    put_steps(json, &writer->copy, texts);
    begin_dictionary(json, "episode_metadata");
    put_texts(json, METADATA, texts);
    end_dictionary(json, true);
    end_dictionary(json, false);
    return write_document(writer, "features.json", &document, err);
}

int weir_tfw_read_features(const struct weir_writer *writer, struct weir_tfw_texts *texts, struct weir_err *err)
{
    char *beside;
    struct weir_stated_features stated;
    if (asprintf(&beside, "%s/", writer->path) < 0)
        return weir_writer_no_memory(writer, err);
    int rc = weir_stated_read(&stated, NULL, beside, err);
    free(beside);
    for (int i = 0; rc == 0 && i < stated.n; i++)
        if (stated.features[i].kind == WEIR_STATED_TEXT && weir_tfw_add_text(texts, stated.features[i].name) < 0)
            rc = weir_writer_no_memory(writer, err);
    weir_stated_free(&stated);
    return rc;
}

/* ---- dataset_info.json ---- */

static void put_number(struct weir_json *json, const char *key, uint64_t value)
{
    char text[24];
    snprintf(text, sizeof text, "%llu", (unsigned long long)value);
    weir_json_text(json, key, text);
}

int weir_tfw_write_info(const struct weir_writer *writer, const char *dataset, const char *split, int episodes,
                        uint64_t bytes, struct weir_err *err)
{
    struct weir_json_document document;
    struct weir_json *json = &document.json;
    int rc = weir_json_document_open(writer, &document, true, err);
    if (rc < 0)
        return rc;
    weir_json_text(json, "fileFormat", "tfrecord");
    weir_json_text(json, "name", dataset);
    weir_json_array(json, "splits");
    weir_json_object(json, NULL);
    weir_json_text(json, "filepathTemplate", "{DATASET}-{SPLIT}.{FILEFORMAT}-{SHARD_X_OF_Y}");
    weir_json_text(json, "name", split);
    put_number(json, "numBytes", bytes);
    weir_json_array(json, "shardLengths");
    put_number(json, NULL, (uint64_t)episodes);
    weir_json_end(json, ']');
    weir_json_end(json, '}');
    weir_json_end(json, ']');
    weir_json_text(json, "version", "1.0.0");
    return write_document(writer, "dataset_info.json", &document, err);
}
