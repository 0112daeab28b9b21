/* The GPU operations on a real GPU: the prepare kernel, which must match tests/fixtures/prepare_reference.c bit for
 * bit, streams, events, copies, and running out of memory. Also prints rates, without judging them. */
#include "base/numbers.h"
#include "decoders/view_priv.h"
#include "tests/fixtures/prepare_reference.h"
#include "tests/gpu/gpu_fixture.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

static struct gpufx fx;
static struct weir_err err;

/* ---- images of every kind ---- */

enum { IMAGES = 13, KINDS = WEIR_GPU_YUV440 + 1, GUARD = 4096, PATTERN = 0x5C };

struct images {
    int width, height;
    struct weir_gpu_source host[IMAGES], gpu[IMAGES];
    uint8_t *host_plane[IMAGES][3], *gpu_plane[IMAGES][3]; /* allocations to be freed */
    void *sources;                                         /* copy of `gpu` in GPU memory */
};

/* Allocates exactly the plane's size, so that compute-sanitizer detects reads past its end. */
static void make_plane(struct images *images, int i, int plane, int row_bytes, int rows)
{
    size_t shift = (size_t)(rand() % 3 == 0 ? rand() % 5 : 0),
           pitch = (size_t)row_bytes + (size_t)(rand() % 2 * (rand() % 9));
    size_t bytes = shift + pitch * (size_t)(rows - 1) + (size_t)row_bytes;
    uint8_t *host = malloc(bytes);
    for (size_t k = 0; k < bytes; k++)
        host[k] = (uint8_t)(rand() % 5 == 0 ? rand() % 2 * 255 : rand());
    images->host_plane[i][plane] = host;
    images->gpu_plane[i][plane] = gpufx_upload(&fx, host, bytes);
    images->host[i].plane[plane] = host + shift;
    images->gpu[i].plane[plane] = images->gpu_plane[i][plane] + shift;
    images->host[i].pitch[plane] = images->gpu[i].pitch[plane] = (uint32_t)pitch;
}

static void images_open(struct images *images, int width, int height)
{
    *images = (struct images){.width = width, .height = height};
    for (int i = 0; i < IMAGES; i++) {
        uint32_t kind = (uint32_t)(i % KINDS);
        images->host[i].kind = images->gpu[i].kind = kind;
        make_plane(images, i, 0, kind == WEIR_GPU_RGB ? 3 * width : width, height);
        for (int c = 1; c < 3 && kind >= WEIR_GPU_YUV444; c++)
            make_plane(images, i, c, prepare_chroma_width(kind, width), prepare_chroma_height(kind, height));
    }
    images->sources = gpufx_upload(&fx, images->gpu, sizeof images->gpu);
}

static void images_close(struct images *images)
{
    for (int i = 0; i < IMAGES; i++)
        for (int c = 0; c < 3; c++) {
            free(images->host_plane[i][c]);
            gpufx_free(&fx, images->gpu_plane[i][c]);
        }
    gpufx_free(&fx, images->sources);
}

struct taps {
    struct weir_taps made;
    int32_t *first, *n;
    void *gpu_first, *gpu_n, *gpu_weights;
    struct weir_gpu_taps host, gpu;
};

static void taps_open(struct taps *taps, double from, double to, int n)
{
    gpufx_check(weir_taps_open(&taps->made, from, to, n, WEIR_RESIZE_FAST) == 0, "no memory for taps");
    size_t bytes = sizeof(int32_t) * (size_t)n;
    taps->first = malloc(bytes);
    taps->n = malloc(bytes);
    for (int i = 0; i < n; i++) {
        taps->first[i] = taps->made.taps[i].first;
        taps->n[i] = taps->made.taps[i].n;
    }
    taps->gpu_first = gpufx_upload(&fx, taps->first, bytes);
    taps->gpu_n = gpufx_upload(&fx, taps->n, bytes);
    taps->gpu_weights = gpufx_upload(&fx, taps->made.weights, sizeof(float) * (size_t)n * (size_t)taps->made.most);
    taps->host = (struct weir_gpu_taps){taps->first, taps->n, taps->made.weights, taps->made.most};
    taps->gpu = (struct weir_gpu_taps){taps->gpu_first, taps->gpu_n, taps->gpu_weights, taps->made.most};
}

static void taps_close(struct taps *taps)
{
    weir_taps_close(&taps->made);
    free(taps->first);
    free(taps->n);
    gpufx_free(&fx, taps->gpu_first);
    gpufx_free(&fx, taps->gpu_n);
    gpufx_free(&fx, taps->gpu_weights);
}

/* ---- prepare, compared with the reference ---- */

static float values[3 * 256];
static void *gpu_values;
static int compared;

static void make_values(void)
{
    static const float mean[3] = {0.485f, 0.456f, 0.406f}, std[3] = {0.229f, 0.224f, 0.225f};
    for (int c = 0; c < 3; c++)
        for (int v = 0; v < 256; v++)
            values[c * 256 + v] = ((float)v / 255.0f - mean[c]) / std[c];
    values[3] = 65519.0f; /* rounds to the largest f16 */
    values[4] = 65520.0f; /* rounds to infinity as f16 */
    values[5] = 1e-7f;    /* below the smallest normal f16 */
    values[6] = -0.0f;
    gpu_values = gpufx_upload(&fx, values, sizeof values);
}

static void say_difference(const struct weir_gpu_prepare *p, const uint8_t *want, const uint8_t *got, size_t bytes)
{
    size_t at = 0;
    while (at < bytes && want[at] == got[at])
        at++;
    if (at == bytes)
        return;
    size_t value = at / prepare_value_bytes(p->dtype), per_image = (size_t)p->out_width * (size_t)p->out_height * 3;
    gpufx_check(false,
                "%dx%d+%d+%d to %dx%d, dtype %d, %s, %s%s: image %zu (kind %zu), value %zu: byte %zu is %02x, not %02x",
                p->width, p->height, p->x, p->y, p->out_width, p->out_height, (int)p->dtype,
                p->planar ? "nchw" : "nhwc", p->bgr ? "bgr" : "rgb", p->columns ? ", resampled" : "", value / per_image,
                value / per_image % KINDS, value % per_image, at, got[at], want[at]);
}

/* Runs prepare on the GPU and in the reference, with the images as sources, and compares the results. */
static void compare(const struct images *images, struct weir_gpu_prepare p, const struct taps *columns,
                    const struct taps *rows)
{
    p.n = IMAGES;
    p.width = images->width;
    p.height = images->height;
    size_t bytes = prepare_value_bytes(p.dtype) * IMAGES * 3 * (size_t)p.out_width * (size_t)p.out_height;
    uint8_t *want = malloc(bytes), *got = malloc(bytes + GUARD);
    memset(got, PATTERN, bytes + GUARD);
    void *tensor = gpufx_upload(&fx, got, bytes + GUARD);
    p.sources = images->host;
    p.columns = columns ? &columns->host : NULL;
    p.rows = rows ? &rows->host : NULL;
    p.values = values;
    p.tensor = want;
    prepare_reference(&p);
    p.sources = images->sources;
    p.columns = columns ? &columns->gpu : NULL;
    p.rows = rows ? &rows->gpu : NULL;
    p.values = gpu_values;
    p.tensor = tensor;
    gpufx_fine(fx.ops->prepare(fx.gpu, &p, fx.stream, &err), &err);
    gpufx_copy_out(&fx, got, tensor, bytes + GUARD);
    say_difference(&p, want, got, bytes);
    for (size_t i = 0; i < GUARD; i++)
        gpufx_check(got[bytes + i] == PATTERN, "%dx%d: wrote past the tensor", p.out_width, p.out_height);
    gpufx_free(&fx, tensor);
    free(want);
    free(got);
    compared++;
}

/* Compares the results in the first `formats` formats. */
static void compare_formats(const struct images *images, struct weir_gpu_prepare p, const struct taps *columns,
                            const struct taps *rows, int formats)
{
    for (int f = 0; f < formats; f++) {
        p.dtype = (enum weir_gpu_dtype)(f % 4);
        p.planar = f / 4 % 2;
        p.bgr = f / 8 % 2;
        compare(images, p, columns, rows);
    }
}

static void compare_resized(const struct images *images, int out_width, int out_height, int formats)
{
    struct taps columns, rows;
    taps_open(&columns, 0, images->width, out_width);
    taps_open(&rows, 0, images->height, out_height);
    struct weir_gpu_prepare p = {.out_width = out_width, .out_height = out_height};
    compare_formats(images, p, &columns, &rows, formats);
    taps_close(&columns);
    taps_close(&rows);
}

static void compare_crops(const struct images *images, int formats)
{
    for (int i = 0; i < 4; i++) {
        int x = rand() % images->width, y = rand() % images->height;
        struct weir_gpu_prepare p = {.x = x, .y = y, .out_width = images->width - x, .out_height = images->height - y};
        compare_formats(images, p, NULL, NULL, formats);
        if (p.out_width > 4) {
            p.out_width = p.out_width / 4 * 4; /* multiples of four are stored four at a time, from any first column */
            compare_formats(images, p, NULL, NULL, formats);
        }
    }
}

static void test_prepare(void)
{
    static const int sizes[][2] = {{1, 1},  {2, 3},   {3, 2},   {4, 4},   {5, 5},   {6, 1},    {7, 9},
                                   {16, 8}, {17, 33}, {64, 48}, {61, 47}, {97, 61}, {255, 13}, {320, 240}};
    for (size_t i = 0; i < sizeof sizes / sizeof sizes[0]; i++) {
        struct images images;
        int width = sizes[i][0], height = sizes[i][1], formats = width > 200 ? 8 : 16;
        images_open(&images, width, height);
        compare_formats(&images, (struct weir_gpu_prepare){.out_width = width, .out_height = height}, NULL, NULL,
                        formats);
        compare_crops(&images, formats);
        compare_resized(&images, (width + 2) / 3, (height + 1) / 2, formats);
        compare_resized(&images, width * 2 + 1, height + 3, width > 200 ? 2 : 16);
        compare_resized(&images, (width + 1) / 2, height * 2, width > 200 ? 2 : 16);
        images_close(&images);
    }
    printf("prepare: %d calls with %d images each match the reference bit for bit\n", compared, IMAGES);
}

static void test_prepare_refuses(void)
{
    struct weir_gpu_prepare p = {.n = 1, .width = 8, .height = 8, .x = 1, .out_width = 8, .out_height = 8};
    gpufx_check(fx.ops->prepare(fx.gpu, &p, fx.stream, NULL) == -EINVAL, "a crop past the edge was accepted");
    p.n = 0;
    p.x = 0;
    gpufx_fine(fx.ops->prepare(fx.gpu, &p, fx.stream, &err), &err);
}

/* ---- streams and events ---- */

static void test_events(void)
{
    enum { BUSY_NS = 5000000 };
    void *from = gpufx_event(&fx), *to = gpufx_event(&fx);
    gpufx_check(fx.ops->passed(fx.gpu, from, &err) == 1, "an event that was never recorded has not passed");
    gpufx_record(&fx, from, fx.stream);
    gpufx_fine(fx.ops->busy(fx.gpu, BUSY_NS, fx.stream, &err), &err);
    gpufx_record(&fx, to, fx.stream);
    gpufx_fine(fx.ops->wait(fx.gpu, to, &err), &err);
    gpufx_check(fx.ops->passed(fx.gpu, to, &err) == 1, "an awaited event has not passed");
    int64_t ns = gpufx_elapsed_ns(&fx, from, to);
    printf("a busy kernel of %.3f ms took %.3f ms\n", BUSY_NS / 1e6, (double)ns / 1e6);
    gpufx_check(ns >= BUSY_NS * 0.999, "a busy kernel was too short");
    gpufx_check(gpufx_elapsed_ns(&fx, to, from) <= 0, "the time between events has the wrong sign");
    gpufx_fine(fx.ops->busy(fx.gpu, 300000000, fx.stream, &err), &err);
    gpufx_record(&fx, to, fx.stream);
    gpufx_check(fx.ops->passed(fx.gpu, to, &err) == 0, "queueing waits for queued work");
    gpufx_check(fx.ops->elapsed(fx.gpu, from, to, &ns, NULL) == -EINVAL, "an event that has not passed has a time");
    gpufx_fine(fx.ops->wait(fx.gpu, to, &err), &err);
    fx.ops->event_free(fx.gpu, from);
    fx.ops->event_free(fx.gpu, to);
}

static void test_order(void)
{
    void *a = gpufx_stream(&fx, false), *b = gpufx_stream(&fx, true), *event = gpufx_event(&fx);
    uint8_t one = 1, two = 2, got = 0, *memory = gpufx_alloc(&fx, 1);
    for (int i = 0; i < 20; i++) {
        gpufx_fine(fx.ops->busy(fx.gpu, 3000000, a, &err), &err);
        gpufx_fine(fx.ops->copy_in(fx.gpu, memory, &one, 1, a, &err), &err);
        gpufx_record(&fx, event, a);
        gpufx_fine(fx.ops->stream_wait(fx.gpu, b, event, &err), &err);
        gpufx_fine(fx.ops->copy_in(fx.gpu, memory, &two, 1, b, &err), &err);
        gpufx_sync(&fx, b);
        gpufx_copy_out(&fx, &got, memory, 1);
        gpufx_check(got == 2, "a stream did not wait for another's event");
    }
    fx.ops->event_free(fx.gpu, event);
    fx.ops->stream_free(fx.gpu, a);
    fx.ops->stream_free(fx.gpu, b);
    gpufx_free(&fx, memory);
}

/* Two busy kernels on two streams should take as long as one. */
static void print_overlap(void)
{
    void *streams[2] = {gpufx_stream(&fx, false), gpufx_stream(&fx, true)}, *from = gpufx_event(&fx);
    void *ends[2] = {gpufx_event(&fx), gpufx_event(&fx)};
    gpufx_record(&fx, from, streams[0]);
    for (int i = 0; i < 2; i++) {
        gpufx_fine(fx.ops->busy(fx.gpu, 20000000, streams[i], &err), &err);
        gpufx_record(&fx, ends[i], streams[i]);
    }
    for (int i = 0; i < 2; i++) {
        gpufx_sync(&fx, streams[i]);
        printf("one of two busy kernels of 20 ms ended after %.3f ms\n",
               (double)gpufx_elapsed_ns(&fx, from, ends[i]) / 1e6);
        fx.ops->event_free(fx.gpu, ends[i]);
        fx.ops->stream_free(fx.gpu, streams[i]);
    }
    fx.ops->event_free(fx.gpu, from);
}

/* ---- memory ---- */

static void test_out_of_memory(void)
{
    void *memory;
    uint8_t byte = 7, got = 0;
    gpufx_check(fx.ops->alloc(fx.gpu, fx.info.total_bytes * 2, &memory, &err) == -ENOMEM,
                "an allocation of twice the GPU's memory succeeded");
    gpufx_check(memory == NULL, "the failed allocation returned memory");
    gpufx_check(strstr(err.text, "--batch-size") != NULL, "no advice: %s", err.text);
    printf("out of memory: %s\n", err.text);
    err = WEIR_ERR_NONE;
    memory = gpufx_upload(&fx, &byte, 1);
    gpufx_copy_out(&fx, &got, memory, 1);
    gpufx_check(got == 7, "nothing works after running out of memory");
    gpufx_free(&fx, memory);
}

static double copy_ms(void *gpu, void *host, size_t bytes, bool in)
{
    void *from = gpufx_event(&fx), *to = gpufx_event(&fx);
    gpufx_record(&fx, from, fx.stream);
    gpufx_fine(in ? fx.ops->copy_in(fx.gpu, gpu, host, bytes, fx.stream, &err)
                  : fx.ops->copy_out(fx.gpu, host, gpu, bytes, fx.stream, &err),
               &err);
    gpufx_record(&fx, to, fx.stream);
    gpufx_fine(fx.ops->wait(fx.gpu, to, &err), &err);
    double ms = (double)gpufx_elapsed_ns(&fx, from, to) / 1e6;
    fx.ops->event_free(fx.gpu, from);
    fx.ops->event_free(fx.gpu, to);
    return ms;
}

static void print_copies(const char *what, void *gpu, void *host, size_t bytes)
{
    double in = 0, out = 0;
    for (int i = 0; i < 3; i++) { /* the first pass warms up */
        in = copy_ms(gpu, host, bytes, true);
        out = copy_ms(gpu, host, bytes, false);
    }
    printf("%s memory: %.1f GB/s to the GPU, %.1f from it\n", what, (double)bytes / in / 1e6,
           (double)bytes / out / 1e6);
}

static void test_copies(void)
{
    size_t bytes = (size_t)256 << 20;
    uint8_t *host = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0), *gpu;
    gpufx_check(host != MAP_FAILED, "no memory");
    for (size_t i = 0; i < bytes; i++)
        host[i] = (uint8_t)(i * 2654435761u >> 13);
    gpu = gpufx_alloc(&fx, bytes);
    print_copies("plain", gpu, host, bytes);
    gpufx_fine(fx.ops->pin(fx.gpu, host, bytes, &err), &err);
    print_copies("pinned", gpu, host, bytes);
    for (size_t i = 0; i < bytes; i++)
        gpufx_check(host[i] == (uint8_t)(i * 2654435761u >> 13), "byte %zu came back with a different value", i);
    fx.ops->unpin(fx.gpu, host);
    gpufx_fine(fx.ops->pin(fx.gpu, host, bytes, &err), &err); /* memory can be pinned again */
    fx.ops->unpin(fx.gpu, host);
    gpufx_free(&fx, gpu);
    munmap(host, bytes);
}

/* ---- rates ---- */

static void print_rate(const char *what, const struct weir_gpu_prepare *p, double bytes)
{
    enum { ROUNDS = 21 };
    int64_t ns[ROUNDS];
    void *from = gpufx_event(&fx), *to = gpufx_event(&fx);
    for (int i = 0; i < ROUNDS; i++) {
        gpufx_record(&fx, from, fx.stream);
        gpufx_fine(fx.ops->prepare(fx.gpu, p, fx.stream, &err), &err);
        gpufx_record(&fx, to, fx.stream);
        gpufx_fine(fx.ops->wait(fx.gpu, to, &err), &err);
        ns[i] = gpufx_elapsed_ns(&fx, from, to);
    }
    qsort(ns, ROUNDS, sizeof ns[0], weir_compare_int64);
    printf("prepare, %s: %.1f us for %d images (median of %d; min %.1f), %.0f GB/s\n", what,
           (double)ns[ROUNDS / 2] / 1e3, p->n, ROUNDS, (double)ns[0] / 1e3, bytes / (double)ns[ROUNDS / 2]);
    fx.ops->event_free(fx.gpu, from);
    fx.ops->event_free(fx.gpu, to);
}

enum { N = 128, WIDTH = 640, HEIGHT = 480, PIXELS = WIDTH * HEIGHT };

static void print_kind(const char *name, uint32_t kind, uint8_t *planes, void *tensor)
{
    static const char *const dtypes[] = {"u8", "f32", "f16", "bf16"};
    struct weir_gpu_source sources[N];
    struct taps columns, rows;
    double in = kind == WEIR_GPU_RGB ? 3 : 1.5;
    for (size_t i = 0; i < N; i++) {
        uint8_t *image = planes + i * 3 * PIXELS;
        sources[i] = (struct weir_gpu_source){.plane = {image, image + PIXELS, image + PIXELS * 5 / 4},
                                              .pitch = {kind == WEIR_GPU_RGB ? 3 * WIDTH : WIDTH, WIDTH / 2, WIDTH / 2},
                                              .kind = kind};
    }
    void *gpu_sources = gpufx_upload(&fx, sources, sizeof sources);
    struct weir_gpu_prepare p = {
        .sources = gpu_sources, .n = N, .width = WIDTH, .height = HEIGHT, .values = gpu_values, .tensor = tensor};
    taps_open(&columns, 0, WIDTH, 224);
    taps_open(&rows, 0, HEIGHT, 224);
    for (int f = 0; f < 12; f++) {
        char what[64];
        bool resized = f >= 8;
        p.dtype = (enum weir_gpu_dtype)(f % 4);
        p.planar = f % 8 < 4;
        p.out_width = resized ? 224 : WIDTH;
        p.out_height = resized ? 224 : HEIGHT;
        p.columns = resized ? &columns.gpu : NULL;
        p.rows = resized ? &rows.gpu : NULL;
        snprintf(what, sizeof what, "%s to %s %s %dx%d", name, dtypes[p.dtype], p.planar ? "nchw" : "nhwc", p.out_width,
                 p.out_height);
        print_rate(what, &p,
                   N * (in * PIXELS + 3.0 * (double)prepare_value_bytes(p.dtype) * p.out_width * p.out_height));
    }
    taps_close(&columns);
    taps_close(&rows);
    gpufx_free(&fx, gpu_sources);
}

static void print_rates(void)
{
    size_t bytes = (size_t)N * 3 * PIXELS;
    uint8_t *host = malloc(bytes);
    for (size_t i = 0; i < bytes; i++)
        host[i] = (uint8_t)(i / 7 + i / WIDTH);
    uint8_t *planes = gpufx_upload(&fx, host, bytes);
    void *tensor = gpufx_alloc(&fx, bytes * 4);
    print_kind("RGB", WEIR_GPU_RGB, planes, tensor);
    print_kind("YUV 4:2:0", WEIR_GPU_YUV420, planes, tensor);
    gpufx_free(&fx, tensor);
    gpufx_free(&fx, planes);
    free(host);
}

/* "few" skips tests that are slow under a tool, and tests that a memory checker reports. */
int main(int argc, char **argv)
{
    bool few = argc > 1 && strcmp(argv[1], "few") == 0;
    setvbuf(stdout, NULL, _IOLBF, 0);
    srand(11);
    gpufx_open(&fx);
    const struct weir_gpu_info *info = &fx.info;
    printf("GPU %d: %s (%d.%d), %s, PCIe %d x%d, %.1f of %.1f GB free, %d multiprocessors, %d copy engines, driver %d, "
           "runtime %d\n",
           info->number, info->name, info->major, info->minor, info->pci, info->pcie_generation, info->pcie_width,
           (double)info->free_bytes / 1e9, (double)info->total_bytes / 1e9, info->sms, info->copy_engines,
           info->driver_version, info->runtime_version);
    make_values();
    test_events();
    test_order();
    test_prepare_refuses();
    test_prepare();
    if (!few) {
        test_copies();
        test_out_of_memory();
        print_overlap();
        print_rates();
    }
    gpufx_free(&fx, gpu_values);
    gpufx_close(&fx);
    return 0;
}
