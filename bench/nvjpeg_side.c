#include "bench/nvjpeg_side.h"
#include "bench/raw_nvjpeg.h"
#include "weir/base.h"

#include <errno.h>
#include <glob.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { FILE_BYTES_MAX = 1 << 26, PITCH_STEP = 64, PRIME = 7919 };

/* ---- frames ---- */

static uint8_t *read_file(const char *path, size_t *length)
{
    FILE *file = fopen(path, "r");
    uint8_t *bytes = NULL;
    long size = file && fseek(file, 0, SEEK_END) == 0 ? ftell(file) : -1;
    if (size > 0 && size <= FILE_BYTES_MAX && fseek(file, 0, SEEK_SET) == 0)
        bytes = malloc((size_t)size);
    *length = bytes ? fread(bytes, 1, (size_t)size, file) : 0;
    if (file)
        fclose(file);
    return bytes;
}

static int load_files(struct raw_frames *raw, const glob_t *found, int max)
{
    *raw = (struct raw_frames){.bytes = calloc((size_t)max, sizeof *raw->bytes),
                               .lengths = calloc((size_t)max, sizeof *raw->lengths)};
    if (!raw->bytes || !raw->lengths)
        return -ENOMEM;
    for (size_t i = 0; i < found->gl_pathc && raw->n < max; i++) {
        raw->bytes[raw->n] = read_file(found->gl_pathv[i], &raw->lengths[raw->n]);
        raw->n += raw->bytes[raw->n] != NULL;
    }
    return 0;
}

static int load_bytes(struct raw_frames *raw, const char *data, int max, struct weir_err *err)
{
    char pattern[4096];
    glob_t found = {0};
    int n = snprintf(pattern, sizeof pattern, "%s/*.jpg", data);
    bool files = n > 0 && (size_t)n < sizeof pattern && glob(pattern, 0, NULL, &found) == 0;
    int rc = files ? load_files(raw, &found, max) : raw_frames_load(raw, data, max, err);
    globfree(&found);
    return rc < 0 ? weir_err_set(err, rc, "%s: no frames could be read", data) : 0;
}

/* Removes frames that the engine does not support, or whose size differs from the first frame. */
static void sieve(struct nvjpeg_frames *f, enum weir_gpu_jpeg_engine engine)
{
    struct raw_frames *raw = &f->raw;
    int kept = 0;
    for (int i = 0; i < raw->n; i++) {
        struct weir_jpeg_header *header = &f->headers[kept];
        bool takes =
            weir_gpu_jpeg_look(raw->bytes[i], raw->lengths[i], engine, header, &f->frames[kept]) == WEIR_JPEG_TAKEN;
        if (!takes || (kept > 0 && (header->width != f->headers[0].width || header->height != f->headers[0].height))) {
            free(raw->bytes[i]);
            continue;
        }
        raw->bytes[kept] = raw->bytes[i];
        raw->lengths[kept] = f->frames[kept].length;
        kept++;
    }
    f->left_out = raw->n - kept;
    raw->n = kept;
    raw->width = f->headers[0].width;
    raw->height = f->headers[0].height;
}

int nvjpeg_frames_load(struct nvjpeg_frames *f, const char *data, int max, enum weir_gpu_jpeg_engine engine,
                       struct weir_err *err)
{
    *f = (struct nvjpeg_frames){0};
    int rc = load_bytes(&f->raw, data, max, err);
    if (rc < 0)
        return rc;
    f->headers = calloc((size_t)max, sizeof *f->headers);
    f->frames = calloc((size_t)max, sizeof *f->frames);
    if (!f->headers || !f->frames)
        return weir_err_set(err, -ENOMEM, "out of memory");
    sieve(f, engine);
    return f->raw.n ? 0
                    : weir_err_set(err, -EINVAL, "%s: none of its %d frames is supported by the %s engine", data,
                                   f->left_out, weir_gpu_jpeg_engine_name(engine));
}

void nvjpeg_frames_free(struct nvjpeg_frames *f)
{
    raw_frames_free(&f->raw);
    free(f->headers);
    free(f->frames);
    *f = (struct nvjpeg_frames){0};
}

const char *nvjpeg_output_name(enum nvjpeg_output output)
{
    static const char *const names[NVJPEG_OUTPUTS] = {
        [NVJPEG_RGBI] = "rgbi", [NVJPEG_YUV] = "yuv", [NVJPEG_TURNS] = "yuv, in turns"};
    return names[output];
}

/* ---- a lane: a decoder with its own stream, memory and one group in flight ---- */

struct run {
    const struct weir_gpu_ops *ops;
    struct weir_gpu *gpu;
    const struct nvjpeg_frames *frames;
    double seconds;
    pthread_barrier_t start;
    _Atomic uint64_t next;
    _Atomic bool failed;
};

struct lane {
    struct weir_gpu_jpeg *decoder; /* only decoder or raw is set, depending on the output */
    struct raw_nvjpeg *raw;
    void *stream, *event;
    uint8_t *memory; /* GPU memory */
    struct weir_gpu_jpeg_frame *group;
    enum weir_jpeg_refusal *results;
    const uint8_t **bytes;
    size_t *lengths;
};

static void lane_close(const struct run *run, struct lane *lane)
{
    if (lane->event)
        run->ops->wait(run->gpu, lane->event, NULL);
    weir_gpu_jpeg_close(&lane->decoder);
    raw_nvjpeg_close(&lane->raw);
    if (lane->memory)
        run->ops->free(run->gpu, lane->memory);
    if (lane->event)
        run->ops->event_free(run->gpu, lane->event);
    if (lane->stream)
        run->ops->stream_free(run->gpu, lane->stream);
    free(lane->group);
    free(lane->results);
    free(lane->bytes);
    free(lane->lengths);
    *lane = (struct lane){0};
}

static size_t pitch_of(int width)
{
    return ((size_t)width + PITCH_STEP - 1) / PITCH_STEP * PITCH_STEP;
}

/* Returns the size of three full planes, which no output exceeds. */
static size_t image_bytes(const struct raw_frames *raw)
{
    return 3 * pitch_of(raw->width) * (size_t)raw->height;
}

static int lane_open(const struct run *run, const struct nvjpeg_side *side, struct lane *lane, struct weir_err *err)
{
    size_t n = (size_t)side->group;
    lane->group = calloc(n, sizeof *lane->group);
    lane->results = calloc(n, sizeof *lane->results);
    lane->bytes = calloc(n, sizeof *lane->bytes);
    lane->lengths = calloc(n, sizeof *lane->lengths);
    if (!lane->group || !lane->results || !lane->bytes || !lane->lengths)
        return weir_err_set(err, -ENOMEM, "out of memory");
    void *memory = NULL;
    int rc = run->ops->stream_new(run->gpu, side->urgent, &lane->stream, err);
    rc = rc < 0 ? rc : run->ops->event_new(run->gpu, false, &lane->event, err);
    rc = rc < 0 ? rc : run->ops->alloc(run->gpu, n * image_bytes(&run->frames->raw), &memory, err);
    lane->memory = memory;
    if (rc < 0)
        return rc;
    return side->output == NVJPEG_RGBI ? raw_nvjpeg_open(&lane->raw, side->engine, side->group, err)
                                       : weir_gpu_jpeg_open(&lane->decoder, 0, side->engine, side->group, err);
}

static void place_planes(struct weir_gpu_jpeg_frame *frame, const struct weir_jpeg_header *header, uint8_t *memory)
{
    for (int c = 0; c < weir_gpu_jpeg_planes(header); c++) {
        int width, height;
        weir_gpu_jpeg_plane(header, c, &width, &height);
        frame->plane[c] = memory;
        frame->pitch[c] = pitch_of(width);
        memory += frame->pitch[c] * (size_t)height;
    }
}

/* Waits for the lane's previous group, then submits the next one. */
static int submit(struct run *run, const struct nvjpeg_side *side, struct lane *lane, struct weir_err *err)
{
    const struct nvjpeg_frames *f = run->frames;
    size_t step = image_bytes(&f->raw);
    uint64_t first = atomic_fetch_add(&run->next, (uint64_t)side->group);
    for (int i = 0; i < side->group; i++) {
        size_t at = (size_t)((first + (uint64_t)i) * PRIME % (uint64_t)f->raw.n);
        lane->bytes[i] = f->frames[at].bytes;
        lane->lengths[i] = f->frames[at].length;
        lane->group[i] = f->frames[at];
        place_planes(&lane->group[i], &f->headers[at], lane->memory + (size_t)i * step);
    }
    int rc = run->ops->wait(run->gpu, lane->event, err);
    if (rc < 0)
        return rc;
    if (lane->raw)
        rc = raw_nvjpeg_decode(lane->raw, lane->bytes, lane->lengths, lane->memory, f->raw.width, f->raw.height,
                               lane->stream, err);
    else
        rc = weir_gpu_jpeg_decode(lane->decoder, lane->group, side->group, lane->stream, lane->results, err);
    for (int i = 0; i < side->group && rc == 0 && lane->decoder; i++)
        if (lane->results[i] != WEIR_JPEG_TAKEN)
            rc = weir_err_set(err, -EBADMSG, "the engine rejected a frame that it should support");
    return rc < 0 ? rc : run->ops->record(run->gpu, lane->event, lane->stream, err);
}

/* ---- threads ---- */

struct feeder {
    struct run *run;
    const struct nvjpeg_side *side;
    pthread_t thread;
    double images_per_s, cores;
    struct weir_err err;
};

static double thread_cpu_s(void)
{
    struct timespec now;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
    return (double)now.tv_sec + (double)now.tv_nsec / 1e9;
}

static int feed(struct feeder *feeder, struct lane *lanes, int n_lanes)
{
    struct run *run = feeder->run;
    uint64_t start_ns = weir_clock_monotonic_ns(), end_ns = start_ns + (uint64_t)(run->seconds * 1e9), done = 0;
    double cpu_s = thread_cpu_s();
    int rc = 0;
    for (int i = 0; rc == 0 && !run->failed && weir_clock_monotonic_ns() < end_ns; i++) {
        rc = submit(run, feeder->side, &lanes[i % n_lanes], &feeder->err);
        done += (uint64_t)feeder->side->group;
    }
    for (int i = 0; i < n_lanes && rc == 0; i++)
        rc = run->ops->wait(run->gpu, lanes[i].event, &feeder->err);
    double spent_s = (double)(weir_clock_monotonic_ns() - start_ns) / 1e9;
    feeder->images_per_s = (double)done / spent_s;
    feeder->cores = (thread_cpu_s() - cpu_s) / spent_s;
    return rc;
}

static void *feeder_main(void *user)
{
    struct feeder *feeder = user;
    struct run *run = feeder->run;
    struct lane lanes[2] = {0};
    int n_lanes = feeder->side->output == NVJPEG_TURNS ? 2 : 1, rc = 0;
    for (int i = 0; i < n_lanes && rc == 0; i++) {
        rc = lane_open(run, feeder->side, &lanes[i], &feeder->err);
        rc = rc < 0 ? rc
                    : submit(run, feeder->side, &lanes[i], &feeder->err); /* allocates memory before the clock starts */
        rc = rc < 0 ? rc : run->ops->wait(run->gpu, lanes[i].event, &feeder->err);
    }
    if (rc < 0)
        run->failed = true;
    pthread_barrier_wait(&run->start);
    if (rc == 0 && feed(feeder, lanes, n_lanes) < 0)
        run->failed = true;
    for (int i = 0; i < n_lanes; i++)
        lane_close(run, &lanes[i]);
    return NULL;
}

struct cpu_crew {
    struct run *run;
    int threads;
    pthread_t thread;
    double images_per_s;
};

static void *cpu_main(void *user)
{
    struct cpu_crew *crew = user;
    uint64_t next = 0;
    pthread_barrier_wait(&crew->run->start);
    crew->images_per_s =
        crew->run->failed ? 0 : raw_turbo_rate(&crew->run->frames->raw, crew->threads, crew->run->seconds, 0, &next);
    return NULL;
}

static void must_start(pthread_t *thread, void *(*main)(void *), void *user)
{
    if (pthread_create(thread, NULL, main, user) == 0)
        return;
    fprintf(stderr, "nvjpeg: cannot start a thread\n");
    abort(); /* the other threads already wait at the barrier and cannot be stopped */
}

int nvjpeg_run(const struct weir_gpu_ops *ops, struct weir_gpu *gpu, const struct nvjpeg_frames *frames,
               struct nvjpeg_side *sides, int n_sides, int cpu_threads, double seconds, double *cpu_images_per_s,
               struct weir_err *err)
{
    struct run run = {.ops = ops, .gpu = gpu, .frames = frames, .seconds = seconds};
    struct feeder feeders[2 * NVJPEG_THREADS_MAX] = {0};
    struct cpu_crew crew = {&run, cpu_threads, 0, 0};
    int n = 0, rc = 0;
    for (int s = 0; s < n_sides; s++)
        for (int t = 0; t < sides[s].threads; t++)
            feeders[n++] = (struct feeder){.run = &run, .side = &sides[s]};
    pthread_barrier_init(&run.start, NULL, (unsigned)n + (cpu_threads > 0));
    for (int i = 0; i < n; i++)
        must_start(&feeders[i].thread, feeder_main, &feeders[i]);
    if (cpu_threads > 0)
        must_start(&crew.thread, cpu_main, &crew);
    for (int s = 0; s < n_sides; s++)
        sides[s].images_per_s = sides[s].cores = 0;
    for (int i = 0, s = 0, of_side = 0; i < n; i++, of_side++) {
        if (of_side == sides[s].threads)
            s++, of_side = 0;
        pthread_join(feeders[i].thread, NULL);
        sides[s].images_per_s += feeders[i].images_per_s;
        sides[s].cores += feeders[i].cores;
        if (feeders[i].err.code && rc == 0)
            rc = weir_err_set(err, feeders[i].err.code, "%s", feeders[i].err.text);
    }
    if (cpu_threads > 0)
        pthread_join(crew.thread, NULL);
    pthread_barrier_destroy(&run.start);
    *cpu_images_per_s = crew.images_per_s;
    return rc == 0 && crew.images_per_s < 0 ? weir_err_set(err, -EBADMSG, "libjpeg-turbo cannot decode a frame") : rc;
}
