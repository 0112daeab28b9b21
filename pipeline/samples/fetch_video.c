/* Frames of videos. The coded samples from the block's sync sample to the last wanted frame are read in one extent,
 * unless other data lies between them, and decoded once for all wanted frames of the block. */
#include "base/threads.h"
#include "datasets/open_dataset.h"
#include "decoders/video/video.h"
#include "pipeline/samples/fetch_priv.h"
#include "weir/recorder.h"
#include "weir/stages.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct weir_video_fetch {
    struct weir_video_decoder *decoder;
    struct weir_packet *packets;
    size_t n_packets;
    int64_t *times; /* presentation time of each wanted frame */
    size_t n_times;
    struct weir_picture picture; /* the last result of weir_fetch_video_frame */
};

/* Wanted frames of one call. */
struct wanted {
    struct weir_fetcher *fetcher;
    int n, left;
    bool is_first;         /* no picture has been decoded */
    uint64_t ticks_before; /* of the decoding stage, before the first picture */
    uint32_t group_pictures;
    weir_fetched_picture_fn *fetched;
    void *user;
};

static int out_of_memory(struct weir_fetcher *fetcher)
{
    snprintf(fetcher->reason, sizeof fetcher->reason, "out of memory");
    return -ENOMEM;
}

static int open_video(struct weir_fetcher *fetcher)
{
    if (fetcher->video)
        return 0;
    fetcher->video = calloc(1, sizeof *fetcher->video);
    if (!fetcher->video || weir_video_open(&fetcher->video->decoder, fetcher->gpu) < 0) {
        weir_fetch_video_close(fetcher);
        return out_of_memory(fetcher);
    }
    return 0;
}

void weir_fetch_video_close(struct weir_fetcher *fetcher)
{
    struct weir_video_fetch *video = fetcher->video;
    if (!video)
        return;
    weir_video_close(&video->decoder);
    free(video->packets);
    free(video->times);
    free(video);
    fetcher->video = NULL;
}

/* Makes room for n elements; the contents are lost. */
static int reserve(void *array, size_t *capacity, size_t n, size_t size)
{
    void *old, *more;
    if (n <= *capacity)
        return 0;
    memcpy(&old, array, sizeof old);
    free(old);
    *capacity = 0;
    more = calloc(n, size);
    memcpy(array, &more, sizeof more);
    if (!more)
        return -ENOMEM;
    *capacity = n;
    return 0;
}

/* ---- reading ---- */

struct weir_video_run weir_video_run_from(const struct weir_video_track *track, uint32_t first, uint32_t last)
{
    struct weir_video_sample sample;
    weir_video_track_sample(track, first, &sample);
    struct weir_video_run run = {first, 1, sample.offset, sample.bytes};
    for (uint32_t i = first + 1; i <= last; i++, run.n++) {
        weir_video_track_sample(track, i, &sample);
        if (sample.offset != run.offset + run.bytes)
            break;
        run.bytes += sample.bytes;
    }
    return run;
}

static void add_packets(struct weir_video_fetch *video, const struct weir_video_track *track,
                        const struct weir_video_run *run, const uint8_t *data, uint32_t at)
{
    for (uint32_t i = 0; i < run->n; i++) {
        struct weir_video_sample sample;
        weir_video_track_sample(track, run->first + i, &sample);
        video->packets[at + i] = (struct weir_packet){data + (sample.offset - run->offset), sample.bytes, sample.time};
    }
}

/* Reads a run to the buffer's end. copied: number of bytes of earlier runs, which must stay valid. */
static int read_run(struct weir_fetcher *fetcher, const struct weir_video_run *run, size_t copied, bool only,
                    const uint8_t **data)
{
    uint8_t *to = fetcher->buffer + copied;
    int rc = weir_read(fetcher->reader, fetcher->file, run->offset, (size_t)run->bytes, to, data);
    if (rc < 0) {
        snprintf(fetcher->reason, sizeof fetcher->reason, "%s", weir_reader_reason(fetcher->reader, rc));
        return rc;
    }
    if (!only && *data != to) { /* the engine's memory is valid until the next read */
        memcpy(to, *data, (size_t)run->bytes);
        *data = to;
    }
    return 0;
}

/* Reads samples first .. last and describes them in video->packets. */
static int read_samples(struct weir_fetcher *fetcher, const struct weir_video_track *track, uint32_t first,
                        uint32_t last)
{
    struct weir_video_fetch *video = fetcher->video;
    uint64_t bytes = 0;
    for (uint32_t at = first; at <= last;) {
        struct weir_video_run run = weir_video_run_from(track, at, last);
        bytes += run.bytes;
        at += run.n;
    }
    if (reserve(&video->packets, &video->n_packets, (size_t)last - first + 1, sizeof *video->packets) < 0)
        return out_of_memory(fetcher);
    int rc = weir_fetch_grow_buffer(fetcher, bytes < SIZE_MAX ? (size_t)bytes : SIZE_MAX);
    size_t copied = 0;
    for (uint32_t at = first; at <= last && rc == 0;) {
        struct weir_video_run run = weir_video_run_from(track, at, last);
        const uint8_t *data = NULL;
        rc = read_run(fetcher, &run, copied, run.n == last - first + 1, &data);
        if (rc == 0)
            add_packets(video, track, &run, data, at - first);
        copied += (size_t)run.bytes;
        at += run.n;
    }
    return rc;
}

/* ---- decoding ---- */

static uint64_t decoding_ticks(void)
{
    return weir_thread_self ? weir_stage_ticks_here(WEIR_STAGE_VIDEO_DECODE) : 0;
}

static void count_picture(struct wanted *wanted, bool is_first, bool from_gpu)
{
    struct weir_fetcher *fetcher = wanted->fetcher;
    weir_counter_add(&fetcher->pictures.decoded, 1);
    if (!is_first)
        return;
    weir_counter_add(&fetcher->pictures.groups, 1);
    weir_counter_add(&fetcher->pictures.gpu_groups, from_gpu);
    weir_counter_add(&fetcher->pictures.group_pictures, wanted->group_pictures);
    weir_counter_add(&fetcher->pictures.key_ticks, decoding_ticks() - wanted->ticks_before);
}

static int take_picture(void *user, int64_t time, const struct weir_picture *picture)
{
    enum { ALL_TAKEN = 1 };
    struct wanted *wanted = user;
    const int64_t *times = wanted->fetcher->video->times;
    bool is_used = false;
    count_picture(wanted, wanted->is_first, picture->from_gpu);
    wanted->is_first = false;
    for (int i = 0; i < wanted->n; i++) {
        if (times[i] != time)
            continue;
        if (!is_used)
            weir_counter_add(&wanted->fetcher->pictures.used, 1);
        is_used = true;
        int rc = wanted->fetched(wanted->user, i, picture);
        if (rc != 0)
            return rc;
        wanted->left--;
    }
    return wanted->left > 0 ? 0 : ALL_TAKEN;
}

static uint32_t group_pictures(const struct weir_video_track *track, uint32_t block)
{
    return weir_video_track_block_first(track, block + 1) - weir_video_track_block_first(track, block);
}

/* Returns the last sample, in decoding order, that the wanted frames need, and stores their presentation times. */
static uint32_t last_sample(const struct weir_fetcher *fetcher, const struct weir_video_track *track, int episode,
                            int camera, const int *ts, int n)
{
    uint32_t last = 0;
    for (int i = 0; i < n; i++) {
        struct weir_video_sample sample;
        uint32_t number =
            weir_video_track_at_rank(track, weir_dataset_video_rank(fetcher->dataset, episode, camera, ts[i]));
        weir_video_track_sample(track, number, &sample);
        fetcher->video->times[i] = sample.time;
        last = number > last ? number : last;
    }
    return last;
}

int weir_fetch_video(struct weir_fetcher *fetcher, int episode, int camera, const int *ts, int n,
                     weir_fetched_picture_fn *fetched, void *user)
{
    const struct weir_video_track *track = weir_dataset_video(fetcher->dataset, episode, camera, &fetcher->file);
    const struct weir_video_stream *stream = weir_video_track_stream(track);
    int rc = open_video(fetcher);
    if (rc == 0 && reserve(&fetcher->video->times, &fetcher->video->n_times, (size_t)n, sizeof(int64_t)) < 0)
        rc = out_of_memory(fetcher);
    if (rc < 0)
        return rc;
    uint32_t rank = weir_dataset_video_rank(fetcher->dataset, episode, camera, ts[0]);
    uint32_t block = weir_video_track_block_of(track, rank), first = weir_video_track_block_sync(track, block);
    uint32_t last = last_sample(fetcher, track, episode, camera, ts, n);
    if (last < first) {
        snprintf(fetcher->reason, sizeof fetcher->reason, "no sync sample precedes this frame in the video");
        return -EBADMSG;
    }
    rc = read_samples(fetcher, track, first, last);
    if (rc < 0 || !fetched)
        return rc;
    struct wanted wanted = {fetcher, n, n, true, decoding_ticks(), group_pictures(track, block), fetched, user};
    struct weir_video_format format = {stream->codec, stream->config, stream->config_bytes, stream->matrix,
                                       stream->full_range};
    rc = weir_video_decode(fetcher->video->decoder, &format, fetcher->video->packets, (int)(last - first + 1),
                           take_picture, &wanted, fetcher->reason);
    if (rc < 0 || wanted.left == 0)
        return rc < 0 ? rc : 0;
    snprintf(fetcher->reason, sizeof fetcher->reason, "the decoder returns no picture for this frame");
    return -EBADMSG;
}

void weir_fetch_add_pictures(const struct weir_fetcher *fetcher, struct weir_video_counts *counts)
{
    uint64_t key_ticks = atomic_load_explicit(&fetcher->pictures.key_ticks, memory_order_relaxed);
    counts->groups += atomic_load_explicit(&fetcher->pictures.groups, memory_order_relaxed);
    counts->group_pictures += atomic_load_explicit(&fetcher->pictures.group_pictures, memory_order_relaxed);
    counts->decoded += atomic_load_explicit(&fetcher->pictures.decoded, memory_order_relaxed);
    counts->used += atomic_load_explicit(&fetcher->pictures.used, memory_order_relaxed);
    counts->gpu_groups += atomic_load_explicit(&fetcher->pictures.gpu_groups, memory_order_relaxed);
    counts->key_s += (double)weir_clock_to_ns(key_ticks) / 1e9;
}

/* ---- one frame ---- */

enum { PLANES = 3 };

static size_t plane_rows(const struct weir_picture *picture, int plane)
{
    if (plane > 0 && picture->chroma == WEIR_CHROMA_400)
        return 0;
    return (size_t)(plane > 0 && picture->chroma == WEIR_CHROMA_420 ? (picture->height + 1) / 2 : picture->height);
}

static size_t plane_row_bytes(const struct weir_picture *picture, int plane)
{
    bool half = plane > 0 && picture->chroma != WEIR_CHROMA_444;
    size_t width = (size_t)(half ? (picture->width + 1) / 2 : picture->width);
    return width * (picture->bit_depth > 8 ? 2 : 1);
}

static void copy_plane(struct weir_fetcher *fetcher, struct weir_picture *copy, int plane, size_t *used)
{
    size_t rows = plane_rows(copy, plane), bytes = plane_row_bytes(copy, plane);
    for (size_t y = 0; y < rows; y++)
        memcpy(fetcher->row + *used + y * bytes, copy->planes[plane] + (ptrdiff_t)y * copy->strides[plane], bytes);
    copy->planes[plane] = fetcher->row + *used;
    copy->strides[plane] = (ptrdiff_t)bytes;
    *used += rows * bytes;
}

/* Copies the picture, because the decoder reuses its memory. */
static int keep_picture(void *user, int i, const struct weir_picture *picture)
{
    struct weir_fetcher *fetcher = user;
    struct weir_picture copy = *picture;
    size_t bytes = 0, used = 0;
    (void)i;
    for (int p = 0; p < PLANES; p++)
        bytes += plane_rows(picture, p) * plane_row_bytes(picture, p);
    int rc = weir_fetch_grow_row(fetcher, bytes);
    for (int p = 0; p < PLANES && rc == 0; p++)
        copy_plane(fetcher, &copy, p, &used);
    fetcher->video->picture = copy;
    return rc;
}

int weir_fetch_video_frame(struct weir_fetcher *fetcher, int episode, int camera, int t, const uint8_t **bytes,
                           size_t *length)
{
    int rc = weir_fetch_video(fetcher, episode, camera, &t, 1, keep_picture, fetcher);
    if (rc < 0)
        return rc;
    *bytes = (const uint8_t *)&fetcher->video->picture;
    *length = sizeof fetcher->video->picture;
    return 0;
}

/* ---- frames in order ---- */

struct sequence {
    struct weir_fetcher *fetcher;
    const int *ts;
    int done, result;
    weir_fetched_fn *fetched;
    void *user;
};

static int next_picture(void *user, int i, const struct weir_picture *picture)
{
    struct sequence *sequence = user;
    sequence->done = i + 1;
    sequence->result =
        sequence->fetched(sequence->user, sequence->ts[i], 0, "", (const uint8_t *)picture, sizeof *picture);
    return sequence->result;
}

/* Calls `fetched` for n frames of one block, whose numbers increase. */
int weir_fetch_video_frames(struct weir_fetcher *fetcher, int episode, int camera, const int *ts, int n,
                            weir_fetched_fn *fetched, void *user)
{
    struct sequence sequence = {fetcher, ts, 0, 0, fetched, user};
    int rc = weir_fetch_video(fetcher, episode, camera, ts, n, next_picture, &sequence);
    while (rc < 0 && sequence.result == 0 && sequence.done < n)
        sequence.result = fetched(user, ts[sequence.done++], rc, fetcher->reason, NULL, 0);
    return sequence.result;
}
