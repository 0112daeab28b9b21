/* Device memory that is allocated from open to close: clips, queries and results. */
#include "base/text.h"
#include "extras/motion/clips/motion_clips.h"
#include "extras/motion/motion_priv.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

int weir_motion_part_width(const struct weir_motion *m, enum weir_motion_part part)
{
    switch (part) {
    case WEIR_MOTION_PART_QUAT:
        return 4;
    case WEIR_MOTION_PART_DOF_POS:
    case WEIR_MOTION_PART_DOF_VEL:
        return m->dofs;
    case WEIR_MOTION_PART_BODIES:
        return 3 * m->bodies;
    default:
        return 3;
    }
}

/* ---- memory ---- */

static void tell_reserved(struct weir_motion *m)
{
    int64_t now = (int64_t)m->ops->reserved(m->self);
    if (now != m->reserved)
        weir_memory_reserved(now - m->reserved, m->device);
    m->reserved = now;
}

void *weir_motion_take(struct weir_motion *m, size_t bytes)
{
    void *address = m->ops->allocate(m->self, bytes);
    if (!address)
        return NULL;
    tell_reserved(m);
    weir_memory_allocated(address, bytes, m->device);
    return address;
}

void weir_motion_give(struct weir_motion *m, struct weir_motion_memory *memory)
{
    if (!memory->address)
        return;
    weir_memory_freed(memory->address, memory->bytes, m->device);
    m->ops->release(m->self, memory->address, memory->bytes);
    tell_reserved(m);
    *memory = (struct weir_motion_memory){NULL, 0};
}

static void *keep(struct weir_motion *m, size_t bytes)
{
    assert(m->n_kept < WEIR_MOTION_KEPT);
    void *address = weir_motion_take(m, bytes);
    if (address)
        m->kept[m->n_kept++] = (struct weir_motion_memory){address, bytes};
    return address;
}

void weir_motion_tables_close(struct weir_motion *m)
{
    while (m->n_kept > 0)
        weir_motion_give(m, &m->kept[--m->n_kept]);
    if (m->reserved)
        weir_memory_reserved(-m->reserved, m->device);
    m->reserved = 0;
    free(m->host_spans);
    m->host_spans = NULL;
}

/* Allocates kept memory for n * width numbers plus WEIR_MOTION_SPARE. NULL if the size overflows or memory is
 * exhausted. */
static void *keep_numbers(struct weir_motion *m, size_t n, size_t width, size_t size)
{
    size_t numbers, bytes;
    if (__builtin_mul_overflow(n, width, &numbers) || __builtin_add_overflow(numbers, WEIR_MOTION_SPARE, &numbers) ||
        __builtin_mul_overflow(numbers, size, &bytes))
        return NULL;
    return keep(m, bytes);
}

/* ---- clips ---- */

static const float *part_of(const struct weir_motion_clips *clips, enum weir_motion_part part)
{
    switch (part) {
    case WEIR_MOTION_PART_POS:
        return clips->root_pos_w;
    case WEIR_MOTION_PART_QUAT:
        return clips->root_quat;
    case WEIR_MOTION_PART_VEL:
        return clips->root_vel_w;
    case WEIR_MOTION_PART_ANG_VEL:
        return clips->root_ang_vel_w;
    case WEIR_MOTION_PART_DOF_POS:
        return clips->dof_pos;
    case WEIR_MOTION_PART_DOF_VEL:
        return clips->dof_vel;
    default:
        return clips->key_body_pos_w;
    }
}

static int part_begin(const struct weir_motion_row *row, enum weir_motion_part part)
{
    const int begins[WEIR_MOTION_PARTS] = {row->pos,     row->quat,    row->vel,   row->ang_vel,
                                           row->dof_pos, row->dof_vel, row->bodies};
    return begins[part];
}

static int bring_parts(struct weir_motion *m, const struct weir_motion_clips *clips)
{
    for (int part = 0; part < WEIR_MOTION_PARTS; part++) {
        size_t width = (size_t)weir_motion_part_width(m, part);
        m->parts[part] = keep_numbers(m, m->frames, width, sizeof(float));
        if (!m->parts[part])
            return -ENOMEM;
        m->ops->copy_in(m->self, m->parts[part], part_of(clips, part), m->frames * width * sizeof(float));
    }
    return 0;
}

static int bring_rows(struct weir_motion *m, const struct weir_motion_clips *clips)
{
    size_t stride = (size_t)m->row.stride, numbers = m->frames * stride + WEIR_MOTION_SPARE;
    float *packed = calloc(numbers, sizeof *packed);
    m->rows = packed ? keep_numbers(m, m->frames, stride, sizeof(float)) : NULL;
    for (int part = 0; part < WEIR_MOTION_PARTS && m->rows; part++) {
        size_t width = (size_t)weir_motion_part_width(m, part);
        const float *from = part_of(clips, part);
        float *to = packed + part_begin(&m->row, part);
        for (size_t i = 0; i < m->frames; i++)
            memcpy(to + i * stride, from + i * width, width * sizeof *to);
    }
    if (m->rows)
        m->ops->copy_in(m->self, m->rows, packed, numbers * sizeof *packed);
    free(packed);
    return m->rows ? 0 : -ENOMEM;
}

/* Copies one member of all spans to a new device array. */
#define BRING_MEMBER(TO, TYPE, VALUE)                                                                                  \
    do {                                                                                                               \
        TYPE *values = calloc(m->clips, sizeof *values);                                                               \
        for (size_t i = 0; values && i < m->clips; i++)                                                                \
            values[i] = (TYPE)m->host_spans[i].VALUE;                                                                  \
        TO = values ? keep_numbers(m, m->clips, 1, sizeof *values) : NULL;                                             \
        if (TO)                                                                                                        \
            m->ops->copy_in(m->self, TO, values, m->clips * sizeof *values);                                           \
        free(values);                                                                                                  \
    } while (0)

static int bring_clips(struct weir_motion *m)
{
    BRING_MEMBER(m->clip_frames, int64_t, last + 1);
    BRING_MEMBER(m->clip_first, int64_t, first);
    BRING_MEMBER(m->clip_duration, float, duration_s);
    BRING_MEMBER(m->clip_loops, uint8_t, loops);
    return m->clip_frames && m->clip_first && m->clip_duration && m->clip_loops ? 0 : -ENOMEM;
}

static int bring_spans(struct weir_motion *m)
{
    m->spans = keep_numbers(m, m->clips, 1, sizeof *m->spans);
    if (m->spans)
        m->ops->copy_in(m->self, m->spans, m->host_spans, m->clips * sizeof *m->spans);
    return m->spans ? 0 : -ENOMEM;
}

static int make_spans(struct weir_motion *m, const struct weir_motion_clips *clips)
{
    m->host_spans = calloc(m->clips, sizeof *m->host_spans);
    for (size_t i = 0; m->host_spans && i < m->clips; i++) {
        const struct weir_motion_clip *clip = &clips->clip[i];
        m->host_spans[i] = (struct weir_motion_span){.first = (int32_t)clip->first_frame,
                                                     .last = (int32_t)(clip->frames - 1),
                                                     .duration_s = (float)clip->duration_s,
                                                     .loops = clip->loop};
    }
    return m->host_spans ? 0 : -ENOMEM;
}

/* ---- queries ---- */

static int take_queries(struct weir_motion *m)
{
    m->clip_of = keep_numbers(m, m->config.envs, 1, sizeof *m->clip_of);
    m->times = keep_numbers(m, m->queries, 1, sizeof *m->times);
    for (int result = 0; result < WEIR_MOTION_RESULTS; result++) {
        m->results[result] = keep_numbers(m, m->queries, (size_t)weir_motion_result_width(m, result), sizeof(float));
        if (!m->results[result])
            return -ENOMEM;
    }
    if (!m->clip_of || !m->times)
        return -ENOMEM;
    if (m->config.variant == WEIR_MOTION_FUSED || !m->config.advice.indices)
        return 0;
    m->query_last = keep_numbers(m, m->queries, 1, sizeof *m->query_last);
    m->query_first = keep_numbers(m, m->queries, 1, sizeof *m->query_first);
    m->query_duration = keep_numbers(m, m->queries, 1, sizeof *m->query_duration);
    m->query_loops = keep_numbers(m, m->queries, 1, sizeof *m->query_loops);
    return m->query_last && m->query_first && m->query_duration && m->query_loops ? 0 : -ENOMEM;
}

/* Estimates the total memory: frames, queries and results. The variant ops also needs temporaries, of which the largest
 * in a fetch are both frames, the blended values, and the copies for bodies. */
static double bytes_needed(const struct weir_motion *m)
{
    double row = m->row.stride, query = m->row.used + 12;
    if (m->config.variant == WEIR_MOTION_OPS)
        query += 3 * row + 16 * m->bodies + 80;
    return sizeof(float) * (row * (double)m->frames + query * (double)m->queries);
}

int weir_motion_tables_open(struct weir_motion *m, const struct weir_motion_clips *clips, struct weir_err *err)
{
    bool fused = m->config.variant == WEIR_MOTION_FUSED;
    double needed = bytes_needed(m), available = (double)m->ops->available_bytes(m->self);
    int rc = available > 0 && needed > available ? -ENOMEM : make_spans(m, clips);
    if (rc == 0)
        rc = fused ? bring_spans(m) : bring_clips(m);
    if (rc == 0)
        rc = fused || m->config.advice.indices ? bring_rows(m, clips) : bring_parts(m, clips);
    if (rc == 0)
        rc = take_queries(m);
    if (rc < 0)
        weir_err_set(err, rc,
                     "motion: %zu queries and %zu frames need about %s of memory, but only %s is free; use fewer "
                     "environments",
                     m->queries, m->frames, weir_size(needed).text, weir_size(available).text);
    return rc;
}

/* Copies one member of each query's span to a device array. */
#define EXPAND_MEMBER(TO, TYPE, VALUE)                                                                                 \
    do {                                                                                                               \
        TYPE *values = memory;                                                                                         \
        for (size_t i = 0; i < m->queries; i++)                                                                        \
            values[i] = (TYPE)m->host_spans[clips[i / (size_t)m->config.steps]].VALUE;                                 \
        m->ops->copy_in(m->self, TO, values, m->queries * sizeof *values);                                             \
    } while (0)

int weir_motion_tables_expand(struct weir_motion *m, const int64_t *clips, struct weir_err *err)
{
    if (!m->query_last)
        return 0;
    void *memory = calloc(m->queries, sizeof(int64_t));
    if (!memory)
        return weir_err_set(err, -ENOMEM, "out of memory");
    EXPAND_MEMBER(m->query_last, int64_t, last);
    EXPAND_MEMBER(m->query_first, int64_t, first);
    EXPAND_MEMBER(m->query_duration, float, duration_s);
    EXPAND_MEMBER(m->query_loops, uint8_t, loops);
    free(memory);
    return 0;
}
