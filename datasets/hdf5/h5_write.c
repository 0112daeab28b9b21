#include "datasets/hdf5/h5_write.h"

#include "datasets/hdf5/h5_read_priv.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/param.h>
#include <sys/stat.h>
#include <unistd.h>

#include <hdf5.h>

enum { SETS_MAX = 64, GZIP_LEVEL = 4, CACHE_MAX_BYTES = 1 << 30, CACHE_MAX_SLOTS = 1 << 20 };

/* A dataset whose frames are being written. */
struct set {
    bool open;
    hid_t id, memory; /* memory: type of an element in memory */
    struct weir_h5w_shape shape;
    uint64_t bytes; /* bytes per frame; 0 = any number */
    uint64_t written;
    char name[128];
};

struct weir_h5w {
    hid_t id;
    char *path, *temporary;
    uint64_t chunk_rows;
    struct set set[SETS_MAX];
};

/* After a failed read or write, HDF5 leaves the errno of the system call. */
static int fail(const struct weir_h5w *file, const char *name, const char *what, struct weir_err *err)
{
    int known = errno ? errno : -weir_h5_machine_error(NULL);
    int code = known ? known : EIO;
    const char *reason = known ? strerror(known) : "the HDF5 library refused";
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
    H5dont_atexit(); /* the library's exit handler crashes if a file could not be closed */
    struct weir_h5w *file = weir_h5_start() < 0 ? NULL : calloc(1, sizeof *file);
    if (!file)
        return weir_err_set(err, -ENOMEM, "%s: out of memory", path);
    file->path = strdup(path);
    file->temporary = temporary_name(path);
    if (!file->path || !file->temporary) {
        release(&file);
        return weir_err_set(err, -ENOMEM, "%s: out of memory", path);
    }
    weir_h5_watch_errors();
    hid_t creation = plist(H5P_FILE_CREATE);
    unlink(file->temporary); /* an interrupted call may have left a file, and a link would be followed */
    file->id = H5Fcreate(file->temporary, H5F_ACC_EXCL, creation, H5P_DEFAULT);
    int rc = file->id < 0 ? fail(file, "", "cannot be created", err) : 0;
    H5Pclose(creation);
    if (rc < 0) {
        release(&file);
        return rc;
    }
    *out = file;
    return 0;
}

static herr_t close_set(struct set *set)
{
    set->open = false;
    H5Tclose(set->memory);
    return H5Dclose(set->id);
}

static int close_all(struct weir_h5w *file)
{
    int rc = 0;
    for (int i = 0; i < SETS_MAX; i++)
        if (file->set[i].open)
            rc |= close_set(&file->set[i]);
    rc |= H5Fclose(file->id);
    return rc < 0 ? -1 : 0;
}

/* H5Fclose flushes the file. If that fails (disk full), HDF5 1.10 leaves its internal lists broken. So an abandoned
 * file is flushed to memory. */
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
        rc = fail(*file, "", "cannot be renamed to its final name", err);
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
    errno = 0;
    hid_t creation = plist(H5P_GROUP_CREATE);
    hid_t id = H5Gcreate2(file->id, name, H5P_DEFAULT, creation, H5P_DEFAULT);
    H5Pclose(creation);
    if (id < 0)
        return fail(file, name, "group cannot be created", err);
    H5Gclose(id);
    return 0;
}

/* ---- attributes ---- */

static int put_attr(struct weir_h5w *file, const char *group, const char *name, hid_t disk, hid_t memory,
                    const void *value, struct weir_err *err)
{
    errno = 0;
    hid_t space = H5Screate(H5S_SCALAR);
    hid_t id = H5Acreate_by_name(file->id, group, name, disk, space, H5P_DEFAULT, H5P_DEFAULT, H5P_DEFAULT);
    int rc = id < 0 || H5Awrite(id, memory, value) < 0 ? fail(file, name, "attribute cannot be written", err) : 0;
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
    int rc = put_attr(file, group, name, type, type, value ? &yes : &no, err);
    H5Tclose(type);
    return rc;
}

int weir_h5w_attr_int(struct weir_h5w *file, const char *group, const char *name, int64_t value, struct weir_err *err)
{
    return put_attr(file, group, name, H5T_STD_I64LE, H5T_NATIVE_INT64, &value, err);
}

int weir_h5w_attr_text(struct weir_h5w *file, const char *group, const char *name, const char *value,
                       struct weir_err *err)
{
    hid_t type = H5Tcopy(H5T_C_S1);
    H5Tset_size(type, H5T_VARIABLE);
    H5Tset_cset(type, H5T_CSET_UTF8);
    int rc = put_attr(file, group, name, type, type, &value, err);
    H5Tclose(type);
    return rc;
}

/* ---- types and storage ---- */

static hid_t disk_type(enum weir_number_type type)
{
    const hid_t types[WEIR_NUMBER_TYPES] = {
        [WEIR_F32] = H5T_IEEE_F32LE, [WEIR_F64] = H5T_IEEE_F64LE, [WEIR_I8] = H5T_STD_I8LE, [WEIR_I16] = H5T_STD_I16LE,
        [WEIR_I32] = H5T_STD_I32LE,  [WEIR_I64] = H5T_STD_I64LE,  [WEIR_U8] = H5T_STD_U8LE, [WEIR_U16] = H5T_STD_U16LE,
        [WEIR_U32] = H5T_STD_U32LE,  [WEIR_U64] = H5T_STD_U64LE,
    };
    return types[type];
}

/* ---- chunks ---- */

static const double base_bytes = 16 * 1024, least_bytes = 8 * 1024, most_bytes = 1024 * 1024;

/* Returns 16 KiB for a dataset of 1 MiB. The target doubles for every factor of ten. */
static double target_bytes(double dataset_bytes)
{
    double target = base_bytes * pow(2, log10(dataset_bytes / (1024 * 1024)));
    return fmin(fmax(target, least_bytes), most_bytes);
}

static double product(const uint64_t *sizes, int rank)
{
    double all = 1;
    for (int i = 0; i < rank; i++)
        all *= (double)sizes[i];
    return all;
}

/* Implements h5py's rule: halves the dimensions in turn until the chunk is close to the target size. Uses floating
 * point like h5py, so that ties are resolved the same way. */
void weir_chunk_guess(const uint64_t *dims, int rank, size_t element_bytes, uint64_t *chunk)
{
    for (int i = 0; i < rank; i++)
        chunk[i] = dims[i] > 0 ? dims[i] : 1024;
    double target = target_bytes(product(chunk, rank) * (double)element_bytes);
    for (int turn = 0;; turn = (turn + 1) % rank) {
        double elements = product(chunk, rank), bytes = elements * (double)element_bytes;
        bool near = bytes < target || fabs(bytes - target) / target < 0.5;
        if ((near && bytes < most_bytes) || elements == 1)
            return;
        chunk[turn] = chunk[turn] / 2 + chunk[turn] % 2;
    }
}

/* Properties for creating a dataset, and for the library's chunk cache while it is written. */
struct plists {
    hid_t creation, access;
};

static void close_plists(struct plists *plists)
{
    H5Pclose(plists->creation);
    H5Pclose(plists->access);
}

/* Makes the cache large enough to keep the chunks of a row until they are full, so that each chunk is compressed once.
 * The library chooses a chunk's slot by the low bits of its coordinates; with this many slots, no two chunks of a row
 * collide. */
static void set_cache(hid_t access, const struct weir_h5w_shape *shape, const uint64_t *chunk, size_t element_bytes)
{
    uint64_t bytes = element_bytes * chunk[0], slots = 1;
    for (int i = 1; i < shape->rank; i++) {
        uint64_t chunks = (shape->dims[i] + chunk[i] - 1) / chunk[i], power = 1;
        while (power < chunks)
            power *= 2;
        bytes = MIN(bytes * chunks * chunk[i], CACHE_MAX_BYTES);
        slots = MIN(slots * power, CACHE_MAX_SLOTS);
    }
    H5Pset_chunk_cache(access, slots, bytes, H5D_CHUNK_CACHE_W0_DEFAULT);
}

/* rows: rows per chunk; 0 = the storage chooses */
static struct plists open_plists(const struct weir_h5w_shape *shape, size_t element_bytes,
                                 enum weir_h5w_storage storage, uint64_t rows)
{
    struct plists plists = {plist(H5P_DATASET_CREATE), H5Pcreate(H5P_DATASET_ACCESS)};
    if (storage == WEIR_H5W_CONTIGUOUS || shape->rank == 0)
        return plists;
    uint64_t chunk[WEIR_H5W_RANK];
    memcpy(chunk, shape->dims, sizeof chunk);
    chunk[0] = rows ? MIN(rows, shape->dims[0]) : 1;
    if (storage == WEIR_H5W_GZIP && !rows)
        weir_chunk_guess(shape->dims, shape->rank, element_bytes, chunk);
    hsize_t sizes[WEIR_H5W_RANK];
    for (int i = 0; i < shape->rank; i++)
        sizes[i] = chunk[i];
    H5Pset_chunk(plists.creation, shape->rank, sizes);
    H5Pset_fill_time(plists.creation, H5D_FILL_TIME_ALLOC);
    if (storage == WEIR_H5W_GZIP)
        H5Pset_deflate(plists.creation, GZIP_LEVEL);
    set_cache(plists.access, shape, chunk, element_bytes);
    return plists;
}

static hid_t create(struct weir_h5w *file, const char *name, hid_t type, const struct weir_h5w_shape *shape,
                    const struct plists *plists)
{
    hsize_t dims[WEIR_H5W_RANK];
    for (int i = 0; i < shape->rank; i++)
        dims[i] = shape->dims[i];
    hid_t space = shape->rank > 0 ? H5Screate_simple(shape->rank, dims, NULL) : H5Screate(H5S_SCALAR);
    errno = 0;
    hid_t id = H5Dcreate2(file->id, name, type, space, H5P_DEFAULT, plists->creation, plists->access);
    H5Sclose(space);
    return id;
}

/* ---- whole arrays ---- */

static int write_array(struct weir_h5w *file, const char *name, enum weir_number_type type, hid_t memory,
                       const struct weir_h5w_shape *shape, enum weir_h5w_storage storage, const void *values,
                       struct weir_err *err)
{
    struct plists plists = open_plists(shape, H5Tget_size(disk_type(type)), storage, file->chunk_rows);
    hid_t id = create(file, name, disk_type(type), shape, &plists);
    close_plists(&plists);
    bool fine = id >= 0 && H5Dwrite(id, memory, H5S_ALL, H5S_ALL, H5P_DEFAULT, values) >= 0;
    int rc = fine ? 0 : fail(file, name, "cannot be written", err);
    if (id >= 0 && H5Dclose(id) < 0 && rc == 0)
        rc = fail(file, name, "cannot be written", err);
    return rc;
}

int weir_h5w_array(struct weir_h5w *file, const char *name, enum weir_number_type type,
                   const struct weir_h5w_shape *shape, enum weir_h5w_storage storage, const double *values,
                   struct weir_err *err)
{
    return write_array(file, name, type, H5T_NATIVE_DOUBLE, shape, storage, values, err);
}

int weir_h5w_numbers(struct weir_h5w *file, const char *name, enum weir_number_type type,
                     const struct weir_h5w_shape *shape, const void *values, struct weir_err *err)
{
    return write_array(file, name, type, weir_h5_memory_type(type), shape, WEIR_H5W_CONTIGUOUS, values, err);
}

/* ---- frame by frame ---- */

void weir_h5w_chunk_rows(struct weir_h5w *file, uint64_t rows)
{
    file->chunk_rows = rows;
}

/* Takes ownership of the type `memory`. */
static int open_set(struct weir_h5w *file, const char *name, hid_t disk, hid_t memory,
                    const struct weir_h5w_shape *shape, const struct plists *plists, struct weir_err *err)
{
    int at = 0;
    while (at < SETS_MAX && file->set[at].open)
        at++;
    if (at == SETS_MAX || strlen(name) >= sizeof file->set[0].name) {
        H5Tclose(memory);
        return weir_err_set(err, -E2BIG, "%s: %s: too many datasets at a time, or too long a name", file->path, name);
    }
    struct set *set = &file->set[at];
    *set = (struct set){.memory = memory, .shape = *shape, .id = create(file, name, disk, shape, plists)};
    snprintf(set->name, sizeof set->name, "%s", name);
    if (set->id < 0) {
        H5Tclose(memory);
        return fail(file, name, "cannot be created", err);
    }
    set->open = true;
    return at;
}

int weir_h5w_frames(struct weir_h5w *file, const char *name, enum weir_number_type type,
                    const struct weir_h5w_shape *shape, enum weir_h5w_storage storage, struct weir_err *err)
{
    size_t element_bytes = H5Tget_size(disk_type(type));
    struct plists plists = open_plists(shape, element_bytes, storage, file->chunk_rows);
    int id = open_set(file, name, disk_type(type), H5Tcopy(weir_h5_memory_type(type)), shape, &plists, err);
    close_plists(&plists);
    if (id < 0)
        return id;
    uint64_t *bytes = &file->set[id].bytes;
    *bytes = element_bytes;
    for (int i = 1; i < shape->rank; i++)
        *bytes *= shape->dims[i];
    return id;
}

static int open_elements(struct weir_h5w *file, const char *name, hid_t type, uint64_t steps, struct weir_err *err)
{
    const struct weir_h5w_shape shape = {1, {steps}};
    struct plists plists = open_plists(&shape, H5Tget_size(type), WEIR_H5W_CONTIGUOUS, 0);
    if (H5Tget_class(type) == H5T_VLEN) /* so that the bytes of an unwritten element are not read as a reference */
        H5Pset_fill_time(plists.creation, H5D_FILL_TIME_ALLOC);
    int id = open_set(file, name, type, type, &shape, &plists, err);
    close_plists(&plists);
    return id;
}

int weir_h5w_string_frames(struct weir_h5w *file, const char *name, uint64_t steps, size_t bytes, struct weir_err *err)
{
    hid_t type = H5Tcopy(H5T_C_S1);
    H5Tset_size(type, bytes);
    H5Tset_strpad(type, H5T_STR_NULLPAD);
    int id = open_elements(file, name, type, steps, err);
    if (id >= 0)
        file->set[id].bytes = bytes;
    return id;
}

int weir_h5w_vlen_frames(struct weir_h5w *file, const char *name, uint64_t steps, struct weir_err *err)
{
    return open_elements(file, name, H5Tvlen_create(H5T_STD_U8LE), steps, err);
}

static herr_t write_row(const struct set *set, uint64_t step, const void *data)
{
    hsize_t start[WEIR_H5W_RANK] = {step}, count[WEIR_H5W_RANK] = {1};
    for (int i = 1; i < set->shape.rank; i++)
        count[i] = set->shape.dims[i];
    hid_t space = H5Dget_space(set->id), memory = H5Screate_simple(set->shape.rank, count, NULL);
    herr_t rc = H5Sselect_hyperslab(space, H5S_SELECT_SET, start, NULL, count, NULL);
    if (rc >= 0)
        rc = H5Dwrite(set->id, set->memory, memory, space, H5P_DEFAULT, data);
    H5Sclose(memory);
    H5Sclose(space);
    return rc;
}

int weir_h5w_frame(struct weir_h5w *file, int id, uint64_t step, const void *data, size_t bytes, struct weir_err *err)
{
    struct set *set = &file->set[id];
    if (step >= set->shape.dims[0] || (set->bytes && bytes != set->bytes))
        return weir_err_set(err, -EINVAL, "%s: %s: frame %llu of %zu bytes does not fit", file->path, set->name,
                            (unsigned long long)step, bytes);
    hvl_t element = {.len = bytes, .p = (void *)data};
    errno = 0;
    if (write_row(set, step, set->bytes ? data : &element) < 0)
        return fail(file, set->name, "frame cannot be written", err);
    if (++set->written < set->shape.dims[0])
        return 0;
    /* Flushed first, because a dataset that cannot be closed would prevent the file from being abandoned. */
    bool fine = H5Dflush(set->id) >= 0 && close_set(set) >= 0;
    return fine ? 0 : fail(file, set->name, "frames cannot be written", err);
}

int weir_h5w_spooled(struct weir_h5w *file, int id, const struct weir_spool *spool, struct weir_err *err)
{
    if (id < 0)
        return id;
    uint8_t *row = malloc(spool->longest);
    int rc =
        row ? 0 : weir_err_set(err, -ENOMEM, "%s: out of memory for a row of %zu bytes", file->path, spool->longest);
    uint64_t at = 0;
    for (int t = 0; t < spool->n && rc == 0; t++) {
        size_t bytes = spool->lengths[t];
        rc = weir_spool_get(spool, at, row, bytes, err);
        if (rc < 0)
            break;
        memset(row + bytes, 0, spool->longest - bytes);
        rc = weir_h5w_frame(file, id, (uint64_t)t, row, spool->longest, err);
        at += bytes;
    }
    free(row);
    return rc;
}
