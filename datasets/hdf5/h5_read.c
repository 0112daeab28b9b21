#include "datasets/hdf5/h5_read.h"
#include "base/grow.h"
#include "base/shortage.h"
#include "datasets/hdf5/h5_guard_priv.h"
#include "datasets/hdf5/h5_read_priv.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <hdf5.h>

enum { HEAP_REF_BYTES = 16 };

/* ---- structure ---- */

void weir_h5_enter(struct weir_h5 *h5, const char *root)
{
    snprintf(h5->root, sizeof h5->root, "%s", root);
}

void weir_h5_absolute(const struct weir_h5 *h5, const char *path, char text[WEIR_STORE_PATH_MAX])
{
    const char *slash = *h5->root && *path != '/' ? "/" : "";
    if (snprintf(text, WEIR_STORE_PATH_MAX, "%s%s%s", h5->root, slash, path) >= WEIR_STORE_PATH_MAX)
        text[0] = '\0';
}

bool weir_h5_has(struct weir_h5 *h5, const char *relative)
{
    char path[WEIR_STORE_PATH_MAX], part[WEIR_STORE_PATH_MAX];
    weir_h5_absolute(h5, relative, path);
    size_t length = strlen(path);
    if (length == 0)
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

bool weir_h5_has_attribute(struct weir_h5 *h5, const char *relative, const char *name)
{
    char path[WEIR_STORE_PATH_MAX];
    weir_h5_absolute(h5, *relative ? relative : "/", path);
    return H5Aexists_by_name(h5->file, path, name, H5P_DEFAULT) > 0;
}

bool weir_h5_is_group(struct weir_h5 *h5, const char *relative)
{
    char path[WEIR_STORE_PATH_MAX];
    weir_h5_absolute(h5, relative, path);
    H5O_info_t info;
    return weir_h5_has(h5, relative) && H5Oget_info_by_name(h5->file, path, &info, H5P_DEFAULT) >= 0 &&
           info.type == H5O_TYPE_GROUP;
}

struct name_list {
    char (*names)[64];
    int n;
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
    if (!weir_grow(&list->names, (size_t)list->n, sizeof list->names[0]))
        return -1;
    strcpy(list->names[list->n++], name);
    return 0;
}

int weir_h5_list(struct weir_h5 *h5, const char *relative, char (**names)[64], int *n, struct weir_err *err)
{
    char group[WEIR_STORE_PATH_MAX];
    weir_h5_absolute(h5, relative, group);
    *names = NULL;
    *n = 0;
    hid_t id = H5Gopen2(h5->file, group, H5P_DEFAULT);
    if (id < 0)
        return weir_h5_fail(err, group, "is not a group that can be read");
    struct name_list found = {0};
    herr_t rc = H5Literate(id, H5_INDEX_NAME, H5_ITER_INC, NULL, add_name, &found);
    H5Gclose(id);
    if (rc < 0 || found.too_long) {
        free(found.names);
        return rc < 0
                   ? weir_h5_fail(err, group, "its members cannot be listed")
                   : weir_err_set(err, -ENAMETOOLONG, "%s: has a member whose name is longer than %zu bytes; rename it",
                                  group, sizeof found.names[0] - 1);
    }
    *names = found.names;
    *n = found.n;
    return 0;
}

/* Returns true if the number starts at the first bit of its bytes and ends within them. Otherwise its bytes cannot be
 * used as the value. */
static bool fills_its_bytes(hid_t type)
{
    return H5Tget_offset(type) == 0 && H5Tget_precision(type) <= 8 * H5Tget_size(type);
}

static enum weir_element class_of(hid_t type)
{
    switch (H5Tget_class(type)) {
    case H5T_INTEGER:
        return fills_its_bytes(type) ? WEIR_ELEMENT_INTEGER : WEIR_ELEMENT_OTHER;
    case H5T_FLOAT:
        return WEIR_ELEMENT_FLOAT;
    case H5T_STRING:
        return H5Tis_variable_str(type) > 0 ? WEIR_ELEMENT_VLEN_STRING : WEIR_ELEMENT_FIXED_BYTES;
    case H5T_OPAQUE:
        return WEIR_ELEMENT_FIXED_BYTES;
    case H5T_VLEN: {
        hid_t base = H5Tget_super(type);
        bool bytes = base >= 0 && H5Tget_class(base) == H5T_INTEGER && H5Tget_size(base) == 1;
        if (base >= 0)
            H5Tclose(base);
        return bytes ? WEIR_ELEMENT_VLEN_BYTES : WEIR_ELEMENT_OTHER;
    }
    default:
        return WEIR_ELEMENT_OTHER;
    }
}

void weir_h5_close_dataset(struct weir_h5_dataset *d)
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

static int dataset_shape(struct weir_h5_dataset *d, const char *path, struct weir_err *err)
{
    int rank = H5Sget_simple_extent_ndims(d->space);
    if (rank < 0 || rank > WEIR_GRID_RANK_MAX)
        return weir_err_set(err, -EBADMSG, "%s: has rank %d, but at most %d is supported", path, rank,
                            WEIR_GRID_RANK_MAX);
    hsize_t dims[WEIR_GRID_RANK_MAX] = {0};
    if (rank > 0 && H5Sget_simple_extent_dims(d->space, dims, NULL) < 0)
        return weir_h5_fail(err, path, "its shape cannot be read");
    d->shape.rank = rank;
    for (int i = 0; i < rank; i++)
        d->shape.dims[i] = dims[i];
    d->shape.element = class_of(d->type);
    d->shape.type_bytes = H5Tget_size(d->type);
    d->shape.is_big_endian =
        d->shape.element == WEIR_ELEMENT_INTEGER && d->shape.type_bytes > 1 && H5Tget_order(d->type) != H5T_ORDER_LE;
    d->shape.is_signed = d->shape.element == WEIR_ELEMENT_INTEGER && H5Tget_sign(d->type) == H5T_SGN_2;
    return 0;
}

/* If compact data is truncated, the library reads past its end. */
static int check_compact(const struct weir_h5_dataset *d, struct weir_err *err)
{
    uint64_t bytes = d->shape.type_bytes;
    bool fits = true;
    if (H5Pget_layout(d->plist) != H5D_COMPACT)
        return 0;
    for (int i = 0; i < d->shape.rank; i++)
        fits = fits && !__builtin_mul_overflow(bytes, d->shape.dims[i], &bytes);
    if (fits && bytes <= H5Dget_storage_size(d->id))
        return 0;
    return weir_err_set(err, -EBADMSG, "%s: contains fewer bytes than its shape requires; repair or remove the file",
                        d->path);
}

static int dataset_open(struct weir_h5 *h5, const char *path, struct weir_h5_dataset *d, struct weir_err *err)
{
    *d = (struct weir_h5_dataset){
        .id = H5I_INVALID_HID, .type = H5I_INVALID_HID, .space = H5I_INVALID_HID, .plist = H5I_INVALID_HID};
    weir_h5_absolute(h5, path, d->path);
    if (!weir_h5_has(h5, path))
        return weir_err_set(err, -ENOENT, "%s: missing dataset; the layout needs it", *d->path ? d->path : path);
    d->id = H5Dopen2(h5->file, d->path, H5P_DEFAULT);
    if (d->id < 0)
        return weir_h5_fail(err, d->path, "is not a dataset that can be opened");
    d->type = H5Dget_type(d->id);
    d->space = H5Dget_space(d->id);
    d->plist = H5Dget_create_plist(d->id);
    int rc = d->type < 0 || d->space < 0 || d->plist < 0 ? weir_h5_fail(err, d->path, "its header cannot be read")
                                                         : dataset_shape(d, d->path, err);
    if (rc == 0)
        rc = check_compact(d, err);
    if (rc < 0)
        weir_h5_close_dataset(d);
    return rc;
}

int weir_h5_open_whole(struct weir_h5 *h5, const char *path, struct weir_h5_dataset *d, struct weir_err *err)
{
    int rc = dataset_open(h5, path, d, err);
    if (rc < 0 || H5Pget_layout(d->plist) != H5D_VIRTUAL)
        return rc;
    rc = weir_h5_check_extent(d->path, d->id, err);
    if (rc < 0)
        weir_h5_close_dataset(d);
    return rc;
}

int weir_h5_shape(struct weir_h5 *h5, const char *path, struct weir_array_shape *found, struct weir_err *err)
{
    struct weir_h5_dataset d;
    int rc = weir_h5_open_whole(h5, path, &d, err);
    if (rc < 0)
        return rc;
    *found = d.shape;
    weir_h5_close_dataset(&d);
    return 0;
}

/* ---- files ---- */

static int read_facts(struct weir_h5 *h5)
{
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

static int check_is_file(const char *path, struct weir_err *err)
{
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK); /* O_NONBLOCK: opening a FIFO must not block */
    if (fd < 0)
        return weir_err_set(err, -errno, "%s; %s", strerror(errno), weir_open_advice(-errno));
    struct stat st;
    bool is_file = fstat(fd, &st) == 0 && S_ISREG(st.st_mode);
    close(fd);
    return is_file ? 0 : weir_err_set(err, -EINVAL, "not a regular file; specify a folder of episodes or an HDF5 file");
}

static int open_file(struct weir_h5 *h5, const char *path, struct weir_err *err)
{
    int checked = weir_h5_supply.read ? 0 : check_is_file(path, err);
    if (checked < 0)
        return checked;
    h5->file = H5Fopen(path, H5F_ACC_RDONLY, (hid_t)weir_h5_guarded());
    char text[256];
    if (h5->file < 0) {
        weir_h5_library_message(text);
        if (weir_h5_machine_error(NULL) < 0)
            return weir_h5_machine_error(err);
        if (!weir_h5_supply.read && H5Fis_hdf5(path) <= 0)
            return weir_err_set(err, -EBADMSG,
                                "not an HDF5 file; move it away, or convert it to one of the layouts that "
                                "`weir doctor` lists");
        if (strstr(text, "already open for")) /* a mark in the file, which closing it removes */
            return weir_err_set(err, -EBADMSG,
                                "was not closed by the program that writes it (HDF5: %s); if that program has ended, "
                                "`h5clear -s` removes the mark from a copy of the file",
                                text);
        return weir_err_set(err, -EBADMSG, "cannot be opened as HDF5: %s; is it incomplete, or still being written?",
                            text);
    }
    int rc = read_facts(h5);
    return rc < 0 ? weir_err_set(err, rc,
                                 "its root group cannot be read: %s; was it closed by the program that wrote it, and "
                                 "copied completely?",
                                 weir_h5_library_message(text))
                  : 0;
}

int weir_h5_open(struct weir_h5 **out, const char *path, struct weir_err *err)
{
    *out = NULL;
    weir_h5_watch_errors();
    struct weir_h5 *h5 = calloc(1, sizeof *h5);
    if (!h5)
        return weir_no_memory(err);
    h5->file = H5I_INVALID_HID;
    int rc = open_file(h5, path, err);
    if (rc < 0)
        weir_h5_close(&h5);
    *out = h5;
    return rc;
}

void weir_h5_ask_about(const char *root, const char *path, bool allow_external)
{
    weir_inside_set(&weir_h5_inside, root, path, allow_external);
}

void weir_h5_supply_from(const struct weir_h5_supply *supply)
{
    weir_h5_supply = *supply;
}

int weir_h5_refused(struct weir_err *err)
{
    if (!weir_h5_inside.refusal[0])
        return 0;
    *err = WEIR_ERR_NONE;
    return weir_err_set(err, -EPERM, "%s", weir_h5_inside.refusal);
}

bool weir_h5_search_begin(void)
{
    return !weir_h5_supply.read && !weir_h5_inside.refusal[0] && weir_h5_machine_error(NULL) == 0;
}

void weir_h5_search_end(void)
{
    weir_h5_inside.refusal[0] = '\0';
    weir_h5_watch_errors();
}

uint64_t weir_h5_user_block(const struct weir_h5 *h5)
{
    return h5->user_block;
}

void weir_h5_close(struct weir_h5 **h5)
{
    if (!*h5)
        return;
    if ((*h5)->file >= 0)
        H5Fclose((*h5)->file);
    free(*h5);
    *h5 = NULL;
    H5Eclear2(H5E_DEFAULT); /* an error that remains on a thread's stack prevents the library from closing at exit */
}

/* ---- storage of a dataset ---- */

static void read_filters(const struct weir_h5_dataset *d, struct weir_h5_description *out)
{
    int n = H5Pget_nfilters(d->plist);
    out->filters.n = n < 0 ? 0 : n < WEIR_FILTERS_MAX ? n : WEIR_FILTERS_MAX;
    out->filters_kept = n >= 0 && n <= WEIR_FILTERS_MAX;
    for (int i = 0; i < out->filters.n; i++) {
        unsigned flags, values[8] = {0}, config;
        size_t count = sizeof values / sizeof values[0];
        int id = H5Pget_filter2(d->plist, (unsigned)i, &flags, &count, values, 0, NULL, &config);
        out->filters.filter[i].id = id;
        out->filters.filter[i].element_bytes = id == WEIR_FILTER_SHUFFLE && count > 0 ? values[0] : 0;
        if (id < 0 || H5Zfilter_avail(id) <= 0)
            out->filter_missing = id;
    }
}

static void read_fill(const struct weir_h5_dataset *d, struct weir_h5_description *out)
{
    H5D_fill_value_t defined = H5D_FILL_VALUE_ERROR;
    if (out->shape.element == WEIR_ELEMENT_VLEN_BYTES || H5Pfill_value_defined(d->plist, &defined) < 0)
        return;
    if (defined != H5D_FILL_VALUE_USER_DEFINED) {
        out->fill_is_zero = true;
        return;
    }
    if (out->shape.type_bytes <= sizeof out->fill && H5Pget_fill_value(d->plist, d->type, out->fill) >= 0)
        out->fill_is_known = true;
}

/* Asks the library for the location of one chunk, to verify the chunk index. */
static void probe_chunk(struct weir_h5 *h5, const struct weir_h5_dataset *d, struct weir_h5_description *out)
{
    if (h5->chunks_probed)
        return;
    h5->chunks_probed = true;
    hsize_t coord[WEIR_GRID_RANK_MAX] = {0}, size = 0;
    unsigned mask = 0;
    haddr_t address = HADDR_UNDEF;
    if (H5Dget_chunk_info(d->id, d->space, 0, coord, &mask, &address, &size) < 0 || address == HADDR_UNDEF)
        return;
    out->probe = (struct weir_chunk){address + h5->user_block, (uint32_t)size, mask};
    out->has_probe = true;
    for (int i = 0; i < d->shape.rank; i++)
        out->probe_coord[i] = coord[i];
}

static int describe_chunks(struct weir_h5 *h5, const char *path, const struct weir_h5_dataset *d,
                           struct weir_h5_description *out, struct weir_err *err)
{
    struct weir_chunk_grid *grid = &out->grid;
    hsize_t chunk[WEIR_GRID_RANK_MAX], dims[WEIR_GRID_RANK_MAX], max_dims[WEIR_GRID_RANK_MAX];
    if (H5Pget_chunk(d->plist, d->shape.rank, chunk) != d->shape.rank ||
        H5Sget_simple_extent_dims(d->space, dims, max_dims) < 0)
        return weir_h5_fail(err, path, "its chunk shape cannot be read");
    grid->rank = d->shape.rank;
    grid->element_bytes = d->shape.element == WEIR_ELEMENT_VLEN_BYTES ? HEAP_REF_BYTES : (uint32_t)d->shape.type_bytes;
    for (int i = 0; i < d->shape.rank; i++) {
        grid->dims[i] = dims[i];
        grid->chunk[i] = chunk[i];
        grid->max_dims[i] = max_dims[i] == H5S_UNLIMITED ? UINT64_MAX : max_dims[i];
    }
    read_filters(d, out);
    grid->filtered = H5Pget_nfilters(d->plist) > 0;
    read_fill(d, out);
    if (H5Dget_storage_size(d->id) > 0 && h5->plain_sizes)
        probe_chunk(h5, d, out);
    return 0;
}

static int describe(struct weir_h5 *h5, const char *path, const struct weir_h5_dataset *d,
                    struct weir_h5_description *out, struct weir_err *err)
{
    H5O_info_t info;
    if (H5Oget_info(d->id, &info) < 0)
        return weir_h5_fail(err, path, "its header cannot be read");
    out->shape = d->shape;
    out->object_address = info.addr;
    out->other_file = info.fileno != h5->fileno;
    out->plain_sizes = h5->plain_sizes;
    /* This must be known before the offset is used: in a file with a user block, H5Dget_offset returns 511 instead of
     * "undefined" for an unwritten dataset. */
    out->written = H5Dget_storage_size(d->id) > 0;
    switch (H5Pget_layout(d->plist)) {
    case H5D_CONTIGUOUS: {
        out->layout = H5Pget_external_count(d->plist) > 0 ? WEIR_H5_EXTERNAL : WEIR_H5_CONTIGUOUS;
        haddr_t offset = out->written ? H5Dget_offset(d->id) : HADDR_UNDEF;
        out->offset = offset == HADDR_UNDEF ? UINT64_MAX : offset;
        return 0;
    }
    case H5D_CHUNKED:
        out->layout = WEIR_H5_CHUNKED;
        return describe_chunks(h5, path, d, out, err);
    case H5D_COMPACT:
        out->layout = WEIR_H5_COMPACT;
        return 0;
    default:
        out->layout = WEIR_H5_VIRTUAL;
        return 0;
    }
}

int weir_h5_describe(struct weir_h5 *h5, const char *path, struct weir_h5_description *out, struct weir_err *err)
{
    *out = (struct weir_h5_description){0};
    struct weir_h5_dataset d;
    int rc = weir_h5_open_whole(h5, path, &d, err);
    if (rc < 0)
        return rc;
    rc = describe(h5, d.path, &d, out, err);
    if (rc == 0 && (out->layout == WEIR_H5_EXTERNAL || out->layout == WEIR_H5_VIRTUAL))
        weir_h5_look_outside(d.id);
    weir_h5_close_dataset(&d);
    return rc;
}

/* ---- reading through the library ---- */

/* Here and below, the memory type is the file's own type, so that signed bytes are not clipped. */
static int read_vlen(struct weir_h5_dataset *d, const char *path, hid_t memory, void *buffer, size_t capacity,
                     size_t *length, struct weir_err *err)
{
    hvl_t element = {0, NULL};
    const struct weir_h5_read read = {path, d->type, false};
    int rc = weir_h5_read_selected(&read, d->id, d->space, memory, &element, err);
    if (rc < 0)
        return rc;
    rc = element.len <= capacity ? 0 : -ENOSPC;
    if (rc == 0 && element.len > 0)
        memcpy(buffer, element.p, element.len);
    *length = element.len;
    H5Dvlen_reclaim(d->type, memory, H5P_DEFAULT, &element);
    return rc;
}

static int read_row(struct weir_h5_dataset *d, const char *path, uint64_t t, void *buffer, size_t capacity,
                    size_t *length, struct weir_err *err)
{
    hsize_t start[WEIR_GRID_RANK_MAX] = {t}, count[WEIR_GRID_RANK_MAX] = {1}, one = 1;
    size_t row_bytes = d->shape.type_bytes;
    for (int i = 1; i < d->shape.rank; i++) {
        count[i] = d->shape.dims[i];
        if (__builtin_mul_overflow(row_bytes, d->shape.dims[i], &row_bytes))
            return -ENOSPC; /* the file has changed since its frames were located */
    }
    if (d->shape.rank < 1 || t >= d->shape.dims[0])
        return weir_err_set(err, -ENODATA, "%s: has no frame %llu", path, (unsigned long long)t);
    if (H5Sselect_hyperslab(d->space, H5S_SELECT_SET, start, NULL, count, NULL) < 0)
        return weir_h5_fail(err, path, "a frame cannot be selected");
    bool vlen = d->shape.element == WEIR_ELEMENT_VLEN_BYTES;
    *length = row_bytes;
    bool numbers = d->shape.element == WEIR_ELEMENT_INTEGER && d->shape.type_bytes <= 2;
    if (!vlen && !numbers && d->shape.element != WEIR_ELEMENT_FIXED_BYTES)
        return weir_err_set(err, -EBADMSG, "%s: its elements are neither pixels nor bytes", path);
    if (!vlen && row_bytes > capacity)
        return -ENOSPC;
    hid_t memory = vlen ? H5Screate_simple(1, &one, NULL) : H5Screate_simple(d->shape.rank, count, NULL);
    if (memory < 0)
        return weir_h5_fail(err, path, "a frame cannot be selected");
    const struct weir_h5_read read = {path, d->shape.is_big_endian ? H5T_NATIVE_UINT16 : d->type, false};
    int rc = vlen ? read_vlen(d, path, memory, buffer, capacity, length, err)
                  : weir_h5_read_selected(&read, d->id, d->space, memory, buffer, err);
    H5Sclose(memory);
    return rc;
}

int weir_h5_read_row(struct weir_h5 *h5, const char *path, uint64_t t, void *buffer, size_t capacity, size_t *length,
                     struct weir_err *err)
{
    weir_h5_watch_errors();
    *length = 0;
    struct weir_h5_dataset d;
    int rc = dataset_open(h5, path, &d, err);
    if (rc < 0)
        return rc;
    rc = read_row(&d, d.path, t, buffer, capacity, length, err);
    weir_h5_close_dataset(&d);
    return rc;
}

void weir_h5_library(char *text, size_t size)
{
    hbool_t safe = 0;
    H5is_library_threadsafe(&safe); /* calling the version function would start the library in this process */
    snprintf(text, size, "HDF5 %d.%d.%d (%s)", H5_VERS_MAJOR, H5_VERS_MINOR, H5_VERS_RELEASE,
             safe ? "thread-safe build: one global lock" : "not thread-safe");
}
