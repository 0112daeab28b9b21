/* The variant fused on a GPU: one pass per query, without temporaries in global memory.
 *
 * A warp processes a tile of 32 queries, or of 8 if there are too few queries to keep the GPU busy. First, each lane
 * handles one query: it finds the frames and computes the root. Then all lanes work together on a group of queries at a
 * time: they blend the long rows and rotate the bodies. Neighbouring lanes read 16-byte pieces of both rows, blend them
 * into shared memory, and store them from there. The results of a group are contiguous, so each store instruction of a
 * warp covers 128 consecutive bytes. Shared memory is divided among the warps, so they never wait for each other. */
#include "extras/motion/cuda/motion_cuda_priv.h"
#include "weir/kernel_clock.cuh"

#include <cuda_runtime.h>

namespace weir_motion_fused
{

constexpr int LANES = 32, FEW = 8, WARPS_MAX = 4, BLOCKS_PER_SM = 6, AHEAD = 4;
constexpr int PIECE = 4;              /* numbers per piece of 16 bytes */
constexpr int ROOT_PIECES = 4;        /* pieces with the root: quaternion, position, velocities */
constexpr int FIRST_PIECE = 3;        /* first piece that contains numbers of dofs or bodies */
constexpr int GROUP_BYTES = 8192;     /* maximum size of the rows that a warp holds, unless a single row is larger */
constexpr int BLOCK_BYTES = 48 << 10; /* shared memory that a block can use without opting in to more */

/* Divides i by a constant, for i * by < 2^32. The quotient is exact, because before rounding down its error is
 * i * (magic * by - 2^32) / 2^32 < 1, in units of 1 / by. */
struct divider {
    uint32_t by, magic;

    explicit divider(uint32_t number)
        : by(number), magic(number == 1 ? 0 : static_cast<uint32_t>(((uint64_t{1} << 32) + number - 1) / number))
    {
    }

    __device__ __forceinline__ uint32_t of(uint32_t i) const
    {
        return by == 1 ? i : __umulhi(i, magic);
    }
};

struct job {
    size_t queries, tiles;
    int tile, group, steps, dofs, bodies;
    int pieces;     /* number of pieces to read per row, starting at FIRST_PIECE */
    int row_pieces; /* distance between rows, in pieces */
    divider by_pieces, by_dofs, by_bodies, by_body_numbers;
    const float4 *frames;
    const int4 *spans; /* array of weir_motion_span */
    const int64_t *clip_of;
    const float *times;
    float *results[WEIR_MOTION_OUTPUTS];
};
static_assert(sizeof(weir_motion_span) == sizeof(int4), "a span is read as one int4");

/* A warp's data for one tile. The three numbers of each query are contiguous, as in the results. */
struct tile_space {
    float4 quat[LANES]; /* w x y z */
    float pos[3 * LANES], vel[3 * LANES], ang_vel[3 * LANES], vel_b[3 * LANES], ang_vel_b[3 * LANES];
    int32_t row0[LANES], row1[LANES];
    float blend[LANES];
};
static_assert(sizeof(tile_space) % sizeof(float4) == 0, "the rows after it must be aligned");

template <bool ON> using pass_clock = weir::kernel_clock<WEIR_MOTION_STAGES, WEIR_MOTION_ITERATIONS, ON>;

struct vec3 {
    float x, y, z;
};

__device__ __forceinline__ vec3 read3(const float *from)
{
    return vec3{from[0], from[1], from[2]};
}

__device__ __forceinline__ void write3(float *to, vec3 v)
{
    to[0] = v.x;
    to[1] = v.y;
    to[2] = v.z;
}

__device__ __forceinline__ vec3 cross(vec3 a, vec3 b)
{
    return vec3{a.y * b.z - a.z * b.y, a.z * b.x - a.x * b.z, a.x * b.y - a.y * b.x};
}

__device__ __forceinline__ float blended(float a, float b, float t)
{
    return a + t * (b - a);
}

__device__ __forceinline__ float4 blended(float4 a, float4 b, float t)
{
    return make_float4(blended(a.x, b.x, t), blended(a.y, b.y, t), blended(a.z, b.z, t), blended(a.w, b.w, t));
}

/* Rotates v into the frame of the quaternion, whose members x y z w contain w x y z. */
__device__ __forceinline__ vec3 turn_back(float4 quat, vec3 v)
{
    vec3 axis{quat.y, quat.z, quat.w}, t = cross(axis, v);
    t = vec3{2 * t.x, 2 * t.y, 2 * t.z};
    vec3 more = cross(axis, t);
    return vec3{v.x - quat.x * t.x + more.x, v.y - quat.x * t.y + more.y, v.z - quat.x * t.z + more.z};
}

/* ---- calc_frame_blend for the lane's query. Each operation is rounded separately, as in the reference, because the
 * result selects the frame ---- */

__device__ __forceinline__ void calc_frame_blend(const job &job, size_t query, int lane, tile_space *tile)
{
    size_t env = job.steps == 1 ? query : query / static_cast<size_t>(job.steps);
    int4 span = __ldg(job.spans + __ldg(job.clip_of + env)); /* first, last, duration_s, loops */
    float phase = __fdiv_rn(__ldg(job.times + query), __int_as_float(span.z));
    if (span.w != 0)
        phase = __fsub_rn(phase, floorf(phase));
    phase = phase > 0 ? phase : 0; /* NaN becomes 0 */
    phase = phase < 1 ? phase : 1;
    float place = __fmul_rn(phase, static_cast<float>(span.y));
    int32_t frame = static_cast<int32_t>(place);
    tile->row0[lane] = span.x + frame;
    tile->row1[lane] = span.x + frame + (frame < span.y ? 1 : 0);
    tile->blend[lane] = __fsub_rn(place, static_cast<float>(frame));
}

/* ---- indexing_data ---- */

__device__ __forceinline__ const float4 *row_at(const job &job, int32_t row)
{
    return job.frames + static_cast<size_t>(row) * job.row_pieces;
}

/* ---- interpolation and coordinate_transform of the lane's root ---- */

__device__ __forceinline__ float4 slerp(float4 a, float4 b, float t)
{
    float w0, w1;
    weir_motion_slerp_weights(a.x * b.x + a.y * b.y + a.z * b.z + a.w * b.w, t, &w0, &w1);
    return make_float4(w0 * a.x + w1 * b.x, w0 * a.y + w1 * b.y, w0 * a.z + w1 * b.z, w0 * a.w + w1 * b.w);
}

template <class CLOCK>
__device__ __forceinline__ void compute_root(const job &job, int lane, tile_space *tile, CLOCK &clock)
{
    const float4 *row0 = row_at(job, tile->row0[lane]), *row1 = row_at(job, tile->row1[lane]);
    float blend = tile->blend[lane];
    float4 a[ROOT_PIECES], b[ROOT_PIECES], at[ROOT_PIECES];
#pragma unroll
    for (int i = 0; i < ROOT_PIECES; i++) {
        a[i] = __ldg(row0 + i);
        b[i] = __ldg(row1 + i);
    }
    clock.warp_lap(WEIR_MOTION_INDEXING_DATA, a, b);
    at[0] = slerp(a[0], b[0], blend);
#pragma unroll
    for (int i = 1; i < ROOT_PIECES; i++)
        at[i] = blended(a[i], b[i], blend);
    clock.warp_lap(WEIR_MOTION_INTERPOLATION, at);
    vec3 vel{at[1].w, at[2].x, at[2].y}, ang_vel{at[2].z, at[2].w, at[3].x};
    tile->quat[lane] = at[0];
    write3(tile->pos + 3 * lane, vec3{at[1].x, at[1].y, at[1].z});
    write3(tile->vel + 3 * lane, vel);
    write3(tile->ang_vel + 3 * lane, ang_vel);
    write3(tile->vel_b + 3 * lane, turn_back(at[0], vel));
    write3(tile->ang_vel_b + 3 * lane, turn_back(at[0], ang_vel));
    clock.warp_lap(WEIR_MOTION_COORDINATE_TRANSFORM);
}

/* ---- indexing_data and interpolation of a group's rows ---- */

template <class CLOCK>
__device__ __forceinline__ void blend_rows(const job &job, const tile_space *tile, int first, int n, int lane,
                                           float4 *rows, CLOCK &clock)
{
    uint32_t count = static_cast<uint32_t>(n) * job.pieces;
    for (uint32_t begin = lane; begin < count; begin += AHEAD * LANES) {
        float4 a[AHEAD], b[AHEAD];
        float blend[AHEAD];
#pragma unroll
        for (int k = 0; k < AHEAD; k++) {
            uint32_t i = begin + k * LANES;
            if (i < count) {
                uint32_t query = job.by_pieces.of(i), piece = FIRST_PIECE + i - query * job.pieces;
                a[k] = __ldg(row_at(job, tile->row0[first + query]) + piece);
                b[k] = __ldg(row_at(job, tile->row1[first + query]) + piece);
                blend[k] = tile->blend[first + query];
            }
        }
#pragma unroll
        for (int k = 0; k < AHEAD; k++)
            if (begin + k * LANES < count)
                clock.wait_for(a[k], b[k]);
        clock.warp_lap(WEIR_MOTION_INDEXING_DATA);
#pragma unroll
        for (int k = 0; k < AHEAD; k++)
            if (begin + k * LANES < count)
                rows[begin + k * LANES] = blended(a[k], b[k], blend[k]);
        clock.warp_lap(WEIR_MOTION_INTERPOLATION);
    }
}

/* ---- coordinate_transform of a group's bodies ---- */

__device__ __forceinline__ void turn_bodies(const job &job, const tile_space *tile, int first, int n, int lane,
                                            float *bodies)
{
    uint32_t count = static_cast<uint32_t>(n) * job.bodies;
    for (uint32_t i = lane; i < count; i += LANES) {
        uint32_t query = job.by_bodies.of(i), body = i - query * job.bodies;
        float *at = bodies + query * (PIECE * job.pieces) + 3 * body;
        vec3 v = read3(at), root = read3(tile->pos + 3 * (first + query));
        write3(at, turn_back(tile->quat[first + query], vec3{v.x - root.x, v.y - root.y, v.z - root.z}));
    }
}

/* ---- store_buffers ---- */

/* Stores n numbers from shared memory in "to". Both arrays are aligned to 16 bytes. */
__device__ __forceinline__ void store_whole(float *to, const float *from, int n, int lane)
{
    int fours = n / 4;
    for (int i = lane; i < fours; i += LANES)
        __stcs(reinterpret_cast<float4 *>(to) + i, reinterpret_cast<const float4 *>(from)[i]);
    for (int i = 4 * fours + lane; i < n; i += LANES)
        __stcs(to + i, from[i]);
}

__device__ __forceinline__ void store_root(const job &job, const tile_space *tile, size_t query, int n, int lane)
{
    store_whole(job.results[0] + query * 3, tile->pos, n * 3, lane);
    store_whole(job.results[1] + query * 4, &tile->quat[0].x, n * 4, lane);
    store_whole(job.results[2] + query * 3, tile->vel, n * 3, lane);
    store_whole(job.results[3] + query * 3, tile->vel_b, n * 3, lane);
    store_whole(job.results[4] + query * 3, tile->ang_vel, n * 3, lane);
    store_whole(job.results[5] + query * 3, tile->ang_vel_b, n * 3, lane);
}

/* Stores the same part of n rows. */
__device__ __forceinline__ void store_part(const job &job, float *to, const divider &width, const float *rows, int n,
                                           int lane)
{
    uint32_t count = static_cast<uint32_t>(n) * width.by, pitch = PIECE * job.pieces;
    for (uint32_t i = lane; i < count; i += LANES) {
        uint32_t query = width.of(i);
        __stcs(to + i, rows[query * pitch + (i - query * width.by)]);
    }
}

/* ---- groups and tiles ---- */

template <class CLOCK>
__device__ __forceinline__ void do_group(const job &job, const tile_space *tile, size_t query, int first, int n,
                                         int lane, float4 *space, CLOCK &clock)
{
    /* The rows in shared memory, starting at the first dof, which is number 13 of a row. */
    float *rows = reinterpret_cast<float *>(space) + (13 - PIECE * FIRST_PIECE);
    blend_rows(job, tile, first, n, lane, space, clock);
    __syncwarp();
    turn_bodies(job, tile, first, n, lane, rows + 2 * job.dofs);
    __syncwarp();
    clock.warp_lap(WEIR_MOTION_COORDINATE_TRANSFORM);
    store_part(job, job.results[6] + query * job.by_dofs.by, job.by_dofs, rows, n, lane);
    store_part(job, job.results[7] + query * job.by_dofs.by, job.by_dofs, rows + job.dofs, n, lane);
    store_part(job, job.results[8] + query * job.by_body_numbers.by, job.by_body_numbers, rows + 2 * job.dofs, n, lane);
    __syncwarp();
    clock.warp_lap(WEIR_MOTION_STORE_BUFFERS);
}

template <class CLOCK> __device__ __forceinline__ void do_tiles(const job &job, CLOCK &clock)
{
    extern __shared__ float4 shared[];
    int lane = threadIdx.x % LANES, warp = threadIdx.x / LANES, warps = blockDim.x / LANES;
    int space = static_cast<int>(sizeof(tile_space) / sizeof(float4)) + job.group * job.pieces;
    tile_space *tile = reinterpret_cast<tile_space *>(shared + warp * space);
    float4 *rows = reinterpret_cast<float4 *>(tile + 1);
    size_t step = static_cast<size_t>(gridDim.x) * warps;
    for (size_t at = static_cast<size_t>(blockIdx.x) * warps + warp; at < job.tiles; at += step) {
        size_t query = at * job.tile, left = job.queries - query;
        int n = left < static_cast<size_t>(job.tile) ? static_cast<int>(left) : job.tile;
        clock.begin_iteration();
        if (lane < n) {
            calc_frame_blend(job, query + lane, lane, tile);
            clock.warp_lap(WEIR_MOTION_CALC_FRAME_BLEND);
            compute_root(job, lane, tile, clock);
        }
        __syncwarp();
        store_root(job, tile, query, n, lane);
        clock.warp_lap(WEIR_MOTION_STORE_BUFFERS);
        for (int first = 0; first < n; first += job.group)
            do_group(job, tile, query + first, first, min(job.group, n - first), lane, rows, clock);
        __syncwarp(); /* before the next tile overwrites this one */
    }
    clock.store();
}

__global__ void __launch_bounds__(LANES *WARPS_MAX, BLOCKS_PER_SM) motion_pass(const __grid_constant__ job job)
{
    pass_clock<false> clock;
    do_tiles(job, clock);
}

__global__ void __launch_bounds__(LANES *WARPS_MAX, BLOCKS_PER_SM)
    motion_pass_clocked(const __grid_constant__ job job, const weir_kernel_clock_table table)
{
    pass_clock<true> clock(table);
    do_tiles(job, clock);
}

int pieces_of(int dofs, int bodies)
{
    return (13 + 2 * dofs + 3 * bodies + PIECE - 1) / PIECE - FIRST_PIECE;
}

/* Stores in *blocks how many blocks an SM runs at the same time (at least 1). Opts in to more shared memory if
 * necessary. */
template <class KERNEL> cudaError_t blocks_of_sm(int *blocks, KERNEL kernel, int warps, int bytes)
{
    cudaFuncAttributes attributes;
    cudaError_t error = cudaFuncGetAttributes(&attributes, kernel);
    if (error == cudaSuccess && bytes + static_cast<int>(attributes.sharedSizeBytes) > BLOCK_BYTES)
        error = cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, bytes);
    if (error == cudaSuccess)
        error = cudaOccupancyMaxActiveBlocksPerMultiprocessor(blocks, kernel, LANES * warps, bytes);
    *blocks = *blocks > 0 ? *blocks : 1;
    return error;
}

} // namespace weir_motion_fused
using namespace weir_motion_fused;

int weir_motion_kernels_plan(struct weir_motion_plan *plan, int dofs, int bodies, int sms)
{
    int row_bytes = pieces_of(dofs, bodies) * static_cast<int>(sizeof(float4)), group = FEW, warps = WARPS_MAX;
    while (group > 1 && group * row_bytes > GROUP_BYTES)
        group /= 2;
    int bytes = static_cast<int>(sizeof(tile_space)) + group * row_bytes;
    while (warps > 1 && warps * bytes > BLOCK_BYTES)
        warps /= 2;
    int each = 0, each_clocked = 0;
    cudaError_t error = blocks_of_sm(&each, motion_pass, warps, warps * bytes);
    if (error == cudaSuccess)
        error = blocks_of_sm(&each_clocked, motion_pass_clocked, warps, warps * bytes);
    if (error != cudaSuccess)
        return error;
    *plan = {dofs, bodies, group, warps, warps * bytes, each * sms, each_clocked * sms};
    return cudaSuccess;
}

int weir_motion_kernels_pass(const struct weir_motion_pass *p, const struct weir_motion_plan *plan, void *stream)
{
    size_t queries = p->envs * p->steps, at_once = static_cast<size_t>(plan->blocks) * plan->warps;
    if (queries == 0)
        return cudaSuccess;
    int tile = queries >= at_once * LANES ? LANES : FEW;
    size_t tiles = (queries + tile - 1) / tile, blocks = (tiles + plan->warps - 1) / plan->warps;
    job job = {queries,
               tiles,
               tile,
               plan->group,
               p->steps,
               p->dofs,
               p->bodies,
               pieces_of(p->dofs, p->bodies),
               p->row.stride / PIECE,
               divider(pieces_of(p->dofs, p->bodies)),
               divider(p->dofs),
               divider(p->bodies),
               divider(3 * p->bodies),
               reinterpret_cast<const float4 *>(p->frames),
               reinterpret_cast<const int4 *>(p->spans),
               p->clip_of,
               p->times,
               {}};
    for (int i = 0; i < WEIR_MOTION_OUTPUTS; i++)
        job.results[i] = p->results[i];
    size_t most = static_cast<size_t>(p->clocks.memory ? plan->clocked_blocks : plan->blocks);
    unsigned grid = static_cast<unsigned>(blocks < most ? blocks : most), threads = LANES * plan->warps;
    cudaStream_t on = static_cast<cudaStream_t>(stream);
    if (p->clocks.memory)
        motion_pass_clocked<<<grid, threads, plan->shared_bytes, on>>>(job, p->clocks);
    else
        motion_pass<<<grid, threads, plan->shared_bytes, on>>>(job);
    return cudaGetLastError();
}
