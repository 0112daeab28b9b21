#include "base/shortage.h"
#include "datasets/synth/synth_priv.h"

#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

static const uint64_t memory_most_bytes = 1536u << 20;
enum { THREADS_MAX = 256 };

struct slot {
    struct weir_synth_frame frame;
    bool done;
    int rc;
};

/* A ring: frame n uses slot n % n_slots. Threads take frame numbers in order as slots become free. */
struct weir_synth_frames {
    struct weir_synth_frames_config config;
    int64_t total;
    struct slot *slot;
    int n_slots;
    pthread_t thread[THREADS_MAX];
    int n_threads;
    pthread_mutex_t lock;
    pthread_cond_t slot_free, done; /* signalled when a slot becomes free, and when a frame is finished */
    int64_t taken, returned;        /* protected by lock, like the slots' `done` */
    bool stop;
};

/* Buffers of one thread. */
struct bench {
    uint8_t *rgb;
    uint16_t *depth_mm;
};

static uint64_t bytes_per_thread(const struct weir_synth_frames_config *config)
{
    uint64_t pixels = (uint64_t)config->width * (uint64_t)config->height;
    /* an image and its depth in a thread's buffers, and the same in two slots */
    return 3 * pixels * (3 + 2);
}

static void bench_close(struct bench *bench)
{
    free(bench->rgb);
    free(bench->depth_mm);
}

static int bench_open(struct bench *bench, const struct weir_synth_frames_config *config)
{
    size_t pixels = (size_t)config->width * (size_t)config->height;
    *bench = (struct bench){.rgb = malloc(pixels * 3), .depth_mm = malloc(pixels * sizeof *bench->depth_mm)};
    if (bench->rgb && bench->depth_mm)
        return 0;
    bench_close(bench);
    return -ENOMEM;
}

static int keep_raw(struct weir_bytes *out, const void *pixels, size_t bytes)
{
    if (out->capacity < bytes) {
        free(out->data);
        out->data = malloc(bytes);
        out->capacity = out->data ? bytes : 0;
    }
    if (!out->data)
        return -ENOMEM;
    memcpy(out->data, pixels, bytes);
    out->size = bytes;
    return 0;
}

static int make(const struct weir_synth_frames_config *config, struct bench *bench, int64_t number,
                struct weir_synth_frame *frame)
{
    int step = (int)(number % config->steps);
    int camera = (int)(number / config->steps % config->cameras);
    int episode = (int)(number / config->steps / config->cameras);
    weir_scene_render(config->scene, episode, step, camera, bench->rgb, bench->depth_mm);
    size_t pixels = (size_t)config->width * (size_t)config->height;
    int rc = config->jpeg ? weir_jpeg_write(bench->rgb, config->width, config->height, config->quality, config->comment,
                                            &frame->image)
                          : keep_raw(&frame->image, bench->rgb, 3 * pixels);
    if (rc == 0 && config->depth == WEIR_DEPTH_PNG)
        rc = weir_png_write_grey16(bench->depth_mm, config->width, config->height, &frame->depth);
    if (rc == 0 && config->depth == WEIR_DEPTH_RAW)
        rc = keep_raw(&frame->depth, bench->depth_mm, pixels * sizeof *bench->depth_mm);
    return rc;
}

static void *work(void *arg)
{
    struct weir_synth_frames *frames = arg;
    struct bench bench;
    int bench_rc = bench_open(&bench, &frames->config);
    pthread_mutex_lock(&frames->lock);
    for (;;) {
        /* The caller still uses the slot of the frame that was returned last. */
        while (!frames->stop && frames->taken < frames->total &&
               frames->taken >= frames->returned - 1 + frames->n_slots)
            pthread_cond_wait(&frames->slot_free, &frames->lock);
        if (frames->stop || frames->taken >= frames->total)
            break;
        int64_t number = frames->taken++;
        struct slot *slot = &frames->slot[number % frames->n_slots];
        pthread_mutex_unlock(&frames->lock);
        int rc = bench_rc < 0 ? bench_rc : make(&frames->config, &bench, number, &slot->frame);
        pthread_mutex_lock(&frames->lock);
        slot->rc = rc;
        slot->done = true;
        pthread_cond_signal(&frames->done);
    }
    pthread_mutex_unlock(&frames->lock);
    if (bench_rc == 0)
        bench_close(&bench);
    return NULL;
}

static int start_threads(struct weir_synth_frames *frames, int wanted)
{
    int rc = 0;
    while (frames->n_threads < wanted && rc == 0) {
        rc = pthread_create(&frames->thread[frames->n_threads], NULL, work, frames);
        if (rc == 0)
            pthread_setname_np(frames->thread[frames->n_threads++], "weir-synth");
    }
    return frames->n_threads > 0 ? 0 : -rc;
}

int weir_synth_frames_open(struct weir_synth_frames **out, const struct weir_synth_frames_config *config,
                           struct weir_err *err)
{
    *out = NULL;
    uint64_t most = memory_most_bytes / bytes_per_thread(config);
    int threads = config->threads > THREADS_MAX ? THREADS_MAX : config->threads;
    if ((uint64_t)threads > most)
        threads = most < 1 ? 1 : (int)most;
    struct weir_synth_frames *frames = calloc(1, sizeof *frames);
    if (!frames)
        return weir_no_memory(err);
    frames->config = *config;
    frames->total = (int64_t)config->episodes * config->cameras * config->steps;
    frames->n_slots = 2 * threads + 1;
    pthread_mutex_init(&frames->lock, NULL);
    pthread_cond_init(&frames->slot_free, NULL);
    pthread_cond_init(&frames->done, NULL);
    frames->slot = calloc((size_t)frames->n_slots, sizeof *frames->slot);
    int rc = frames->slot ? start_threads(frames, threads) : -ENOMEM;
    if (rc < 0) {
        weir_synth_frames_close(&frames);
        return weir_err_set(err, rc, "cannot start threads: %s", strerror(-rc));
    }
    *out = frames;
    return 0;
}

int weir_synth_frames_next(struct weir_synth_frames *frames, const struct weir_synth_frame **frame)
{
    pthread_mutex_lock(&frames->lock);
    struct slot *slot = &frames->slot[frames->returned % frames->n_slots];
    while (!slot->done)
        pthread_cond_wait(&frames->done, &frames->lock);
    slot->done = false;
    frames->returned++;
    pthread_cond_broadcast(&frames->slot_free);
    pthread_mutex_unlock(&frames->lock);
    *frame = &slot->frame;
    return slot->rc;
}

void weir_synth_frames_close(struct weir_synth_frames **out)
{
    struct weir_synth_frames *frames = *out;
    if (!frames)
        return;
    pthread_mutex_lock(&frames->lock);
    frames->stop = true;
    pthread_cond_broadcast(&frames->slot_free);
    pthread_mutex_unlock(&frames->lock);
    for (int i = 0; i < frames->n_threads; i++)
        pthread_join(frames->thread[i], NULL);
    for (int i = 0; frames->slot && i < frames->n_slots; i++) {
        free(frames->slot[i].frame.image.data);
        free(frames->slot[i].frame.depth.data);
    }
    free(frames->slot);
    pthread_mutex_destroy(&frames->lock);
    pthread_cond_destroy(&frames->slot_free);
    pthread_cond_destroy(&frames->done);
    free(frames);
    *out = NULL;
}
