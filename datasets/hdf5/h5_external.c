/* Reads datasets whose data is in external raw files. The library opens any path that a dataset names, and returns
 * zeros past the end of an external file. So this code opens and measures the files itself, and the library reads
 * through their descriptors. */
#include "datasets/hdf5/h5_guard_priv.h"
#include "datasets/hdf5/h5_read_priv.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <hdf5.h>

enum { RANK_MAX = 8, EXTERNAL_MAX = 1024 };

static int fail(const struct weir_h5_read *read, struct weir_err *err, const char *what)
{
    return weir_h5_fail(err, read->path, what);
}

struct external {
    hid_t dataset, plist; /* the dataset and its creation properties */
    hsize_t first, last;  /* range of bytes of the array that is needed */
    hsize_t before;       /* number of bytes in the preceding files */
    hid_t copy;           /* creation properties that refer to the same files through open descriptors */
    int n, fds[EXTERNAL_MAX];
};

/* Searches like the library: relative to the current folder, or to a prefix. */
static void external_path(hid_t dataset, const char *name, char path[WEIR_INSIDE_PATH_MAX])
{
    char from[WEIR_INSIDE_PATH_MAX];
    const char *prefix = getenv("HDF5_EXTFILE_PREFIX");
    if (*name == '/' || !prefix || !*prefix || strcmp(prefix, ".") == 0 || !weir_h5_file_name(dataset, from))
        snprintf(path, WEIR_INSIDE_PATH_MAX, "%s", name);
    else
        weir_h5_prefixed(prefix, (int)strlen(prefix), from, name, path);
}

static bool get_external(hid_t plist, int i, char name[WEIR_INSIDE_PATH_MAX], off_t *offset, hsize_t *size)
{
    name[WEIR_INSIDE_PATH_MAX - 1] = '\0';
    return H5Pget_external(plist, (unsigned)i, WEIR_INSIDE_PATH_MAX - 1, name, offset, size) >= 0 && *offset >= 0;
}

/* Opens external file i, which must contain n bytes from offset on. */
static int open_external(const struct weir_h5_read *read, struct external *e, const char *name, hsize_t offset,
                         hsize_t n, struct weir_err *err)
{
    char path[WEIR_INSIDE_PATH_MAX];
    struct stat st;
    external_path(e->dataset, name, path);
    int fd = weir_inside_open(&weir_h5_inside, path);
    if (fd == -EPERM && weir_h5_inside.refusal[0])
        return weir_err_set(err, fd, "%s: %s", read->path, weir_h5_inside.refusal);
    if (fd == -ENOENT && *path != '/')
        return weir_err_set(err, fd,
                            "%s: its external file %.500s is not in the current folder, where HDF5 searches it; set "
                            "HDF5_EXTFILE_PREFIX='${ORIGIN}' if it is beside the HDF5 file",
                            read->path, path);
    if (fd < 0)
        return weir_err_set(err, fd, "%s: its external file %.500s cannot be opened: %s", read->path, path,
                            strerror(-fd));
    e->fds[e->n++] = fd;
    if (fstat(fd, &st) == 0 && (hsize_t)st.st_size >= offset && (hsize_t)st.st_size - offset >= n)
        return fd;
    return weir_err_set(err, -ENODATA, "%s: its external file %.500s ends too early; was it copied completely?",
                        read->path, path);
}

static int take_external(const struct weir_h5_read *read, struct external *e, int i, struct weir_err *err)
{
    char name[WEIR_INSIDE_PATH_MAX], link[64] = "/nowhere"; /* path for files that are not needed */
    off_t offset;
    hsize_t size;
    if (!get_external(e->plist, i, name, &offset, &size))
        return fail(read, err, "its external files cannot be listed");
    hsize_t from = e->before, end = size > H5S_UNLIMITED - 1 - from ? H5S_UNLIMITED - 1 : from + size;
    e->before = end;
    if (e->last > from && e->first < end) {
        int fd = open_external(read, e, name, (hsize_t)offset, (e->last < end ? e->last : end) - from, err);
        if (fd < 0)
            return fd;
        snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
    }
    return H5Pset_external(e->copy, link, offset, size) >= 0 ? 0
                                                             : fail(read, err, "its external files cannot be opened");
}

/* Computes the byte range of the selected rows. */
static bool bytes_of(hid_t dataset, hid_t space, hsize_t *first, hsize_t *last)
{
    hsize_t dims[RANK_MAX], from[RANK_MAX], to[RANK_MAX];
    int rank = H5Sget_simple_extent_ndims(space);
    hid_t type = H5Dget_type(dataset);
    hsize_t bytes = type < 0 ? 0 : H5Tget_size(type);
    bool fine = type >= 0 && H5Tdetect_class(type, H5T_VLEN) == 0 && rank >= 1 && rank <= RANK_MAX &&
                H5Sget_simple_extent_dims(space, dims, NULL) >= 0 && H5Sget_select_bounds(space, from, to) >= 0;
    if (type >= 0)
        H5Tclose(type);
    for (int d = 1; d < rank && fine; d++)
        fine = !__builtin_mul_overflow(bytes, dims[d], &bytes);
    return fine && !__builtin_mul_overflow(bytes, from[0], first) && !__builtin_mul_overflow(bytes, to[0] + 1, last);
}

/* Creates a dataset in memory that refers to the descriptors, and reads the array from it. So the library opens no path
 * that comes from the file. */
static int read_through(const struct weir_h5_read *read, const struct external *e, hid_t space, hid_t memory,
                        void *buffer, struct weir_err *err)
{
    hid_t access = H5Pcreate(H5P_FILE_ACCESS), type = H5Dget_type(e->dataset), whole = H5Dget_space(e->dataset);
    hid_t file = H5I_INVALID_HID, copy = H5I_INVALID_HID;
    if (access >= 0 && type >= 0 && whole >= 0 && H5Pset_fapl_core(access, 4096, 0) >= 0)
        file = H5Fcreate("weir", H5F_ACC_TRUNC, H5P_DEFAULT, access);
    if (file >= 0)
        copy = H5Dcreate2(file, "copy", type, whole, H5P_DEFAULT, e->copy, H5P_DEFAULT);
    int rc = copy >= 0 && H5Dread(copy, (hid_t)read->memory_type, memory, space, H5P_DEFAULT, buffer) >= 0
                 ? 0
                 : fail(read, err, "its external files cannot be read");
    if (copy >= 0)
        H5Dclose(copy);
    if (file >= 0)
        H5Fclose(file);
    if (whole >= 0)
        H5Sclose(whole);
    if (type >= 0)
        H5Tclose(type);
    if (access >= 0)
        H5Pclose(access);
    return rc;
}

int weir_h5_read_external(const struct weir_h5_read *read, int64_t dataset, int64_t plist, int64_t space,
                          int64_t memory, void *buffer, struct weir_err *err)
{
    int n = H5Pget_external_count(plist);
    struct external e = {.dataset = dataset, .plist = plist, .copy = H5Pcreate(H5P_DATASET_CREATE)};
    int rc = e.copy >= 0 && n <= EXTERNAL_MAX && bytes_of(dataset, space, &e.first, &e.last)
                 ? 0
                 : fail(read, err, "its list of external files is invalid");
    for (int i = 0; i < n && rc == 0; i++)
        rc = take_external(read, &e, i, err);
    if (rc == 0)
        rc = read_through(read, &e, space, memory, buffer, err);
    for (int i = 0; i < e.n; i++)
        close(e.fds[i]);
    if (e.copy >= 0)
        H5Pclose(e.copy);
    return rc;
}

void weir_h5_look_at_external(int64_t dataset, int64_t plist)
{
    char name[WEIR_INSIDE_PATH_MAX], path[WEIR_INSIDE_PATH_MAX];
    off_t offset;
    hsize_t size;
    for (int i = 0; i < H5Pget_external_count((hid_t)plist) && i < EXTERNAL_MAX; i++) {
        if (!get_external((hid_t)plist, i, name, &offset, &size))
            continue;
        external_path((hid_t)dataset, name, path);
        weir_h5_look_at(path);
    }
}
