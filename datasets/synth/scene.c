#include "datasets/synth/scene.h"

#include "datasets/synth/scene_priv.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

/* A camera with parallel projection. */
struct mount {
    bool rides; /* the camera is mounted above an arm's gripper */
    int arm;
    float yaw, pitch;   /* in radians; pitch 0 looks along the table, pi / 2 straight down */
    float pixels_per_m; /* pixels per metre, divided by the image's longer side */
    int x, y;           /* position of its view on the backdrop, pixels */
};

enum { NOISE_PERIOD = 1 << 16 };

struct weir_scene {
    struct weir_scene_config config;
    struct weir_backdrop backdrop;
    int8_t *noise; /* three values per pixel, for NOISE_PERIOD + width pixels */
    struct mount *mount;
};

struct picture {
    int width, height;
    uint8_t *rgb;
    uint16_t *depth_mm;
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

/* Chooses a camera's position from its name, using the names that recorders give their cameras. */
static struct mount mount_make(const char *name, int index, uint64_t seed)
{
    struct mount mount = {
        .arm = has(name, "right"), .pitch = 1.1f, .yaw = 0.05f * (float)(index % 4), .pixels_per_m = 0.9f};
    if (has(name, "wrist") || has(name, "hand") || has(name, "under")) {
        mount.rides = true;
        mount.pixels_per_m = 1.9f;
    } else if (has(name, "left") || has(name, "right")) {
        mount.yaw += has(name, "left") ? -0.6f : 0.6f;
        mount.pitch = 0.7f;
    } else if (has(name, "low")) {
        mount.pitch = 0.3f;
    }
    mount.x = (int)(seed >> 8 & 1023);
    mount.y = (int)(seed >> 24 & 1023);
    return mount;
}

struct view {
    struct weir_v3 right, down, ahead, target; /* unit axes of the view, and the point at the centre of the image */
    float scale;                               /* pixels per metre */
};

static struct view view_make(const struct mount *mount, const struct weir_arm_pose *arms, uint64_t seed, float time,
                             const struct picture *picture)
{
    float cy = weir_scene_cos(mount->yaw), sy = weir_scene_sin(mount->yaw);
    float cp = weir_scene_cos(mount->pitch), sp = weir_scene_sin(mount->pitch);
    int longest = picture->width > picture->height ? picture->width : picture->height;
    struct view view = {.right = weir_v3(cy, sy, 0), .ahead = weir_v3(-sy * cp, cy * cp, -sp)};
    view.down = weir_v3_cross(view.ahead, view.right);
    view.scale = mount->pixels_per_m * (float)longest;
    /* Fixed cameras pan slowly; mounted cameras follow their arm. */
    view.target = mount->rides ? arms[mount->arm].tip
                               : weir_v3(0.05f * weir_scene_sin(0.45f * time + weir_scene_range(seed, 0, 6)),
                                         0.38f + 0.02f * weir_scene_sin(0.31f * time), 0.1f);
    return view;
}

/* ---- drawing ---- */

static void draw_backdrop(const struct weir_scene *scene, const struct mount *mount, const struct view *view,
                          const struct picture *picture)
{
    const struct weir_backdrop *backdrop = &scene->backdrop;
    size_t mask = backdrop->size - 1;
    size_t x0 = (size_t)(mount->x + (int)(view->scale * (weir_v3_dot(view->target, view->right) + 8)));
    size_t y0 = (size_t)(mount->y + (int)(view->scale * (weir_v3_dot(view->target, view->down) + 8)));
    /* The table is a plane, so each row is nearer than the row above it. The difference is larger if the camera's angle
     * is flatter. */
    float row_mm = 1000 * (1 - view->ahead.z * view->ahead.z) / view->scale;
    for (int y = 0; y < picture->height; y++) {
        size_t from = ((y0 + (size_t)y) & mask) * backdrop->size;
        uint16_t plane_mm = (uint16_t)(1100 + row_mm * (0.5f * (float)picture->height - (float)y));
        for (int x = 0; x < picture->width;) {
            size_t at = (x0 + (size_t)x) & mask, n = backdrop->size - at,
                   out = (size_t)y * (size_t)picture->width + (size_t)x;
            n = n < (size_t)(picture->width - x) ? n : (size_t)(picture->width - x);
            memcpy(picture->rgb + 3 * out, backdrop->rgb + 3 * (from + at), 3 * n);
            for (size_t i = 0; i < n; i++)
                picture->depth_mm[out + i] = (uint16_t)(plane_mm + backdrop->relief_mm[from + at + i]);
            x += (int)n;
        }
    }
}

static int bounded(float v, int limit)
{
    return v <= 0 ? 0 : v >= (float)limit ? limit : (int)v;
}

/* Returns image coordinates in pixels, and the distance from the camera in millimetres. */
static struct weir_v3 project(const struct view *view, const struct picture *picture, struct weir_v3 p)
{
    p = weir_v3_sub(p, view->target);
    return weir_v3(0.5f * (float)picture->width + view->scale * weir_v3_dot(p, view->right),
                   0.5f * (float)picture->height + view->scale * weir_v3_dot(p, view->down),
                   1000 + 1000 * weir_v3_dot(p, view->ahead));
}

/* Draws a cylinder with round ends, lit from the front. If the ends coincide, it is a ball. */
static void draw_rod(const struct view *view, const struct picture *picture, struct weir_v3 from, struct weir_v3 to,
                     float radius_m, const float colour[3])
{
    struct weir_v3 a = project(view, picture, from), d = weir_v3_sub(project(view, picture, to), a);
    float r = radius_m * view->scale, squared = d.x * d.x + d.y * d.y + 1e-6f;
    int y0 = bounded(a.y + (d.y < 0 ? d.y : 0) - r, picture->height);
    int y1 = bounded(a.y + (d.y > 0 ? d.y : 0) + r + 1, picture->height);
    int x0 = bounded(a.x + (d.x < 0 ? d.x : 0) - r, picture->width);
    int x1 = bounded(a.x + (d.x > 0 ? d.x : 0) + r + 1, picture->width);
    for (int y = y0; y < y1; y++)
        for (int x = x0; x < x1; x++) {
            float px = (float)x + 0.5f - a.x, py = (float)y + 0.5f - a.y;
            float s = (px * d.x + py * d.y) / squared;
            s = s < 0 ? 0 : s > 1 ? 1 : s;
            float ex = px - s * d.x, ey = py - s * d.y, off = (ex * ex + ey * ey) / (r * r);
            size_t at = (size_t)y * (size_t)picture->width + (size_t)x;
            if (off >= 1)
                continue;
            float depth_mm = a.z + s * d.z - 1000 * radius_m * (1 - off);
            if (depth_mm >= (float)picture->depth_mm[at] || depth_mm < 1)
                continue;
            picture->depth_mm[at] = (uint16_t)depth_mm;
            for (int c = 0; c < 3; c++)
                picture->rgb[3 * at + (size_t)c] = (uint8_t)(colour[c] * (1 - 0.7f * off));
        }
}

static void draw_arm(const struct view *view, const struct picture *picture, const struct weir_arm_pose *arm,
                     uint64_t seed)
{
    static const float body[3] = {214, 216, 222}, joint[3] = {70, 74, 82};
    const float thing[3] = {weir_scene_range(seed, 90, 240), weir_scene_range(seed * 3, 60, 200), 80};
    struct weir_v3 palm = weir_v3_add(arm->wrist, weir_v3_mul(weir_v3_sub(arm->tip, arm->wrist), 0.4f));
    draw_rod(view, picture, arm->base, arm->shoulder, 0.046f, joint);
    draw_rod(view, picture, arm->shoulder, arm->elbow, 0.033f, body);
    draw_rod(view, picture, arm->elbow, arm->elbow, 0.04f, joint);
    draw_rod(view, picture, arm->elbow, arm->wrist, 0.026f, body);
    draw_rod(view, picture, arm->wrist, palm, 0.03f, joint);
    for (int side = -1; side <= 1; side += 2) {
        struct weir_v3 aside = weir_v3((float)side * (0.010f + 0.042f * arm->joint[6]), 0, 0);
        draw_rod(view, picture, weir_v3_add(palm, aside), weir_v3_add(arm->tip, aside), 0.008f, joint);
    }
    draw_rod(view, picture, arm->object, arm->object, 0.028f, thing);
}

/* ---- the sensor ---- */

/* Calibrated together with the backdrop: like camera frames, 640x480 frames have about 100 KB at JPEG quality 95
 * (4:2:0) and 22 KB at quality 50. */
static const int noise_luma = 16, noise_chroma = 5; /* standard deviations, in eighths of a level */

/* Returns the sum of eight uniform values, which is roughly normal with a standard deviation of 16. */
static int normal(uint64_t hash)
{
    int sum = 0;
    for (int i = 0; i < 8; i++)
        sum += (int)(hash >> (8 * i) & 255);
    return (sum - 1020) / 13;
}

static int8_t *noise_make(int width, uint64_t seed)
{
    size_t n = NOISE_PERIOD + (size_t)width;
    int8_t *noise = malloc(3 * n);
    for (size_t i = 0; noise && i < n; i++) {
        uint64_t hash = weir_scene_mix(seed, i % NOISE_PERIOD);
        for (int c = 0; c < 3; c++) {
            int v = normal(hash) * noise_luma + normal(weir_scene_mix(hash, (uint64_t)c)) * noise_chroma;
            noise[i * 3 + (size_t)c] = (int8_t)((v + (v < 0 ? -64 : 64)) / 128);
        }
    }
    return noise;
}

static void add_noise(const struct weir_scene *scene, const struct picture *picture, uint64_t seed)
{
    int n = 3 * picture->width;
    for (int y = 0; y < picture->height; y++) {
        const int8_t *restrict noise = scene->noise + 3 * (weir_scene_mix(seed, (uint64_t)y) % NOISE_PERIOD);
        uint8_t *restrict row = picture->rgb + (size_t)y * (size_t)n;
        for (int i = 0; i < n; i++) {
            int16_t v = (int16_t)(row[i] + noise[i]);
            row[i] = (uint8_t)(v < 0 ? 0 : v > 255 ? 255 : v);
        }
    }
}

/* ---- public functions ---- */

static uint64_t episode_seed(const struct weir_scene *scene, int episode)
{
    return weir_scene_mix(scene->config.seed, 1000 + (uint64_t)episode);
}

void weir_scene_render(const struct weir_scene *scene, int episode, int step, int camera, uint8_t *rgb,
                       uint16_t *depth_mm)
{
    const struct picture picture = {scene->config.width, scene->config.height, rgb, depth_mm};
    uint64_t seed = episode_seed(scene, episode), camera_seed = weir_scene_mix(seed, 2000 + (uint64_t)camera);
    struct mount mount = scene->mount[camera];
    struct weir_arm_pose arms[WEIR_SCENE_ARMS];
    for (int i = 0; i < WEIR_SCENE_ARMS; i++)
        weir_motion_pose(seed, scene->config.steps, i, step, &arms[i]);
    mount.x += (int)(seed & 1023); /* each episode shows a different part of the backdrop */
    struct view view = view_make(&mount, arms, camera_seed, (float)(step / scene->config.rate_hz), &picture);
    draw_backdrop(scene, &mount, &view, &picture);
    for (int i = 0; i < WEIR_SCENE_ARMS; i++)
        draw_arm(&view, &picture, &arms[i], weir_scene_mix(seed, 800 + (uint64_t)i));
    add_noise(scene, &picture, weir_scene_mix(camera_seed, (uint64_t)step));
}

static void tip_of(const struct weir_arm_pose *arm, float out[7])
{
    /* the gripper's rotation about z, followed by its pitch about y */
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
    scene->config.camera = NULL; /* was borrowed only during open */
    scene->noise = noise_make(config->width, weir_scene_mix(config->seed, 1));
    scene->mount = calloc((size_t)config->n_cameras, sizeof *scene->mount);
    int longest = config->width > config->height ? config->width : config->height;
    int rc = scene->noise && scene->mount ? 0 : -ENOMEM;
    if (rc == 0)
        rc = weir_backdrop_make(&scene->backdrop, longest, weir_scene_mix(config->seed, 10));
    if (rc < 0) {
        weir_scene_close(&scene);
        return rc;
    }
    for (int i = 0; i < config->n_cameras; i++)
        scene->mount[i] = mount_make(config->camera[i], i, weir_scene_mix(config->seed, 20 + (uint64_t)i));
    *out = scene;
    return 0;
}

void weir_scene_close(struct weir_scene **scene)
{
    if (!*scene)
        return;
    weir_backdrop_free(&(*scene)->backdrop);
    free((*scene)->noise);
    free((*scene)->mount);
    free(*scene);
    *scene = NULL;
}
