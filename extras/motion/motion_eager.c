/* The variant ops: the trainer's fetch as an eager framework runs it, one operator at a time. Each operator is recorded
 * under PyTorch's name, with the shapes of its operands. Each result is allocated when it is computed, and freed when
 * Python would free it: after its use if it has no name, or at the end of the function if it is a variable. */
#include "extras/motion/motion_priv.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>

typedef struct weir_motion_array array;
typedef struct weir_motion_operator operation;

/* ---- names ---- */

enum label {
    ARANGE,
    INDEX,
    INDEX_PUT,
    REPEAT,
    CLONE,
    COPY,
    TO_COPY,
    ADD,
    SUB,
    RSUB,
    MUL,
    DIV,
    MINIMUM,
    FLOOR,
    CLAMP,
    NEG,
    ABS,
    LT,
    WHERE,
    ACOS,
    SIN,
    SUM,
    LERP,
    LERP_IN_PLACE,
    ADDCMUL,
    CROSS,
    CAT,
    SLERP,
    LABELS
};

/* Names as in torch.profiler. The last one does not exist in PyTorch. */
static const struct {
    enum weir_motion_kind kind;
    const char *name;
} labels[LABELS] = {
    [ARANGE] = {WEIR_MOTION_ARANGE, "aten::arange"},
    [INDEX] = {WEIR_MOTION_INDEX, "aten::index"},
    [INDEX_PUT] = {WEIR_MOTION_INDEX_PUT, "aten::index_put_"},
    [REPEAT] = {WEIR_MOTION_COPY, "aten::repeat_interleave"},
    [CLONE] = {WEIR_MOTION_COPY, "aten::clone"},
    [COPY] = {WEIR_MOTION_COPY, "aten::copy_"},
    [TO_COPY] = {WEIR_MOTION_COPY, "aten::_to_copy"},
    [ADD] = {WEIR_MOTION_ADD, "aten::add"},
    [SUB] = {WEIR_MOTION_SUB, "aten::sub"},
    [RSUB] = {WEIR_MOTION_RSUB, "aten::rsub"},
    [MUL] = {WEIR_MOTION_MUL, "aten::mul"},
    [DIV] = {WEIR_MOTION_DIV, "aten::div"},
    [MINIMUM] = {WEIR_MOTION_MINIMUM, "aten::minimum"},
    [FLOOR] = {WEIR_MOTION_FLOOR, "aten::floor"},
    [CLAMP] = {WEIR_MOTION_CLAMP, "aten::clamp"},
    [NEG] = {WEIR_MOTION_NEG, "aten::neg"},
    [ABS] = {WEIR_MOTION_ABS, "aten::abs"},
    [LT] = {WEIR_MOTION_LT, "aten::lt"},
    [WHERE] = {WEIR_MOTION_WHERE, "aten::where"},
    [ACOS] = {WEIR_MOTION_ACOS, "aten::acos"},
    [SIN] = {WEIR_MOTION_SIN, "aten::sin"},
    [SUM] = {WEIR_MOTION_SUM, "aten::sum"},
    [LERP] = {WEIR_MOTION_LERP, "aten::lerp"},
    [LERP_IN_PLACE] = {WEIR_MOTION_LERP, "aten::lerp_"},
    [ADDCMUL] = {WEIR_MOTION_ADDCMUL, "aten::addcmul"},
    [CROSS] = {WEIR_MOTION_CROSS, "aten::linalg_cross"},
    [CAT] = {WEIR_MOTION_CAT, "aten::cat"},
    [SLERP] = {WEIR_MOTION_SLERP, "weir::fast_slerp"},
};

int weir_motion_eager_open(struct weir_motion *m)
{
    m->eager.names = calloc(LABELS, sizeof *m->eager.names);
    for (int i = 0; m->eager.names && i < LABELS; i++)
        m->eager.names[i] = weir_name_intern(labels[i].name, WEIR_CAT_CPU_OP);
    return m->eager.names ? 0 : -ENOMEM;
}

void weir_motion_eager_close(struct weir_motion *m)
{
    for (int i = 0; i < WEIR_MOTION_OPERATORS_MAX; i++)
        weir_motion_give(m, &m->eager.made[i]);
    free(m->eager.names);
    m->eager.names = NULL;
}

/* ---- arrays ---- */

static array array_of(void *data, enum weir_motion_type type, size_t rows, int columns)
{
    return (array){
        .data = data, .type = type, .rows = rows, .columns = columns, .stride = (size_t)columns, .repeat = 1};
}

/* Returns a result without memory. apply allocates it. */
static array fresh(enum weir_motion_type type, size_t rows, int columns)
{
    return array_of(NULL, type, rows, columns);
}

static array columns_of(array a, int first, int n)
{
    a.data = a.data ? (float *)a.data + first : NULL;
    a.columns = n;
    a.inner = 0;
    return a;
}

/* Returns the array with each row repeated, without copying. */
static array repeated(array a, int times)
{
    a.rows *= (size_t)times;
    a.repeat = times;
    return a;
}

/* Returns an array that views the same memory as different rows and columns. */
static array reshaped(array a, size_t rows, int columns)
{
    assert(a.stride == (size_t)a.columns && a.repeat == 1);
    return array_of(a.data, a.type, rows, columns);
}

static size_t bytes_of(const array *a)
{
    size_t size = a->type == WEIR_MOTION_I64 ? sizeof(int64_t) : a->type == WEIR_MOTION_F32 ? sizeof(float) : 1;
    return a->rows * (size_t)a->columns * size;
}

/* ---- an operator ---- */

static uint32_t shapes_of(const operation *o)
{
    static const char *const names[] = {"float", "long int", "bool"};
    const array *const arrays[] = {&o->x, &o->y, &o->z};
    const char *types[3];
    int64_t sizes[9];
    int ranks[3], n = 0, used = 0;
    for (int i = 0; i < 3; i++) {
        const array *a = arrays[i];
        if (!a->data)
            continue;
        ranks[n] = a->inner ? 3 : a->columns > 1 ? 2 : 1;
        types[n++] = names[a->type];
        sizes[used++] = (int64_t)a->rows;
        if (a->inner)
            sizes[used++] = a->columns / a->inner;
        if (a->columns > 1)
            sizes[used++] = a->inner ? a->inner : a->columns;
    }
    return weir_shapes_intern(n, ranks, sizes, types);
}

static void *make(struct weir_motion *m, const array *r)
{
    struct weir_motion_memory *made = &m->eager.made[m->eager.count];
    if (!made->address && !m->eager.no_memory) {
        made->bytes = bytes_of(r);
        made->address = weir_motion_take(m, made->bytes);
    }
    m->eager.no_memory |= !made->address;
    return made->address;
}

/* Runs an operator and returns its result. Allocates the result if it has no memory. */
static array apply(struct weir_motion *m, enum label label, operation o)
{
    struct weir_motion_eager *e = &m->eager;
    assert(e->count < WEIR_MOTION_OPERATORS_MAX);
    struct weir_range range = weir_range_begin(e->names[label]);
    if (weir_recording() & WEIR_RECORDING_SHAPES) {
        if (!e->shapes[e->count])
            e->shapes[e->count] = shapes_of(&o);
        weir_range_shapes(&range, e->shapes[e->count]);
    }
    o.kind = labels[label].kind;
    if (!o.r.data)
        o.r.data = make(m, &o.r);
    if (!e->no_memory)
        m->ops->operate(m->self, &o);
    e->count++;
    weir_range_end(&range);
    return o.r;
}

/* Frees a result that is no longer used. */
static void drop(struct weir_motion *m, array a)
{
    for (int i = m->eager.count - 1; i >= 0 && !m->config.advice.preallocated; i--)
        if (m->eager.made[i].address && m->eager.made[i].address == a.data) {
            weir_motion_give(m, &m->eager.made[i]);
            return;
        }
}

/* Frees all results made since operator "first", except those that one of the n arrays in "but" points into. */
static void drop_since(struct weir_motion *m, int first, const array *but, int n)
{
    for (int i = first; i < m->eager.count && !m->config.advice.preallocated; i++) {
        struct weir_motion_memory *made = &m->eager.made[i];
        bool used = false;
        for (int j = 0; j < n && made->address; j++) {
            uintptr_t at = (uintptr_t)but[j].data, begin = (uintptr_t)made->address;
            used |= at >= begin && at - begin < made->bytes;
        }
        if (!used)
            weir_motion_give(m, made);
    }
}

/* Run operators with one operand and an optional scalar (apply1), or with two operands (apply2). */
static array apply1(struct weir_motion *m, enum label label, array x, double scalar)
{
    return apply(m, label, (operation){.r = fresh(x.type, x.rows, x.columns), .x = x, .scalar = scalar});
}

static array apply2(struct weir_motion *m, enum label label, array x, array y)
{
    return apply(m, label, (operation){.r = fresh(x.type, x.rows, x.columns), .x = x, .y = y});
}

static array index_rows(struct weir_motion *m, array x, array at)
{
    return apply(m, INDEX, (operation){.r = fresh(x.type, at.rows, x.columns), .x = x, .y = at});
}

/* ---- prepare_query ---- */

struct query {
    array envs;         /* indices of the environments; data is NULL with advice.indices */
    array clips, times; /* one row per query; clips.data is NULL with advice.indices */
};

static void prepare_query(struct weir_motion *m, struct query *q)
{
    WEIR_RANGE("prepare_query");
    const struct weir_motion_advice *advice = &m->config.advice;
    int steps = m->config.steps;
    array times = array_of(m->times, WEIR_MOTION_F32, m->config.envs, steps);
    array clips = array_of(m->clip_of, WEIR_MOTION_I64, m->config.envs, 1);
    q->times = reshaped(advice->indices ? times : index_rows(m, times, q->envs), m->queries, 1);
    if (advice->indices)
        return;
    q->clips = repeated(index_rows(m, clips, q->envs), steps);
    if (advice->no_copies)
        return;
    array once = q->clips;
    q->clips = apply1(m, REPEAT, once, 0);
    drop(m, once);
}

/* ---- calc_frame_blend ---- */

/* Arrays with one row per query and one column. */
struct frames {
    array first, next; /* row numbers of the two frames in the tables */
    array blend;
};

/* Data of each query's clip. */
struct spans {
    array last, duration, loops, first;
};

static struct spans spans_of(struct weir_motion *m, const struct query *q)
{
    if (m->config.advice.indices)
        return (struct spans){array_of(m->query_last, WEIR_MOTION_I64, m->queries, 1),
                              array_of(m->query_duration, WEIR_MOTION_F32, m->queries, 1),
                              array_of(m->query_loops, WEIR_MOTION_BOOL, m->queries, 1),
                              array_of(m->query_first, WEIR_MOTION_I64, m->queries, 1)};
    struct spans s;
    array frames = index_rows(m, array_of(m->clip_frames, WEIR_MOTION_I64, m->clips, 1), q->clips);
    s.duration = index_rows(m, array_of(m->clip_duration, WEIR_MOTION_F32, m->clips, 1), q->clips);
    s.loops = index_rows(m, array_of(m->clip_loops, WEIR_MOTION_BOOL, m->clips, 1), q->clips);
    s.first = index_rows(m, array_of(m->clip_first, WEIR_MOTION_I64, m->clips, 1), q->clips);
    s.last = apply1(m, SUB, frames, 1);
    return s;
}

static struct frames calc_frame_blend(struct weir_motion *m, const struct query *q)
{
    WEIR_RANGE("calc_frame_blend");
    struct spans s = spans_of(m, q);
    array phase = apply2(m, DIV, q->times, s.duration);
    array whole = apply1(m, FLOOR, phase, 0), wrapped = apply2(m, SUB, phase, whole);
    drop(m, whole);
    array chosen = apply(
        m, WHERE, (operation){.r = fresh(WEIR_MOTION_F32, m->queries, 1), .x = s.loops, .y = wrapped, .z = phase});
    array clamped =
        apply(m, CLAMP, (operation){.r = fresh(WEIR_MOTION_F32, m->queries, 1), .x = chosen, .scalar = 0, .high = 1});
    drop(m, chosen);
    array place = apply2(m, MUL, clamped, s.last);
    array frame = apply(m, TO_COPY, (operation){.r = fresh(WEIR_MOTION_I64, m->queries, 1), .x = place});
    array after = apply1(m, ADD, frame, 1), next = apply2(m, MINIMUM, after, s.last);
    drop(m, after);
    struct frames f = {.blend = apply2(m, SUB, place, frame)};
    f.first = apply2(m, ADD, frame, s.first);
    f.next = apply2(m, ADD, next, s.first);
    return f;
}

/* ---- indexing_data ---- */

static void index_data(struct weir_motion *m, const struct frames *f, array at[2][WEIR_MOTION_PARTS])
{
    WEIR_RANGE("indexing_data");
    const struct weir_motion_row *row = &m->row;
    const int begins[WEIR_MOTION_PARTS] = {row->pos,     row->quat,    row->vel,   row->ang_vel,
                                           row->dof_pos, row->dof_vel, row->bodies};
    array whole[2], table = array_of(m->rows, WEIR_MOTION_F32, m->frames, row->stride);
    for (int i = 0; i < 2 && m->rows; i++)
        whole[i] = index_rows(m, table, i ? f->next : f->first);
    for (int part = 0; part < WEIR_MOTION_PARTS; part++) {
        int width = weir_motion_part_width(m, part);
        table = array_of(m->parts[part], WEIR_MOTION_F32, m->frames, width);
        table.inner = part == WEIR_MOTION_PART_BODIES ? 3 : 0;
        for (int i = 0; i < 2; i++)
            at[i][part] =
                m->rows ? columns_of(whole[i], begins[part], width) : index_rows(m, table, i ? f->next : f->first);
        at[0][part].inner = at[1][part].inner = table.inner;
    }
}

/* ---- interpolation ---- */

/* Returns the array for a result: its final destination with advice.preallocated, otherwise without memory. */
static array result_array(const struct weir_motion *m, enum weir_motion_result result)
{
    array r = array_of(m->results[result], WEIR_MOTION_F32, m->queries, weir_motion_result_width(m, result));
    r.data = m->config.advice.preallocated ? r.data : NULL;
    return r;
}

/* Interpolates between the unit quaternions q0 and q1. The cosine is kept below 1, because the sine of the angle is a
 * divisor. At that limit the weights equal those of lerp, and the result still has length 1 except for rounding. */
static array slerp(struct weir_motion *m, array q0, array q1, array blend)
{
    array r = result_array(m, WEIR_MOTION_ROOT_QUAT);
    if (m->config.advice.fast_slerp)
        return apply(m, SLERP, (operation){.r = r, .x = q0, .y = q1, .z = blend});
    array products = apply2(m, MUL, q0, q1);
    array dot = apply(m, SUM, (operation){.r = fresh(WEIR_MOTION_F32, m->queries, 1), .x = products});
    drop(m, products);
    array far = apply(m, LT, (operation){.r = fresh(WEIR_MOTION_BOOL, m->queries, 1), .x = dot});
    array minus = apply1(m, NEG, q1, 0);
    array near =
        apply(m, WHERE, (operation){.r = fresh(WEIR_MOTION_F32, m->queries, 4), .x = far, .y = minus, .z = q1});
    drop(m, minus);
    array cosine = apply1(m, ABS, dot, 0);
    array below =
        apply(m, CLAMP, (operation){.r = fresh(WEIR_MOTION_F32, m->queries, 1), .x = cosine, .high = 0x1.fffffep-1});
    drop(m, cosine);
    array angle = apply1(m, ACOS, below, 0), sine = apply1(m, SIN, angle, 0);
    drop(m, below);
    array rest = apply1(m, RSUB, blend, 1), part0 = apply2(m, MUL, rest, angle), sine0 = apply1(m, SIN, part0, 0);
    drop(m, rest);
    drop(m, part0);
    array weight0 = apply2(m, DIV, sine0, sine);
    drop(m, sine0);
    array part1 = apply2(m, MUL, blend, angle), sine1 = apply1(m, SIN, part1, 0);
    drop(m, part1);
    array weight1 = apply2(m, DIV, sine1, sine);
    drop(m, sine1);
    array side0 = apply2(m, MUL, q0, weight0), side1 = apply2(m, MUL, near, weight1);
    r = apply(m, ADD, (operation){.r = r, .x = side0, .y = side1});
    drop(m, side0);
    drop(m, side1);
    return r;
}

/* Returns the result that a part is blended into; WEIR_MOTION_RESULTS for bodies in the world frame, which are not a
 * result. */
static enum weir_motion_result result_of_part(enum weir_motion_part part)
{
    static const enum weir_motion_result results[WEIR_MOTION_PARTS] = {
        WEIR_MOTION_ROOT_POS_W, WEIR_MOTION_ROOT_QUAT, WEIR_MOTION_ROOT_VEL_W, WEIR_MOTION_ROOT_ANG_VEL_W,
        WEIR_MOTION_DOF_POS,    WEIR_MOTION_DOF_VEL,   WEIR_MOTION_RESULTS};
    return results[part];
}

static array lerp(struct weir_motion *m, enum weir_motion_part part, array x0, array x1, array blend)
{
    enum weir_motion_result result = result_of_part(part);
    array r = fresh(WEIR_MOTION_F32, m->queries, x0.columns);
    enum label label = LERP;
    if (result != WEIR_MOTION_RESULTS)
        r = result_array(m, result);
    /* Not in place for bodies in rows, because later operators need the bodies' numbers to be contiguous. */
    if (!r.data && m->config.advice.in_place_lerp && (result != WEIR_MOTION_RESULTS || !m->rows)) {
        r = x0;
        label = LERP_IN_PLACE;
    }
    r.inner = 0;
    return apply(m, label, (operation){.r = r, .x = x0, .y = x1, .z = blend});
}

static void interpolate(struct weir_motion *m, array at[2][WEIR_MOTION_PARTS], array blend,
                        array now[WEIR_MOTION_PARTS])
{
    static const enum weir_motion_part order[] = {WEIR_MOTION_PART_POS,     WEIR_MOTION_PART_VEL,
                                                  WEIR_MOTION_PART_ANG_VEL, WEIR_MOTION_PART_DOF_POS,
                                                  WEIR_MOTION_PART_DOF_VEL, WEIR_MOTION_PART_BODIES};
    WEIR_RANGE("interpolation");
    now[WEIR_MOTION_PART_QUAT] = slerp(m, at[0][WEIR_MOTION_PART_QUAT], at[1][WEIR_MOTION_PART_QUAT], blend);
    for (size_t i = 0; i < sizeof order / sizeof order[0]; i++)
        now[order[i]] = lerp(m, order[i], at[0][order[i]], at[1][order[i]], blend);
}

/* ---- coordinate_transform ---- */

/* Rotates vectors v into the frame of the quaternions q: v - q.w t + q.xyz cross t, where t = 2 (q.xyz cross v). */
static array turn_back(struct weir_motion *m, array quats, array v, array r)
{
    array axis = columns_of(quats, 1, 3), w = columns_of(quats, 0, 1);
    array crossed = apply(m, CROSS, (operation){.r = fresh(WEIR_MOTION_F32, v.rows, 3), .x = axis, .y = v});
    array t = apply1(m, MUL, crossed, 2);
    drop(m, crossed);
    array less =
        apply(m, ADDCMUL, (operation){.r = fresh(WEIR_MOTION_F32, v.rows, 3), .x = v, .y = w, .z = t, .scalar = -1});
    array more = apply(m, CROSS, (operation){.r = fresh(WEIR_MOTION_F32, v.rows, 3), .x = axis, .y = t});
    r = apply(m, ADD, (operation){.r = r, .x = less, .y = more});
    drop(m, t);
    drop(m, less);
    drop(m, more);
    return r;
}

/* Repeats each root quaternion, so that there is one for each of the query's vectors. */
static array quats_for(struct weir_motion *m, array quats, int vectors)
{
    quats = repeated(quats, vectors);
    return m->config.advice.no_copies ? quats : apply1(m, CLONE, quats, 0);
}

static void transform_at_once(struct weir_motion *m, const array now[WEIR_MOTION_PARTS], array apart,
                              array results[WEIR_MOTION_RESULTS])
{
    int vectors = 2 + m->bodies;
    array all = apply(m, CAT,
                      (operation){.r = fresh(WEIR_MOTION_F32, m->queries, 3 * vectors),
                                  .x = now[WEIR_MOTION_PART_VEL],
                                  .y = now[WEIR_MOTION_PART_ANG_VEL],
                                  .z = reshaped(apart, m->queries, 3 * m->bodies)});
    size_t rows = m->queries * (size_t)vectors;
    array quats = quats_for(m, now[WEIR_MOTION_PART_QUAT], vectors);
    array turned = turn_back(m, quats, reshaped(all, rows, 3), fresh(WEIR_MOTION_F32, rows, 3));
    turned = reshaped(turned, m->queries, 3 * vectors);
    results[WEIR_MOTION_ROOT_VEL_B] = columns_of(turned, 0, 3);
    results[WEIR_MOTION_ROOT_ANG_VEL_B] = columns_of(turned, 3, 3);
    results[WEIR_MOTION_KEY_BODY_POS_B] = columns_of(turned, 6, 3 * m->bodies);
}

static void transform(struct weir_motion *m, const array now[WEIR_MOTION_PARTS], array results[WEIR_MOTION_RESULTS])
{
    WEIR_RANGE("coordinate_transform");
    array quat = now[WEIR_MOTION_PART_QUAT], pos = now[WEIR_MOTION_PART_POS];
    size_t rows = m->queries * (size_t)m->bodies;
    array *to = results;
    if (!m->config.advice.rotations) {
        to[WEIR_MOTION_ROOT_VEL_B] =
            turn_back(m, quat, now[WEIR_MOTION_PART_VEL], result_array(m, WEIR_MOTION_ROOT_VEL_B));
        to[WEIR_MOTION_ROOT_ANG_VEL_B] =
            turn_back(m, quat, now[WEIR_MOTION_PART_ANG_VEL], result_array(m, WEIR_MOTION_ROOT_ANG_VEL_B));
    }
    array bodies = reshaped(now[WEIR_MOTION_PART_BODIES], rows, 3);
    array apart = apply2(m, SUB, bodies, repeated(pos, m->bodies));
    if (m->config.advice.rotations) {
        transform_at_once(m, now, apart, results);
        return;
    }
    array r = result_array(m, WEIR_MOTION_KEY_BODY_POS_B);
    array turned = turn_back(m, quats_for(m, quat, m->bodies), apart, array_of(r.data, r.type, rows, 3));
    to[WEIR_MOTION_KEY_BODY_POS_B] = reshaped(turned, m->queries, 3 * m->bodies);
}

/* ---- store_buffers ---- */

static void store_buffers(struct weir_motion *m, const struct query *q, const array results[WEIR_MOTION_RESULTS])
{
    WEIR_RANGE("store_buffers");
    for (int result = 0; result < WEIR_MOTION_RESULTS; result++) {
        array x = results[result];
        int width = x.columns, all = width * m->config.steps;
        if (x.data == m->results[result])
            continue;
        array buffer = array_of(m->results[result], WEIR_MOTION_F32, m->queries, width);
        if (!q->envs.data) {
            apply(m, COPY, (operation){.r = buffer, .x = x});
            continue;
        }
        if (m->config.steps > 1 && x.stride != (size_t)width)
            x = apply1(m, CLONE, x, 0);
        if (m->config.steps > 1)
            x = reshaped(x, m->config.envs, all);
        apply(m, INDEX_PUT, (operation){.r = reshaped(buffer, m->config.envs, all), .x = x, .y = q->envs});
    }
}

/* ---- get_motion_state ---- */

static void get_motion_state(struct weir_motion *m, const struct query *q, array results[WEIR_MOTION_RESULTS])
{
    WEIR_RANGE("get_motion_state_call");
    WEIR_RANGE("get_motion_state");
    array at[2][WEIR_MOTION_PARTS], now[WEIR_MOTION_PARTS];
    int first = m->eager.count;
    struct frames frames = calc_frame_blend(m, q);
    index_data(m, &frames, at);
    interpolate(m, at, frames.blend, now);
    for (int part = 0; part < WEIR_MOTION_PARTS; part++)
        if (result_of_part(part) != WEIR_MOTION_RESULTS)
            results[result_of_part(part)] = now[part];
    transform(m, now, results);
    drop_since(m, first, results, WEIR_MOTION_RESULTS);
}

int weir_motion_eager_fetch(struct weir_motion *m)
{
    struct query q = {.envs = fresh(WEIR_MOTION_I64, m->config.envs, 1)};
    array results[WEIR_MOTION_RESULTS];
    m->eager.count = 0;
    m->eager.no_memory = false;
    if (!m->config.advice.indices)
        q.envs = apply(m, ARANGE, (operation){.r = q.envs});
    prepare_query(m, &q);
    get_motion_state(m, &q, results);
    store_buffers(m, &q, results);
    drop_since(m, 0, NULL, 0);
    return m->eager.no_memory ? -ENOMEM : 0;
}
