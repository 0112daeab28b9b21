/* Chunk indexes that are arrays: fixed arrays (VII.C) and extensible arrays (VII.D). An element is the address of a
 * chunk; in a filtered dataset, it also contains the chunk's stored size and filter mask. Chunks are numbered over the
 * grid of the dataset's maximum size. */
#include "datasets/hdf5/chunk_walk_priv.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

enum { PREFIX = 14, CHECKSUM = 4, CLIENT_FILTERED = 1 }; /* PREFIX: signature, version, client and header address */

/* Elements first .. first + n - 1, read together. */
struct run {
    uint8_t *bytes;
    const uint8_t *elements;
    uint64_t first, n;
};

static int note_element(struct weir_walk *walk, const uint8_t *element, uint64_t element_bytes, const uint64_t *scaled)
{
    uint64_t address = weir_le(element, 8), bytes = walk->chunk_bytes;
    uint32_t mask = 0;
    if (walk->grid->filtered && address != UINT64_MAX) {
        int width = (int)element_bytes - 12;
        bytes = weir_le(element + 8, width);
        mask = (uint32_t)weir_le(element + 8 + width, 4);
    }
    return weir_walk_note(walk, scaled, address, bytes, mask);
}

static bool is_element(const struct weir_walk *walk, uint64_t client, uint64_t bytes)
{
    if (!walk->grid->filtered)
        return client == 0 && bytes == 8;
    return client == CLIENT_FILTERED && bytes > 12 && bytes <= 20;
}

/* Reads one run of elements, which ends in a checksum. A large run counts as several steps, because a file may refer to
 * the same run many times. The library's runs have up to 1,024 elements, and take 5 of the 8 steps that
 * weir_chunk_index allows per chunk. */
static int read_run(struct weir_walk *walk, uint64_t address, uint64_t before, uint64_t element_bytes, uint64_t first,
                    uint64_t n, const char *signature, struct run *run)
{
    enum { ELEMENTS_PER_STEP = 256 };
    uint64_t bytes;
    free(run->bytes);
    *run = (struct run){0};
    if (__builtin_mul_overflow(n, element_bytes, &bytes) || __builtin_add_overflow(bytes, before + CHECKSUM, &bytes) ||
        bytes > walk->file->size_bytes)
        return weir_walk_bad(walk, "the index extends past the end of the file");
    if (!weir_walk_step(walk, 1 + n / ELEMENTS_PER_STEP))
        return weir_walk_bad(walk, "the index leads back to itself");
    int rc = 0;
    if (signature) {
        rc = weir_walk_block(walk, address, signature, bytes, &run->bytes);
    } else {
        run->bytes = malloc(bytes);
        rc = run->bytes ? weir_walk_read(walk, address, run->bytes, bytes) : -ENOMEM;
        if (rc == 0 && !weir_checksum_holds(run->bytes, bytes))
            rc = weir_walk_bad(walk, "a checksum of the index is wrong");
    }
    if (rc < 0) {
        free(run->bytes);
        *run = (struct run){0};
        return rc;
    }
    run->elements = run->bytes + before;
    run->first = first;
    run->n = n;
    return 0;
}

/* Returns bit i. The first bit of a byte is its most significant one. */
static bool bit(const uint8_t *bits, uint64_t i)
{
    return bits[i / 8] >> (7 - i % 8) & 1;
}

/* ---- numbers of chunks ---- */

struct array {
    struct weir_walk *walk;
    uint64_t element_bytes;
    int slowest; /* the slowest-varying dimension */
    struct run run;
    int (*load)(struct array *array,
                uint64_t number); /* loads the run that contains chunk `number`; run.n = 0: the run is not stored */
    void *user;
};

/* Computes the number of a chunk. Returns false on overflow. */
static bool number_of(const struct array *array, const uint64_t *scaled, uint64_t *number)
{
    const struct weir_walk *walk = array->walk;
    *number = scaled[array->slowest];
    for (int d = 0; d < walk->grid->rank; d++)
        if (d != array->slowest && (__builtin_mul_overflow(*number, walk->max_count[d], number) ||
                                    __builtin_add_overflow(*number, scaled[d], number)))
            return false;
    return true;
}

/* Computes the grid position of chunk i, counted in the order of the index. The dataset's own order would alternate
 * between blocks if the first dimension is not the slowest. */
static void place_of(const struct array *array, uint64_t i, uint64_t *scaled)
{
    const struct weir_walk *walk = array->walk;
    for (int d = walk->grid->rank - 1; d >= 0; d--)
        if (d != array->slowest) {
            scaled[d] = i % walk->count[d];
            i /= walk->count[d];
        }
    scaled[array->slowest] = i;
}

static int walk_array(struct array *array)
{
    struct weir_walk *walk = array->walk;
    int rc = 0;
    for (uint32_t i = 0; i < walk->n_chunks && rc == 0; i++) {
        uint64_t scaled[WEIR_GRID_RANK_MAX], number;
        place_of(array, i, scaled);
        if (!number_of(array, scaled, &number))
            rc = weir_walk_bad(walk, "the index does not match the dataset");
        struct run *run = &array->run;
        if (rc == 0 && (number < run->first || number - run->first >= run->n))
            rc = array->load(array, number);
        if (rc == 0 && run->elements && number - run->first < run->n)
            rc = note_element(walk, run->elements + (number - run->first) * array->element_bytes, array->element_bytes,
                              scaled);
    }
    free(array->run.bytes);
    return rc;
}

/* Records a range that was never written as a run without elements. */
static int no_elements(struct array *array, uint64_t first, uint64_t n)
{
    free(array->run.bytes);
    array->run = (struct run){.first = first, .n = n};
    return 0;
}

/* ---- fixed arrays ---- */

struct fixed {
    uint64_t n, page, pages, address; /* page: elements per page; 0 = not paged */
    uint8_t *prefix;                  /* prefix of a paged block, which includes the page bitmap */
    uint64_t prefix_bytes;
};

static int load_fixed(struct array *array, uint64_t number)
{
    struct fixed *f = array->user;
    if (number >= f->n)
        return weir_walk_bad(array->walk, "the index does not match the dataset");
    if (f->page == 0)
        return read_run(array->walk, f->address, PREFIX, array->element_bytes, 0, f->n, "FADB", &array->run);
    uint64_t page = number / f->page, first = page * f->page, left = f->n - first;
    uint64_t n = left < f->page ? left : f->page;
    if (!bit(f->prefix + PREFIX, page))
        return no_elements(array, first, n);
    uint64_t address = f->address + f->prefix_bytes + page * (f->page * array->element_bytes + CHECKSUM);
    return read_run(array->walk, address, 0, array->element_bytes, first, n, NULL, &array->run);
}

int weir_walk_fixed(struct weir_walk *walk, uint64_t address)
{
    enum { HEAD = 28, PAGE_BITS_MAX = 40 };
    uint8_t *head;
    int rc = weir_walk_block(walk, address, "FAHD", HEAD, &head);
    if (rc < 0)
        return rc;
    uint64_t client = head[5], element_bytes = head[6], page_bits = head[7];
    struct fixed f = {.n = weir_le(head + 8, 8), .address = weir_le(head + 16, 8)};
    free(head);
    if (!is_element(walk, client, element_bytes) || f.n > walk->file->size_bytes || page_bits > PAGE_BITS_MAX)
        return weir_walk_bad(walk, "the index does not match the dataset");
    if (f.address == UINT64_MAX)
        return 0;
    if (f.n > 1ull << page_bits) {
        f.page = 1ull << page_bits;
        f.pages = (f.n + f.page - 1) / f.page;
        f.prefix_bytes = PREFIX + (f.pages + 7) / 8 + CHECKSUM;
        rc = weir_walk_block(walk, f.address, "FADB", f.prefix_bytes, &f.prefix);
    }
    struct array array = {walk, element_bytes, 0, {0}, load_fixed, &f};
    if (rc == 0)
        rc = walk_array(&array);
    free(f.prefix);
    return rc;
}

/* ---- extensible arrays ---- */

/* The elements in the index block are followed by super blocks 0, 1, 2, ... Super block u has 2^(u/2) data blocks of
 * 2^((u+1)/2) x min_elements elements each. For the first direct_supers super blocks, the index block contains the
 * addresses of their data blocks. For the remaining ones, it contains the addresses of the super blocks. */
enum { SUPERS_MAX = 64 };

struct extensible {
    uint64_t max_bits, in_index, min_elements, min_pointers, page; /* page: elements per page */
    int supers, direct_supers;
    uint64_t start[SUPERS_MAX],
        start_block[SUPERS_MAX]; /* number of elements and of data blocks before super block u */
    uint64_t offset_bytes;       /* size of the field in a block that contains its offset */
    uint8_t *index;              /* the index block */
    const uint8_t *block_addresses, *super_addresses;
    int super_read; /* number of the super block in memory; -1 = none */
    uint8_t *super;
};

static uint64_t blocks_of(int u)
{
    return 1ull << u / 2;
}

static uint64_t elements_of(const struct extensible *e, int u)
{
    return (1ull << (u + 1) / 2) * e->min_elements;
}

static int log2_of(uint64_t n)
{
    return 63 - __builtin_clzll(n);
}

/* Returns the number of pages in a data block of super block u; 0 = not paged. */
static uint64_t pages_of(const struct extensible *e, int u)
{
    return elements_of(e, u) > e->page ? elements_of(e, u) / e->page : 0;
}

static uint64_t super_bits_bytes(const struct extensible *e, int u)
{
    return blocks_of(u) * ((pages_of(e, u) + 7) / 8);
}

static int load_super(struct array *array, int u, bool *there)
{
    struct extensible *e = array->user;
    uint64_t address = weir_le(e->super_addresses + 8 * (u - e->direct_supers), 8);
    *there = address != UINT64_MAX;
    if (!*there || e->super_read == u)
        return 0;
    free(e->super);
    e->super = NULL;
    e->super_read = -1;
    uint64_t bytes = PREFIX + e->offset_bytes + super_bits_bytes(e, u) + 8 * blocks_of(u) + CHECKSUM;
    int rc = weir_walk_block(array->walk, address, "EASB", bytes, &e->super);
    if (rc == 0)
        e->super_read = u;
    return rc;
}

/* Loads the data block that contains element `at` of super block u. */
static int load_block(struct array *array, int u, uint64_t at)
{
    struct extensible *e = array->user;
    uint64_t n = elements_of(e, u), block = at / n, first = e->in_index + e->start[u] + block * n, address;
    uint64_t before = PREFIX + e->offset_bytes, page = 0, pages = 0;
    if (u < e->direct_supers) {
        address = weir_le(e->block_addresses + 8 * (e->start_block[u] + block), 8);
    } else {
        bool there;
        int rc = load_super(array, u, &there);
        if (rc < 0)
            return rc;
        if (!there)
            return no_elements(array, first, n);
        const uint8_t *bits = e->super + before;
        address = weir_le(bits + super_bits_bytes(e, u) + 8 * block, 8);
        pages = pages_of(e, u);
        page = pages ? at % n / e->page : 0;
        if (pages && !bit(bits, block * pages + page))
            return no_elements(array, first + page * e->page, e->page);
    }
    if (address == UINT64_MAX)
        return no_elements(array, first, n);
    if (!pages)
        return read_run(array->walk, address, before, array->element_bytes, first, n, "EADB", &array->run);
    uint64_t page_bytes = e->page * array->element_bytes + CHECKSUM;
    return read_run(array->walk, address + before + CHECKSUM + page * page_bytes, 0, array->element_bytes,
                    first + page * e->page, e->page, NULL, &array->run);
}

static int load_extensible(struct array *array, uint64_t number)
{
    struct extensible *e = array->user;
    if (number < e->in_index) {
        free(array->run.bytes);
        array->run = (struct run){NULL, e->index + PREFIX, 0, e->in_index};
        return 0;
    }
    uint64_t at = number - e->in_index;
    int u = log2_of(at / e->min_elements + 1);
    if (u >= e->supers)
        return weir_walk_bad(array->walk, "the index does not match the dataset");
    return load_block(array, u, at - e->start[u]);
}

/* Returns false for parameters that no valid file has. */
static bool lay_out(struct extensible *e, const uint8_t *head)
{
    uint64_t page_bits = head[11];
    e->max_bits = head[7];
    e->in_index = head[8];
    e->min_elements = head[9];
    e->min_pointers = head[10];
    bool powers = e->min_elements && !(e->min_elements & (e->min_elements - 1)) && e->min_pointers > 1 &&
                  !(e->min_pointers & (e->min_pointers - 1));
    if (!powers || e->max_bits > 48 || page_bits > 32 || (int)e->max_bits < log2_of(e->min_elements))
        return false;
    e->page = 1ull << page_bits;
    e->supers = 1 + (int)e->max_bits - log2_of(e->min_elements);
    e->direct_supers = 2 * log2_of(e->min_pointers);
    e->offset_bytes = (e->max_bits + 7) / 8;
    e->super_read = -1;
    if (e->supers > SUPERS_MAX || e->direct_supers > e->supers)
        return false;
    for (int u = 0; u + 1 < e->supers; u++) {
        e->start[u + 1] = e->start[u] + blocks_of(u) * elements_of(e, u);
        e->start_block[u + 1] = e->start_block[u] + blocks_of(u);
    }
    return true;
}

static int unlimited_dimension(const struct weir_walk *walk)
{
    int found = -1;
    for (int d = 0; d < walk->grid->rank; d++)
        if (walk->max_count[d] == UINT64_MAX)
            found = found < 0 ? d : walk->grid->rank;
    return found < walk->grid->rank ? found : -1;
}

static int walk_from_index(struct weir_walk *walk, struct extensible *e, uint64_t element_bytes, uint64_t address)
{
    uint64_t blocks = 2 * (e->min_pointers - 1), supers = (uint64_t)(e->supers - e->direct_supers);
    uint64_t elements = e->in_index * element_bytes;
    int rc = weir_walk_block(walk, address, "EAIB", PREFIX + elements + 8 * (blocks + supers) + CHECKSUM, &e->index);
    if (rc < 0)
        return rc;
    e->block_addresses = e->index + PREFIX + elements;
    e->super_addresses = e->block_addresses + 8 * blocks;
    struct array array = {walk, element_bytes, unlimited_dimension(walk), {0}, load_extensible, e};
    rc = array.slowest < 0 ? weir_walk_bad(walk, "the index does not match the dataset") : walk_array(&array);
    free(e->index);
    free(e->super);
    return rc;
}

int weir_walk_extensible(struct weir_walk *walk, uint64_t address)
{
    enum { HEAD = 72 };
    struct extensible e = {0};
    uint8_t *head;
    int rc = weir_walk_block(walk, address, "EAHD", HEAD, &head);
    if (rc < 0)
        return rc;
    bool fits = is_element(walk, head[5], head[6]) && lay_out(&e, head);
    uint64_t element_bytes = head[6], index = weir_le(head + 60, 8);
    free(head);
    if (!fits)
        return weir_walk_bad(walk, "the index does not match the dataset");
    return index == UINT64_MAX ? 0 : walk_from_index(walk, &e, element_bytes, index);
}
