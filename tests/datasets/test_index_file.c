/* The index stored in a file: it is used if it still matches, rewritten if it does not, and always validated. */
#include "base/hash.h"
#include "datasets/hdf5/hdf5_helper.h"
#include "datasets/index.h"
#include "pipeline/samples/fetch.h"
#include "tests/fixtures/h5_fixture.h"
#include "tests/fixtures/loader_fixture.h"
#include "weir/dataset.h"

#include <criterion/criterion.h>
#include <errno.h>
#include <fcntl.h>
#include <hdf5.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { STEPS = 6, EPISODES = 8 };

/* One episode per kind of storage, with raw and encoded frames. */
static const struct {
    enum h5fx_content content;
    enum h5fx_storage storage;
} kinds[EPISODES] = {
    {H5FX_RAW, H5FX_CONTIGUOUS}, {H5FX_RAW, H5FX_CHUNK_ONE}, {H5FX_RAW, H5FX_GZIP},  {H5FX_RAW, H5FX_CHUNK_CUT},
    {H5FX_RAW, H5FX_CHUNK_HALF}, {H5FX_RAW, H5FX_COMPACT},   {H5FX_VLEN, H5FX_GZIP}, {H5FX_VLEN, H5FX_CONTIGUOUS},
};

static char data[512], index_path[512];

static const char *episode_path(int i)
{
    static char path[600];
    snprintf(path, sizeof path, "%s/episode_%d.hdf5", data, i);
    return path;
}

static void write_episode(int i, int seed)
{
    const struct h5fx_episode episode = {
        .steps = STEPS,
        .cameras = {{.name = "cam", .content = kinds[i].content, .storage = kinds[i].storage}},
        .user_block = i == 0 ? 512 : 0,
        .latest = i % 2,
        .seed = seed,
    };
    h5fx_write(episode_path(i), &episode);
}

static void setup(void)
{
    fixture_open();
    snprintf(data, sizeof data, "%s", fixture_path("data"));
    snprintf(index_path, sizeof index_path, "%s", fixture_path("kept.index"));
    mkdir(data, 0755);
    for (int i = 0; i < EPISODES; i++)
        write_episode(i, i);
}

TestSuite(index_file, .init = setup, .fini = fixture_close);

static struct weir_loader_config config_with(const char *index)
{
    struct weir_loader_config config;
    weir_loader_config_default(&config);
    config.data = data;
    config.index = index;
    config.batch_size = 3;
    config.num_workers = 2;
    config.train_split = 1;
    return config;
}

/* Opens the dataset with the index and compares its frames with those read without an index. Returns the number of
 * files taken from the index. */
static int open_and_compare(void)
{
    struct weir_loader_config config = config_with(index_path), plain = config_with(NULL);
    struct weir_loader_facts facts;
    struct weir_loader *loader = fixture_loader(&config);
    weir_loader_facts(loader, &facts);
    weir_loader_close(&loader);
    struct weir_err err;
    int rc;
    char *with = fixture_checksums(&config, &rc, &err);
    cr_assert_eq(rc, 0, "%s", err.text);
    char *without = fixture_checksums(&plain, &rc, &err);
    cr_assert_eq(rc, 0, "%s", err.text);
    cr_assert_gt(strlen(with), 100);
    cr_assert_str_eq(with, without);
    free(with);
    free(without);
    return facts.files_from_index;
}

static uint8_t *read_file(const char *path, size_t *n)
{
    *n = (size_t)h5fx_file_bytes(path);
    uint8_t *bytes = malloc(*n + 1);
    int fd = open(path, O_RDONLY);
    cr_assert(fd >= 0 && read(fd, bytes, *n) == (ssize_t)*n);
    close(fd);
    bytes[*n] = 0;
    return bytes;
}

static void write_file(const char *path, const void *bytes, size_t n)
{
    int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC, 0644);
    cr_assert(fd >= 0 && write(fd, bytes, n) == (ssize_t)n);
    close(fd);
}

static void set_time(const char *path, struct timespec time)
{
    struct timespec times[2] = {time, time};
    cr_assert_eq(utimensat(AT_FDCWD, path, times, 0), 0);
}

static struct timespec time_of(const char *path)
{
    struct stat st;
    cr_assert_eq(stat(path, &st), 0);
    return st.st_mtim;
}

/* ---- valid and outdated indexes ---- */

Test(index_file, the_second_open_takes_every_file_from_it)
{
    cr_assert_eq(open_and_compare(), 0);
    struct timespec written = time_of(index_path);
    cr_assert_eq(open_and_compare(), EPISODES);
    struct timespec after = time_of(index_path);
    cr_assert(written.tv_sec == after.tv_sec && written.tv_nsec == after.tv_nsec,
              "the index was rewritten without need");
}

static char *describe(struct weir_dataset *dataset)
{
    char *text, name[1024];
    size_t size;
    FILE *out = open_memstream(&text, &size);
    struct weir_storage_kind kind;
    for (int i = 0; weir_dataset_storage(dataset, 0, i, &kind); i++)
        fprintf(out, "%s %d %d\n", kind.text, (int)kind.frames, kind.library);
    for (int e = 0; e < weir_dataset_episodes(dataset); e++) {
        weir_frame_name(dataset, e, 0, STEPS - 1, name, sizeof name);
        fprintf(out, "%s %s %s %s %s\n", name, weir_dataset_layout(dataset, e), weir_dataset_qpos_key(dataset, e),
                weir_dataset_action_key(dataset, e), weir_frame_kind_name(weir_dataset_kind(dataset, e, 0)));
        for (int t = 0; t < STEPS; t++) {
            struct weir_frame_cost cost;
            weir_frame_cost(dataset, e, 0, t, &cost);
            fprintf(out, "%d %d %d\n", (int)cost.stored, (int)cost.read, (int)cost.unpacked);
        }
    }
    fclose(out);
    return text;
}

static struct weir_dataset *open_dataset(const char *index)
{
    struct weir_dataset *dataset;
    struct weir_dataset_config config = {.size = sizeof config, .path = data, .index = index};
    struct weir_err err = WEIR_ERR_NONE;
    cr_assert_eq(weir_dataset_open(&dataset, &config, &err), 0, "%s", err.text);
    return dataset;
}

Test(index_file, everything_that_info_tells_is_in_it)
{
    char *texts[3];
    for (int i = 0; i < 3; i++) { /* no index, then writing it, then reading it */
        struct weir_dataset *dataset = open_dataset(i > 0 ? index_path : NULL);
        cr_assert_eq(weir_dataset_files_from_index(dataset), i == 2 ? EPISODES : 0);
        cr_assert(weir_dataset_can_have_index(dataset));
        texts[i] = describe(dataset);
        weir_dataset_close(&dataset);
    }
    cr_assert_str_eq(texts[1], texts[0]);
    cr_assert_str_eq(texts[2], texts[0]);
    for (int i = 0; i < 3; i++)
        free(texts[i]);
}

Test(index_file, a_file_written_anew_is_looked_at_anew)
{
    open_and_compare();
    write_episode(2, 99);
    cr_assert_eq(open_and_compare(), EPISODES - 1);
    cr_assert_eq(open_and_compare(), EPISODES);
}

Test(index_file, another_time_of_change_is_enough)
{
    open_and_compare();
    struct timespec time = time_of(episode_path(3));
    time.tv_nsec ^= 1;
    set_time(episode_path(3), time);
    cr_assert_eq(open_and_compare(), EPISODES - 1);
    cr_assert_eq(open_and_compare(), EPISODES);
}

Test(index_file, another_header_is_enough)
{
    open_and_compare();
    struct timespec time = time_of(episode_path(0));
    h5fx_poke(episode_path(0), 100, "x", 1); /* in the user block, which HDF5 ignores */
    set_time(episode_path(0), time);
    cr_assert_eq(open_and_compare(), EPISODES - 1);
}

Test(index_file, files_come_and_go)
{
    char away[640];
    open_and_compare();
    snprintf(away, sizeof away, "%s.away", episode_path(4));
    rename(episode_path(4), away);
    cr_assert_eq(open_and_compare(), EPISODES - 1);
    rename(away, episode_path(4));
    cr_assert_geq(open_and_compare(), EPISODES - 1);
    cr_assert_eq(open_and_compare(), EPISODES);
}

Test(index_file, other_options_make_another_index)
{
    open_and_compare();
    struct weir_dataset *dataset;
    struct weir_err err = WEIR_ERR_NONE;
    struct weir_dataset_config config = {
        .size = sizeof config, .path = data, .index = index_path, .qpos_keys = "action"};
    for (int i = 0; i < 2; i++) {
        cr_assert_eq(weir_dataset_open(&dataset, &config, &err), 0, "%s", err.text);
        cr_assert_eq(weir_dataset_files_from_index(dataset), i ? EPISODES : 0);
        cr_assert_eq(weir_dataset_qpos_dim(dataset), weir_dataset_action_dim(dataset));
        weir_dataset_close(&dataset);
    }
    cr_assert_eq(open_and_compare(), 0);
}

Test(index_file, bad_episodes_are_looked_at_every_time)
{
    struct weir_dataset *dataset;
    struct weir_err err = WEIR_ERR_NONE;
    struct weir_dataset_config config = {.size = sizeof config, .path = data, .index = index_path, .tolerant = true};
    cr_assert_eq(truncate(episode_path(1), 300), 0);
    for (int i = 0; i < 2; i++) {
        cr_assert_eq(weir_dataset_open(&dataset, &config, &err), 0, "%s", err.text);
        cr_assert_eq(weir_dataset_files_from_index(dataset), i ? EPISODES - 1 : 0);
        cr_assert_eq(weir_dataset_bad_episodes(dataset), 1);
        weir_dataset_close(&dataset);
    }
}

/* One address in the chunk index is outside the file. The frames of that chunk are bad, but the file's index entry
 * stays valid. */
Test(index_file, a_bad_chunk_does_not_spoil_the_index)
{
    static const int with_chunks[] = {2, 6};
    for (int i = 0; i < 2; i++) {
        const char *path = episode_path(with_chunks[i]);
        const uint64_t beyond = (uint64_t)1 << 40;
        haddr_t address;
        size_t n, found = 0;
        uint8_t *bytes = read_file(path, &n);
        hsize_t row[4] = {STEPS - 1}, stored;
        unsigned mask;
        hid_t file = H5Fopen(path, H5F_ACC_RDONLY, H5P_DEFAULT);
        hid_t frames = H5Dopen2(file, "/observations/images/cam", H5P_DEFAULT);
        cr_assert_geq(H5Dget_chunk_info_by_coord(frames, row, &mask, &address, &stored), 0);
        H5Dclose(frames);
        H5Fclose(file);
        for (size_t at = 0; at + 8 <= n; at++)
            if (memcmp(bytes + at, &address, 8) == 0)
                found = at;
        free(bytes);
        cr_assert_gt(found, 0);
        h5fx_poke(path, found, &beyond, sizeof beyond);
    }
    for (int i = 0; i < 2; i++) {
        struct weir_dataset *dataset = open_dataset(index_path);
        cr_assert_eq(weir_dataset_files_from_index(dataset), i ? EPISODES : 0);
        weir_dataset_close(&dataset);
    }
}

/* A helper process with corrupted memory could send such descriptions. Chunks with larger rows than the camera's would
 * overflow its frames. */
Test(index_file, descriptions_are_not_believed_either)
{
    struct weir_frame_map map = {.width = 4, .height = 2, .frames = 6, .row_bytes = 24, .kind = WEIR_FRAME_RAW};
    const struct weir_episode episode = {.n_maps = 1, .maps = &map, .qpos_dim = 2, .action_dim = 2};
    const struct weir_h5_description fine = {.layout = WEIR_H5_CHUNKED,
                                             .grid = {4, {6, 2, 4, 3}, {1, 2, 4, 3}, {6, 2, 4, 3}, 1, false},
                                             .shape = {.rank = 4}};
    struct weir_h5_description said = fine;
    const uint8_t no_bool = 7;
    map.storage = WEIR_STORED_CONTIGUOUS;
    map.rows = WEIR_ROWS_PIXELS;
    cr_assert(weir_hdf5_described_is_sane(&episode, &said));
    said.grid.dims[1] = 3;
    cr_assert_not(weir_hdf5_described_is_sane(&episode, &said), "larger rows");
    said = fine;
    said.grid.dims[0] = 5;
    cr_assert_not(weir_hdf5_described_is_sane(&episode, &said), "fewer rows than frames");
    said = fine;
    memcpy(&said.grid.filtered, &no_bool, 1);
    cr_assert_not(weir_hdf5_described_is_sane(&episode, &said), "an invalid bool");
    said = fine;
    said.filters.n = 9;
    cr_assert_not(weir_hdf5_described_is_sane(&episode, &said), "too many filters");
    map.width = 5;
    cr_assert_not(weir_hdf5_described_is_sane(&episode, &fine), "pixels that do not match the row size");
}

/* ---- damaged indexes ---- */

Test(index_file, a_damaged_index_is_written_anew)
{
    open_and_compare();
    size_t n;
    uint8_t *whole = read_file(index_path, &n);
    for (size_t cut = 0; cut < n; cut = cut < 64 ? cut + 7 : cut * 2) {
        write_file(index_path, whole, cut);
        if (cut > 0 && cut < 8)
            continue; /* too short to be recognised as an index: see below */
        struct weir_dataset *dataset = open_dataset(index_path);
        cr_assert_eq(weir_dataset_files_from_index(dataset), 0, "cut at %zu", cut);
        weir_dataset_close(&dataset);
    }
    for (size_t at = 8; at < n; at += at < 64 ? 1 : 211) {
        uint8_t was = whole[at];
        whole[at] ^= 0x10;
        write_file(index_path, whole, n);
        whole[at] = was;
        struct weir_dataset *dataset = open_dataset(index_path);
        cr_assert_eq(weir_dataset_files_from_index(dataset), 0, "byte %zu", at);
        weir_dataset_close(&dataset);
    }
    cr_assert_eq(open_and_compare(), EPISODES);
    free(whole);
}

static void expect_refusal(const char *index, const char *reason)
{
    struct weir_dataset *dataset = NULL;
    struct weir_err err = WEIR_ERR_NONE;
    struct weir_dataset_config config = {.size = sizeof config, .path = data, .index = index};
    cr_assert_lt(weir_dataset_open(&dataset, &config, &err), 0);
    cr_assert_null(dataset);
    cr_assert(strncmp(err.text, index, strlen(index)) == 0, "%s", err.text);
    cr_assert(strstr(err.text, reason), "%s", err.text);
    cr_assert(strstr(err.text, "--index"), "%s", err.text);
}

Test(index_file, a_file_that_is_no_index_is_left_alone)
{
    const char *theirs = fixture_path("notes.txt");
    write_file(theirs, "my notes, not an index\n", 23);
    expect_refusal(theirs, "exists and is not an index file");
    size_t n;
    uint8_t *bytes = read_file(theirs, &n);
    cr_assert_str_eq((char *)bytes, "my notes, not an index\n");
    free(bytes);
    write_file(theirs, "WEIR", 4);
    expect_refusal(theirs, "exists and is not an index file");
    expect_refusal(data, "exists and is not an index file");
    expect_refusal(fixture_path("no/such/folder"), "cannot be written");
}

/* ---- hostile indexes: valid hash, invalid content ---- */

static volatile uint8_t sink; /* every byte is read, so that a sanitizer detects invalid addresses */

static void read_everything(struct weir_dataset *dataset)
{
    struct weir_file_set *files;
    struct weir_fetcher fetcher;
    struct weir_err err = WEIR_ERR_NONE;
    cr_assert_eq(weir_fetch_files(dataset, &files), 0);
    if (weir_fetcher_open(&fetcher, dataset, files, "pread", &err) == 0) {
        for (int e = 0; e < weir_dataset_episodes(dataset); e++)
            for (int t = 0; t < weir_dataset_steps(dataset, e) && t < STEPS; t++) {
                const uint8_t *bytes;
                size_t n;
                char text[1024];
                int rc = weir_fetch_frame(&fetcher, e, 0, t, NULL, 0, &bytes, &n);
                for (size_t i = 0; rc == 0 && i < n; i++)
                    sink ^= bytes[i];
                weir_frame_name(dataset, e, 0, t, text, sizeof text);
            }
        weir_fetcher_close(&fetcher);
    }
    weir_file_set_close(&files);
}

static void rehash(uint8_t *bytes, size_t n)
{
    uint64_t hash = weir_hash64(bytes + 32, n - 32); /* see struct head in index_file.c */
    memcpy(bytes + 24, &hash, sizeof hash);
}

/* Flips one bit, or overwrites 4 or 8 bytes with an edge value, at a random offset. */
static void mutate(uint8_t *bytes, size_t n, unsigned *seed)
{
    static const uint64_t interesting[] = {0,          1,          0x7f,       0x80,       0xff,
                                           0x7fffffff, 0x80000000, 0xffffffff, UINT64_MAX, 1 << 20};
    size_t at = 32 + (size_t)rand_r(seed) % (n - 40);
    if (rand_r(seed) % 3 == 0) {
        bytes[at] ^= (uint8_t)(1 << rand_r(seed) % 8);
        return;
    }
    memcpy(bytes + at / 4 * 4, &interesting[(size_t)rand_r(seed) % (sizeof interesting / sizeof *interesting)],
           rand_r(seed) % 2 ? 4 : 8);
}

/* Replaces `was` with `is` in the index's camera entries of all episodes. Returns the number of replacements. */
static int forge(uint8_t *bytes, size_t n, const int32_t was[6], const int32_t is[6])
{
    int found = 0;
    for (size_t at = 32; at + 24 <= n; at += 8)
        if (memcmp(bytes + at, was, 24) == 0) {
            memcpy(bytes + at, is, 24);
            found++;
        }
    rehash(bytes, n);
    write_file(index_path, bytes, n);
    return found;
}

/* If they were accepted, zero cameras would cause a division by zero, and zero pixels would produce images without
 * bytes. */
Test(index_file, forged_entries_with_a_right_hash_are_refused)
{
    open_and_compare();
    size_t n;
    uint8_t *whole = read_file(index_path, &n), *copy = malloc(n);
    struct weir_dataset *dataset = open_dataset(NULL);
    int32_t qpos = weir_dataset_qpos_dim(dataset), action = weir_dataset_action_dim(dataset);
    int32_t width = 0, height = 0;
    for (int c = 0; c < weir_dataset_cameras(dataset); c++) {
        width = weir_dataset_camera(dataset, c)->width;
        height = weir_dataset_camera(dataset, c)->height;
    }
    weir_dataset_close(&dataset);
    const int32_t episode[6] = {STEPS, 0, qpos, action, 1, 0}, no_cameras[6] = {STEPS, 0, qpos, action, 0, 0};
    const int32_t pixels[6] = {width, height, STEPS, 0, 0, 0}; /* contiguous storage, raw frames */
    const int32_t forged[][6] = {{0, height, STEPS, 0, 0, 0},
                                 {width, 0, STEPS, 0, 0, 0},
                                 {2 * width, height, STEPS, 0, 0, 0},
                                 {width, height, INT32_MAX, 0, 0, 0},
                                 {width, height, STEPS, 0, 3, 0}};
    memcpy(copy, whole, n);
    cr_assert_eq(forge(copy, n, episode, no_cameras), EPISODES);
    cr_assert_eq(open_and_compare(), 0, "an episode without cameras");
    for (size_t i = 0; i < sizeof forged / sizeof forged[0]; i++) {
        memcpy(copy, whole, n);
        int found = forge(copy, n, pixels, forged[i]);
        cr_assert_geq(found, 1);
        cr_assert_leq(open_and_compare(), EPISODES - found, "case %zu", i);
    }
    free(whole);
    free(copy);
}

static void run_through(int seed)
{
    struct weir_loader_config config = config_with(index_path);
    struct weir_loader *loader;
    struct weir_batch *batch;
    struct weir_err err = WEIR_ERR_NONE;
    config.on_error = seed % 2 ? WEIR_ON_ERROR_SKIP : WEIR_ON_ERROR_FAIL;
    config.prefetch = 0;
    config.io = "pread";
    if (weir_loader_open(&loader, &config, &err) < 0)
        return;
    while (weir_loader_next(loader, &batch, &err) > 0)
        weir_loader_release(loader, batch);
    weir_loader_close(&loader);
}

/* Entries are accepted or refused one by one. Each open may start HDF5 helper processes, so several entries are
 * changed per open. */
Test(index_file, a_hostile_index_is_survived)
{
    enum { OPENS = 250, MUTATIONS = 12 };
    open_and_compare();
    size_t n;
    unsigned seed = 3;
    int taken = 0, refused = 0;
    uint8_t *whole = read_file(index_path, &n), *copy = malloc(n);
    for (int i = 0; i < OPENS; i++) {
        memcpy(copy, whole, n);
        for (int m = 0; m < MUTATIONS; m++)
            mutate(copy, n, &seed);
        rehash(copy, n);
        write_file(index_path, copy, n);
        if (i % 10 == 0) {
            run_through(i / 10);
            write_file(index_path, copy, n);
        }
        struct weir_dataset *dataset;
        struct weir_dataset_config config = {
            .size = sizeof config, .path = data, .index = index_path, .tolerant = i % 2, .threads = 1};
        struct weir_err err = WEIR_ERR_NONE;
        if (weir_dataset_open(&dataset, &config, &err) < 0) {
            cr_assert(strlen(err.text) > 10);
            continue;
        }
        taken += weir_dataset_files_from_index(dataset);
        refused += EPISODES - weir_dataset_files_from_index(dataset);
        read_everything(dataset);
        weir_dataset_close(&dataset);
    }
    cr_assert_gt(taken, 500, "%d", taken); /* otherwise, the hash is not at the offset that rehash() assumes */
    cr_assert_gt(refused, 500, "%d", refused);
    free(whole);
    free(copy);
}
