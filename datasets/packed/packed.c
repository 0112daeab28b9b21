/* Packed files: one index at the end, one record per episode, and frames as extents (docs/internals/packed.md). Opening
 * a file verifies the checksums of its header, index and records; only `weir verify` verifies the checksums of frames.
 */
#include "base/files.h"
#include "base/hash.h"
#include "base/shortage.h"
#include "base/text.h"
#include "datasets/format_ops.h"
#include "datasets/packed/packed_file.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { CHECK_BUFFER = 1 << 20 };

/* An episode as a store. */
struct episode_store {
    struct weir_store store;
    const struct weir_packed_header *header;
    const struct weir_packed_record *record;
    const uint8_t *bytes; /* bytes of the record */
};

/* ---- an episode as a store ---- */

/* Returns the number of the camera at "/images/top"; -1 for other paths. */
static int camera_at(const struct episode_store *s, const char *path)
{
    path += *path == '/';
    bool depth = strncmp(path, "depth/", 6) == 0;
    if (!depth && strncmp(path, "images/", 7) != 0)
        return -1;
    const char *name = strchr(path, '/') + 1;
    for (int i = 0; i < s->header->copy.n_cameras; i++)
        if (strcmp(s->header->copy.cameras[i].name, name) == 0 &&
            weir_frame_is_depth(s->header->copy.cameras[i].kind) == depth)
            return i;
    return -1;
}

static bool is_state(const char *path, bool *actions)
{
    path += *path == '/';
    *actions = strcmp(path, "action") == 0;
    return *actions || strcmp(path, "qpos") == 0;
}

static bool has(struct weir_store *store, const char *path)
{
    bool actions;
    return is_state(path, &actions) || camera_at((const struct episode_store *)store, path) >= 0;
}

static bool is_group(struct weir_store *store, const char *path)
{
    (void)store;
    path += *path == '/';
    return *path == '\0' || strcmp(path, "images") == 0 || strcmp(path, "depth") == 0;
}

static int list(struct weir_store *store, const char *group, char (**names)[64], int *n, struct weir_err *err)
{
    const struct episode_store *s = (const struct episode_store *)store;
    bool depth = strcmp(group + (*group == '/'), "depth") == 0;
    *n = 0;
    *names = calloc((size_t)s->header->copy.n_cameras + 1, sizeof **names);
    if (!*names)
        return weir_no_memory(err);
    for (int i = 0; i < s->header->copy.n_cameras; i++)
        if (weir_frame_is_depth(s->header->copy.cameras[i].kind) == depth)
            memcpy((*names)[(*n)++], s->header->copy.cameras[i].name, sizeof **names);
    qsort(*names, (size_t)*n, sizeof **names, weir_compare_text);
    return 0;
}

static struct weir_array_shape state_shape(const struct episode_store *s, bool actions)
{
    const struct weir_copy *copy = &s->header->copy;
    return weir_shape_of_numbers(actions ? copy->action_type : copy->qpos_type,
                                 actions ? copy->action_dim : copy->qpos_dim, (uint64_t)s->record->steps);
}

static int shape(struct weir_store *store, const char *path, struct weir_array_shape *found, struct weir_err *err)
{
    const struct episode_store *s = (const struct episode_store *)store;
    bool actions;
    int camera = camera_at(s, path);
    *found = (struct weir_array_shape){.element = WEIR_ELEMENT_OTHER};
    if (camera < 0 && !is_state(path, &actions))
        return weir_err_set(err, -ENOENT, "%s: a packed file has /qpos, /action, /images/CAMERA and /depth/CAMERA",
                            path);
    if (camera < 0) {
        *found = state_shape(s, actions);
        return 0;
    }
    const struct weir_copy_camera *of = &s->header->copy.cameras[camera];
    *found = weir_shape_of_frames(of->kind, of->width, of->height, (uint64_t)s->record->steps);
    return 0;
}

static int read_numbers(struct weir_store *store, const char *path, enum weir_number_type *type, void **values,
                        struct weir_array_shape *found, struct weir_err *err)
{
    const struct episode_store *s = (const struct episode_store *)store;
    bool actions;
    *values = NULL;
    *type = WEIR_F32;
    if (!is_state(path, &actions))
        return weir_err_set(err, -EBADMSG, "%s: contains no numbers", path);
    *found = state_shape(s, actions);
    *type = actions ? s->header->copy.action_type : s->header->copy.qpos_type;
    size_t bytes = (size_t)found->dims[0] * (size_t)found->dims[1] * found->type_bytes;
    *values = malloc(bytes);
    if (!*values)
        return weir_no_memory(err);
    memcpy(*values, s->bytes + (actions ? s->record->actions : s->record->qpos), bytes);
    return 0;
}

static int rows(struct weir_store *store, const char *path, struct weir_frame_map *map, struct weir_array_shape *found,
                struct weir_err *err)
{
    const struct episode_store *s = (const struct episode_store *)store;
    int camera = camera_at(s, path), rc = shape(store, path, found, err);
    if (rc < 0 || camera < 0)
        return rc; /* the caller refuses a shape that is not that of images */
    map->storage = WEIR_STORED_EXTENTS;
    map->extents = calloc((size_t)s->record->steps, sizeof *map->extents);
    if (!map->extents)
        return weir_no_memory(err);
    for (int t = 0; t < s->record->steps; t++) {
        struct weir_packed_frame frame = weir_packed_frame_at(s->record, s->header, s->bytes, t, camera);
        map->extents[t] = (struct weir_frame_extent){frame.offset, frame.length};
    }
    return 0;
}

static int texts(struct weir_store *store, struct weir_episode *episode, struct weir_err *err)
{
    const struct episode_store *s = (const struct episode_store *)store;
    uint64_t at = s->record->texts;
    int rc = 0;
    for (uint32_t i = 0; i < s->record->n_texts && rc == 0; i++) {
        struct weir_packed_text text;
        if (!weir_packed_text_at(s->bytes, s->record->bytes, &at, &text))
            return weir_err_set(err, -EBADMSG, "its metadata strings are invalid");
        char *key = strndup((const char *)text.key, text.key_bytes);
        rc = key ? weir_episode_add_text(episode, key, (const char *)text.value, text.value_bytes, err)
                 : weir_no_memory(err);
        free(key);
    }
    return rc;
}

static const struct weir_store_ops packed_store = {
    .has = has,
    .is_group = is_group,
    .list = list,
    .shape = shape,
    .read_numbers = read_numbers,
    .rows = rows,
    .texts = texts,
    .images = "frames that `weir convert --to packed` writes",
};

/* ---- the file ---- */

static int describe(void *user, int i, const struct weir_dataset_config *config, struct weir_episode *episode,
                    struct weir_err *err)
{
    struct weir_packed_index *file = user;
    struct weir_packed_record record;
    *episode = (struct weir_episode){
        .layout = &weir_layout_weir, .is_bgr = file->header.copy.is_bgr, .bytes = sizeof *episode};
    int rc = weir_packed_read_record(file, (uint32_t)i, &record, err);
    if (rc < 0)
        return rc;
    if (asprintf(&episode->root, "episode %d", i) < 0)
        return weir_no_memory(err);
    struct episode_store store = {{&packed_store, false}, &file->header, &record, file->record};
    rc = weir_episode_describe(&store.store, episode, config, err);
    return rc;
}

static int open_packed(struct weir_file_result *result, const char *path, struct weir_opening *opening)
{
    struct weir_packed_index file;
    (void)path; /* that of the file in result */
    int rc = weir_packed_open(&file, opening->origin, &result->file.file, &result->err);
    if (rc == 0)
        rc = weir_file_describe_episodes(result, (int)file.header.n_episodes, opening->config, describe, &file);
    weir_packed_close(&file);
    return rc;
}

/* ---- checksums of frames ---- */

/* Returns 1 if the frame's checksum matches, 0 if it does not. */
static int is_whole(const struct weir_packed_index *file, const struct weir_packed_frame *frame, uint8_t *buffer,
                    struct weir_err *err)
{
    uint32_t crc = 0;
    for (uint32_t done = 0; done < frame->length;) {
        uint32_t n = frame->length - done < CHECK_BUFFER ? frame->length - done : CHECK_BUFFER;
        int rc = weir_packed_read(file, frame->offset + done, buffer, n, err);
        if (rc < 0)
            return rc;
        crc = weir_crc32c(crc, buffer, n);
        done += n;
    }
    return crc == frame->crc;
}

static int check_episode(struct weir_packed_index *file, uint32_t i, uint8_t *buffer, weir_damaged_fn *damaged,
                         void *user, struct weir_err *err)
{
    struct weir_packed_record record;
    int cameras = file->header.copy.n_cameras, rc = weir_packed_read_record(file, (uint32_t)i, &record, err);
    for (int j = 0; rc == 0 && cameras > 0 && j / cameras < record.steps; j++) {
        struct weir_packed_frame frame =
            weir_packed_frame_at(&record, &file->header, file->record, j / cameras, j % cameras);
        struct weir_err why = WEIR_ERR_NONE;
        char part[WEIR_NAME_MAX + 48];
        const struct weir_copy_camera *camera = &file->header.copy.cameras[j % cameras];
        snprintf(part, sizeof part, "episode %u/%s/%s[%d]", i, weir_frame_is_depth(camera->kind) ? "depth" : "images",
                 camera->name, j / cameras);
        int whole = is_whole(file, &frame, buffer, &why);
        if (weir_is_shortage(whole))
            return weir_err_set(err, whole, "%s: %s", part, why.text);
        if (whole < 0)
            rc = damaged(user, part, why.text);
        else if (whole == 0)
            rc = damaged(user, part, "its checksum is wrong; copy the file again, or convert the dataset again");
    }
    return rc;
}

static int check(struct weir_origin *origin, const struct weir_dataset_file *of, weir_damaged_fn *damaged, void *user,
                 struct weir_err *err)
{
    struct weir_packed_index file;
    int rc = weir_packed_open(&file, origin, of, err);
    if (rc < 0)
        return rc;
    uint8_t *buffer = malloc(CHECK_BUFFER);
    rc = buffer ? 0 : weir_no_memory(err);
    for (uint32_t i = 0; i < file.header.n_episodes && rc == 0; i++)
        rc = check_episode(&file, i, buffer, damaged, user, err);
    free(buffer);
    weir_packed_close(&file);
    return rc;
}

static bool is_packed(const char *name)
{
    return weir_text_ends_any_case(name, ".weir");
}

const struct weir_format_ops weir_format_packed = {
    .name = "packed",
    .summary = "one file of extents and one index, made by weir convert",
    .names = is_packed,
    .open = open_packed,
    .check = check,
    .reads_origins = true,
};
