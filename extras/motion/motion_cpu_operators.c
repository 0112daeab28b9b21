/* The operators of motion on the CPU. Each is one pass over memory, like a kernel of an eager framework. Like PyTorch's
 * operators, they use several threads for 32,768 or more numbers, and vector instructions for dense operands. */
#include "extras/motion/motion_cpu_priv.h"

#include <math.h>
#include <string.h>

enum { THREADS_FROM = 32768, BLOCK = 16 };

/* ---- loops over contiguous numbers ---- */

/* x_one, y_one, z_one: the operand is a single number, used for all elements. */
struct numbers {
    void *r;
    const void *x, *y, *z;
    bool x_one, y_one, z_one;
    double scalar, high;
    size_t n;
};
typedef void loop(const struct numbers *numbers);

#define INLINE static inline __attribute__((always_inline))
/* Iterations are independent, because the result either is the same array as an operand or overlaps no operand. */
#if defined(__clang__)
#define UNORDERED
#else
#define UNORDERED _Pragma("GCC ivdep")
#endif

/* Defines NAME_plain and NAME_avx2 with the same loop body. */
#define BOTH(NAME)                                                                                                     \
    static void NAME##_plain(const struct numbers *o)                                                                  \
    {                                                                                                                  \
        NAME##_body(o);                                                                                                \
    }                                                                                                                  \
    WEIR_MOTION_AVX2 static void NAME##_avx2(const struct numbers *o)                                                  \
    {                                                                                                                  \
        NAME##_body(o);                                                                                                \
    }

#define EACH(EXPRESSION) UNORDERED for (size_t i = 0; i < o->n; i++) r[i] = (EXPRESSION)

/* Computes r[i] from a = x[i]. */
#define LOOP1(NAME, R, X, EXPRESSION)                                                                                  \
    INLINE void NAME##_body(const struct numbers *o)                                                                   \
    {                                                                                                                  \
        R *r = o->r;                                                                                                   \
        const X *x = o->x;                                                                                             \
        UNORDERED for (size_t i = 0; i < o->n; i++)                                                                    \
        {                                                                                                              \
            X a = x[i];                                                                                                \
            r[i] = EXPRESSION;                                                                                         \
        }                                                                                                              \
    }                                                                                                                  \
    BOTH(NAME)

/* Computes r[i] from a = x[i] and b, which is y[i] or a single number. */
#define LOOP2(NAME, R, X, Y, EXPRESSION)                                                                               \
    INLINE R NAME##_of(X a, Y b)                                                                                       \
    {                                                                                                                  \
        return EXPRESSION;                                                                                             \
    }                                                                                                                  \
    INLINE void NAME##_body(const struct numbers *o)                                                                   \
    {                                                                                                                  \
        R *r = o->r;                                                                                                   \
        const X *x = o->x;                                                                                             \
        const Y *y = o->y;                                                                                             \
        if (o->y_one) {                                                                                                \
            Y b = *y;                                                                                                  \
            EACH(NAME##_of(x[i], b));                                                                                  \
        } else {                                                                                                       \
            EACH(NAME##_of(x[i], y[i]));                                                                               \
        }                                                                                                              \
    }                                                                                                                  \
    BOTH(NAME)

/* Computes r[i] from a, b, c (elements of x, y, z, of which at most one is a single number) and the scalar s. */
#define LOOP3(NAME, X, EXPRESSION)                                                                                     \
    INLINE float NAME##_of(X a, float b, float c, float s)                                                             \
    {                                                                                                                  \
        (void)s;                                                                                                       \
        return EXPRESSION;                                                                                             \
    }                                                                                                                  \
    INLINE void NAME##_body(const struct numbers *o)                                                                   \
    {                                                                                                                  \
        float *r = o->r, s = (float)o->scalar;                                                                         \
        const X *x = o->x;                                                                                             \
        const float *y = o->y, *z = o->z;                                                                              \
        if (o->x_one) {                                                                                                \
            X a = *x;                                                                                                  \
            EACH(NAME##_of(a, y[i], z[i], s));                                                                         \
        } else if (o->y_one) {                                                                                         \
            float b = *y;                                                                                              \
            EACH(NAME##_of(x[i], b, z[i], s));                                                                         \
        } else if (o->z_one) {                                                                                         \
            float c = *z;                                                                                              \
            EACH(NAME##_of(x[i], y[i], c, s));                                                                         \
        } else {                                                                                                       \
            EACH(NAME##_of(x[i], y[i], z[i], s));                                                                      \
        }                                                                                                              \
    }                                                                                                                  \
    BOTH(NAME)

INLINE float acos_of(float a)
{
    return sqrtf(weir_motion_square_angle(1 - a));
}

LOOP1(copy_f32, float, float, a)
LOOP1(copy_i64, int64_t, int64_t, a)
LOOP1(truncate, int64_t, float, a > -0x1p63f && a < 0x1p63f ? (int64_t)a : 0)
LOOP1(floor, float, float, floorf(a))
LOOP1(neg, float, float, -a)
LOOP1(abs, float, float, a < 0 ? -a : a)
LOOP1(acos, float, float, acos_of(a))
LOOP1(sin, float, float, a *weir_motion_sinc_root(a *a))
LOOP2(add_f32, float, float, float, a + b)
LOOP2(add_i64, int64_t, int64_t, int64_t, a + b)
LOOP2(sub_f32, float, float, float, a - b)
LOOP2(sub_i64, int64_t, int64_t, int64_t, a - b)
LOOP2(sub_f32_i64, float, float, int64_t, a - (float)b)
LOOP2(rsub, float, float, float, b - a)
LOOP2(mul_f32, float, float, float, a *b)
LOOP2(mul_f32_i64, float, float, int64_t, a *(float)b)
LOOP2(div, float, float, float, a / b)
LOOP2(minimum, int64_t, int64_t, int64_t, a < b ? a : b)
LOOP2(lt, uint8_t, float, float, a < b)
LOOP3(where, uint8_t, a ? b : c)
LOOP3(lerp, float, a + c * (b - a))
LOOP3(addcmul, float, a + s * b * c)

INLINE void clamp_body(const struct numbers *o)
{
    float *r = o->r, low = (float)o->scalar, high = (float)o->high;
    const float *x = o->x;
    EACH(x[i] > low ? x[i] < high ? x[i] : high : low);
}
BOTH(clamp)

static const struct {
    enum weir_motion_kind kind;
    enum weir_motion_type r, y; /* y: type of the second operand or of the scalar */
    loop *plain, *avx2;
} loops[] = {
    {WEIR_MOTION_COPY, WEIR_MOTION_F32, WEIR_MOTION_F32, copy_f32_plain, copy_f32_avx2},
    {WEIR_MOTION_COPY, WEIR_MOTION_I64, WEIR_MOTION_I64, copy_i64_plain, copy_i64_avx2},
    {WEIR_MOTION_COPY, WEIR_MOTION_I64, WEIR_MOTION_F32, truncate_plain, truncate_avx2},
    {WEIR_MOTION_ADD, WEIR_MOTION_F32, WEIR_MOTION_F32, add_f32_plain, add_f32_avx2},
    {WEIR_MOTION_ADD, WEIR_MOTION_I64, WEIR_MOTION_I64, add_i64_plain, add_i64_avx2},
    {WEIR_MOTION_SUB, WEIR_MOTION_F32, WEIR_MOTION_F32, sub_f32_plain, sub_f32_avx2},
    {WEIR_MOTION_SUB, WEIR_MOTION_I64, WEIR_MOTION_I64, sub_i64_plain, sub_i64_avx2},
    {WEIR_MOTION_SUB, WEIR_MOTION_F32, WEIR_MOTION_I64, sub_f32_i64_plain, sub_f32_i64_avx2},
    {WEIR_MOTION_RSUB, WEIR_MOTION_F32, WEIR_MOTION_F32, rsub_plain, rsub_avx2},
    {WEIR_MOTION_MUL, WEIR_MOTION_F32, WEIR_MOTION_F32, mul_f32_plain, mul_f32_avx2},
    {WEIR_MOTION_MUL, WEIR_MOTION_F32, WEIR_MOTION_I64, mul_f32_i64_plain, mul_f32_i64_avx2},
    {WEIR_MOTION_DIV, WEIR_MOTION_F32, WEIR_MOTION_F32, div_plain, div_avx2},
    {WEIR_MOTION_MINIMUM, WEIR_MOTION_I64, WEIR_MOTION_I64, minimum_plain, minimum_avx2},
    {WEIR_MOTION_FLOOR, WEIR_MOTION_F32, WEIR_MOTION_F32, floor_plain, floor_avx2},
    {WEIR_MOTION_CLAMP, WEIR_MOTION_F32, WEIR_MOTION_F32, clamp_plain, clamp_avx2},
    {WEIR_MOTION_NEG, WEIR_MOTION_F32, WEIR_MOTION_F32, neg_plain, neg_avx2},
    {WEIR_MOTION_ABS, WEIR_MOTION_F32, WEIR_MOTION_F32, abs_plain, abs_avx2},
    {WEIR_MOTION_LT, WEIR_MOTION_BOOL, WEIR_MOTION_F32, lt_plain, lt_avx2},
    {WEIR_MOTION_WHERE, WEIR_MOTION_F32, WEIR_MOTION_F32, where_plain, where_avx2},
    {WEIR_MOTION_ACOS, WEIR_MOTION_F32, WEIR_MOTION_F32, acos_plain, acos_avx2},
    {WEIR_MOTION_SIN, WEIR_MOTION_F32, WEIR_MOTION_F32, sin_plain, sin_avx2},
    {WEIR_MOTION_LERP, WEIR_MOTION_F32, WEIR_MOTION_F32, lerp_plain, lerp_avx2},
    {WEIR_MOTION_ADDCMUL, WEIR_MOTION_F32, WEIR_MOTION_F32, addcmul_plain, addcmul_avx2},
};

/* ---- rows ---- */

static size_t size_of(enum weir_motion_type type)
{
    return type == WEIR_MOTION_I64 ? sizeof(int64_t) : type == WEIR_MOTION_F32 ? sizeof(float) : 1;
}

static void *row_at(const struct weir_motion_array *a, size_t i)
{
    if (!a->data)
        return NULL;
    size_t row = a->repeat == 1 ? i : i / (size_t)a->repeat;
    return (char *)a->data + row * a->stride * size_of(a->type);
}

/* Returns whether the array's rows are contiguous and as wide as the result's rows. */
static bool dense(const struct weir_motion_array *a, int columns)
{
    return !a->data || (a->repeat == 1 && a->columns == columns && a->stride == (size_t)columns);
}

static loop *loop_of(const struct weir_motion_operator *o, bool avx2)
{
    enum weir_motion_type y = o->y.data ? o->y.type : o->kind == WEIR_MOTION_WHERE ? WEIR_MOTION_F32 : o->x.type;
    for (size_t i = 0; i < sizeof loops / sizeof loops[0]; i++)
        if (loops[i].kind == o->kind && loops[i].r == o->r.type && loops[i].y == y)
            return avx2 ? loops[i].avx2 : loops[i].plain;
    return NULL;
}

static void run_loop(const struct weir_motion_operator *o, loop *run, size_t begin, size_t end)
{
    float f32 = (float)o->scalar;
    int64_t i64 = (int64_t)o->scalar;
    int columns = o->r.columns;
    bool flat = dense(&o->r, columns) && dense(&o->x, columns) && dense(&o->y, columns) && dense(&o->z, columns);
    struct numbers numbers = {.scalar = o->scalar,
                              .high = o->high,
                              .x_one = o->x.columns != columns,
                              .y_one = o->y.columns != columns,
                              .z_one = o->z.columns != columns,
                              .n = flat ? (end - begin) * (size_t)columns : (size_t)columns};
    const void *scalar = o->x.type == WEIR_MOTION_I64 ? (const void *)&i64 : &f32;
    for (size_t i = begin; i < end; i += flat ? end - begin : 1) {
        numbers.r = row_at(&o->r, i);
        numbers.x = row_at(&o->x, i);
        numbers.y = o->y.data ? row_at(&o->y, i) : scalar;
        numbers.z = row_at(&o->z, i);
        run(&numbers);
    }
}

static void run_arange(const struct weir_motion_operator *o, size_t begin, size_t end)
{
    for (size_t i = begin; i < end; i++)
        ((int64_t *)o->r.data)[i] = (int64_t)i;
}

#define GATHER(TYPE)                                                                                                   \
    for (size_t i = begin; i < end; i++)                                                                               \
    ((TYPE *)o->r.data)[i] = ((const TYPE *)o->x.data)[(size_t) * (const int64_t *)row_at(&o->y, i) * o->x.stride]

static void run_index(const struct weir_motion_operator *o, size_t begin, size_t end)
{
    size_t size = size_of(o->x.type), bytes = (size_t)o->x.columns * size;
    if (o->x.columns > 1 || o->r.stride > 1)
        for (size_t i = begin; i < end; i++)
            memcpy(row_at(&o->r, i), row_at(&o->x, (size_t) * (const int64_t *)row_at(&o->y, i)), bytes);
    else if (size == sizeof(int64_t))
        GATHER(int64_t);
    else if (size == sizeof(float))
        GATHER(float);
    else
        GATHER(uint8_t);
}

static void run_index_put(const struct weir_motion_operator *o, size_t begin, size_t end)
{
    size_t bytes = (size_t)o->x.columns * size_of(o->x.type);
    for (size_t i = begin; i < end; i++)
        memcpy(row_at(&o->r, (size_t) * (const int64_t *)row_at(&o->y, i)), row_at(&o->x, i), bytes);
}

static void run_sum(const struct weir_motion_operator *o, size_t begin, size_t end)
{
    for (size_t i = begin; i < end; i++) {
        const float *x = row_at(&o->x, i);
        float sum = 0;
        for (int j = 0; j < o->x.columns; j++)
            sum += x[j];
        *(float *)row_at(&o->r, i) = sum;
    }
}

static void run_cross(const struct weir_motion_operator *o, size_t begin, size_t end)
{
    for (size_t i = begin; i < end; i++) {
        const float *x = row_at(&o->x, i), *y = row_at(&o->y, i);
        float *r = row_at(&o->r, i);
        float a = x[1] * y[2] - x[2] * y[1], b = x[2] * y[0] - x[0] * y[2], c = x[0] * y[1] - x[1] * y[0];
        r[0] = a;
        r[1] = b;
        r[2] = c;
    }
}

static void run_cat(const struct weir_motion_operator *o, size_t begin, size_t end)
{
    for (size_t i = begin; i < end; i++) {
        float *r = row_at(&o->r, i);
        memcpy(r, row_at(&o->x, i), (size_t)o->x.columns * sizeof *r);
        memcpy(r + o->x.columns, row_at(&o->y, i), (size_t)o->y.columns * sizeof *r);
        memcpy(r + o->x.columns + o->y.columns, row_at(&o->z, i), (size_t)o->z.columns * sizeof *r);
    }
}

INLINE void slerp_block(const struct weir_motion_operator *o, size_t first, int n)
{
    float q0[4][BLOCK] = {{0}}, q1[4][BLOCK] = {{0}}, t[BLOCK] = {0};
    for (int i = 0; i < n; i++) {
        const float *x = row_at(&o->x, first + (size_t)i), *y = row_at(&o->y, first + (size_t)i);
        for (int j = 0; j < 4; j++) {
            q0[j][i] = x[j];
            q1[j][i] = y[j];
        }
        t[i] = *(const float *)row_at(&o->z, first + (size_t)i);
    }
    for (int i = 0; i < BLOCK; i++) {
        float w0, w1, dot = q0[0][i] * q1[0][i] + q0[1][i] * q1[1][i] + q0[2][i] * q1[2][i] + q0[3][i] * q1[3][i];
        weir_motion_slerp_weights(dot, t[i], &w0, &w1);
        for (int j = 0; j < 4; j++)
            q0[j][i] = w0 * q0[j][i] + w1 * q1[j][i];
    }
    for (int i = 0; i < n; i++)
        for (int j = 0; j < 4; j++)
            ((float *)row_at(&o->r, first + (size_t)i))[j] = q0[j][i];
}

INLINE void slerp_body(const struct weir_motion_operator *o, size_t begin, size_t end)
{
    for (size_t i = begin; i < end; i += BLOCK)
        slerp_block(o, i, end - i < BLOCK ? (int)(end - i) : BLOCK);
}

static void run_slerp_plain(const struct weir_motion_operator *o, size_t begin, size_t end)
{
    slerp_body(o, begin, end);
}

WEIR_MOTION_AVX2 static void run_slerp_avx2(const struct weir_motion_operator *o, size_t begin, size_t end)
{
    slerp_body(o, begin, end);
}

/* ---- threads ---- */

struct work {
    const struct weir_motion_operator *operation;
    loop *loop; /* NULL: use rows instead */
    void (*rows)(const struct weir_motion_operator *o, size_t begin, size_t end);
    size_t n;
};

static void run_part(void *user, int part, int parts)
{
    const struct work *work = user;
    size_t begin = work->n / (size_t)parts * (size_t)part;
    size_t end = part + 1 == parts ? work->n : work->n / (size_t)parts * (size_t)(part + 1);
    if (begin == end)
        return;
    if (work->loop)
        run_loop(work->operation, work->loop, begin, end);
    else
        work->rows(work->operation, begin, end);
}

void weir_motion_cpu_operate(void *self, const struct weir_motion_operator *o)
{
    const struct weir_motion_cpu *cpu = self;
    struct work work = {.operation = o, .n = o->kind == WEIR_MOTION_INDEX_PUT ? o->x.rows : o->r.rows};
    switch (o->kind) {
    case WEIR_MOTION_ARANGE:
        work.rows = run_arange;
        break;
    case WEIR_MOTION_INDEX:
        work.rows = run_index;
        break;
    case WEIR_MOTION_INDEX_PUT:
        work.rows = run_index_put;
        break;
    case WEIR_MOTION_SUM:
        work.rows = run_sum;
        break;
    case WEIR_MOTION_CROSS:
        work.rows = run_cross;
        break;
    case WEIR_MOTION_CAT:
        work.rows = run_cat;
        break;
    case WEIR_MOTION_SLERP:
        work.rows = cpu->avx2 ? run_slerp_avx2 : run_slerp_plain;
        break;
    default:
        work.loop = loop_of(o, cpu->avx2);
        break;
    }
    if (work.n * (size_t)o->r.columns < THREADS_FROM)
        run_part(&work, 0, 1);
    else
        weir_team_run(cpu->team, run_part, &work);
}
