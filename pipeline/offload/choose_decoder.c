#include "base/threads.h"
#include "decoders/gpu/gpu_jpeg.h"
#include "pipeline/gpu/gpu_device.h"
#include "pipeline/offload/gpu_decode.h"
#include "pipeline/samples/defaults.h"
#include "pipeline/samples/fetch.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { THREADS_MAX = 256, MEMORY_MAX = 256 << 20 };

struct sample {
    uint8_t *bytes;
    int width, height;
    size_t image_bytes;
    struct weir_jpeg_header header;
    struct weir_gpu_jpeg_frame frame;
};

struct samples {
    int n;
    struct sample at[WEIR_CHOICE_FRAMES];
    int widest;
    size_t largest; /* size of the largest image */
    int refused;    /* number of frames that the engine refused */
    enum weir_jpeg_refusal refusal;
};

/* ---- sample frames ---- */

static bool add_sample(struct samples *samples, const struct weir_camera_probe *probe, const uint8_t *bytes,
                       size_t length, enum weir_gpu_jpeg_engine engine)
{
    struct sample *sample = &samples->at[samples->n];
    enum weir_jpeg_refusal refusal = weir_gpu_jpeg_look(bytes, length, engine, &sample->header, &sample->frame);
    bool fits = sample->header.width == probe->width && sample->header.height == probe->height;
    if (refusal != WEIR_JPEG_TAKEN || !fits) {
        samples->refused++;
        samples->refusal = refusal != WEIR_JPEG_TAKEN ? refusal : WEIR_JPEG_BAD_HEADER;
        return true;
    }
    sample->bytes = malloc(sample->frame.length);
    if (!sample->bytes)
        return false;
    memcpy(sample->bytes, bytes, sample->frame.length);
    sample->frame.bytes = sample->bytes;
    sample->width = probe->width;
    sample->height = probe->height;
    sample->image_bytes = (size_t)probe->width * (size_t)probe->height * 3;
    samples->widest = sample->width > samples->widest ? sample->width : samples->widest;
    samples->largest = sample->image_bytes > samples->largest ? sample->image_bytes : samples->largest;
    samples->n++;
    return true;
}

/* Lists the cameras whose frames in this episode are JPEGs, and returns their number. The result can differ by episode.
 */
static int jpeg_cameras(const struct weir_shared *s, int episode, int cameras[WEIR_CAMERAS_MAX])
{
    int n = 0;
    for (int c = 0; c < weir_dataset_cameras(s->setup.dataset); c++)
        if (weir_dataset_kind(s->setup.dataset, episode, c) == WEIR_FRAME_IMAGE)
            cameras[n++] = c;
    return n;
}

static uint64_t jpeg_frames(const struct weir_shared *s)
{
    int cameras[WEIR_CAMERAS_MAX];
    uint64_t frames = 0;
    for (int e = 0; e < weir_dataset_episodes(s->setup.dataset); e++)
        frames += (uint64_t)jpeg_cameras(s, e, cameras) * (uint64_t)weir_dataset_steps(s->setup.dataset, e);
    return frames;
}

/* Divides 0..all-1 into n sections and returns a position in section i, at an offset that varies with i. */
static uint64_t spread(uint64_t i, uint64_t n, uint64_t all)
{
    uint64_t begin = i * all / n, end = (i + 1) * all / n;
    return begin + i * 7919 % (end - begin);
}

/* Fetches distinct frames spread over the episodes, alternating between the JPEG cameras. */
static void fetch_samples(struct samples *samples, const struct weir_shared *s, struct weir_fetcher *fetcher,
                          enum weir_gpu_jpeg_engine engine)
{
    uint64_t all = jpeg_frames(s), n = all < WEIR_CHOICE_FRAMES ? all : WEIR_CHOICE_FRAMES, i = 0, before = 0;
    for (int episode = 0; i < n; episode++) {
        int cameras[WEIR_CAMERAS_MAX], n_cameras = jpeg_cameras(s, episode, cameras);
        uint64_t here = (uint64_t)n_cameras * (uint64_t)weir_dataset_steps(s->setup.dataset, episode);
        for (; i < n && spread(i, n, all) < before + here; i++) {
            uint64_t at = spread(i, n, all) - before;
            int camera = cameras[at % (uint64_t)n_cameras], t = (int)(at / (uint64_t)n_cameras);
            const uint8_t *bytes;
            size_t length;
            if (weir_fetch_frame(fetcher, episode, camera, t, NULL, 0, &bytes, &length) == 0 &&
                !add_sample(samples, &s->setup.probes[camera], bytes, length, engine))
                return;
        }
        before += here;
    }
}

static void open_samples(struct samples *samples, const struct weir_shared *s, enum weir_gpu_jpeg_engine engine)
{
    struct weir_file_set *files = NULL;
    struct weir_fetcher fetcher = {0};
    if (weir_fetch_files(s->setup.dataset, &files) == 0 &&
        weir_fetcher_open(&fetcher, s->setup.dataset, files, weir_file_set_engine(files), NULL) == 0)
        fetch_samples(samples, s, &fetcher, engine);
    weir_fetcher_close(&fetcher);
    weir_file_set_close(&files);
}

static void close_samples(struct samples *samples)
{
    for (int i = 0; i < samples->n; i++)
        free(samples->at[i].bytes);
    samples->n = 0;
}

/* ---- the CPU ---- */

struct cpu_timing {
    const struct samples *samples;
    _Atomic bool counts, stop;
    struct cpu_thread {
        struct cpu_timing *timing;
        int at; /* index of the thread's first sample */
        double rate;
    } threads[THREADS_MAX];
};

/* Measures from the end of one frame to the end of another. If frames are large, only a few fit into the available
 * time, so counting partial frames would distort the rate. Measures at least one frame. */
static double decode_until_stopped(struct cpu_thread *thread, struct weir_decoder *decoder, uint8_t *picture)
{
    struct cpu_timing *timing = thread->timing;
    const struct samples *samples = timing->samples;
    uint64_t begin_ns = 0, end_ns = 0, frames = 0;
    for (int at = thread->at; end_ns == 0 || !atomic_load_explicit(&timing->stop, memory_order_relaxed); at++) {
        const struct sample *sample = &samples->at[at % samples->n];
        struct weir_frame frame = {WEIR_FRAME_IMAGE, sample->bytes,  sample->frame.length,
                                   sample->width,    sample->height, NULL};
        bool fine = weir_decode(decoder, &frame, picture) == 0;
        if (begin_ns != 0) {
            frames += fine;
            end_ns = weir_clock_monotonic_ns();
        } else if (atomic_load_explicit(&timing->counts, memory_order_relaxed)) {
            begin_ns = weir_clock_monotonic_ns();
        }
    }
    return end_ns > begin_ns ? (double)frames * 1e9 / (double)(end_ns - begin_ns) : 0;
}

static void *run_cpu_thread(void *user)
{
    struct cpu_thread *thread = user;
    const struct samples *samples = thread->timing->samples;
    struct weir_pixel_format format = {0};
    struct weir_decoder *decoder = NULL;
    uint8_t *picture = malloc(samples->largest);
    if (picture &&
        weir_decoder_open(&decoder, weir_decoder_at(WEIR_DECODE_ON_CPU), &format, samples->widest, NULL) == 0)
        thread->rate = decode_until_stopped(thread, decoder, picture);
    weir_decoder_close(&decoder);
    free(picture);
    return NULL;
}

static void sleep_ns(uint64_t ns)
{
    nanosleep(&(struct timespec){(time_t)(ns / 1000000000), (long)(ns % 1000000000)}, NULL);
}

static double cpu_rate(const struct samples *samples, int threads)
{
    struct cpu_timing timing = {.samples = samples};
    pthread_t started[THREADS_MAX];
    double rate = 0;
    int n = 0;
    for (; n < threads; n++) {
        timing.threads[n] = (struct cpu_thread){&timing, n, 0};
        if (weir_thread_start(&started[n], run_cpu_thread, &timing.threads[n]) != 0)
            break;
    }
    sleep_ns(WEIR_CHOICE_NS / 4); /* gives all threads time to begin decoding */
    atomic_store(&timing.counts, true);
    sleep_ns(WEIR_CHOICE_NS);
    atomic_store(&timing.stop, true);
    for (int i = 0; i < n; i++) {
        pthread_join(started[i], NULL);
        rate += timing.threads[i].rate;
    }
    return rate;
}

/* ---- the GPU ---- */

struct gpu_timing {
    struct weir_device *device;
    int batch;
    struct weir_gpu_jpeg_frame *frames;
    enum weir_jpeg_refusal *results;
    void *memory, *streams[2], *passed[2];
    struct weir_gpu_jpeg *decoder;
};

static int open_gpu_timing(struct gpu_timing *timing, const struct samples *samples, int gpu,
                           enum weir_gpu_jpeg_engine engine, struct weir_err *err)
{
    size_t most = MEMORY_MAX / samples->largest;
    timing->batch = most < 1 ? 1 : most < WEIR_DECODE_BATCH_MAX ? (int)most : WEIR_DECODE_BATCH_MAX;
    timing->frames = calloc((size_t)timing->batch, sizeof *timing->frames);
    timing->results = calloc((size_t)timing->batch, sizeof *timing->results);
    if (!timing->frames || !timing->results)
        return weir_err_set(err, -ENOMEM, "out of memory");
    int rc = weir_device_open(&timing->device, gpu, err);
    if (rc == 0)
        rc = timing->device->ops->alloc(timing->device->gpu, (size_t)timing->batch * samples->largest, &timing->memory,
                                        err);
    if (rc == 0)
        rc = weir_gpu_jpeg_open(&timing->decoder, gpu, engine, timing->batch, err);
    for (int i = 0; i < 2 && rc == 0; i++) {
        rc = weir_device_stream(timing->device, &timing->streams[i], err);
        if (rc == 0)
            rc = weir_device_event(timing->device, &timing->passed[i], err);
    }
    for (int i = 0; i < timing->batch && rc == 0; i++) {
        const struct sample *sample = &samples->at[i % samples->n];
        timing->frames[i] = sample->frame;
        weir_gpu_decode_set_planes(&timing->frames[i], &sample->header,
                                   (uint8_t *)timing->memory + (size_t)i * samples->largest);
    }
    return rc;
}

static void close_gpu_timing(struct gpu_timing *timing)
{
    weir_gpu_jpeg_close(&timing->decoder);
    for (int i = 0; i < 2 && timing->device; i++) {
        if (timing->passed[i])
            weir_device_event_free(timing->device, timing->passed[i]);
        if (timing->streams[i])
            weir_device_stream_free(timing->device, timing->streams[i]);
    }
    if (timing->memory)
        timing->device->ops->free(timing->device->gpu, timing->memory);
    weir_device_close(&timing->device);
    free(timing->frames);
    free(timing->results);
}

/* Decodes two batches alternately on one decoder, as a run does until frames queue up. All batches write to the same
 * output memory, which is never read. */
static int time_batches(struct gpu_timing *timing, double *rate, struct weir_err *err)
{
    uint64_t start_ns = 0, now_ns = 0, frames = 0;
    int rc = 0;
    for (int i = 0; rc == 0 && (start_ns == 0 || now_ns - start_ns < WEIR_CHOICE_NS); i++) {
        rc = weir_device_wait(timing->device, timing->passed[i % 2], err);
        now_ns = weir_clock_monotonic_ns();
        if (i == 4) /* not timed before, because the first batches allocate buffers */
            start_ns = now_ns;
        for (int k = 0; k < timing->batch && start_ns != 0; k++)
            frames += timing->results[k] == WEIR_JPEG_TAKEN; /* results of the previous decode batch */
        if (rc == 0)
            rc = weir_gpu_jpeg_decode(timing->decoder, timing->frames, timing->batch, timing->streams[i % 2],
                                      timing->results, err);
        if (rc == 0)
            rc = weir_device_record(timing->device, timing->passed[i % 2], timing->streams[i % 2], err);
    }
    if (rc == 0)
        *rate = (double)frames * 1e9 / (double)(now_ns - start_ns);
    return rc;
}

static int gpu_rate(const struct samples *samples, int gpu, enum weir_gpu_jpeg_engine engine, double *rate,
                    struct weir_err *err)
{
    struct gpu_timing timing = {0};
    int rc = open_gpu_timing(&timing, samples, gpu, engine, err);
    if (rc == 0)
        rc = time_batches(&timing, rate, err);
    for (int i = 0; i < 2 && timing.passed[i]; i++)
        weir_device_wait(timing.device, timing.passed[i], NULL);
    close_gpu_timing(&timing);
    return rc;
}

/* ---- the choice ---- */

static bool becomes_smaller(const struct weir_view *view)
{
    return view->out_width * 2 <= view->width && view->out_height * 2 <= view->height;
}

/* Returns whether JPEGs are reduced to half their size or less. The CPU then decodes at a reduced DCT scale, which
 * gives different pixels, but a choice by measured time must not change pixels. */
static bool is_made_smaller(const struct weir_shared *s)
{
    int cameras[WEIR_CAMERAS_MAX];
    bool scales = s->setup.config.resize == WEIR_RESIZE_FAST;
    for (int e = 0; e < weir_dataset_episodes(s->setup.dataset) && scales; e++)
        for (int n = jpeg_cameras(s, e, cameras), i = 0; i < n; i++)
            if (becomes_smaller(&s->setup.views[cameras[i]]))
                return true;
    return false;
}

/* beside: fraction of the CPU's rate that is left while the engines decode too. */
static void judge(struct weir_decoder_choice *choice, double beside, const char *engine, int engines)
{
    double both = WEIR_CHOICE_TOGETHER * (choice->cpu_rate * beside + choice->gpu_rate);
    double best = choice->cpu_rate > choice->gpu_rate ? choice->cpu_rate : choice->gpu_rate;
    choice->decoder = weir_decoder_at(both > best * WEIR_CHOICE_WORTH_IT    ? WEIR_DECODE_ON_BOTH
                                      : choice->cpu_rate > choice->gpu_rate ? WEIR_DECODE_ON_CPU
                                                                            : WEIR_DECODE_ON_GPU);
    char count[32] = "";
    if (engines > 0)
        snprintf(count, sizeof count, "%d ", engines);
    snprintf(choice->why, sizeof choice->why, "the CPU decodes %.0f of these frames per second, and %s%s %.0f",
             choice->cpu_rate, count, engine, choice->gpu_rate);
}

/* More threads than cores would not decode faster, but would take longer to stop. */
static int workers_at_work(const struct weir_shared *s)
{
    int workers = s->setup.config.num_workers > 0 ? s->setup.config.num_workers : 1;
    int most = s->setup.placement.cores < THREADS_MAX ? s->setup.placement.cores : THREADS_MAX;
    return workers < most ? workers : most;
}

static void try_both(struct weir_decoder_choice *choice, const struct weir_shared *s, int gpu)
{
    struct samples samples = {0};
    struct weir_err err = WEIR_ERR_NONE;
    enum weir_gpu_jpeg_engine engine = WEIR_GPU_JPEG_HARDWARE;
    int engines = 0, rc = weir_gpu_jpeg_check(gpu, engine, &engines, &err);
    if (rc < 0) {
        snprintf(choice->why, sizeof choice->why, "%.500s", err.text);
        return;
    }
    open_samples(&samples, s, engine);
    if (samples.n + samples.refused == 0) {
        snprintf(choice->why, sizeof choice->why, "none of the sampled frames could be read");
    } else if (samples.n <= samples.refused) {
        snprintf(choice->why, sizeof choice->why, "the GPU cannot decode %d of %d sampled frames (%s)", samples.refused,
                 samples.n + samples.refused, weir_jpeg_refusal_name(samples.refusal));
    } else if (gpu_rate(&samples, gpu, engine, &choice->gpu_rate, &err) < 0) {
        snprintf(choice->why, sizeof choice->why, "%.500s", err.text);
    } else {
        int workers = workers_at_work(s);
        choice->cpu_rate = cpu_rate(&samples, workers);
        double beside = (double)weir_gpu_decode_workers(workers, s->setup.placement.cores) / workers;
        judge(choice, beside, engines == 1 ? "JPEG engine decodes" : "JPEG engines decode", engines);
    }
    close_samples(&samples);
}

bool weir_has_jpegs(const struct weir_shared *shared)
{
    return jpeg_frames(shared) > 0;
}

void weir_choose_decoder(struct weir_decoder_choice *choice, const struct weir_shared *shared, int gpu)
{
    *choice =
        (struct weir_decoder_choice){.requested = choice->requested, .decoder = weir_decoder_at(WEIR_DECODE_ON_CPU)};
    if (gpu < 0)
        snprintf(choice->why, sizeof choice->why, "batches stay in host memory");
    else if (!weir_has_jpegs(shared))
        snprintf(choice->why, sizeof choice->why, "the dataset has no JPEGs");
    else if (shared->setup.config.on_warning == WEIR_ON_WARNING_FAIL)
        snprintf(choice->why, sizeof choice->why, "only the CPU reports flaws of frames (--on-warning fail)");
    else if (is_made_smaller(shared))
        snprintf(choice->why, sizeof choice->why,
                 "images are reduced to half their size or less, which the CPU does while decoding");
    else if (shared->setup.config.decode_cache_bytes > 0)
        snprintf(choice->why, sizeof choice->why, "the decode cache holds images decoded by the CPU");
    else
        try_both(choice, shared, gpu);
}
