/* A file driver for the HDF5 library that opens only regular files, and only files that weir_h5_inside permits. It
 * reads like the library's default driver. */
#include "datasets/hdf5/h5_guard_priv.h"
#include "datasets/hdf5/h5_read_priv.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <hdf5.h>
#if H5_VERSION_GE(1, 13, 0)
#include <H5FDdevelop.h>
#endif

struct weir_inside weir_h5_inside;
struct weir_h5_supply weir_h5_supply;

struct guarded {
    H5FD_t library; /* the library's part, which must be the first member */
    int fd;         /* -1 if the file is supplied */
    haddr_t end_of_allocation, end_of_file;
    dev_t device;
    ino_t inode;
    char name[]; /* path; "" for the file being read */
};

/* Reports errors in the words of the library's own driver. Also records them, because the library drops the reason when
 * it searches for virtual sources: it treats a failure as the end of a series. A refusal (EPERM) is not an error of the
 * system, so it is not recorded. */
static void say(const char *what, int code, const char *name)
{
    if (code != EPERM)
        weir_h5_note_error(code, name);
    H5Epush2(H5E_DEFAULT, __FILE__, __func__, __LINE__, H5E_ERR_CLS, H5E_VFL, H5E_CANTOPENFILE,
             code == EPERM ? "%s: code %d, '%s'" : "%s: errno = %d, error message = '%s'", what, code, strerror(code));
}

/* Refuses files other than the supplied one. */
static H5FD_t *open_supplied(const char *name, unsigned flags)
{
    bool same = strcmp(name, weir_h5_inside.episode) == 0 && !(flags & (H5F_ACC_TRUNC | H5F_ACC_CREAT));
    struct guarded *file = same ? calloc(1, sizeof *file + 1) : NULL;
    if (!same)
        weir_inside_refuse(
            &weir_h5_inside, name,
            "is another file, which an HDF5 file on a server may not refer to; copy both to this machine");
    if (!file) {
        say("unable to open file", same ? ENOMEM : EPERM, same ? NULL : name);
        return NULL;
    }
    file->fd = -1;
    file->end_of_file = (haddr_t)weir_h5_supply.size_bytes;
    return &file->library;
}

static H5FD_t *guard_open(const char *name, unsigned flags, hid_t access, haddr_t max)
{
    (void)access;
    (void)max;
    struct stat st;
    if (weir_h5_supply.read)
        return open_supplied(name, flags);
    const char *other = strcmp(name, weir_h5_inside.episode) == 0 ? "" : name;
    struct guarded *file = calloc(1, sizeof *file + strlen(other) + 1);
    if (!file) {
        say("unable to open file", ENOMEM, NULL);
        return NULL;
    }
    file->fd = flags & (H5F_ACC_TRUNC | H5F_ACC_CREAT) ? -EROFS : weir_inside_open(&weir_h5_inside, name);
    if (file->fd < 0 || fstat(file->fd, &st) != 0) {
        say("unable to open file", file->fd < 0 ? -file->fd : errno, other);
        if (file->fd >= 0)
            close(file->fd);
        free(file);
        return NULL;
    }
    memcpy(file->name, other, strlen(other) + 1);
    file->end_of_file = (haddr_t)st.st_size;
    file->device = st.st_dev;
    file->inode = st.st_ino;
    return &file->library;
}

static herr_t guard_close(H5FD_t *library)
{
    struct guarded *file = (struct guarded *)library;
    if (file->fd >= 0)
        close(file->fd);
    free(file);
    return 0;
}

static int guard_compare(const H5FD_t *a, const H5FD_t *b)
{
    const struct guarded *left = (const struct guarded *)a, *right = (const struct guarded *)b;
    if (left->device != right->device)
        return left->device < right->device ? -1 : 1;
    return left->inode == right->inode ? 0 : left->inode < right->inode ? -1 : 1;
}

static herr_t guard_query(const H5FD_t *library, unsigned long *flags)
{
    const struct guarded *file = (const struct guarded *)library; /* NULL: the flags of the driver itself */
    *flags = H5FD_FEAT_AGGREGATE_METADATA | H5FD_FEAT_ACCUMULATE_METADATA | H5FD_FEAT_DATA_SIEVE |
             H5FD_FEAT_AGGREGATE_SMALLDATA | H5FD_FEAT_DEFAULT_VFD_COMPATIBLE;
    if (!file || file->fd >= 0)
        *flags |= H5FD_FEAT_POSIX_COMPAT_HANDLE; /* needed to find files next to the target of a link */
    return 0;
}

static haddr_t guard_get_eoa(const H5FD_t *library, H5FD_mem_t type)
{
    (void)type;
    return ((const struct guarded *)library)->end_of_allocation;
}

static herr_t guard_set_eoa(H5FD_t *library, H5FD_mem_t type, haddr_t end)
{
    (void)type;
    ((struct guarded *)library)->end_of_allocation = end;
    return 0;
}

static haddr_t guard_get_eof(const H5FD_t *library, H5FD_mem_t type)
{
    (void)type;
    return ((const struct guarded *)library)->end_of_file;
}

static herr_t guard_get_handle(H5FD_t *library, hid_t access, void **handle)
{
    (void)access;
    *handle = &((struct guarded *)library)->fd;
    return 0;
}

static herr_t read_supplied(const struct guarded *file, haddr_t at, size_t n, uint8_t *buffer)
{
    size_t inside = at < file->end_of_file ? (size_t)(file->end_of_file - at) : 0;
    inside = inside < n ? inside : n;
    memset(buffer + inside, 0, n - inside); /* the library reads slightly past the end of the file */
    int rc = inside ? weir_h5_supply.read(weir_h5_supply.user, at, buffer, inside) : 0;
    if (rc < 0)
        say("file read failed", -rc, file->name);
    return rc < 0 ? -1 : 0;
}

static herr_t guard_read(H5FD_t *library, H5FD_mem_t type, hid_t transfer, haddr_t at, size_t n, void *buffer)
{
    (void)type;
    (void)transfer;
    const struct guarded *file = (const struct guarded *)library;
    if (at > INT64_MAX || n > INT64_MAX - at)
        return -1;
    if (file->fd < 0)
        return read_supplied(file, at, n, buffer);
    for (size_t done = 0; done < n;) {
        ssize_t got = pread(file->fd, (char *)buffer + done, n - done, (off_t)(at + done));
        if (got < 0 && errno == EINTR)
            continue;
        if (got < 0) {
            say("file read failed", errno, file->name);
            return -1;
        }
        if (got == 0) { /* the library reads slightly past the end of the file */
            memset((char *)buffer + done, 0, n - done);
            break;
        }
        done += (size_t)got;
    }
    return 0;
}

static herr_t guard_write(H5FD_t *library, H5FD_mem_t type, hid_t transfer, haddr_t at, size_t n, const void *buffer)
{
    (void)library;
    (void)type;
    (void)transfer;
    (void)at;
    (void)n;
    (void)buffer;
    return -1;
}

/* A writer holds an exclusive lock on its file. Some file systems do not support locks. */
static herr_t guard_lock(H5FD_t *library, hbool_t exclusive)
{
    const struct guarded *file = (const struct guarded *)library;
    if (file->fd < 0 || flock(file->fd, (exclusive ? LOCK_EX : LOCK_SH) | LOCK_NB) == 0 || errno == ENOSYS)
        return 0;
    say("unable to lock file", errno, file->name);
    return -1;
}

static herr_t guard_unlock(H5FD_t *library)
{
    const struct guarded *file = (const struct guarded *)library;
    return file->fd < 0 || flock(file->fd, LOCK_UN) == 0 || errno == ENOSYS ? 0 : -1;
}

static const H5FD_class_t driver = {
#if H5_VERSION_GE(1, 13, 0)
    .version = H5FD_CLASS_VERSION,
    .value = 471, /* from the range that is reserved for private use */
#endif
    .name = "weir",
    .maxaddr = (haddr_t)INT64_MAX,
    .fc_degree = H5F_CLOSE_WEAK,
    .open = guard_open,
    .close = guard_close,
    .cmp = guard_compare,
    .query = guard_query,
    .get_eoa = guard_get_eoa,
    .set_eoa = guard_set_eoa,
    .get_eof = guard_get_eof,
    .get_handle = guard_get_handle,
    .read = guard_read,
    .write = guard_write,
    .lock = guard_lock,
    .unlock = guard_unlock,
    .fl_map = H5FD_FLMAP_DICHOTOMY,
};

void weir_h5_look_at(const char *path)
{
    int fd = weir_inside_open(&weir_h5_inside, path);
    if (fd >= 0)
        close(fd);
}

bool weir_h5_file_name(int64_t dataset, char name[WEIR_INSIDE_PATH_MAX])
{
    ssize_t n = H5Fget_name((hid_t)dataset, name, WEIR_INSIDE_PATH_MAX);
    return n > 0 && n < WEIR_INSIDE_PATH_MAX;
}

void weir_h5_beside(const char *file, const char *name, char path[WEIR_INSIDE_PATH_MAX])
{
    const char *slash = strrchr(file, '/');
    int n = slash ? (int)(slash - file) + 1 : 0;
    if (snprintf(path, WEIR_INSIDE_PATH_MAX, "%.*s%s", n, file, name) >= WEIR_INSIDE_PATH_MAX)
        path[0] = '\0';
}

void weir_h5_prefixed(const char *prefix, int length, const char *from, const char *name,
                      char path[WEIR_INSIDE_PATH_MAX])
{
    static const char origin[] = "${ORIGIN}";
    char text[WEIR_INSIDE_PATH_MAX];
    int skip = strncmp(prefix, origin, sizeof origin - 1) == 0 ? (int)sizeof origin - 1 : 0;
    skip = skip <= length ? skip : 0;
    int n = snprintf(text, sizeof text, "%s%.*s/%s", skip ? "." : "", length - skip, prefix + skip, name);
    if (n >= WEIR_INSIDE_PATH_MAX)
        path[0] = '\0';
    else if (skip)
        weir_h5_beside(from, text, path);
    else
        snprintf(path, WEIR_INSIDE_PATH_MAX, "%s", text);
}

int64_t weir_h5_guarded(void)
{
    static hid_t list = H5I_INVALID_HID;
    if (list >= 0)
        return list;
    hid_t id = H5FDregister(&driver), access = id < 0 ? id : H5Pcreate(H5P_FILE_ACCESS);
    if (access >= 0 && H5Pset_driver(access, id, NULL) >= 0)
        list = access;
    return list;
}
