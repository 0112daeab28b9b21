/* The variant fused on the CPU: one pass per query, without temporaries. Queries are processed in blocks. First the
 * frame positions, and the slerp and rotation matrices of the roots, are computed for the whole block. Then the two
 * rows of each query are blended into its results. */
#include "extras/motion/motion_cpu_priv.h"

#include <math.h>

enum { BLOCK = 16, LANES = 8, CARE = 16, LINE_NUMBERS = 16, FETCH_NUMBERS = 256 };
/* One thread finishes fewer queries (in about 60 us) before another thread would wake up. */
enum { THREADS_FROM = 1024 };
#define INLINE static inline __attribute__((always_inline))

/* A vector of eight floats that need not be aligned. */
typedef float lanes __attribute__((vector_size(32), aligned(4), may_alias));
typedef float four __attribute__((vector_size(16), aligned(4), may_alias));

struct block {
    const float *frame0[BLOCK], *frame1[BLOCK];
    float blend[BLOCK];
    float quat[4][BLOCK];
    float rows[BLOCK][3][4]; /* rotation matrices, by rows */
};

/* The position of a query: its number, environment and step. */
struct cursor {
    size_t query, env;
    int step;
};

/* ---- frame positions ---- */

INLINE void step_on(const struct weir_motion_pass *p, struct cursor *at)
{
    at->query++;
    if (++at->step == p->steps) {
        at->step = 0;
        at->env++;
    }
}

/* Finds the frames of n queries and advances the cursor. If n < BLOCK, the rest of the block repeats the last query. */
INLINE void find_frames(const struct weir_motion_pass *p, struct cursor *at, int n, struct block *b)
{
    float time[BLOCK], duration[BLOCK], last[BLOCK], loops[BLOCK];
    int32_t first[BLOCK], frame[BLOCK];
    for (int i = 0; i < BLOCK; i++) {
        const struct weir_motion_span *span = &p->spans[p->clip_of[at->env]];
        time[i] = p->times[at->query];
        duration[i] = span->duration_s;
        last[i] = (float)span->last;
        loops[i] = (float)span->loops;
        first[i] = span->first;
        if (i + 1 < n)
            step_on(p, at);
    }
    step_on(p, at);
    for (int i = 0; i < BLOCK; i++) {
        float phase = time[i] / duration[i], wrapped = phase - floorf(phase);
        phase = loops[i] != 0 ? wrapped : phase;
        phase = phase > 0 ? phase : 0; /* NaN becomes 0 */
        phase = phase < 1 ? phase : 1;
        float place = phase * last[i];
        frame[i] = (int32_t)place;
        b->blend[i] = place - (float)frame[i];
    }
    size_t stride = (size_t)p->row.stride;
    for (int i = 0; i < BLOCK; i++) {
        b->frame0[i] = p->frames + (size_t)(first[i] + frame[i]) * stride;
        b->frame1[i] = b->frame0[i] + ((float)frame[i] < last[i] ? stride : 0);
    }
}

/* Prefetches the two rows of query i in block b, which is processed next. */
INLINE void fetch_frames(const struct weir_motion_pass *p, const struct block *b, int i)
{
    for (int j = 0; j < p->row.stride && j < FETCH_NUMBERS; j += LINE_NUMBERS) {
        __builtin_prefetch(b->frame0[i] + j);
        __builtin_prefetch(b->frame1[i] + j);
    }
}

/* ---- the root ---- */

INLINE void turn_roots(struct block *b)
{
    float q1[4][BLOCK], turn[9][BLOCK];
    for (int i = 0; i < BLOCK; i++)
        for (int j = 0; j < 4; j++) {
            b->quat[j][i] = b->frame0[i][j];
            q1[j][i] = b->frame1[i][j];
        }
    for (int i = 0; i < BLOCK; i++) {
        float w0, w1,
            dot = b->quat[0][i] * q1[0][i] + b->quat[1][i] * q1[1][i] + b->quat[2][i] * q1[2][i] +
                  b->quat[3][i] * q1[3][i];
        weir_motion_slerp_weights(dot, b->blend[i], &w0, &w1);
        float w = w0 * b->quat[0][i] + w1 * q1[0][i], x = w0 * b->quat[1][i] + w1 * q1[1][i];
        float y = w0 * b->quat[2][i] + w1 * q1[2][i], z = w0 * b->quat[3][i] + w1 * q1[3][i];
        b->quat[0][i] = w;
        b->quat[1][i] = x;
        b->quat[2][i] = y;
        b->quat[3][i] = z;
        turn[0][i] = 1 - 2 * (y * y + z * z);
        turn[1][i] = 2 * (x * y - w * z);
        turn[2][i] = 2 * (x * z + w * y);
        turn[3][i] = 2 * (x * y + w * z);
        turn[4][i] = 1 - 2 * (x * x + z * z);
        turn[5][i] = 2 * (y * z - w * x);
        turn[6][i] = 2 * (x * z - w * y);
        turn[7][i] = 2 * (y * z + w * x);
        turn[8][i] = 1 - 2 * (x * x + y * y);
    }
    for (int i = 0; i < BLOCK; i++)
        for (int j = 0; j < 9; j++)
            b->rows[i][j / 3][j % 3] = turn[j][i];
}

/* Two vectors of three numbers in one; the fourth number of each half is unused. */
#define TWO(a, b) __builtin_shufflevector(a, b, 0, 1, 2, 3, 4, 5, 6, 7)
/* Broadcasts number i of each half within that half. */
#define ALL(v, i) __builtin_shufflevector(v, v, i, i, i, i, 4 + i, 4 + i, 4 + i, 4 + i)

/* Multiplies two vectors by the transposed matrix. Writes four numbers to to0 and to1; the fourth is meaningless. */
INLINE void turn_back(const float rows[3][4], const lanes *v, float *to0, float *to1)
{
    four row0 = *(const four *)rows[0], row1 = *(const four *)rows[1], row2 = *(const four *)rows[2];
    lanes r = ALL(*v, 0) * TWO(row0, row0) + ALL(*v, 1) * TWO(row1, row1) + ALL(*v, 2) * TWO(row2, row2);
    *(four *)to0 = __builtin_shufflevector(r, r, 0, 1, 2, 3);
    *(four *)to1 = __builtin_shufflevector(r, r, 4, 5, 6, 7);
}

/* ---- the rows of a query ---- */

/* Stores a + t (b - a) for n numbers in "to". May write up to seven more numbers. */
INLINE void blend_over(const float *a, const float *b, float t, int n, float *to)
{
    for (int i = 0; i < n; i += LANES) {
        lanes from = *(const lanes *)(a + i), next = *(const lanes *)(b + i);
        *(lanes *)(to + i) = from + t * (next - from);
    }
}

INLINE void blend_exactly(const float *a, const float *b, float t, int n, float *to)
{
    for (int i = 0; i < n; i++)
        to[i] = a[i] + t * (b[i] - a[i]);
}

/* Where to store a query's results. */
struct results {
    float *pos, *quat, *vel, *vel_b, *ang_vel, *ang_vel_b, *dof_pos, *dof_vel, *bodies;
};

INLINE struct results results_of(const struct weir_motion_pass *p, size_t query)
{
    return (struct results){
        .pos = p->results[0] + query * 3,
        .quat = p->results[1] + query * 4,
        .vel = p->results[2] + query * 3,
        .vel_b = p->results[3] + query * 3,
        .ang_vel = p->results[4] + query * 3,
        .ang_vel_b = p->results[5] + query * 3,
        .dof_pos = p->results[6] + query * (size_t)p->dofs,
        .dof_vel = p->results[7] + query * (size_t)p->dofs,
        .bodies = p->results[8] + query * (size_t)p->bodies * 3,
    };
}

INLINE void take_two(const float *v, lanes *two)
{
    four a = *(const four *)v, b = *(const four *)(v + 3);
    *two = TWO(a, b);
}

/* Processes two bodies at a time. If their number is odd, the second body of the last pair is meaningless. */
INLINE void blend_bodies(const struct weir_motion_pass *p, const struct block *b, int i, four root, float *to)
{
    const float *frame0 = b->frame0[i] + p->row.bodies, *frame1 = b->frame1[i] + p->row.bodies;
    lanes origin = TWO(root, root);
    for (int j = 0; j < 3 * p->bodies; j += 6) {
        lanes from, next;
        take_two(frame0 + j, &from);
        take_two(frame1 + j, &next);
        lanes apart = from + b->blend[i] * (next - from) - origin;
        turn_back(b->rows[i], &apart, to + j, to + j + 3);
    }
}

INLINE four blend_vector(const float *a, const float *b, float t)
{
    return *(const four *)a + t * (*(const four *)b - *(const four *)a);
}

/* Computes the results of a query. Writes past the end of each result, into the results of the following queries, which
 * are computed later. */
INLINE void finish_query(const struct weir_motion_pass *p, const struct block *b, int i, const struct results *to)
{
    const float *frame0 = b->frame0[i], *frame1 = b->frame1[i];
    const struct weir_motion_row *row = &p->row;
    float blend = b->blend[i];
    four pos = blend_vector(frame0 + row->pos, frame1 + row->pos, blend);
    four vel = blend_vector(frame0 + row->vel, frame1 + row->vel, blend);
    four ang_vel = blend_vector(frame0 + row->ang_vel, frame1 + row->ang_vel, blend);
    lanes velocities = TWO(vel, ang_vel);
    *(four *)to->pos = pos;
    *(four *)to->vel = vel;
    *(four *)to->ang_vel = ang_vel;
    for (int j = 0; j < 4; j++)
        to->quat[j] = b->quat[j][i];
    turn_back(b->rows[i], &velocities, to->vel_b, to->ang_vel_b);
    blend_over(frame0 + row->dof_pos, frame1 + row->dof_pos, blend, p->dofs, to->dof_pos);
    blend_over(frame0 + row->dof_vel, frame1 + row->dof_vel, blend, p->dofs, to->dof_vel);
    blend_bodies(p, b, i, pos, to->bodies);
}

static void copy(const float *from, int n, float *to)
{
    for (int i = 0; i < n; i++)
        to[i] = from[i];
}

/* Like finish_query, but never writes past the end of a result, because the following queries belong to another thread.
 */
static void finish_exactly(const struct weir_motion_pass *p, const struct block *b, int i, const struct results *to)
{
    const float *frame0 = b->frame0[i], *frame1 = b->frame1[i];
    const struct weir_motion_row *row = &p->row;
    float root[12] = {0}, turned[4], none[4], blend = b->blend[i];
    blend_exactly(frame0 + row->pos, frame1 + row->pos, blend, 9, root);
    copy(root, 3, to->pos);
    copy(root + 3, 3, to->vel);
    copy(root + 6, 3, to->ang_vel);
    for (int j = 0; j < 4; j++)
        to->quat[j] = b->quat[j][i];
    lanes velocities;
    take_two(root + 3, &velocities);
    turn_back(b->rows[i], &velocities, turned, none);
    copy(turned, 3, to->vel_b);
    copy(none, 3, to->ang_vel_b);
    blend_exactly(frame0 + row->dof_pos, frame1 + row->dof_pos, blend, p->dofs, to->dof_pos);
    blend_exactly(frame0 + row->dof_vel, frame1 + row->dof_vel, blend, p->dofs, to->dof_vel);
    for (int j = 0; j < 3 * p->bodies; j += 3) {
        float apart[8] = {0};
        for (int k = 0; k < 3; k++)
            apart[k] = frame0[row->bodies + j + k] +
                       blend * (frame1[row->bodies + j + k] - frame0[row->bodies + j + k]) - root[k];
        turn_back(b->rows[i], (const lanes *)apart, turned, none);
        copy(turned, 3, to->bodies + j);
    }
}

/* ---- all queries ---- */

INLINE void do_queries(const struct weir_motion_pass *p, size_t begin, size_t end)
{
    struct block blocks[2];
    struct cursor at = {begin, begin / (size_t)p->steps, (int)(begin % (size_t)p->steps)};
    int n = end - begin < BLOCK ? (int)(end - begin) : BLOCK;
    find_frames(p, &at, n, &blocks[0]);
    for (size_t query = begin, i = 0; query < end; i++) {
        struct block *block = &blocks[i % 2], *next = &blocks[(i + 1) % 2];
        int of_next = end - at.query < BLOCK ? (int)(end - at.query) : BLOCK;
        if (of_next > 0)
            find_frames(p, &at, of_next, next);
        turn_roots(block);
        for (int j = 0; j < n; j++, query++) {
            if (of_next > 0)
                fetch_frames(p, next, j);
            struct results to = results_of(p, query);
            if (end - query > CARE)
                finish_query(p, block, j, &to);
            else
                finish_exactly(p, block, j, &to);
        }
        n = of_next;
    }
}

static void do_plain(const struct weir_motion_pass *p, size_t begin, size_t end)
{
    do_queries(p, begin, end);
}

WEIR_MOTION_AVX2 static void do_avx2(const struct weir_motion_pass *p, size_t begin, size_t end)
{
    do_queries(p, begin, end);
}

struct work {
    const struct weir_motion_cpu *cpu;
    const struct weir_motion_pass *pass;
};

/* Gives each thread whole blocks. */
static void do_part(void *user, int part, int parts)
{
    const struct work *work = user;
    size_t queries = work->pass->envs * (size_t)work->pass->steps, blocks = (queries + BLOCK - 1) / BLOCK;
    size_t begin = blocks * (size_t)part / (size_t)parts * BLOCK;
    size_t end = blocks * (size_t)(part + 1) / (size_t)parts * BLOCK;
    end = end < queries ? end : queries;
    if (begin < end)
        (work->cpu->avx2 ? do_avx2 : do_plain)(work->pass, begin, end);
}

void weir_motion_cpu_pass(void *self, const struct weir_motion_pass *pass)
{
    struct weir_motion_cpu *cpu = self;
    struct work work = {cpu, pass};
    if (pass->envs * (size_t)pass->steps < THREADS_FROM)
        do_part(&work, 0, 1);
    else
        weir_team_run(cpu->team, do_part, &work);
}
