#include "datasets/zarr/zarr_files.h"
#include "base/grow.h"
#include "base/shortage.h"
#include "datasets/zarr/zip_unpack.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { KEY_MAX = 1024, NAMES_MAX = 4096, CHECK_BUFFER = 1 << 20 };
/* Chunks that were never written have no files. So that a wrong shape cannot claim any number of chunks, an array of
 * more than CHUNKS_FREE chunks needs at least one file per CHUNKS_PER_FILE chunks. */
enum { CHUNKS_FREE = 1000 * 1000, CHUNKS_PER_FILE = 16 };

static bool is_folder(const struct weir_zarr_files *files)
{
    return files->parts != NULL;
}

/* ---- opening ---- */

static int open_folder(struct weir_zarr_files *files, struct weir_err *err)
{
    struct stat st;
    files->parts = calloc(1, sizeof *files->parts);
    if (!files->parts || asprintf(&files->parts->stand_in, "%s/.zgroup", files->path) < 0)
        return weir_no_memory(err);
    if (fstatat(files->fd, ".zgroup", &st, 0) == 0 && S_ISREG(st.st_mode)) {
        files->parts->looked = weir_part_identify(&st);
        return 0;
    }
    if (fstatat(files->fd, "zarr.json", &st, 0) == 0)
        return weir_err_set(err, -ENOTSUP,
                            "is Zarr version 3, but only version 2 is supported; write it with zarr_format=2");
    return weir_err_set(err, -EBADMSG, "has no .zgroup, so it is not a group of Zarr v2; was it copied completely?");
}

int weir_zarr_files_open(struct weir_zarr_files *files, const char *path, struct weir_err *err)
{
    struct stat st;
    *files = (struct weir_zarr_files){.path = path, .fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK)};
    if (files->fd < 0 || fstat(files->fd, &st) != 0) {
        int rc = -errno;
        weir_zarr_files_close(files);
        return weir_err_set(err, rc, "%s; %s", strerror(-rc), weir_open_advice(rc));
    }
    files->raw = (struct weir_raw_file){weir_raw_read, &files->fd, 0, (uint64_t)st.st_size};
    int rc = S_ISDIR(st.st_mode) ? open_folder(files, err) : weir_zip_open(&files->zip, &files->raw, err);
    if (rc == 0 && !is_folder(files) && !weir_zarr_has(files, ".zgroup"))
        rc = weir_err_set(err, -EBADMSG,
                          "has no .zgroup at its top, so it is not a group of Zarr v2; does it contain a folder that "
                          "contains the store?");
    if (rc < 0)
        weir_zarr_files_close(files);
    return rc;
}

void weir_zarr_files_close(struct weir_zarr_files *files)
{
    if (files->fd >= 0)
        close(files->fd);
    weir_parts_close(&files->parts);
    weir_zip_close(&files->zip);
    files->fd = -1;
}

/* ---- keys ---- */

bool weir_zarr_has(struct weir_zarr_files *files, const char *key)
{
    struct stat st;
    if (!is_folder(files))
        return weir_zip_find(&files->zip, key) != NULL;
    return fstatat(files->fd, key, &st, 0) == 0 && S_ISREG(st.st_mode);
}

/* Reads an uncompressed member, whose data begins at `at`. Returns -EBADMSG if the checksum is wrong. */
static int read_member(struct weir_zarr_files *files, const struct weir_zip_member *member, uint64_t at, void *bytes,
                       struct weir_err *err)
{
    struct weir_zip_unpack *unpack;
    int rc = weir_zip_unpack_open(&unpack, &files->raw, member, at, err);
    if (rc == 0)
        rc = weir_zip_unpack_read(unpack, bytes, (size_t)member->bytes, err);
    if (rc == 0)
        rc = weir_zip_unpack_end(unpack, err);
    weir_zip_unpack_close(&unpack);
    return rc;
}

static int make_room(uint8_t **bytes, uint64_t length, size_t most, struct weir_err *err)
{
    if (length > most)
        return weir_err_set(err, -EFBIG, "its size of %llu bytes is implausible", (unsigned long long)length);
    *bytes = malloc((size_t)length + 1);
    return *bytes ? 0 : weir_no_memory(err);
}

static int read_in_zip(struct weir_zarr_files *files, const char *key, size_t most, uint8_t **bytes, size_t *n,
                       struct weir_err *err)
{
    uint64_t at = 0;
    const struct weir_zip_member *member = weir_zip_find(&files->zip, key);
    if (!member)
        return weir_err_set(err, -ENOENT, "%s: does not exist", key);
    int rc = weir_zip_data(&files->raw, member, &at, err);
    if (rc < 0)
        return rc;
    struct weir_err why = WEIR_ERR_NONE;
    rc = make_room(bytes, member->bytes, most, &why);
    if (rc == 0)
        rc = read_member(files, member, at, *bytes, &why);
    *n = (size_t)member->bytes;
    return rc < 0 ? weir_err_set(err, rc, "%s: %s", key, why.text) : 0;
}

static int read_in_folder(struct weir_zarr_files *files, const char *key, size_t most, uint8_t **bytes, size_t *n,
                          struct weir_err *err)
{
    struct stat st;
    int fd = openat(files->fd, key, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    if (fd < 0)
        return weir_err_set(err, -errno, "%s: %s", key, strerror(errno));
    struct weir_err why = WEIR_ERR_NONE;
    int rc = fstat(fd, &st) == 0 && S_ISREG(st.st_mode) ? 0 : weir_err_set(&why, -EBADMSG, "is not a file");
    if (rc == 0)
        rc = make_room(bytes, (uint64_t)st.st_size, most, &why);
    *n = (size_t)st.st_size;
    if (rc == 0 && (rc = weir_raw_read(&fd, 0, *bytes, *n)) < 0)
        weir_err_set(&why, rc, "%s", strerror(-rc));
    close(fd);
    return rc < 0 ? weir_err_set(err, rc, "%s: %s", key, why.text) : 0;
}

int weir_zarr_read(struct weir_zarr_files *files, const char *key, size_t most, uint8_t **bytes, size_t *n,
                   struct weir_err *err)
{
    *bytes = NULL;
    int rc = is_folder(files) ? read_in_folder(files, key, most, bytes, n, err)
                              : read_in_zip(files, key, most, bytes, n, err);
    if (rc == 0) {
        (*bytes)[*n] = 0;
        return 0;
    }
    free(*bytes);
    *bytes = NULL;
    return rc;
}

/* ---- groups ---- */

struct names {
    char (*text)[64];
    int n;
};

static int add_name(struct names *names, const char *group, const char *name, size_t length, struct weir_err *err)
{
    if (length > 63)
        return weir_err_set(err, -ENAMETOOLONG, "%s/%.*s: the name has over 63 bytes; rename it", group,
                            (int)(length < 128 ? length : 128), name);
    if (names->n == NAMES_MAX)
        return weir_err_set(err, -EFBIG, "%s: more than %d arrays", group, NAMES_MAX);
    if (!weir_grow(&names->text, (size_t)names->n, sizeof *names->text))
        return weir_no_memory(err);
    memset(names->text[names->n], 0, sizeof *names->text);
    memcpy(names->text[names->n++], name, length);
    return 0;
}

static int list_folder(struct weir_zarr_files *files, const char *group, struct names *names, struct weir_err *err)
{
    int fd = openat(files->fd, group, O_RDONLY | O_DIRECTORY | O_CLOEXEC), rc = 0;
    DIR *folder = fd >= 0 ? fdopendir(fd) : NULL;
    if (!folder) {
        rc = -errno;
        if (fd >= 0)
            close(fd);
        return rc == -ENOENT ? 0 : weir_err_set(err, rc, "%s: %s", group, strerror(-rc));
    }
    const struct dirent *entry;
    for (errno = 0; rc == 0 && (entry = readdir(folder)); errno = 0) {
        char key[KEY_MAX];
        snprintf(key, sizeof key, "%s/%s/.zarray", group, entry->d_name);
        if (entry->d_name[0] != '.' && weir_zarr_has(files, key))
            rc = add_name(names, group, entry->d_name, strlen(entry->d_name), err);
    }
    if (rc == 0 && errno)
        rc = weir_err_set(err, -errno, "%s: %s", group, strerror(errno));
    closedir(folder);
    return rc;
}

static int list_zip(const struct weir_zip *zip, const char *group, struct names *names, struct weir_err *err)
{
    char prefix[KEY_MAX];
    size_t n = (size_t)snprintf(prefix, sizeof prefix, "%s/", group);
    int rc = 0;
    for (uint32_t i = weir_zip_lower_bound(zip, prefix); i < zip->n && rc == 0; i++) {
        const char *name = zip->members[i].name;
        if (strncmp(name, prefix, n) != 0)
            break;
        size_t length = strcspn(name + n, "/");
        if (length > 0 && name[n] != '.' && strcmp(name + n + length, "/.zarray") == 0)
            rc = add_name(names, group, name + n, length, err);
    }
    return rc;
}

static int by_text(const void *a, const void *b)
{
    return strcmp(a, b);
}

int weir_zarr_list(struct weir_zarr_files *files, const char *group, char (**text)[64], int *n, struct weir_err *err)
{
    struct names names = {0};
    int rc = is_folder(files) ? list_folder(files, group, &names, err) : list_zip(&files->zip, group, &names, err);
    *text = NULL;
    *n = 0;
    if (rc == 0 && names.n > 0)
        qsort(names.text, (size_t)names.n, sizeof *names.text, by_text);
    if (rc == 0 && !names.text && !(names.text = calloc(1, sizeof *names.text)))
        rc = weir_no_memory(err);
    if (rc < 0) {
        free(names.text);
        return rc;
    }
    *text = names.text;
    *n = names.n;
    return 0;
}

/* ---- chunks ---- */

static struct weir_part_folder folder_of(const struct weir_zarray *about, uint32_t n)
{
    struct weir_part_folder folder = {.separator = about->separator, .rank = about->grid.rank, .n = n};
    for (int d = 0; d < about->grid.rank; d++)
        folder.count[d] = (about->grid.dims[d] + about->grid.chunk[d] - 1) / about->grid.chunk[d];
    return folder;
}

/* Counts chunk files below an open folder, down to `levels` levels of folders; stops at `most` files. Closes the
 * folder. */
static int count_files(int fd, int levels, uint64_t most, uint64_t *n)
{
    DIR *folder = fdopendir(fd);
    const struct dirent *entry;
    int rc = folder ? 0 : -errno;
    for (errno = 0; rc == 0 && *n < most && (entry = readdir(folder)); errno = 0) {
        int below = -1;
        if (levels > 0 && entry->d_name[0] != '.')
            below = openat(fd, entry->d_name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
        if (below >= 0)
            rc = count_files(below, levels - 1, most, n);
        else if (levels > 0 && weir_is_shortage(-errno))
            rc = -errno;
        *n += levels == 0 && entry->d_name[0] != '.';
    }
    if (folder)
        closedir(folder);
    else
        close(fd);
    return rc;
}

/* Checks that an array's shape is plausible for the number of existing files, before memory for its chunks is
 * allocated. */
static int check_count(struct weir_zarr_files *files, int fd, const char *array, const struct weir_part_folder *folder,
                       struct weir_err *err)
{
    uint64_t least = folder->n / CHUNKS_PER_FILE, there = files->zip.n;
    if (folder->n <= CHUNKS_FREE)
        return 0;
    int copy = is_folder(files) ? openat(fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC) : 0, rc = copy < 0 ? -errno : 0;
    if (is_folder(files) && rc == 0)
        rc = count_files(copy, folder->separator == '/' ? folder->rank - 1 : 0, least, &there);
    if (rc < 0)
        return weir_err_set(err, rc, "%s: %s", array, strerror(-rc));
    if (there >= least)
        return 0;
    return weir_err_set(err, -EFBIG, "%s: its shape requires %u chunks, but few of them exist; is its shape right?",
                        array, folder->n);
}

static int take_chunk(struct weir_chunk *chunk, uint64_t offset, uint64_t bytes, const char *name, struct weir_err *err)
{
    if (bytes > INT32_MAX)
        return weir_err_set(err, -EFBIG, "%s: the chunk has over 2 GiB", name);
    *chunk = (struct weir_chunk){.offset = offset, .bytes = (uint32_t)bytes};
    return 0;
}

static int stat_chunks(struct weir_zarr_files *files, int fd, const char *array, const struct weir_part_folder *folder,
                       struct weir_chunk *chunks, uint32_t *first_part, struct weir_err *err)
{
    char path[NAMES_MAX], name[256];
    snprintf(path, sizeof path, "%s/%s", files->path, array);
    int64_t first = weir_parts_add(files->parts, path, folder);
    if (first < 0)
        return weir_err_set(err, (int)first, "%s: %s", array, strerror((int)-first));
    *first_part = (uint32_t)first;
    int rc = 0;
    for (uint32_t i = 0; i < folder->n && rc == 0; i++) {
        struct stat st;
        weir_part_name(folder, i, name, sizeof name);
        chunks[i] = (struct weir_chunk){.offset = WEIR_CHUNK_NONE};
        bool there = fstatat(fd, name, &st, 0) == 0;
        if (!there && errno != ENOENT && errno != ENOTDIR)
            return weir_err_set(err, -errno, "%s/%s: %s", array, name, strerror(errno));
        if (there && !S_ISREG(st.st_mode))
            return weir_err_set(err, -EBADMSG, "%s/%s: is not a file; is the dimension_separator of .zarray right?",
                                array, name);
        if (!there)
            continue;
        files->parts->parts[first + i] = weir_part_identify(&st);
        rc = take_chunk(&chunks[i], 0, (uint64_t)st.st_size, name, err);
    }
    return rc;
}

/* Returns the archive member of chunk i and writes its name. Returns NULL if the member does not exist. */
static const struct weir_zip_member *find_member(struct weir_zarr_files *files, const char *array,
                                                 const struct weir_part_folder *folder, uint32_t i, char name[KEY_MAX])
{
    size_t used = (size_t)snprintf(name, KEY_MAX, "%.*s/", KEY_MAX - 300, array);
    weir_part_name(folder, i, name + used, KEY_MAX - used);
    return weir_zip_find(&files->zip, name);
}

static int find_members(struct weir_zarr_files *files, const char *array, const struct weir_part_folder *folder,
                        struct weir_chunk *chunks, struct weir_err *err)
{
    int rc = 0;
    for (uint32_t i = 0; i < folder->n && rc == 0; i++) {
        char name[KEY_MAX];
        uint64_t at = 0;
        const struct weir_zip_member *member = find_member(files, array, folder, i, name);
        chunks[i] = (struct weir_chunk){.offset = WEIR_CHUNK_NONE};
        if (!member)
            continue;
        rc = weir_zip_data(&files->raw, member, &at, err);
        if (rc == 0)
            rc = take_chunk(&chunks[i], at, member->bytes, name, err);
    }
    return rc;
}

int weir_zarr_chunks(struct weir_zarr_files *files, const char *array, const struct weir_zarray *about,
                     struct weir_chunk **chunks, uint32_t *n, uint32_t *first_part, struct weir_err *err)
{
    *n = weir_chunk_grid_count(&about->grid);
    *chunks = NULL;
    *first_part = 0;
    if (*n == 0 || *n > INT32_MAX)
        return weir_err_set(err, -EBADMSG, "%s: has no rows, or an implausible number of chunks; is its shape right?",
                            array);
    struct weir_part_folder folder = folder_of(about, *n);
    int fd = is_folder(files) ? openat(files->fd, array, O_RDONLY | O_DIRECTORY | O_CLOEXEC) : -1;
    if (is_folder(files) && fd < 0)
        return weir_err_set(err, -errno, "%s: %s", array, strerror(errno));
    int rc = check_count(files, fd, array, &folder, err);
    if (rc == 0 && !(*chunks = malloc(*n * sizeof **chunks)))
        rc = weir_no_memory(err);
    if (rc == 0)
        rc = is_folder(files) ? stat_chunks(files, fd, array, &folder, *chunks, first_part, err)
                              : find_members(files, array, &folder, *chunks, err);
    if (fd >= 0)
        close(fd);
    if (rc == 0)
        return 0;
    free(*chunks);
    *chunks = NULL;
    return rc;
}

static int read_part(struct weir_zarr_files *files, uint32_t part, const struct weir_chunk *chunk, void *buffer,
                     struct weir_err *err)
{
    char path[NAMES_MAX];
    weir_part_path(files->parts, part, path, sizeof path);
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    int rc = fd < 0 ? -errno : weir_raw_read(&fd, 0, buffer, chunk->bytes);
    if (fd >= 0)
        close(fd);
    return rc < 0 ? weir_err_set(err, rc, "%s", strerror(-rc)) : 0;
}

int weir_zarr_read_chunk(struct weir_zarr_files *files, const char *array, const struct weir_zarray *about,
                         uint32_t first_part, const struct weir_chunk *chunks, uint32_t i, void *buffer,
                         struct weir_err *err)
{
    char name[KEY_MAX];
    if (is_folder(files))
        return read_part(files, first_part + i, &chunks[i], buffer, err);
    struct weir_part_folder folder = folder_of(about, weir_chunk_grid_count(&about->grid));
    const struct weir_zip_member *member = find_member(files, array, &folder, i, name);
    return member ? read_member(files, member, chunks[i].offset, buffer, err)
                  : weir_err_set(err, -ENOENT, "is not there");
}

/* ---- checksums ---- */

static int check_member(struct weir_zarr_files *files, const struct weir_zip_member *member, uint8_t *buffer,
                        struct weir_err *err)
{
    uint64_t at;
    struct weir_zip_unpack *unpack = NULL;
    int rc = weir_zip_locate(&files->raw, member, &at, err);
    if (rc == 0)
        rc = weir_zip_unpack_open(&unpack, &files->raw, member, at, err);
    for (uint64_t left = member->unpacked; left > 0 && rc == 0;) {
        size_t n = left < CHECK_BUFFER ? (size_t)left : CHECK_BUFFER;
        rc = weir_zip_unpack_read(unpack, buffer, n, err);
        left -= n;
    }
    if (rc == 0)
        rc = weir_zip_unpack_end(unpack, err);
    weir_zip_unpack_close(&unpack);
    return rc;
}

int weir_zarr_check(struct weir_zarr_files *files, weir_damaged_fn *damaged, void *user, struct weir_err *err)
{
    uint8_t *buffer = malloc(CHECK_BUFFER);
    int rc = buffer ? 0 : weir_no_memory(err);
    for (uint32_t i = 0; i < files->zip.n && rc == 0; i++) {
        struct weir_err why = WEIR_ERR_NONE;
        const struct weir_zip_member *member = &files->zip.members[i];
        int found = check_member(files, member, buffer, &why);
        if (weir_is_shortage(found))
            rc = weir_err_set(err, found, "%s: %s", member->name, why.text);
        else if (found < 0 && found != -ENOTSUP)
            rc = damaged(user, member->name, why.text);
    }
    free(buffer);
    return rc;
}
