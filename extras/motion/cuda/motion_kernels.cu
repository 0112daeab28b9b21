/* The operators of motion on a GPU, with one kernel per operator, as an eager framework launches them, and the kernel
 * that advances times. Each thread computes one number (or one row, where noted) per iteration of a grid-stride loop.
 */
#include "extras/motion/cuda/motion_cuda_priv.h"

#include <cuda_runtime.h>

namespace weir_motion_kernels
{

constexpr int threads = 256;
constexpr int most_blocks = 4096; /* enough, because kernels use grid-stride loops */

int blocks_for(size_t n)
{
    size_t blocks = (n + threads - 1) / threads;
    return blocks < 1 ? 1 : blocks < most_blocks ? static_cast<int>(blocks) : most_blocks;
}

__device__ size_t first()
{
    return static_cast<size_t>(blockIdx.x) * blockDim.x + threadIdx.x;
}

__device__ size_t step()
{
    return static_cast<size_t>(gridDim.x) * blockDim.x;
}

/* ---- arrays ---- */

/* A weir_motion_array. If flat, element i of the result corresponds to data[i]. */
struct operand {
    void *data;
    size_t stride, repeat;
    bool flat, one; /* one: each row has one number, used for all columns */
};

struct job {
    size_t n, columns; /* number of elements in the result, and in each of its rows */
    bool flat;         /* all operands are flat */
    operand r, x, y, z;
};

/* Element i of the result, with its row and column. */
struct place {
    size_t i, row, column;
};

/* Uses 32-bit division if possible, because it is several times faster. */
__device__ __forceinline__ size_t quotient(size_t a, size_t b)
{
    if (((a | b) >> 32) == 0)
        return static_cast<uint32_t>(a) / static_cast<uint32_t>(b);
    return a / b;
}

__device__ __forceinline__ place place_of(const job &job, size_t i)
{
    if (job.flat)
        return place{i, 0, 0};
    size_t row = job.columns == 1 ? i : quotient(i, job.columns);
    return place{i, row, i - row * job.columns};
}

template <typename T> __device__ __forceinline__ T *row_at(const operand &a, size_t row)
{
    return static_cast<T *>(a.data) + (a.repeat == 1 ? row : quotient(row, a.repeat)) * a.stride;
}

template <typename T> __device__ __forceinline__ T &number(const operand &a, const place &at)
{
    if (a.flat)
        return static_cast<T *>(a.data)[at.i];
    return row_at<T>(a, at.row)[a.one ? 0 : at.column];
}

/* ---- numbers ---- */

template <typename R, typename X, typename F> __global__ void each1(const job job, F f)
{
    for (size_t i = first(); i < job.n; i += step()) {
        place at = place_of(job, i);
        number<R>(job.r, at) = f(number<const X>(job.x, at));
    }
}

template <typename R, typename X, typename Y, typename F> __global__ void each2(const job job, Y scalar, F f)
{
    for (size_t i = first(); i < job.n; i += step()) {
        place at = place_of(job, i);
        Y y = job.y.data ? number<const Y>(job.y, at) : scalar;
        number<R>(job.r, at) = f(number<const X>(job.x, at), y);
    }
}

template <typename X, typename F> __global__ void each3(const job job, F f)
{
    for (size_t i = first(); i < job.n; i += step()) {
        place at = place_of(job, i);
        number<float>(job.r, at) =
            f(number<const X>(job.x, at), number<const float>(job.y, at), number<const float>(job.z, at));
    }
}

/* The operators on one element. Each operation is rounded separately, without contraction to fma. */
struct copying {
    template <typename T> __device__ T operator()(T a) const
    {
        return a;
    }
};

struct truncating {
    __device__ int64_t operator()(float a) const
    {
        return a > -0x1p63f && a < 0x1p63f ? static_cast<int64_t>(a) : 0;
    }
};

struct adding {
    template <typename T> __device__ T operator()(T a, T b) const
    {
        return a + b;
    }
};

struct subtracting {
    template <typename T> __device__ T operator()(T a, T b) const
    {
        return a - b;
    }
    __device__ float operator()(float a, int64_t b) const
    {
        return a - static_cast<float>(b);
    }
};

struct subtracting_from {
    __device__ float operator()(float a, float b) const
    {
        return b - a;
    }
};

struct multiplying {
    template <typename Y> __device__ float operator()(float a, Y b) const
    {
        return a * static_cast<float>(b);
    }
};

struct dividing {
    __device__ float operator()(float a, float b) const
    {
        return __fdiv_rn(a, b);
    }
};

struct taking_less {
    __device__ int64_t operator()(int64_t a, int64_t b) const
    {
        return a < b ? a : b;
    }
};

struct rounding_down {
    __device__ float operator()(float a) const
    {
        return floorf(a);
    }
};

struct clamping {
    float low, high;
    __device__ float operator()(float a) const
    {
        return a > low ? a < high ? a : high : low;
    }
};

struct negating {
    __device__ float operator()(float a) const
    {
        return -a;
    }
};

struct making_positive {
    __device__ float operator()(float a) const
    {
        return fabsf(a);
    }
};

struct comparing {
    __device__ uint8_t operator()(float a, float b) const
    {
        return a < b;
    }
};

struct choosing {
    __device__ float operator()(uint8_t a, float b, float c) const
    {
        return a ? b : c;
    }
};

struct arc_cosine {
    __device__ float operator()(float a) const
    {
        return sqrtf(weir_motion_square_angle(1 - a));
    }
};

struct sine {
    __device__ float operator()(float a) const
    {
        return a * weir_motion_sinc_root(a * a);
    }
};

struct lerping {
    __device__ float operator()(float a, float b, float c) const
    {
        return a + c * (b - a);
    }
};

struct adding_product {
    float factor;
    __device__ float operator()(float a, float b, float c) const
    {
        return a + factor * b * c;
    }
};

/* ---- rows ---- */

__global__ void arange(size_t n, int64_t *r)
{
    for (size_t i = first(); i < n; i += step())
        r[i] = static_cast<int64_t>(i);
}

/* Each thread computes one number. */
template <typename T> __global__ void gather(const job job)
{
    for (size_t i = first(); i < job.n; i += step()) {
        place at = place_of(job, i);
        size_t from = static_cast<size_t>(*row_at<const int64_t>(job.y, at.row));
        row_at<T>(job.r, at.row)[at.column] = row_at<const T>(job.x, from)[at.column];
    }
}

/* Each thread copies one number. */
template <typename T> __global__ void scatter(const job job)
{
    for (size_t i = first(); i < job.n; i += step()) {
        place at = place_of(job, i);
        size_t to = static_cast<size_t>(*row_at<const int64_t>(job.y, at.row));
        row_at<T>(job.r, to)[at.column] = row_at<const T>(job.x, at.row)[at.column];
    }
}

/* Each thread computes one row. */
__global__ void sum(size_t rows, int columns, const operand x, const operand r)
{
    for (size_t i = first(); i < rows; i += step()) {
        const float *from = row_at<const float>(x, i);
        float all = 0;
        for (int j = 0; j < columns; j++)
            all += from[j];
        *row_at<float>(r, i) = all;
    }
}

/* Each thread computes one row. */
__global__ void cross(const job job)
{
    for (size_t i = first(); i < job.n; i += step()) {
        const float *x = row_at<const float>(job.x, i), *y = row_at<const float>(job.y, i);
        float x0 = x[0], x1 = x[1], x2 = x[2], y0 = y[0], y1 = y[1], y2 = y[2], *r = row_at<float>(job.r, i);
        r[0] = x1 * y2 - x2 * y1;
        r[1] = x2 * y0 - x0 * y2;
        r[2] = x0 * y1 - x1 * y0;
    }
}

/* Each thread copies one number. of_x and of_y are the numbers of columns of x and y. */
__global__ void concatenate(const job job, size_t of_x, size_t of_y)
{
    for (size_t i = first(); i < job.n; i += step()) {
        place at = place_of(job, i);
        size_t j = at.column;
        row_at<float>(job.r, at.row)[j] = j < of_x          ? row_at<const float>(job.x, at.row)[j]
                                          : j < of_x + of_y ? row_at<const float>(job.y, at.row)[j - of_x]
                                                            : row_at<const float>(job.z, at.row)[j - of_x - of_y];
    }
}

/* Each thread computes one row. */
__global__ void fast_slerp(const job job)
{
    for (size_t i = first(); i < job.n; i += step()) {
        const float *a = row_at<const float>(job.x, i), *b = row_at<const float>(job.y, i);
        float a0 = a[0], a1 = a[1], a2 = a[2], a3 = a[3], b0 = b[0], b1 = b[1], b2 = b[2], b3 = b[3], w0, w1;
        weir_motion_slerp_weights(a0 * b0 + a1 * b1 + a2 * b2 + a3 * b3, *row_at<const float>(job.z, i), &w0, &w1);
        float *r = row_at<float>(job.r, i);
        r[0] = w0 * a0 + w1 * b0;
        r[1] = w0 * a1 + w1 * b1;
        r[2] = w0 * a2 + w1 * b2;
        r[3] = w0 * a3 + w1 * b3;
    }
}

__global__ void advance(size_t n, float *times, float dt_s)
{
    for (size_t i = first(); i < n; i += step())
        times[i] += dt_s;
}

/* ---- launches ---- */

operand operand_of(const weir_motion_array &a, size_t columns)
{
    size_t own = static_cast<size_t>(a.columns);
    bool flat = !a.data || (a.repeat == 1 && own == columns && a.stride == columns);
    return operand{a.data, a.stride, static_cast<size_t>(a.repeat), flat, own != columns};
}

/* Returns a job for this many rows, with the columns of the result. */
job job_of(const weir_motion_operator *o, size_t rows)
{
    size_t columns = static_cast<size_t>(o->r.columns);
    job job = {rows * columns,
               columns,
               false,
               operand_of(o->r, columns),
               operand_of(o->x, columns),
               operand_of(o->y, columns),
               operand_of(o->z, columns)};
    job.flat = job.r.flat && job.x.flat && job.y.flat && job.z.flat;
    return job;
}

template <typename R, typename X, typename F> int run1(const weir_motion_operator *o, F f, cudaStream_t stream)
{
    job job = job_of(o, o->r.rows);
    each1<R, X><<<blocks_for(job.n), threads, 0, stream>>>(job, f);
    return cudaGetLastError();
}

template <typename R, typename X, typename Y, typename F>
int run2(const weir_motion_operator *o, F f, cudaStream_t stream)
{
    job job = job_of(o, o->r.rows);
    each2<R, X, Y><<<blocks_for(job.n), threads, 0, stream>>>(job, static_cast<Y>(o->scalar), f);
    return cudaGetLastError();
}

template <typename X, typename F> int run3(const weir_motion_operator *o, F f, cudaStream_t stream)
{
    if (!o->y.data || !o->z.data)
        return cudaErrorInvalidValue;
    job job = job_of(o, o->r.rows);
    each3<X><<<blocks_for(job.n), threads, 0, stream>>>(job, f);
    return cudaGetLastError();
}

/* Launches a kernel in which each thread computes one row. */
int run_rows(const weir_motion_operator *o, void (*kernel)(const job), cudaStream_t stream)
{
    job job = job_of(o, o->r.rows);
    job.n = o->r.rows;
    kernel<<<blocks_for(job.n), threads, 0, stream>>>(job);
    return cudaGetLastError();
}

int run_indexed(const weir_motion_operator *o, bool put, cudaStream_t stream)
{
    if (!o->y.data || o->y.type != WEIR_MOTION_I64 || o->r.type != o->x.type || o->r.columns != o->x.columns)
        return cudaErrorInvalidValue;
    job job = job_of(o, put ? o->x.rows : o->r.rows);
    job.flat = false; /* because the row number of an element selects other rows */
    void (*kernel)(const struct job) = nullptr;
    if (o->x.type == WEIR_MOTION_I64)
        kernel = put ? scatter<int64_t> : gather<int64_t>;
    else if (o->x.type == WEIR_MOTION_F32)
        kernel = put ? scatter<float> : gather<float>;
    else
        kernel = put ? scatter<uint8_t> : gather<uint8_t>;
    kernel<<<blocks_for(job.n), threads, 0, stream>>>(job);
    return cudaGetLastError();
}

int run_cat(const weir_motion_operator *o, cudaStream_t stream)
{
    if (!o->y.data || !o->z.data || o->r.columns != o->x.columns + o->y.columns + o->z.columns)
        return cudaErrorInvalidValue;
    job job = job_of(o, o->r.rows);
    job.flat = false;
    concatenate<<<blocks_for(job.n), threads, 0, stream>>>(job, o->x.columns, o->y.columns);
    return cudaGetLastError();
}

int run_sum(const weir_motion_operator *o, cudaStream_t stream)
{
    sum<<<blocks_for(o->r.rows), threads, 0, stream>>>(o->r.rows, o->x.columns, operand_of(o->x, o->x.columns),
                                                       operand_of(o->r, 1));
    return cudaGetLastError();
}

/* Encodes three types: of the result, of the first operand, and of the second operand or scalar. */
constexpr int types(weir_motion_type r, weir_motion_type x, weir_motion_type y)
{
    return r * 9 + x * 3 + y;
}
constexpr weir_motion_type F = WEIR_MOTION_F32, I = WEIR_MOTION_I64, B = WEIR_MOTION_BOOL;
constexpr int FFF = types(F, F, F), III = types(I, I, I), FFI = types(F, F, I), IFF = types(I, F, F),
              BFF = types(B, F, F), FBF = types(F, B, F);

int run_one_of_numbers(const weir_motion_operator *o, int of, cudaStream_t s)
{
    float scalar = static_cast<float>(o->scalar);
    switch (o->kind) {
    case WEIR_MOTION_COPY:
        return of == FFF   ? run1<float, float>(o, copying{}, s)
               : of == III ? run1<int64_t, int64_t>(o, copying{}, s)
               : of == IFF ? run1<int64_t, float>(o, truncating{}, s)
                           : cudaErrorInvalidValue;
    case WEIR_MOTION_FLOOR:
        return of == FFF ? run1<float, float>(o, rounding_down{}, s) : cudaErrorInvalidValue;
    case WEIR_MOTION_CLAMP:
        return of == FFF ? run1<float, float>(o, clamping{scalar, static_cast<float>(o->high)}, s)
                         : cudaErrorInvalidValue;
    case WEIR_MOTION_NEG:
        return of == FFF ? run1<float, float>(o, negating{}, s) : cudaErrorInvalidValue;
    case WEIR_MOTION_ABS:
        return of == FFF ? run1<float, float>(o, making_positive{}, s) : cudaErrorInvalidValue;
    case WEIR_MOTION_ACOS:
        return of == FFF ? run1<float, float>(o, arc_cosine{}, s) : cudaErrorInvalidValue;
    case WEIR_MOTION_SIN:
        return of == FFF ? run1<float, float>(o, sine{}, s) : cudaErrorInvalidValue;
    default:
        return cudaErrorInvalidValue;
    }
}

int run_two_of_numbers(const weir_motion_operator *o, int of, cudaStream_t s)
{
    switch (o->kind) {
    case WEIR_MOTION_ADD:
        return of == FFF   ? run2<float, float, float>(o, adding{}, s)
               : of == III ? run2<int64_t, int64_t, int64_t>(o, adding{}, s)
                           : cudaErrorInvalidValue;
    case WEIR_MOTION_SUB:
        return of == FFF   ? run2<float, float, float>(o, subtracting{}, s)
               : of == III ? run2<int64_t, int64_t, int64_t>(o, subtracting{}, s)
               : of == FFI ? run2<float, float, int64_t>(o, subtracting{}, s)
                           : cudaErrorInvalidValue;
    case WEIR_MOTION_RSUB:
        return of == FFF ? run2<float, float, float>(o, subtracting_from{}, s) : cudaErrorInvalidValue;
    case WEIR_MOTION_MUL:
        return of == FFF   ? run2<float, float, float>(o, multiplying{}, s)
               : of == FFI ? run2<float, float, int64_t>(o, multiplying{}, s)
                           : cudaErrorInvalidValue;
    case WEIR_MOTION_DIV:
        return of == FFF ? run2<float, float, float>(o, dividing{}, s) : cudaErrorInvalidValue;
    case WEIR_MOTION_MINIMUM:
        return of == III ? run2<int64_t, int64_t, int64_t>(o, taking_less{}, s) : cudaErrorInvalidValue;
    case WEIR_MOTION_LT:
        return of == BFF ? run2<uint8_t, float, float>(o, comparing{}, s) : cudaErrorInvalidValue;
    default:
        return run_one_of_numbers(o, of, s);
    }
}

int run_numbers(const weir_motion_operator *o, cudaStream_t s)
{
    weir_motion_type y = o->y.data ? o->y.type : o->x.type == B ? F : o->x.type;
    int of = types(o->r.type, o->x.type, y);
    switch (o->kind) {
    case WEIR_MOTION_WHERE:
        return of == FBF ? run3<uint8_t>(o, choosing{}, s) : cudaErrorInvalidValue;
    case WEIR_MOTION_LERP:
        return of == FFF ? run3<float>(o, lerping{}, s) : cudaErrorInvalidValue;
    case WEIR_MOTION_ADDCMUL:
        return of == FFF ? run3<float>(o, adding_product{static_cast<float>(o->scalar)}, s) : cudaErrorInvalidValue;
    default:
        return run_two_of_numbers(o, of, s);
    }
}

} // namespace weir_motion_kernels
using namespace weir_motion_kernels;

int weir_motion_kernels_operate(const struct weir_motion_operator *o, void *stream)
{
    cudaStream_t s = static_cast<cudaStream_t>(stream);
    if (o->kind == WEIR_MOTION_ARANGE) {
        arange<<<blocks_for(o->r.rows), threads, 0, s>>>(o->r.rows, static_cast<int64_t *>(o->r.data));
        return cudaGetLastError();
    }
    if (!o->x.data)
        return cudaErrorInvalidValue;
    switch (o->kind) {
    case WEIR_MOTION_INDEX:
        return run_indexed(o, false, s);
    case WEIR_MOTION_INDEX_PUT:
        return run_indexed(o, true, s);
    case WEIR_MOTION_SUM:
        return run_sum(o, s);
    case WEIR_MOTION_CROSS:
        return o->y.data ? run_rows(o, cross, s) : cudaErrorInvalidValue;
    case WEIR_MOTION_CAT:
        return run_cat(o, s);
    case WEIR_MOTION_SLERP:
        return o->y.data && o->z.data ? run_rows(o, fast_slerp, s) : cudaErrorInvalidValue;
    default:
        return run_numbers(o, s);
    }
}

int weir_motion_kernels_advance(size_t n, float *times, float dt_s, void *stream)
{
    advance<<<blocks_for(n), threads, 0, static_cast<cudaStream_t>(stream)>>>(n, times, dt_s);
    return cudaGetLastError();
}
