/* Our walk over HDF5's chunk indexes, compared with the library's answers for every kind of index. */
#include "base/hash.h"
#include "datasets/hdf5/chunk_walk_priv.h"
#include "tests/fixtures/loader_fixture.h"

#include <criterion/criterion.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <hdf5.h>

static void open_quietly(void)
{
    fixture_open();
    /* Library errors are expected here and asserted, so their printing is switched off. */
    H5Eset_auto2(H5E_DEFAULT, NULL, NULL);
}

TestSuite(chunk_index, .init = open_quietly, .fini = fixture_close);

enum { RANK_MAX = 4 };

struct recipe {
    int rank;
    hsize_t dims[RANK_MAX], chunk[RANK_MAX], max_dims[RANK_MAX]; /* max_dims[0] == 0: equal to dims */
    bool latest, deflate, early, raw_edges;
    int user_block;
    int skip;          /* > 0: every skip-th chunk is never written */
    int keep;          /* > 1: only every keep-th chunk is written */
    int mask;          /* > 0: every mask-th chunk is stored without its filter */
    int attributes;    /* attributes created before and after the chunks, to enlarge the object header */
    int names;         /* > 0: names in the element type; its message then fills the header's first block */
    hsize_t shrink_to; /* > 0: size of the first dimension after writing */
    int sample;        /* > 1: only every sample-th chunk is compared */
    bool no_addresses; /* do not compare addresses: the library lists the whole index to find each one */
};

struct written {
    struct weir_chunk_grid grid;
    uint64_t address, base;
    bool raw_edges, latest, no_addresses;
    char path[512];
};

#define CHECK(x) cr_assert_geq((int64_t)(x), 0, "%s", #x)

/* ---- writing ---- */

static uint64_t chunks_along(uint64_t dim, uint64_t chunk)
{
    return (dim + chunk - 1) / chunk;
}

static uint64_t count_of(const struct recipe *r)
{
    uint64_t n = 1;
    for (int d = 0; d < r->rank; d++)
        n *= chunks_along(r->dims[d], r->chunk[d]);
    return n;
}

/* Computes the coordinates of the first element of chunk i. */
static void corner(int rank, const hsize_t *dims, const hsize_t *chunk, uint64_t i, hsize_t *at)
{
    for (int d = rank - 1; d >= 0; d--) {
        uint64_t n = chunks_along(dims[d], chunk[d]);
        at[d] = i % n * chunk[d];
        i /= n;
    }
}

static void write_chunk(hid_t set, hid_t space, const struct recipe *r, uint64_t i, uint8_t *bytes)
{
    hsize_t at[RANK_MAX], size[RANK_MAX];
    size_t whole = 1;
    corner(r->rank, r->dims, r->chunk, i, at);
    for (int d = 0; d < r->rank; d++) {
        size[d] = r->dims[d] - at[d] < r->chunk[d] ? r->dims[d] - at[d] : r->chunk[d];
        whole *= r->chunk[d];
    }
    for (size_t k = 0; k < whole; k++)
        bytes[k] = k % (3 + i % 5) ? (uint8_t)(i * 31) : (uint8_t)(k * 7 + i); /* makes the compressed sizes differ */
    if (r->mask && i % (uint64_t)r->mask == 0) {
        CHECK(H5Dwrite_chunk(set, H5P_DEFAULT, 1, at, whole, bytes));
        return;
    }
    hid_t memory = H5Screate_simple(r->rank, size, NULL), type = H5Dget_type(set);
    CHECK(H5Sselect_hyperslab(space, H5S_SELECT_SET, at, NULL, size, NULL));
    CHECK(H5Dwrite(set, type, memory, space, H5P_DEFAULT, bytes));
    H5Tclose(type);
    H5Sclose(memory);
}

static bool is_written(const struct recipe *r, uint64_t i)
{
    if (r->keep > 1)
        return i % (uint64_t)r->keep == 0;
    return r->skip == 0 || i % (uint64_t)r->skip != 1 % (uint64_t)r->skip;
}

static void write_chunks(hid_t set, const struct recipe *r)
{
    size_t bytes = 1;
    for (int d = 0; d < r->rank; d++)
        bytes *= r->chunk[d];
    uint8_t *buffer = malloc(bytes);
    hid_t space = H5Dget_space(set);
    for (uint64_t i = 0; i < count_of(r); i++)
        if (is_written(r, i))
            write_chunk(set, space, r, i, buffer);
    H5Sclose(space);
    free(buffer);
}

static void add_attributes(hid_t set, int from, int n)
{
    hsize_t size = 30;
    hid_t space = H5Screate_simple(1, &size, NULL);
    for (int i = from; i < from + n; i++) {
        char name[32];
        snprintf(name, sizeof name, "attribute_%d", i);
        hid_t attribute = H5Acreate2(set, name, H5T_NATIVE_INT, space, H5P_DEFAULT, H5P_DEFAULT);
        CHECK(attribute);
        H5Aclose(attribute);
    }
    H5Sclose(space);
}

/* Returns a one-byte type. Names make its header message long. */
static hid_t element_type(const struct recipe *r)
{
    hid_t type = r->names ? H5Tenum_create(H5T_NATIVE_UINT8) : H5Tcopy(H5T_NATIVE_UINT8);
    for (int i = 0; i < r->names; i++) {
        char name[32];
        uint8_t value = (uint8_t)i;
        snprintf(name, sizeof name, "name_%d", i);
        CHECK(H5Tenum_insert(type, name, &value));
    }
    CHECK(type);
    return type;
}

static hid_t creation(const struct recipe *r)
{
    hid_t plist = H5Pcreate(H5P_DATASET_CREATE);
    CHECK(H5Pset_chunk(plist, r->rank, r->chunk));
    if (r->deflate)
        CHECK(H5Pset_deflate(plist, 2));
    if (r->raw_edges)
        CHECK(H5Pset_chunk_opts(plist, H5D_CHUNK_DONT_FILTER_PARTIAL_CHUNKS));
    if (r->early)
        CHECK(H5Pset_alloc_time(plist, H5D_ALLOC_TIME_EARLY));
    return plist;
}

/* Adds another dataset, so that the first block of the object header cannot grow. */
static void add_neighbour(hid_t file)
{
    hsize_t size = 3;
    hid_t space = H5Screate_simple(1, &size, NULL);
    hid_t set = H5Dcreate2(file, "neighbour", H5T_NATIVE_INT, space, H5P_DEFAULT, H5P_DEFAULT, H5P_DEFAULT);
    CHECK(set);
    H5Dclose(set);
    H5Sclose(space);
    CHECK(H5Fflush(file, H5F_SCOPE_LOCAL));
}

static void fill_grid(struct written *w, const struct recipe *r, hid_t set)
{
    hsize_t dims[RANK_MAX], max_dims[RANK_MAX];
    hid_t space = H5Dget_space(set);
    w->grid = (struct weir_chunk_grid){.rank = r->rank, .element_bytes = 1, .filtered = r->deflate};
    CHECK(H5Sget_simple_extent_dims(space, dims, max_dims));
    for (int d = 0; d < r->rank; d++) {
        w->grid.dims[d] = dims[d];
        w->grid.max_dims[d] = max_dims[d] == H5S_UNLIMITED ? UINT64_MAX : max_dims[d];
        w->grid.chunk[d] = r->chunk[d];
    }
    H5Sclose(space);
    H5O_info_t info;
    CHECK(H5Oget_info(set, &info));
    w->address = info.addr;
    w->base = (uint64_t)r->user_block;
    w->raw_edges = r->raw_edges;
    w->latest = r->latest;
    w->no_addresses = r->no_addresses;
}

static void write_recipe(struct written *w, const struct recipe *r)
{
    snprintf(w->path, sizeof w->path, "%s", fixture_path("chunks.h5"));
    hid_t access = H5Pcreate(H5P_FILE_ACCESS), create = H5Pcreate(H5P_FILE_CREATE);
    if (r->latest)
        CHECK(H5Pset_libver_bounds(access, H5F_LIBVER_LATEST, H5F_LIBVER_LATEST));
    CHECK(H5Pset_userblock(create, (hsize_t)r->user_block));
    hid_t file = H5Fcreate(w->path, H5F_ACC_TRUNC, create, access);
    hid_t space = H5Screate_simple(r->rank, r->dims, r->max_dims[0] ? r->max_dims : NULL), plist = creation(r);
    hid_t type = element_type(r), set = H5Dcreate2(file, "frames", type, space, H5P_DEFAULT, plist, H5P_DEFAULT);
    CHECK(set);
    if (r->names)
        add_neighbour(file);
    add_attributes(set, 0, r->attributes);
    write_chunks(set, r);
    add_attributes(set, r->attributes, r->attributes);
    if (r->shrink_to) {
        hsize_t dims[RANK_MAX];
        memcpy(dims, r->dims, sizeof dims);
        dims[0] = r->shrink_to;
        CHECK(H5Dset_extent(set, dims));
    }
    fill_grid(w, r, set);
    H5Dclose(set);
    H5Tclose(type);
    H5Pclose(plist);
    H5Sclose(space);
    H5Fclose(file);
    H5Pclose(create);
    H5Pclose(access);
}

/* ---- reading ---- */

struct bytes {
    uint8_t *at;
    size_t n;
};

static uint64_t bytes_read; /* total of read_bytes */

static int read_bytes(void *user, uint64_t offset, void *buffer, size_t n)
{
    const struct bytes *bytes = user;
    if (offset > bytes->n || n > bytes->n - offset)
        return -ENODATA;
    memcpy(buffer, bytes->at + offset, n);
    bytes_read += n;
    return 0;
}

static struct bytes whole_file(const char *path)
{
    int fd = open(path, O_RDONLY);
    off_t n = lseek(fd, 0, SEEK_END);
    struct bytes bytes = {malloc((size_t)n), (size_t)n};
    cr_assert(fd >= 0 && pread(fd, bytes.at, bytes.n, 0) == n);
    close(fd);
    return bytes;
}

static int walk(const struct written *w, struct bytes *bytes, struct weir_chunk *chunks, const char **reason)
{
    struct weir_raw_file raw = {read_bytes, bytes, w->base, bytes->n};
    *reason = "";
    return weir_chunk_index(&raw, w->address, &w->grid, chunks, reason);
}

/* ---- comparing ---- */

static bool is_partial(const struct written *w, const hsize_t *at)
{
    for (int d = 0; d < w->grid.rank; d++)
        if (at[d] + w->grid.chunk[d] > w->grid.dims[d])
            return true;
    return false;
}

/* Returns true if exactly one dimension is unlimited and it is not the first. HDF5 1.10.8 numbers such chunks
 * differently in look-ups and in listings, and H5Dget_chunk_info uses the listing. */
static bool is_listed_wrongly(const struct written *w)
{
    int unlimited = 0;
    for (int d = 0; d < w->grid.rank; d++)
        unlimited += w->grid.max_dims[d] == UINT64_MAX;
    return w->latest && unlimited == 1 && w->grid.max_dims[0] != UINT64_MAX;
}

static void compare_address(hid_t set, const struct written *w, const hsize_t *at, const struct weir_chunk *ours,
                            const char *about)
{
    hsize_t size = 0;
    unsigned mask = 0;
    haddr_t address = HADDR_UNDEF;
    CHECK(H5Dget_chunk_info_by_coord(set, at, &mask, &address, &size));
    uint64_t offset = address == HADDR_UNDEF ? WEIR_CHUNK_NONE : address + w->base;
    cr_assert_eq(ours->offset, offset, "%s: at %" PRIu64 ", not %" PRIu64, about, ours->offset, offset);
}

static void compare_chunk(hid_t set, const struct written *w, const struct bytes *bytes, uint32_t i,
                          const struct weir_chunk *ours, const char *about)
{
    hsize_t at[RANK_MAX], size = 0;
    uint32_t mask = 0;
    corner(w->grid.rank, (const hsize_t *)w->grid.dims, (const hsize_t *)w->grid.chunk, i, at);
    if (!w->no_addresses && !is_listed_wrongly(w))
        compare_address(set, w, at, ours, about);
    if (H5Dget_chunk_storage_size(set, at, &size) < 0 || size == 0) {
        cr_assert_eq(ours->offset, WEIR_CHUNK_NONE, "%s: chunk %u was never written", about, i);
        return;
    }
    uint8_t *stored = malloc(size);
    CHECK(H5Dread_chunk(set, H5P_DEFAULT, at, &mask, stored));
    cr_assert_eq(ours->bytes, size, "%s: chunk %u has %u bytes, not %d", about, i, ours->bytes, (int)size);
    cr_assert_eq(memcmp(bytes->at + ours->offset, stored, size), 0, "%s: chunk %u has wrong bytes", about, i);
    if (w->raw_edges && is_partial(w, at))
        mask = ~0u; /* the library does not report these chunks' masks; their bytes are stored unfiltered */
    if (w->grid.filtered)
        cr_assert_eq(ours->mask, mask, "%s: chunk %u has mask %x, not %x", about, i, ours->mask, mask);
    free(stored);
}

/* Compares our chunks with the library's for a file in memory, perhaps damaged. Returns how many look-ups succeeded. */
static uint32_t compare_image(const struct written *w, const struct bytes *bytes, const struct weir_chunk *chunks,
                              const char *about)
{
    hid_t access = H5Pcreate(H5P_FILE_ACCESS);
    CHECK(H5Pset_fapl_core(access, 1 << 16, false));
    CHECK(H5Pset_file_image(access, bytes->at, bytes->n));
    hid_t file = H5Fopen("image", H5F_ACC_RDONLY, access), set = H5Dopen2(file, "frames", H5P_DEFAULT);
    uint32_t n = set < 0 ? 0 : weir_chunk_grid_count(&w->grid), chunk_bytes = weir_chunk_grid_bytes(&w->grid), i;
    for (i = 0; i < n; i++) {
        hsize_t at[RANK_MAX], size = 0;
        unsigned mask = 0;
        haddr_t address = HADDR_UNDEF;
        corner(w->grid.rank, (const hsize_t *)w->grid.dims, (const hsize_t *)w->grid.chunk, i, at);
        if (H5Dget_chunk_info_by_coord(set, at, &mask, &address, &size) < 0)
            break;
        uint64_t offset = address == HADDR_UNDEF ? WEIR_CHUNK_NONE : address + w->base;
        /* The library returns the address, but would fail to read the chunk. */
        if (chunks[i].offset == WEIR_CHUNK_BAD) {
            cr_expect(offset > bytes->n || size != chunk_bytes || size > bytes->n - offset, "%s: chunk %u", about, i);
            continue;
        }
        cr_expect_eq(chunks[i].offset, offset, "%s: chunk %u at %" PRIu64 ", not %" PRIu64, about, i, chunks[i].offset,
                     offset);
        cr_expect(offset == WEIR_CHUNK_NONE || (chunks[i].bytes == size && chunks[i].mask == mask), "%s: chunk %u",
                  about, i);
    }
    if (set >= 0)
        H5Dclose(set);
    if (file >= 0)
        H5Fclose(file);
    H5Pclose(access);
    return i;
}

static void compare(const struct recipe *r, const char *about)
{
    struct written w;
    const char *reason;
    write_recipe(&w, r);
    struct bytes bytes = whole_file(w.path);
    uint32_t n = weir_chunk_grid_count(&w.grid), there = 0;
    cr_assert_gt(n, 0);
    struct weir_chunk *chunks = malloc(n * sizeof *chunks);
    cr_assert_eq(walk(&w, &bytes, chunks, &reason), 0, "%s: %s", about, reason);
    hid_t file = H5Fopen(w.path, H5F_ACC_RDONLY, H5P_DEFAULT), set = H5Dopen2(file, "frames", H5P_DEFAULT);
    CHECK(set);
    uint32_t step = r->sample > 1 ? (uint32_t)r->sample : 1;
    for (uint32_t i = 0; i < n; i += step)
        compare_chunk(set, &w, &bytes, i, &chunks[i], about);
    hsize_t stored = H5Dget_storage_size(set), sum = 0;
    for (uint32_t i = 0; i < n; i++) {
        sum += chunks[i].offset == WEIR_CHUNK_NONE ? 0 : chunks[i].bytes;
        there += chunks[i].offset != WEIR_CHUNK_NONE;
    }
    cr_assert_eq(sum, stored, "%s: %d bytes in total, not %d", about, (int)sum, (int)stored);
    cr_assert_gt(there, 0, "%s", about);
    H5Dclose(set);
    H5Fclose(file);
    free(chunks);
    free(bytes.at);
}

#define UNLIMITED H5S_UNLIMITED

/* What each file must contain for its test to be meaningful: a block with this signature (single-chunk and implicit
 * indexes have none), and in that block a byte at offset level.at of at least level.least (the depth of a tree). If
 * prefix_bytes is set, the block's first prefix_bytes bytes end with their own checksum, because its elements are
 * stored in pages. */
static const struct kind {
    const char *name, *signature;
    struct {
        int at, least;
    } level;
    size_t prefix_bytes;
    struct recipe recipe;
} kinds[] = {
    {"v1 B-tree", "TREE", {0}, 0, {.rank = 2, .dims = {40, 7}, .chunk = {3, 4}}},
    {"v1 B-tree, deep", "TREE", {5, 2}, 0, {.rank = 1, .dims = {20000}, .chunk = {2}, .sample = 97}},
    {"single chunk", NULL, {0}, 0, {.rank = 2, .dims = {8, 6}, .chunk = {8, 6}, .latest = true}},
    {"implicit", NULL, {0}, 0, {.rank = 2, .dims = {40, 7}, .chunk = {3, 4}, .latest = true, .early = true}},
    {"fixed array", "FAHD", {0}, 0, {.rank = 2, .dims = {40, 7}, .chunk = {3, 4}, .latest = true}},
    {"fixed array, pages", "FADB", {0}, 19, {.rank = 1, .dims = {5000}, .chunk = {2}, .latest = true, .sample = 13}},
    {"extensible array",
     "EAHD",
     {0},
     0,
     {.rank = 2, .dims = {40, 7}, .chunk = {3, 4}, .max_dims = {UNLIMITED, 7}, .latest = true}},
    {"extensible array, super blocks",
     "EASB",
     {0},
     0,
     {.rank = 1, .dims = {3000}, .chunk = {2}, .max_dims = {UNLIMITED}, .latest = true, .sample = 7}},
    {"extensible array, pages", /* paged from chunk 131,060 on */
     "EADB",
     {0},
     22,
     {.rank = 1,
      .dims = {1088000},
      .chunk = {8},
      .max_dims = {UNLIMITED},
      .latest = true,
      .keep = 97,
      .sample = 251,
      .no_addresses = true}},
    {"extensible array, second dimension",
     "EAHD",
     {0},
     0,
     {.rank = 3, .dims = {5, 30, 4}, .chunk = {2, 3, 3}, .max_dims = {7, UNLIMITED, 9}, .latest = true}},
    {"v2 B-tree",
     "BTHD",
     {0},
     0,
     {.rank = 2, .dims = {40, 7}, .chunk = {3, 4}, .max_dims = {UNLIMITED, UNLIMITED}, .latest = true}},
    {"v2 B-tree, deep",
     "BTHD",
     {12, 2},
     0,
     {.rank = 2,
      .dims = {200, 100},
      .chunk = {1, 2},
      .max_dims = {UNLIMITED, UNLIMITED},
      .latest = true,
      .sample = 97}},
};
enum { KINDS = sizeof kinds / sizeof kinds[0] };

static bool is_of_kind(const struct kind *kind, const struct bytes *bytes)
{
    const uint8_t *end = bytes->at + bytes->n, *at = bytes->at;
    while ((at = memmem(at, (size_t)(end - at), kind->signature, 4)) != NULL) {
        bool level = kind->level.least == 0 || at[kind->level.at] >= kind->level.least;
        if (level && (kind->prefix_bytes == 0 || weir_checksum_holds(at, kind->prefix_bytes)))
            return true;
        at++;
    }
    return false;
}

static void expect_kind(const struct kind *kind)
{
    struct written w;
    if (!kind->signature)
        return;
    write_recipe(&w, &kind->recipe);
    struct bytes bytes = whole_file(w.path);
    cr_assert(is_of_kind(kind, &bytes), "the file has no %s", kind->name);
    free(bytes.at);
}

Test(chunk_index, every_kind_of_index)
{
    for (int k = 0; k < KINDS; k++) {
        expect_kind(&kinds[k]);
        for (int variant = 0; variant < 8; variant++) {
            struct recipe r = kinds[k].recipe;
            char about[128];
            r.deflate = variant & 1 && !r.early; /* early allocation with filters would use another index */
            r.user_block = variant & 2 ? 1024 : 0;
            r.attributes = variant & 4 ? 12 : 0;
            snprintf(about, sizeof about, "%s%s%s%s", kinds[k].name, r.deflate ? ", deflate" : "",
                     r.user_block ? ", user block" : "", r.attributes ? ", long header" : "");
            compare(&r, about);
        }
    }
}

Test(chunk_index, chunks_never_written)
{
    for (int k = 0; k < KINDS; k++) {
        struct recipe r = kinds[k].recipe;
        if (r.early || count_of(&r) == 1 || count_of(&r) > 6000)
            continue;
        for (r.skip = 2; r.skip < 40; r.skip += 9)
            for (int deflate = 0; deflate < 2; deflate++) {
                r.deflate = deflate;
                compare(&r, kinds[k].name);
            }
    }
}

/* Whole pages, blocks and super blocks are never written. */
Test(chunk_index, chunks_far_apart)
{
    static const int keep[] = {500, 1400, 2400, 45000};
    for (int k = 0; k < KINDS; k++)
        for (size_t i = 0; i < sizeof keep / sizeof keep[0]; i++) {
            struct recipe r = kinds[k].recipe;
            if (r.early || count_of(&r) <= (uint64_t)keep[i])
                continue;
            r.keep = keep[i];
            r.deflate = i % 2;
            r.sample = r.no_addresses ? 100 : 10;
            compare(&r, kinds[k].name);
        }
}

Test(chunk_index, chunks_stored_without_their_filter)
{
    for (int k = 0; k < KINDS; k++) {
        struct recipe r = kinds[k].recipe;
        if (r.early || count_of(&r) > 6000)
            continue;
        r.deflate = true;
        r.mask = 3;
        compare(&r, kinds[k].name);
    }
}

Test(chunk_index, partial_chunks_without_filters)
{
    for (int k = 0; k < KINDS; k++) {
        struct recipe r = kinds[k].recipe;
        if (!r.latest || r.early || r.rank < 2 || count_of(&r) > 6000)
            continue;
        r.deflate = r.raw_edges = true;
        r.dims[0] += r.chunk[0] == 1 ? 0 : 1;
        compare(&r, kinds[k].name);
    }
}

Test(chunk_index, shrunk_datasets)
{
    for (int latest = 0; latest < 2; latest++)
        for (int second = 0; second < 2; second++) {
            struct recipe r = {
                .rank = 2, .dims = {40, 7}, .chunk = {3, 4}, .max_dims = {UNLIMITED, 7}, .shrink_to = 11};
            r.latest = latest;
            r.max_dims[1] = second ? UNLIMITED : 7;
            compare(&r, "shrunk");
        }
}

/* No byte is read twice, whichever dimension varies slowest, so the bytes read never exceed the file's size. */
Test(chunk_index, reads_what_there_is_once)
{
    struct recipe recipes[KINDS + 1];
    for (int k = 0; k < KINDS; k++)
        recipes[k] = kinds[k].recipe;
    recipes[KINDS] =
        (struct recipe){.rank = 2, .dims = {60, 900}, .chunk = {1, 3}, .max_dims = {60, UNLIMITED}, .latest = true};
    for (int k = 0; k <= KINDS; k++) {
        struct written w;
        const char *reason;
        write_recipe(&w, &recipes[k]);
        struct bytes bytes = whole_file(w.path);
        struct weir_chunk *chunks = malloc(weir_chunk_grid_count(&w.grid) * sizeof *chunks);
        bytes_read = 0;
        cr_assert_eq(walk(&w, &bytes, chunks, &reason), 0);
        cr_assert_leq(bytes_read, bytes.n, "recipe %d: %" PRIu64 " bytes of %zu", k, bytes_read, bytes.n);
        free(chunks);
        free(bytes.at);
    }
}

/* ---- headers ---- */

static uint64_t little_endian(const uint8_t *bytes, int n)
{
    uint64_t value = 0;
    while (n-- > 0)
        value = value << 8 | bytes[n];
    return value;
}

/* Returns the object header's first block, without its continuations. */
static struct bytes first_block(const struct written *w, const struct bytes *bytes)
{
    uint8_t *at = bytes->at + w->base + w->address;
    if (at[0] == 1)
        return (struct bytes){at + 16, little_endian(at + 8, 4)};
    int size_bytes = 1 << (at[5] & 3), times = at[5] & 32 ? 16 : 0, phases = at[5] & 16 ? 4 : 0;
    uint8_t *size = at + 6 + times + phases;
    return (struct bytes){size + size_bytes, little_endian(size, size_bytes)};
}

/* Finds the layout message by its bytes up to the chunk's first dimension, which the recipe makes unique. */
static uint8_t *find_layout(const struct bytes *bytes, bool latest)
{
    static const uint8_t old[] = {3, 2, 3}, new[] = {4, 2, 0, 3, 1, 3, 4, 1};
    return memmem(bytes->at, bytes->n, latest ? new : old, latest ? sizeof new : sizeof old);
}

Test(chunk_index, layouts_in_a_continued_header)
{
    for (int latest = 0; latest < 2; latest++) {
        struct written w;
        struct recipe r = {.rank = 2, .dims = {40, 7}, .chunk = {3, 4}, .attributes = 1, .names = 20, .latest = latest};
        write_recipe(&w, &r);
        struct bytes bytes = whole_file(w.path), block = first_block(&w, &bytes);
        cr_assert_not_null(find_layout(&bytes, latest));
        cr_assert_null(find_layout(&block, latest), "the layout is not in a continuation");
        free(bytes.at);
        compare(&r, latest ? "continued header, version 2" : "continued header, version 1");
    }
}

/* Layout messages written before HDF5 1.6.3 (versions 1 and 2) store the same fields in a different order. */
Test(chunk_index, layouts_of_old_versions)
{
    struct written w;
    struct recipe r = {.rank = 1, .dims = {40}, .chunk = {3}};
    const char *reason;
    write_recipe(&w, &r);
    struct bytes bytes = whole_file(w.path), block = first_block(&w, &bytes);
    struct weir_chunk chunks[14], again[14];
    cr_assert_eq(walk(&w, &bytes, chunks, &reason), 0);
    uint8_t *layout = memmem(block.at, block.n, (const uint8_t[]){3, 2, 2}, 3), now[24] = {0};
    cr_assert_not_null(layout);
    cr_assert_eq(little_endian(layout - 6, 2), sizeof now); /* the message has space for the longer old form */
    for (uint8_t version = 1; version <= 2; version++) {
        struct bytes old = {malloc(bytes.n), bytes.n};
        memcpy(old.at, bytes.at, bytes.n);
        memcpy(now, (const uint8_t[]){version, 2, 2}, 3);
        memcpy(now + 8, layout + 3, 16); /* address, dimension, element size */
        memcpy(old.at + (layout - bytes.at), now, sizeof now);
        cr_assert_eq(walk(&w, &old, again, &reason), 0, "version %d: %s", version, reason);
        cr_assert_eq(memcmp(chunks, again, sizeof chunks), 0, "version %d", version);
        cr_assert_eq(compare_image(&w, &old, again, "old version"), 14);
        free(old.at);
    }
    free(bytes.at);
}

/* ---- random geometry ---- */

static uint64_t draw(uint64_t *state, uint64_t n)
{
    *state = *state * 6364136223846793005u + 1442695040888963407u;
    return (*state >> 33) % n;
}

static struct recipe random_recipe(uint64_t *random)
{
    struct recipe r = {.rank = 1 + (int)draw(random, RANK_MAX)};
    for (int d = 0; d < r.rank; d++) {
        r.dims[d] = 1 + draw(random, r.rank > 2 ? 9 : 60);
        r.chunk[d] = 1 + draw(random, r.rank > 2 ? 5 : 9);
        static const uint64_t more[] = {0, 0, 0, 1, 20};
        uint64_t grow = draw(random, 7);
        r.max_dims[d] = grow < 5 ? r.dims[d] + more[grow] : UNLIMITED;
        if (r.max_dims[d] != UNLIMITED && r.chunk[d] > r.max_dims[d])
            r.chunk[d] = r.max_dims[d]; /* the library refuses larger chunks */
    }
    r.latest = draw(random, 4) > 0;
    r.deflate = draw(random, 2);
    r.early = draw(random, 6) == 0;
    r.raw_edges = r.latest && r.deflate && draw(random, 3) == 0;
    r.user_block = draw(random, 3) ? 0 : 512;
    r.skip = draw(random, 3) ? 0 : 2 + (int)draw(random, 9);
    r.attributes = draw(random, 5) ? 0 : (int)draw(random, 20);
    return r;
}

Test(chunk_index, any_geometry)
{
    uint64_t random = 11;
    for (int i = 0; i < 400; i++) {
        struct recipe r = random_recipe(&random);
        char about[64];
        snprintf(about, sizeof about, "geometry %d", i);
        if (count_of(&r) == 1 && r.skip)
            r.skip = 0;
        compare(&r, about);
    }
}

/* ---- damaged files ---- */

static void put(uint8_t *to, int n, uint64_t value)
{
    for (int i = 0; i < n; i++)
        to[i] = (uint8_t)(value >> 8 * i);
}

static void check_sane(const struct weir_chunk *chunks, uint32_t n, const struct bytes *bytes)
{
    for (uint32_t i = 0; i < n; i++)
        if (chunks[i].offset != WEIR_CHUNK_NONE && chunks[i].offset != WEIR_CHUNK_BAD)
            cr_assert(chunks[i].offset <= bytes->n && chunks[i].bytes <= bytes->n - chunks[i].offset,
                      "chunk %u is outside the file", i);
}

struct damaged {
    struct written w;
    struct bytes bytes;
    struct weir_chunk *chunks, *intact;
    uint32_t n;
    int refused;
    uint32_t other; /* chunks compared with the library in files for which the walk's result changed */
};

/* With one byte damaged, the walk must fail with a reason or return chunks inside the file. If checksums protect the
 * index, only the intact file's chunks are allowed. Otherwise, other chunks must match the library's answer. */
static void check_damaged(struct damaged *d, size_t at)
{
    const char *reason;
    int rc = walk(&d->w, &d->bytes, d->chunks, &reason);
    if (rc < 0) {
        d->refused++;
        cr_assert(rc == -EBADMSG || rc == -ENOTSUP, "byte %zu: %d", at, rc);
        cr_assert(*reason, "byte %zu: refused without a reason", at);
        return;
    }
    check_sane(d->chunks, d->n, &d->bytes);
    if (memcmp(d->chunks, d->intact, d->n * sizeof *d->chunks) == 0)
        return;
    cr_assert_not(d->w.latest, "byte %zu: wrong chunks, despite checksums", at);
    d->other += compare_image(&d->w, &d->bytes, d->chunks, "damaged");
}

static void damage(struct damaged *d)
{
    static const uint8_t values[] = {0x00, 0x01, 0x80, 0xff};
    for (size_t at = 0; at < d->bytes.n && at < 12000; at++)
        for (size_t v = 0; v < sizeof values; v++) {
            uint8_t was = d->bytes.at[at];
            d->bytes.at[at] = v == 1 ? was ^ 1 : values[v];
            check_damaged(d, at);
            d->bytes.at[at] = was;
        }
}

static uint32_t check_kind_damaged(const struct recipe *r, const char *about)
{
    struct damaged d = {.refused = 0};
    const char *reason;
    write_recipe(&d.w, r);
    d.bytes = whole_file(d.w.path);
    d.n = weir_chunk_grid_count(&d.w.grid);
    d.chunks = malloc(d.n * sizeof *d.chunks);
    d.intact = malloc(d.n * sizeof *d.intact);
    cr_assert_eq(walk(&d.w, &d.bytes, d.intact, &reason), 0);
    damage(&d);
    cr_assert_gt(d.refused, 100, "%s", about);
    free(d.chunks);
    free(d.intact);
    free(d.bytes.at);
    return d.other;
}

Test(chunk_index, damaged_anywhere)
{
    uint32_t other = 0;
    for (int k = 0; k < KINDS; k++)
        for (int deflate = 0; deflate < 2; deflate++) {
            struct recipe r = kinds[k].recipe;
            r.deflate = deflate && !r.early;
            if (count_of(&r) <= 100)
                other += check_kind_damaged(&r, kinds[k].name);
        }
    cr_assert_gt(other, 0, "nothing was compared with the library");
}

/* Writes a file of six chunks, sets number d of key i in its only node to `value`, and expects the reason. */
static void expect_bad_key(int i, int d, uint64_t value, const char *expected)
{
    enum { HEAD = 24, ENTRY = 8 + 3 * 8 + 8 };
    struct recipe r = {.rank = 2, .dims = {6, 6}, .max_dims = {6, 6}, .chunk = {2, 3}};
    struct written w;
    const char *reason;
    struct weir_chunk chunks[6];
    write_recipe(&w, &r);
    struct bytes bytes = whole_file(w.path);
    cr_assert_eq(walk(&w, &bytes, chunks, &reason), 0, "%s", reason);
    uint8_t *node = memmem(bytes.at, bytes.n, "TREE\1", 5);
    cr_assert(node);
    put(node + HEAD + i * ENTRY + 8 + d * 8, 8, value);
    cr_assert_eq(walk(&w, &bytes, chunks, &reason), -EBADMSG);
    cr_assert_str_eq(reason, expected);
    free(bytes.at);
}

/* The last number of a key is 0 in every valid file. If it is not, the library reads fill values. */
Test(chunk_index, keys_within_an_element)
{
    expect_bad_key(0, 2, 1, "a key of the index is not the start of a chunk");
}

/* The library uses a binary search, so it reads fill values if the wrong order hides a chunk. */
Test(chunk_index, keys_in_disorder)
{
    expect_bad_key(0, 0, 4, "the keys of the index are not in order");
    expect_bad_key(3, 0, 0, "the keys of the index are not in order");
    expect_bad_key(6, 0, 2, "the keys of the index are not in order"); /* the last key of the node */
}

Test(chunk_index, cut_anywhere)
{
    for (int k = 0; k < KINDS; k++) {
        struct recipe r = kinds[k].recipe;
        struct written w;
        const char *reason;
        if (count_of(&r) > 100)
            continue;
        write_recipe(&w, &r);
        struct bytes bytes = whole_file(w.path);
        uint32_t n = weir_chunk_grid_count(&w.grid);
        struct weir_chunk *chunks = malloc(n * sizeof *chunks);
        for (size_t left = 0; left < bytes.n; left += 3) {
            /* Exact size, so that a sanitizer reports reads past the end. */
            struct bytes less = {malloc(left + 1), left};
            less.at = realloc(less.at, left ? left : 1);
            memcpy(less.at, bytes.at, left);
            if (walk(&w, &less, chunks, &reason) == 0)
                check_sane(chunks, n, &less);
            free(less.at);
        }
        free(chunks);
        free(bytes.at);
    }
}

/* ---- endless structures ---- */

/* Appends n bytes of 0xff to the file. */
static uint8_t *append(struct bytes *bytes, size_t n)
{
    bytes->at = realloc(bytes->at, bytes->n + n);
    memset(bytes->at + bytes->n, 0xff, n);
    bytes->n += n;
    return bytes->at + bytes->n - n;
}

static void expect_loop(const struct written *w, struct bytes *bytes)
{
    const char *reason;
    struct weir_chunk *chunks = malloc(weir_chunk_grid_count(&w->grid) * sizeof *chunks);
    cr_assert_eq(walk(w, bytes, chunks, &reason), -EBADMSG);
    cr_assert_str_eq(reason, "the index leads back to itself");
    free(chunks);
}

/* All children of a node are the same node: a billion nodes to visit, in 120 KB. */
Test(chunk_index, version_1_trees_of_one_child)
{
    enum { CHILDREN = 1000, LEVELS = 4, HEAD = 24, KEY = 32, ENTRY = 40 };
    struct written w;
    struct recipe r = {.rank = 2, .dims = {40, 7}, .chunk = {3, 4}};
    write_recipe(&w, &r);
    struct bytes bytes = whole_file(w.path);
    uint64_t child = UINT64_MAX;
    for (int level = 0; level < LEVELS; level++) {
        uint8_t *node = append(&bytes, HEAD + CHILDREN * ENTRY + KEY);
        memcpy(node, "TREE\1", 5);
        node[5] = (uint8_t)level;
        put(node + 6, 2, level ? CHILDREN : 0);
        for (int i = 0; i < CHILDREN; i++)
            put(node + HEAD + i * ENTRY + KEY, 8, child);
        child = (uint64_t)(node - bytes.at);
    }
    put(find_layout(&bytes, false) + 3, 8, child);
    expect_loop(&w, &bytes);
    free(bytes.at);
}

/* The same structure with checksums: five million nodes. */
Test(chunk_index, version_2_trees_of_one_child)
{
    enum { RECORDS = 12, LEVELS = 7, PREFIX = 6, RECORD = 24, NODE = 512 };
    static const int pointer_bytes[LEVELS] = {0, 9, 11, 11, 12, 12, 12}; /* sizes required for nodes of 512 bytes */
    struct written w;
    struct recipe r = {.rank = 2, .dims = {40, 7}, .chunk = {3, 4}, .max_dims = {UNLIMITED, UNLIMITED}, .latest = true};
    write_recipe(&w, &r);
    struct bytes bytes = whole_file(w.path);
    uint64_t child = UINT64_MAX;
    for (int level = 0; level < LEVELS; level++) {
        size_t records = level ? RECORDS * RECORD : 0, pointers = level ? (RECORDS + 1) * pointer_bytes[level] : 0;
        uint8_t *node = append(&bytes, NODE);
        memcpy(node, level ? "BTIN\0\n" : "BTLF\0\n", PREFIX);
        for (int i = 0; i <= RECORDS && level; i++) {
            put(node + PREFIX + records + i * pointer_bytes[level], 8, child);
            node[PREFIX + records + i * pointer_bytes[level] + 8] = level > 1 ? RECORDS : 0;
        }
        put(node + PREFIX + records + pointers, 4, weir_lookup3(node, PREFIX + records + pointers));
        child = (uint64_t)(node - bytes.at);
    }
    uint8_t *head = memmem(bytes.at, bytes.n, "BTHD", 4);
    put(head + 6, 4, NODE);
    put(head + 12, 2, LEVELS - 1);
    put(head + 16, 8, child);
    put(head + 24, 2, RECORDS);
    put(head + 34, 4, weir_lookup3(head, 34));
    expect_loop(&w, &bytes);
    free(bytes.at);
}

static void sum(uint8_t *block, size_t n)
{
    put(block + n - 4, 4, weir_lookup3(block, n - 4));
}

/* All 4,096 data blocks, of 4 MB each, are the same block, and every block contains a chunk. */
Test(chunk_index, extensible_arrays_of_one_block)
{
    enum { INDEX = 14 + 2 * 8 + 24 * 8 + 4, BLOCKS = 4096, ELEMENTS = 128 * 4096 };
    const size_t super_bytes = 18 + 8 * BLOCKS + 4, block_bytes = 18 + 8ul * ELEMENTS + 4;
    struct written w;
    struct recipe r = {.rank = 2,
                       .dims = {2 * BLOCKS, 1},
                       .chunk = {1, 1},
                       .max_dims = {UNLIMITED, ELEMENTS},
                       .latest = true,
                       .keep = 1000};
    write_recipe(&w, &r);
    struct bytes bytes = whole_file(w.path);
    uint64_t index = bytes.n, super = index + INDEX, block = super + super_bytes;
    append(&bytes, INDEX + super_bytes + block_bytes);
    memcpy(bytes.at + index, "EAIB\0\0", 6);
    put(bytes.at + index + 14 + 2 * 8 + 22 * 8, 8, super); /* super block 24: the first two have no pointer */
    sum(bytes.at + index, INDEX);
    memcpy(bytes.at + super, "EASB\0\0", 6);
    for (int i = 0; i < BLOCKS; i++)
        put(bytes.at + super + 18 + 8 * i, 8, block);
    sum(bytes.at + super, super_bytes);
    memcpy(bytes.at + block, "EADB\0\0", 6);
    sum(bytes.at + block, block_bytes);
    uint8_t *head = memmem(bytes.at, bytes.n, "EAHD", 4);
    memcpy(head + 7, (const uint8_t[]){32, 0, 128, 2, 32}, 5); /* no elements in the index block, no pages */
    put(head + 60, 8, index);
    sum(head, 72);
    bytes_read = 0;
    expect_loop(&w, &bytes);
    cr_assert_lt(bytes_read, 1ul << 29);
    free(bytes.at);
}

/* All thousand continuations of a header point to the same 8 MB of zeros. */
Test(chunk_index, headers_of_one_continuation)
{
    enum { PREFIX = 16, MESSAGE = 24, MESSAGES = 1000, BYTES = 8 << 20 };
    struct written w;
    struct recipe r = {.rank = 2, .dims = {40, 7}, .chunk = {3, 4}};
    struct weir_chunk chunks[28];
    const char *reason;
    write_recipe(&w, &r);
    struct bytes bytes = whole_file(w.path);
    w.address = bytes.n;
    uint8_t *header = append(&bytes, PREFIX + MESSAGES * MESSAGE + BYTES);
    memset(header, 0, PREFIX + MESSAGES * MESSAGE + BYTES);
    header[0] = 1;
    put(header + 8, 4, MESSAGES * MESSAGE);
    for (int i = 0; i < MESSAGES; i++) {
        uint8_t *message = header + PREFIX + i * MESSAGE;
        put(message, 2, 16);
        put(message + 2, 2, 16);
        put(message + 8, 8, w.address + PREFIX + MESSAGES * MESSAGE);
        put(message + 16, 8, BYTES);
    }
    bytes_read = 0;
    cr_assert_eq(walk(&w, &bytes, chunks, &reason), -EBADMSG);
    cr_assert_str_eq(reason, "its header has too many or too large parts");
    cr_assert_lt(bytes_read, 1ul << 25);
    free(bytes.at);
}

/* ---- other ---- */

/* The grid from the library differs from the grid in the file, as if the file had changed in between. */
Test(chunk_index, grids_that_are_not_those_of_the_file)
{
    struct written w;
    struct recipe r = {.rank = 2, .dims = {40, 7}, .chunk = {3, 4}, .max_dims = {60, 7}, .latest = true};
    const char *reason;
    write_recipe(&w, &r);
    struct bytes bytes = whole_file(w.path);
    struct weir_chunk chunks[64];
    const struct weir_chunk_grid grid = w.grid;
    cr_assert_eq(walk(&w, &bytes, chunks, &reason), 0);
    w.grid.chunk[0] = 4;
    cr_assert_eq(walk(&w, &bytes, chunks, &reason), -EBADMSG);
    cr_assert_str_eq(reason, "its header and its layout message disagree about its chunks");
    w.grid = grid;
    w.grid.filtered = true;
    cr_assert_eq(walk(&w, &bytes, chunks, &reason), -EBADMSG);
    cr_assert_str_eq(reason, "the index does not match the dataset");
    w.grid = grid;
    w.grid.dims[0] = w.grid.max_dims[0] = 90;
    cr_assert_eq(walk(&w, &bytes, chunks, &reason), -EBADMSG);
    cr_assert_str_eq(reason, "the index does not match the dataset");
    w.grid.max_dims[0] = 60;
    cr_assert_eq(walk(&w, &bytes, chunks, &reason), -EBADMSG);
    cr_assert_str_eq(reason, "it is larger than its maximum size");
    free(bytes.at);
}
