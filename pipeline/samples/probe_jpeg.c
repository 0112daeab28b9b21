/* What a camera's frames would cost to decode if they were JPEGs. */
#include "datasets/synth/image_write.h"
#include "pipeline/samples/fetch.h"
#include "pipeline/samples/probe.h"

#include <errno.h>
#include <stdlib.h>
#include <time.h>

enum { FRAMES = 3, ROUNDS = 3, QUALITY = 95 };

struct jpeg_probe {
    struct weir_fetcher fetcher;
    struct weir_decoder *decoder;
    uint8_t *pixels;
    struct weir_bytes jpeg;
};

static double cpu_s(void)
{
    struct timespec now;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now); /* other threads may use the core meanwhile */
    return (double)now.tv_sec + (double)now.tv_nsec / 1e9;
}

/* Returns the least CPU time of several rounds, because the first one misses the caches; 0 if decoding fails. */
static double time_frame(struct jpeg_probe *p, enum weir_frame_kind kind, const uint8_t *bytes, size_t length,
                         int width, int height)
{
    double least_s = 0;
    struct weir_frame frame = {kind, bytes, length, width, height, NULL};
    if (weir_decode(p->decoder, &frame, p->pixels) < 0 ||
        weir_jpeg_write(p->pixels, width, height, QUALITY, NULL, &p->jpeg) < 0)
        return 0;
    frame = (struct weir_frame){WEIR_FRAME_JPEG, p->jpeg.data, p->jpeg.size, width, height, NULL};
    for (int i = 0; i < ROUNDS; i++) {
        double start_s = cpu_s();
        if (weir_decode(p->decoder, &frame, p->pixels) < 0)
            return 0;
        double s = cpu_s() - start_s;
        least_s = i == 0 || s < least_s ? s : least_s;
    }
    return least_s;
}

static double time_frames(struct jpeg_probe *p, struct weir_dataset *dataset, int camera, int width, int height)
{
    double sum_s = 0;
    int episodes = weir_dataset_episodes(dataset), done = 0;
    for (int i = 0; i < FRAMES; i++) {
        int episode = (int)((int64_t)i * episodes / FRAMES), t = weir_dataset_steps(dataset, episode) / 2;
        const uint8_t *bytes;
        size_t length;
        if (weir_fetch_frame(&p->fetcher, episode, camera, t, NULL, 0, &bytes, &length) < 0)
            continue;
        double s = time_frame(p, weir_dataset_kind(dataset, episode, camera), bytes, length, width, height);
        sum_s += s;
        done += s > 0;
    }
    return done > 0 ? sum_s / done : 0;
}

int weir_probe_jpeg_s(struct weir_dataset *dataset, int camera, const struct weir_camera_probe *probe, double *jpeg_s,
                      struct weir_err *err)
{
    struct jpeg_probe p = {0};
    struct weir_pixel_format format = {0};
    struct weir_file_set *files = NULL;
    *jpeg_s = 0;
    if (weir_dataset_kind(dataset, 0, camera) != WEIR_FRAME_VIDEO || probe->width <= 0)
        return 0;
    p.pixels = malloc(weir_frame_bytes(&format, WEIR_FRAME_VIDEO, probe->width, probe->height));
    int rc = p.pixels ? weir_fetch_files(dataset, &files) : -ENOMEM;
    if (rc < 0)
        weir_err_set(err, rc, "out of memory");
    if (rc == 0)
        rc = weir_fetcher_open(&p.fetcher, dataset, files, weir_file_set_engine(files), err);
    if (rc == 0)
        rc = weir_decoder_open(&p.decoder, weir_decoder_at(WEIR_DECODE_ON_CPU), &format, probe->width, err);
    if (rc == 0)
        *jpeg_s = time_frames(&p, dataset, camera, probe->width, probe->height);
    weir_decoder_close(&p.decoder);
    weir_fetcher_close(&p.fetcher);
    weir_file_set_close(&files);
    free(p.pixels);
    free(p.jpeg.data);
    return rc;
}
