/* The stand-in for libweir_cuda.so: its table, what WEIR_FAKE_CUDA says, copies and kernels. */
#include "tests/fake_cuda.h"
#include "tests/prepare_reference.h"

#include <errno.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

void fake_die(const char *format, ...)
{
    va_list args;
    va_start(args, format);
    fputs("fake CUDA: ", stderr);
    vfprintf(stderr, format, args);
    fputc('\n', stderr);
    va_end(args);
    abort();
}

int64_t fake_now_ns(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (int64_t)now.tv_sec * 1000000000 + now.tv_nsec;
}

void fake_sleep_until(int64_t ns)
{
    struct timespec until = {.tv_sec = ns / 1000000000, .tv_nsec = ns % 1000000000};
    while (clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &until, NULL) == EINTR)
        ;
}

/* ---- what the GPUs are like ---- */

static struct fake_config config = {.gpus = 1, .memory_bytes = 1u << 30};

static bool take_number(const char *word, const char *name, uint64_t *value)
{
    size_t length = strlen(name);
    if (strncmp(word, name, length) != 0)
        return false;
    char *end;
    *value = strtoull(word + length, &end, 10);
    return end != word + length && *end == '\0';
}

static void take_word(const char *word)
{
    uint64_t gpus;
    if (take_number(word, "gpus=", &gpus))
        config.gpus = (int)gpus;
    else if (strcmp(word, "none") == 0)
        config.none = true;
    else if (strcmp(word, "fail=pin") == 0)
        config.pin_fails = true;
    else if (!take_number(word, "memory_bytes=", &config.memory_bytes) &&
             !take_number(word, "copy_ns_per_mb=", &config.copy_ns_per_mb) &&
             !take_number(word, "fail=lost:", &config.lost_at) && !take_number(word, "fail=oom:", &config.oom_bytes))
        fake_die("WEIR_FAKE_CUDA: '%s' is not known", word);
}

static void read_config(void)
{
    const char *given = getenv("WEIR_FAKE_CUDA");
    char text[256], *rest = text;
    snprintf(text, sizeof text, "%s", given ? given : "");
    for (char *word = strtok_r(text, ",", &rest); word; word = strtok_r(NULL, ",", &rest))
        take_word(word);
    config.gpus = config.none ? 0 : config.gpus;
}

const struct fake_config *fake_config(void)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    pthread_once(&once, read_config);
    return &config;
}

static int count(int *n, struct weir_err *err)
{
    *n = fake_config()->gpus;
    if (config.none)
        return weir_err_set(err, -ENODEV, "no NVIDIA driver is loaded (stand-in): see that nvidia-smi works");
    return *n > 0 ? 0 : weir_err_set(err, -ENODEV, "the driver sees no GPU (stand-in)");
}

static int check_number(int number, struct weir_err *err)
{
    int n, rc = count(&n, err);
    if (rc < 0)
        return rc;
    if (number >= 0 && number < n)
        return 0;
    return weir_err_set(err, -ENODEV, "there is no GPU %d: this machine has %d", number, n);
}

static int describe(int number, bool measure, struct weir_gpu_info *info, struct weir_err *err)
{
    *info = (struct weir_gpu_info){.number = number};
    int rc = check_number(number, err);
    if (rc < 0)
        return rc;
    *info = (struct weir_gpu_info){.number = number,
                                   .name = "stand-in",
                                   .major = 9,
                                   .multiprocessors = 1,
                                   .copy_engines = 2,
                                   .jpeg_engines = -1,
                                   .driver_version = 13000,
                                   .runtime_version = 13000};
    snprintf(info->pci, sizeof info->pci, "0000:%02x:00.0", (unsigned)number & 0xff);
    struct weir_gpu gpu = {number};
    return measure ? fake_memory_info(&gpu, &info->free_bytes, &info->total_bytes, err) : 0;
}

static int open_gpu(struct weir_gpu **out, int number, struct weir_err *err)
{
    *out = NULL;
    int rc = check_number(number, err);
    if (rc == 0)
        rc = fake_check_lost(err);
    if (rc < 0)
        return rc;
    struct weir_gpu *gpu = malloc(sizeof *gpu);
    if (!gpu)
        return weir_err_set(err, -ENOMEM, "the host has no memory left");
    gpu->number = number;
    *out = gpu;
    return 0;
}

static void close_gpu(struct weir_gpu **gpu)
{
    if (!*gpu)
        return;
    fake_streams_check_empty(*gpu);
    fake_memory_check_empty(*gpu);
    free(*gpu);
    *gpu = NULL;
}

/* ---- copies ---- */

struct copy {
    void *to;
    const void *from;
    size_t bytes;
    bool in;
    uint8_t staged[]; /* what was not pinned */
};

static void run_copy(void *user)
{
    const struct copy *copy = user;
    int64_t start = fake_now_ns();
    void *to = copy->in ? fake_memory(copy->to, copy->bytes, "copy_in's target") : copy->to;
    const void *from = copy->in ? copy->from : fake_memory(copy->from, copy->bytes, "copy_out's source");
    memcpy(to, from, copy->bytes);
    if (config.copy_ns_per_mb > 0)
        fake_sleep_until(start + (int64_t)((double)copy->bytes * (double)config.copy_ns_per_mb / 1e6));
}

static struct copy *new_copy(void *to, const void *from, size_t bytes, size_t staged)
{
    struct copy *copy = malloc(sizeof *copy + staged);
    if (!copy)
        fake_die("the host has no memory left");
    *copy = (struct copy){.to = to, .from = from, .bytes = bytes};
    return copy;
}

/* What is not pinned is read now, as CUDA does. */
static int copy_in(struct weir_gpu *gpu, void *to, const void *from, size_t bytes, void *stream, struct weir_err *err)
{
    (void)gpu;
    fake_memory(to, bytes, "copy_in's target");
    bool pinned = fake_is_pinned(from, bytes);
    struct copy *copy = new_copy(to, from, bytes, pinned ? 0 : bytes);
    copy->in = true;
    if (!pinned) {
        memcpy(copy->staged, from, bytes);
        copy->from = copy->staged;
    }
    struct fake_operation operation = {"copy_in", run_copy, copy, pinned ? from : NULL, bytes};
    int rc = fake_queue(stream, &operation, err);
    if (rc < 0)
        free(copy);
    return rc;
}

static int finish(struct weir_gpu *gpu, void *stream, struct weir_err *err)
{
    void *event;
    int rc = fake_event_new(gpu, false, &event, err);
    if (rc == 0)
        rc = fake_record(gpu, event, stream, err);
    if (rc == 0)
        rc = fake_wait(gpu, event, err);
    if (rc < 0) /* the copy is still queued, and the memory is the caller's */
        fake_drain(gpu);
    fake_event_free(gpu, event);
    return rc;
}

static int copy_out(struct weir_gpu *gpu, void *to, const void *from, size_t bytes, void *stream, struct weir_err *err)
{
    fake_memory(from, bytes, "copy_out's source");
    bool pinned = fake_is_pinned(to, bytes);
    struct copy *copy = new_copy(to, from, bytes, 0);
    struct fake_operation operation = {"copy_out", run_copy, copy, to, bytes};
    int rc = fake_queue(stream, &operation, err);
    if (rc < 0)
        free(copy);
    return rc < 0 || pinned ? rc : finish(gpu, stream, err);
}

/* ---- kernels ---- */

struct preparation {
    struct weir_gpu_prepare prepare;
    struct weir_gpu_taps columns, rows;
};

static void translate_plane(struct weir_gpu_source *source, int plane, size_t row_bytes, int rows)
{
    if (source->pitch[plane] < row_bytes)
        fake_die("prepare: rows of %zu bytes have a pitch of %u", row_bytes, source->pitch[plane]);
    size_t bytes = (size_t)source->pitch[plane] * (size_t)(rows - 1) + row_bytes;
    source->plane[plane] = fake_memory(source->plane[plane], bytes, "prepare's plane");
}

static void translate_source(struct weir_gpu_source *source, int width, int height)
{
    if (source->kind > WEIR_GPU_YUV440)
        fake_die("prepare: a source of kind %u", source->kind);
    translate_plane(source, 0, (size_t)width * (source->kind == WEIR_GPU_RGB ? 3 : 1), height);
    for (int c = 1; c < 3 && source->kind >= WEIR_GPU_YUV444; c++)
        translate_plane(source, c, (size_t)prepare_chroma_width(source->kind, width),
                        prepare_chroma_height(source->kind, height));
}

static void translate_taps(struct weir_gpu_taps *taps, int n, int source_end)
{
    taps->first = fake_memory(taps->first, sizeof *taps->first * (size_t)n, "prepare's taps");
    taps->n = fake_memory(taps->n, sizeof *taps->n * (size_t)n, "prepare's taps");
    taps->weights =
        fake_memory(taps->weights, sizeof *taps->weights * (size_t)n * (size_t)taps->most, "prepare's weights");
    for (int i = 0; i < n; i++)
        if (taps->first[i] < 0 || taps->n[i] < 1 || taps->n[i] > taps->most || taps->first[i] > source_end - taps->n[i])
            fake_die("prepare: taps %d are pixels %d to %d of %d", i, taps->first[i], taps->first[i] + taps->n[i] - 1,
                     source_end);
}

static void run_prepare(void *user)
{
    struct preparation *preparation = user;
    struct weir_gpu_prepare *p = &preparation->prepare;
    size_t n = (size_t)p->n, bytes = prepare_value_bytes(p->dtype) * 3 * (size_t)p->out_width * (size_t)p->out_height;
    struct weir_gpu_source *sources = malloc(n * sizeof *sources);
    if (!sources)
        fake_die("the host has no memory left");
    memcpy(sources, fake_memory(p->sources, n * sizeof *sources, "prepare's sources"), n * sizeof *sources);
    for (size_t i = 0; i < n; i++)
        translate_source(&sources[i], p->width, p->height);
    if (p->columns) {
        translate_taps(&preparation->columns, p->out_width, p->width);
        translate_taps(&preparation->rows, p->out_height, p->height);
        p->columns = &preparation->columns;
        p->rows = &preparation->rows;
    }
    if (p->dtype != WEIR_GPU_U8)
        p->values = fake_memory(p->values, sizeof *p->values * 3 * 256, "prepare's values");
    size_t last = n - 1, run = (size_t)p->run;
    if (run > 0)
        last = last / run * (size_t)p->stride + (size_t)p->first + last % run;
    p->tensor = fake_memory(p->tensor, (last + 1) * bytes, "prepare's tensor");
    p->sources = sources;
    prepare_reference(p);
    free(sources);
}

static void check_prepare(const struct weir_gpu_prepare *p)
{
    if (p->width < 1 || p->height < 1 || p->out_width < 1 || p->out_height < 1 || p->dtype > WEIR_GPU_BF16)
        fake_die("prepare: %dx%d to %dx%d, dtype %d", p->width, p->height, p->out_width, p->out_height, (int)p->dtype);
    if (!p->columns != !p->rows)
        fake_die("prepare: taps of one direction");
    if (!p->columns && (p->x < 0 || p->y < 0 || p->x > p->width - p->out_width || p->y > p->height - p->out_height))
        fake_die("prepare: %dx%d+%d+%d does not lie in %dx%d", p->out_width, p->out_height, p->x, p->y, p->width,
                 p->height);
    if ((uintptr_t)p->tensor % 256 != 0)
        fake_die("prepare: the tensor at %p is not aligned to 256 bytes", p->tensor);
}

static int prepare_images(struct weir_gpu *gpu, const struct weir_gpu_prepare *prepare, void *stream,
                          struct weir_err *err)
{
    (void)gpu;
    if (prepare->n == 0)
        return fake_check_lost(err);
    check_prepare(prepare);
    struct preparation *preparation = malloc(sizeof *preparation);
    if (!preparation)
        fake_die("the host has no memory left");
    *preparation = (struct preparation){.prepare = *prepare};
    if (prepare->columns) {
        preparation->columns = *prepare->columns;
        preparation->rows = *prepare->rows;
    }
    struct fake_operation operation = {.name = "prepare", .run = run_prepare, .user = preparation};
    int rc = fake_queue(stream, &operation, err);
    if (rc < 0)
        free(preparation);
    return rc;
}

static void run_busy(void *user)
{
    fake_sleep_until(fake_now_ns() + (int64_t) * (uint64_t *)user);
}

static int busy(struct weir_gpu *gpu, uint64_t ns, void *stream, struct weir_err *err)
{
    (void)gpu;
    uint64_t *length = malloc(sizeof *length);
    if (!length)
        fake_die("the host has no memory left");
    *length = ns;
    struct fake_operation operation = {.name = "busy", .run = run_busy, .user = length};
    int rc = fake_queue(stream, &operation, err);
    if (rc < 0)
        free(length);
    return rc;
}

/* ---- the tables ---- */

const struct weir_gpu_ops weir_gpu_fake = {
    .count = count,
    .describe = describe,
    .open = open_gpu,
    .close = close_gpu,
    .memory = fake_memory_info,
    .pin = fake_pin,
    .unpin = fake_unpin,
    .alloc = fake_alloc,
    .free = fake_free,
    .stream_new = fake_stream_new,
    .stream_free = fake_stream_free,
    .event_new = fake_event_new,
    .event_free = fake_event_free,
    .record = fake_record,
    .stream_wait = fake_stream_wait,
    .passed = fake_passed,
    .wait = fake_wait,
    .elapsed = fake_elapsed,
    .copy_in = copy_in,
    .copy_out = copy_out,
    .prepare = prepare_images,
    .busy = busy,
};

static const struct weir_cuda_module table = {
    .abi = WEIR_CUDA_ABI,
    .bytes = sizeof table,
    .built_with = "no CUDA: the stand-in for tests",
    .gpu = &weir_gpu_fake,
    .jpeg = &weir_gpu_jpeg_fake,
    .trace = &weir_gpu_trace_fake,
    .nvtx = &weir_nvtx_fake,
};

__attribute__((visibility("default"))) const struct weir_cuda_module *weir_cuda_module_table(void);

const struct weir_cuda_module *weir_cuda_module_table(void)
{
    return &table;
}
