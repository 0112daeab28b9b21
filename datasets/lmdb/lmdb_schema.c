#include "datasets/lmdb/lmdb_schema.h"
#include "datasets/index.h"

#include <errno.h>
#include <jansson.h>
#include <string.h>

enum { DIGITS = 8, SIDE_MAX = 65500, DIM_MAX = 65536, VERSION = 1 };

/* ---- keys ---- */

/* Reads at most eight digits, so that the value fits 32 bits. */
static bool read_digits(const uint8_t *text, uint32_t *value)
{
    *value = 0;
    for (int i = 0; i < DIGITS; i++) {
        if (text[i] < '0' || text[i] > '9')
            return false;
        *value = *value * 10 + (uint32_t)(text[i] - '0');
    }
    return true;
}

static bool is_text(const uint8_t *bytes, size_t length, const char *text)
{
    return length == strlen(text) && memcmp(bytes, text, length) == 0;
}

struct weir_lmdb_key weir_lmdb_key_parse(const uint8_t *bytes, size_t length)
{
    enum { EPISODE = 1 + DIGITS + 1, FRAME = DIGITS + 1 };
    struct weir_lmdb_key key = {.kind = WEIR_LMDB_OTHER};
    if (length < EPISODE || bytes[0] != 'e' || bytes[EPISODE - 1] != '/' || !read_digits(bytes + 1, &key.episode))
        return key;
    bytes += EPISODE;
    length -= EPISODE;
    if (is_text(bytes, length, "action")) {
        key.kind = WEIR_LMDB_ACTION;
    } else if (is_text(bytes, length, "qpos")) {
        key.kind = WEIR_LMDB_QPOS;
    } else if (is_text(bytes, length, "episode")) {
        key.kind = WEIR_LMDB_EPISODE;
    } else if (length > FRAME && bytes[FRAME - 1] == '/' && read_digits(bytes, &key.t)) {
        key.kind = WEIR_LMDB_FRAME;
        key.camera = bytes + FRAME;
        key.camera_length = length - FRAME;
    }
    return key;
}

/* ---- JSON ---- */

static int bad(const char *what, struct weir_err *err)
{
    return weir_err_set(err, -EBADMSG, "key \"dataset\": %s; docs/internals/layouts.md describes it", what);
}

static int parse(const char *json, size_t length, const char *key, json_t **root, struct weir_err *err)
{
    int rc = weir_json_object_parse(json, length, root, err);
    if (rc < 0)
        weir_err_prefix(err, "key \"%s\"", key);
    return rc;
}

/* Returns an integer between 1 and max, or 0 if the value is anything else. */
static int small_integer(const json_t *object, const char *name, int max)
{
    const json_t *value = json_object_get(object, name);
    json_int_t number = json_is_integer(value) ? json_integer_value(value) : 0;
    return number >= 1 && number <= max ? (int)number : 0;
}

static int parse_numbers(enum weir_number_type *number_type, int *dim, const json_t *root, const char *name,
                         struct weir_err *err)
{
    const json_t *object = json_object_get(root, name);
    const char *type = json_string_value(json_object_get(object, "dtype"));
    int found = type ? weir_number_from_name(type) : -1;
    *dim = small_integer(object, "dim", DIM_MAX);
    *number_type = found < 0 ? WEIR_F32 : (enum weir_number_type)found;
    if (found >= 0 && *dim > 0)
        return 0;
    return weir_err_set(err, -EBADMSG,
                        "key \"dataset\": \"%s\" needs a dtype (float32, float64, int8 to uint64) and a dim (1 to %d); "
                        "docs/internals/layouts.md describes it",
                        name, DIM_MAX);
}

static int bad_codec(struct weir_err *err)
{
    char kinds[128], why[192];
    weir_frame_kind_list(WEIR_LMDB_HOLDS, ", ", kinds, sizeof kinds);
    snprintf(why, sizeof why, "the codec of a camera is not one of %s and png", kinds);
    return bad(why, err);
}

static int parse_camera(struct weir_lmdb_schema *schema, const json_t *object, struct weir_err *err)
{
    const char *name = json_string_value(json_object_get(object, "name"));
    const char *codec = json_string_value(json_object_get(object, "codec"));
    if (!name || !*name || strlen(name) >= WEIR_NAME_MAX)
        return bad("a camera needs a name of at most 63 bytes", err);
    if (strchr(name, '/') || strcmp(name, "qpos") == 0 || strcmp(name, "action") == 0)
        return bad("the name of a camera contains a /, or is qpos or action", err);
    for (int i = 0; i < schema->copy.n_cameras; i++)
        if (strcmp(schema->copy.cameras[i].name, name) == 0)
            return bad("two cameras have the same name", err);
    int kind = codec ? weir_frame_kind_from_name(codec) : -1;
    if (kind < 0 || !(weir_frame_kind_row((enum weir_frame_kind)kind)->group & WEIR_LMDB_HOLDS))
        return bad_codec(err);
    struct weir_copy_camera *camera = &schema->copy.cameras[schema->copy.n_cameras++];
    camera->kind = (enum weir_frame_kind)kind;
    camera->width = small_integer(object, "width", SIDE_MAX);
    camera->height = small_integer(object, "height", SIDE_MAX);
    memcpy(camera->name, name, strlen(name) + 1);
    return !weir_frame_is_encoded(camera->kind) && (!camera->width || !camera->height)
               ? bad("a camera with raw frames needs width and height", err)
               : 0;
}

static int parse_cameras(struct weir_lmdb_schema *schema, const json_t *root, struct weir_err *err)
{
    const json_t *cameras = json_object_get(root, "cameras");
    size_t n = json_array_size(cameras);
    if (!json_is_array(cameras) || n > WEIR_CAMERAS_MAX)
        return bad("it needs a list of at most 32 cameras", err);
    int rc = 0;
    for (size_t i = 0; i < n && rc == 0; i++)
        rc = parse_camera(schema, json_array_get(cameras, i), err);
    return rc;
}

static int parse_root(struct weir_lmdb_schema *schema, const json_t *root, struct weir_err *err)
{
    if (small_integer(root, "version", VERSION) != VERSION)
        return bad("its version is not 1, the only supported version", err);
    const json_t *episodes = json_object_get(root, "episodes"), *color = json_object_get(root, "color");
    schema->episodes = json_is_integer(episodes) ? json_integer_value(episodes) : -1;
    int rc =
        color ? weir_color_parse("key \"dataset\": its color", json_string_value(color), &schema->copy.is_bgr, err) : 0;
    if (rc == 0)
        rc = parse_cameras(schema, root, err);
    if (rc == 0)
        rc = parse_numbers(&schema->copy.qpos_type, &schema->copy.qpos_dim, root, "qpos", err);
    return rc == 0 ? parse_numbers(&schema->copy.action_type, &schema->copy.action_dim, root, "action", err) : rc;
}

int weir_lmdb_schema_parse(struct weir_lmdb_schema *schema, const char *json, size_t length, struct weir_err *err)
{
    *schema = (struct weir_lmdb_schema){.episodes = -1};
    json_t *root;
    int rc = parse(json, length, "dataset", &root, err);
    if (rc == 0)
        rc = parse_root(schema, root, err);
    json_decref(root);
    return rc;
}

int weir_lmdb_episode_parse(int64_t *steps, struct weir_episode *episode, const char *json, size_t length,
                            struct weir_err *err)
{
    *steps = -1;
    json_t *root;
    int rc = parse(json, length, "episode", &root, err);
    if (rc < 0)
        return rc;
    const json_t *value = json_object_get(root, "steps");
    if (json_is_integer(value))
        *steps = json_integer_value(value);
    rc = episode ? weir_episode_add_json(episode, root, err) : 0;
    json_decref(root);
    return rc;
}
