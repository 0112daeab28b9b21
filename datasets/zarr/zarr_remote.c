/* Stores that are folders on a server. Their keys come from the server's lists. Servers leave out names that begin with
 * a dot, such as .zarray, so these are asked for one by one, many at once. */
#include "base/shortage.h"
#include "base/text.h"
#include "base/threads.h"
#include "datasets/index.h"
#include "datasets/zarr/zarr_files_priv.h"
#include "origin/remote.h"
#include "origin/source.h"
#include "origin/url.h"

#include <errno.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { THREADS = 64, KEY_MAX = 1024, VALUE_MAX = 1 << 20, AHEAD_MAX_BYTES = 64 << 20, BATCH = 4096 };

/* The value of a key that was read ahead. */
struct weir_zarr_value {
    char *key;
    uint8_t *bytes;
    size_t n;
    int rc; /* 0, or -ENOENT: the key does not exist; after other codes it is read again */
};

/* ---- keys ---- */

static bool is_listed(const struct weir_zarr_files *files, const char *key)
{
    int i = weir_path_list_lower_bound(&files->keys, key);
    return i < files->keys.n && strcmp(files->keys.paths[i], key) == 0;
}

_Static_assert(offsetof(struct weir_zarr_value, key) == 0, "for weir_compare_text_pointer");

static const struct weir_zarr_value *value_of(const struct weir_zarr_files *files, const char *key)
{
    return files->n_values > 0
               ? bsearch(&key, files->values, (size_t)files->n_values, sizeof *files->values, weir_compare_text_pointer)
               : NULL;
}

/* Returns whether lists leave out this key. */
static bool is_hidden(const char *key)
{
    const char *slash = strrchr(key, '/');
    return (slash ? slash[1] : *key) == '.';
}

static int all_files(const char *name, bool is_folder)
{
    return is_folder ? -1 : (int)strlen(name);
}

static int add_key(void *user, const char *url, const char *why_not)
{
    struct weir_zarr_files *files = user;
    char *key = why_not ? NULL : strdup(url + strlen(files->path) + 1);
    if (why_not)
        return 0; /* no array has such names */
    if (key && strncmp(files->path, "s3://", 5) != 0 && !weir_url_decode(key)) {
        free(key);
        return 0;
    }
    return weir_path_list_add(&files->keys, key);
}

/* ---- values ---- */

static int read_value(struct weir_zarr_files *files, const char *key, size_t most, uint8_t **bytes, size_t *n,
                      struct weir_err *err)
{
    char path[WEIR_PART_PATH_MAX];
    struct weir_source *source = NULL;
    struct weir_file_id id;
    *bytes = NULL;
    int rc = weir_name_is_safe(key) && weir_url_join(path, sizeof path, files->path, key)
                 ? weir_source_find(&source, files->origin, path, &id, err)
                 : weir_err_set(err, -ENOENT, "no file can have this name");
    if (rc == 0)
        rc = weir_zarr_make_room(bytes, id.size_bytes, most, err);
    if (rc == 0 && (rc = weir_source_read(source, 0, *bytes, (size_t)id.size_bytes)) < 0)
        weir_err_set(err, rc, "%s", weir_source_reason(source, rc));
    weir_source_close(&source);
    *n = rc == 0 ? (size_t)id.size_bytes : 0;
    return rc;
}

struct reading {
    struct weir_zarr_files *files;
    struct weir_zarr_value *values;
    _Atomic size_t bytes; /* of all values so far */
};

static void read_one(void *user, int i)
{
    struct reading *reading = user;
    struct weir_zarr_value *value = &reading->values[i];
    struct weir_err ignored = WEIR_ERR_NONE;
    value->rc = -EAGAIN;
    if (reading->bytes < AHEAD_MAX_BYTES)
        value->rc = read_value(reading->files, value->key, VALUE_MAX, &value->bytes, &value->n, &ignored);
    reading->bytes += value->n;
    if (value->rc < 0) {
        free(value->bytes);
        value->bytes = NULL;
    }
}

/* Reads the values of keys ahead, many at once. Takes over the keys. */
static int read_ahead(struct weir_zarr_files *files, struct weir_path_list *keys, struct weir_err *err)
{
    size_t before = (size_t)files->n_values, n = before + (size_t)keys->n;
    struct weir_zarr_value *values = realloc(files->values, (n + 1) * sizeof *values);
    if (values) {
        files->values = values;
        memset(values + before, 0, (size_t)keys->n * sizeof *values);
        for (int i = 0; i < keys->n; i++) {
            values[before + (size_t)i].key = keys->paths[i];
            keys->paths[i] = NULL;
        }
        weir_run_jobs(THREADS, keys->n, read_one, &(struct reading){files, values + before, 0});
        files->n_values = (int)n;
        qsort(values, n, sizeof *values, weir_compare_text_pointer);
    }
    weir_path_list_free(keys);
    return values ? 0 : weir_no_memory(err);
}

static int add_format(struct weir_path_list *keys, const char *format, ...)
{
    char *key;
    va_list args;
    va_start(args, format);
    int n = vasprintf(&key, format, args);
    va_end(args);
    return weir_path_list_add(keys, n < 0 ? NULL : key);
}

/* Adds the metadata of the folders that contain a key: groups and arrays are at most two deep. */
static int add_folders(struct weir_path_list *keys, const char *key, const char *before)
{
    size_t one = strcspn(key, "/"), two = key[one] ? one + 1 + strcspn(key + one + 1, "/") : 0;
    int rc = 0;
    if (key[one] && strncmp(before, key, one + 1) != 0)
        rc = add_format(keys, "%.*s/.zgroup", (int)one, key);
    if (rc == 0 && two && key[two] && strncmp(before, key, two + 1) != 0)
        rc = add_format(keys, "%.*s/.zarray", (int)two, key);
    return rc;
}

static int read_metadata_ahead(struct weir_zarr_files *files, struct weir_err *err)
{
    struct weir_path_list keys = {0};
    int rc = add_format(&keys, ".zgroup");
    rc = rc < 0 ? rc : add_format(&keys, ".zattrs");
    for (int i = 0; i < files->keys.n && rc == 0; i++)
        rc = add_folders(&keys, files->keys.paths[i], i ? files->keys.paths[i - 1] : "");
    if (rc == 0)
        return read_ahead(files, &keys, err);
    weir_path_list_free(&keys);
    return weir_no_memory(err);
}

int weir_zarr_remote_texts(struct weir_zarr_files *files, int episodes, struct weir_err *err)
{
    struct weir_path_list keys = {0};
    for (int i = 0; i < episodes; i++)
        if (add_format(&keys, "episodes/%d/.zattrs", i) < 0) {
            weir_path_list_free(&keys);
            return weir_no_memory(err);
        }
    return read_ahead(files, &keys, err);
}

/* ---- the folder ---- */

int weir_zarr_remote_open(struct weir_zarr_files *files, struct weir_err *err)
{
    const struct weir_remote_search search = {.part = all_files, .found = add_key, .user = files};
    int rc = weir_remote_list(files->origin, files->path, &search, err);
    if (rc < 0)
        return rc == -ENOMEM && !*err->text ? weir_no_memory(err) : rc;
    weir_path_list_sort_bytes(&files->keys);
    return read_metadata_ahead(files, err);
}

void weir_zarr_remote_close(struct weir_zarr_files *files)
{
    for (int i = 0; i < files->n_values; i++) {
        free(files->values[i].key);
        free(files->values[i].bytes);
    }
    free(files->values);
    files->values = NULL;
    files->n_values = 0;
    weir_path_list_free(&files->keys);
    weir_zarr_window_drop(&files->window);
}

bool weir_zarr_remote_has(struct weir_zarr_files *files, const char *key)
{
    char path[WEIR_PART_PATH_MAX];
    struct weir_file_id id;
    struct weir_err ignored = WEIR_ERR_NONE;
    const struct weir_zarr_value *value = value_of(files, key);
    if (value && (value->rc == 0 || value->rc == -ENOENT))
        return value->rc == 0;
    if (is_listed(files, key))
        return true;
    if (!is_hidden(key) || is_listed(files, ".zgroup") || !weir_name_is_safe(key) ||
        !weir_url_join(path, sizeof path, files->path, key))
        return false;
    return files->origin->ops->identify(files->origin, path, &id, &ignored) != -ENOENT; /* reading shows other errors */
}

int weir_zarr_remote_read(struct weir_zarr_files *files, const char *key, size_t most, uint8_t **bytes, size_t *n,
                          struct weir_err *err)
{
    struct weir_err why = WEIR_ERR_NONE;
    const struct weir_zarr_value *value = value_of(files, key);
    int rc;
    if (value && value->rc == 0) {
        rc = weir_zarr_make_room(bytes, value->n, most, &why);
        if (rc == 0)
            memcpy(*bytes, value->bytes, value->n);
        *n = value->n;
    } else {
        rc = read_value(files, key, most, bytes, n, &why);
    }
    return rc < 0 ? weir_err_set(err, rc, "%s: %s", key, why.text) : 0;
}

int weir_zarr_remote_names(struct weir_zarr_files *files, const char *group,
                           int (*add)(void *user, const char *name, size_t length), void *user)
{
    char prefix[KEY_MAX], key[2 * KEY_MAX];
    size_t n = (size_t)snprintf(prefix, sizeof prefix, "%s/", group);
    int rc = 0;
    for (int i = weir_path_list_lower_bound(&files->keys, prefix); i < files->keys.n && rc == 0;) {
        const char *name = files->keys.paths[i] + n;
        if (strncmp(files->keys.paths[i], prefix, n) != 0)
            break;
        size_t length = strcspn(name, "/");
        snprintf(key, sizeof key, "%s%.*s/.zarray", prefix, (int)length, name);
        if (*name != '.' && name[length] == '/' && weir_zarr_remote_has(files, key))
            rc = add(user, name, length);
        snprintf(key, sizeof key, "%s%.*s%c", prefix, (int)length, name, '/' + 1); /* after all keys of this folder */
        i = name[length] == '/' ? weir_path_list_lower_bound(&files->keys, key) : i + 1;
    }
    return rc;
}

uint64_t weir_zarr_remote_count(const struct weir_zarr_files *files, const char *array)
{
    size_t n = strlen(array);
    uint64_t count = 0;
    for (int i = 0; i < files->keys.n; i++)
        count += strncmp(files->keys.paths[i], array, n) == 0 && files->keys.paths[i][n] == '/';
    return count;
}

/* ---- chunks ---- */

/* Identifies the listed chunks first .. end - 1 of an array. */
static int identify_some(struct weir_zarr_files *files, const char *array, const struct weir_part_folder *folder,
                         uint32_t first, uint32_t end, uint32_t first_part, struct weir_chunk *chunks,
                         struct weir_err *err)
{
    char name[KEY_MAX], path[WEIR_PART_PATH_MAX];
    struct weir_path_list paths = {0};
    uint32_t numbers[BATCH];
    int rc = 0;
    for (uint32_t i = first; i < end && rc == 0; i++) {
        size_t used = (size_t)snprintf(name, sizeof name, "%.*s/", KEY_MAX - 300, array);
        weir_part_name(folder, i, name + used, sizeof name - used);
        chunks[i] = (struct weir_chunk){.offset = WEIR_CHUNK_NONE};
        if (!is_listed(files, name))
            continue;
        numbers[paths.n] = i;
        weir_part_path(files->parts, first_part + i, path, sizeof path);
        rc = weir_path_list_add(&paths, strdup(path));
    }
    if (rc < 0)
        weir_no_memory(err);
    else
        weir_remote_identify_all(files->origin, paths.paths, paths.n);
    for (int k = 0; k < paths.n && rc == 0; k++) {
        struct weir_file_id id;
        struct weir_err why = WEIR_ERR_NONE;
        rc = files->origin->ops->identify(files->origin, paths.paths[k], &id, &why);
        if (rc == 0 && id.size_bytes > INT32_MAX)
            rc = weir_err_set(&why, -EFBIG, "the chunk has over 2 GiB");
        if (rc < 0) {
            weir_err_set(err, rc, "%s: %s", paths.paths[k], why.text);
            break;
        }
        files->parts->parts[first_part + numbers[k]] = weir_part_of(&id);
        chunks[numbers[k]] = (struct weir_chunk){.bytes = (uint32_t)id.size_bytes};
    }
    weir_path_list_free(&paths);
    return rc;
}

int weir_zarr_remote_chunks(struct weir_zarr_files *files, const char *array, const struct weir_part_folder *folder,
                            uint32_t first_part, struct weir_chunk *chunks, struct weir_err *err)
{
    int rc = 0;
    for (uint32_t i = 0; i < folder->n && rc == 0; i += BATCH) {
        uint32_t end = folder->n - i < BATCH ? folder->n : i + BATCH;
        rc = identify_some(files, array, folder, i, end, first_part, chunks, err);
    }
    return rc;
}

int weir_zarr_remote_part(struct weir_zarr_files *files, uint32_t part, const struct weir_chunk *chunk, void *buffer,
                          struct weir_err *err)
{
    char path[WEIR_PART_PATH_MAX];
    const struct weir_part *of = &files->parts->parts[part];
    const struct weir_file_id id = {of->size_bytes, of->device, of->inode, of->mtime_ns, false};
    const struct weir_origin_range range = {0, chunk->bytes, buffer};
    weir_part_path(files->parts, part, path, sizeof path);
    return chunk->bytes ? files->origin->ops->read(files->origin, path, &id, &range, 1, err) : 0;
}

/* ---- a window of chunks ---- */

struct filling {
    struct weir_zarr_files *files;
    const struct weir_chunk *chunks;
    uint32_t first_part;
};

static void fill_one(void *user, int i)
{
    const struct filling *of = user;
    struct weir_zarr_window *window = &of->files->window;
    const struct weir_chunk *chunk = &of->chunks[window->first + (uint32_t)i];
    struct weir_err ignored = WEIR_ERR_NONE;
    uint8_t *bytes = chunk->offset != WEIR_CHUNK_NONE ? malloc(chunk->bytes + 1) : NULL;
    bool fine = bytes && weir_zarr_remote_part(of->files, of->first_part + window->first + (uint32_t)i, chunk, bytes,
                                               &ignored) == 0;
    window->bytes[i] = fine ? bytes : NULL;
    if (!fine)
        free(bytes);
}

void weir_zarr_window_drop(struct weir_zarr_window *window)
{
    for (uint32_t i = 0; i < window->n; i++)
        free(window->bytes[i]);
    window->n = 0;
}

void weir_zarr_remote_ahead(struct weir_zarr_files *files, uint32_t first_part, const struct weir_chunk *chunks,
                            uint32_t i, uint32_t n)
{
    struct weir_zarr_window *window = &files->window;
    uint64_t bytes = 0;
    if (window->first_part == first_part && i - window->first < window->n)
        return;
    weir_zarr_window_drop(window);
    *window = (struct weir_zarr_window){.first_part = first_part, .first = i};
    while (window->n < WEIR_ZARR_WINDOW && i + window->n < n && bytes <= AHEAD_MAX_BYTES)
        bytes += chunks[i + window->n++].bytes;
    weir_run_jobs(THREADS, (int)window->n, fill_one, &(struct filling){files, chunks, first_part});
}

const uint8_t *weir_zarr_window_at(const struct weir_zarr_window *window, uint32_t first_part, uint32_t i)
{
    return window->first_part == first_part && i - window->first < window->n ? window->bytes[i - window->first] : NULL;
}
