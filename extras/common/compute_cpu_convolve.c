/* Convolutions on the CPU. For each band of rows, im2col is followed by a matrix product, so that the columns are still
 * in the core's cache for the product. Each thread handles its own range of output rows, counted over all images. */
#include "extras/common/compute_cpu_priv.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

enum {
    BAND_BYTES = 256 << 10, /* maximum size of a band's columns, unless a single row exceeds it */
    TAPS = WEIR_KERNEL * WEIR_KERNEL,
    ALIGN_NUMBERS = 16,
};

struct convolve_work {
    struct weir_cpu *cpu;
    const struct weir_convolution *c;
    int n;
    const weir_real *x;
    size_t x_stride;
    const weir_real *weight, *bias, *dy;
    weir_real *y, *dx;
};

static size_t in_plane(const struct weir_convolution *c)
{
    return (size_t)c->height * (size_t)c->width;
}

static size_t out_plane(const struct weir_convolution *c)
{
    return (size_t)c->out_height * (size_t)c->out_width;
}

static int depth_of(const struct weir_convolution *c)
{
    return c->channels * TAPS;
}

/* Returns the number of output rows per band. */
static int band_rows(const struct weir_convolution *c)
{
    size_t row_bytes = (size_t)depth_of(c) * (size_t)c->out_width * sizeof(weir_real);
    size_t rows = BAND_BYTES / row_bytes;
    return rows < 1 ? 1 : rows > (size_t)c->out_height ? c->out_height : (int)rows;
}

static size_t aligned(size_t numbers)
{
    return (numbers + ALIGN_NUMBERS - 1) / ALIGN_NUMBERS * ALIGN_NUMBERS;
}

/* Scratch memory per thread, in numbers: the columns of a band and one more row, followed by the gradients of weight
 * and bias. */
static size_t columns_numbers(const struct weir_convolution *c)
{
    return aligned((size_t)depth_of(c) * (size_t)(band_rows(c) + 1) * (size_t)c->out_width);
}

static size_t gradient_numbers(const struct weir_convolution *c)
{
    return aligned((size_t)c->filters * (size_t)(depth_of(c) + 1));
}

int weir_cpu_reserve(void *self, const struct weir_convolution *c)
{
    struct weir_cpu *cpu = self;
    size_t numbers = columns_numbers(c) + gradient_numbers(c);
    if (numbers <= cpu->scratch_numbers)
        return 0;
    weir_real *scratch = weir_cpu_allocate(numbers * (size_t)weir_team_size(cpu->team));
    if (!scratch)
        return -ENOMEM;
    free(cpu->scratch);
    cpu->scratch = scratch;
    cpu->scratch_numbers = numbers;
    return 0;
}

static weir_real *columns_of(const struct weir_cpu *cpu, int part)
{
    return cpu->scratch + (size_t)part * cpu->scratch_numbers;
}

static weir_real *gradients_of(const struct convolve_work *w, int part)
{
    return columns_of(w->cpu, part) + columns_numbers(w->c);
}

/* ---- row ranges ---- */

/* A range of output rows of one image. */
struct rows {
    int image, begin, end;
};

/* Stores the next range of the part's rows in *rows. A range never extends over several images. Advances *at, which
 * must be 0 in the first call. Returns false if no rows are left. */
static bool next_rows(const struct convolve_work *w, int part, int parts, int64_t *at, struct rows *rows)
{
    int64_t all = (int64_t)w->n * w->c->out_height;
    int64_t begin = all * part / parts + *at, end = all * (part + 1) / parts;
    if (begin >= end)
        return false;
    rows->image = (int)(begin / w->c->out_height);
    rows->begin = (int)(begin % w->c->out_height);
    int64_t count = w->c->out_height - rows->begin < end - begin ? w->c->out_height - rows->begin : end - begin;
    rows->end = rows->begin + (int)count;
    *at += count;
    return true;
}

/* ---- im2col ---- */

/* Expands one image row into one row of columns for each horizontal tap: x[2i-1], x[2i] and x[2i+1], with 0 outside the
 * image. */
static void spread_row(const weir_real *restrict x, int width, int out_width, weir_real *restrict left,
                       weir_real *restrict middle, weir_real *restrict right)
{
    int pairs = width / 2;
    for (int i = 0; i < pairs; i++) {
        middle[i] = x[2 * i];
        right[i] = x[2 * i + 1];
    }
    if (pairs < out_width) {
        middle[pairs] = x[width - 1];
        right[pairs] = 0;
    }
    left[0] = 0;
    memcpy(left + 1, right, (size_t)(out_width - 1) * sizeof *left);
}

/* Computes the columns of output rows begin .. end-1: [channels, 3, 3, rows, out_width]. */
static void im2col(const struct weir_convolution *c, const weir_real *x, int begin, int end, weir_real *columns)
{
    size_t width = (size_t)c->out_width, tap = (size_t)(end - begin) * width;
    for (int channel = 0; channel < c->channels; channel++, x += in_plane(c), columns += TAPS * tap)
        for (int row = begin; row < end; row++)
            for (int ky = 0; ky < WEIR_KERNEL; ky++) {
                int from = 2 * row - 1 + ky;
                weir_real *to = columns + (size_t)ky * WEIR_KERNEL * tap + (size_t)(row - begin) * width;
                if (from >= 0 && from < c->height)
                    spread_row(x + (size_t)from * (size_t)c->width, c->width, c->out_width, to, to + tap, to + 2 * tap);
                else
                    for (int kx = 0; kx < WEIR_KERNEL; kx++)
                        memset(to + (size_t)kx * tap, 0, width * sizeof *to);
            }
}

/* ---- forward ---- */

static void add_bias_relu(const struct convolve_work *w, weir_real *y, size_t pixels)
{
    for (int f = 0; f < w->c->filters; f++, y += out_plane(w->c)) {
        weir_real bias = w->bias[f];
        for (size_t i = 0; i < pixels; i++) {
            weir_real value = y[i] + bias;
            y[i] = value < 0 ? 0 : value;
        }
    }
}

static void convolve_part(void *user, int part, int parts)
{
    const struct convolve_work *w = user;
    const struct weir_convolution *c = w->c;
    weir_real *columns = columns_of(w->cpu, part);
    struct rows rows;
    for (int64_t at = 0; next_rows(w, part, parts, &at, &rows);)
        for (int row = rows.begin, step = band_rows(c); row < rows.end; row += step) {
            int end = row + step < rows.end ? row + step : rows.end, pixels = (end - row) * c->out_width;
            im2col(c, w->x + (size_t)rows.image * w->x_stride, row, end, columns);
            weir_real *y =
                w->y + (size_t)rows.image * (size_t)c->filters * out_plane(c) + (size_t)row * (size_t)c->out_width;
            w->cpu->blas.gemm(WEIR_BLAS_ROW_MAJOR, WEIR_BLAS_AS_IS, WEIR_BLAS_AS_IS, c->filters, pixels, depth_of(c), 1,
                              w->weight, depth_of(c), columns, pixels, 0, y, (int)out_plane(c));
            add_bias_relu(w, y, (size_t)pixels);
        }
}

void weir_cpu_convolve(void *self, const struct weir_convolution *c, int n, const weir_real *x, size_t x_stride,
                       const weir_real *weight, const weir_real *bias, weir_real *y)
{
    struct weir_cpu *cpu = self;
    weir_team_run(
        cpu->team, convolve_part,
        &(struct convolve_work){
            .cpu = cpu, .c = c, .n = n, .x = x, .x_stride = x_stride, .weight = weight, .bias = bias, .y = y});
}

/* ---- backward: gradients of the parameters ---- */

static void sum_planes(const struct convolve_work *w, const weir_real *dy, size_t pixels, weir_real *sums)
{
    for (int f = 0; f < w->c->filters; f++, dy += out_plane(w->c)) {
        weir_real parts[8] = {0}; /* several accumulators: with one, each addition would depend on the previous one */
        size_t i = 0;
        for (; i + 8 <= pixels; i += 8)
            for (int j = 0; j < 8; j++)
                parts[j] += dy[i + (size_t)j];
        for (; i < pixels; i++)
            parts[0] += dy[i];
        for (int j = 0; j < 8; j++)
            sums[f] += parts[j];
    }
}

/* Sums the gradients of weight and bias over all rows of the part. */
static void parameters_part(const struct convolve_work *w, int part, int parts)
{
    const struct weir_convolution *c = w->c;
    weir_real *columns = columns_of(w->cpu, part), *gradients = gradients_of(w, part);
    weir_real *biases = gradients + (size_t)c->filters * (size_t)depth_of(c);
    memset(gradients, 0, gradient_numbers(c) * sizeof *gradients);
    struct rows rows;
    for (int64_t at = 0; next_rows(w, part, parts, &at, &rows);)
        for (int row = rows.begin, step = band_rows(c); row < rows.end; row += step) {
            int end = row + step < rows.end ? row + step : rows.end, pixels = (end - row) * c->out_width;
            im2col(c, w->x + (size_t)rows.image * w->x_stride, row, end, columns);
            const weir_real *dy =
                w->dy + (size_t)rows.image * (size_t)c->filters * out_plane(c) + (size_t)row * (size_t)c->out_width;
            w->cpu->blas.gemm(WEIR_BLAS_ROW_MAJOR, WEIR_BLAS_AS_IS, WEIR_BLAS_TRANSPOSED, c->filters, depth_of(c),
                              pixels, 1, dy, (int)out_plane(c), columns, pixels, 1, gradients, depth_of(c));
            sum_planes(w, dy, (size_t)pixels, biases);
        }
}

/* ---- backward: gradient of the image ---- */

/* Columns of gradients: [channels, 3, 3, rows, out_width]. "first" is the number of their first output row. */
struct gradient_columns {
    const weir_real *numbers;
    size_t tap;
    int first;
};

static const weir_real *tap_row(const struct weir_convolution *c, const struct gradient_columns *columns, int channel,
                                int tap, int row)
{
    return columns->numbers + ((size_t)channel * TAPS + (size_t)tap) * columns->tap +
           (size_t)(row - columns->first) * (size_t)c->out_width;
}

/* One output row of the columns of the three taps in one kernel row. */
struct taps {
    const weir_real *left, *middle, *right;
};

static struct taps taps_of(const struct weir_convolution *c, const struct gradient_columns *columns, int channel,
                           int ky, int row)
{
    return (struct taps){tap_row(c, columns, channel, ky * WEIR_KERNEL, row),
                         tap_row(c, columns, channel, ky * WEIR_KERNEL + 1, row),
                         tap_row(c, columns, channel, ky * WEIR_KERNEL + 2, row)};
}

/* Computes one row of the image's gradient from the taps of one kernel row (gather_two: of two). The gradient is 0
 * where x is 0. */
static void gather_one(struct taps a, int width, const weir_real *restrict x, weir_real *restrict dx)
{
    int inner = (width - 1) / 2; /* pairs of an even and an odd column that have a column after them */
    for (int i = 0; i < inner; i++) {
        weir_real even = a.middle[i], odd = a.right[i] + a.left[i + 1];
        dx[2 * i] = x[2 * i] > 0 ? even : 0;
        dx[2 * i + 1] = x[2 * i + 1] > 0 ? odd : 0;
    }
    dx[2 * inner] = x[2 * inner] > 0 ? a.middle[inner] : 0;
    if (2 * inner + 1 < width)
        dx[2 * inner + 1] = x[2 * inner + 1] > 0 ? a.right[inner] : 0;
}

static void gather_two(struct taps a, struct taps b, int width, const weir_real *restrict x, weir_real *restrict dx)
{
    int inner = (width - 1) / 2;
    for (int i = 0; i < inner; i++) {
        weir_real even = a.middle[i] + b.middle[i], odd = a.right[i] + a.left[i + 1] + b.right[i] + b.left[i + 1];
        dx[2 * i] = x[2 * i] > 0 ? even : 0;
        dx[2 * i + 1] = x[2 * i + 1] > 0 ? odd : 0;
    }
    dx[2 * inner] = x[2 * inner] > 0 ? a.middle[inner] + b.middle[inner] : 0;
    if (2 * inner + 1 < width)
        dx[2 * inner + 1] = x[2 * inner + 1] > 0 ? a.right[inner] + b.right[inner] : 0;
}

/* col2im by gathering: writes rows 2 begin .. 2 end - 1 of the image, each number once. Only the middle kernel row
 * covers an even image row. An odd image row is covered by the last kernel row of one output row and by the first
 * kernel row of the next output row. So columns must contain output rows begin .. end (or .. end-1 at the bottom of the
 * image). */
static void gather_rows(const struct convolve_work *w, const struct gradient_columns *columns, int image, int begin,
                        int end)
{
    const struct weir_convolution *c = w->c;
    const weir_real *image_x = w->x + (size_t)image * w->x_stride;
    weir_real *image_dx = w->dx + (size_t)image * (size_t)c->channels * in_plane(c);
    for (int channel = 0; channel < c->channels; channel++)
        for (int row = begin; row < end; row++) {
            size_t at = (size_t)channel * in_plane(c) + 2 * (size_t)row * (size_t)c->width;
            gather_one(taps_of(c, columns, channel, 1, row), c->width, image_x + at, image_dx + at);
            if (2 * row + 1 == c->height)
                continue;
            struct taps above = taps_of(c, columns, channel, 2, row);
            at += (size_t)c->width;
            if (row + 1 < c->out_height)
                gather_two(above, taps_of(c, columns, channel, 0, row + 1), c->width, image_x + at, image_dx + at);
            else
                gather_one(above, c->width, image_x + at, image_dx + at);
        }
}

/* Computes the columns of gradients for output rows begin .. end-1. */
static void columns_of_gradients(const struct convolve_work *w, int image, int begin, int end, weir_real *to,
                                 size_t tap)
{
    const struct weir_convolution *c = w->c;
    const weir_real *dy =
        w->dy + (size_t)image * (size_t)c->filters * out_plane(c) + (size_t)begin * (size_t)c->out_width;
    w->cpu->blas.gemm(WEIR_BLAS_ROW_MAJOR, WEIR_BLAS_TRANSPOSED, WEIR_BLAS_AS_IS, depth_of(c),
                      (end - begin) * c->out_width, c->filters, 1, w->weight, depth_of(c), dy, (int)out_plane(c), 0, to,
                      (int)tap);
}

/* Computes the image gradient of the part's rows, band by band. A band also needs the columns of the output row after
 * it. These columns are then moved to the front and become the first row of the next band. */
static void image_part(const struct convolve_work *w, int part, int parts)
{
    const struct weir_convolution *c = w->c;
    weir_real *columns = columns_of(w->cpu, part);
    size_t width = (size_t)c->out_width, tap = (size_t)(band_rows(c) + 1) * width;
    struct rows rows;
    for (int64_t at = 0; next_rows(w, part, parts, &at, &rows);) {
        columns_of_gradients(w, rows.image, rows.begin, rows.begin + 1, columns, tap);
        for (int row = rows.begin, end; row < rows.end; row = end) {
            end = row + band_rows(c) < rows.end ? row + band_rows(c) : rows.end;
            int known = end < c->out_height ? end + 1 : end; /* columns contain output rows row .. known-1 */
            if (row + 1 < known)
                columns_of_gradients(w, rows.image, row + 1, known, columns + width, tap);
            gather_rows(w, &(struct gradient_columns){columns, tap, row}, rows.image, row, end);
            for (int i = 0; end < rows.end && i < depth_of(c); i++)
                memcpy(columns + (size_t)i * tap, columns + (size_t)i * tap + (size_t)(end - row) * width,
                       width * sizeof *columns);
        }
    }
}

static void convolve_backward_part(void *user, int part, int parts)
{
    const struct convolve_work *w = user;
    parameters_part(w, part, parts);
    if (w->dx)
        image_part(w, part, parts);
}

void weir_cpu_convolve_backward(void *self, const struct weir_convolution *c, int n, const weir_real *x,
                                size_t x_stride, const weir_real *weight, const weir_real *dy,
                                weir_real *weight_gradient, weir_real *bias_gradient, weir_real *dx)
{
    struct weir_cpu *cpu = self;
    struct convolve_work work = {
        .cpu = cpu, .c = c, .n = n, .x = x, .x_stride = x_stride, .weight = weight, .dy = dy, .dx = dx};
    weir_team_run(cpu->team, convolve_backward_part, &work);
    size_t weights = (size_t)c->filters * (size_t)depth_of(c);
    for (int part = 0; part < weir_team_size(cpu->team); part++) {
        const weir_real *gradients = gradients_of(&work, part);
        for (size_t i = 0; i < weights; i++)
            weight_gradient[i] += gradients[i];
        for (int f = 0; f < c->filters; f++)
            bias_gradient[f] += gradients[weights + (size_t)f];
    }
}
