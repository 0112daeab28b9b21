#include "pipeline/samples/probe.h"
#include "base/numbers.h"
#include "base/shortage.h"
#include "base/text.h"
#include "decoders/video/video.h"
#include "pipeline/samples/fetch.h"
#include "weir/base.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

enum { TRIES_MAX = 256 };

struct prober {
    struct weir_dataset *dataset;
    struct weir_fetcher fetcher;
    struct weir_decoder *decoder;
};

enum weir_frame_kind weir_probe_kind(const struct weir_camera_probe *probe)
{
    return probe->image.width > 0 ? probe->image.kind : probe->kind;
}

static int probe_frame(struct prober *p, int episode, int camera, int t, struct weir_camera_probe *probe,
                       struct weir_err *err)
{
    const uint8_t *bytes;
    size_t length;
    const char *reason = p->fetcher.reason;
    int rc = weir_fetch_frame(&p->fetcher, episode, camera, t, NULL, 0, &bytes, &length);
    if (rc == 0) {
        rc = weir_probe_image(p->decoder, probe->kind, bytes, length, &probe->image);
        reason = weir_decoder_reason(p->decoder);
    }
    if (rc == 0) {
        probe->width = probe->image.width;
        probe->height = probe->image.height;
        probe->episode = episode;
        probe->t = t;
        if (weir_frame_is_video(probe->kind)) {
            const struct weir_picture *picture = (const struct weir_picture *)bytes;
            probe->matrix = (int)picture->matrix;
            probe->is_full_range = picture->full_range;
        }
        return 0;
    }
    char name[768];
    const char *advice = weir_frame_advice(rc, reason);
    weir_frame_name(p->dataset, episode, camera, t, name, sizeof name);
    return weir_err_set(
        err, rc, "%s: %s%s%s%s%s", name, reason, *advice ? "; " : "", advice,
        weir_is_shortage(rc) || rc == -ENOTSUP ? "" : ", or skip bad frames with `weir run --on-error skip`",
        weir_is_shortage(rc) || weir_dataset_cameras(p->dataset) == 1 ? "" : "; or name the other cameras (--cameras)");
}

static int probe_camera(struct prober *p, int camera, bool tolerant, struct weir_camera_probe *probe,
                        struct weir_err *err)
{
    const struct weir_camera *info = weir_dataset_camera(p->dataset, camera);
    *probe = (struct weir_camera_probe){.kind = info->kind, .width = info->width, .height = info->height};
    if (!weir_frame_is_encoded(probe->kind))
        return 0;
    int tries = 0, rc = 0;
    struct weir_err first = WEIR_ERR_NONE;
    for (int episode = 0; episode < weir_dataset_episodes(p->dataset); episode++)
        for (int t = 0; t < weir_dataset_steps(p->dataset, episode) && tries < TRIES_MAX; t++, tries++) {
            struct weir_err why = WEIR_ERR_NONE;
            rc = probe_frame(p, episode, camera, t, probe, &why);
            if (rc == 0)
                return 0;
            if (!tolerant || weir_is_shortage(rc))
                return weir_err_set(err, rc, "%s", why.text);
            weir_err_set(&first, rc, "%s", why.text);
        }
    return weir_err_set(err, rc, "camera %s: none of its first %d frames can be read; the first error: %s", info->name,
                        tries, first.text);
}

/* Returns 1 if the frame's size differs from the camera's, 0 if it does not or is unknown, or negative on a resource
 * shortage. */
static int is_of_another_size(struct prober *p, int episode, int camera, struct weir_camera_probe *size,
                              struct weir_err *err)
{
    struct weir_camera_probe probe = {.kind = weir_dataset_kind(p->dataset, episode, camera)};
    if (!weir_frame_is_encoded(probe.kind))
        return 0; /* the dataset module compares the sizes of raw frames */
    struct weir_err why = WEIR_ERR_NONE;
    int rc = probe_frame(p, episode, camera, 0, &probe, &why);
    if (weir_is_shortage(rc))
        return weir_err_set(err, rc, "%s", why.text);
    if (rc < 0)
        return 0;
    bool other = size->width != 0 && (size->width != probe.width || size->height != probe.height);
    *size = probe;
    return other;
}

static int sizes_differ(struct prober *p, struct weir_err *err)
{
    struct weir_camera_probe sizes[WEIR_CAMERAS_MAX] = {0};
    const char *before = NULL;
    int differ = 0;
    for (int e = 0; e < weir_dataset_episodes(p->dataset); e++) {
        const char *path = weir_dataset_episode_path(p->dataset, e);
        for (int c = 0; c < weir_dataset_cameras(p->dataset) && path != before && differ == 0; c++)
            differ = is_of_another_size(p, e, c, &sizes[c], err);
        before = path;
    }
    return differ;
}

static int open_prober(struct prober *p, struct weir_file_set **files, struct weir_err *err)
{
    struct weir_pixel_format format = {0};
    int rc = weir_fetch_files(p->dataset, files);
    if (rc < 0)
        return weir_err_set(err, rc, "out of memory");
    rc = weir_fetcher_open(&p->fetcher, p->dataset, *files, weir_file_set_engine(*files), err);
    if (rc == 0)
        rc = weir_decoder_open(&p->decoder, weir_decoder_at(WEIR_DECODE_ON_CPU), &format, 1, err);
    const struct weir_frame_rules rules = weir_dataset_frame_rules(p->dataset);
    if (rc == 0)
        weir_decoder_set_rules(p->decoder, &rules);
    return rc;
}

static void close_prober(struct prober *p, struct weir_file_set **files)
{
    weir_decoder_close(&p->decoder);
    weir_fetcher_close(&p->fetcher);
    weir_file_set_close(files);
}

int weir_probe_sizes_differ(struct weir_dataset *dataset, struct weir_err *err)
{
    struct weir_file_set *files = NULL;
    struct prober p = {.dataset = dataset};
    int rc = open_prober(&p, &files, err);
    if (rc == 0)
        rc = sizes_differ(&p, err);
    close_prober(&p, &files);
    return rc;
}

int weir_probe_cameras(struct weir_dataset *dataset, bool tolerant, int gpu, struct weir_camera_probe *probes,
                       struct weir_err *err)
{
    struct weir_file_set *files = NULL;
    struct prober p = {.dataset = dataset};
    int rc = open_prober(&p, &files, err);
    p.fetcher.gpu = gpu;
    for (int c = 0; c < weir_dataset_cameras(dataset) && rc == 0; c++)
        rc = probe_camera(&p, c, tolerant, &probes[c], err);
    close_prober(&p, &files);
    return rc;
}

int weir_probe_camera(struct weir_dataset *dataset, int camera, struct weir_camera_probe *probe, struct weir_err *err)
{
    struct weir_file_set *files = NULL;
    struct prober p = {.dataset = dataset};
    struct weir_err why = WEIR_ERR_NONE;
    int rc = open_prober(&p, &files, err);
    if (rc == 0) {
        rc = probe_camera(&p, camera, true, probe, &why);
        rc = weir_is_shortage(rc) || rc == -ENOTSUP ? weir_err_set(err, rc, "%s", why.text) : 0;
    }
    close_prober(&p, &files);
    return rc;
}

void weir_probe_blame(const struct weir_dataset *dataset, const struct weir_camera_probe *probes, struct weir_err *err)
{
    enum { LARGE = 4096 * 4096 };
    int64_t most = LARGE;
    int largest = -1;
    for (int c = 0; c < weir_dataset_cameras(dataset); c++) {
        int64_t pixels = (int64_t)probes[c].width * probes[c].height;
        largest = pixels > most ? c : largest;
        most = pixels > most ? pixels : most;
    }
    if (largest < 0)
        return;
    const struct weir_camera_probe *probe = &probes[largest];
    char name[512];
    weir_frame_name(dataset, probe->episode, largest, probe->t, name, sizeof name);
    weir_err_prefix(err, "%s: the image is %dx%d", name, probe->width, probe->height);
}

bool weir_probe_unturned(const struct weir_dataset *dataset, const struct weir_camera_probe *probes, char *text,
                         size_t size)
{
    int n = 0, first = 0;
    for (int c = weir_dataset_cameras(dataset) - 1; c >= 0; c--)
        if (probes[c].image.turn > 1 && !weir_dataset_frame_rules(dataset).turns) {
            first = c;
            n++;
        }
    char others[48] = "";
    if (n > 1)
        snprintf(others, sizeof others, " (and those of %d other%s)", n - 1, n == 2 ? "" : "s");
    if (n > 0)
        snprintf(text, size,
                 "the first frame of camera %s%s has EXIF orientation %d, which programs that read this layout ignore, "
                 "so images stay as stored",
                 weir_dataset_camera(dataset, first)->name, others, probes[first].image.turn);
    if (n > 0)
        weir_text_printable(text);
    return n > 0;
}

/* ---- cost of fetching ---- */

static int time_fetches(struct weir_fetcher *fetcher, struct weir_dataset *dataset, int camera, int n, double *seconds)
{
    int episodes = weir_dataset_episodes(dataset), done = 0;
    for (int i = 0; i < n; i++) {
        int episode = (int)((int64_t)i * episodes / n), steps = weir_dataset_steps(dataset, episode);
        const uint8_t *bytes;
        size_t length;
        uint64_t start_ns = weir_clock_monotonic_ns();
        int t = (int)((int64_t)i * 7919 % steps);
        int rc = weir_fetch_frame(fetcher, episode, camera, t, NULL, 0, &bytes, &length);
        if (weir_is_shortage(rc))
            return rc;
        if (rc == 0)
            seconds[done++] = (double)(weir_clock_monotonic_ns() - start_ns) / 1e9;
    }
    return done;
}

int weir_probe_fetch_s(struct weir_dataset *dataset, int camera, int n, double *fetch_s, struct weir_err *err)
{
    enum { FRAMES_MAX = 64 };
    struct weir_file_set *files = NULL;
    struct weir_fetcher fetcher = {0};
    double seconds[FRAMES_MAX];
    *fetch_s = 0;
    int rc = weir_fetch_files(dataset, &files);
    if (rc < 0)
        return weir_err_set(err, rc, "out of memory for the dataset's files");
    rc = weir_fetcher_open(&fetcher, dataset, files, weir_file_set_engine(files), err);
    int done = rc < 0 ? rc : time_fetches(&fetcher, dataset, camera, n < FRAMES_MAX ? n : FRAMES_MAX, seconds);
    if (rc == 0 && done < 0)
        weir_err_set(err, done, "cannot fetch frames of camera %s: %s", weir_dataset_camera(dataset, camera)->name,
                     fetcher.reason);
    weir_fetcher_close(&fetcher);
    weir_file_set_close(&files);
    if (done > 0) {
        qsort(seconds, (size_t)done, sizeof *seconds, weir_compare_double);
        *fetch_s = seconds[done / 2];
    }
    return done < 0 ? done : 0;
}
