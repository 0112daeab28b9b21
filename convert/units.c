#include "convert/units.h"
#include "base/grow.h"
#include "base/shortage.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { UNIT_STEPS = 16, UNIT_FRAMES_MAX = 64, UNITS_A_WORKER = 3 };
static const size_t UNIT_BYTES = (size_t)64 << 20, WINDOW_BYTES = (size_t)512 << 20;

/* ---- planning units ---- */

static size_t pixels_of(const struct weir_convert_plan *plan, int camera)
{
    const struct weir_camera_probe *probe = &plan->probes[camera];
    size_t source = (size_t)probe->width * (size_t)probe->height * 3, copy = weir_transcode_pixels(plan, camera);
    return source > copy ? source : copy;
}

/* Returns the number of steps per unit and the memory of a unit. Units consist of whole chunks if the memory limit
 * permits it, so that no two threads decompress the same chunk. */
static int unit_steps(const struct weir_convert_plan *plan, int episode, int camera, int n_cameras, size_t *bytes)
{
    int steps = UNIT_STEPS;
    size_t step_bytes = 1;
    for (int c = camera; c < camera + n_cameras; c++) {
        int rows;
        if (weir_shares_blocks(plan->dataset, plan->episodes[episode], c, &rows) && rows > 0)
            steps = rows >= steps ? rows : steps / rows * rows;
        step_bytes += pixels_of(plan, c);
    }
    size_t fit = UNIT_BYTES / step_bytes, most = (size_t)(UNIT_FRAMES_MAX / n_cameras);
    fit = fit < most ? fit : most;
    fit = fit > 1 ? fit : 1;
    steps = (size_t)steps > fit ? (int)fit : steps;
    *bytes = step_bytes * (size_t)steps;
    return steps;
}

static int add(struct weir_units *units, struct weir_unit unit)
{
    if (!weir_grow(&units->units, units->n, sizeof *units->units))
        return -ENOMEM;
    units->units[units->n++] = unit;
    int frames = unit.n * unit.n_cameras;
    units->frames = frames > units->frames ? frames : units->frames;
    return 0;
}

int weir_units_make(struct weir_units *units, const struct weir_convert_plan *plan, bool by_step, int first_episode,
                    struct weir_err *err)
{
    int cameras = plan->copy.n_cameras, together = by_step ? cameras : 1, rc = 0;
    *units = (struct weir_units){0};
    for (int e = first_episode; e < plan->copy.n_episodes && rc == 0; e++) {
        int all = weir_dataset_steps(plan->dataset, plan->episodes[e]);
        if (cameras == 0)
            rc = add(units, (struct weir_unit){.episode = e, .n = all, .is_last = true});
        for (int c = 0; c < cameras && rc == 0; c += together) {
            size_t bytes;
            int steps = unit_steps(plan, e, c, together, &bytes);
            units->bytes = bytes > units->bytes ? bytes : units->bytes;
            for (int t = 0; t < all && rc == 0; t += steps) {
                int n = steps < all - t ? steps : all - t;
                rc = add(units, (struct weir_unit){e, c, together, t, n, t + n == all && c + together == cameras});
            }
        }
    }
    if (rc == 0)
        return 0;
    weir_units_free(units);
    return weir_err_set(err, rc, "out of memory");
}

void weir_units_free(struct weir_units *units)
{
    free(units->units);
    *units = (struct weir_units){0};
}

int weir_units_window(const struct weir_units *units, int workers)
{
    size_t fit = WINDOW_BYTES / (units->bytes + 1), wanted = (size_t)workers * UNITS_A_WORKER;
    fit = fit < wanted ? fit : wanted;
    return fit > 2 ? (int)fit : 2;
}

/* ---- slots ---- */

int weir_unit_slots_open(struct weir_unit_slot **slots, int n, const struct weir_units *units, struct weir_err *err)
{
    *slots = calloc((size_t)n, sizeof **slots);
    bool fine = *slots != NULL;
    for (int i = 0; i < n && fine; i++) {
        (*slots)[i].frames = calloc((size_t)units->frames + 1, sizeof *(*slots)[i].frames);
        fine = (*slots)[i].frames != NULL;
    }
    if (fine)
        return 0;
    weir_unit_slots_close(slots, n);
    return weir_no_memory(err);
}

void weir_unit_slots_close(struct weir_unit_slot **slots, int n)
{
    for (int i = 0; i < n && *slots; i++) {
        free((*slots)[i].bytes);
        free((*slots)[i].frames);
    }
    free(*slots);
    *slots = NULL;
}

static int keep(struct weir_unit_slot *slot, struct weir_unit_frame *frame, const uint8_t *bytes, size_t length)
{
    if (length > slot->capacity - slot->used) {
        size_t capacity = slot->capacity * 2 > slot->used + length ? slot->capacity * 2 : slot->used + length;
        void *more = realloc(slot->bytes, capacity);
        if (!more)
            return -ENOMEM;
        slot->bytes = more;
        slot->capacity = capacity;
    }
    memcpy(slot->bytes + slot->used, bytes, length);
    frame->offset = slot->used;
    frame->length = length;
    slot->used += length;
    return 0;
}

/* ---- converting frames ---- */

int weir_unit_bad(const struct weir_convert_plan *plan, int episode, int camera, int t, int code, const char *reason,
                  struct weir_err *err)
{
    char name[768];
    const char *advice = weir_is_shortage(code) ? weir_machine_advice(code) : NULL;
    weir_frame_name(plan->dataset, plan->episodes[episode], camera, t, name, sizeof name);
    return weir_err_set(err, code, "%s: %s%s%s", name, reason, advice ? "; " : "", advice ? advice : "");
}

struct task {
    struct weir_transcoder *t;
    const struct weir_unit *unit;
    int camera;
    struct weir_unit_slot *slot;
    struct weir_err *err;
};

/* Converts and stores a frame, or records its failure. */
static int take(void *user, int t, int code, const char *reason, const uint8_t *bytes, size_t length)
{
    const struct task *task = user;
    int camera = task->camera;
    const struct weir_unit *unit = task->unit;
    int episode = task->t->plan->episodes[unit->episode];
    struct weir_unit_frame *frame = &task->slot->frames[(t - unit->first) * unit->n_cameras + (camera - unit->camera)];
    *frame = (struct weir_unit_frame){.code = code};
    const uint8_t *made;
    size_t made_length;
    if (code == 0) {
        code = weir_transcode(task->t, episode, camera, bytes, length, &made, &made_length);
        reason = task->t->reason;
    }
    if (code == 0 && (code = keep(task->slot, frame, made, made_length)) < 0)
        reason = "out of memory";
    if (code == 0)
        return 0;
    if (weir_is_shortage(code) || code == -ESTALE)
        return weir_unit_bad(task->t->plan, unit->episode, camera, t, code, reason, task->err);
    frame->code = code;
    snprintf(frame->reason, sizeof frame->reason, "%s", reason);
    return 0;
}

int weir_unit_make(struct weir_transcoder *t, const struct weir_unit *unit, struct weir_unit_slot *slot,
                   struct weir_err *err)
{
    int rc = 0;
    slot->used = 0;
    for (int c = unit->camera; c < unit->camera + unit->n_cameras && rc == 0; c++) {
        struct task task = {t, unit, c, slot, err};
        rc = weir_fetch_frames(&t->fetcher, t->plan->episodes[unit->episode], c, unit->first, unit->n, take, &task);
    }
    return rc;
}
