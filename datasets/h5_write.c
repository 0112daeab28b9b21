#include "datasets/h5_write.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <hdf5.h>

enum { SETS_MAX = 64, GZIP_LEVEL = 4, GZIP_CHUNK_BYTES = 16 * 1024 };

enum set_kind { SET_RAW, SET_ROWS, SET_VLEN };

struct set {
    hid_t id;
    enum set_kind kind;
    uint64_t steps, bytes; /* bytes of one frame; 0 = any */
    char name[128];
};

struct weir_h5w {
    hid_t id;
    char *path, *temporary;
    struct set set[SETS_MAX];
    int n_sets;
};

/* HDF5 leaves the system's errno behind when a read or write failed. */
static int fail(const struct weir_h5w *file, const char *name, const char *what, struct weir_err *err)
{
    int code = errno ? errno : EIO;
    const char *reason = errno ? strerror(errno) : "the HDF5 library refused";
    return weir_err_set(err, -code, "%s: %s%s%s: %s", file->path, name, *name ? ": " : "", what, reason);
}

static char *temporary_name(const char *path)
{
    const char *slash = strrchr(path, '/');
    int folder = slash ? (int)(slash - path) + 1 : 0;
    char *name;
    return asprintf(&name, "%.*s.%s.part", folder, path, path + folder) < 0 ? NULL : name;
}

static void release(struct weir_h5w **file)
{
    free((*file)->path);
    free((*file)->temporary);
    free(*file);
    *file = NULL;
}

static hid_t plist(hid_t class)
{
    hid_t id = H5Pcreate(class);
    if (id >= 0 && class != H5P_FILE_ACCESS)
        H5Pset_obj_track_times(id, false);
    return id;
}

int weir_h5w_create(struct weir_h5w **out, const char *path, struct weir_err *err)
{
    *out = NULL;
    H5dont_atexit();                       /* its clean-up at exit crashes after a file that could not be closed */
    H5Eset_auto2(H5E_DEFAULT, NULL, NULL); /* errors are told once, by us */
    struct weir_h5w *file = calloc(1, sizeof *file);
    if (!file)
        return weir_err_set(err, -ENOMEM, "%s: out of memory", path);
    file->path = strdup(path);
    file->temporary = temporary_name(path);
    if (!file->path || !file->temporary) {
        release(&file);
        return weir_err_set(err, -ENOMEM, "%s: out of memory", path);
    }
    hid_t creation = plist(H5P_FILE_CREATE);
    errno = 0;
    file->id = H5Fcreate(file->temporary, H5F_ACC_TRUNC, creation, H5P_DEFAULT);
    int rc = file->id < 0 ? fail(file, "", "cannot be created", err) : 0;
    H5Pclose(creation);
    if (rc < 0) {
        release(&file);
        return rc;
    }
    *out = file;
    return 0;
}

static int close_all(struct weir_h5w *file)
{
    int rc = 0;
    for (int i = 0; i < file->n_sets; i++)
        rc |= H5Dclose(file->set[i].id);
    file->n_sets = 0;
    rc |= H5Fclose(file->id);
    return rc < 0 ? -1 : 0;
}

/* H5Fclose flushes, and when that fails (disk full) HDF5 1.10 leaves its lists broken. So a file that is given up gets
 * memory to flush into. */
static void flush_nowhere(struct weir_h5w *file)
{
    int *fd = NULL, memory = memfd_create("weir-synth", MFD_CLOEXEC);
    if (memory < 0)
        return;
    if (H5Fget_vfd_handle(file->id, H5P_DEFAULT, (void **)&fd) >= 0 && fd)
        dup2(memory, *fd);
    close(memory);
}

int weir_h5w_commit(struct weir_h5w **file, uint64_t *bytes, struct weir_err *err)
{
    struct stat st;
    int rc = 0;
    errno = 0;
    if (H5Fflush((*file)->id, H5F_SCOPE_LOCAL) < 0)
        rc = fail(*file, "", "cannot be written", err);
    if (rc < 0)
        flush_nowhere(*file);
    if (close_all(*file) < 0 && rc == 0)
        rc = fail(*file, "", "cannot be closed", err);
    if (rc == 0 && (stat((*file)->temporary, &st) != 0 || rename((*file)->temporary, (*file)->path) != 0))
        rc = fail(*file, "", "cannot get its name", err);
    if (rc < 0)
        unlink((*file)->temporary);
    else if (bytes)
        *bytes = (uint64_t)st.st_size;
    release(file);
    return rc;
}

void weir_h5w_abandon(struct weir_h5w **file)
{
    if (!*file)
        return;
    flush_nowhere(*file);
    close_all(*file);
    unlink((*file)->temporary);
    release(file);
}

int weir_h5w_group(struct weir_h5w *file, const char *name, struct weir_err *err)
{
    hid_t creation = plist(H5P_GROUP_CREATE);
    errno = 0;
    hid_t id = H5Gcreate2(file->id, name, H5P_DEFAULT, creation, H5P_DEFAULT);
    H5Pclose(creation);
    if (id < 0)
        return fail(file, name, "group cannot be created", err);
    H5Gclose(id);
    return 0;
}

/* ---- attributes ---- */

static int put_attr(struct weir_h5w *file, const char *group, const char *name, hid_t type, const void *value,
                    struct weir_err *err)
{
    hid_t space = H5Screate(H5S_SCALAR);
    errno = 0;
    hid_t id = H5Acreate_by_name(file->id, group, name, type, space, H5P_DEFAULT, H5P_DEFAULT, H5P_DEFAULT);
    int rc = id < 0 || H5Awrite(id, type, value) < 0 ? fail(file, name, "attribute cannot be written", err) : 0;
    if (id >= 0)
        H5Aclose(id);
    H5Sclose(space);
    return rc;
}

int weir_h5w_attr_bool(struct weir_h5w *file, const char *group, const char *name, bool value, struct weir_err *err)
{
    hid_t type = H5Tenum_create(H5T_STD_I8LE);
    int8_t no = 0, yes = 1;
    H5Tenum_insert(type, "FALSE", &no);
    H5Tenum_insert(type, "TRUE", &yes);
    int rc = put_attr(file, group, name, type, value ? &yes : &no, err);
    H5Tclose(type);
    return rc;
}

int weir_h5w_attr_int(struct weir_h5w *file, const char *group, const char *name, int64_t value, struct weir_err *err)
{
    hid_t space = H5Screate(H5S_SCALAR);
    errno = 0;
    hid_t id = H5Acreate_by_name(file->id, group, name, H5T_STD_I64LE, space, H5P_DEFAULT, H5P_DEFAULT, H5P_DEFAULT);
    int rc =
        id < 0 || H5Awrite(id, H5T_NATIVE_INT64, &value) < 0 ? fail(file, name, "attribute cannot be written", err) : 0;
    if (id >= 0)
        H5Aclose(id);
    H5Sclose(space);
    return rc;
}

int weir_h5w_attr_text(struct weir_h5w *file, const char *group, const char *name, const char *value,
                       struct weir_err *err)
{
    hid_t type = H5Tcopy(H5T_C_S1);
    H5Tset_size(type, H5T_VARIABLE);
    H5Tset_cset(type, H5T_CSET_UTF8);
    int rc = put_attr(file, group, name, type, &value, err);
    H5Tclose(type);
    return rc;
}

/* ---- whole arrays ---- */

static hid_t disk_type(enum weir_h5w_type type)
{
    return type == WEIR_H5W_F32 ? H5T_IEEE_F32LE : type == WEIR_H5W_F64 ? H5T_IEEE_F64LE : H5T_STD_I32LE;
}

static hid_t memory_type(enum weir_h5w_type type)
{
    return type == WEIR_H5W_F32 ? H5T_NATIVE_FLOAT : type == WEIR_H5W_F64 ? H5T_NATIVE_DOUBLE : H5T_NATIVE_INT32;
}

static void set_gzip(hid_t creation, const hsize_t *dims, int rank, size_t value_bytes)
{
    hsize_t row_bytes = (rank == 2 ? dims[1] : 1) * value_bytes;
    hsize_t rows = GZIP_CHUNK_BYTES / row_bytes;
    hsize_t chunk[2] = {rows < 1 ? 1 : rows < dims[0] ? rows : dims[0], dims[1]};
    H5Pset_chunk(creation, rank, chunk);
    H5Pset_fill_time(creation, H5D_FILL_TIME_ALLOC);
    H5Pset_deflate(creation, GZIP_LEVEL);
}

int weir_h5w_array(struct weir_h5w *file, const char *name, enum weir_h5w_type type, uint64_t rows, uint64_t columns,
                   bool gzip, const void *data, struct weir_err *err)
{
    hsize_t dims[2] = {rows, columns};
    int rank = columns > 0 ? 2 : rows > 0 ? 1 : 0;
    hid_t creation = plist(H5P_DATASET_CREATE);
    if (gzip && rank > 0)
        set_gzip(creation, dims, rank, H5Tget_size(disk_type(type)));
    hid_t space = rank > 0 ? H5Screate_simple(rank, dims, NULL) : H5Screate(H5S_SCALAR);
    errno = 0;
    hid_t id = H5Dcreate2(file->id, name, disk_type(type), space, H5P_DEFAULT, creation, H5P_DEFAULT);
    int rc = id < 0 || H5Dwrite(id, memory_type(type), H5S_ALL, H5S_ALL, H5P_DEFAULT, data) < 0
                 ? fail(file, name, "cannot be written", err)
                 : 0;
    if (id >= 0 && H5Dclose(id) < 0 && rc == 0)
        rc = fail(file, name, "cannot be written", err);
    H5Sclose(space);
    H5Pclose(creation);
    return rc;
}

/* ---- frame by frame ---- */

static int open_set(struct weir_h5w *file, const char *name, enum set_kind kind, hid_t type, int rank,
                    const hsize_t *dims, struct weir_err *err)
{
    if (file->n_sets == SETS_MAX || strlen(name) >= sizeof file->set[0].name)
        return weir_err_set(err, -E2BIG, "%s: %s: too many datasets, or too long a name", file->path, name);
    hid_t creation = plist(H5P_DATASET_CREATE), space = H5Screate_simple(rank, dims, NULL);
    if (kind == SET_RAW) {
        hsize_t chunk[4] = {1, dims[1], dims[2], dims[3]};
        H5Pset_chunk(creation, rank, chunk);
    }
    if (kind != SET_ROWS)
        H5Pset_fill_time(creation, H5D_FILL_TIME_ALLOC);
    struct set *set = &file->set[file->n_sets];
    *set = (struct set){.kind = kind, .steps = dims[0], .bytes = kind == SET_VLEN ? 0 : 1};
    for (int i = 1; i < rank; i++)
        set->bytes *= dims[i];
    snprintf(set->name, sizeof set->name, "%s", name);
    errno = 0;
    set->id = H5Dcreate2(file->id, name, type, space, H5P_DEFAULT, creation, H5P_DEFAULT);
    H5Sclose(space);
    H5Pclose(creation);
    return set->id < 0 ? fail(file, name, "cannot be created", err) : file->n_sets++;
}

int weir_h5w_raw_frames(struct weir_h5w *file, const char *name, uint64_t steps, int height, int width,
                        struct weir_err *err)
{
    hsize_t dims[4] = {steps, (hsize_t)height, (hsize_t)width, 3};
    return open_set(file, name, SET_RAW, H5T_STD_U8LE, 4, dims, err);
}

int weir_h5w_row_frames(struct weir_h5w *file, const char *name, uint64_t steps, uint64_t row_bytes,
                        struct weir_err *err)
{
    hsize_t dims[2] = {steps, row_bytes};
    return open_set(file, name, SET_ROWS, H5T_STD_U8LE, 2, dims, err);
}

int weir_h5w_vlen_frames(struct weir_h5w *file, const char *name, uint64_t steps, struct weir_err *err)
{
    hid_t type = H5Tvlen_create(H5T_STD_U8LE);
    int id = open_set(file, name, SET_VLEN, type, 1, &(hsize_t){steps}, err);
    H5Tclose(type);
    return id;
}

/* One row of the dataset, or one element of variable length. */
static herr_t write_selected(const struct set *set, uint64_t step, hid_t type, const void *data)
{
    hsize_t start[2] = {step, 0}, count[2] = {1, set->bytes};
    hid_t space = H5Dget_space(set->id);
    hid_t memory = H5Screate_simple(1, set->kind == SET_VLEN ? &count[0] : &count[1], NULL);
    herr_t rc = H5Sselect_hyperslab(space, H5S_SELECT_SET, start, NULL, count, NULL);
    if (rc >= 0)
        rc = H5Dwrite(set->id, type, memory, space, H5P_DEFAULT, data);
    H5Sclose(memory);
    H5Sclose(space);
    return rc;
}

static herr_t write_vlen(const struct set *set, uint64_t step, const void *data, size_t bytes)
{
    hvl_t element = {.len = bytes, .p = (void *)data};
    hid_t type = H5Tvlen_create(H5T_NATIVE_UINT8);
    herr_t rc = write_selected(set, step, type, &element);
    H5Tclose(type);
    return rc;
}

int weir_h5w_frame(struct weir_h5w *file, int id, uint64_t step, const void *data, size_t bytes, struct weir_err *err)
{
    const struct set *set = &file->set[id];
    if (step >= set->steps || (set->bytes && bytes != set->bytes))
        return weir_err_set(err, -EINVAL, "%s: %s: frame %llu of %zu bytes does not fit", file->path, set->name,
                            (unsigned long long)step, bytes);
    herr_t rc;
    hsize_t offset[4] = {step, 0, 0, 0};
    errno = 0;
    if (set->kind == SET_RAW)
        rc = H5Dwrite_chunk(set->id, H5P_DEFAULT, 0, offset, bytes, data);
    else if (set->kind == SET_ROWS)
        rc = write_selected(set, step, H5T_NATIVE_UINT8, data);
    else
        rc = write_vlen(set, step, data, bytes);
    return rc < 0 ? fail(file, set->name, "frame cannot be written", err) : 0;
}
