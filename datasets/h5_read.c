#include "datasets/h5_read_priv.h"
#include "datasets/heap_priv.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <hdf5.h>

enum { HEAP_REF_BYTES = 16 };
static const uint64_t FLOATS_MAX_BYTES = 1ull << 30;
/* HDF5 1.10 searches a list for each chunk's address: the time to find all grows with the square of their number. */
static const uint64_t CHUNKS_MAX = 10000;

struct weir_h5 {
    hid_t file;
    int fd; /* for raw bytes: references and checks */
    uint64_t size_bytes;
    uint64_t user_block;
    bool plain_sizes;     /* addresses and lengths of 8 bytes */
    unsigned long fileno; /* tells objects of this file from those behind external links */
    bool chunks_checked, chunks_agree;
};

/* ---- errors ---- */

static herr_t keep_innermost(unsigned n, const H5E_error2_t *entry, void *text)
{
    if (n == 0 && entry->desc)
        snprintf(text, 256, "%s", entry->desc);
    return 0;
}

/* The library's own words for what just failed, from the innermost frame of its error stack. */
static const char *library_says(char text[256])
{
    snprintf(text, 256, "no reason given");
    H5Ewalk2(H5E_DEFAULT, H5E_WALK_UPWARD, keep_innermost, text);
    return text;
}

static int fail(struct weir_err *err, const char *path, const char *what)
{
    char text[256];
    return weir_err_set(err, -EBADMSG, "%s: %s (HDF5: %s)", path, what, library_says(text));
}

/* ---- files ---- */

static int read_facts(struct weir_h5 *h5)
{
    struct stat st;
    if (fstat(h5->fd, &st) != 0)
        return -errno;
    h5->size_bytes = (uint64_t)st.st_size;
    hid_t plist = H5Fget_create_plist(h5->file);
    hsize_t user_block = 0;
    size_t address_bytes = 0, length_bytes = 0;
    H5O_info_t info;
    bool fine = plist >= 0 && H5Pget_userblock(plist, &user_block) >= 0 &&
                H5Pget_sizes(plist, &address_bytes, &length_bytes) >= 0 && H5Oget_info(h5->file, &info) >= 0;
    if (plist >= 0)
        H5Pclose(plist);
    if (!fine)
        return -EBADMSG;
    h5->user_block = user_block;
    h5->plain_sizes = address_bytes == 8 && length_bytes == 8;
    h5->fileno = info.fileno;
    return 0;
}

static int open_file(struct weir_h5 *h5, const char *path, struct weir_err *err)
{
    h5->fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK); /* a FIFO of this name must not hold us */
    if (h5->fd < 0)
        return weir_err_set(err, -errno, "%s; check the path and its permissions", strerror(errno));
    struct stat st;
    if (fstat(h5->fd, &st) == 0 && !S_ISREG(st.st_mode))
        return weir_err_set(err, -EINVAL, "not a regular file; give a folder of episodes or an HDF5 file");
    if (H5Fis_hdf5(path) <= 0)
        return weir_err_set(err, -EBADMSG,
                            "not an HDF5 file; remove it, or convert it to one of the layouts that "
                            "`weir doctor` lists");
    h5->file = H5Fopen(path, H5F_ACC_RDONLY, H5P_DEFAULT);
    char text[256];
    if (h5->file < 0)
        return weir_err_set(err, -EBADMSG, "cannot be opened as HDF5: %s; is it complete, and not being written?",
                            library_says(text));
    int rc = read_facts(h5);
    return rc < 0 ? weir_err_set(err, rc, "its HDF5 superblock cannot be read: %s", library_says(text)) : 0;
}

int weir_h5_open(struct weir_h5 **out, const char *path, struct weir_err *err)
{
    *out = NULL;
    H5Eset_auto2(H5E_DEFAULT, NULL, NULL); /* per thread: errors are reported by us */
    struct weir_h5 *h5 = calloc(1, sizeof *h5);
    if (!h5)
        return weir_err_set(err, -ENOMEM, "out of memory");
    h5->fd = -1;
    h5->file = H5I_INVALID_HID;
    int rc = open_file(h5, path, err);
    if (rc < 0)
        weir_h5_close(&h5);
    *out = h5;
    return rc;
}

void weir_h5_close(struct weir_h5 **h5)
{
    if (!*h5)
        return;
    if ((*h5)->file >= 0)
        H5Fclose((*h5)->file);
    if ((*h5)->fd >= 0)
        close((*h5)->fd);
    free(*h5);
    *h5 = NULL;
}

/* ---- structure ---- */

bool weir_h5_has(struct weir_h5 *h5, const char *path)
{
    char part[512];
    size_t length = strlen(path);
    if (length == 0 || length >= sizeof part)
        return false;
    for (size_t i = 1; i <= length; i++) {
        if (path[i] != '/' && path[i] != '\0')
            continue;
        memcpy(part, path, i);
        part[i] = '\0';
        if (H5Lexists(h5->file, part, H5P_DEFAULT) <= 0)
            return false;
    }
    return H5Oexists_by_name(h5->file, path, H5P_DEFAULT) > 0;
}

struct name_list {
    char (*names)[64];
    int n, capacity;
    bool too_long;
};

static herr_t add_name(hid_t group, const char *name, const H5L_info_t *info, void *user)
{
    (void)group;
    (void)info;
    struct name_list *list = user;
    if (strlen(name) >= sizeof list->names[0]) {
        list->too_long = true;
        return 0;
    }
    if (list->n == list->capacity) {
        int capacity = list->capacity ? list->capacity * 2 : 16;
        void *names = realloc(list->names, sizeof list->names[0] * (size_t)capacity);
        if (!names)
            return -1;
        list->names = names;
        list->capacity = capacity;
    }
    strcpy(list->names[list->n++], name);
    return 0;
}

int weir_h5_list(struct weir_h5 *h5, const char *group, char (**names)[64], int *n, struct weir_err *err)
{
    *names = NULL;
    *n = 0;
    hid_t id = H5Gopen2(h5->file, group, H5P_DEFAULT);
    if (id < 0)
        return fail(err, group, "is not a group that can be read");
    struct name_list list = {0};
    herr_t rc = H5Literate(id, H5_INDEX_NAME, H5_ITER_INC, NULL, add_name, &list);
    H5Gclose(id);
    if (rc < 0 || list.too_long) {
        free(list.names);
        return rc < 0
                   ? fail(err, group, "its members cannot be listed")
                   : weir_err_set(err, -ENAMETOOLONG, "%s: has a member whose name is longer than %zu bytes; rename it",
                                  group, sizeof list.names[0] - 1);
    }
    *names = list.names;
    *n = list.n;
    return 0;
}

static enum weir_h5_class class_of(hid_t type)
{
    switch (H5Tget_class(type)) {
    case H5T_INTEGER:
        return WEIR_H5_INTEGER;
    case H5T_FLOAT:
        return WEIR_H5_FLOAT;
    case H5T_STRING:
        return WEIR_H5_STRING;
    case H5T_VLEN: {
        hid_t base = H5Tget_super(type);
        bool bytes = base >= 0 && H5Tget_class(base) == H5T_INTEGER && H5Tget_size(base) == 1;
        if (base >= 0)
            H5Tclose(base);
        return bytes ? WEIR_H5_VLEN_BYTES : WEIR_H5_OTHER;
    }
    default:
        return WEIR_H5_OTHER;
    }
}

/* A dataset with what is asked of it all the time. */
struct open_dataset {
    hid_t id, type, space, plist;
    struct weir_h5_shape shape;
};

static void dataset_close(struct open_dataset *d)
{
    if (d->plist >= 0)
        H5Pclose(d->plist);
    if (d->space >= 0)
        H5Sclose(d->space);
    if (d->type >= 0)
        H5Tclose(d->type);
    if (d->id >= 0)
        H5Dclose(d->id);
}

static int dataset_shape(struct open_dataset *d, const char *path, struct weir_err *err)
{
    int rank = H5Sget_simple_extent_ndims(d->space);
    if (rank < 0 || rank > WEIR_H5_RANK_MAX)
        return weir_err_set(err, -EBADMSG, "%s: has rank %d; at most %d is read", path, rank, WEIR_H5_RANK_MAX);
    hsize_t dims[WEIR_H5_RANK_MAX] = {0};
    if (rank > 0 && H5Sget_simple_extent_dims(d->space, dims, NULL) < 0)
        return fail(err, path, "its shape cannot be read");
    d->shape.rank = rank;
    for (int i = 0; i < rank; i++)
        d->shape.dims[i] = dims[i];
    d->shape.class = class_of(d->type);
    d->shape.type_bytes = H5Tget_size(d->type);
    return 0;
}

static int dataset_open(struct weir_h5 *h5, const char *path, struct open_dataset *d, struct weir_err *err)
{
    *d = (struct open_dataset){H5I_INVALID_HID, H5I_INVALID_HID, H5I_INVALID_HID, H5I_INVALID_HID, {0}};
    if (!weir_h5_has(h5, path))
        return weir_err_set(err, -ENOENT, "%s: missing dataset; the layout needs it", path);
    d->id = H5Dopen2(h5->file, path, H5P_DEFAULT);
    if (d->id < 0)
        return fail(err, path, "is not a dataset that can be opened");
    d->type = H5Dget_type(d->id);
    d->space = H5Dget_space(d->id);
    d->plist = H5Dget_create_plist(d->id);
    int rc = d->type < 0 || d->space < 0 || d->plist < 0 ? fail(err, path, "its header cannot be read")
                                                         : dataset_shape(d, path, err);
    if (rc < 0)
        dataset_close(d);
    return rc;
}

int weir_h5_shape(struct weir_h5 *h5, const char *path, struct weir_h5_shape *shape, struct weir_err *err)
{
    struct open_dataset d;
    int rc = dataset_open(h5, path, &d, err);
    if (rc < 0)
        return rc;
    *shape = d.shape;
    dataset_close(&d);
    return 0;
}

static int read_floats(struct open_dataset *d, const char *path, float **values, struct weir_err *err)
{
    if (d->shape.class != WEIR_H5_FLOAT && d->shape.class != WEIR_H5_INTEGER)
        return weir_err_set(err, -EBADMSG, "%s: holds no numbers; floats or integers are needed", path);
    uint64_t n = 1;
    for (int i = 0; i < d->shape.rank; i++)
        if (__builtin_mul_overflow(n, d->shape.dims[i], &n) || n > FLOATS_MAX_BYTES / sizeof(float))
            return weir_err_set(err, -EFBIG, "%s: is larger than 1 GiB of floats; is its shape right?", path);
    H5D_layout_t layout = H5Pget_layout(d->plist);
    bool own = layout == H5D_CHUNKED || (layout == H5D_CONTIGUOUS && H5Pget_external_count(d->plist) == 0);
    if (n > 0 && own && H5Dget_storage_size(d->id) == 0)
        return weir_err_set(err, -EBADMSG, "%s: was never written; remove the episode", path);
    *values = malloc(n ? n * sizeof(float) : 1);
    if (!*values)
        return weir_err_set(err, -ENOMEM, "%s: out of memory", path);
    if (n == 0 || H5Dread(d->id, H5T_NATIVE_FLOAT, H5S_ALL, H5S_ALL, H5P_DEFAULT, *values) >= 0)
        return 0;
    free(*values);
    *values = NULL;
    return fail(err, path, "cannot be read");
}

int weir_h5_read_floats(struct weir_h5 *h5, const char *path, float **values, struct weir_h5_shape *shape,
                        struct weir_err *err)
{
    *values = NULL;
    struct open_dataset d;
    int rc = dataset_open(h5, path, &d, err);
    if (rc < 0)
        return rc;
    *shape = d.shape;
    rc = read_floats(&d, path, values, err);
    dataset_close(&d);
    return rc;
}

/* ---- where rows lie ---- */

static int library(struct weir_h5_place *place)
{
    place->storage = WEIR_H5_LIBRARY;
    return 0;
}

static bool inside(const struct weir_h5 *h5, uint64_t offset, uint64_t length)
{
    return offset <= h5->size_bytes && length <= h5->size_bytes - offset;
}

static int pread_all(int fd, void *buffer, size_t length, uint64_t offset)
{
    for (size_t done = 0; done < length;) {
        ssize_t n = pread(fd, (char *)buffer + done, length - done, (off_t)(offset + done));
        if (n < 0 && errno == EINTR)
            continue;
        if (n <= 0)
            return n < 0 ? -errno : -ENODATA;
        done += (size_t)n;
    }
    return 0;
}

/* Reads n references stored one after the other. Addresses count from the base, which is after the user block. */
static int read_refs(const struct weir_h5 *h5, uint64_t offset, uint64_t n, struct weir_heap_ref *refs)
{
    uint8_t block[HEAP_REF_BYTES * 256];
    for (uint64_t done = 0; done < n;) {
        uint64_t now = n - done < 256 ? n - done : 256;
        int rc = pread_all(h5->fd, block, now * HEAP_REF_BYTES, offset + done * HEAP_REF_BYTES);
        if (rc < 0)
            return rc;
        for (uint64_t i = 0; i < now; i++, done++) {
            const uint8_t *raw = block + i * HEAP_REF_BYTES;
            uint64_t address = weir_le(raw + 4, 8);
            bool empty = address == 0 || address == UINT64_MAX || address > UINT64_MAX - h5->user_block;
            refs[done] = (struct weir_heap_ref){empty ? 0 : address + h5->user_block, (uint32_t)weir_le(raw, 4),
                                                (uint32_t)weir_le(raw + 12, 4)};
        }
    }
    return 0;
}

/* HDF5 1.10's chunk addresses leave out the user block that H5Dget_offset includes, and versions may differ: one chunk
 * per file is compared with what the library reads. */
static bool chunks_agree(struct weir_h5 *h5, hid_t dataset, const hsize_t *coord, uint64_t offset, uint64_t length)
{
    if (h5->chunks_checked)
        return h5->chunks_agree;
    h5->chunks_checked = true;
    uint8_t *ours = malloc(length), *theirs = malloc(length);
    uint32_t mask = 0;
    h5->chunks_agree = ours && theirs && pread_all(h5->fd, ours, length, offset) == 0 &&
                       H5Dread_chunk(dataset, H5P_DEFAULT, coord, &mask, theirs) >= 0 &&
                       memcmp(ours, theirs, length) == 0;
    free(ours);
    free(theirs);
    return h5->chunks_agree;
}

static int chunk_offsets(struct weir_h5 *h5, const char *path, struct open_dataset *d, uint64_t rows_per_chunk,
                         struct weir_h5_place *place, struct weir_err *err)
{
    uint64_t steps = d->shape.dims[0], chunk_bytes = rows_per_chunk * place->row_bytes;
    for (uint64_t t = 0; t < steps; t += rows_per_chunk) {
        hsize_t coord[WEIR_H5_RANK_MAX] = {t};
        unsigned mask = 0;
        haddr_t address = HADDR_UNDEF;
        hsize_t size = 0;
        if (H5Dget_chunk_info_by_coord(d->id, coord, &mask, &address, &size) < 0)
            return fail(err, path, "its chunks cannot be located");
        bool there = address != HADDR_UNDEF && size != 0;
        uint64_t offset = there ? address + h5->user_block : UINT64_MAX;
        if (there && (size != chunk_bytes || !inside(h5, offset, size)))
            return weir_err_set(err, -EBADMSG, "%s: the chunk of frame %llu reaches past the end of the file", path,
                                (unsigned long long)t);
        if (there && !chunks_agree(h5, d->id, coord, offset, size))
            return library(place); /* chunk addresses disagree with the library's reads */
        for (uint64_t i = 0; i < rows_per_chunk && t + i < steps; i++)
            place->offsets[t + i] = there ? offset + i * place->row_bytes : UINT64_MAX;
    }
    return 0;
}

/* Turns offsets of references into references. */
static int chunked_refs(struct weir_h5 *h5, const char *path, uint64_t steps, struct weir_h5_place *place,
                        struct weir_err *err)
{
    place->refs = calloc(steps ? steps : 1, sizeof *place->refs);
    int rc = place->refs ? 0 : -ENOMEM;
    for (uint64_t t = 0; t < steps && rc == 0; t++)
        if (place->offsets[t] != UINT64_MAX)
            rc = read_refs(h5, place->offsets[t], 1, &place->refs[t]);
    free(place->offsets);
    place->offsets = NULL;
    place->storage = WEIR_H5_HEAP;
    return rc < 0 ? weir_err_set(err, rc, "%s: its references cannot be read: %s", path, strerror(-rc)) : 0;
}

static int locate_chunked(struct weir_h5 *h5, const char *path, struct open_dataset *d, struct weir_h5_place *place,
                          struct weir_err *err)
{
    hsize_t chunk[WEIR_H5_RANK_MAX];
    if (H5Pget_nfilters(d->plist) != 0)
        return library(place); /* filtered chunks */
    if (H5Pget_chunk(d->plist, d->shape.rank, chunk) != d->shape.rank || chunk[0] == 0)
        return fail(err, path, "its chunk shape cannot be read");
    for (int i = 1; i < d->shape.rank; i++)
        if (chunk[i] != d->shape.dims[i])
            return library(place); /* chunks that cut frames */
    uint64_t steps = d->shape.dims[0];
    if (steps > h5->size_bytes || chunk[0] > h5->size_bytes / place->row_bytes + 1)
        return library(place); /* chunks larger than the file */
    if (steps / chunk[0] > CHUNKS_MAX)
        return library(place); /* more chunks than can be found in good time */
    place->offsets = malloc((steps ? steps : 1) * sizeof *place->offsets);
    if (!place->offsets)
        return weir_err_set(err, -ENOMEM, "%s: out of memory", path);
    place->storage = WEIR_H5_CHUNKS;
    int rc = chunk_offsets(h5, path, d, chunk[0], place, err);
    if (rc == 0 && place->storage == WEIR_H5_CHUNKS && d->shape.class == WEIR_H5_VLEN_BYTES)
        rc = chunked_refs(h5, path, steps, place, err);
    if (rc < 0 || place->storage == WEIR_H5_LIBRARY) {
        free(place->offsets);
        place->offsets = NULL;
    }
    return rc;
}

static int locate_contiguous(struct weir_h5 *h5, const char *path, struct open_dataset *d, struct weir_h5_place *place,
                             struct weir_err *err)
{
    if (H5Pget_external_count(d->plist) > 0)
        return library(place); /* external raw files */
    if (H5Dget_storage_size(d->id) ==
        0)                     /* asked first: behind a user block, H5Dget_offset is 511 then, not undefined */
        return library(place); /* never written */
    haddr_t offset = H5Dget_offset(d->id);
    if (offset == HADDR_UNDEF)
        return library(place); /* without an address */
    uint64_t steps = d->shape.dims[0], total;
    if (__builtin_mul_overflow(steps, place->row_bytes, &total) || !inside(h5, offset, total))
        return weir_err_set(err, -ENODATA, "%s: its data reaches past the end of the file; is the file truncated?",
                            path);
    place->base = offset;
    place->storage = WEIR_H5_CONTIGUOUS;
    if (d->shape.class != WEIR_H5_VLEN_BYTES)
        return 0;
    place->storage = WEIR_H5_HEAP;
    place->refs = calloc(steps ? steps : 1, sizeof *place->refs);
    int rc = place->refs ? read_refs(h5, offset, steps, place->refs) : -ENOMEM;
    return rc < 0 ? weir_err_set(err, rc, "%s: its references cannot be read: %s", path, strerror(-rc)) : 0;
}

static int locate(struct weir_h5 *h5, const char *path, struct open_dataset *d, struct weir_h5_place *place,
                  struct weir_err *err)
{
    uint64_t row_bytes = d->shape.class == WEIR_H5_VLEN_BYTES ? HEAP_REF_BYTES : d->shape.type_bytes;
    for (int i = 1; i < d->shape.rank; i++)
        if (__builtin_mul_overflow(row_bytes, d->shape.dims[i], &row_bytes) || row_bytes > INT32_MAX)
            return weir_err_set(err, -EFBIG, "%s: a frame of over 2 GiB; is its shape right?", path);
    if (d->shape.rank < 1 || row_bytes == 0)
        return weir_err_set(err, -EBADMSG, "%s: has no frames; its shape has a zero in it", path);
    place->row_bytes = row_bytes;
    H5O_info_t info;
    if (H5Oget_info(d->id, &info) < 0)
        return fail(err, path, "its header cannot be read");
    if (info.fileno != h5->fileno)
        return library(place); /* behind an external link */
    if (d->shape.class == WEIR_H5_VLEN_BYTES && !h5->plain_sizes)
        return library(place); /* heap references that are not of 16 bytes */
    switch (H5Pget_layout(d->plist)) {
    case H5D_CONTIGUOUS:
        return locate_contiguous(h5, path, d, place, err);
    case H5D_CHUNKED:
        return locate_chunked(h5, path, d, place, err);
    case H5D_COMPACT:
        return library(place); /* compact */
    default:
        return library(place); /* virtual */
    }
}

int weir_h5_locate(struct weir_h5 *h5, const char *path, struct weir_h5_place *place, struct weir_err *err)
{
    *place = (struct weir_h5_place){0};
    struct open_dataset d;
    int rc = dataset_open(h5, path, &d, err);
    if (rc < 0)
        return rc;
    rc = locate(h5, path, &d, place, err);
    dataset_close(&d);
    if (rc < 0) {
        free(place->offsets);
        free(place->refs);
        *place = (struct weir_h5_place){0};
    }
    return rc;
}

/* ---- reading through the library ---- */

/* Here and below the file's own type is the memory's too: bytes are bytes, signed ones must not be clipped. */
static int read_vlen(struct open_dataset *d, const char *path, hid_t memory, void *buffer, size_t capacity,
                     size_t *length, struct weir_err *err)
{
    hvl_t element = {0, NULL};
    if (H5Dread(d->id, d->type, memory, d->space, H5P_DEFAULT, &element) < 0)
        return fail(err, path, "a frame cannot be read");
    int rc = element.len <= capacity ? 0 : -ENOSPC;
    if (rc == 0 && element.len > 0)
        memcpy(buffer, element.p, element.len);
    *length = element.len;
    H5Dvlen_reclaim(d->type, memory, H5P_DEFAULT, &element);
    return rc;
}

static int read_row(struct open_dataset *d, const char *path, uint64_t t, void *buffer, size_t capacity, size_t *length,
                    struct weir_err *err)
{
    hsize_t start[WEIR_H5_RANK_MAX] = {t}, count[WEIR_H5_RANK_MAX] = {1}, one = 1;
    size_t row_bytes = d->shape.type_bytes;
    for (int i = 1; i < d->shape.rank; i++) {
        count[i] = d->shape.dims[i];
        row_bytes *= d->shape.dims[i]; /* bounded by weir_h5_locate */
    }
    if (d->shape.rank < 1 || t >= d->shape.dims[0])
        return weir_err_set(err, -ENODATA, "%s: has no frame %llu", path, (unsigned long long)t);
    if (H5Sselect_hyperslab(d->space, H5S_SELECT_SET, start, NULL, count, NULL) < 0)
        return fail(err, path, "a frame cannot be selected");
    bool vlen = d->shape.class == WEIR_H5_VLEN_BYTES;
    *length = row_bytes;
    if (!vlen && (d->shape.class != WEIR_H5_INTEGER || d->shape.type_bytes != 1))
        return weir_err_set(err, -EBADMSG, "%s: its elements are not bytes", path);
    if (!vlen && row_bytes > capacity)
        return -ENOSPC;
    hid_t memory = vlen ? H5Screate_simple(1, &one, NULL) : H5Screate_simple(d->shape.rank, count, NULL);
    if (memory < 0)
        return fail(err, path, "a frame cannot be selected");
    int rc = 0;
    if (vlen)
        rc = read_vlen(d, path, memory, buffer, capacity, length, err);
    else if (H5Dread(d->id, d->type, memory, d->space, H5P_DEFAULT, buffer) < 0)
        rc = fail(err, path, "a frame cannot be read");
    H5Sclose(memory);
    return rc;
}

int weir_h5_read_row(struct weir_h5 *h5, const char *path, uint64_t t, void *buffer, size_t capacity, size_t *length,
                     struct weir_err *err)
{
    H5Eset_auto2(H5E_DEFAULT, NULL, NULL);
    *length = 0;
    struct open_dataset d;
    int rc = dataset_open(h5, path, &d, err);
    if (rc < 0)
        return rc;
    rc = read_row(&d, path, t, buffer, capacity, length, err);
    dataset_close(&d);
    return rc;
}

void weir_h5_library(char *text, size_t size)
{
    unsigned major = 0, minor = 0, release = 0;
    hbool_t safe = 0;
    H5get_libversion(&major, &minor, &release);
    H5is_library_threadsafe(&safe);
    snprintf(text, size, "HDF5 %u.%u.%u (%s)", major, minor, release,
             safe ? "thread-safe build: one global lock" : "not thread-safe");
}
