/* Reads the tables that describe the samples of a track: ISO/IEC 14496-12, 8.6 and 8.7. Every count is compared with
 * the bytes of its box, or of the file, before memory is allocated for it. */
#include "base/claims.h"
#include "base/grow.h"
#include "base/shortage.h"
#include "datasets/video/mp4_priv.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

enum { SAMPLES_MAX = INT32_MAX, SAMPLE_MEMORY = 64 /* bytes for a sample while its tables are read, at most */ };

void weir_mp4_shrink(void *array, size_t bytes)
{
    void *old, *moved;
    memcpy(&old, array, sizeof old);
    moved = realloc(old, bytes);
    if (moved)
        memcpy(array, &moved, sizeof moved);
}

/* A hole in a sparse file, or one size of all samples, describes any number of samples in a few bytes. */
int weir_mp4_claim(const struct weir_mp4_reader *r, uint64_t bytes, const char *what)
{
    if (weir_claim_fits(bytes, 0))
        return 0;
    uint64_t stored = weir_source_stored(r->source, r->file_bytes);
    return weir_claim_fits(bytes, stored)
               ? 0
               : weir_err_set(r->err, -ENODATA,
                              "the file stores %" PRIu64 " of its %" PRIu64 " bytes, too few for %s; copy it again",
                              stored, r->file_bytes, what);
}

/* ---- sizes ---- */

static int set_samples(struct weir_mp4_reader *r, uint32_t n)
{
    struct weir_video_track *track = r->track;
    if (n == 0)
        return weir_err_set(r->err, -ENODATA, "the video has no samples; record it again");
    if (n > SAMPLES_MAX)
        return weir_err_set(r->err, -ENOTSUP, "the video has %" PRIu32 " samples, and the limit is %d; split it", n,
                            SAMPLES_MAX);
    if (track->equal_bytes && n > r->file_bytes / track->equal_bytes)
        return weir_err_set(r->err, -ENODATA,
                            "the video is truncated: its %" PRIu32 " samples of %" PRIu32 " bytes do not fit into the "
                            "file; copy it again",
                            n, track->equal_bytes);
    int rc = weir_mp4_claim(r, (uint64_t)n * SAMPLE_MEMORY, "its samples");
    if (rc < 0)
        return rc;
    track->n = n;
    if (track->equal_bytes)
        return 0;
    track->sizes = malloc((size_t)n * sizeof *track->sizes);
    return track->sizes ? 0 : weir_no_memory(r->err);
}

static int read_stsz(struct weir_mp4_reader *r)
{
    if (r->stsz.n < WEIR_MP4_FULL + 8)
        return weir_mp4_damaged(r->err, "stsz", "is too short");
    const uint8_t *sizes = r->stsz.data + WEIR_MP4_FULL + 8;
    uint32_t n = weir_be(r->stsz.data + WEIR_MP4_FULL + 4, 4);
    r->track->equal_bytes = weir_be(r->stsz.data + WEIR_MP4_FULL, 4);
    if (r->track->equal_bytes == 0 && n > (r->stsz.n - WEIR_MP4_FULL - 8) / 4)
        return weir_mp4_damaged(r->err, "stsz", "contains fewer sizes than it announces");
    int rc = set_samples(r, n);
    for (uint32_t i = 0; rc == 0 && r->track->sizes && i < n; i++)
        r->track->sizes[i] = weir_be(sizes + 4 * (size_t)i, 4);
    return rc;
}

static uint32_t compact_size(const uint8_t *sizes, unsigned bits, uint32_t i)
{
    if (bits == 16)
        return weir_be(sizes + 2 * (size_t)i, 2);
    return bits == 8 ? sizes[i] : sizes[i / 2] >> (i % 2 ? 0 : 4) & 15;
}

static int read_stz2(struct weir_mp4_reader *r)
{
    if (r->stz2.n < WEIR_MP4_FULL + 8)
        return weir_mp4_damaged(r->err, "stz2", "is too short");
    const uint8_t *sizes = r->stz2.data + WEIR_MP4_FULL + 8;
    unsigned bits = r->stz2.data[WEIR_MP4_FULL + 3];
    uint32_t n = weir_be(r->stz2.data + WEIR_MP4_FULL + 4, 4);
    if (bits != 4 && bits != 8 && bits != 16)
        return weir_mp4_damaged(r->err, "stz2", "its sizes do not have 4, 8 or 16 bits");
    if (((uint64_t)n * bits + 7) / 8 > r->stz2.n - WEIR_MP4_FULL - 8)
        return weir_mp4_damaged(r->err, "stz2", "contains fewer sizes than it announces");
    int rc = set_samples(r, n);
    for (uint32_t i = 0; rc == 0 && i < n; i++)
        r->track->sizes[i] = compact_size(sizes, bits, i);
    return rc;
}

void weir_mp4_sum(const struct weir_mp4_reader *r, uint64_t *bytes, uint64_t *duration)
{
    enum { HEAD = WEIR_MP4_FULL + 4 };
    uint32_t n = 0, equal = r->stsz.n >= HEAD ? weir_be(r->stsz.data + WEIR_MP4_FULL, 4) : 0;
    const uint8_t *at = weir_mp4_entries(&r->stsz, HEAD, equal ? 0 : 4, &n);
    *bytes = at ? (uint64_t)n * equal : 0;
    for (uint32_t i = 0; at && !equal && i < n; i++, at += 4)
        *bytes += weir_be(at, 4);
    *duration = 0;
    at = weir_mp4_entries(&r->stts, WEIR_MP4_FULL, 8, &n);
    for (uint32_t i = 0; at && i < n; i++, at += 8)
        *duration += (uint64_t)weir_be(at, 4) * weir_be(at + 4, 4);
}

/* ---- offsets ---- */

/* The chunks of a track. An entry of stsc gives the number of samples of chunks from its first number (the first chunk
 * has number 1) up to the next entry. */
struct chunks {
    const uint8_t *entries, *offsets;
    uint32_t n_entries, n;
    size_t offset_bytes;
    uint32_t next, samples; /* next entry; samples per chunk before it */
};

static int open_chunks(const struct weir_mp4_reader *r, struct chunks *chunks)
{
    const struct weir_mp4_box *offsets = r->co64.data ? &r->co64 : &r->stco;
    *chunks = (struct chunks){.offset_bytes = r->co64.data ? 8 : 4};
    chunks->entries = weir_mp4_entries(&r->stsc, WEIR_MP4_FULL, 12, &chunks->n_entries);
    chunks->offsets = weir_mp4_entries(offsets, WEIR_MP4_FULL, chunks->offset_bytes, &chunks->n);
    if (!chunks->entries)
        return weir_mp4_damaged(r->err, "stsc", "contains fewer entries than it announces");
    if (!chunks->offsets)
        return weir_mp4_damaged(r->err, r->co64.data ? "co64" : "stco", "contains fewer offsets than it announces");
    uint32_t previous = 0;
    for (uint32_t i = 0; i < chunks->n_entries; i++) {
        uint32_t first = weir_be(chunks->entries + 12 * (size_t)i, 4);
        if (first <= previous || (i == 0 && first != 1))
            return weir_mp4_damaged(r->err, "stsc", "its chunk numbers do not start at 1 and increase");
        previous = first;
    }
    return 0;
}

static uint32_t samples_in(struct chunks *chunks, uint32_t chunk)
{
    const uint8_t *entry = chunks->entries + 12 * (size_t)chunks->next;
    if (chunks->next < chunks->n_entries && weir_be(entry, 4) == chunk + 1) {
        chunks->samples = weir_be(entry + 4, 4);
        chunks->next++;
    }
    return chunks->samples;
}

static int truncated(const struct weir_mp4_reader *r, uint32_t sample, uint64_t offset)
{
    const struct weir_video_track *track = r->track;
    uint64_t before = weir_video_bytes_before(track, sample);
    while (sample + 1 < track->n && offset <= r->file_bytes &&
           weir_video_bytes_before(track, sample + 1) - before <= r->file_bytes - offset)
        sample++;
    return weir_err_set(r->err, -ENODATA,
                        "the video is truncated: sample %" PRIu32 " of %" PRIu32 " ends after the end of the file; "
                        "copy it again",
                        sample, track->n);
}

/* Lists the chunks as runs. Chunks that are adjacent in the file are one run. */
static int read_chunks(struct weir_mp4_reader *r)
{
    struct weir_video_track *track = r->track;
    struct chunks chunks;
    uint32_t sample = 0;
    uint64_t end = 0, before = 0; /* end of the last run in the file; bytes of the samples so far */
    int rc = open_chunks(r, &chunks);
    for (uint32_t chunk = 0; rc == 0 && chunk < chunks.n && sample < track->n; chunk++) {
        const uint8_t *at = chunks.offsets + chunk * chunks.offset_bytes;
        uint64_t offset = chunks.offset_bytes == 8 ? weir_be(at, 8) : weir_be(at, 4);
        uint32_t samples = samples_in(&chunks, chunk), left = track->n - sample;
        samples = samples < left ? samples : left;
        uint64_t bytes = weir_video_bytes_before(track, sample + samples) - before;
        if (samples == 0)
            continue;
        if (offset > r->file_bytes || bytes > r->file_bytes - offset)
            return truncated(r, sample, offset);
        if (track->n_runs == 0 || offset != end) {
            if (!weir_grow(&track->runs, track->n_runs, sizeof *track->runs))
                return weir_no_memory(r->err);
            track->runs[track->n_runs++] = (struct weir_video_run){sample, offset};
        }
        end = offset + bytes;
        before += bytes;
        sample += samples;
    }
    if (rc == 0 && sample < track->n)
        return weir_mp4_damaged(r->err, "stsc", "describes fewer samples than the video has");
    if (rc == 0)
        weir_mp4_shrink(&track->runs, track->n_runs * sizeof *track->runs);
    return rc;
}

/* ---- times ---- */

static int read_stts(struct weir_mp4_reader *r)
{
    struct weir_video_track *track = r->track;
    uint32_t n, first = 0;
    int64_t time = 0; /* at most 2^31 samples, each of at most 2^31 units */
    const uint8_t *at = weir_mp4_entries(&r->stts, WEIR_MP4_FULL, 8, &n);
    if (!at)
        return weir_mp4_damaged(r->err, "stts", "contains fewer entries than it announces");
    for (uint32_t i = 0; i < n && first < track->n; i++, at += 8) {
        uint32_t samples = weir_be(at, 4), delta = weir_be(at + 4, 4), left = track->n - first;
        samples = samples < left ? samples : left;
        if (samples == 0)
            continue;
        if (delta > INT32_MAX && left > 1)
            return weir_mp4_damaged(r->err, "stts", "contains a negative duration");
        if (track->n_times == 0 || track->times[track->n_times - 1].delta != delta) {
            if (!weir_grow(&track->times, track->n_times, sizeof *track->times))
                return weir_no_memory(r->err);
            track->times[track->n_times++] = (struct weir_video_times){first, delta, time};
        }
        time += (int64_t)samples * delta;
        first += samples;
    }
    if (first < track->n)
        return weir_mp4_damaged(r->err, "stts", "describes fewer samples than the video has");
    weir_mp4_shrink(&track->times, track->n_times * sizeof *track->times);
    return 0;
}

/* Reads version 0 as signed too, because writers store negative shifts in it. */
static int read_ctts(struct weir_mp4_reader *r)
{
    struct weir_video_track *track = r->track;
    uint32_t n, first = 0;
    if (!r->ctts.data)
        return 0;
    const uint8_t *at = weir_mp4_entries(&r->ctts, WEIR_MP4_FULL, 8, &n);
    if (!at)
        return weir_mp4_damaged(r->err, "ctts", "contains fewer entries than it announces");
    for (uint32_t i = 0; i < n && first < track->n; i++, at += 8) {
        uint32_t samples = weir_be(at, 4), left = track->n - first;
        int32_t shift = (int32_t)weir_be(at + 4, 4);
        if (samples == 0)
            continue;
        if (track->n_shifts == 0 || track->shifts[track->n_shifts - 1].shift != shift) {
            if (!weir_grow(&track->shifts, track->n_shifts, sizeof *track->shifts))
                return weir_no_memory(r->err);
            track->shifts[track->n_shifts++] = (struct weir_video_shift){first, shift};
        }
        first += samples < left ? samples : left;
    }
    if (first < track->n)
        return weir_mp4_damaged(r->err, "ctts", "describes fewer samples than the video has");
    weir_mp4_shrink(&track->shifts, track->n_shifts * sizeof *track->shifts);
    return 0;
}

static int read_stss(struct weir_mp4_reader *r)
{
    struct weir_video_track *track = r->track;
    uint32_t n;
    if (!r->stss.data)
        return 0;
    const uint8_t *at = weir_mp4_entries(&r->stss, WEIR_MP4_FULL, 4, &n);
    if (!at)
        return weir_mp4_damaged(r->err, "stss", "contains fewer entries than it announces");
    if (weir_video_set_open(&track->syncs, track->n) < 0)
        return weir_no_memory(r->err);
    for (uint32_t i = 0; i < n; i++, at += 4) {
        uint32_t number = weir_be(at, 4); /* the first sample has number 1 */
        if (number == 0 || number > track->n)
            return weir_mp4_damaged(r->err, "stss", "contains a sample that does not exist");
        weir_video_set_add(&track->syncs, number - 1);
    }
    return 0;
}

int weir_mp4_read_tables(struct weir_mp4_reader *r)
{
    int (*const readers[])(struct weir_mp4_reader *) = {read_chunks, read_stts, read_ctts, read_stss};
    int rc = r->stsz.data ? read_stsz(r) : read_stz2(r);
    if (rc == 0 && weir_video_track_sum(r->track) < 0)
        rc = weir_no_memory(r->err);
    for (size_t i = 0; rc == 0 && i < sizeof readers / sizeof *readers; i++)
        rc = readers[i](r);
    if (rc == 0) /* groups of samples are read into memory */
        rc = weir_mp4_claim(r, weir_video_bytes_before(r->track, r->track->n), "its samples");
    return rc;
}
