/* Reads one clip of a motion file: finds its arrays and converts them. */
#include "base/shortage.h"
#include "base/text.h"
#include "extras/motion/clips/clips_priv.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

_Static_assert((int)WEIR_MOTION_NAME == (int)WEIR_FILE_ARRAY_TEXT, "names are copied between the two types");

/* ---- sets of keys ---- */

/* The array names that one project uses. With of_bodies, arrays are (frames, bodies, numbers), the root is one of the
 * bodies, and the key bodies are bodies of root_pos. Velocities and names may be missing in a file. */
struct keys {
    const char *name;
    bool of_bodies;
    const char *dof_pos, *dof_vel, *root_pos, *root_quat, *root_vel, *root_ang_vel, *key_bodies, *dof_names,
        *body_names;
};

static const struct keys known[] = {
    {"Isaac Lab's", true, "dof_positions", "dof_velocities", "body_positions", "body_rotations",
     "body_linear_velocities", "body_angular_velocities", "body_positions", "dof_names", "body_names"},
    {"whole_body_tracking's", true, "joint_pos", "joint_vel", "body_pos_w", "body_quat_w", "body_lin_vel_w",
     "body_ang_vel_w", "body_pos_w", "joint_names", "body_names"},
    {"legged_lab's", false, "dof_pos", NULL, "root_pos", "root_rot", NULL, NULL, "key_body_pos", "dof_names",
     "key_body_names"},
};

/* State while reading a clip. */
struct part {
    const struct weir_motion_source *source;
    const struct keys *keys;
    const struct weir_motion_read_options *options;
    struct weir_motion_clips *clips;
    const struct weir_motion_clip *clip;
    struct weir_motion_rows dofs, places; /* dof_pos and key_bodies, whose shapes determine those of all other arrays */
    struct weir_file_array dof_names, body_names;
    size_t root, *key_bodies, n_key_bodies; /* indices in places; root is SIZE_MAX if it is not in places */
};

static bool has(const struct weir_motion_source *source, const char *key)
{
    return key && source->ops->has(source->file, key);
}

static const struct keys *find_keys(const struct weir_motion_source *source)
{
    for (size_t i = 0; i < sizeof known / sizeof known[0]; i++)
        if (has(source, known[i].dof_pos))
            return &known[i];
    return NULL;
}

bool weir_motion_part_is_there(const struct weir_motion_source *source)
{
    return find_keys(source) != NULL;
}

/* ---- single numbers ---- */

/* Reads a single number from an array of shape () or (1,). */
static int read_number(const struct weir_motion_source *source, const char *key, double *number, struct weir_err *err)
{
    struct weir_file_array array;
    int rc = source->ops->read(source->file, key, &array, err);
    if (rc < 0)
        return rc;
    if (!array.values || array.items != 1)
        rc = weir_err_set(err, -EBADMSG, "%s: must be a single number", key);
    else
        weir_numbers_convert(array.type, array.values, 1, WEIR_F64, number);
    weir_file_array_free(&array);
    return rc;
}

static int read_fps(const struct weir_motion_source *source, double *fps, struct weir_err *err)
{
    if (!has(source, "fps"))
        return weir_err_set(err, -ENOENT, "fps: is not in the file; add the number of frames per second");
    return read_number(source, "fps", fps, err);
}

static int read_loop(const struct part *part, bool *loop, struct weir_err *err)
{
    double mode = 0;
    int rc = has(part->source, "loop_mode") ? read_number(part->source, "loop_mode", &mode, err) : 0;
    if (rc == 0 && mode != 0 && mode != 1)
        rc = weir_err_set(err, -EBADMSG, "loop_mode: is %g; it must be 0 (hold the last frame) or 1 (loop)", mode);
    *loop =
        part->options->loop == WEIR_MOTION_LOOP_AS_FILE ? mode == 1 : part->options->loop == WEIR_MOTION_LOOP_ALWAYS;
    return rc;
}

/* ---- names ---- */

/* Reads n names. Leaves names empty if the file has no such array. */
static int read_names(const struct part *part, const char *key, size_t n, struct weir_file_array *names,
                      struct weir_err *err)
{
    if (!has(part->source, key))
        return 0;
    int rc = part->source->ops->read(part->source->file, key, names, err);
    if (rc == 0 && (!names->texts || names->rank != 1 || names->items != n))
        rc = weir_err_set(err, -EBADMSG, "%s: must be a list of %zu names, one per dof or body", key, n);
    for (uint64_t i = 0; rc == 0 && i < names->items; i++)
        weir_text_printable(names->texts[i]);
    return rc;
}

/* ---- bodies ---- */

static int no_such_body(const struct part *part, const char *text, size_t length, struct weir_err *err)
{
    const struct weir_file_array *names = &part->body_names;
    char all[512] = "";
    size_t used = 0;
    if (!names->texts)
        return weir_err_set(err, -EINVAL, "has no body '%.*s'; it has no %s, so use a number from 0 to %zu",
                            (int)length, text, part->keys->body_names, part->places.bodies - 1);
    for (uint64_t i = 0; i < names->items && used < sizeof all; i++)
        used += (size_t)snprintf(all + used, sizeof all - used, "%s%s", i ? ", " : "", names->texts[i]);
    return weir_err_set(err, -EINVAL, "has no body '%.*s'; its bodies are %s", (int)length, text, all);
}

/* Finds a body by its name or its index. */
static int find_body(const struct part *part, const char *text, size_t length, size_t *body, struct weir_err *err)
{
    const struct weir_file_array *names = &part->body_names;
    for (*body = 0; names->texts && *body < part->places.bodies; (*body)++)
        if (strlen(names->texts[*body]) == length && memcmp(names->texts[*body], text, length) == 0)
            return 0;
    size_t i = 0, number = 0;
    for (; i < length && i < 6 && text[i] >= '0' && text[i] <= '9'; i++)
        number = 10 * number + (size_t)(text[i] - '0');
    *body = number;
    return i > 0 && i == length && number < part->places.bodies ? 0 : no_such_body(part, text, length, err);
}

static int choose_root(struct part *part, struct weir_err *err)
{
    const char *wanted = part->options->root_body;
    part->root = part->keys->of_bodies ? 0 : SIZE_MAX;
    if (wanted && !part->keys->of_bodies)
        return weir_err_set(err, -EINVAL,
                            "has %s keys, which store the root separately from the bodies; do not select a root body",
                            part->keys->name);
    return wanted ? find_body(part, wanted, strlen(wanted), &part->root, err) : 0;
}

static int choose_listed(struct part *part, const char *list, struct weir_err *err)
{
    int rc = 0;
    for (const char *at = list; rc == 0; at = strchr(at, ',') + 1) {
        size_t length = strcspn(at, ",");
        if (part->n_key_bodies == WEIR_MOTION_PARTS_MAX)
            return weir_err_set(err, -EINVAL, "more than %d key bodies; select fewer", WEIR_MOTION_PARTS_MAX);
        rc = find_body(part, at, length, &part->key_bodies[part->n_key_bodies++], err);
        if (!at[length])
            break;
    }
    return rc;
}

static int choose_bodies(struct part *part, struct weir_err *err)
{
    int rc = choose_root(part, err);
    if (rc < 0)
        return rc;
    part->key_bodies = malloc((WEIR_MOTION_PARTS_MAX + 1) * sizeof *part->key_bodies);
    if (!part->key_bodies)
        return weir_no_memory(err);
    if (part->options->key_bodies)
        return choose_listed(part, part->options->key_bodies, err);
    for (size_t i = 0; i < part->places.bodies; i++)
        if (i != part->root)
            part->key_bodies[part->n_key_bodies++] = i;
    return part->n_key_bodies > 0
               ? 0
               : weir_err_set(err, -EBADMSG, "%s: has no body besides the root", part->keys->key_bodies);
}

/* ---- the robot ---- */

static int copy_names(const struct weir_file_array *names, const size_t *which, size_t n,
                      char (**copy)[WEIR_MOTION_NAME], struct weir_err *err)
{
    if (!names->texts)
        return 0;
    *copy = calloc(n, sizeof **copy);
    if (!*copy)
        return weir_no_memory(err);
    for (size_t i = 0; i < n; i++)
        memcpy((*copy)[i], names->texts[which ? which[i] : i], sizeof **copy);
    return 0;
}

static int make_clips(struct part *part, struct weir_motion_clips **clips, struct weir_err *err)
{
    int rc = weir_motion_clips_new(clips, part->dofs.width, part->n_key_bodies, err);
    if (rc == 0)
        rc = copy_names(&part->dof_names, NULL, part->dofs.width, &(*clips)->dof_names, err);
    if (rc == 0)
        rc = copy_names(&part->body_names, part->key_bodies, part->n_key_bodies, &(*clips)->body_names, err);
    return rc;
}

static int same_names(const struct weir_file_array *names, const size_t *which, size_t n,
                      char (*first)[WEIR_MOTION_NAME], const char *what, struct weir_err *err)
{
    for (size_t i = 0; names->texts && first && i < n; i++) {
        const char *name = names->texts[which ? which[i] : i];
        if (strcmp(name, first[i]) != 0)
            return weir_err_set(err, -EBADMSG,
                                "%s %zu is '%s', but '%s' in the first motion; all motions must be of the same robot",
                                what, i, name, first[i]);
    }
    return 0;
}

static int check_robot(const struct part *part, const struct weir_motion_clips *clips, struct weir_err *err)
{
    if (part->dofs.width != clips->dofs || part->n_key_bodies != clips->bodies)
        return weir_err_set(
            err, -EBADMSG,
            "has %zu dofs and %zu key bodies, but the first motion has %zu and %zu; all motions must be of the "
            "same robot",
            part->dofs.width, part->n_key_bodies, clips->dofs, clips->bodies);
    int rc = same_names(&part->dof_names, NULL, clips->dofs, clips->dof_names, "dof", err);
    return rc < 0 ? rc
                  : same_names(&part->body_names, part->key_bodies, clips->bodies, clips->body_names, "key body", err);
}

/* Like weir_motion_rows_read, but returns -ENOENT if the array does not exist. */
static int read_rows(const struct part *part, struct weir_motion_rows *rows, struct weir_err *err)
{
    if (!has(part->source, rows->key))
        return weir_err_set(err, -ENOENT, "%s: is not in the file; %s motion files contain it", rows->key,
                            part->keys->name);
    return weir_motion_rows_read(part->source, rows, err);
}

/* Reads dofs, places and names, whose shapes determine those of all other arrays. */
static int read_robot(struct part *part, struct weir_err *err)
{
    const struct keys *keys = part->keys;
    part->dofs = (struct weir_motion_rows){.key = keys->dof_pos};
    int rc = read_rows(part, &part->dofs, err);
    if (rc == 0 && part->dofs.frames > WEIR_MOTION_FRAMES_MAX)
        rc = weir_err_set(err, -EFBIG, "%s: has %zu frames; at most %d are supported; split it into several clips",
                          keys->dof_pos, part->dofs.frames, WEIR_MOTION_FRAMES_MAX);
    if (rc < 0)
        return rc;
    part->places =
        (struct weir_motion_rows){.key = keys->key_bodies, .frames = part->dofs.frames, .bodies = SIZE_MAX, .width = 3};
    rc = read_rows(part, &part->places, err);
    if (rc == 0 && (part->places.bodies > WEIR_MOTION_PARTS_MAX || part->dofs.width > WEIR_MOTION_PARTS_MAX))
        rc = weir_err_set(err, -EFBIG, "has %zu dofs and %zu bodies; at most %d of each are supported",
                          part->dofs.width, part->places.bodies, WEIR_MOTION_PARTS_MAX);
    if (rc == 0)
        rc = read_names(part, keys->dof_names, part->dofs.width, &part->dof_names, err);
    if (rc == 0)
        rc = read_names(part, keys->body_names, part->places.bodies, &part->body_names, err);
    return rc < 0 ? rc : choose_bodies(part, err);
}

/* ---- arrays ---- */

/* Reads an array into out[frames][width]. From an array with bodies, copies only the root. */
static int take(const struct part *part, const char *key, size_t width, bool of_bodies, float *out,
                struct weir_err *err)
{
    struct weir_motion_rows rows = {
        .key = key, .frames = part->dofs.frames, .bodies = of_bodies ? part->places.bodies : 0, .width = width};
    int rc = read_rows(part, &rows, err);
    if (rc == 0)
        rc = weir_motion_rows_copy(&rows, of_bodies ? &part->root : NULL, 1, out, err);
    weir_file_array_free(&rows.array);
    return rc;
}

static int take_places(struct part *part, float *key_bodies, float *root, struct weir_err *err)
{
    const struct keys *keys = part->keys;
    int rc = weir_motion_rows_copy(&part->dofs, NULL, 1,
                                   part->clips->dof_pos + part->clip->first_frame * part->clips->dofs, err);
    if (rc == 0)
        rc = weir_motion_rows_copy(&part->places, part->key_bodies, part->n_key_bodies, key_bodies, err);
    if (rc == 0 && keys->of_bodies)
        rc = weir_motion_rows_copy(&part->places, &part->root, 1, root, err);
    weir_file_array_free(&part->dofs.array);
    weir_file_array_free(&part->places.array);
    return rc < 0 || keys->of_bodies ? rc : take(part, keys->root_pos, 3, false, root, err);
}

static int check_finite(const float *values, size_t frames, size_t width, const char *what, struct weir_err *err)
{
    for (size_t i = 0; i < frames * width; i++)
        if (!isfinite(values[i]))
            return weir_err_set(err, -EBADMSG,
                                "%s: the difference between frames %zu and %zu gives no finite velocity; check fps",
                                what, i / width, i / width + 1);
    return 0;
}

static int differ(const struct part *part, const float *positions, size_t width, float *out, struct weir_err *err)
{
    weir_motion_forward_differences(positions, part->clip->frames, width, part->clip->fps, out);
    return check_finite(out, part->clip->frames, width, "positions", err);
}

static int take_dof_vel(const struct part *part, const float *positions, float *out, struct weir_err *err)
{
    size_t width = part->clips->dofs;
    return has(part->source, part->keys->dof_vel) ? take(part, part->keys->dof_vel, width, false, out, err)
                                                  : differ(part, positions, width, out, err);
}

static int take_root_vel(const struct part *part, const float *positions, float *out, struct weir_err *err)
{
    const struct keys *keys = part->keys;
    return has(part->source, keys->root_vel) ? take(part, keys->root_vel, 3, keys->of_bodies, out, err)
                                             : differ(part, positions, 3, out, err);
}

static int take_root_ang_vel(const struct part *part, const float *quats, float *out, struct weir_err *err)
{
    const struct keys *keys = part->keys;
    if (has(part->source, keys->root_ang_vel))
        return take(part, keys->root_ang_vel, 3, keys->of_bodies, out, err);
    weir_motion_turning_rates(quats, part->clip->frames, part->clip->fps, out);
    return check_finite(out, part->clip->frames, 3, "rotations", err);
}

static int take_all(struct part *part, struct weir_err *err)
{
    const struct keys *keys = part->keys;
    const struct weir_motion_clips *c = part->clips;
    size_t at = part->clip->first_frame;
    float *places = c->root_pos_w + 3 * at, *quats = c->root_quat + 4 * at, *dofs = c->dof_pos + c->dofs * at;
    int rc = take_places(part, c->key_body_pos_w + 3 * c->bodies * at, places, err);
    if (rc == 0)
        rc = take(part, keys->root_quat, 4, keys->of_bodies, quats, err);
    if (rc == 0)
        rc = weir_motion_normalise(quats, part->clip->frames, keys->root_quat, part->root, err);
    if (rc == 0)
        rc = take_dof_vel(part, dofs, c->dof_vel + c->dofs * at, err);
    if (rc == 0)
        rc = take_root_vel(part, places, c->root_vel_w + 3 * at, err);
    return rc < 0 ? rc : take_root_ang_vel(part, quats, c->root_ang_vel_w + 3 * at, err);
}

/* ---- a clip ---- */

static int read_part(struct part *part, struct weir_motion_clips **clips, const char *name, struct weir_err *err)
{
    double fps = 0;
    bool loop = false;
    struct weir_motion_clip *clip;
    int rc = read_fps(part->source, &fps, err);
    if (rc == 0)
        rc = read_loop(part, &loop, err);
    if (rc == 0)
        rc = read_robot(part, err);
    if (rc == 0)
        rc = *clips ? check_robot(part, *clips, err) : make_clips(part, clips, err);
    if (rc == 0)
        rc = weir_motion_clips_add(*clips, part->dofs.frames, fps, &clip, err);
    if (rc < 0)
        return rc;
    clip->loop = loop;
    snprintf(clip->name, sizeof clip->name, "%s", name);
    weir_text_printable(clip->name);
    part->clips = *clips;
    part->clip = clip;
    return take_all(part, err);
}

int weir_motion_part_read(struct weir_motion_clips **clips, const struct weir_motion_source *source, const char *name,
                          const struct weir_motion_read_options *options, struct weir_err *err)
{
    struct part part = {.source = source, .options = options, .keys = find_keys(source)};
    int rc =
        part.keys
            ? read_part(&part, clips, name, err)
            : weir_err_set(
                  err, -EBADMSG,
                  "is not a motion file: it has none of dof_positions (Isaac Lab), joint_pos (whole_body_tracking) and "
                  "dof_pos (legged_lab)");
    weir_file_array_free(&part.dofs.array);
    weir_file_array_free(&part.places.array);
    weir_file_array_free(&part.dof_names);
    weir_file_array_free(&part.body_names);
    free(part.key_bodies);
    return rc;
}
