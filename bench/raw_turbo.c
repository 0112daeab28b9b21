#include "bench/raw_turbo.h"
#include "decoders/jpeg_walk_priv.h"
#include "pipeline/samples/fetch.h"
#include "pipeline/samples/probe.h"
#include "weir/base.h"

#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include <turbojpeg.h>

static int load_frame(struct raw_frames *frames, struct weir_fetcher *fetcher, int episode, int camera, int t,
                      struct weir_err *err)
{
    const uint8_t *bytes;
    size_t length;
    int rc = weir_fetch_frame(fetcher, episode, camera, t, NULL, 0, &bytes, &length);
    if (rc < 0)
        return weir_err_set(err, rc, "episode %d camera %d t %d: %s", episode, camera, t, fetcher->reason);
    uint8_t *copy = malloc(length);
    if (!copy)
        return weir_err_set(err, -ENOMEM, "out of memory");
    memcpy(copy, bytes, length);
    frames->bytes[frames->n] = copy;
    frames->lengths[frames->n++] = length;
    return 0;
}

static int load_all(struct raw_frames *frames, struct weir_dataset *dataset, struct weir_fetcher *fetcher, int max,
                    struct weir_err *err)
{
    for (int e = 0; e < weir_dataset_episodes(dataset); e++)
        for (int t = 0; t < weir_dataset_steps(dataset, e); t++)
            for (int c = 0; c < weir_dataset_cameras(dataset); c++) {
                int rc = frames->n < max ? load_frame(frames, fetcher, e, c, t, err) : 0;
                if (rc < 0)
                    return rc;
            }
    return 0;
}

static int check_size(struct raw_frames *frames, struct weir_dataset *dataset, struct weir_err *err)
{
    struct weir_camera_probe probes[WEIR_CAMERAS_MAX];
    int rc = weir_probe_cameras(dataset, false, -1, probes, err);
    for (int c = 0; rc == 0 && c < weir_dataset_cameras(dataset); c++)
        if (weir_probe_kind(&probes[c]) != WEIR_FRAME_JPEG || probes[c].width != probes[0].width ||
            probes[c].height != probes[0].height)
            rc = weir_err_set(err, -EINVAL, "the benchmark needs a dataset of JPEGs that all have the same size");
    frames->width = probes[0].width;
    frames->height = probes[0].height;
    return rc;
}

int raw_frames_load(struct raw_frames *frames, const char *data, int max, struct weir_err *err)
{
    *frames = (struct raw_frames){.bytes = calloc((size_t)max, sizeof *frames->bytes),
                                  .lengths = calloc((size_t)max, sizeof *frames->lengths)};
    struct weir_dataset *dataset = NULL;
    struct weir_file_set *files = NULL;
    struct weir_fetcher fetcher = {0};
    struct weir_dataset_config config = {.size = sizeof config, .path = data};
    int rc = frames->bytes && frames->lengths ? 0 : weir_err_set(err, -ENOMEM, "out of memory");
    if (rc == 0)
        rc = weir_dataset_open(&dataset, &config, err);
    if (rc == 0)
        rc = check_size(frames, dataset, err);
    if (rc == 0 && weir_fetch_files(dataset, &files) < 0)
        rc = weir_err_set(err, -ENOMEM, "out of memory");
    if (rc == 0)
        rc = weir_fetcher_open(&fetcher, dataset, files, "pread", err);
    if (rc == 0)
        rc = load_all(frames, dataset, &fetcher, max, err);
    weir_fetcher_close(&fetcher);
    weir_file_set_close(&files);
    weir_dataset_close(&dataset);
    return rc;
}

void raw_frames_free(struct raw_frames *frames)
{
    for (int i = 0; i < frames->n; i++)
        free(frames->bytes[i]);
    free(frames->bytes);
    free(frames->lengths);
    *frames = (struct raw_frames){0};
}

/* ---- JPEG quality ---- */

/* Returns the 64 entries of quantisation table 0 in zigzag order, or NULL if no such table with 8-bit entries precedes
 * the scan. */
static const uint8_t *luminance_table(const uint8_t *bytes, size_t length)
{
    struct weir_jpeg_segment segment;
    for (size_t at = 2; weir_jpeg_next_segment(bytes, length, &at, &segment) && segment.marker != MARKER_SOS;) {
        const uint8_t *table = segment.body, *end = segment.body + segment.length;
        for (; segment.marker == MARKER_DQT && end - table >= 65 && *table < 16; table += 65)
            if (*table == 0)
                return table + 1;
    }
    return NULL;
}

/* Returns whether the table is that of ITU-T T.81, Annex K, scaled to this quality by libjpeg's jpeg_set_quality. */
static bool is_of_quality(const uint8_t *table, int quality)
{
    static const uint8_t annex_k[64] = {16, 11, 12,  14,  12,  10, 16, 14,  13,  14,  18,  17,  16, 19,  24,  40,
                                        26, 24, 22,  22,  24,  49, 35, 37,  29,  40,  58,  51,  61, 60,  57,  51,
                                        56, 55, 64,  72,  92,  78, 64, 68,  87,  69,  55,  56,  80, 109, 81,  87,
                                        95, 98, 103, 104, 103, 62, 77, 113, 121, 112, 100, 120, 92, 101, 103, 99};
    int percent = quality < 50 ? 5000 / quality : 200 - 2 * quality;
    for (int i = 0; i < 64; i++) {
        int step = (annex_k[i] * percent + 50) / 100;
        if (table[i] != (step < 1 ? 1 : step > 255 ? 255 : step))
            return false;
    }
    return true;
}

int raw_frames_quality(const struct raw_frames *frames)
{
    int quality = 100;
    for (int i = 0; i < frames->n; i++) {
        const uint8_t *table = luminance_table(frames->bytes[i], frames->lengths[i]);
        while (table && i == 0 && quality > 0 && !is_of_quality(table, quality))
            quality--;
        if (!table || quality == 0 || !is_of_quality(table, quality))
            return 0;
    }
    return frames->n ? quality : 0;
}

/* ---- decoding ---- */

struct crew {
    const struct raw_frames *frames;
    uint64_t until_ns, until_image; /* threads stop after both have been reached */
    _Atomic uint64_t next, done;
    _Atomic bool failed;
};

static bool is_over(const struct crew *crew)
{
    return crew->failed || (crew->next >= crew->until_image && weir_clock_monotonic_ns() >= crew->until_ns);
}

static void *decode_thread(void *user)
{
    struct crew *crew = user;
    const struct raw_frames *f = crew->frames;
    tjhandle handle = tjInitDecompress();
    uint8_t *image = malloc((size_t)f->width * (size_t)f->height * 3);
    uint64_t n = (uint64_t)f->n, done = 0;
    if (!handle || !image)
        crew->failed = true;
    while (!is_over(crew)) {
        uint64_t i = atomic_fetch_add(&crew->next, 1) * 7919 % n; /* 7919 is prime, which scatters the order */
        if (tjDecompress2(handle, f->bytes[i], f->lengths[i], image, f->width, 0, f->height, TJPF_RGB, 0) != 0)
            crew->failed = true;
        done++;
    }
    atomic_fetch_add(&crew->done, done);
    free(image);
    if (handle)
        tjDestroy(handle);
    return NULL;
}

double raw_turbo_rate(const struct raw_frames *frames, int threads, double seconds, int images_min, uint64_t *next)
{
    struct crew crew = {.frames = frames, .next = *next, .until_image = *next + (uint64_t)images_min};
    pthread_t *ids = calloc((size_t)threads, sizeof *ids);
    if (!ids)
        return -1;
    uint64_t start_ns = weir_clock_monotonic_ns();
    crew.until_ns = start_ns + (uint64_t)(seconds * 1e9);
    int started = 0;
    while (started < threads && pthread_create(&ids[started], NULL, decode_thread, &crew) == 0)
        started++;
    if (started < threads)
        crew.failed = true;
    for (int i = 0; i < started; i++)
        pthread_join(ids[i], NULL);
    double spent_s = (double)(weir_clock_monotonic_ns() - start_ns) / 1e9;
    free(ids);
    *next = crew.next;
    return crew.failed ? -1 : (double)crew.done / spent_s;
}
