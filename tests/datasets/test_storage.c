/* Every way in which HDF5 can store a camera. Fetched frames must equal those of H5Dread, and must be read by extent
 * wherever the storage allows it. */
#include "pipeline/samples/fetch.h"
#include "tests/fixtures/h5_fixture.h"
#include "tests/fixtures/loader_fixture.h"
#include "weir/dataset.h"

#include <criterion/criterion.h>
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

TestSuite(storage, .init = fixture_open, .fini = fixture_close);

enum { STEPS = 10 };

static const char *const engines[] = {"pread", "null"};

enum where { BY_EXTENT, BY_LIBRARY, HALF_AND_HALF, NOT_POSSIBLE };

/* How frames are read for each storage, per kind of content. */
static const struct {
    enum h5fx_storage storage;
    const char *name;
    enum where where[H5FX_CONTENTS];
} kinds[] = {
    {H5FX_CONTIGUOUS, "contiguous", {BY_EXTENT, BY_EXTENT, BY_EXTENT}},
    {H5FX_CHUNK_ONE, "chunk_one", {BY_EXTENT, BY_EXTENT, BY_EXTENT}},
    {H5FX_CHUNK_MANY, "chunk_many", {BY_EXTENT, BY_EXTENT, BY_EXTENT}},
    {H5FX_CHUNK_HALF, "chunk_half", {HALF_AND_HALF, HALF_AND_HALF, BY_EXTENT}},
    {H5FX_CHUNK_CUT, "chunk_cut", {BY_EXTENT, BY_EXTENT, NOT_POSSIBLE}},
    {H5FX_GZIP, "gzip", {BY_EXTENT, BY_EXTENT, BY_EXTENT}},
    {H5FX_COMPACT, "compact", {BY_LIBRARY, BY_LIBRARY, BY_LIBRARY}},
    {H5FX_UNWRITTEN, "unwritten", {BY_LIBRARY, BY_LIBRARY, BY_LIBRARY}},
    {H5FX_EXTERNAL_RAW, "external_raw", {BY_LIBRARY, BY_LIBRARY, NOT_POSSIBLE}},
    {H5FX_VIRTUAL, "virtual", {BY_LIBRARY, BY_LIBRARY, NOT_POSSIBLE}},
    {H5FX_EXTERNAL_LINK, "external_link", {BY_LIBRARY, BY_LIBRARY, BY_LIBRARY}},
    {H5FX_SOFT_LINK, "soft_link", {BY_EXTENT, BY_EXTENT, BY_EXTENT}},
};
enum { KINDS = sizeof kinds / sizeof kinds[0] };

static const char *const content_names[] = {"raw", "padded", "vlen"};

static int kind_of(const struct weir_dataset *dataset, int camera)
{
    const char *name = weir_dataset_camera(dataset, camera)->name;
    for (int k = 0; k < KINDS; k++)
        if (strcmp(kinds[k].name, strncmp(name, "rgb_", 4) == 0 ? name + 4 : name) == 0)
            return k;
    cr_assert_fail("no kind %s", name);
    return -1;
}

static struct weir_dataset *open_dataset(const char *path)
{
    struct weir_dataset *dataset;
    struct weir_dataset_config config = {.size = sizeof config, .path = path};
    struct weir_err err = WEIR_ERR_NONE;
    cr_assert_eq(weir_dataset_open(&dataset, &config, &err), 0, "%s", err.text);
    return dataset;
}

static void open_fetcher(struct weir_fetcher *fetcher, struct weir_dataset *dataset, struct weir_file_set **files,
                         const char *engine)
{
    struct weir_err err = WEIR_ERR_NONE;
    cr_assert_eq(weir_fetch_files(dataset, files), 0);
    cr_assert_eq(weir_fetcher_open(fetcher, dataset, *files, engine, &err), 0, "%s", err.text);
}

/* The frames of each camera, read with H5Dread. */
struct expected {
    uint8_t *rows[KINDS][STEPS];
    size_t lengths[KINDS][STEPS];
};

static void read_expected(struct expected *expected, const char *path, const struct h5fx_episode *episode,
                          enum h5fx_content content)
{
    for (int k = 0; k < KINDS; k++)
        if (kinds[k].where[content] != NOT_POSSIBLE)
            h5fx_read_rows(path, h5fx_key(episode, kinds[k].name), 0, STEPS, expected->rows[k], expected->lengths[k]);
}

/* Returns the length of a padded row without its trailing zeros. */
static size_t without_zeros(const uint8_t *bytes, size_t length)
{
    while (length > 0 && bytes[length - 1] == 0)
        length--;
    return length;
}

/* Returns true for rows that are read as one extent. Only then is the padding cut off. */
static bool is_row_extent(int kind, int t)
{
    enum h5fx_storage storage = kinds[kind].storage;
    bool half = storage == H5FX_CHUNK_HALF && t % 2 == 0;
    return half || storage == H5FX_CONTIGUOUS || storage == H5FX_CHUNK_ONE || storage == H5FX_CHUNK_MANY ||
           storage == H5FX_SOFT_LINK;
}

static bool by_library(enum where where, int t)
{
    return where == BY_LIBRARY || (where == HALF_AND_HALF && t % 2);
}

static void compare_camera(struct weir_fetcher *fetcher, const struct expected *expected, enum h5fx_content content,
                           int c, const char *about)
{
    const struct weir_dataset *dataset = fetcher->dataset;
    int kind = kind_of(dataset, c);
    enum where where = kinds[kind].where[content];
    for (int t = 0; t < STEPS; t++) {
        const uint8_t *bytes = NULL, *theirs = expected->rows[kind][t];
        bool cut = content == H5FX_PADDED && is_row_extent(kind, t);
        size_t got = 0, length = expected->lengths[kind][t], want = cut ? without_zeros(theirs, length) : length;
        uint64_t before = fetcher->fallbacks;
        int rc = weir_fetch_frame(fetcher, 0, c, t, NULL, 0, &bytes, &got);
        bool empty = content == H5FX_VLEN && kinds[kind].storage == H5FX_CHUNK_HALF && t % 2;
        if (empty) { /* the reference was never written */
            cr_assert_eq(rc, -EBADMSG);
            cr_assert_eq(want, 0);
            cr_assert_str_eq(fetcher->reason, "the frame is empty");
        } else {
            cr_assert_eq(rc, 0, "%s, %s, t %d: %s", about, kinds[kind].name, t, fetcher->reason);
            cr_assert_eq(got, want, "%s, %s, t %d: %zu bytes, not %zu", about, kinds[kind].name, t, got, want);
            cr_assert(want == 0 || memcmp(bytes, theirs, want) == 0, "%s, %s, t %d", about, kinds[kind].name, t);
            bool known = where == BY_EXTENT || content != H5FX_VLEN;
            cr_assert_eq(weir_frame_stored_bytes(dataset, 0, c, t), known ? want : 0);
        }
        cr_assert_eq(fetcher->fallbacks - before, by_library(where, t), "%s, %s, t %d", about, kinds[kind].name, t);
    }
}

/* Returns the first words of weir_dataset_storage's description. */
static const char *storage_words(enum h5fx_content content, enum h5fx_storage storage)
{
    static const char *const flat[] = {"contiguous", "padded rows", "variable length"};
    if (content == H5FX_VLEN)
        return flat[content];
    switch (storage) {
    case H5FX_CHUNK_ONE:
    case H5FX_CHUNK_MANY:
    case H5FX_CHUNK_HALF:
        return "chunks of whole frames";
    case H5FX_CHUNK_CUT:
        return "chunks of ";
    case H5FX_GZIP:
        return "deflate chunks of ";
    default:
        return flat[content];
    }
}

static void check_counts(const struct weir_dataset *dataset, enum h5fx_content content, int c)
{
    const char *words = storage_words(content, kinds[kind_of(dataset, c)].storage);
    const char *name = kinds[kind_of(dataset, c)].name;
    struct weir_storage_kind kind;
    uint64_t library = 0, counted[2] = {0, 0};
    for (int t = 0; t < STEPS; t++)
        library += by_library(kinds[kind_of(dataset, c)].where[content], t);
    for (int i = 0; weir_dataset_storage(dataset, c, i, &kind); i++) {
        counted[kind.library] += kind.frames;
        const char *start = kind.library ? "only through the HDF5 library: " : words;
        cr_assert_eq(strncmp(kind.text, start, strlen(start)), 0, "%s: %s", name, kind.text);
    }
    cr_assert_eq(counted[true], library, "%s", name);
    cr_assert_eq(counted[false], STEPS - library, "%s", name);
}

/* Writes a file with one camera per storage, and reads it with both engines. The second pass uses cached heap objects.
 */
static void compare_all(enum h5fx_content content, uint64_t user_block, bool latest, bool no_lengths)
{
    struct h5fx_episode episode = {.astrobench = content == H5FX_VLEN,
                                   .user_block = user_block,
                                   .latest = latest,
                                   .no_lengths = no_lengths,
                                   .seed = 3};
    int n = 0;
    for (int k = 0; k < KINDS; k++)
        if (kinds[k].where[content] != NOT_POSSIBLE)
            episode.cameras[n++] = (struct h5fx_camera){kinds[k].name, content, kinds[k].storage, 0, 0, 0, 0, false, 0};
    char about[128];
    const char *path = fixture_path("e.hdf5");
    h5fx_write(path, &episode);
    struct expected expected = {0};
    read_expected(&expected, path, &episode, content);
    for (int e = 0; e < 2; e++) {
        struct weir_dataset *dataset = open_dataset(path);
        struct weir_file_set *files;
        struct weir_fetcher fetcher;
        open_fetcher(&fetcher, dataset, &files, engines[e]);
        cr_assert_eq(weir_dataset_cameras(dataset), n);
        for (int pass = 0; pass < 2; pass++)
            for (int c = 0; c < n; c++) {
                snprintf(about, sizeof about, "%s, user block %d, %s, %s, pass %d", content_names[content],
                         (int)user_block, latest ? "latest" : "earliest", engines[e], pass);
                check_counts(dataset, content, c);
                compare_camera(&fetcher, &expected, content, c, about);
            }
        weir_fetcher_close(&fetcher);
        weir_file_set_close(&files);
        weir_dataset_close(&dataset);
    }
    for (int i = 0; i < KINDS * STEPS; i++)
        free(expected.rows[i / STEPS][i % STEPS]);
}

Test(storage, every_kind_is_what_h5dread_returns)
{
    for (int content = 0; content < H5FX_CONTENTS; content++) {
        compare_all((enum h5fx_content)content, 0, false, false);
        compare_all((enum h5fx_content)content, 0, true, false);
    }
}

Test(storage, behind_a_user_block_too)
{
    for (int content = 0; content < H5FX_CONTENTS; content++) {
        compare_all((enum h5fx_content)content, 512, false, false);
        compare_all((enum h5fx_content)content, 2048, true, false);
    }
}

Test(storage, padded_rows_without_compress_len_end_with_their_jpegs)
{
    compare_all(H5FX_PADDED, 0, false, true);
}

/* ---- heaps of various shapes ---- */

static void compare_heap(int steps, size_t blob_max, enum h5fx_storage storage, uint64_t user_block)
{
    struct h5fx_episode episode = {.steps = steps, .astrobench = true, .user_block = user_block, .seed = steps};
    episode.cameras[0] = (struct h5fx_camera){"a", H5FX_VLEN, storage, 0, 0, 0, blob_max, false, 0};
    episode.cameras[1] = (struct h5fx_camera){"b", H5FX_VLEN, storage, 0, 0, 0, 1 + blob_max / 2, false, 0};
    const char *path = fixture_path("heap.h5");
    h5fx_write(path, &episode);
    uint8_t **theirs = calloc(2 * (size_t)steps, sizeof *theirs);
    size_t *want = calloc(2 * (size_t)steps, sizeof *want);
    for (int c = 0; c < 2; c++)
        h5fx_read_rows(path, h5fx_key(&episode, c ? "b" : "a"), 0, steps, theirs + c * steps, want + c * steps);
    for (int e = 0; e < 2; e++) {
        struct weir_dataset *dataset = open_dataset(path);
        struct weir_file_set *files;
        struct weir_fetcher fetcher;
        open_fetcher(&fetcher, dataset, &files, engines[e]);
        for (int i = 0; i < 4 * steps; i++) {
            int t = i % (2 * steps) / 2, c = i % 2; /* all frames of both cameras, twice */
            size_t got;
            const uint8_t *bytes;
            int rc = weir_fetch_frame(&fetcher, 0, c, t, NULL, 0, &bytes, &got);
            cr_assert_eq(rc, 0, "%d x %zu, t %d: %s", steps, blob_max, t, fetcher.reason);
            cr_assert_eq(got, want[c * steps + t]);
            cr_assert_eq(memcmp(bytes, theirs[c * steps + t], got), 0);
        }
        cr_assert_eq(fetcher.fallbacks, 0);
        struct weir_read_counts once, again;
        weir_reader_counts(fetcher.reader, &once);
        const uint8_t *bytes;
        size_t got;
        cr_assert_eq(weir_fetch_frame(&fetcher, 0, 0, steps - 1, NULL, 0, &bytes, &got), 0);
        weir_reader_counts(fetcher.reader, &again);
        cr_assert_eq(again.reads - once.reads, 1, "a cached object needs only one read");
        cr_assert_eq(again.bytes - once.bytes, got, "only the object's bytes are read");
        weir_fetcher_close(&fetcher);
        weir_file_set_close(&files);
        weir_dataset_close(&dataset);
    }
    for (int i = 0; i < 2 * steps; i++)
        free(theirs[i]);
    free(theirs);
    free(want);
}

Test(storage, heap_collections_with_many_objects)
{
    compare_heap(600, 20, H5FX_CONTIGUOUS, 0);
    compare_heap(300, 200, H5FX_CHUNK_MANY, 0);
    compare_heap(300, 200, H5FX_CONTIGUOUS, 1024);
}

Test(storage, heap_collections_with_big_objects)
{
    compare_heap(40, 5000, H5FX_CONTIGUOUS, 0);
    compare_heap(20, 300000, H5FX_CHUNK_ONE, 512);
    compare_heap(3, 4000000, H5FX_CONTIGUOUS, 0);
}

/* Signed bytes are read unchanged, like unsigned ones. */
Test(storage, signed_bytes_are_not_converted)
{
    static const enum h5fx_storage storages[] = {H5FX_CONTIGUOUS, H5FX_GZIP, H5FX_COMPACT};
    for (int content = H5FX_PADDED; content <= H5FX_VLEN; content++) {
        struct h5fx_episode episode = {.astrobench = content == H5FX_VLEN, .no_lengths = true, .seed = 1};
        static const char *const names[] = {"a", "b", "c"};
        for (int i = 0; i < 3; i++)
            episode.cameras[i] =
                (struct h5fx_camera){names[i], (enum h5fx_content)content, storages[i], 0, 0, 0, 0, true, 0};
        const char *path = fixture_path("signed.h5");
        h5fx_write(path, &episode);
        struct weir_dataset *dataset = open_dataset(path);
        struct weir_file_set *files;
        struct weir_fetcher fetcher;
        open_fetcher(&fetcher, dataset, &files, "pread");
        for (int c = 0; c < 3; c++)
            for (int t = 0; t < STEPS; t++) {
                size_t want, got;
                const uint8_t *bytes;
                uint8_t *theirs = h5fx_read(path, h5fx_key(&episode, names[c]), t, &want);
                if (content == H5FX_PADDED && storages[c] == H5FX_CONTIGUOUS)
                    want = without_zeros(theirs, want);
                cr_assert_eq(weir_fetch_frame(&fetcher, 0, c, t, NULL, 0, &bytes, &got), 0, "%s", fetcher.reason);
                cr_assert_eq(got, want);
                cr_assert_eq(memcmp(bytes, theirs, want), 0, "content %d, camera %d, t %d", content, c, t);
                free(theirs);
            }
        weir_fetcher_close(&fetcher);
        weir_file_set_close(&files);
        weir_dataset_close(&dataset);
    }
}

/* HDF5 1.10 needs time proportional to the number of chunks to find one. Walking the index ourselves avoids this. */
Test(storage, very_many_chunks_are_found)
{
    struct h5fx_episode episode = {.steps = 10100, .no_lengths = true};
    episode.cameras[0] = (struct h5fx_camera){"one", H5FX_PADDED, H5FX_CHUNK_ONE, 0, 0, 0, 8, false, 0};
    episode.cameras[1] = (struct h5fx_camera){"many", H5FX_PADDED, H5FX_CHUNK_MANY, 0, 0, 0, 8, false, 0};
    const char *path = fixture_path("chunks.hdf5");
    h5fx_write(path, &episode);
    struct weir_dataset *dataset = open_dataset(path);
    struct weir_file_set *files;
    struct weir_fetcher fetcher;
    open_fetcher(&fetcher, dataset, &files, "pread");
    for (int c = 0; c < 2; c++)
        for (int t = 0; t < episode.steps; t += 997) {
            size_t want, got;
            const uint8_t *bytes;
            uint8_t *theirs = h5fx_read(path, h5fx_key(&episode, episode.cameras[1 - c].name), t, &want);
            cr_assert_eq(weir_fetch_frame(&fetcher, 0, c, t, NULL, 0, &bytes, &got), 0, "%s", fetcher.reason);
            cr_assert_eq(got, want);
            cr_assert_eq(memcmp(bytes, theirs, want), 0, "camera %d, t %d", c, t);
            free(theirs);
        }
    cr_assert_eq(fetcher.fallbacks, 0);
    weir_fetcher_close(&fetcher);
    weir_file_set_close(&files);
    weir_dataset_close(&dataset);
}

/* ---- numbers of every type ---- */

Test(storage, states_of_every_type_become_float)
{
    static const char *const types[] = {"f32", "f32be", "f64", "f64be", "i16", "i32be", "u8", "i8"};
    static const double signed_values[] = {0,   1,  -1, 2,  100, -128, 127, 3,  5,  7,  11,
                                           -13, 17, 19, 23, -29, 31,   37,  41, 43, -47};
    const uint64_t dims[2] = {7, 3};
    for (size_t i = 0; i < sizeof types / sizeof types[0]; i++) {
        struct h5fx_episode episode = {.steps = 7, .cameras = {{.name = "top"}}};
        const char *path = fixture_path("types.hdf5");
        double values[21], ones[21];
        bool fraction = types[i][0] == 'f';
        for (int v = 0; v < 21; v++)
            ones[v] = 1;
        for (int v = 0; v < 21; v++)
            values[v] = strcmp(types[i], "u8") == 0 ? fabs(signed_values[v]) : signed_values[v] / (fraction ? 3 : 1);
        h5fx_write(path, &episode);
        h5fx_put(path, "/observations/qpos", types[i], 2, dims, values);
        h5fx_put(path, "/action", types[7 - i], 2, dims, ones);
        struct weir_dataset *dataset = open_dataset(path);
        cr_assert_eq(weir_dataset_qpos_dim(dataset), 3);
        for (int v = 0; v < 21; v++) {
            cr_assert_eq(weir_dataset_qpos(dataset, 0)[v], (float)values[v], "%s, %d", types[i], v);
            cr_assert_eq(weir_dataset_actions(dataset, 0)[v], 1.0f);
        }
        weir_dataset_close(&dataset);
    }
}

/* ---- files that are replaced ---- */

/* Frames read through the HDF5 library are also checked to come from the indexed file. */
Test(storage, the_library_notices_a_file_that_was_replaced)
{
    struct h5fx_episode episode = {.cameras = {{.name = "top", .storage = H5FX_COMPACT}}, .seed = 1};
    const char *path = fixture_path("old.hdf5"), *other = fixture_path("new.hdf5");
    h5fx_write(path, &episode);
    struct weir_dataset *dataset = open_dataset(path);
    struct weir_file_set *files;
    struct weir_fetcher fetcher;
    const uint8_t *bytes;
    size_t length;
    char change[WEIR_FILE_CHANGE];
    open_fetcher(&fetcher, dataset, &files, "pread");
    episode.seed = 2;
    h5fx_write(other, &episode);
    cr_assert_eq(rename(other, path), 0);
    cr_assert_eq(weir_file_set_changed(files, 0, true, change), 0, "an unread file must not be reported as changed: %s",
                 change);
    cr_assert_eq(weir_fetch_frame(&fetcher, 0, 0, 1, NULL, 0, &bytes, &length), -ESTALE);
    cr_assert_not_null(strstr(fetcher.reason, "changed since it was opened"), "%s", fetcher.reason);
    cr_assert_eq(weir_file_set_changed(files, 0, true, change), 1);
    cr_assert_eq(unlink(path), 0);
    cr_assert_eq(weir_fetch_frame(&fetcher, 0, 0, 1, NULL, 0, &bytes, &length), -ENOENT);
    weir_fetcher_close(&fetcher);
    weir_file_set_close(&files);
    weir_dataset_close(&dataset);
}
