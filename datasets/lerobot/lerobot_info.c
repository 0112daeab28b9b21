/* meta/info.json: the version, the frame rate, the columns and the paths of a LeRobot dataset. */
#include "base/shortage.h"
#include "datasets/index.h"
#include "datasets/lerobot/lerobot_priv.h"
#include "origin/source.h"
#include "origin/url.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <jansson.h>

#define INFO "meta/info.json"
enum { TEXT_MAX = 16 << 20, LINE_PIECE = 64 << 10, WIDTH_MAX = 1 << 26 };

int weir_lerobot_path(const struct weir_lerobot *lerobot, const char *name, char path[WEIR_PART_PATH_MAX],
                      struct weir_err *err)
{
    if (lerobot->origin && !weir_name_is_safe(name))
        return weir_err_set(err, -EPERM,
                            "%.200s: files on servers must have paths without \".\" and \"..\", empty parts, control "
                            "characters and backslashes; correct the path",
                            name);
    return weir_url_join(path, WEIR_PART_PATH_MAX, lerobot->path, name)
               ? 0
               : weir_err_set(err, -ENAMETOOLONG, "%.200s: the path is too long", name);
}

bool weir_lerobot_has(const struct weir_lerobot *lerobot, const char *name)
{
    char path[WEIR_PART_PATH_MAX];
    struct weir_file_id id;
    struct weir_err ignored = WEIR_ERR_NONE;
    if (weir_lerobot_path(lerobot, name, path, &ignored) < 0)
        return false;
    if (!lerobot->origin)
        return access(path, F_OK) == 0;
    int rc = lerobot->origin->ops->identify(lerobot->origin, path, &id, &ignored);
    return rc != -ENOENT && rc != -EACCES; /* S3 refuses access to missing files if it may not list them */
}

int weir_lerobot_read(const struct weir_lerobot *lerobot, const char *name, char **text, size_t *n,
                      struct weir_err *err)
{
    char path[WEIR_PART_PATH_MAX];
    struct weir_err why = WEIR_ERR_NONE;
    *text = NULL;
    int rc = weir_lerobot_path(lerobot, name, path, err);
    if (rc < 0)
        return rc;
    rc = weir_source_text(lerobot->origin, path, TEXT_MAX, text, n, &why);
    return rc < 0 ? weir_err_set(err, rc, "%s: cannot be read: %s%s", name, why.text,
                                 rc == -EFBIG ? "; write it again" : "")
                  : 0;
}

static int read_line(const char *name, const char *line, size_t length, int number, weir_lerobot_line *use, void *user,
                     struct weir_err *err)
{
    json_t *object;
    struct weir_err why = WEIR_ERR_NONE;
    int rc = weir_json_object_parse(line, length, &object, &why);
    if (rc < 0)
        return weir_err_set(err, rc, "%s: line %d: %s; %s", name, number, why.text, weir_input_advice(rc));
    rc = use(user, object, number, err);
    json_decref(object);
    return rc;
}

/* A file that is read line by line. */
struct lines {
    struct weir_source *source;
    uint64_t at, size; /* bytes of the file that were read, and all */
    char *bytes;       /* begin .. end - 1 follow the last line */
    size_t begin, end, capacity;
};

/* Reads more of the file. Returns 0 or a negative code with err. */
static int read_more(struct lines *lines, struct weir_err *err)
{
    if (lines->begin > 0)
        memmove(lines->bytes, lines->bytes + lines->begin, lines->end - lines->begin);
    lines->end -= lines->begin;
    lines->begin = 0;
    if (lines->end == lines->capacity) {
        size_t capacity = lines->capacity ? 2 * lines->capacity : LINE_PIECE;
        char *bytes = capacity <= TEXT_MAX ? realloc(lines->bytes, capacity) : NULL;
        if (!bytes)
            return capacity > TEXT_MAX
                       ? weir_err_set(err, -E2BIG, "it has more than %d MiB; write it again", TEXT_MAX >> 20)
                       : weir_no_memory(err);
        lines->bytes = bytes;
        lines->capacity = capacity;
    }
    size_t room = lines->capacity - lines->end;
    size_t n = lines->size - lines->at < room ? (size_t)(lines->size - lines->at) : room;
    int rc = weir_source_read(lines->source, lines->at, lines->bytes + lines->end, n);
    lines->at += n;
    lines->end += n;
    return rc < 0 ? weir_err_set(err, rc, "%s", weir_source_reason(lines->source, rc)) : 0;
}

/* Sets *line and its length. Returns 1, 0 after the last line, or a negative code with err. */
static int next_line(struct lines *lines, const char **line, size_t *length, struct weir_err *err)
{
    const char *stop = NULL;
    size_t seen = 0;
    for (;;) {
        size_t n = lines->end - lines->begin - seen;
        stop = n > 0 ? memchr(lines->bytes + lines->begin + seen, '\n', n) : NULL;
        if (stop || lines->at == lines->size)
            break;
        seen += n;
        int rc = read_more(lines, err);
        if (rc < 0)
            return rc;
    }
    if (lines->begin == lines->end)
        return 0;
    *line = lines->bytes + lines->begin;
    *length = stop ? (size_t)(stop - *line) : lines->end - lines->begin;
    lines->begin += *length + (stop != NULL);
    return 1;
}

static bool is_blank(const char *line, size_t n)
{
    while (n > 0 && strchr(" \r\t", line[n - 1]) && line[n - 1])
        n--;
    return n == 0;
}

int weir_lerobot_read_lines(const struct weir_lerobot *lerobot, const char *name, weir_lerobot_line *use, void *user,
                            struct weir_err *err)
{
    struct lines lines = {0};
    struct weir_file_id id = {0};
    struct weir_err why = WEIR_ERR_NONE;
    char path[WEIR_PART_PATH_MAX];
    const char *line = NULL;
    size_t length = 0;
    int number = 0, rc = weir_lerobot_path(lerobot, name, path, err), found = 1;
    if (rc == 0 && (rc = weir_source_find(&lines.source, lerobot->origin, path, &id, &why)) < 0)
        weir_err_set(err, rc, "%s: cannot be read: %s", name, why.text);
    lines.size = id.size_bytes;
    while (rc == 0 && (found = next_line(&lines, &line, &length, &why)) > 0) {
        number++;
        if (!is_blank(line, length))
            rc = read_line(name, line, length, number, use, user, err);
    }
    if (rc == 0 && found < 0)
        rc = weir_err_set(err, found, "%s: line %d: cannot be read: %s", name, number + 1, why.text);
    free(lines.bytes);
    weir_source_close(&lines.source);
    return rc;
}

/* ---- templates ---- */

/* Writes the value of one field, such as "chunk_index:03d". Returns its length, or -1. */
static int put_field(const char *field, size_t n, const struct weir_lerobot_names *names, char *text, size_t size)
{
    const struct {
        const char *name;
        int64_t value;
    } numbers[] = {{"episode_chunk", names->chunk},
                   {"episode_index", names->episode},
                   {"chunk_index", names->chunk},
                   {"file_index", names->file}};
    size_t length = strcspn(field, ":}");
    if (length == 9 && n == length && memcmp(field, "video_key", length) == 0 && names->video_key)
        return snprintf(text, size, "%s", names->video_key);
    int digits = 1;
    if (length < n && (n - length != 4 || field[length + 1] != '0' || field[length + 3] != 'd' ||
                       field[length + 2] < '1' || field[length + 2] > '9'))
        return -1;
    if (length < n)
        digits = field[length + 2] - '0';
    for (size_t i = 0; i < sizeof numbers / sizeof *numbers; i++)
        if (strlen(numbers[i].name) == length && memcmp(field, numbers[i].name, length) == 0)
            return snprintf(text, size, "%0*lld", digits, (long long)numbers[i].value);
    return -1;
}

static bool leads_out(const char *path)
{
    for (const char *at = path; *at; at += strspn(at, "/")) {
        size_t n = strcspn(at, "/");
        if (n == 2 && at[0] == '.' && at[1] == '.')
            return true;
        at += n;
    }
    return path[0] == '/' || path[0] == '\0';
}

int weir_lerobot_name(const char *template, const struct weir_lerobot_names *names, char *text, size_t size,
                      struct weir_err *err)
{
    size_t used = 0;
    for (const char *at = template; *at && used < size;) {
        size_t plain = strcspn(at, "{"), field = at[plain] ? strcspn(at + plain + 1, "}") : 0;
        int n = snprintf(text + used, size - used, "%.*s", (int)plain, at);
        used += (size_t)n;
        at += plain;
        if (!*at)
            break;
        n = at[1 + field] == '}' && used < size ? put_field(at + 1, field, names, text + used, size - used) : -1;
        if (n < 0)
            return weir_err_set(err, -ENOTSUP,
                                INFO ": the path \"%.200s\" has a field that is not supported; correct it", template);
        used += (size_t)n;
        at += field + 2;
    }
    if (used >= size)
        return weir_err_set(err, -ENAMETOOLONG, INFO ": the path \"%.200s\" is too long; correct it", template);
    if (leads_out(text))
        return weir_err_set(err, -EPERM, INFO ": the path \"%.200s\" leads out of the dataset; correct it", text);
    return 0;
}

/* ---- features ---- */

/* lerobot has written the flag in several places. */
static bool is_depth(json_t *feature)
{
    json_t *info = json_object_get(feature, "info"), *old = json_object_get(feature, "video_info");
    json_t *dotted = json_object_get(info, "video.is_depth_map"), *plain = json_object_get(info, "is_depth_map");
    return json_is_true(dotted) || json_is_true(plain) || json_is_true(json_object_get(old, "video.is_depth_map"));
}

/* Sets *value to a number of the feature's info; without it, *value remains. */
static int read_number(json_t *info, const char *key, const char *name, double *value, struct weir_err *err)
{
    json_t *number = json_object_get(info, name);
    if (!number || json_is_null(number))
        return 0;
    if (!json_is_number(number))
        return weir_err_set(err, -EBADMSG, INFO ": feature %.100s: %s is not a number; correct it", key, name);
    *value = json_number_value(number);
    return 0;
}

/* Reads the scale of a depth feature. */
static int read_depth(struct weir_lerobot_feature *feature, json_t *about, struct weir_err *err)
{
    json_t *info = json_object_get(about, "info"), *is_log = json_object_get(info, "video.use_log");
    const char *unit = json_string_value(json_object_get(info, "depth_unit"));
    struct weir_lerobot_depth *depth = &feature->depth;
    *depth = (struct weir_lerobot_depth){.min_m = 0.01, .max_m = 10, .shift_m = 3.5}; /* the defaults of lerobot */
    depth->is_log = !json_is_false(is_log);
    depth->is_metres = unit && strcmp(unit, "m") == 0;
    int rc = read_number(info, feature->key, "video.depth_min", &depth->min_m, err);
    if (rc == 0)
        rc = read_number(info, feature->key, "video.depth_max", &depth->max_m, err);
    if (rc == 0)
        rc = read_number(info, feature->key, "video.shift", &depth->shift_m, err);
    if (rc < 0)
        return rc;
    if (depth->min_m >= depth->max_m || (depth->is_log && depth->min_m + depth->shift_m <= 0))
        return weir_err_set(err, -EBADMSG,
                            INFO ": feature %.100s: depth from %g to %g m with a shift of %g m is invalid; correct "
                                 "video.depth_min, video.depth_max and video.shift",
                            feature->key, depth->min_m, depth->max_m, depth->shift_m);
    return 0;
}

static enum weir_lerobot_kind kind_of(const char *dtype)
{
    if (strcmp(dtype, weir_frame_kind_name(WEIR_FRAME_VIDEO)) == 0)
        return WEIR_LEROBOT_VIDEO;
    if (strcmp(dtype, "image") == 0)
        return WEIR_LEROBOT_IMAGE;
    return strcmp(dtype, "string") == 0 ? WEIR_LEROBOT_TEXT : WEIR_LEROBOT_NUMBERS;
}

static bool is_of_numbers(const char *dtype)
{
    static const char *const types[] = {"bool", "int", "uint", "float", "half", "double", "date", "time", "duration"};
    size_t i = 0, n = sizeof types / sizeof types[0];
    while (i < n && strncmp(dtype, types[i], strlen(types[i])) != 0)
        i++;
    return i < n;
}

/* Returns the product of the sizes, or -1 if they are invalid. */
static int width_of(const json_t *shape)
{
    json_int_t width = json_is_array(shape) ? 1 : -1;
    for (size_t i = 0; i < json_array_size(shape) && width >= 0; i++) {
        const json_t *size = json_array_get(shape, i);
        json_int_t n = json_is_integer(size) ? json_integer_value(size) : -1;
        width = n >= 0 && n <= WIDTH_MAX && n * width <= WIDTH_MAX ? n * width : -1;
    }
    return (int)width;
}

/* Shapes of more dimensions than columns can have are read as one list. */
static int rank_of(const json_t *shape)
{
    size_t rank = json_array_size(shape);
    return rank <= WEIR_COLUMN_RANK_MAX ? (int)rank : 0;
}

/* The names of a feature's numbers, as "a, b, c". */
struct names {
    char text[2048];
    size_t length; /* of the whole text, which may not fit */
    int n;
};

/* Adds the strings in a value, which may be a list, lists in a list, or an object of them. */
static void add_names(json_t *value, struct names *names)
{
    const char *key, *text = json_string_value(value);
    size_t i, used = names->length < sizeof names->text ? names->length : sizeof names->text;
    json_t *part;
    json_array_foreach(value, i, part)
    {
        add_names(part, names);
    }
    json_object_foreach(value, key, part)
    {
        add_names(part, names);
    }
    if (text)
        names->length +=
            (size_t)snprintf(names->text + used, sizeof names->text - used, "%s%s", names->n++ ? ", " : "", text);
}

/* Lists of other lengths name the dimensions of the shape. */
static int read_names(struct weir_lerobot_feature *feature, json_t *about, struct weir_err *err)
{
    struct names names = {.n = 0};
    add_names(json_object_get(about, "names"), &names);
    if (names.n != feature->width || names.length >= sizeof names.text || feature->kind != WEIR_LEROBOT_NUMBERS)
        return 0;
    feature->names = strdup(names.text);
    return feature->names ? 0 : weir_no_memory(err);
}

static int read_feature(struct weir_lerobot *lerobot, const char *key, json_t *about, struct weir_err *err)
{
    const char *dtype = json_string_value(json_object_get(about, "dtype"));
    struct weir_lerobot_feature *feature = &lerobot->features[lerobot->n_features];
    if (!dtype)
        return weir_err_set(err, -EBADMSG, INFO ": feature %.100s has no dtype; correct it", key);
    int width = width_of(json_object_get(about, "shape"));
    enum weir_lerobot_kind kind = kind_of(dtype);
    if (width == 0 && kind == WEIR_LEROBOT_NUMBERS)
        return 0; /* it has no numbers, so nothing of it is read */
    if (width <= 0)
        return weir_err_set(err, -EBADMSG,
                            INFO ": the shape of feature %.100s is not a list of positive sizes; correct it", key);
    if (strlen(key) >= sizeof feature->key || strchr(key, '/'))
        return weir_err_set(err, -ENOTSUP,
                            INFO ": the name of feature %.100s has more than 63 bytes, or a slash; rename it", key);
    *feature = (struct weir_lerobot_feature){.kind = kind,
                                             .is_depth = is_depth(about),
                                             .is_bool = strcmp(dtype, "bool") == 0,
                                             .is_half = strcmp(dtype, "float16") == 0,
                                             .width = width,
                                             .rank = rank_of(json_object_get(about, "shape")),
                                             .video = -1};
    for (int d = 0; d < feature->rank; d++)
        feature->dims[d] = (int)json_integer_value(json_array_get(json_object_get(about, "shape"), (size_t)d));
    snprintf(feature->key, sizeof feature->key, "%s", key);
    if (kind == WEIR_LEROBOT_NUMBERS && !is_of_numbers(dtype))
        snprintf(feature->unknown, sizeof feature->unknown, "%s", dtype);
    if (feature->kind == WEIR_LEROBOT_VIDEO)
        feature->video = lerobot->n_videos++;
    lerobot->n_features++;
    int rc = read_names(feature, about, err);
    return rc == 0 && feature->is_depth ? read_depth(feature, about, err) : rc;
}

static int read_features(struct weir_lerobot *lerobot, json_t *info, struct weir_err *err)
{
    const char *key;
    json_t *features = json_object_get(info, "features"), *about;
    size_t n = json_object_size(features);
    if (n == 0 || n > WEIR_LEROBOT_FEATURES_MAX)
        return weir_err_set(err, -EBADMSG, INFO ": \"features\" must be an object of 1 to %d entries; correct it",
                            WEIR_LEROBOT_FEATURES_MAX);
    lerobot->features = calloc(n, sizeof *lerobot->features);
    if (!lerobot->features)
        return weir_no_memory(err);
    int rc = 0;
    json_object_foreach(features, key, about)
    {
        if (rc == 0)
            rc = read_feature(lerobot, key, about, err);
    }
    return rc;
}

int weir_lerobot_feature(const struct weir_lerobot *lerobot, const char *key)
{
    for (int i = 0; i < lerobot->n_features; i++)
        if (strcmp(lerobot->features[i].key, key) == 0)
            return i;
    return -ENOENT;
}

/* ---- the file ---- */

static int read_version(struct weir_lerobot *lerobot, json_t *info, struct weir_err *err)
{
    const char *version = json_string_value(json_object_get(info, "codebase_version"));
    if (version && (strcmp(version, "v2.1") == 0 || strcmp(version, "v3.0") == 0)) {
        lerobot->is_third = version[1] == '3';
        return 0;
    }
    return weir_err_set(err, -ENOTSUP,
                        INFO ": the dataset's version is %.20s; the supported versions are v2.1 and v3.0; convert it "
                             "with lerobot's own scripts (lerobot.datasets.v30.convert_dataset_v21_to_v30, and for "
                             "older ones that of v21)",
                        version ? version : "missing");
}

/* Frame rates are integers in almost all datasets. Others are kept to a thousandth. */
static int read_fps(struct weir_lerobot *lerobot, json_t *info, struct weir_err *err)
{
    double fps = json_number_value(json_object_get(info, "fps"));
    if (!(fps > 0 && fps <= 100000))
        return weir_err_set(err, -EBADMSG, INFO ": \"fps\" must be a positive number; correct it");
    bool whole = fps == floor(fps);
    lerobot->fps_numerator = llround(whole ? fps : fps * 1000);
    lerobot->fps_denominator = whole ? 1 : 1000;
    return lerobot->fps_numerator > 0
               ? 0
               : weir_err_set(err, -EBADMSG, INFO ": \"fps\" must be a positive number; correct it");
}

static int read_path(json_t *info, const char *name, char **path, struct weir_err *err)
{
    const char *text = json_string_value(json_object_get(info, name));
    if (!text)
        return weir_err_set(err, -EBADMSG, INFO ": \"%s\" is missing; correct it", name);
    *path = strdup(text);
    return *path ? 0 : weir_no_memory(err);
}

int weir_lerobot_read_info(struct weir_lerobot *lerobot, struct weir_err *err)
{
    char *text;
    size_t n;
    json_t *info = NULL;
    struct weir_err why = WEIR_ERR_NONE;
    int rc = weir_lerobot_read(lerobot, INFO, &text, &n, err);
    if (rc == 0 && (rc = weir_json_object_parse(text, n, &info, &why)) < 0)
        weir_err_set(err, rc, INFO ": %s; %s", why.text, weir_input_advice(rc));
    free(text);
    if (rc == 0)
        rc = read_version(lerobot, info, err);
    if (rc == 0)
        rc = read_fps(lerobot, info, err);
    if (rc == 0)
        rc = read_features(lerobot, info, err);
    if (rc == 0)
        rc = read_path(info, "data_path", &lerobot->data_path, err);
    if (rc == 0 && lerobot->n_videos > 0)
        rc = read_path(info, "video_path", &lerobot->video_path, err);
    if (rc == 0) {
        json_int_t size = json_integer_value(json_object_get(info, "chunks_size"));
        lerobot->chunk_size = size > 0 ? size : 1000;
        lerobot->total_episodes = json_integer_value(json_object_get(info, "total_episodes"));
        lerobot->total_frames = json_integer_value(json_object_get(info, "total_frames"));
    }
    json_decref(info);
    return rc;
}
