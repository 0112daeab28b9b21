/* Tracks of videos: the order of pictures, the blocks, and the nearest picture, compared with their definitions. */
#include "tests/fixtures/mp4_fixture.h"

#include <criterion/criterion.h>
#include <stdlib.h>
#include <string.h>

TestSuite(video_track, .init = mp4_open, .fini = mp4_close);

Test(video_track, reordered_pictures)
{
    struct mp4_file file = mp4_plain(); /* I0 P3 B1 B2 I5 B4: the last block's sync sample is presented after B4 */
    file.ctts = MP4_TABLE(6, 1, 0, 1, 200, 1, (uint32_t)-100, 1, (uint32_t)-100, 1, 100, 1, (uint32_t)-100);
    file.stss = MP4_TABLE(2, 1, 5);
    static const uint32_t order[] = {0, 2, 3, 1, 5, 4};
    for (uint8_t version = 0; version < 2; version++) {
        file.ctts.version = version;
        mp4_expect_read(&file);
        for (uint32_t rank = 0; rank < 6; rank++) {
            cr_assert_eq(weir_video_track_at_rank(mp4_track, rank), order[rank]);
            cr_assert_eq(weir_video_track_time(mp4_track, rank), 100 * (int64_t)rank);
            cr_assert_eq(mp4_sample(order[rank]).time, 100 * (int64_t)rank);
            cr_assert_eq(weir_video_track_block_of(mp4_track, rank), rank == 5);
        }
        cr_assert_eq(weir_video_track_blocks(mp4_track), 2);
        cr_assert_eq(weir_video_track_block_max(mp4_track), 5);
        cr_assert_eq(weir_video_track_block_first(mp4_track, 1), 5);
        cr_assert_eq(weir_video_track_block_sync(mp4_track, 1), 4);
    }
}

Test(video_track, the_first_block_may_begin_before_its_sync_sample)
{
    struct mp4_file file = mp4_plain();
    file.stss = MP4_TABLE(2, 3, 6);
    mp4_expect_read(&file);
    cr_assert_eq(weir_video_track_blocks(mp4_track), 2);
    cr_assert(weir_video_track_block_of(mp4_track, 0) == 0 && weir_video_track_block_of(mp4_track, 4) == 0);
    cr_assert(weir_video_track_block_first(mp4_track, 0) == 0 && weir_video_track_block_sync(mp4_track, 0) == 2);
    cr_assert(weir_video_track_block_first(mp4_track, 1) == 5 && weir_video_track_block_sync(mp4_track, 1) == 5);
    cr_assert_eq(weir_video_track_block_max(mp4_track), 5);
}

/* Joined videos: the last pictures of one are presented after the first ones of the next. */
Test(video_track, pictures_are_decoded_from_a_sync_sample_before_them)
{
    struct mp4_file file = mp4_plain(); /* I0 P1 P4 I2 P3 P5 */
    file.ctts = MP4_TABLE(4, 2, 0, 1, 250, 2, (uint32_t)-50, 1, 0);
    file.stss = MP4_TABLE(2, 1, 4);
    static const uint32_t order[] = {0, 1, 3, 4, 2, 5};
    mp4_expect_read(&file);
    for (uint32_t rank = 0; rank < 6; rank++)
        cr_assert_eq(weir_video_track_at_rank(mp4_track, rank), order[rank]);
    cr_assert_eq(weir_video_track_blocks(mp4_track), 2);
    cr_assert_eq(weir_video_track_block_sync(mp4_track, 0), 0);
    cr_assert_eq(weir_video_track_block_sync(mp4_track, 1), 0, "which decodes sample 2 too");
}

Test(video_track, without_stss_all_samples_are_sync_samples)
{
    struct mp4_file file = mp4_plain();
    file.stss.n = 0;
    mp4_expect_read(&file);
    cr_assert(weir_video_track_blocks(mp4_track) == 6 && weir_video_track_block_max(mp4_track) == 1);
    for (uint32_t i = 0; i < 6; i++)
        cr_assert(mp4_sample(i).is_sync && weir_video_track_block_of(mp4_track, i) == i &&
                  weir_video_track_block_first(mp4_track, i) == i && weir_video_track_block_sync(mp4_track, i) == i);
}

/* ---- large tracks ---- */

/* A track of n samples with random sizes, durations, shifts and sync samples. */
struct large {
    uint32_t n, *stsz, *stts, *ctts, *stss;
    struct mp4_file file;
};

static uint32_t next_random(uint32_t *state)
{
    *state = *state * 1664525u + 1013904223u;
    return *state >> 8;
}

static void make_large(struct large *l, uint32_t n, uint32_t shift_max, uint32_t seed)
{
    uint32_t syncs = 0, bytes = 0;
    l->n = n;
    l->stsz = calloc(n + 2, sizeof *l->stsz);
    l->stts = calloc(2 * n + 1, sizeof *l->stts);
    l->ctts = calloc(2 * n + 1, sizeof *l->ctts);
    l->stss = calloc(n + 1, sizeof *l->stss);
    l->stsz[1] = l->stts[0] = l->ctts[0] = n;
    for (uint32_t i = 0; i < n; i++) {
        bytes += l->stsz[i + 2] = next_random(&seed) % 100;
        l->stts[2 * i + 1] = l->ctts[2 * i + 1] = 1;
        l->stts[2 * i + 2] = shift_max ? 1000 : 1 + next_random(&seed) % 1000;
        /* a shift of whole durations plus less than one, so that all times differ */
        l->ctts[2 * i + 2] = shift_max ? next_random(&seed) % shift_max * 1000 + i % 997 : 0;
        if (i == 0 || next_random(&seed) % 50 < (i / 1000 % 2 ? 1 : 20))
            l->stss[++syncs] = i + 1;
    }
    l->stss[0] = syncs;
    l->file = mp4_plain();
    l->file.stsz = (struct mp4_table){.n = (int)n + 2, .many = l->stsz};
    l->file.stts = (struct mp4_table){.n = 2 * (int)n + 1, .many = l->stts};
    l->file.ctts = (struct mp4_table){.n = shift_max ? 2 * (int)n + 1 : 0, .many = l->ctts};
    l->file.stss = (struct mp4_table){.n = (int)syncs + 1, .many = l->stss};
    l->file.stsc = MP4_TABLE(1, 1, n, 1);
    l->file.stco = MP4_TABLE(1, 0);
    l->file.data_bytes = bytes;
}

static void free_large(struct large *l)
{
    free(l->stsz);
    free(l->stts);
    free(l->ctts);
    free(l->stss);
}

/* Compares samples with the tables, and ranks and blocks with their definitions. */
static void expect_large(const struct large *l)
{
    uint64_t offset = mp4_sample(0).offset;
    int64_t time = 0;
    uint32_t sync = 0, block = UINT32_MAX, longest = 0, first = 0;
    bool *seen = calloc(l->n, sizeof *seen);
    for (uint32_t i = 0; i < l->n; i++) {
        struct weir_video_sample sample = mp4_sample(i);
        cr_assert(sample.offset == offset && sample.bytes == l->stsz[i + 2] &&
                  sample.time == time + l->ctts[2 * i + 2]);
        offset += sample.bytes;
        time += l->stts[2 * i + 2];
    }
    for (uint32_t rank = 0; rank < l->n; rank++) {
        uint32_t at = weir_video_track_at_rank(mp4_track, rank);
        cr_assert(at < l->n && !seen[at]);
        seen[at] = true;
        cr_assert(rank == 0 || weir_video_track_time(mp4_track, rank) > weir_video_track_time(mp4_track, rank - 1));
        if (mp4_sample(at).is_sync) {
            sync = at;
            first = ++block == 0 ? 0 : rank;
        }
        if (block == UINT32_MAX)
            continue;
        cr_assert_eq(weir_video_track_block_of(mp4_track, rank), block);
        cr_assert_eq(weir_video_track_block_first(mp4_track, block), first);
        uint32_t from = weir_video_track_block_sync(mp4_track, block);
        cr_assert(from == sync || (from < sync && from <= at && mp4_sample(from).is_sync));
        longest = rank - first + 1 > longest ? rank - first + 1 : longest;
    }
    cr_assert(weir_video_track_blocks(mp4_track) == block + 1 && weir_video_track_block_max(mp4_track) == longest);
    cr_assert_eq(weir_video_track_block_first(mp4_track, block + 1), weir_video_track_frames(mp4_track), "the end");
    free(seen);
}

/* Compares with a search of all pictures. The times are thirds of a unit. */
static void expect_nearest(uint32_t n, uint32_t seed)
{
    int64_t end = weir_video_track_time(mp4_track, n - 1) + 2000;
    for (int i = 0; i < 300; i++) {
        int64_t third = (int64_t)(next_random(&seed) % (3 * (uint32_t)end)) - 3000, best = INT64_MAX;
        uint32_t nearest = weir_video_track_nearest(mp4_track, third, 3 * 1000), expected = 0;
        for (uint32_t rank = 0; rank < n; rank++) {
            int64_t distance = llabs(third - 3 * weir_video_track_time(mp4_track, rank));
            if (distance < best) {
                best = distance;
                expected = rank;
            }
        }
        cr_assert_eq(nearest, expected, "%lld/3: %u instead of %u", (long long)third, nearest, expected);
    }
}

Test(video_track, large_tracks)
{
    static const uint32_t counts[] = {1, 2, 3, 63, 64, 65, 511, 512, 513, 1024, 4001}, shifts[] = {0, 3, 40, 100000};
    for (size_t i = 0; i < sizeof counts / sizeof *counts; i++)
        for (size_t s = 0; s < sizeof shifts / sizeof *shifts; s++) {
            struct large large;
            make_large(&large, counts[i], shifts[s], (uint32_t)(17 * i + s));
            mp4_expect_read(&large.file);
            expect_large(&large);
            if (counts[i] < 1000)
                expect_nearest(counts[i], (uint32_t)i);
            free_large(&large);
        }
}

Test(video_track, nearest_is_exact_for_large_numbers)
{
    struct mp4_file file = mp4_plain();
    mp4_expect_read(&file);
    cr_assert_eq(weir_video_track_nearest(mp4_track, 1, 20), 0); /* halfway: the earlier picture */
    cr_assert_eq(weir_video_track_nearest(mp4_track, 50000001, 1000000000), 1);
    cr_assert_eq(weir_video_track_nearest(mp4_track, INT64_MIN, 1), 0);
    cr_assert_eq(weir_video_track_nearest(mp4_track, INT64_MAX, 1), 5);
    cr_assert_eq(weir_video_track_nearest(mp4_track, INT64_MAX / 4, INT64_MAX), 2); /* 249.99... units */
    file.stts = MP4_TABLE(1, 6, INT32_MAX);
    file.elst =
        MP4_TABLE_1(2, 8, 0, UINT32_MAX, UINT32_MAX, 1 << 16, 0, 3000, 0, 0, 1 << 16); /* begins after 1.8 years */
    file.mdhd.words[2] = UINT32_MAX;
    mp4_expect_read(&file);
    cr_assert_eq(weir_video_track_nearest(mp4_track, INT64_MAX, 1), 5);
    cr_assert_eq(weir_video_track_nearest(mp4_track, INT64_MAX, INT64_MAX), 0);
}

Test(video_track, a_long_track_is_small)
{
    struct large large;
    make_large(&large, 100000, 0, 1);
    large.file.stts = MP4_TABLE(1, large.n, 512);
    mp4_expect_read(&large.file);
    cr_assert_lt(weir_video_track_bytes(mp4_track), 45 * large.n / 10);
    free_large(&large);
}
