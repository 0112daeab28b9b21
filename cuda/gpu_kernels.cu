/* Kernels that prepare batches, and a kernel that keeps the GPU busy for tests. Results are bit-exact with
 * libjpeg-turbo and decoders/resample.c: integer arithmetic is the same, and floats are multiplied and added with
 * intrinsics that the compiler never fuses into an FMA. */
#include "cuda/gpu_kernels_priv.h"
#include "weir/kernel_clock.cuh"

#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <cuda_runtime.h>

/* Not unnamed: nvcc would add a hash of this file's path to the names, and two builds would differ. */
namespace weir_gpu_kernels
{

enum { THREADS = 256, BLOCKS_PER_SM = 16, BUSY_THREADS = 128 };

struct job {
    const weir_gpu_source *sources;
    uint32_t run, stride, first;
    uint32_t units, units_per_image; /* a unit is THREADS items of one image, which a block processes before it advances
                                        by the grid size */
    int width, height, x, y, out_width, out_height;
    bool bgr;
    bool aligned; /* rows of the result start at addresses where four values can be stored with one instruction */
    weir_gpu_taps columns, rows;
    const float *values;
    void *tensor;
};

struct rgb {
    int r, g, b;
};

template <bool ON> using prepare_clock = weir::kernel_clock<WEIR_GPU_PREPARE_STAGES, WEIR_GPU_PREPARE_ITERATIONS, ON>;

/* ---- reading a source ---- */

template <uint32_t KIND> constexpr bool is_wide = KIND == WEIR_GPU_YUV420 || KIND == WEIR_GPU_YUV422;
template <uint32_t KIND> constexpr bool is_tall = KIND == WEIR_GPU_YUV420 || KIND == WEIR_GPU_YUV440;

__device__ __forceinline__ int byte_at(const uint8_t *at)
{
    return __ldg(at);
}

__device__ __forceinline__ int limit(int value)
{
    return min(max(value, 0), 255);
}

/* Converts YCbCr to RGB with the coefficients of jdcolor.c: 1.40200, 0.71414, 0.34414 and 1.77200, times 65536. */
__device__ __forceinline__ rgb color_of(int y, int cb, int cr)
{
    cb -= 128;
    cr -= 128;
    return rgb{limit(y + ((91881 * cr + 32768) >> 16)), limit(y + ((32768 - 22554 * cb - 46802 * cr) >> 16)),
               limit(y + ((116130 * cb + 32768) >> 16))};
}

/* A chroma plane at row y of the image: the chroma row that contains y, and the next nearest chroma row. As in
 * jdsample.c, the containing sample has weight 3 and the neighbouring sample weight 1, in both directions, and the edge
 * samples are replicated. Planes with half the image's width and at most two columns are not filtered. */
template <uint32_t KIND> struct chroma_rows {
    const uint8_t *near, *far;
    int last; /* index of the last column */
    int odd;  /* parity of the image row */
    bool plain;

    __device__ __forceinline__ chroma_rows(const uint8_t *plane, size_t pitch, const job &job, int y)
    {
        int height = is_tall<KIND> ? (job.height + 1) / 2 : job.height;
        int row = is_tall<KIND> ? y >> 1 : y;
        int next = is_tall<KIND> ? min(max(row + (y & 1 ? 1 : -1), 0), height - 1) : row;
        last = (is_wide<KIND> ? (job.width + 1) / 2 : job.width) - 1;
        odd = y & 1;
        plain = is_wide<KIND> && last < 2;
        near = plane + (size_t)row * pitch;
        far = plane + (size_t)next * pitch;
    }

    /* Returns the weighted sum of a column's two rows, before division. */
    __device__ __forceinline__ int column(int x) const
    {
        x = min(max(x, 0), last);
        return is_tall<KIND> ? 3 * byte_at(near + x) + byte_at(far + x) : byte_at(near + x);
    }

    /* Combines the sums of two columns into an even or odd pixel. */
    static __device__ __forceinline__ int across(int near_sum, int far_sum, bool odd_pixel)
    {
        return is_tall<KIND> ? (3 * near_sum + far_sum + (odd_pixel ? 7 : 8)) >> 4
                             : (3 * near_sum + far_sum + (odd_pixel ? 2 : 1)) >> 2;
    }

    __device__ __forceinline__ int at(int x) const
    {
        if constexpr (!is_wide<KIND>)
            return is_tall<KIND> ? (column(x) + (odd ? 2 : 1)) >> 2 : column(x);
        if (plain)
            return byte_at(near + min(x >> 1, last));
        return across(column(x >> 1), column((x >> 1) + (x & 1 ? 1 : -1)), x & 1);
    }

    /* Computes pixels x .. x + 3. Values past the end of the row are undefined. */
    __device__ __forceinline__ void four(int x, int out[4]) const
    {
        if (!is_wide<KIND> || plain) {
            for (int i = 0; i < 4; i++)
                out[i] = at(x + i);
            return;
        }
        int first = (x >> 1) - 1;
        int s0 = column(first), s1 = column(first + 1), s2 = column(first + 2), s3 = column(first + 3);
        int values[5] = {across(s1, s0, false), across(s1, s2, true), across(s2, s1, false), across(s2, s3, true),
                         across(s3, s2, false)};
        for (int i = 0; i < 4; i++)
            out[i] = x & 1 ? values[i + 1] : values[i];
    }
};

template <uint32_t KIND>
__device__ __forceinline__ rgb pixel_of(const weir_gpu_source &source, const job &job, int x, int y)
{
    const uint8_t *row = source.plane[0] + (size_t)y * source.pitch[0];
    if constexpr (KIND == WEIR_GPU_RGB)
        return rgb{byte_at(row + 3 * x), byte_at(row + 3 * x + 1), byte_at(row + 3 * x + 2)};
    int luma = byte_at(row + x);
    if constexpr (KIND == WEIR_GPU_GRAY)
        return rgb{luma, luma, luma};
    chroma_rows<KIND> cb(source.plane[1], source.pitch[1], job, y), cr(source.plane[2], source.pitch[2], job, y);
    return color_of(luma, cb.at(x), cr.at(x));
}

/* Loads N bytes; N must be a multiple of four. Never reads at or past `end`. */
template <int N> __device__ __forceinline__ void bytes_at(const uint8_t *at, const uint8_t *end, int out[N])
{
    if (((uintptr_t)at & 3) == 0 && at + N <= end) {
        for (int i = 0; i < N / 4; i++) {
            uint32_t word = __ldg((const uint32_t *)at + i);
            for (int k = 0; k < 4; k++)
                out[4 * i + k] = word >> (8 * k) & 255;
        }
        return;
    }
    for (int i = 0; i < N; i++)
        out[i] = at + i < end ? byte_at(at + i) : 0;
}

/* Computes pixels x .. x + 3 of row y. Pixels past the end of the row are undefined. */
template <uint32_t KIND>
__device__ __forceinline__ void four_pixels(const weir_gpu_source &source, const job &job, int x, int y, rgb out[4])
{
    const uint8_t *row = source.plane[0] + (size_t)y * source.pitch[0];
    if constexpr (KIND == WEIR_GPU_RGB) {
        int values[12];
        bytes_at<12>(row + 3 * x, row + 3 * job.width, values);
        for (int i = 0; i < 4; i++)
            out[i] = rgb{values[3 * i], values[3 * i + 1], values[3 * i + 2]};
        return;
    }
    int luma[4];
    bytes_at<4>(row + x, row + job.width, luma);
    if constexpr (KIND == WEIR_GPU_GRAY) {
        for (int i = 0; i < 4; i++)
            out[i] = rgb{luma[i], luma[i], luma[i]};
        return;
    }
    int cb[4], cr[4];
    chroma_rows<KIND>(source.plane[1], source.pitch[1], job, y).four(x, cb);
    chroma_rows<KIND>(source.plane[2], source.pitch[2], job, y).four(x, cr);
    for (int i = 0; i < 4; i++)
        out[i] = color_of(luma[i], cb[i], cr[i]);
}

/* ---- values ---- */

/* stored<DTYPE>::bits is an unsigned type that holds the bit pattern of a result value. */
template <int DTYPE> struct stored;
template <> struct stored<WEIR_GPU_U8> {
    typedef uint8_t bits;
};
template <> struct stored<WEIR_GPU_F32> {
    typedef uint32_t bits;
};
template <> struct stored<WEIR_GPU_F16> {
    typedef uint16_t bits;
};
template <> struct stored<WEIR_GPU_BF16> {
    typedef uint16_t bits;
};

template <int DTYPE> __device__ __forceinline__ typename stored<DTYPE>::bits rounded(float value)
{
    if constexpr (DTYPE == WEIR_GPU_F16)
        return (typename stored<DTYPE>::bits)__half_as_ushort(__float2half_rn(value));
    if constexpr (DTYPE == WEIR_GPU_BF16)
        return (typename stored<DTYPE>::bits)__bfloat16_as_ushort(__float2bfloat16_rn(value));
    return (typename stored<DTYPE>::bits)__float_as_uint(value);
}

/* Fills a table in the block's shared memory with the result for each value of each channel: 3 x 256 entries. Not used
 * for u8. */
template <int DTYPE> __device__ void fill_table(const job &job, typename stored<DTYPE>::bits *table)
{
    if constexpr (DTYPE != WEIR_GPU_U8) {
        for (int i = threadIdx.x; i < 3 * 256; i += THREADS)
            table[i] = rounded<DTYPE>(job.values[i]);
        __syncthreads();
    }
}

template <int DTYPE>
__device__ __forceinline__ typename stored<DTYPE>::bits value_of(const typename stored<DTYPE>::bits *table, int channel,
                                                                 int value)
{
    if constexpr (DTYPE == WEIR_GPU_U8)
        return (typename stored<DTYPE>::bits)value;
    return table[channel * 256 + value];
}

__device__ __forceinline__ void store_four(uint32_t *to, const uint32_t v[4])
{
    *(uint4 *)to = make_uint4(v[0], v[1], v[2], v[3]);
}

__device__ __forceinline__ void store_four(uint16_t *to, const uint16_t v[4])
{
    *(uint2 *)to = make_uint2(v[0] | (uint32_t)v[1] << 16, v[2] | (uint32_t)v[3] << 16);
}

__device__ __forceinline__ void store_four(uint8_t *to, const uint8_t v[4])
{
    *(uint32_t *)to = v[0] | (uint32_t)v[1] << 8 | (uint32_t)v[2] << 16 | (uint32_t)v[3] << 24;
}

/* Returns the index of pixel x of row y of an image in the tensor. The index of channel c is c * step_of() higher. */
template <bool PLANAR> __device__ __forceinline__ size_t place_of(const job &job, uint32_t image, int x, int y)
{
    image = image / job.run * job.stride + job.first + image % job.run;
    size_t pixels = (size_t)job.out_width * job.out_height, pixel = (size_t)y * job.out_width + x;
    return (size_t)image * 3 * pixels + (PLANAR ? pixel : 3 * pixel);
}

template <bool PLANAR> __device__ __forceinline__ size_t step_of(const job &job)
{
    return PLANAR ? (size_t)job.out_width * job.out_height : 1;
}

template <int DTYPE, bool PLANAR>
__device__ __forceinline__ void put_one(const job &job, const typename stored<DTYPE>::bits *table, uint32_t image,
                                        int x, int y, rgb pixel)
{
    typename stored<DTYPE>::bits *to = (typename stored<DTYPE>::bits *)job.tensor + place_of<PLANAR>(job, image, x, y);
    size_t step = step_of<PLANAR>(job);
    to[0] = value_of<DTYPE>(table, 0, job.bgr ? pixel.b : pixel.r);
    to[step] = value_of<DTYPE>(table, 1, pixel.g);
    to[2 * step] = value_of<DTYPE>(table, 2, job.bgr ? pixel.r : pixel.b);
}

/* Stores four pixels of a row. The width of the rows must be a multiple of four. */
template <int DTYPE, bool PLANAR>
__device__ __forceinline__ void put_four(const job &job, const typename stored<DTYPE>::bits *table, uint32_t image,
                                         int x, int y, const rgb pixels[4])
{
    typedef typename stored<DTYPE>::bits bits;
    bits *to = (bits *)job.tensor + place_of<PLANAR>(job, image, x, y), values[12];
    for (int i = 0; i < 4; i++) {
        bits *at = PLANAR ? values + i : values + 3 * i;
        const int next = PLANAR ? 4 : 1;
        at[0] = value_of<DTYPE>(table, 0, job.bgr ? pixels[i].b : pixels[i].r);
        at[next] = value_of<DTYPE>(table, 1, pixels[i].g);
        at[2 * next] = value_of<DTYPE>(table, 2, job.bgr ? pixels[i].r : pixels[i].b);
    }
    size_t step = PLANAR ? step_of<PLANAR>(job) : 4;
    for (int c = 0; c < 3; c++)
        store_four(to + c * step, values + 4 * c);
}

/* ---- the kernels ---- */

template <int DTYPE, bool PLANAR, uint32_t KIND, typename CLOCK>
__device__ __forceinline__ void same_size(const job &job, const typename stored<DTYPE>::bits *table, uint32_t image,
                                          uint32_t item, CLOCK &clock)
{
    uint32_t quads = (uint32_t)(job.out_width + 3) / 4;
    int y = (int)(item / quads), x = (int)(item % quads) * 4;
    if (y >= job.out_height)
        return;
    rgb pixels[4];
    four_pixels<KIND>(job.sources[image], job, job.x + x, job.y + y, pixels);
    clock.warp_lap(WEIR_GPU_PREPARE_PIXELS, pixels);
    if (job.aligned) {
        put_four<DTYPE, PLANAR>(job, table, image, x, y, pixels);
        return;
    }
    for (int i = 0; i < 4; i++)
        if (x + i < job.out_width)
            put_one<DTYPE, PLANAR>(job, table, image, x + i, y, pixels[i]);
}

__device__ __forceinline__ int cut(float sum)
{
    return __float2int_rz(sum < 255.0f ? sum : 255.0f);
}

/* Returns the contribution of source column x to a pixel in row y of the result. */
template <uint32_t KIND>
__device__ __forceinline__ float3 column_sum(const job &job, const weir_gpu_source &source, int x, int y)
{
    const float *weights = job.rows.weights + (size_t)y * job.rows.most;
    int first = job.rows.first[y], n = job.rows.n[y];
    float3 sum = {0, 0, 0};
    for (int k = 0; k < n; k++) {
        rgb pixel = pixel_of<KIND>(source, job, x, first + k);
        float weight = weights[k];
        float3 part = {__fmul_rn(weight, (float)pixel.r), __fmul_rn(weight, (float)pixel.g),
                       __fmul_rn(weight, (float)pixel.b)};
        sum = k == 0 ? part : float3{__fadd_rn(sum.x, part.x), __fadd_rn(sum.y, part.y), __fadd_rn(sum.z, part.z)};
    }
    return sum;
}

template <int DTYPE, bool PLANAR, uint32_t KIND, typename CLOCK>
__device__ __forceinline__ void other_size(const job &job, const typename stored<DTYPE>::bits *table, uint32_t image,
                                           uint32_t item, CLOCK &clock)
{
    int y = (int)(item / (uint32_t)job.out_width), x = (int)(item % (uint32_t)job.out_width);
    if (y >= job.out_height)
        return;
    const float *weights = job.columns.weights + (size_t)x * job.columns.most;
    int first = job.columns.first[x], n = job.columns.n[x];
    float3 sum = {0.5f, 0.5f, 0.5f};
    for (int k = 0; k < n; k++) {
        float3 part = column_sum<KIND>(job, job.sources[image], first + k, y);
        sum = float3{__fadd_rn(sum.x, __fmul_rn(part.x, weights[k])), __fadd_rn(sum.y, __fmul_rn(part.y, weights[k])),
                     __fadd_rn(sum.z, __fmul_rn(part.z, weights[k]))};
    }
    clock.warp_lap(WEIR_GPU_PREPARE_PIXELS, sum);
    put_one<DTYPE, PLANAR>(job, table, image, x, y, rgb{cut(sum.x), cut(sum.y), cut(sum.z)});
}

template <int DTYPE, bool PLANAR, bool RESIZED, uint32_t KIND, typename CLOCK>
__device__ __forceinline__ void do_item(const job &job, const typename stored<DTYPE>::bits *table, uint32_t image,
                                        uint32_t item, CLOCK &clock)
{
    if constexpr (RESIZED)
        other_size<DTYPE, PLANAR, KIND>(job, table, image, item, clock);
    else
        same_size<DTYPE, PLANAR, KIND>(job, table, image, item, clock);
}

/* All threads of a block work on the same image, so that its frame kind causes no divergence. */
template <int DTYPE, bool PLANAR, bool RESIZED, typename CLOCK>
__device__ __forceinline__ void prepare_images(const job &job, CLOCK &clock)
{
    __shared__ typename stored<DTYPE>::bits table[3 * 256];
    clock.begin_iteration();
    fill_table<DTYPE>(job, table);
    clock.warp_lap(WEIR_GPU_PREPARE_VALUES);
    for (uint32_t unit = blockIdx.x; unit < job.units; unit += gridDim.x) {
        clock.begin_iteration();
        uint32_t image = unit / job.units_per_image, item = unit % job.units_per_image * THREADS + threadIdx.x;
        switch (job.sources[image].kind) {
        case WEIR_GPU_RGB:
            do_item<DTYPE, PLANAR, RESIZED, WEIR_GPU_RGB>(job, table, image, item, clock);
            break;
        case WEIR_GPU_GRAY:
            do_item<DTYPE, PLANAR, RESIZED, WEIR_GPU_GRAY>(job, table, image, item, clock);
            break;
        case WEIR_GPU_YUV444:
            do_item<DTYPE, PLANAR, RESIZED, WEIR_GPU_YUV444>(job, table, image, item, clock);
            break;
        case WEIR_GPU_YUV422:
            do_item<DTYPE, PLANAR, RESIZED, WEIR_GPU_YUV422>(job, table, image, item, clock);
            break;
        case WEIR_GPU_YUV420:
            do_item<DTYPE, PLANAR, RESIZED, WEIR_GPU_YUV420>(job, table, image, item, clock);
            break;
        case WEIR_GPU_YUV440:
            do_item<DTYPE, PLANAR, RESIZED, WEIR_GPU_YUV440>(job, table, image, item, clock);
            break;
        }
        clock.warp_lap(WEIR_GPU_PREPARE_STORE);
    }
    clock.store();
}

template <int DTYPE, bool PLANAR, bool RESIZED> __global__ void __launch_bounds__(THREADS) prepare_kernel(const job job)
{
    prepare_clock<false> clock;
    prepare_images<DTYPE, PLANAR, RESIZED>(job, clock);
}

/* Like prepare_kernel, with stage clocks. */
template <int DTYPE, bool PLANAR, bool RESIZED>
__global__ void __launch_bounds__(THREADS) prepare_clocked_kernel(const job job, const weir_kernel_clock_table clocks)
{
    prepare_clock<true> clock(clocks);
    prepare_images<DTYPE, PLANAR, RESIZED>(job, clock);
}

/* Each block measures the time from its own start, so the kernel runs for at least ns. */
__global__ void __launch_bounds__(BUSY_THREADS) busy_kernel(uint64_t ns)
{
    uint64_t start = weir::kernel_clock_parts::global_ns();
    while (weir::kernel_clock_parts::global_ns() - start < ns)
        ;
}

/* ---- launching ---- */

/* Kernel variants without and with stage clocks. prepare_kernels is indexed [dtype][planar][resized]. */
struct prepare_functions {
    void (*plain)(job);
    void (*clocked)(job, weir_kernel_clock_table);
};

template <int DTYPE, bool PLANAR, bool RESIZED>
constexpr prepare_functions functions = {prepare_kernel<DTYPE, PLANAR, RESIZED>,
                                         prepare_clocked_kernel<DTYPE, PLANAR, RESIZED>};

const prepare_functions prepare_kernels[4][2][2] = {
    {{functions<WEIR_GPU_U8, false, false>, functions<WEIR_GPU_U8, false, true>},
     {functions<WEIR_GPU_U8, true, false>, functions<WEIR_GPU_U8, true, true>}},
    {{functions<WEIR_GPU_F32, false, false>, functions<WEIR_GPU_F32, false, true>},
     {functions<WEIR_GPU_F32, true, false>, functions<WEIR_GPU_F32, true, true>}},
    {{functions<WEIR_GPU_F16, false, false>, functions<WEIR_GPU_F16, false, true>},
     {functions<WEIR_GPU_F16, true, false>, functions<WEIR_GPU_F16, true, true>}},
    {{functions<WEIR_GPU_BF16, false, false>, functions<WEIR_GPU_BF16, false, true>},
     {functions<WEIR_GPU_BF16, true, false>, functions<WEIR_GPU_BF16, true, true>}},
};

} // namespace weir_gpu_kernels
using namespace weir_gpu_kernels;

int weir_gpu_kernels_load(void)
{
    cudaFuncAttributes attributes;
    cudaError_t error = cudaFuncGetAttributes(&attributes, busy_kernel);
    for (int i = 0; error == cudaSuccess && i < 16; i++)
        error = cudaFuncGetAttributes(&attributes, prepare_kernels[i / 4][i / 2 % 2][i % 2].plain);
    return error;
}

int weir_gpu_kernels_prepare(const struct weir_gpu_prepare *prepare, int sms, void *stream)
{
    const weir_gpu_prepare &p = *prepare;
    bool resized = p.columns != nullptr;
    uint64_t items = (uint64_t)p.out_height * (uint64_t)(resized ? p.out_width : (p.out_width + 3) / 4);
    uint64_t per_image = (items + THREADS - 1) / THREADS, units = per_image * (uint64_t)p.n;
    if (p.n == 0)
        return cudaSuccess;
    if (items > INT32_MAX || units > INT32_MAX) /* leaves room for adding the grid size to a unit without overflow */
        return cudaErrorInvalidValue;
    job job = {};
    job.sources = p.sources;
    job.run = p.run ? (uint32_t)p.run : (uint32_t)p.n;
    job.stride = (uint32_t)p.stride;
    job.first = p.run ? (uint32_t)p.first : 0;
    job.units = (uint32_t)units;
    job.units_per_image = (uint32_t)per_image;
    job.width = p.width;
    job.height = p.height;
    job.x = p.x;
    job.y = p.y;
    job.out_width = p.out_width;
    job.out_height = p.out_height;
    job.bgr = p.bgr;
    job.aligned = p.out_width % 4 == 0;
    if (resized) {
        job.columns = *p.columns;
        job.rows = *p.rows;
    }
    job.values = p.values;
    job.tensor = p.tensor;
    unsigned most = (unsigned)(sms * BLOCKS_PER_SM);
    dim3 grid(job.units < most ? job.units : most), block(THREADS);
    const prepare_functions &kernel = prepare_kernels[p.dtype][p.planar][resized];
    weir_kernel_clock_table clocks = p.clocks;
    void *arguments[] = {&job, &clocks};
    return cudaLaunchKernel(clocks.memory ? (const void *)kernel.clocked : (const void *)kernel.plain, grid, block,
                            arguments, 0, (cudaStream_t)stream);
}

int weir_gpu_kernels_clock_samples(uint64_t *to, uint32_t n, void *stream)
{
    void *arguments[] = {&to, &n};
    cudaFuncAttributes attributes;
    cudaError_t error = cudaSuccess;
    for (int i = 0; error == cudaSuccess && i < 16; i++)
        error = cudaFuncGetAttributes(&attributes, prepare_kernels[i / 4][i / 2 % 2][i % 2].clocked);
    if (error != cudaSuccess)
        return error;
    return cudaLaunchKernel((const void *)weir::kernel_clock_samples<uint64_t>, dim3(1), dim3(1), arguments, 0,
                            (cudaStream_t)stream);
}

int weir_gpu_kernels_busy(uint64_t ns, int sms, void *stream)
{
    void *arguments[] = {&ns};
    return cudaLaunchKernel((const void *)busy_kernel, dim3((unsigned)sms), dim3(BUSY_THREADS), arguments, 0,
                            (cudaStream_t)stream);
}
