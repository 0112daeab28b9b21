/* Convolutions without cuDNN. im2col copies the inputs of each output pixel into a column, and a matrix product
 * computes the outputs. The memory for columns limits the number of images per call. */
#include "extras/common/cuda/compute_cuda_priv.h"

static const size_t COLUMNS_MAX_BYTES = (size_t)256 << 20;

static size_t pixels_of(const struct weir_convolution *c)
{
    return (size_t)c->out_height * (size_t)c->out_width;
}

static int depth_of(const struct weir_convolution *c)
{
    return c->channels * WEIR_KERNEL * WEIR_KERNEL;
}

/* Chooses the number of images per call and returns memory for their columns; NULL after an error. */
static float *columns_of(struct weir_cuda_compute *self, const struct weir_convolution *c, int n, int *count)
{
    size_t bytes = (size_t)depth_of(c) * pixels_of(c) * sizeof(float), most = COLUMNS_MAX_BYTES / bytes;
    *count = most < 1 ? 1 : most < (size_t)n ? (int)most : n;
    return weir_cuda_compute_scratch(self, bytes * (size_t)*count);
}

static bool spread(struct weir_cuda_compute *self, const struct weir_convolution *c, int n, const float *x,
                   size_t x_stride, float *columns)
{
    return weir_cuda_compute_fine(self, weir_kernel_im2col(c, n, x, x_stride, columns, self->stream),
                                  "computing a convolution's columns");
}

void weir_im2col_convolve(struct weir_cuda_compute *self, const struct weir_convolution *c, int n, const float *x,
                          size_t x_stride, const float *weight, const float *bias, float *y)
{
    int depth = depth_of(c), pixels = (int)pixels_of(c), count;
    size_t output = (size_t)c->filters * pixels_of(c);
    float *columns = columns_of(self, c, n, &count);
    for (int i = 0; columns && i < n; i += count) {
        int images = n - i < count ? n - i : count;
        if (!spread(self, c, images, x + (size_t)i * x_stride, x_stride, columns))
            return;
        weir_cublas_gemm(self,
                         &(struct weir_gemm){.m = c->filters,
                                             .n = pixels,
                                             .k = depth,
                                             .a = weight,
                                             .lda = depth,
                                             .b = columns,
                                             .ldb = pixels,
                                             .c = y + (size_t)i * output,
                                             .ldc = pixels},
                         &(struct weir_cublas_batch){images, 0, (int64_t)depth * pixels, (int64_t)output});
    }
    if (self->err.code >= 0)
        weir_cuda_compute_fine(self, weir_kernel_plane_bias_relu(n, c->filters, pixels, bias, y, false, self->stream),
                               "adding a convolution's bias");
}

/* Processes one image at a time, because all images add to the same gradient. */
static void weight_gradients(struct weir_cuda_compute *self, const struct weir_convolution *c, int images,
                             const float *columns, const float *dy, float *weight_gradient)
{
    int depth = depth_of(c), pixels = (int)pixels_of(c);
    for (int i = 0; i < images; i++)
        weir_cublas_gemm(self,
                         &(struct weir_gemm){.transpose_b = true,
                                             .m = c->filters,
                                             .n = depth,
                                             .k = pixels,
                                             .a = dy + (size_t)i * (size_t)c->filters * pixels_of(c),
                                             .lda = pixels,
                                             .b = columns + (size_t)i * (size_t)depth * pixels_of(c),
                                             .ldb = pixels,
                                             .beta = 1,
                                             .c = weight_gradient,
                                             .ldc = depth},
                         NULL);
}

static void input_gradients(struct weir_cuda_compute *self, const struct weir_convolution *c, int images,
                            const float *weight, const float *dy, float *columns, float *dx)
{
    int depth = depth_of(c), pixels = (int)pixels_of(c);
    weir_cublas_gemm(self,
                     &(struct weir_gemm){.transpose_a = true,
                                         .m = depth,
                                         .n = pixels,
                                         .k = c->filters,
                                         .a = weight,
                                         .lda = depth,
                                         .b = dy,
                                         .ldb = pixels,
                                         .c = columns,
                                         .ldc = pixels},
                     &(struct weir_cublas_batch){images, 0, (int64_t)c->filters * pixels, (int64_t)depth * pixels});
    if (self->err.code >= 0)
        weir_cuda_compute_fine(self, weir_kernel_col2im(c, images, columns, dx, self->stream),
                               "computing a convolution's input gradient");
}

void weir_im2col_convolve_backward(struct weir_cuda_compute *self, const struct weir_convolution *c, int n,
                                   const float *x, size_t x_stride, const float *weight, const float *dy,
                                   float *weight_gradient, float *dx)
{
    int count;
    size_t output = (size_t)c->filters * pixels_of(c),
           input = (size_t)c->channels * (size_t)c->height * (size_t)c->width;
    float *columns = columns_of(self, c, n, &count);
    for (int i = 0; columns && i < n; i += count) {
        int images = n - i < count ? n - i : count;
        const float *from = dy + (size_t)i * output;
        if (!spread(self, c, images, x + (size_t)i * x_stride, x_stride, columns))
            return;
        weight_gradients(self, c, images, columns, from, weight_gradient);
        if (dx)
            input_gradients(self, c, images, weight, from, columns, dx + (size_t)i * input);
    }
}
