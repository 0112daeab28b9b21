#include "datasets/zarr/zarr_files.h"
#include "base/grow.h"
#include "base/shortage.h"
#include "base/text.h"
#include "datasets/zarr/zarr_files_priv.h"
#include "datasets/zarr/zip_index.h"
#include "origin/url.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { KEY_MAX = 1024, NAMES_MAX = 4096, CHECK_BUFFER = 1 << 20 };

/* ---- opening ---- */

static int look_at_group(struct weir_zarr_files *files, struct weir_err *err)
{
    struct stat st;
    struct weir_file_id id = {0};
    const char *path = files->parts->stand_in;
    if (files->origin && weir_zarr_has(files, ".zgroup")) {
        int rc = files->origin->ops->identify(files->origin, path, &id, err);
        files->parts->looked = weir_part_of(&id);
        return rc;
    }
    if (!files->origin && fstatat(files->fd, ".zgroup", &st, 0) == 0 && S_ISREG(st.st_mode)) {
        files->parts->looked = weir_part_identify(&st);
        return 0;
    }
    if (weir_zarr_has(files, "zarr.json"))
        return weir_err_set(err, -ENOTSUP,
                            "is Zarr version 3, but only version 2 is supported; write it with zarr_format=2");
    return weir_err_set(err, -EBADMSG, "has no .zgroup, so it is not a group of Zarr v2; was it copied completely?");
}

static int open_folder(struct weir_zarr_files *files, struct weir_err *err)
{
    files->parts = calloc(1, sizeof *files->parts);
    if (!files->parts || asprintf(&files->parts->stand_in, "%s/.zgroup", files->path) < 0)
        return weir_no_memory(err);
    int rc = files->origin ? weir_zarr_remote_open(files, err) : 0;
    return rc == 0 ? look_at_group(files, err) : rc;
}

static int check_archive(struct weir_zarr_files *files, struct weir_err *err)
{
    return weir_zarr_has(files, ".zgroup")
               ? 0
               : weir_err_set(err, -EBADMSG,
                              "has no .zgroup at its top, so it is not a group of Zarr v2; does it contain a folder "
                              "that contains the store?");
}

static int open_archive(struct weir_zarr_files *files, struct weir_err *err)
{
    struct weir_file_id id;
    int rc = weir_source_find(&files->source, files->origin, files->path, &id, err);
    if (rc < 0)
        return rc;
    files->raw = (struct weir_raw_file){weir_source_read, files->source, 0, id.size_bytes};
    rc = weir_zip_open(&files->zip, &files->raw, err);
    if (rc < 0 && rc != -EBADMSG && rc != -ENOTSUP && rc != -ENOMEM)
        weir_err_set(err, rc, "%s", weir_source_reason(files->source, rc));
    return rc < 0 ? rc : check_archive(files, err);
}

const char *weir_zarr_mark(const char *name)
{
    return weir_text_ends_any_case(name, ".zip") ? NULL : ".zgroup";
}

int weir_zarr_files_open(struct weir_zarr_files *files, struct weir_origin *origin, const char *path,
                         struct weir_err *err)
{
    struct stat st;
    *files = (struct weir_zarr_files){.path = path, .origin = origin, .fd = -1};
    bool is_folder = origin ? weir_zarr_mark(path) != NULL : stat(path, &st) == 0 && S_ISDIR(st.st_mode);
    if (is_folder && !origin && (files->fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC)) < 0)
        return weir_err_set(err, -errno, "%s; %s", strerror(errno), weir_open_advice(-errno));
    int rc = is_folder ? open_folder(files, err) : open_archive(files, err);
    if (rc < 0)
        weir_zarr_files_close(files);
    return rc;
}

void weir_zarr_files_close(struct weir_zarr_files *files)
{
    if (files->fd >= 0)
        close(files->fd);
    weir_zarr_remote_close(files);
    weir_source_close(&files->source);
    weir_parts_close(&files->parts);
    weir_zip_close(&files->zip);
    files->fd = -1;
}

/* ---- keys ---- */

bool weir_zarr_has(struct weir_zarr_files *files, const char *key)
{
    struct stat st;
    if (!weir_zarr_is_folder(files))
        return weir_zip_find(&files->zip, key) != NULL;
    if (files->origin)
        return weir_zarr_remote_has(files, key);
    return fstatat(files->fd, key, &st, 0) == 0 && S_ISREG(st.st_mode);
}

int weir_zarr_read_member(struct weir_zarr_files *files, const struct weir_zip_member *member, uint64_t at, void *bytes,
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
    rc = weir_zarr_make_room(bytes, member->bytes, most, &why);
    if (rc == 0)
        rc = weir_zarr_read_member(files, member, at, *bytes, &why);
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
        rc = weir_zarr_make_room(bytes, (uint64_t)st.st_size, most, &why);
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
    int rc = !weir_zarr_is_folder(files) ? read_in_zip(files, key, most, bytes, n, err)
             : files->origin             ? weir_zarr_remote_read(files, key, most, bytes, n, err)
                                         : read_in_folder(files, key, most, bytes, n, err);
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
    const char *group;
    struct weir_err *err;
    char (*text)[64];
    int n;
};

static int add_name(void *user, const char *name, size_t length)
{
    struct names *names = user;
    const char *group = names->group;
    struct weir_err *err = names->err;
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

static int list_folder(struct weir_zarr_files *files, struct names *names)
{
    const char *group = names->group;
    struct weir_err *err = names->err;
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
            rc = add_name(names, entry->d_name, strlen(entry->d_name));
    }
    if (rc == 0 && errno)
        rc = weir_err_set(err, -errno, "%s: %s", group, strerror(errno));
    closedir(folder);
    return rc;
}

static int list_zip(const struct weir_zip *zip, struct names *names)
{
    char prefix[KEY_MAX];
    size_t n = (size_t)snprintf(prefix, sizeof prefix, "%s/", names->group);
    int rc = 0;
    for (uint32_t i = weir_zip_lower_bound(zip, prefix); i < zip->n && rc == 0; i++) {
        const char *name = zip->members[i].name;
        if (strncmp(name, prefix, n) != 0)
            break;
        size_t length = strcspn(name + n, "/");
        if (length > 0 && name[n] != '.' && strcmp(name + n + length, "/.zarray") == 0)
            rc = add_name(names, name + n, length);
    }
    return rc;
}

int weir_zarr_list(struct weir_zarr_files *files, const char *group, char (**text)[64], int *n, struct weir_err *err)
{
    struct names names = {.group = group, .err = err};
    int rc = !weir_zarr_is_folder(files) ? list_zip(&files->zip, &names)
             : files->origin             ? weir_zarr_remote_names(files, group, add_name, &names)
                                         : list_folder(files, &names);
    *text = NULL;
    *n = 0;
    if (rc == 0 && names.n > 0)
        qsort(names.text, (size_t)names.n, sizeof *names.text, weir_compare_text);
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
