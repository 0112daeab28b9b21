#include "datasets/synth/scene_priv.h"

#include <math.h>
#include <string.h>

/* ---- arithmetic ---- */

static const float pi = 3.14159265f;

uint64_t weir_scene_mix(uint64_t a, uint64_t b)
{
    uint64_t z = a + 0x9e3779b97f4a7c15u * (b + 1);
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
    return z ^ (z >> 31);
}

static float unit(uint64_t hash)
{
    return (float)(hash >> 40) * (1.0f / 16777216.0f);
}

float weir_scene_range(uint64_t hash, float lo, float hi)
{
    return lo + (hi - lo) * unit(hash);
}

float weir_scene_sin(float radians)
{
    float turns = radians * (0.5f / pi);
    float x = (turns - (float)weir_scene_floor(turns + 0.5f)) * (2.0f * pi);
    if (x > 0.5f * pi)
        x = pi - x;
    if (x < -0.5f * pi)
        x = -pi - x;
    float x2 = x * x;
    return x * (1.0f + x2 * (-1.0f / 6 + x2 * (1.0f / 120 + x2 * (-1.0f / 5040 + x2 * (1.0f / 362880)))));
}

float weir_scene_cos(float radians)
{
    return weir_scene_sin(radians + 0.5f * pi);
}

/* Arctangent on 0..1 (Abramowitz and Stegun 4.4.49). */
static float atan_unit(float x)
{
    float x2 = x * x;
    float sum = -0.0161657367f + x2 * 0.0028662257f;
    sum = 0.0429096138f + x2 * sum;
    sum = -0.0752896400f + x2 * sum;
    sum = 0.1065626393f + x2 * sum;
    sum = -0.1420889944f + x2 * sum;
    sum = 0.1999355085f + x2 * sum;
    sum = -0.3333314528f + x2 * sum;
    return x * (1.0f + x2 * sum);
}

float weir_scene_atan2(float y, float x)
{
    float ax = x < 0 ? -x : x, ay = y < 0 ? -y : y;
    if (ax + ay == 0)
        return 0;
    float angle = ay <= ax ? atan_unit(ay / ax) : 0.5f * pi - atan_unit(ax / ay);
    if (x < 0)
        angle = pi - angle;
    return y < 0 ? -angle : angle;
}

static float arc_cosine(float x)
{
    x = x > 1 ? 1 : x < -1 ? -1 : x;
    return weir_scene_atan2(sqrtf(1 - x * x), x);
}

/* ---- the plan: pick, carry, place, return ---- */

struct key {
    float phase;
    int place;   /* 0 = rest, 1 = source, 2 = destination */
    float above; /* metres above the grasp */
    float open;  /* opening of the gripper, 0..1 */
};

static const struct key keys[] = {
    {0.00f, 0, 0.16f, 0.70f}, {0.18f, 1, 0.14f, 0.85f}, {0.30f, 1, 0.00f, 0.85f}, {0.38f, 1, 0.00f, 0.28f},
    {0.48f, 1, 0.15f, 0.28f}, {0.66f, 2, 0.15f, 0.28f}, {0.76f, 2, 0.00f, 0.28f}, {0.83f, 2, 0.00f, 0.80f},
    {0.91f, 2, 0.14f, 0.80f}, {1.00f, 0, 0.16f, 0.70f},
};

static const float grasp_from = 0.38f, grasp_to = 0.76f;

enum { CYCLE_MIN_STEPS = 100, CYCLE_MAX_STEPS = 300, KEYS = sizeof keys / sizeof keys[0] };

static const float upper_m = 0.30f, fore_m = 0.30f, hand_m = 0.15f, shoulder_m = 0.16f;

static struct weir_v3 arm_base(int arm)
{
    return weir_v3(arm == 0 ? -0.46f : 0.46f, 0.16f, 0.0f);
}

/* Returns half the edge length of an arm's object. */
static float object_half(uint64_t episode_seed, int arm)
{
    return weir_scene_range(weir_scene_mix(episode_seed, 900 + (uint64_t)arm), 0.018f, 0.026f);
}

/* Each arm has its own half of the table, so the arms never collide. */
static struct weir_v3 spot(uint64_t seed, int arm, int which)
{
    uint64_t key = weir_scene_mix(seed, 100 + (uint64_t)(arm * 10 + which));
    float x = weir_scene_range(key, 0.07f, 0.30f);
    float y = which == 1 ? weir_scene_range(weir_scene_mix(key, 1), 0.24f, 0.36f)
                         : weir_scene_range(weir_scene_mix(key, 1), 0.42f, 0.54f);
    if (which == 0)
        x = 0.22f, y = 0.30f;
    return weir_v3(arm == 0 ? -x : x, y, 0);
}

/* Returns a smooth random function of time, -1..1, which resembles an unsteady hand. */
static float wobble(uint64_t seed, double time)
{
    double base = floor(time);
    float s = (float)(time - base);
    uint64_t i = (uint64_t)(int64_t)base;
    float a = weir_scene_range(weir_scene_mix(seed, i), -1, 1),
          b = weir_scene_range(weir_scene_mix(seed, i + 1), -1, 1);
    return a + (b - a) * s * s * (3 - 2 * s);
}

struct plan {
    struct weir_v3 tip;
    float open;
    float phase;
    struct weir_v3 source, destination;
    int64_t cycle;
    double time; /* in cycles */
};

static struct plan plan_at(uint64_t seed, int steps, int arm, int step)
{
    int cycles = (steps + CYCLE_MAX_STEPS - 1) / CYCLE_MAX_STEPS;
    int length = cycles < 1 ? CYCLE_MIN_STEPS : steps / cycles;
    if (length < CYCLE_MIN_STEPS)
        length = CYCLE_MIN_STEPS;
    struct plan plan = {.time = (double)step / length + (arm == 0 ? 0.12 : 0.57)};
    plan.cycle = (int64_t)floor(plan.time);
    plan.phase = (float)(plan.time - (double)plan.cycle);
    bool there = plan.cycle & 1;
    plan.source = spot(seed, arm, there ? 2 : 1);
    plan.destination = spot(seed, arm, there ? 1 : 2);

    int k = 0;
    while (k < KEYS - 2 && plan.phase >= keys[k + 1].phase)
        k++;
    const struct key *from = &keys[k], *to = &keys[k + 1];
    struct weir_v3 places[3] = {spot(seed, arm, 0), plan.source, plan.destination};
    float grasp = object_half(seed, arm);
    float s = (plan.phase - from->phase) / (to->phase - from->phase);
    float smooth = s * s * s * (10 + s * (6 * s - 15)); /* minimum-jerk profile */
    struct weir_v3 a = places[from->place], b = places[to->place];
    a.z = grasp + from->above;
    b.z = grasp + to->above;
    plan.tip = weir_v3_add(a, weir_v3_mul(weir_v3_sub(b, a), smooth));
    plan.open = from->open + (to->open - from->open) * smooth;
    return plan;
}

/* ---- kinematics ---- */

static void inverse(struct weir_v3 base, struct weir_v3 tip, float lean, float *joint)
{
    float dx = tip.x - base.x, dy = tip.y - base.y;
    float reach = sqrtf(dx * dx + dy * dy) - hand_m * weir_scene_sin(lean);
    float height = tip.z + hand_m * weir_scene_cos(lean) - shoulder_m;
    float distance = sqrtf(reach * reach + height * height);
    float longest = (upper_m + fore_m) * 0.995f;
    distance = distance > longest ? longest : distance < 0.08f ? 0.08f : distance;
    float inner = (upper_m * upper_m + distance * distance - fore_m * fore_m) / (2 * upper_m * distance);
    float bend = (upper_m * upper_m + fore_m * fore_m - distance * distance) / (2 * upper_m * fore_m);
    joint[0] = weir_scene_atan2(dy, dx);
    joint[1] = weir_scene_atan2(height, reach) + arc_cosine(inner);
    joint[2] = arc_cosine(bend) - pi;
    joint[4] = lean - 0.5f * pi - joint[1] - joint[2];
}

static struct weir_v3 in_plane(float yaw, float along, float up)
{
    return weir_v3(weir_scene_cos(yaw) * along, weir_scene_sin(yaw) * along, up);
}

static void forward(struct weir_arm_pose *pose)
{
    const float *j = pose->joint;
    float pitch = j[1];
    pose->shoulder = weir_v3_add(pose->base, weir_v3(0, 0, shoulder_m));
    pose->elbow =
        weir_v3_add(pose->shoulder, in_plane(j[0], upper_m * weir_scene_cos(pitch), upper_m * weir_scene_sin(pitch)));
    pitch += j[2];
    pose->wrist =
        weir_v3_add(pose->elbow, in_plane(j[0], fore_m * weir_scene_cos(pitch), fore_m * weir_scene_sin(pitch)));
    pitch += j[4];
    struct weir_v3 ahead = in_plane(j[0], weir_scene_cos(pitch), weir_scene_sin(pitch));
    pose->tip = weir_v3_add(pose->wrist, weir_v3_mul(ahead, hand_m));
}

void weir_motion_pose(uint64_t episode_seed, int steps, int arm, int step, struct weir_arm_pose *pose)
{
    memset(pose, 0, sizeof *pose);
    struct plan plan = plan_at(episode_seed, steps, arm, step);
    uint64_t hand = weir_scene_mix(episode_seed, 700 + (uint64_t)arm);
    struct weir_v3 tip = plan.tip;
    tip.x += 0.004f * wobble(weir_scene_mix(hand, 1), plan.time * 9);
    tip.y += 0.004f * wobble(weir_scene_mix(hand, 2), plan.time * 9);
    tip.z += 0.002f * wobble(weir_scene_mix(hand, 3), plan.time * 11);
    pose->base = arm_base(arm);
    inverse(pose->base, tip, 0.5f + 0.12f * wobble(weir_scene_mix(hand, 4), plan.time * 4), pose->joint);
    pose->joint[3] = 0.05f * wobble(weir_scene_mix(hand, 5), plan.time * 5);
    pose->joint[5] = 0.35f * wobble(weir_scene_mix(hand, 6), plan.time * 3);
    pose->joint[6] = plan.open;
    forward(pose);

    pose->holding = plan.phase >= grasp_from && plan.phase < grasp_to;
    pose->object = plan.phase < grasp_from ? plan.source : plan.destination;
    pose->object.z = object_half(episode_seed, arm);
    if (pose->holding)
        pose->object = tip;
}
