/* The network operations that cuBLAS and cuDNN do not provide. The order of each sum depends only on array sizes, so
 * training is reproducible bit for bit. */
#include "extras/common/cuda/compute_cuda_priv.h"

#include <cuda_fp16.h>
#include <cuda_runtime_api.h>

namespace weir_compute_kernels
{

constexpr int threads = 256;
constexpr int most_blocks = 4096; /* enough, because kernels use grid-stride loops */

int blocks_for(size_t numbers)
{
    size_t blocks = (numbers + threads - 1) / threads;
    return blocks < 1 ? 1 : blocks < most_blocks ? static_cast<int>(blocks) : most_blocks;
}

/* Returns a grid with about four pixels per thread, or more if a plane would need over 64 blocks. */
dim3 plane_grid(int planes, int pixels)
{
    int parts = (pixels + 4 * threads - 1) / (4 * threads);
    return dim3(planes, parts < 64 ? parts : 64);
}

__device__ size_t first()
{
    return static_cast<size_t>(blockIdx.x) * blockDim.x + threadIdx.x;
}

__device__ size_t step()
{
    return static_cast<size_t>(gridDim.x) * blockDim.x;
}

__device__ float number(float x)
{
    return x;
}

__device__ float number(__half x)
{
    return __half2float(x);
}

__device__ void put(float *to, float x)
{
    *to = x;
}

__device__ void put(__half *to, float x)
{
    *to = __float2half(x);
}

/* Returns the sum of value over all threads of the block, to every thread. T is float or double. */
template <typename T> __device__ T block_sum(T value)
{
    __shared__ T sums[32];
    for (int offset = 16; offset > 0; offset /= 2)
        value += __shfl_xor_sync(0xffffffffu, value, offset);
    if (threadIdx.x % 32 == 0)
        sums[threadIdx.x / 32] = value;
    __syncthreads();
    value = 0;
    for (unsigned i = 0; i < blockDim.x / 32; i++)
        value += sums[i];
    __syncthreads();
    return value;
}

cudaStream_t as_stream(void *stream)
{
    return static_cast<cudaStream_t>(stream);
}

/* ---- linear layers ---- */

__global__ void bias_relu(int rows, int columns, const float *bias, bool relu, float *y, int ld)
{
    size_t numbers = static_cast<size_t>(rows) * columns;
    for (size_t i = first(); i < numbers; i += step()) {
        size_t at = i / columns * ld + i % columns;
        float value = y[at] + bias[i % columns];
        y[at] = relu && value < 0 ? 0 : value; /* NaN stays NaN */
    }
}

__global__ void bias_gradient(int rows, int columns, const float *dy, int ld, float *gradient)
{
    for (size_t j = first(); j < static_cast<size_t>(columns); j += step()) {
        float sum = 0;
        for (int i = 0; i < rows; i++)
            sum += dy[static_cast<size_t>(i) * ld + j];
        gradient[j] += sum;
    }
}

__global__ void relu_backward(int rows, int columns, const float *y, float *dy, int ld)
{
    size_t numbers = static_cast<size_t>(rows) * columns;
    for (size_t i = first(); i < numbers; i += step()) {
        size_t at = i / columns * ld + i % columns;
        dy[at] = y[at] > 0 ? dy[at] : 0;
    }
}

/* ---- images ---- */

/* Each block handles pixels of a single plane, so that no division per pixel is needed to find the channel. */
template <typename T> __global__ void plane_bias_relu(int channels, int pixels, const float *bias, T *y)
{
    size_t plane = blockIdx.x;
    float add = bias[plane % channels];
    for (int i = blockIdx.y * blockDim.x + threadIdx.x; i < pixels; i += gridDim.y * blockDim.x) {
        float value = number(y[plane * pixels + i]) + add;
        put(&y[plane * pixels + i], value < 0 ? 0 : value);
    }
}

/* Each block sums part of one channel's pixels over all images. */
template <typename T>
__global__ void plane_part_sums(size_t pixels_of_all, int channels, int pixels, const T *dy, float *partial)
{
    size_t channel = blockIdx.x, part = blockIdx.y, parts = gridDim.y;
    float sum = 0;
    for (size_t i = part * blockDim.x + threadIdx.x; i < pixels_of_all; i += parts * blockDim.x)
        sum += number(dy[(i / pixels * channels + channel) * pixels + i % pixels]);
    sum = block_sum(sum);
    if (threadIdx.x == 0)
        partial[channel * parts + part] = sum;
}

__global__ void add_parts(int channels, int parts, const float *partial, float *gradient)
{
    for (size_t c = first(); c < static_cast<size_t>(channels); c += step()) {
        float sum = 0;
        for (int i = 0; i < parts; i++)
            sum += partial[c * parts + i];
        gradient[c] += sum;
    }
}

template <typename T> __global__ void mask(size_t numbers, const T *x, T *dx)
{
    for (size_t i = first(); i < numbers; i += step())
        if (!(number(x[i]) > 0))
            put(&dx[i], 0);
}

template <typename T> __global__ void average_pool(int channels, int pixels, const T *x, float *y, int ld)
{
    size_t plane = blockIdx.x;
    float sum = 0;
    for (int i = threadIdx.x; i < pixels; i += blockDim.x)
        sum += number(x[plane * pixels + i]);
    sum = block_sum(sum);
    if (threadIdx.x == 0)
        y[plane / channels * ld + plane % channels] = sum / pixels;
}

template <typename T>
__global__ void average_pool_backward(int channels, int pixels, const T *x, const float *dy, int ld, T *dx)
{
    size_t plane = blockIdx.x;
    float gradient = dy[plane / channels * ld + plane % channels] / pixels;
    for (int i = blockIdx.y * blockDim.x + threadIdx.x; i < pixels; i += gridDim.y * blockDim.x)
        put(&dx[plane * pixels + i], number(x[plane * pixels + i]) > 0 ? gradient : 0);
}

__global__ void to_half(size_t numbers, size_t columns, const float *from, size_t stride, __half *to)
{
    for (size_t i = first(); i < numbers; i += step())
        to[i] = __float2half(from[i / columns * stride + i % columns]);
}

__global__ void add_half(size_t numbers, const __half *from, float *to)
{
    for (size_t i = first(); i < numbers; i += step())
        to[i] += __half2float(from[i]);
}

/* ---- convolutions as products ---- */

struct shape {
    int channels, height, width, out_height, out_width;
};

shape shape_of(const struct weir_convolution *c)
{
    return {c->channels, c->height, c->width, c->out_height, c->out_width};
}

__global__ void im2col(shape s, size_t numbers, const float *x, size_t x_stride, float *columns)
{
    size_t pixels = static_cast<size_t>(s.out_height) * s.out_width;
    for (size_t i = first(); i < numbers; i += step()) {
        size_t pixel = i % pixels, row = i / pixels % (s.channels * 9), image = i / pixels / (s.channels * 9);
        int tap = static_cast<int>(row % 9), channel = static_cast<int>(row / 9);
        int py = static_cast<int>(pixel / s.out_width) * 2 + tap / 3 - 1;
        int px = static_cast<int>(pixel % s.out_width) * 2 + tap % 3 - 1;
        bool inside = py >= 0 && py < s.height && px >= 0 && px < s.width;
        columns[i] = inside ? x[image * x_stride + (static_cast<size_t>(channel) * s.height + py) * s.width + px] : 0;
    }
}

/* Each thread computes a pixel's gradient by summing over the taps that cover the pixel. */
__global__ void col2im(shape s, size_t numbers, const float *columns, float *dx)
{
    size_t plane = static_cast<size_t>(s.height) * s.width, pixels = static_cast<size_t>(s.out_height) * s.out_width;
    for (size_t i = first(); i < numbers; i += step()) {
        size_t image = i / plane / s.channels, channel = i / plane % s.channels;
        int y = static_cast<int>(i % plane / s.width), x = static_cast<int>(i % s.width);
        float sum = 0;
        for (int tap = 0; tap < 9; tap++) {
            int oy = y + 1 - tap / 3, ox = x + 1 - tap % 3;
            if (oy < 0 || ox < 0 || oy % 2 || ox % 2 || oy / 2 >= s.out_height || ox / 2 >= s.out_width)
                continue;
            size_t row = (image * s.channels + channel) * 9 + tap;
            sum += columns[row * pixels + static_cast<size_t>(oy / 2) * s.out_width + ox / 2];
        }
        dx[i] = sum;
    }
}

/* ---- loss ---- */

__global__ void weigh(size_t rows, const uint8_t *is_pad, float *weights)
{
    for (size_t i = first(); i < rows; i += step())
        weights[i] = is_pad[i] ? 0 : 1;
}

__global__ void affine(size_t numbers, float scale, float shift, int times, float *x)
{
    for (size_t i = first(); i < numbers; i += step()) {
        float value = x[i];
        for (int j = 0; j < times; j++)
            value = scale * value + shift;
        x[i] = value;
    }
}

__global__ void l1_parts(size_t numbers, int columns, const float *y, const float *wanted, const float *weights,
                         double *partial)
{
    double sum = 0, count = 0;
    for (size_t i = first(); i < numbers; i += step()) {
        if (weights[i / columns] == 0)
            continue;
        sum += fabs(static_cast<double>(y[i]) - wanted[i]);
        count += 1;
    }
    sum = block_sum(sum);
    count = block_sum(count);
    if (threadIdx.x == 0) {
        partial[2 * blockIdx.x] = sum;
        partial[2 * blockIdx.x + 1] = count;
    }
}

__global__ void l1_whole(int parts, const double *partial, float *loss)
{
    int i = threadIdx.x;
    double sum = block_sum(i < parts ? partial[2 * i] : 0), count = block_sum(i < parts ? partial[2 * i + 1] : 0);
    if (i > 0)
        return;
    loss[0] = static_cast<float>(count > 0 ? sum / count : 0);
    loss[1] = static_cast<float>(count > 0 ? 1 / count : 0);
}

__global__ void l1_backward(size_t numbers, int columns, const float *y, const float *wanted, const float *weights,
                            const float *loss, float factor, const weir_cuda_scale *scale, float *dy)
{
    float one = loss[1] * factor * scale->scale;
    for (size_t i = first(); i < numbers; i += step()) {
        int sign = (y[i] > wanted[i]) - (y[i] < wanted[i]);
        dy[i] = weights[i / columns] == 0 ? 0 : sign * one;
    }
}

/* ---- optimiser ---- */

__global__ void find_not_finite(size_t numbers, const float *gradients, weir_cuda_scale *scale)
{
    bool found = false;
    for (size_t i = first(); i < numbers; i += step())
        found = found || !isfinite(gradients[i]);
    if (found)
        scale->not_finite = 1; /* no race: all writers store the same value */
}

struct adamw_numbers {
    float learning_rate, weight_decay, beta1, beta2, eps;
    double beta1_exact, beta2_exact;
    uint64_t step;
};

__global__ void adamw_step(adamw_numbers a, size_t numbers, float *parameters, float *gradients, float *mean,
                           float *variance, const weir_cuda_scale *scale)
{
    double done = static_cast<double>(a.step - scale->skipped);
    float rate = static_cast<float>(a.learning_rate / (1 - pow(a.beta1_exact, done)));
    float root2 = static_cast<float>(1 / sqrt(1 - pow(a.beta2_exact, done)));
    float keep = 1 - a.learning_rate * a.weight_decay, unscale = 1 / scale->scale;
    bool skip = scale->not_finite;
    for (size_t i = first(); i < numbers; i += step()) {
        float g = gradients[i] * unscale;
        gradients[i] = 0;
        if (skip)
            continue;
        float m = a.beta1 * mean[i] + (1 - a.beta1) * g, v = a.beta2 * variance[i] + (1 - a.beta2) * g * g;
        mean[i] = m;
        variance[i] = v;
        parameters[i] = keep * parameters[i] - rate * m / (sqrtf(v) * root2 + a.eps);
    }
}

/* Uses the constants of torch.amp.GradScaler. */
__global__ void update_scale(weir_cuda_scale *scale)
{
    const uint32_t growth_interval = 2000;
    if (scale->not_finite) {
        scale->scale *= 0.5f;
        scale->growth = 0;
        scale->skipped++;
    } else if (++scale->growth == growth_interval) {
        float grown = scale->scale * 2;
        scale->scale = isfinite(grown) ? grown : scale->scale;
        scale->growth = 0;
    }
    scale->not_finite = 0;
}

} // namespace weir_compute_kernels
using namespace weir_compute_kernels;

int weir_kernel_bias_relu(int rows, int columns, const float *bias, bool relu, float *y, int ld, void *stream)
{
    bias_relu<<<blocks_for(static_cast<size_t>(rows) * columns), threads, 0, as_stream(stream)>>>(rows, columns, bias,
                                                                                                  relu, y, ld);
    return cudaGetLastError();
}

int weir_kernel_bias_gradient(int rows, int columns, const float *dy, int ld, float *gradient, void *stream)
{
    bias_gradient<<<blocks_for(columns), threads, 0, as_stream(stream)>>>(rows, columns, dy, ld, gradient);
    return cudaGetLastError();
}

int weir_kernel_relu_backward(int rows, int columns, const float *y, float *dy, int ld, void *stream)
{
    relu_backward<<<blocks_for(static_cast<size_t>(rows) * columns), threads, 0, as_stream(stream)>>>(rows, columns, y,
                                                                                                      dy, ld);
    return cudaGetLastError();
}

int weir_kernel_plane_bias_relu(int n, int channels, int pixels, const float *bias, void *y, bool half, void *stream)
{
    dim3 grid = plane_grid(n * channels, pixels);
    if (half)
        plane_bias_relu<<<grid, threads, 0, as_stream(stream)>>>(channels, pixels, bias, static_cast<__half *>(y));
    else
        plane_bias_relu<<<grid, threads, 0, as_stream(stream)>>>(channels, pixels, bias, static_cast<float *>(y));
    return cudaGetLastError();
}

int weir_kernel_plane_sums(int n, int channels, int pixels, const void *dy, bool half, float *partial, float *gradient,
                           void *stream)
{
    size_t all = static_cast<size_t>(n) * pixels, wanted = all / (16 * threads) + 1;
    unsigned parts = wanted < WEIR_PLANE_PARTS ? static_cast<unsigned>(wanted) : WEIR_PLANE_PARTS;
    dim3 grid(channels, parts);
    if (half)
        plane_part_sums<<<grid, threads, 0, as_stream(stream)>>>(all, channels, pixels, static_cast<const __half *>(dy),
                                                                 partial);
    else
        plane_part_sums<<<grid, threads, 0, as_stream(stream)>>>(all, channels, pixels, static_cast<const float *>(dy),
                                                                 partial);
    add_parts<<<blocks_for(channels), threads, 0, as_stream(stream)>>>(channels, static_cast<int>(parts), partial,
                                                                       gradient);
    return cudaGetLastError();
}

int weir_kernel_mask(size_t numbers, const void *x, void *dx, bool half, void *stream)
{
    if (half)
        mask<<<blocks_for(numbers), threads, 0, as_stream(stream)>>>(numbers, static_cast<const __half *>(x),
                                                                     static_cast<__half *>(dx));
    else
        mask<<<blocks_for(numbers), threads, 0, as_stream(stream)>>>(numbers, static_cast<const float *>(x),
                                                                     static_cast<float *>(dx));
    return cudaGetLastError();
}

int weir_kernel_average_pool(int planes, int channels, int pixels, const void *x, float *y, int ld, bool half,
                             void *stream)
{
    if (half)
        average_pool<<<planes, threads, 0, as_stream(stream)>>>(channels, pixels, static_cast<const __half *>(x), y,
                                                                ld);
    else
        average_pool<<<planes, threads, 0, as_stream(stream)>>>(channels, pixels, static_cast<const float *>(x), y, ld);
    return cudaGetLastError();
}

int weir_kernel_average_pool_backward(int planes, int channels, int pixels, const void *x, const float *dy, int ld,
                                      void *dx, bool half, void *stream)
{
    dim3 grid = plane_grid(planes, pixels);
    if (half)
        average_pool_backward<<<grid, threads, 0, as_stream(stream)>>>(channels, pixels, static_cast<const __half *>(x),
                                                                       dy, ld, static_cast<__half *>(dx));
    else
        average_pool_backward<<<grid, threads, 0, as_stream(stream)>>>(channels, pixels, static_cast<const float *>(x),
                                                                       dy, ld, static_cast<float *>(dx));
    return cudaGetLastError();
}

int weir_kernel_to_half(int rows, size_t columns, const float *from, size_t stride, void *to, void *stream)
{
    size_t numbers = static_cast<size_t>(rows) * columns;
    to_half<<<blocks_for(numbers), threads, 0, as_stream(stream)>>>(numbers, columns, from, stride,
                                                                    static_cast<__half *>(to));
    return cudaGetLastError();
}

int weir_kernel_add_half(size_t numbers, const void *from, float *to, void *stream)
{
    add_half<<<blocks_for(numbers), threads, 0, as_stream(stream)>>>(numbers, static_cast<const __half *>(from), to);
    return cudaGetLastError();
}

int weir_kernel_im2col(const struct weir_convolution *c, int n, const float *x, size_t x_stride, float *columns,
                       void *stream)
{
    size_t numbers = static_cast<size_t>(n) * c->channels * 9 * c->out_height * c->out_width;
    im2col<<<blocks_for(numbers), threads, 0, as_stream(stream)>>>(shape_of(c), numbers, x, x_stride, columns);
    return cudaGetLastError();
}

int weir_kernel_col2im(const struct weir_convolution *c, int n, const float *columns, float *dx, void *stream)
{
    size_t numbers = static_cast<size_t>(n) * c->channels * c->height * c->width;
    col2im<<<blocks_for(numbers), threads, 0, as_stream(stream)>>>(shape_of(c), numbers, columns, dx);
    return cudaGetLastError();
}

int weir_kernel_weigh(size_t rows, const uint8_t *is_pad, float *weights, void *stream)
{
    weigh<<<blocks_for(rows), threads, 0, as_stream(stream)>>>(rows, is_pad, weights);
    return cudaGetLastError();
}

int weir_kernel_affine(size_t numbers, float scale, float shift, int times, float *x, void *stream)
{
    affine<<<blocks_for(numbers), threads, 0, as_stream(stream)>>>(numbers, scale, shift, times, x);
    return cudaGetLastError();
}

int weir_kernel_l1(int rows, int columns, const float *y, const float *wanted, const float *weights, double *partial,
                   float *loss, void *stream)
{
    static_assert(WEIR_L1_PARTS <= threads, "a single block must be able to sum all parts");
    size_t numbers = static_cast<size_t>(rows) * columns;
    int parts = blocks_for(numbers) < WEIR_L1_PARTS ? blocks_for(numbers) : WEIR_L1_PARTS;
    l1_parts<<<parts, threads, 0, as_stream(stream)>>>(numbers, columns, y, wanted, weights, partial);
    l1_whole<<<1, threads, 0, as_stream(stream)>>>(parts, partial, loss);
    return cudaGetLastError();
}

int weir_kernel_l1_backward(int rows, int columns, const float *y, const float *wanted, const float *weights,
                            const float *loss, float factor, const struct weir_cuda_scale *scale, float *dy,
                            void *stream)
{
    size_t numbers = static_cast<size_t>(rows) * columns;
    l1_backward<<<blocks_for(numbers), threads, 0, as_stream(stream)>>>(numbers, columns, y, wanted, weights, loss,
                                                                        factor, scale, dy);
    return cudaGetLastError();
}

int weir_kernel_adamw(const struct weir_adamw *adamw, bool amp, size_t numbers, float *parameters, float *gradients,
                      float *mean, float *variance, struct weir_cuda_scale *scale, void *stream)
{
    adamw_numbers a = {static_cast<float>(adamw->learning_rate),
                       static_cast<float>(adamw->weight_decay),
                       static_cast<float>(adamw->beta1),
                       static_cast<float>(adamw->beta2),
                       static_cast<float>(adamw->eps),
                       adamw->beta1,
                       adamw->beta2,
                       adamw->step};
    if (amp)
        find_not_finite<<<blocks_for(numbers), threads, 0, as_stream(stream)>>>(numbers, gradients, scale);
    adamw_step<<<blocks_for(numbers), threads, 0, as_stream(stream)>>>(a, numbers, parameters, gradients, mean,
                                                                       variance, scale);
    if (amp)
        update_scale<<<1, 1, 0, as_stream(stream)>>>(scale);
    return cudaGetLastError();
}
