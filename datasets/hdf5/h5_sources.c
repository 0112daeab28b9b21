/* Reads virtual datasets. If a source is missing, truncated, damaged or unreadable, the library treats it as never
 * written and returns fill values. So this code follows each mapping itself. */
#include "datasets/hdf5/h5_guard_priv.h"
#include "datasets/hdf5/h5_read_priv.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <hdf5.h>

enum { RANK_MAX = 8, DEPTH_MAX = 8, BLOCKS_MAX = 1 << 20 };

struct extent {
    int rank;
    hsize_t start[RANK_MAX], stride[RANK_MAX], count[RANK_MAX], block[RANK_MAX];
};

/* The file and the dataset that one mapping names. */
struct source {
    char file[WEIR_INSIDE_PATH_MAX], dataset[WEIR_INSIDE_PATH_MAX];
};

static int read_at_depth(const struct weir_h5_read *read, hid_t dataset, hid_t space, hid_t memory, void *buffer,
                         int depth, struct weir_err *err);

static int fail(const struct weir_h5_read *read, struct weir_err *err, const char *what)
{
    return weir_h5_fail(err, read->path, what);
}

static void close_space(hid_t space)
{
    if (space >= 0)
        H5Sclose(space);
}

/* ---- opening a source ---- */

/* Writes candidate i of the paths where the library searches for a virtual source, in the library's order. Returns
 * false past the last candidate. from: the file that names the source. */
static bool candidate(const char *from, const char *name, int i, char path[WEIR_INSIDE_PATH_MAX])
{
    char real[PATH_MAX];
    const char *last = strrchr(name, '/'), *base = *name == '/' && last ? last + 1 : name;
    if (i == 0) {
        snprintf(path, WEIR_INSIDE_PATH_MAX, "%s", *name == '/' ? name : "");
        return true;
    }
    const char *prefix = getenv("HDF5_VDS_PREFIX");
    int at = 1;
    for (; prefix && *prefix; at++) {
        int length = (int)strcspn(prefix, ":");
        if (at == i) {
            weir_h5_prefixed(prefix, length, from, base, path);
            return true;
        }
        prefix += length + (prefix[length] == ':');
    }
    path[0] = '\0';
    if (i == at)
        weir_h5_beside(from, base, path);
    else if (i == at + 1)
        snprintf(path, WEIR_INSIDE_PATH_MAX, "%s", base);
    else if (i == at + 2 && realpath(from, real))
        weir_h5_beside(real, base, path);
    return i <= at + 2;
}

static int no_source(const struct weir_h5_read *read, const struct source *source, const char *why,
                     struct weir_err *err)
{
    if (weir_h5_inside.refusal[0])
        return weir_err_set(err, -EPERM, "%s: %s", read->path, weir_h5_inside.refusal);
    if (weir_h5_machine_error(NULL) < 0)
        return weir_h5_machine_error(err);
    return weir_err_set(err, -EBADMSG, "%s: its virtual source %.300s of %.300s %s", read->path, source->dataset,
                        source->file, why);
}

static const char is_missing[] = "is missing: the file does not exist";

/* Opens the file of a mapping. On failure, returns a negative identifier and writes the reason to why. */
static hid_t open_file(hid_t dataset, const char *name, char why[512])
{
    char from[WEIR_INSIDE_PATH_MAX], path[WEIR_INSIDE_PATH_MAX], text[256];
    snprintf(why, 512, "%s", is_missing);
    if (strcmp(name, ".") == 0)
        return H5Iget_file_id(dataset);
    hid_t file = H5I_INVALID_HID;
    bool go_on = weir_h5_file_name(dataset, from);
    for (int i = 0; go_on && file < 0 && candidate(from, name, i, path); i++) {
        if (!*path || (access(path, F_OK) != 0 && (errno == ENOENT || errno == ENOTDIR)))
            continue;
        if (access(path, R_OK) != 0 && errno == EACCES) {
            snprintf(why, 512, "cannot be read: %s", strerror(errno));
            continue;
        }
        file = H5Fopen(path, H5F_ACC_RDONLY, (hid_t)weir_h5_guarded());
        if (file < 0)
            snprintf(why, 512, "cannot be read: its file cannot be opened (HDF5: %s)", weir_h5_library_message(text));
        go_on = weir_h5_inside.refusal[0] == '\0';
    }
    return file;
}

static int open_source(const struct weir_h5_read *read, hid_t dataset, const struct source *source, hid_t *opened,
                       struct weir_err *err)
{
    char why[512];
    *opened = H5I_INVALID_HID;
    hid_t file = open_file(dataset, source->file, why);
    if (file < 0)
        return no_source(read, source, why, err);
    *opened = H5Dopen2(file, source->dataset, H5P_DEFAULT);
    H5Fclose(file); /* the open dataset keeps the file open */
    return *opened < 0 ? no_source(read, source, "is missing: its file has no such dataset", err) : 0;
}

/* ---- mappings ---- */

/* If everything is selected, converts the selection to a hyperslab, because only hyperslabs can be combined. */
static hid_t as_hyperslab(hid_t space)
{
    hsize_t dims[RANK_MAX], zero[RANK_MAX] = {0};
    if (space >= 0 && H5Sget_select_type(space) == H5S_SEL_ALL) {
        int rank = H5Sget_simple_extent_ndims(space);
        if (rank < 1 || rank > RANK_MAX || H5Sget_simple_extent_dims(space, dims, NULL) < 0 ||
            H5Sselect_hyperslab(space, H5S_SELECT_SET, zero, NULL, dims, NULL) < 0) {
            H5Sclose(space);
            return H5I_INVALID_HID;
        }
    }
    return space;
}

static bool is_hyperslab(hid_t space)
{
    return space >= 0 && H5Sget_select_type(space) == H5S_SEL_HYPERSLABS;
}

/* Returns the unlimited dimension of a mapping, with the mapping's selection in *extent. Returns -1 if no dimension is
 * unlimited. */
static int unlimited(hid_t space, struct extent *extent)
{
    extent->rank = H5Sget_simple_extent_ndims(space);
    if (extent->rank < 1 || extent->rank > RANK_MAX || H5Sis_regular_hyperslab(space) <= 0 ||
        H5Sget_regular_hyperslab(space, extent->start, extent->stride, extent->count, extent->block) < 0)
        return -1;
    for (int d = 0; d < extent->rank; d++)
        if (extent->count[d] == H5S_UNLIMITED || extent->block[d] == H5S_UNLIMITED)
            return d;
    return -1;
}

/* Returns a dataspace with the selection of extent that is large enough to hold it. */
static hid_t select_extent(const struct extent *extent)
{
    hsize_t dims[RANK_MAX];
    for (int d = 0; d < extent->rank; d++) {
        hsize_t last = extent->count[d] ? extent->count[d] - 1 : 0, span;
        if (__builtin_mul_overflow(last, extent->stride[d], &span) ||
            __builtin_add_overflow(span, extent->start[d], &span) ||
            __builtin_add_overflow(span, extent->block[d], &span) || span >= H5S_UNLIMITED)
            return H5I_INVALID_HID;
        dims[d] = span ? span : 1;
    }
    hid_t space = H5Screate_simple(extent->rank, dims, NULL);
    if (space >= 0 &&
        H5Sselect_hyperslab(space, H5S_SELECT_SET, extent->start, extent->stride, extent->count, extent->block) < 0) {
        H5Sclose(space);
        return H5I_INVALID_HID;
    }
    return space;
}

/* Progress of reading a virtual dataset. */
struct reading {
    const struct weir_h5_read *read;
    hid_t dataset, plist;
    hid_t space, memory;                  /* the selection, converted to hyperslabs */
    hid_t provided;                       /* the part that sources have provided so far; negative = nothing */
    hsize_t from[RANK_MAX], to[RANK_MAX]; /* bounds of the selection */
    void *buffer;
    int depth;
    struct weir_err lacking; /* error of a source that cannot be opened but may be needed */
    struct weir_err *err;
};

/* Reads the part of the selection that comes from this source. The source's shape may have changed since it was mapped,
 * so the selection is applied to its current shape. If a source is mapped as a whole, the mapping contains no shape. */
static int read_source(struct reading *r, const struct source *source, hid_t opened, hid_t from, hid_t to, hssize_t n)
{
    hid_t space = H5Dget_space(opened), memory = H5Sselect_project_intersection(r->space, r->memory, from);
    bool whole = H5Sget_select_type(to) == H5S_SEL_ALL;
    hid_t mapped = whole ? as_hyperslab(H5Dget_space(opened)) : H5Scopy(to), selected = H5I_INVALID_HID;
    bool fits = space >= 0 && is_hyperslab(mapped) &&
                H5Sget_simple_extent_ndims(space) == H5Sget_simple_extent_ndims(mapped) &&
                H5Sget_select_npoints(mapped) == H5Sget_select_npoints(from);
    if (fits)
        selected = H5Sselect_project_intersection(from, mapped, r->space);
    fits = selected >= 0 && memory >= 0 && H5Sget_select_npoints(selected) == n && H5Sget_select_npoints(memory) == n &&
           H5Sselect_copy(space, selected) >= 0 && H5Sselect_valid(space) > 0;
    int rc = fits ? read_at_depth(r->read, opened, space, memory, r->buffer, r->depth + 1, r->err)
                  : no_source(r->read, source, "does not have the shape that the mapping requires", r->err);
    close_space(selected);
    close_space(mapped);
    close_space(memory);
    close_space(space);
    return rc;
}

/* Reads the part of the selection that comes from one mapping. `from` is the mapping's selection in the virtual
 * dataset, and `to` is its selection in the source. opened: the source, if it is already open. Otherwise it is opened
 * here, but only if the part is not empty. */
static int read_part(struct reading *r, const struct source *source, hid_t opened, hid_t from, hid_t to)
{
    /* H5Scombine_select crashes on empty selections (1.10.8), so it is used only for unions of non-empty selections. */
    hid_t both = H5Sselect_project_intersection(r->space, r->space, from);
    hssize_t n = both < 0 ? -1 : H5Sget_select_npoints(both);
    hid_t provided = n <= 0 || r->provided < 0 ? both : H5Scombine_select(r->provided, H5S_SELECT_OR, both);
    if (provided != both)
        close_space(both);
    if (n <= 0 || provided < 0) {
        close_space(provided);
        return n == 0 ? 0 : fail(r->read, r->err, "its mappings cannot be followed");
    }
    close_space(r->provided);
    r->provided = provided;
    if (opened >= 0)
        return read_source(r, source, opened, from, to, n);
    int rc = open_source(r->read, r->dataset, source, &opened, r->err);
    if (rc == 0)
        rc = read_source(r, source, opened, from, to, n);
    if (opened >= 0)
        H5Dclose(opened);
    return rc;
}

/* Expands the name of a numbered source, such as "name_%b": "%b" becomes the number of the block, and "%%" a percent
 * sign. */
static bool numbered(const char *name, hsize_t block, char text[WEIR_INSIDE_PATH_MAX])
{
    size_t n = 0;
    for (const char *at = name; *at && n < WEIR_INSIDE_PATH_MAX; at++) {
        bool number = at[0] == '%' && at[1] == 'b', percent = at[0] == '%' && at[1] == '%';
        n += (size_t)(number ? snprintf(text + n, WEIR_INSIDE_PATH_MAX - n, "%llu", (unsigned long long)block)
                             : snprintf(text + n, WEIR_INSIDE_PATH_MAX - n, "%c", *at));
        at += number || percent;
    }
    text[n < WEIR_INSIDE_PATH_MAX ? n : 0] = '\0';
    return n < WEIR_INSIDE_PATH_MAX;
}

/* Reads a series of sources with numbered names, each of which provides one block of the virtual dataset. */
static int read_numbered(struct reading *r, const struct source *source, struct extent extent, int along, hid_t to)
{
    hsize_t start = extent.start[along], stride = extent.stride[along], block = extent.block[along];
    if (extent.count[along] != H5S_UNLIMITED || stride == 0 || r->to[along] < start)
        return 0;
    hsize_t first = r->from[along] < start + block ? 0 : (r->from[along] - start - block) / stride;
    hsize_t last = (r->to[along] - start) / stride;
    if (last - first >= BLOCKS_MAX)
        return weir_err_set(r->err, -EBADMSG, "%s: has too many mappings; repair or remove the file", r->read->path);
    struct source *one = malloc(sizeof *one);
    int rc = one ? 0 : weir_err_set(r->err, -ENOMEM, "%s: out of memory", r->read->path);
    for (hsize_t i = first; i <= last && rc == 0; i++) {
        extent.start[along] = start + i * stride;
        extent.count[along] = 1;
        hid_t from = select_extent(&extent);
        bool named = numbered(source->file, i, one->file) && numbered(source->dataset, i, one->dataset);
        rc = from >= 0 && named ? read_part(r, one, H5I_INVALID_HID, from, to)
                                : fail(r->read, r->err, "its mappings cannot be followed");
        close_space(from);
    }
    free(one);
    return rc;
}

/* Limits an unlimited selection to n elements along its unlimited dimension. Returns false if it cannot end there. */
static bool end_after(struct extent *extent, int along, hsize_t n)
{
    if (extent->block[along] == H5S_UNLIMITED) {
        extent->block[along] = n;
        return true;
    }
    extent->count[along] = n / extent->block[along];
    return n % extent->block[along] == 0;
}

/* Reads a source with an unlimited selection up to the current end of the source. */
static int read_growing(struct reading *r, const struct source *source, struct extent from, int along, hid_t to)
{
    struct extent part;
    hsize_t dims[RANK_MAX];
    hid_t opened;
    int of_source = unlimited(to, &part), rc = open_source(r->read, r->dataset, source, &opened, &r->lacking);
    if (rc < 0) /* after all mappings, the missing part is detected */
        return 0;
    hid_t space = H5Dget_space(opened), clipped = H5I_INVALID_HID, selected = H5I_INVALID_HID;
    hsize_t n = 0, unit = from.block[along] == H5S_UNLIMITED ? 1 : from.block[along];
    if (space >= 0 && H5Sget_simple_extent_ndims(space) == part.rank && part.block[of_source] && unit &&
        H5Sget_simple_extent_dims(space, dims, NULL) >= 0 && dims[of_source] > part.start[of_source]) {
        hsize_t left = dims[of_source] - part.start[of_source], block = part.block[of_source];
        if (block == H5S_UNLIMITED)
            n = left;
        else if (left >= block)
            n = ((left - block) / part.stride[of_source] + 1) * block;
        n -= n % unit;
    }
    if (n > 0 && end_after(&from, along, n) && end_after(&part, of_source, n)) {
        clipped = select_extent(&from);
        selected = select_extent(&part);
    }
    if (clipped >= 0 && selected >= 0 && H5Sget_select_npoints(clipped) == H5Sget_select_npoints(selected))
        rc = read_part(r, source, opened, clipped, selected);
    close_space(clipped);
    close_space(selected);
    close_space(space);
    H5Dclose(opened);
    return rc;
}

static bool misses(const struct reading *r, hid_t from)
{
    hsize_t start[RANK_MAX], end[RANK_MAX];
    if (H5Sget_select_bounds(from, start, end) < 0)
        return false;
    for (int d = 0; d < H5Sget_simple_extent_ndims(from); d++)
        if (start[d] > r->to[d] || end[d] < r->from[d])
            return true;
    return false;
}

static bool get_names(hid_t plist, size_t i, struct source *source)
{
    ssize_t file = H5Pget_virtual_filename(plist, i, source->file, sizeof source->file);
    ssize_t dataset = H5Pget_virtual_dsetname(plist, i, source->dataset, sizeof source->dataset);
    return file > 0 && file < WEIR_INSIDE_PATH_MAX && dataset > 0 && dataset < WEIR_INSIDE_PATH_MAX;
}

static int read_mapping(struct reading *r, size_t i, struct source *source)
{
    struct extent extent, other;
    hid_t from = as_hyperslab(H5Pget_virtual_vspace(r->plist, i));
    if (is_hyperslab(from) && H5Sget_simple_extent_ndims(from) == H5Sget_simple_extent_ndims(r->space) &&
        unlimited(from, &extent) < 0 && misses(r, from)) {
        H5Sclose(from);
        return 0;
    }
    hid_t to = H5Pget_virtual_srcspace(r->plist, i);
    int rc = 0;
    if (!is_hyperslab(from) || to < 0 || !get_names(r->plist, i, source) ||
        H5Sget_simple_extent_ndims(from) != H5Sget_simple_extent_ndims(r->space)) {
        rc = fail(r->read, r->err, "one of its mappings is invalid");
    } else {
        int along = unlimited(from, &extent);
        rc = along < 0                   ? read_part(r, source, H5I_INVALID_HID, from, to)
             : unlimited(to, &other) < 0 ? read_numbered(r, source, extent, along, to)
                                         : read_growing(r, source, extent, along, to);
    }
    close_space(from);
    close_space(to);
    return rc;
}

static int read_mappings(struct reading *r)
{
    size_t n = 0;
    struct source *source = malloc(sizeof *source);
    int rc = source ? 0 : weir_err_set(r->err, -ENOMEM, "%s: out of memory", r->read->path);
    if (rc == 0 && H5Pget_virtual_count(r->plist, &n) < 0)
        rc = fail(r->read, r->err, "its mappings cannot be read");
    for (size_t i = 0; i < n && rc == 0; i++)
        rc = read_mapping(r, i, source);
    free(source);
    hssize_t provided = r->provided < 0 ? 0 : H5Sget_select_npoints(r->provided);
    if (rc == 0 && provided != H5Sget_select_npoints(r->space))
        return r->lacking.code
                   ? weir_err_set(r->err, r->lacking.code, "%s", r->lacking.text)
                   : weir_err_set(r->err, -ENODATA, "%s: the sources of this virtual dataset do not provide this data",
                                  r->read->path);
    return rc;
}

static int read_virtual(const struct weir_h5_read *read, hid_t dataset, hid_t plist, hid_t space, hid_t memory,
                        void *buffer, int depth, struct weir_err *err)
{
    struct reading r = {.read = read, .dataset = dataset, .plist = plist, .buffer = buffer, .depth = depth, .err = err};
    if (depth > DEPTH_MAX)
        return weir_err_set(err, -ELOOP, "%s: its virtual sources are nested more than %d levels deep", read->path,
                            DEPTH_MAX);
    r.space = as_hyperslab(H5Scopy(space));
    r.memory = as_hyperslab(H5Scopy(memory));
    r.provided = H5I_INVALID_HID;
    int rc = is_hyperslab(r.space) && is_hyperslab(r.memory) && H5Sget_simple_extent_ndims(space) <= RANK_MAX &&
                     H5Sget_select_bounds(r.space, r.from, r.to) >= 0
                 ? read_mappings(&r)
                 : fail(read, err, "a frame cannot be selected");
    close_space(r.provided);
    close_space(r.memory);
    close_space(r.space);
    return rc;
}

/* ---- a virtual dataset ---- */

static int read_at_depth(const struct weir_h5_read *read, hid_t dataset, hid_t space, hid_t memory, void *buffer,
                         int depth, struct weir_err *err)
{
    hid_t plist = H5Dget_create_plist(dataset);
    H5D_layout_t layout = plist < 0 ? H5D_LAYOUT_ERROR : H5Pget_layout(plist);
    bool external = layout == H5D_CONTIGUOUS && H5Pget_external_count(plist) > 0;
    bool has_storage = layout == H5D_CHUNKED || (layout == H5D_CONTIGUOUS && !external);
    int rc;
    if (layout == H5D_LAYOUT_ERROR)
        rc = fail(read, err, "its header cannot be read");
    else if (layout == H5D_VIRTUAL)
        rc = read_virtual(read, dataset, plist, space, memory, buffer, depth, err);
    else if (external)
        rc = weir_h5_read_external(read, dataset, plist, space, memory, buffer, err);
    else if (has_storage && read->must_be_written && H5Sget_select_npoints(space) > 0 &&
             H5Dget_storage_size(dataset) == 0)
        rc = weir_err_set(err, -EBADMSG, "%s: was never written; remove the episode", read->path);
    else
        rc = H5Dread(dataset, (hid_t)read->memory_type, memory, space, H5P_DEFAULT, buffer) >= 0
                 ? 0
                 : fail(read, err, "cannot be read");
    if (plist >= 0)
        H5Pclose(plist);
    return rc;
}

int weir_h5_read_selected(const struct weir_h5_read *read, int64_t dataset, int64_t space, int64_t memory, void *buffer,
                          struct weir_err *err)
{
    return read_at_depth(read, (hid_t)dataset, (hid_t)space, (hid_t)memory, buffer, 0, err);
}

/* ---- extents of virtual datasets ---- */

/* Checks the source of the first block that is not entirely inside the virtual dataset's extent. Its file or dataset
 * must be absent, or it must be possible to open both. */
static int check_next(const struct weir_h5_read *read, hid_t dataset, const struct source *source,
                      const struct extent *extent, int along, hsize_t end, struct weir_err *err)
{
    hsize_t start = extent->start[along], stride = extent->stride[along], block = extent->block[along];
    if (extent->count[along] != H5S_UNLIMITED || stride == 0 || block > stride || start >= H5S_UNLIMITED - block)
        return 0;
    hsize_t next = end < start + block ? 0 : (end - start - block) / stride + 1;
    struct source *one = malloc(sizeof *one);
    if (!one)
        return weir_err_set(err, -ENOMEM, "%s: out of memory", read->path);
    char why[512];
    int rc = 0;
    bool named = numbered(source->file, next, one->file) && numbered(source->dataset, next, one->dataset);
    hid_t file = named ? open_file(dataset, one->file, why) : H5I_INVALID_HID;
    bool absent =
        !named || (file < 0 && strncmp(why, is_missing, strlen(is_missing)) == 0) ||
        (file >= 0 && strcmp(one->dataset, source->dataset) != 0 && H5Lexists(file, one->dataset, H5P_DEFAULT) <= 0);
    hid_t opened = file < 0 || absent ? H5I_INVALID_HID : H5Dopen2(file, one->dataset, H5P_DEFAULT);
    if (!absent && opened < 0)
        rc = no_source(read, one, file < 0 ? why : "cannot be opened: its file has no such dataset", err);
    if (opened >= 0)
        H5Dclose(opened);
    if (file >= 0)
        H5Fclose(file);
    free(one);
    return rc;
}

static int check_extent(const struct weir_h5_read *read, hid_t dataset, int depth, struct weir_err *err);

static int check_mapping(const struct weir_h5_read *read, hid_t dataset, hid_t plist, size_t i, struct source *source,
                         const hsize_t *dims, int depth, struct weir_err *err)
{
    struct extent extent, other;
    hid_t from = as_hyperslab(H5Pget_virtual_vspace(plist, i)), to = H5Pget_virtual_srcspace(plist, i), opened;
    int along = is_hyperslab(from) ? unlimited(from, &extent) : -1, rc = 0;
    if (along >= 0 && to >= 0 && get_names(plist, i, source)) {
        if (unlimited(to, &other) < 0) {
            rc = check_next(read, dataset, source, &extent, along, dims[along], err);
        } else {
            rc = open_source(read, dataset, source, &opened, err);
            if (rc == 0)
                rc = check_extent(read, opened, depth + 1, err);
            if (opened >= 0)
                H5Dclose(opened);
        }
    }
    close_space(from);
    close_space(to);
    return rc;
}

static int check_extent(const struct weir_h5_read *read, hid_t dataset, int depth, struct weir_err *err)
{
    hsize_t dims[H5S_MAX_RANK] = {0};
    size_t n = 0;
    int rc = 0;
    hid_t plist = H5Dget_create_plist(dataset), space = H5I_INVALID_HID;
    struct source *source = malloc(sizeof *source);
    bool is_virtual = plist >= 0 && depth <= DEPTH_MAX && H5Pget_layout(plist) == H5D_VIRTUAL;
    if (is_virtual)
        space = H5Dget_space(dataset);
    if (!source)
        rc = weir_err_set(err, -ENOMEM, "%s: out of memory", read->path);
    else if (is_virtual &&
             (space < 0 || H5Sget_simple_extent_dims(space, dims, NULL) < 0 || H5Pget_virtual_count(plist, &n) < 0))
        rc = fail(read, err, "its mappings cannot be read");
    for (size_t i = 0; i < n && rc == 0; i++)
        rc = check_mapping(read, dataset, plist, i, source, dims, depth, err);
    free(source);
    close_space(space);
    if (plist >= 0)
        H5Pclose(plist);
    return rc;
}

int weir_h5_check_extent(const char *path, int64_t dataset, struct weir_err *err)
{
    const struct weir_h5_read read = {.path = path};
    return check_extent(&read, (hid_t)dataset, 0, err);
}

static void look_at_sources(hid_t dataset, hid_t plist)
{
    char from[WEIR_INSIDE_PATH_MAX], path[WEIR_INSIDE_PATH_MAX], before[WEIR_INSIDE_PATH_MAX] = ".";
    struct source source;
    size_t n = 0;
    if (!weir_h5_file_name(dataset, from) || H5Pget_virtual_count(plist, &n) < 0)
        return;
    for (size_t m = 0; m < n && !weir_h5_inside.refusal[0]; m++) {
        if (!get_names(plist, m, &source) || strcmp(source.file, before) == 0 || strchr(source.file, '%'))
            continue; /* numbered sources are opened when they are read */
        memcpy(before, source.file, sizeof before);
        bool found = strcmp(source.file, ".") == 0;
        for (int i = 0; !found && candidate(from, source.file, i, path); i++) {
            found = *path && access(path, F_OK) == 0;
            if (found)
                weir_h5_look_at(path);
        }
    }
}

void weir_h5_look_outside(int64_t dataset)
{
    hid_t plist = H5Dget_create_plist((hid_t)dataset);
    H5D_layout_t layout = plist < 0 ? H5D_LAYOUT_ERROR : H5Pget_layout(plist);
    if (layout == H5D_VIRTUAL)
        look_at_sources((hid_t)dataset, plist);
    else if (layout == H5D_CONTIGUOUS)
        weir_h5_look_at_external(dataset, plist);
    if (plist >= 0)
        H5Pclose(plist);
}
