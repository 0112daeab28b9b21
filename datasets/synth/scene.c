#include "datasets/synth/scene.h"

#include "datasets/synth/scene_priv.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

struct mount {
    bool rides; /* on an arm's wrist */
    int arm;
    struct weir_v3 eye, target;
    float zoom; /* focal length over the longer side */
};

struct weir_scene {
    struct weir_scene_config config;
    struct weir_texture texture[WEIR_TEX_COUNT];
    struct weir_sensor sensor;
    struct mount *mount;
};

/* ---- cameras ---- */

static bool has(const char *name, const char *word)
{
    size_t n = strlen(word);
    for (; *name; name++) {
        size_t i = 0;
        while (i < n && (name[i] | 0x20) == word[i])
            i++;
        if (i == n)
            return true;
    }
    return false;
}

/* A name says where its camera is, as people name them. */
static struct mount mount_make(const char *name, int index)
{
    struct mount mount = {.arm = has(name, "right"), .target = weir_v3(0, 0.40f, 0.02f), .zoom = 0.84f};
    float shift = 0.03f * (float)(index % 4); /* two cameras of one kind see different pictures */
    if (has(name, "wrist") || has(name, "hand") || has(name, "under"))
        mount.rides = true;
    else if (has(name, "left"))
        mount.eye = weir_v3(-0.60f, -0.30f - shift, 0.66f);
    else if (has(name, "right"))
        mount.eye = weir_v3(0.60f, -0.30f - shift, 0.66f);
    else if (has(name, "low"))
        mount.eye = weir_v3(0.05f + shift, -0.50f, 0.30f);
    else
        mount.eye = weir_v3(shift, -0.40f, 0.90f);
    return mount;
}

static void aim(struct weir_view *view, struct weir_v3 eye, struct weir_v3 target, struct weir_v3 up)
{
    view->eye = eye;
    view->ahead = weir_v3_unit(weir_v3_sub(target, eye));
    view->right = weir_v3_unit(weir_v3_cross(view->ahead, up));
    view->down = weir_v3_cross(view->ahead, view->right);
}

static void place_camera(const struct mount *mount, const struct weir_arm_pose *arms, uint64_t camera_seed, float time,
                         struct weir_canvas *canvas)
{
    struct weir_view *view = &canvas->view;
    if (mount->rides) {
        const struct weir_arm_pose *arm = &arms[mount->arm];
        struct weir_v3 back = weir_v3_unit(weir_v3_cross(arm->side, arm->ahead));
        back = back.z < 0 ? weir_v3_mul(back, -1) : back;
        struct weir_v3 eye = weir_v3_add(arm->wrist, weir_v3_mul(back, 0.078f));
        struct weir_v3 target = weir_v3_add(arm->tip, weir_v3_mul(arm->ahead, 0.05f));
        aim(view, eye, target, back);
    } else {
        /* A slow pan and the tremble of the stand. */
        float pan = 0.05f * weir_scene_sin(0.45f * time + weir_scene_range(camera_seed, 0, 6));
        float tilt = 0.02f * weir_scene_sin(0.31f * time + weir_scene_range(camera_seed * 3, 0, 6));
        struct weir_v3 eye = weir_v3_add(mount->eye, weir_v3(0.6f * pan, 0.3f * tilt, 0.2f * tilt));
        aim(view, eye, weir_v3_add(mount->target, weir_v3(pan, tilt, 0)), weir_v3(0, 0, 1));
    }
    int longest = canvas->width > canvas->height ? canvas->width : canvas->height;
    view->focal = mount->zoom * (float)longest;
    view->cx = 0.5f * (float)canvas->width;
    view->cy = 0.5f * (float)canvas->height;
    struct weir_v3 light = weir_v3_unit(weir_v3(-0.35f, -0.45f, 0.85f));
    view->light =
        weir_v3(weir_v3_dot(light, view->right), weir_v3_dot(light, view->down), weir_v3_dot(light, view->ahead));
}

/* ---- what stands on the table ---- */

struct painter {
    const struct weir_scene *scene;
    struct weir_canvas *canvas;
    uint64_t seed; /* of the episode */
};

static const struct weir_v3 lamp = {-0.33f, -0.43f, 0.84f};

static float facing(struct weir_v3 normal)
{
    float light = weir_v3_dot(normal, lamp);
    return 0.42f + 0.62f * (light > 0 ? light : 0);
}

/* A parallelogram corner, corner+u, corner+u+v, corner+v; the texture repeats every `repeat` metres. */
static void panel(const struct painter *painter, enum weir_texture_name texture, struct weir_v3 corner,
                  struct weir_v3 u, struct weir_v3 v, float repeat, struct weir_v3 tint)
{
    struct weir_face face = {
        .n_corners = 4, .origin = corner, .texture = &painter->scene->texture[texture], .tint = tint};
    face.corner[0] = corner;
    face.corner[1] = weir_v3_add(corner, u);
    face.corner[2] = weir_v3_add(face.corner[1], v);
    face.corner[3] = weir_v3_add(corner, v);
    face.u_axis = weir_v3_mul(weir_v3_unit(u), repeat);
    face.v_axis = weir_v3_mul(weir_v3_unit(v), repeat);
    face.light_v = repeat > 0.3f ? -0.06f : 0;
    face.light_u = repeat > 0.3f ? 0.05f : 0;
    weir_raster_face(painter->canvas, &face);
}

struct box {
    struct weir_v3 centre;
    struct weir_v3 x, y, z; /* half edges */
    enum weir_texture_name texture;
    float repeat;
    struct weir_v3 tint;
};

static void draw_box(const struct painter *painter, const struct box *box)
{
    const struct weir_v3 axis[3] = {box->x, box->y, box->z};
    for (int side = 0; side < 6; side++) {
        float sign = side & 1 ? 1.0f : -1.0f;
        struct weir_v3 out = weir_v3_mul(axis[side / 2], sign);
        struct weir_v3 middle = weir_v3_add(box->centre, out);
        if (weir_v3_dot(weir_v3_sub(painter->canvas->view.eye, middle), out) <= 0)
            continue; /* faces away */
        struct weir_v3 u = axis[(side / 2 + 1) % 3], v = axis[(side / 2 + 2) % 3];
        struct weir_v3 corner = weir_v3_sub(weir_v3_sub(middle, u), v);
        panel(painter, box->texture, corner, weir_v3_mul(u, 2), weir_v3_mul(v, 2), box->repeat,
              weir_v3_mul(box->tint, facing(weir_v3_unit(out))));
    }
}

static struct box upright_box(struct weir_v3 centre, float yaw, float half_x, float half_y, float half_z)
{
    float c = weir_scene_cos(yaw), s = weir_scene_sin(yaw);
    return (struct box){.centre = centre,
                        .x = weir_v3(c * half_x, s * half_x, 0),
                        .y = weir_v3(-s * half_y, c * half_y, 0),
                        .z = weir_v3(0, 0, half_z),
                        .repeat = 0.16f};
}

/* A many-sided upright cylinder. */
static void draw_can(const struct painter *painter, struct weir_v3 foot, float radius, float height,
                     struct weir_v3 tint)
{
    enum { SIDES = 14 };
    struct weir_v3 top[SIDES];
    for (int i = 0; i < SIDES; i++) {
        float angle = 6.2831853f * (float)i / SIDES;
        top[i] = weir_v3(foot.x + radius * weir_scene_cos(angle), foot.y + radius * weir_scene_sin(angle), height);
    }
    for (int i = 0; i < SIDES; i++) {
        struct weir_v3 edge = weir_v3_sub(top[(i + 1) % SIDES], top[i]);
        struct weir_v3 out = weir_v3_unit(weir_v3(edge.y, -edge.x, 0));
        if (weir_v3_dot(weir_v3_sub(painter->canvas->view.eye, top[i]), out) <= 0)
            continue;
        struct weir_v3 bottom = weir_v3(top[i].x, top[i].y, foot.z);
        /* Each side shows its own strip of the label. */
        struct weir_face face = {.n_corners = 4, .texture = &painter->scene->texture[WEIR_TEX_PRINT]};
        face.corner[0] = bottom;
        face.corner[1] = weir_v3_add(bottom, edge);
        face.corner[2] = top[(i + 1) % SIDES];
        face.corner[3] = top[i];
        face.u_axis = weir_v3_mul(edge, 16);
        face.v_axis = weir_v3(0, 0, 0.15f);
        face.origin = weir_v3_sub(bottom, weir_v3_mul(edge, (float)i));
        face.tint = weir_v3_mul(tint, facing(out));
        weir_raster_face(painter->canvas, &face);
    }
    struct weir_face lid = {.n_corners = SIDES, .origin = top[0], .texture = &painter->scene->texture[WEIR_TEX_METAL]};
    memcpy(lid.corner, top, sizeof top);
    lid.u_axis = weir_v3(0.1f, 0, 0);
    lid.v_axis = weir_v3(0, 0.1f, 0);
    lid.tint = weir_v3(0.95f, 0.95f, 0.95f);
    weir_raster_face(painter->canvas, &lid);
}

static void draw_room(const struct painter *painter)
{
    struct weir_v3 white = weir_v3(1.05f, 1.05f, 1.02f);
    /* table: top and front */
    panel(painter, WEIR_TEX_WOOD, weir_v3(-0.80f, -0.08f, 0), weir_v3(1.6f, 0, 0), weir_v3(0, 0.92f, 0), 0.62f, white);
    panel(painter, WEIR_TEX_WOOD, weir_v3(-0.80f, -0.08f, -0.05f), weir_v3(1.6f, 0, 0), weir_v3(0, 0, 0.05f), 0.62f,
          weir_v3(0.6f, 0.6f, 0.6f));
    /* posters, wall, floor */
    panel(painter, WEIR_TEX_PRINT, weir_v3(-0.62f, 1.245f, 0.10f), weir_v3(0.5f, 0, 0), weir_v3(0, 0, 0.36f), 0.5f,
          weir_v3(0.9f, 0.9f, 0.9f));
    panel(painter, WEIR_TEX_PRINT, weir_v3(0.15f, 1.245f, 0.05f), weir_v3(0.34f, 0, 0), weir_v3(0, 0, 0.46f), 0.68f,
          weir_v3(0.85f, 0.9f, 0.95f));
    panel(painter, WEIR_TEX_WALL, weir_v3(-3.5f, 1.25f, -0.75f), weir_v3(7, 0, 0), weir_v3(0, 0, 3.2f), 1.1f,
          weir_v3(0.92f, 0.93f, 0.95f));
    panel(painter, WEIR_TEX_FLOOR, weir_v3(-3.5f, -3, -0.75f), weir_v3(7, 0, 0), weir_v3(0, 4.3f, 0), 0.6f,
          weir_v3(0.9f, 0.9f, 0.9f));
    for (int side = -1; side <= 1; side += 2)
        panel(painter, WEIR_TEX_WALL, weir_v3(3.5f * (float)side, -3, -0.75f), weir_v3(0, 4.3f, 0), weir_v3(0, 0, 3.2f),
              0.75f, weir_v3(0.8f, 0.8f, 0.82f));
}

/* The mat lies on the table, so it is drawn before it at a hair's height. */
static void draw_mat(const struct painter *painter)
{
    float x = weir_scene_range(weir_scene_mix(painter->seed, 300), -0.05f, 0.05f);
    panel(painter, WEIR_TEX_CLOTH, weir_v3(-0.36f + x, 0.20f, 0.0015f), weir_v3(0.72f, 0.02f, 0),
          weir_v3(-0.01f, 0.40f, 0), 0.24f, weir_v3(1.08f, 1.08f, 1.08f));
}

static struct weir_v3 paint_colour(uint64_t hash)
{
    static const struct weir_v3 colours[] = {{1.20f, 0.42f, 0.36f}, {0.42f, 0.62f, 1.15f}, {0.52f, 1.05f, 0.55f},
                                             {1.25f, 1.02f, 0.40f}, {1.15f, 0.72f, 0.36f}, {0.80f, 0.52f, 1.05f}};
    return colours[hash % (sizeof colours / sizeof colours[0])];
}

/* Things that stay where they are: along the back and the middle of the table, out of the arms' way. */
static void draw_still_life(const struct painter *painter)
{
    enum { THINGS = 6 };
    for (int i = 0; i < THINGS; i++) {
        uint64_t own = weir_scene_mix(painter->seed, 400 + (uint64_t)i);
        struct weir_v3 at = weir_v3(-0.60f + 0.24f * (float)i + weir_scene_range(own, -0.05f, 0.05f),
                                    weir_scene_range(weir_scene_mix(own, 1), 0.64f, 0.76f), 0);
        float size = weir_scene_range(weir_scene_mix(own, 2), 0.032f, 0.05f);
        switch ((own >> 8) % 3) {
        case 0: {
            struct box box = upright_box(weir_v3(at.x, at.y, size * 1.4f), weir_scene_range(own * 5, 0, 3), size * 1.3f,
                                         size * 0.7f, size * 1.4f);
            box.texture = WEIR_TEX_PRINT;
            box.tint = weir_v3(1.05f, 1.02f, 0.98f);
            draw_box(painter, &box);
            break;
        }
        case 1:
            draw_can(painter, at, size * 0.75f, size * 2.4f, weir_v3_mul(paint_colour(own >> 20), 1.1f));
            break;
        default:
            at.z = size;
            weir_raster_round(painter->canvas, &(struct weir_round){.a = at,
                                                                    .b = at,
                                                                    .radius_a = size,
                                                                    .radius_b = size,
                                                                    .texture = &painter->scene->texture[WEIR_TEX_FLOOR],
                                                                    .tint = weir_v3_mul(paint_colour(own >> 20), 2.4f),
                                                                    .gloss = 0.5f,
                                                                    .repeat = 8});
            at.z = 0;
        }
        weir_raster_shadow(painter->canvas, weir_v3(at.x + 0.02f, at.y + 0.015f, 0.002f), weir_v3(size * 1.9f, 0, 0),
                           weir_v3(0, size * 1.6f, 0), 0.55f);
    }
}

/* ---- the arms ---- */

static void rod(const struct painter *painter, struct weir_v3 a, struct weir_v3 b, float ra, float rb,
                struct weir_v3 tint)
{
    struct weir_round shape = {
        .a = a, .b = b, .radius_a = ra, .radius_b = rb, .tint = tint, .gloss = 0.35f, .repeat = 4};
    shape.texture = &painter->scene->texture[WEIR_TEX_METAL];
    weir_raster_round(painter->canvas, &shape);
}

static void draw_gripper(const struct painter *painter, const struct weir_arm_pose *arm)
{
    struct weir_v3 across = weir_v3_unit(weir_v3_cross(arm->ahead, arm->side));
    struct weir_v3 palm = weir_v3_add(arm->wrist, weir_v3_mul(arm->ahead, 0.055f));
    struct box box = {.centre = palm,
                      .x = weir_v3_mul(arm->side, 0.045f),
                      .y = weir_v3_mul(across, 0.018f),
                      .z = weir_v3_mul(arm->ahead, 0.018f),
                      .texture = WEIR_TEX_METAL,
                      .repeat = 0.08f,
                      .tint = {0.34f, 0.35f, 0.38f}};
    draw_box(painter, &box);
    for (int finger = -1; finger <= 1; finger += 2) {
        float aside = (float)finger * (0.010f + 0.042f * arm->joint[6]);
        box.centre =
            weir_v3_add(weir_v3_add(arm->wrist, weir_v3_mul(arm->ahead, 0.115f)), weir_v3_mul(arm->side, aside));
        box.x = weir_v3_mul(arm->side, 0.005f);
        box.y = weir_v3_mul(across, 0.010f);
        box.z = weir_v3_mul(arm->ahead, 0.045f);
        box.tint = weir_v3(0.24f, 0.25f, 0.27f);
        draw_box(painter, &box);
    }
}

static void draw_arm(const struct painter *painter, const struct weir_arm_pose *arm)
{
    struct weir_v3 body = weir_v3(0.95f, 0.96f, 1.0f), joint = weir_v3(0.30f, 0.32f, 0.36f);
    struct weir_v3 foot = weir_v3_add(arm->base, weir_v3(0, 0, 0.03f));
    struct box plate = upright_box(weir_v3_add(arm->base, weir_v3(0, 0, 0.012f)), 0, 0.085f, 0.085f, 0.012f);
    plate.texture = WEIR_TEX_METAL;
    plate.tint = weir_v3(0.42f, 0.43f, 0.46f);
    draw_box(painter, &plate);
    rod(painter, foot, arm->shoulder, 0.050f, 0.042f, joint);
    rod(painter, arm->shoulder, arm->elbow, 0.036f, 0.030f, body);
    rod(painter, arm->elbow, arm->elbow, 0.040f, 0.040f, joint);
    rod(painter, arm->elbow, arm->wrist, 0.029f, 0.023f, body);
    rod(painter, arm->wrist, weir_v3_add(arm->wrist, weir_v3_mul(arm->ahead, 0.04f)), 0.028f, 0.026f, joint);
    draw_gripper(painter, arm);
}

static void draw_carried(const struct painter *painter, const struct weir_arm_pose *arm, int index)
{
    float half = weir_motion_object_half(painter->seed, index);
    uint64_t own = weir_scene_mix(painter->seed, 800 + (uint64_t)index);
    struct box box = upright_box(arm->object, arm->object_yaw, half, half, half);
    box.texture = WEIR_TEX_WALL;
    box.repeat = 0.11f;
    box.tint = weir_v3_mul(paint_colour(own), 1.25f);
    draw_box(painter, &box);
}

/* The higher a thing is, the wider and fainter its shadow. */
static void shadow_below(const struct painter *painter, struct weir_v3 at, float size, float strength)
{
    float height = at.z < 0 ? 0 : at.z, wide = size + 0.25f * height;
    weir_raster_shadow(painter->canvas, weir_v3(at.x + 0.38f * height, at.y + 0.5f * height, 0.002f),
                       weir_v3(wide, 0, 0), weir_v3(0, wide, 0), strength / (1 + 5 * height));
}

/* ---- the module's face ---- */

static uint64_t episode_seed(const struct weir_scene *scene, int episode)
{
    return weir_scene_mix(scene->config.seed, 1000 + (uint64_t)episode);
}

void weir_scene_render(const struct weir_scene *scene, struct weir_canvas *canvas, int episode, int step, int camera,
                       uint8_t *rgb, uint16_t *depth_mm)
{
    uint64_t seed = episode_seed(scene, episode), camera_seed = weir_scene_mix(seed, 2000 + (uint64_t)camera);
    struct painter painter = {.scene = scene, .canvas = canvas, .seed = seed};
    struct weir_arm_pose arms[WEIR_SCENE_ARMS];
    for (int i = 0; i < WEIR_SCENE_ARMS; i++)
        weir_motion_pose(seed, scene->config.steps, i, step, &arms[i]);
    place_camera(&scene->mount[camera], arms, camera_seed, (float)(step / scene->config.rate_hz), canvas);
    weir_raster_clear(canvas);
    for (int i = 0; i < WEIR_SCENE_ARMS; i++) {
        draw_arm(&painter, &arms[i]);
        draw_carried(&painter, &arms[i], i);
    }
    draw_mat(&painter);
    draw_room(&painter);
    draw_still_life(&painter);
    for (int i = 0; i < WEIR_SCENE_ARMS; i++) {
        shadow_below(&painter, weir_v3(arms[i].base.x + 0.02f, arms[i].base.y + 0.02f, 0), 0.12f, 0.5f);
        shadow_below(&painter, weir_v3_sub(arms[i].object, weir_v3(0, 0, 0.02f)), 0.045f, 0.6f);
        shadow_below(&painter, arms[i].wrist, 0.05f, 0.55f);
        shadow_below(&painter, arms[i].elbow, 0.06f, 0.5f);
    }
    weir_sensor_expose(&scene->sensor, canvas, weir_scene_mix(camera_seed, (uint64_t)step), rgb);
    if (depth_mm)
        weir_sensor_depth(canvas, depth_mm);
}

static void tip_of(const struct weir_arm_pose *arm, float out[7])
{
    /* The gripper's turn about z, then its pitch about y. */
    float pitch = arm->joint[1] + arm->joint[2] + arm->joint[4];
    float cy = weir_scene_cos(arm->joint[0] * 0.5f), sy = weir_scene_sin(arm->joint[0] * 0.5f);
    float cp = weir_scene_cos(-pitch * 0.5f), sp = weir_scene_sin(-pitch * 0.5f);
    float quaternion[7] = {arm->tip.x, arm->tip.y, arm->tip.z, -sy * sp, cy * sp, sy * cp, cy * cp};
    memcpy(out, quaternion, sizeof quaternion);
}

void weir_scene_state_at(const struct weir_scene *scene, int episode, int step, struct weir_scene_state *state)
{
    uint64_t seed = episode_seed(scene, episode);
    float rate = (float)scene->config.rate_hz;
    state->holding = 0;
    for (int a = 0; a < WEIR_SCENE_ARMS; a++) {
        struct weir_arm_pose before, now, after;
        weir_motion_pose(seed, scene->config.steps, a, step - 1, &before);
        weir_motion_pose(seed, scene->config.steps, a, step, &now);
        weir_motion_pose(seed, scene->config.steps, a, step + 1, &after);
        state->holding += now.holding;
        tip_of(&now, state->tip[a]);
        tip_of(&after, state->target[a]);
        for (int j = 0; j < WEIR_SCENE_ARM_JOINTS; j++) {
            int i = a * WEIR_SCENE_ARM_JOINTS + j;
            uint64_t encoder = weir_scene_mix(seed, 5000 + (uint64_t)step * WEIR_SCENE_JOINTS + (uint64_t)i);
            state->qpos[i] = now.joint[j] + weir_scene_range(encoder, -0.0008f, 0.0008f);
            state->qvel[i] = (after.joint[j] - before.joint[j]) * 0.5f * rate;
            state->action[i] = after.joint[j];
        }
    }
}

int weir_scene_open(struct weir_scene **out, const struct weir_scene_config *config)
{
    *out = NULL;
    struct weir_scene *scene = calloc(1, sizeof *scene);
    if (!scene)
        return -ENOMEM;
    scene->config = *config;
    scene->config.camera = NULL; /* not ours */
    int rc = weir_sensor_make(&scene->sensor, config->width, config->height, weir_scene_mix(config->seed, 1));
    scene->mount = calloc((size_t)config->n_cameras, sizeof *scene->mount);
    if (!scene->mount)
        rc = -ENOMEM;
    for (int i = 0; rc == 0 && i < config->n_cameras; i++)
        scene->mount[i] = mount_make(config->camera[i], i);
    int longest = config->width > config->height ? config->width : config->height;
    int shrink = longest <= 128 ? 2 : longest <= 320 ? 1 : 0;
    for (int i = 0; rc == 0 && i < WEIR_TEX_COUNT; i++)
        rc = weir_texture_make(&scene->texture[i], (enum weir_texture_name)i,
                               weir_scene_mix(config->seed, 10 + (uint64_t)i), shrink);
    if (rc < 0) {
        weir_scene_close(&scene);
        return rc;
    }
    *out = scene;
    return 0;
}

void weir_scene_close(struct weir_scene **scene)
{
    if (!*scene)
        return;
    for (int i = 0; i < WEIR_TEX_COUNT; i++)
        weir_texture_free(&(*scene)->texture[i]);
    weir_sensor_free(&(*scene)->sensor);
    free((*scene)->mount);
    free(*scene);
    *scene = NULL;
}

uint64_t weir_canvas_bytes(int width, int height)
{
    uint64_t pixels = (uint64_t)width * (uint64_t)height;
    return pixels * (sizeof(uint32_t) + sizeof(float)) + 8 * ((uint64_t)width + 2);
}

int weir_canvas_open(struct weir_canvas **out, int width, int height)
{
    *out = NULL;
    struct weir_canvas *canvas = calloc(1, sizeof *canvas);
    if (!canvas)
        return -ENOMEM;
    size_t pixels = (size_t)width * (size_t)height;
    canvas->width = width;
    canvas->height = height;
    canvas->pixels = malloc(pixels * sizeof *canvas->pixels);
    canvas->inverse_depth = malloc(pixels * sizeof *canvas->inverse_depth);
    canvas->rows = malloc(8 * ((size_t)width + 2));
    if (!canvas->pixels || !canvas->inverse_depth || !canvas->rows) {
        weir_canvas_close(&canvas);
        return -ENOMEM;
    }
    *out = canvas;
    return 0;
}

void weir_canvas_close(struct weir_canvas **canvas)
{
    if (!*canvas)
        return;
    free((*canvas)->pixels);
    free((*canvas)->inverse_depth);
    free((*canvas)->rows);
    free(*canvas);
    *canvas = NULL;
}
