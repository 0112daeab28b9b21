/* The chunks of a store's arrays. */
#include "base/claims.h"
#include "base/shortage.h"
#include "datasets/zarr/zarr_files_priv.h"
#include "origin/url.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { KEY_MAX = 1024, NAMES_MAX = 4096, HEADERS_MAX = 256 };
/* Chunks that were never written have no files. So that a wrong shape cannot claim any number of chunks, an array of
 * more than CHUNKS_FREE chunks needs at least one file per CHUNKS_PER_FILE chunks. */
enum { CHUNKS_FREE = 1000 * 1000, CHUNKS_PER_FILE = 16 };

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
    bool here = weir_zarr_is_folder(files) && !files->origin;
    uint64_t least = folder->n / CHUNKS_PER_FILE, there = files->zip.n;
    if (folder->n <= CHUNKS_FREE)
        return 0;
    if (weir_zarr_is_folder(files) && files->origin)
        there = weir_zarr_remote_count(files, array);
    int copy = here ? openat(fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC) : 0, rc = copy < 0 ? -errno : 0;
    if (here && rc == 0)
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

/* Checks that a chunk's file, which is read as a whole, is no hole. */
static int check_hole(int folder, const char *name, uint64_t bytes, struct weir_err *err)
{
    if (weir_claim_fits(bytes, 0))
        return 0;
    int fd = openat(folder, name, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    if (fd < 0)
        return weir_err_set(err, -errno, "%s: %s", name, strerror(errno));
    uint64_t stored;
    bool fits = weir_claim_fits_file(bytes, fd, bytes, &stored);
    close(fd);
    if (fits)
        return 0;
    return weir_err_set(err, -EBADMSG, "%s: the chunk has %llu MiB, but most of its file is a hole; copy it again",
                        name, (unsigned long long)bytes >> 20);
}

static int stat_chunks(struct weir_zarr_files *files, int fd, const char *array, const struct weir_part_folder *folder,
                       struct weir_chunk *chunks, uint32_t *first_part, struct weir_err *err)
{
    char path[NAMES_MAX], name[256];
    int64_t first = weir_url_join(path, sizeof path - KEY_MAX / 4, files->path, array)
                        ? weir_parts_add(files->parts, path, folder)
                        : -ENAMETOOLONG;
    if (first < 0)
        return weir_err_set(err, (int)first, "%s: %s", array, strerror((int)-first));
    *first_part = (uint32_t)first;
    int rc = 0;
    if (files->origin)
        return weir_zarr_remote_chunks(files, array, folder, *first_part, chunks, err);
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
        rc = rc < 0 ? rc : check_hole(fd, name, (uint64_t)st.st_size, err);
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

/* The headers of members are read before their data can be located. */
static void announce_headers(struct weir_zarr_files *files, const char *array, const struct weir_part_folder *folder,
                             uint32_t i)
{
    struct weir_origin_range ranges[HEADERS_MAX];
    char name[KEY_MAX];
    int n = 0;
    if (i >= files->headers_first && i < files->headers_end)
        return;
    files->headers_first = i;
    for (; i < folder->n && n < HEADERS_MAX; i++) {
        const struct weir_zip_member *member = find_member(files, array, folder, i, name);
        if (member)
            ranges[n++] = (struct weir_origin_range){member->header, WEIR_ZIP_HEADER_BYTES + strlen(name), NULL};
    }
    files->headers_end = i;
    weir_source_announce(files->source, ranges, n);
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
        if (files->origin)
            announce_headers(files, array, folder, i);
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
    bool here = weir_zarr_is_folder(files) && !files->origin;
    int fd = here ? openat(files->fd, array, O_RDONLY | O_DIRECTORY | O_CLOEXEC) : -1;
    files->headers_first = files->headers_end = 0;
    if (here && fd < 0)
        return weir_err_set(err, -errno, "%s: %s", array, strerror(errno));
    int rc = check_count(files, fd, array, &folder, err);
    if (rc == 0 && !(*chunks = malloc(*n * sizeof **chunks)))
        rc = weir_no_memory(err);
    if (rc == 0)
        rc = weir_zarr_is_folder(files) ? stat_chunks(files, fd, array, &folder, *chunks, first_part, err)
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
    if (files->origin)
        return weir_zarr_remote_part(files, part, chunk, buffer, err);
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
    const uint8_t *ahead = weir_zarr_window_at(&files->window, first_part, i);
    if (weir_zarr_is_folder(files) && ahead)
        memcpy(buffer, ahead, chunks[i].bytes);
    if (weir_zarr_is_folder(files) && ahead)
        return 0;
    if (weir_zarr_is_folder(files))
        return read_part(files, first_part + i, &chunks[i], buffer, err);
    struct weir_part_folder folder = folder_of(about, weir_chunk_grid_count(&about->grid));
    const struct weir_zip_member *member = find_member(files, array, &folder, i, name);
    return member ? weir_zarr_read_member(files, member, chunks[i].offset, buffer, err)
                  : weir_err_set(err, -ENOENT, "is not there");
}

void weir_zarr_announce(struct weir_zarr_files *files, uint32_t first_part, const struct weir_chunk *chunks, uint32_t i,
                        uint32_t n)
{
    struct weir_origin_range ranges[HEADERS_MAX];
    int count = 0;
    if (weir_zarr_is_folder(files) && files->origin)
        weir_zarr_remote_ahead(files, first_part, chunks, i, n);
    if (!files->source || !files->origin || i % HEADERS_MAX != 0)
        return;
    for (; i < n && count < HEADERS_MAX; i++)
        if (chunks[i].offset != WEIR_CHUNK_NONE)
            ranges[count++] = (struct weir_origin_range){chunks[i].offset, chunks[i].bytes, NULL};
    weir_source_announce(files->source, ranges, count);
}

int weir_zarr_announce_texts(struct weir_zarr_files *files, int episodes, struct weir_err *err)
{
    return weir_zarr_is_folder(files) && files->origin ? weir_zarr_remote_texts(files, episodes, err) : 0;
}
