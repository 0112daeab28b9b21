/* Collects and checks the cameras that a layout names in an episode. */
#include "datasets/builder.h"
#include "base/shortage.h"
#include "base/text.h"
#include "decoders/frame_kind.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { STEPS_MAX = 100 * 1000 * 1000, SIDE_MAX = 65500, SHAPE_TEXT = 256 };
enum { IMAGE_SIDE_MIN = 8, FLOAT_SIDE_MIN = 32 };

bool weir_append_name(char **list, const char *name, const char *after)
{
    char *names;
    if (asprintf(&names, "%s%s%s%s", *list ? *list : "", *list ? ", " : "", name, after) < 0)
        return false;
    free(*list);
    *list = names;
    return true;
}

void weir_builder_full_key(const struct weir_episode_builder *builder, const char *key, char text[WEIR_STORE_PATH_MAX])
{
    snprintf(text, WEIR_STORE_PATH_MAX, "%s%s%s", builder->episode->root, *key != '/' ? "/" : "", key);
}

/* ---- cameras ---- */

bool weir_is_depth_name(const char *name)
{
    size_t n = strlen(name);
    return strncmp(name, "depth_", 6) == 0 || (n > 6 && strcmp(name + n - 6, "_depth") == 0);
}

int weir_name_match(const char *name, const char *asked, size_t length)
{
    if (strlen(name) == length && memcmp(name, asked, length) == 0)
        return 2;
    bool alias = strncmp(name, "rgb_", 4) == 0 && strlen(name + 4) == length && memcmp(name + 4, asked, length) == 0;
    return alias ? 1 : 0;
}

static bool is_asked_for(const char *list, const char *name)
{
    size_t whole = strlen(name); /* with its commas */
    for (const char *at = list;; at++) {
        size_t length = strcspn(at, ",");
        if (weir_name_match(name, at, length) > 0 ||
            (strncmp(at, name, whole) == 0 && (at[whole] == ',' || at[whole] == '\0')))
            return true;
        at += length;
        if (*at == '\0')
            return false;
    }
}

/* Returns true for a camera that was not requested, and records its name for errors about missing cameras. */
static bool pass_over(struct weir_episode_builder *builder, const char *name, bool depth)
{
    const struct weir_dataset_config *config = builder->config;
    if (config->image_keys && !builder->by_keys)
        return true;
    bool all = !config->cameras || !*config->cameras;
    if (all ? !depth || config->depth || builder->by_keys : is_asked_for(config->cameras, name))
        return false;
    struct weir_episode *e = builder->episode;
    if (weir_append_name(&e->passed_over, name, ""))
        weir_text_printable(e->passed_over);
    return true;
}

static bool is_raw_bytes(const struct weir_array_shape *shape, size_t type_bytes)
{
    return shape->element == WEIR_ELEMENT_INTEGER && shape->type_bytes == type_bytes;
}

static bool is_encoded(const struct weir_array_shape *shape)
{
    return (shape->rank == 1 &&
            (shape->element == WEIR_ELEMENT_VLEN_BYTES || shape->element == WEIR_ELEMENT_FIXED_BYTES)) ||
           (shape->rank == 2 && is_raw_bytes(shape, 1));
}

static bool is_raw_depth(const struct weir_array_shape *shape)
{
    return is_raw_bytes(shape, 2) && (shape->rank == 3 || (shape->rank == 4 && shape->dims[3] == 1));
}

static bool is_channels(uint64_t n)
{
    return n == 1 || n == 3 || n == 4;
}

struct weir_image_shape weir_image_shape(int rank, const uint64_t *dims, bool is_float)
{
    struct weir_image_shape image = {0};
    if (rank == 4 && is_channels(dims[3]))
        image = (struct weir_image_shape){dims[1], dims[2], (uint32_t)dims[3], false};
    else if (rank == 4 && is_channels(dims[1]))
        image = (struct weir_image_shape){dims[2], dims[3], (uint32_t)dims[1], true};
    else if (rank == 3)
        image = (struct weir_image_shape){dims[1], dims[2], 1, false};
    uint64_t side_min = is_float && image.channels == 1 ? FLOAT_SIDE_MIN : IMAGE_SIDE_MIN;
    bool large = image.height >= side_min && image.width >= side_min;
    return large || (image.channels == 3 && !image.is_planar) ? image : (struct weir_image_shape){0};
}

bool weir_looks_like_pixels(const struct weir_array_shape *shape)
{
    bool numbers = shape->element == WEIR_ELEMENT_INTEGER || shape->element == WEIR_ELEMENT_FLOAT;
    return numbers && weir_image_shape(shape->rank, shape->dims, shape->element == WEIR_ELEMENT_FLOAT).channels > 0;
}

bool weir_looks_like_images(const struct weir_array_shape *shape)
{
    return is_encoded(shape) ||
           (shape->rank == 4 && is_raw_bytes(shape, 1) && !shape->is_signed && shape->dims[3] == 3);
}

bool weir_looks_like_depth(const struct weir_array_shape *shape)
{
    return is_encoded(shape) || is_raw_depth(shape);
}

struct weir_array_shape weir_shape_of_frames(enum weir_frame_kind kind, int width, int height, uint64_t n)
{
    bool depth = weir_frame_is_depth(kind);
    if (weir_frame_is_encoded(kind))
        return (struct weir_array_shape){
            .rank = 1, .dims = {n}, .element = WEIR_ELEMENT_VLEN_BYTES, .type_bytes = sizeof(struct weir_frame_extent)};
    return (struct weir_array_shape){.rank = depth ? 3 : 4,
                                     .dims = {n, (uint64_t)height, (uint64_t)width, depth ? 0 : 3},
                                     .element = WEIR_ELEMENT_INTEGER,
                                     .type_bytes = depth ? 2 : 1};
}

struct weir_array_shape weir_shape_of_numbers(enum weir_number_type type, int dim, uint64_t n)
{
    bool is_float = type == WEIR_F32 || type == WEIR_F64;
    return (struct weir_array_shape){.rank = 2,
                                     .dims = {n, (uint64_t)dim},
                                     .element = is_float ? WEIR_ELEMENT_FLOAT : WEIR_ELEMENT_INTEGER,
                                     .type_bytes = weir_number_bytes(type)};
}

/* Writes a description such as "uint16 (steps, 96, 96, 3)". */
static void shape_text(const struct weir_array_shape *shape, char *text, size_t size)
{
    int n, bits = 8 * (int)shape->type_bytes;
    if (shape->element == WEIR_ELEMENT_INTEGER)
        n = snprintf(text, size, "%s%d", shape->is_signed ? "int" : "uint", bits);
    else if (shape->element == WEIR_ELEMENT_FLOAT)
        n = snprintf(text, size, "float%d", bits);
    else
        n = snprintf(text, size, shape->element == WEIR_ELEMENT_VLEN_BYTES ? "bytes of any length" : "no numbers");
    n += snprintf(text + n, size - (size_t)n, " (%s", shape->rank > 0 ? "steps" : "");
    for (int d = 1; d < shape->rank; d++)
        n += snprintf(text + n, size - (size_t)n, ", %llu", (unsigned long long)shape->dims[d]);
    snprintf(text + n, size - (size_t)n, ")");
}

static const char *readable_images(const struct weir_episode_builder *builder)
{
    return builder->store->ops->images;
}

static int wrong_shape(const struct weir_episode_builder *builder, const char *key,
                       const struct weir_array_shape *shape, bool depth, struct weir_err *err)
{
    char text[SHAPE_TEXT];
    shape_text(shape, text, sizeof text);
    if (shape->element == WEIR_ELEMENT_VLEN_STRING)
        return weir_err_set(err, -EBADMSG,
                            "%s: contains variable-length strings, which end at the first zero byte, so they cannot "
                            "contain JPEGs; store JPEGs as variable-length uint8",
                            key);
    if (depth)
        return weir_err_set(err, -EBADMSG,
                            "%s: has rank %d: %s; depth is read from uint16 (steps, height, width) or from 16-bit PNGs",
                            key, shape->rank, text);
    return weir_err_set(err, -EBADMSG, "%s: has rank %d: %s; images are read from %s", key, shape->rank, text,
                        readable_images(builder));
}

/* Derives the frames, rows and pixels of a camera from the array's shape. */
static int take_shape(const struct weir_episode_builder *builder, struct weir_frame_map *map, const char *key,
                      const struct weir_array_shape *shape, bool depth, struct weir_err *err)
{
    if (!(depth ? weir_looks_like_depth(shape) : weir_looks_like_images(shape)))
        return wrong_shape(builder, key, shape, depth, err);
    if (shape->dims[0] == 0 || shape->dims[0] > STEPS_MAX)
        return weir_err_set(err, -EBADMSG, "%s: has %llu frames; leave the episode out with --on-error skip", key,
                            (unsigned long long)shape->dims[0]);
    map->frames = (int)shape->dims[0];
    uint64_t row_bytes = shape->type_bytes;
    for (int i = 1; i < shape->rank; i++)
        if (__builtin_mul_overflow(row_bytes, shape->dims[i], &row_bytes) || row_bytes > INT32_MAX)
            return weir_err_set(err, -EFBIG, "%s: a frame has over 2 GiB; check the shape", key);
    map->row_bytes = row_bytes;
    if (is_encoded(shape)) {
        if (depth && map->storage != WEIR_STORED_VIDEO)
            map->kind = WEIR_FRAME_PNG16;
        map->rows = shape->element == WEIR_ELEMENT_VLEN_BYTES    ? WEIR_ROWS_VLEN
                    : shape->element == WEIR_ELEMENT_FIXED_BYTES ? WEIR_ROWS_STRINGS
                                                                 : WEIR_ROWS_PADDED;
        return row_bytes > 0 ? 0 : weir_err_set(err, -EBADMSG, "%s: its rows are empty", key);
    }
    if (shape->dims[1] == 0 || shape->dims[1] > SIDE_MAX || shape->dims[2] == 0 || shape->dims[2] > SIDE_MAX)
        return weir_err_set(err, -EBADMSG,
                            "%s: the frame size is invalid (%llux%llu); each side must be from 1 to 65500", key,
                            (unsigned long long)shape->dims[2], (unsigned long long)shape->dims[1]);
    map->kind = depth ? WEIR_FRAME_RAW16 : WEIR_FRAME_RAW;
    map->rows = WEIR_ROWS_PIXELS;
    map->width = (int)shape->dims[2];
    map->height = (int)shape->dims[1];
    return 0;
}

static int reserve_episodes(struct weir_episode_builder *builder, const char *key, struct weir_err *err)
{
    struct weir_episode *e = builder->episode;
    if (e->n_maps == WEIR_CAMERAS_MAX)
        return weir_err_set(err, -EBADMSG, "%s: more than %d cameras", key, WEIR_CAMERAS_MAX);
    if (!e->maps)
        e->maps = calloc(WEIR_CAMERAS_MAX, sizeof *e->maps);
    if (!e->names)
        e->names = calloc(WEIR_CAMERAS_MAX, sizeof *e->names);
    return e->maps && e->names ? 0 : weir_no_memory(err);
}

static int add_camera(struct weir_episode_builder *builder, const char *name, const char *key, bool depth,
                      struct weir_err *err)
{
    builder->last = -1;
    if (pass_over(builder, name, depth))
        return 0;
    struct weir_episode *e = builder->episode;
    char full[WEIR_STORE_PATH_MAX];
    weir_builder_full_key(builder, key, full);
    int rc = reserve_episodes(builder, full, err);
    struct weir_array_shape shape = {0};
    struct weir_frame_map map = {0};
    if (rc == 0)
        rc = builder->store->ops->rows(builder->store, key, &map, &shape, err);
    if (rc == 0)
        rc = take_shape(builder, &map, full, &shape, depth, err);
    map.key = rc == 0 ? strdup(full) : NULL;
    if (!map.key) {
        weir_frame_map_close(&map);
        return rc < 0 ? rc : weir_no_memory(err);
    }
    snprintf(e->names[e->n_maps], WEIR_NAME_MAX, "%s", name);
    weir_text_printable(e->names[e->n_maps]); /* only the displayed name changes; the key does not */
    builder->last = e->n_maps;
    e->maps[e->n_maps++] = map;
    return 0;
}

int weir_builder_camera(struct weir_episode_builder *builder, const char *name, const char *key, struct weir_err *err)
{
    return add_camera(builder, name, key, false, err);
}

int weir_builder_depth(struct weir_episode_builder *builder, const char *name, const char *key, struct weir_err *err)
{
    return add_camera(builder, name, key, true, err);
}

int weir_builder_unread(struct weir_episode_builder *builder, const char *name, const char *key,
                        const struct weir_array_shape *shape, struct weir_err *err)
{
    char full[WEIR_STORE_PATH_MAX], text[SHAPE_TEXT];
    const char *cameras = builder->config->cameras;
    if (pass_over(builder, name, weir_is_depth_name(name)))
        return 0;
    weir_builder_full_key(builder, key, full);
    shape_text(shape, text, sizeof text);
    if (cameras && *cameras)
        return weir_err_set(err, -ENOTSUP, "%s: camera %s cannot be read: %s; images are read from %s", full, name,
                            text, readable_images(builder));
    builder->has_unread = true;
    return weir_episode_leave_out(builder->episode, err, "camera %s is left out: %s; images are read from %s", name,
                                  text, readable_images(builder));
}

int weir_builder_members(struct weir_episode_builder *builder, const char *group, weir_member_fn *add,
                         struct weir_err *err)
{
    char(*names)[64];
    int n;
    int rc = weir_store_list(builder->store, *group ? group : "/", &names, &n, err);
    for (int i = 0; i < n && rc == 0; i++) {
        char key[WEIR_STORE_PATH_MAX];
        if (snprintf(key, sizeof key, "%s/%s", group, names[i]) >= (int)sizeof key)
            rc = weir_err_set(err, -ENAMETOOLONG, "%s: its members' paths are too long", group);
        else
            rc = add(builder, names[i], key, err);
    }
    free(names);
    return rc;
}

static int add_by_name(struct weir_episode_builder *builder, const char *name, const char *key, struct weir_err *err)
{
    if (strlen(name) >= WEIR_NAME_MAX)
        return weir_err_set(err, -ENAMETOOLONG, "%s: a camera's name has over %d bytes; rename it", key,
                            WEIR_NAME_MAX - 1);
    return add_camera(builder, name, key, weir_is_depth_name(name), err);
}

static int add_as_depth(struct weir_episode_builder *builder, const char *member, const char *key, struct weir_err *err)
{
    char name[WEIR_NAME_MAX + 8];
    snprintf(name, sizeof name, "%s%s", weir_is_depth_name(member) ? "" : "depth_", member);
    return add_by_name(builder, name, key, err);
}

int weir_builder_group(struct weir_episode_builder *builder, const char *group, bool depth, struct weir_err *err)
{
    return weir_builder_members(builder, group, depth ? add_as_depth : add_by_name, err);
}

int weir_builder_hints(struct weir_episode_builder *builder, const uint32_t *hints, uint64_t n, struct weir_err *err)
{
    struct weir_frame_map *map = builder->last >= 0 ? &builder->episode->maps[builder->last] : NULL;
    if (!map || map->rows != WEIR_ROWS_PADDED || n != (uint64_t)map->frames)
        return 0;
    map->ends = malloc((size_t)n * sizeof *map->ends);
    if (!map->ends)
        return weir_no_memory(err);
    for (uint64_t t = 0; t < n; t++)
        atomic_init(&map->ends[t].bytes, hints[t] <= map->row_bytes ? hints[t] : 0);
    return 0;
}

void weir_builder_note(struct weir_episode_builder *builder, enum weir_note note)
{
    builder->episode->note = note;
}
