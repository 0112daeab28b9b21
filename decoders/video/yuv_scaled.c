/* Pixels as swscale's scaler computes them. It interpolates chroma with a cubic filter, first across a row, then down
 * the rows. Samples have 15 bits in between. Rows of odd width, 4:4:4 and gray are computed with a chroma sample for
 * each pixel, others with a sample for two pixels, of which 8 bits remain. */
#include "decoders/video/yuv_priv.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

enum { TAPS_MAX = 5, LINES = 8, SAMPLE_BITS = 15 };
enum { ACROSS_BITS = 14, DOWN_BITS = 12 }; /* precision of factors */

/* ---- filters ---- */

/* Enlarges rows or columns: output i is the sum of n samples from first[i] on, times factors[n * i] and following. */
struct filter {
    int from, to; /* number of samples before and after; equal: nothing to do */
    int n;
    int *first;
    int16_t *factors;
};

/* Weights of the samples from `first` on. */
struct weights {
    int64_t values[TAPS_MAX];
    int first;
};

/* Returns the weight x 2^54 of a sample at distance d / 2^30: the cubic for B = 0, C = 0.6. */
static int64_t cubic(int64_t d)
{
    const int64_t one = 1 << 24, c = 10066329 /* 0.6 */, unit = 1 << 30;
    if (d >= 2 * unit)
        return 0;
    int64_t d2 = d * d >> 30, d3 = d2 * d >> 30;
    return d < unit ? (12 * one - 6 * c) * d3 - (18 * one - 6 * c) * d2 + 6 * one * unit
                    : 24 * c * unit - 48 * c * d + 30 * c * d2 - 6 * c * d3;
}

/* Returns the weights of output i. Positions are in units of 2^-17 samples. */
static struct weights weigh(int i, int64_t step, int taps)
{
    const int64_t unit = 1 << 17;
    int64_t center = step - unit / 2 + 2 * step * i;
    struct weights weights = {.first = (int)((center - (taps - 2) * (unit / 2)) / unit)};
    for (int j = 0; j < taps; j++) {
        weights.values[j] = cubic(llabs((weights.first + j) * unit - center) << 13);
    }
    return weights;
}

/* Removes leading weights that are negligible, unless the next output would then not start later. Returns the number of
 * weights up to the last one that is not negligible. */
static int trim(struct weights *weights, const struct weights *next, int taps)
{
    const int64_t negligible = ((int64_t)1 << 54) / 500;
    int64_t lost = 0;
    for (int j = 0; j < taps && (!next || weights->first < next->first); j++) {
        lost += llabs(weights->values[0]);
        if (lost > negligible)
            break;
        memmove(weights->values, weights->values + 1, (TAPS_MAX - 1) * sizeof weights->values[0]);
        weights->values[taps - 1] = 0;
        weights->first++;
    }
    lost = 0;
    int n = taps;
    while (n > 1 && (lost += llabs(weights->values[n - 1])) <= negligible)
        n--;
    return n;
}

/* Weights outside the picture go to its first or last sample. */
static void fold(struct weights *weights, int n, int from)
{
    struct weights folded = {.first = weights->first};
    if (folded.first > from - n)
        folded.first = from - n;
    if (folded.first < 0)
        folded.first = 0;
    for (int j = 0; j < n; j++) {
        int at = weights->first + j;
        at = at < 0 ? 0 : at >= from ? from - 1 : at;
        folded.values[at - folded.first] += weights->values[j];
    }
    *weights = folded;
}

static int64_t divide_rounded(int64_t value, int64_t by)
{
    return (value > 0 ? value + by / 2 : value - by / 2) / by;
}

/* Converts weights to factors whose sum is 2^bits. The rounding error of each is added to the next one. */
static void normalize(const struct weights *weights, int n, int bits, int16_t *factors)
{
    const int64_t one = (int64_t)1 << bits;
    int64_t sum = 0, error = 0;
    for (int j = 0; j < n; j++)
        sum += weights->values[j];
    sum = (sum + one / 2) / one;
    for (int j = 0; j < n; j++) {
        int64_t value = weights->values[j] + error, factor = divide_rounded(value, sum);
        factors[j] = (int16_t)factor;
        error = value - factor * sum;
    }
}

static void close_filter(struct filter *filter)
{
    free(filter->first);
    free(filter->factors);
    *filter = (struct filter){0};
}

static int make_filter(struct filter *filter, int from, int to, int bits)
{
    if (filter->from == from && filter->to == to)
        return 0;
    close_filter(filter);
    if (from != to) {
        int taps = from - 2 < 1 ? 1 : from - 2 < TAPS_MAX ? from - 2 : TAPS_MAX;
        int64_t step = (((int64_t)from << 16) + to / 2) / to;
        struct weights *all = malloc((size_t)to * sizeof *all);
        filter->first = malloc((size_t)to * sizeof *filter->first);
        filter->factors = malloc((size_t)to * TAPS_MAX * sizeof *filter->factors);
        if (!all || !filter->first || !filter->factors) {
            free(all);
            close_filter(filter);
            return -ENOMEM;
        }
        filter->n = 0;
        for (int i = to - 1; i >= 0; i--) {
            all[i] = weigh(i, step, taps);
            int n = trim(&all[i], i < to - 1 ? &all[i + 1] : NULL, taps);
            filter->n = n > filter->n ? n : filter->n;
        }
        for (int i = 0; i < to; i++) {
            fold(&all[i], filter->n, from);
            filter->first[i] = all[i].first;
            normalize(&all[i], filter->n, bits, filter->factors + (size_t)i * (size_t)filter->n);
        }
        free(all);
    }
    filter->from = from;
    filter->to = to;
    return 0;
}

/* ---- chroma ---- */

struct weir_yuv_scaler {
    const struct weir_yuv *yuv;
    const struct weir_picture *picture;
    struct filter across, down;
    bool is_full;             /* a chroma sample for each pixel */
    size_t columns, capacity; /* chroma samples of a row */
    int16_t *lines[2];        /* LINES rows of Cb and Cr, scaled across */
    int line_rows[LINES];     /* the chroma row in each line; -1 = none */
    int32_t *sums[2];         /* the current row, scaled down the rows: samples x 2^DOWN_BITS */
};

static bool has_half_columns(const struct weir_picture *picture)
{
    return picture->chroma == WEIR_CHROMA_420 || picture->chroma == WEIR_CHROMA_422;
}

bool weir_yuv_is_scaled(const struct weir_picture *picture)
{
    return picture->bit_depth > 8 || !has_half_columns(picture) || picture->height % 2 != 0;
}

int weir_yuv_scaler_open(struct weir_yuv_scaler **out)
{
    *out = calloc(1, sizeof **out);
    return *out ? 0 : -ENOMEM;
}

static void close_lines(struct weir_yuv_scaler *s)
{
    for (int p = 0; p < 2; p++) {
        free(s->lines[p]);
        free(s->sums[p]);
        s->lines[p] = NULL;
        s->sums[p] = NULL;
    }
    s->capacity = 0;
}

void weir_yuv_scaler_close(struct weir_yuv_scaler *scaler)
{
    close_filter(&scaler->across);
    close_filter(&scaler->down);
    close_lines(scaler);
    free(scaler);
}

static int grow_lines(struct weir_yuv_scaler *s)
{
    if (s->columns <= s->capacity)
        return 0;
    close_lines(s);
    for (int p = 0; p < 2; p++) {
        s->lines[p] = malloc(LINES * s->columns * sizeof *s->lines[p]);
        s->sums[p] = malloc(s->columns * sizeof *s->sums[p]);
    }
    if (!s->lines[0] || !s->lines[1] || !s->sums[0] || !s->sums[1]) {
        close_lines(s);
        return -ENOMEM;
    }
    s->capacity = s->columns;
    return 0;
}

int weir_yuv_scaler_begin(struct weir_yuv_scaler *s, const struct weir_yuv *yuv, const struct weir_picture *picture)
{
    int width = picture->width, height = picture->height, half = (width + 1) / 2;
    bool is_half = has_half_columns(picture);
    int chroma_width = is_half ? half : width,
        chroma_height = picture->chroma == WEIR_CHROMA_420 ? (height + 1) / 2 : height;
    s->yuv = yuv;
    s->picture = picture;
    s->is_full = !is_half || width % 2 != 0;
    s->columns = (size_t)(s->is_full ? width : half);
    for (int i = 0; i < LINES; i++)
        s->line_rows[i] = -1;
    int rc = make_filter(&s->across, chroma_width, (int)s->columns, ACROSS_BITS);
    if (rc == 0)
        rc = make_filter(&s->down, chroma_height, height, DOWN_BITS);
    return rc < 0 ? rc : grow_lines(s);
}

/* Returns sample i of a row. */
static inline int sample(const uint8_t *row, size_t i, int bit_depth)
{
    uint16_t value;
    if (bit_depth == 8)
        return row[i];
    memcpy(&value, row + i * sizeof value, sizeof value);
    return value & ((1 << bit_depth) - 1);
}

static void fill_line(const struct weir_yuv_scaler *s, const uint8_t *row, int16_t *line)
{
    const struct filter *across = &s->across;
    const int depth = s->picture->bit_depth, most = (1 << SAMPLE_BITS) - 1;
    for (size_t i = 0; i < s->columns && across->n == 0; i++)
        line[i] = (int16_t)(sample(row, i, depth) << (SAMPLE_BITS - depth));
    for (size_t i = 0; i < s->columns && across->n > 0; i++) {
        int sum = 0;
        for (size_t j = 0; j < (size_t)across->n; j++)
            sum += sample(row, (size_t)across->first[i] + j, depth) * across->factors[i * (size_t)across->n + j];
        sum >>= ACROSS_BITS + depth - SAMPLE_BITS;
        line[i] = (int16_t)(sum < most ? sum : most);
    }
}

/* Fills the lines of a chroma row, which are used by several rows of pixels. Returns the number of the line. */
static size_t find_line(struct weir_yuv_scaler *s, int row)
{
    size_t line = (size_t)row % LINES;
    if (s->line_rows[line] == row)
        return line;
    for (int p = 0; p < 2; p++)
        fill_line(s, s->picture->planes[1 + p] + row * s->picture->strides[1 + p], s->lines[p] + line * s->columns);
    s->line_rows[line] = row;
    return line;
}

/* Computes the chroma of row y. */
static void sum_lines(struct weir_yuv_scaler *s, int y)
{
    static const int16_t one = 1 << DOWN_BITS;
    const struct filter *down = &s->down;
    const int n = down->n ? down->n : 1, first = down->n ? down->first[y] : y;
    const int16_t *factors = down->n ? down->factors + y * n : &one;
    if (s->picture->chroma == WEIR_CHROMA_400) {
        for (size_t i = 0; i < s->columns; i++)
            s->sums[0][i] = s->sums[1][i] = 1 << (SAMPLE_BITS - 1 + DOWN_BITS);
        return;
    }
    for (int j = 0; j < n; j++) {
        size_t line = find_line(s, first + j);
        for (int p = 0; p < 2; p++) {
            const int16_t *from = s->lines[p] + line * s->columns;
            int32_t *sums = s->sums[p];
            for (size_t i = 0; i < s->columns; i++)
                sums[i] = (j > 0 ? sums[i] : 0) + from[i] * factors[j];
        }
    }
}

/* ---- pixels ---- */

/* Adds in 32 bits, which wrap, as those of swscale do for bright and saturated colours. */
static inline uint8_t pixel_of(uint32_t luma, uint32_t chroma)
{
    return weir_yuv_clamped((int32_t)(luma + chroma) >> 22);
}

/* Samples have 17 bits, factors 13 bits after the point. */
static void put_full(const struct weir_yuv_scaler *s, const uint8_t *luma, size_t first, const struct weir_yuv_row *row)
{
    const struct weir_yuv yuv = *s->yuv;
    const struct weir_yuv_places places = weir_yuv_places(row);
    const int depth = s->picture->bit_depth, bits = SAMPLE_BITS + DOWN_BITS - 10;
    const uint32_t v_to_r = (uint32_t)yuv.v_to_r, u_to_g = (uint32_t)yuv.u_to_g, v_to_g = (uint32_t)yuv.v_to_g,
                   u_to_b = (uint32_t)yuv.u_to_b;
    for (size_t x = 0; x < row->width; x++) {
        int y = (sample(luma, first + x, depth) << (bits - depth)) - yuv.luma_offset * 64;
        uint32_t base = (uint32_t)(y * yuv.luma) + (1u << 21);
        uint32_t u = (uint32_t)(((s->sums[0][first + x] + 512) >> 10) - (1 << (bits - 1)));
        uint32_t v = (uint32_t)(((s->sums[1][first + x] + 512) >> 10) - (1 << (bits - 1)));
        uint8_t *to = row->to + x * places.step;
        to[places.red] = pixel_of(base, v * v_to_r);
        to[places.green] = pixel_of(base, v * v_to_g + u * u_to_g);
        to[places.blue] = pixel_of(base, u * u_to_b);
    }
}

/* What a chroma sample of 8 bits adds to luma of 8 bits. ratio: the factor divided by that of luma, x 65536. */
static inline int shift_of(int chroma, int32_t ratio)
{
    return (int)((int64_t)weir_yuv_clamped(chroma) * ratio >> 16) - (ratio >> 9);
}

static inline uint8_t scaled(const struct weir_yuv *yuv, int luma)
{
    return weir_yuv_clamped((yuv->exact.bias + luma * yuv->exact.luma) >> 16);
}

/* Samples are rounded to 8 bits. */
static void put_half(const struct weir_yuv_scaler *s, const uint8_t *luma, size_t first, const struct weir_yuv_row *row)
{
    const struct weir_yuv yuv = *s->yuv;
    const struct weir_yuv_places places = weir_yuv_places(row);
    const int depth = s->picture->bit_depth, extra = SAMPLE_BITS + DOWN_BITS - 8;
    int red = 0, green = 0, blue = 0;
    for (size_t x = 0; x < row->width; x++) {
        if (x == 0 || (first + x) % 2 == 0) {
            int u = (s->sums[0][(first + x) / 2] + (1 << (extra - 1))) >> extra;
            int v = (s->sums[1][(first + x) / 2] + (1 << (extra - 1))) >> extra;
            red = shift_of(v, yuv.exact.v_to_r);
            green = shift_of(u, yuv.exact.u_to_g) + shift_of(v, yuv.exact.v_to_g);
            blue = shift_of(u, yuv.exact.u_to_b);
        }
        int y = ((sample(luma, first + x, depth) << (SAMPLE_BITS - depth)) + 64) >> (SAMPLE_BITS - 8);
        uint8_t *to = row->to + x * places.step;
        to[places.red] = scaled(&yuv, y + red);
        to[places.green] = scaled(&yuv, y + green);
        to[places.blue] = scaled(&yuv, y + blue);
    }
}

void weir_yuv_scaler_row(struct weir_yuv_scaler *s, int y, size_t first, const struct weir_yuv_row *row)
{
    const uint8_t *luma = s->picture->planes[0] + y * s->picture->strides[0];
    sum_lines(s, y);
    if (s->is_full)
        put_full(s, luma, first, row);
    else
        put_half(s, luma, first, row);
}
