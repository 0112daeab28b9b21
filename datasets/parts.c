#include "datasets/parts.h"
#include "base/grow.h"
#include "origin/origin.h"
#include "origin/url.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

int64_t weir_parts_add(struct weir_parts *parts, const char *path, const struct weir_part_folder *folder)
{
    uint64_t n = (uint64_t)parts->n + folder->n;
    if (n > INT32_MAX)
        return -EFBIG;
    struct weir_part *more = realloc(parts->parts, (size_t)(n ? n : 1) * sizeof *more);
    if (!more)
        return -ENOMEM;
    parts->parts = more;
    struct weir_part_folder *folders = realloc(parts->folders, (size_t)(parts->n_folders + 1) * sizeof *folders);
    char *copy = folders ? strdup(path) : NULL;
    parts->folders = folders ? folders : parts->folders;
    if (!copy)
        return -ENOMEM;
    memset(more + parts->n, 0, folder->n * sizeof *more);
    folders[parts->n_folders] = *folder;
    folders[parts->n_folders].path = copy;
    folders[parts->n_folders++].first = parts->n;
    parts->n = (uint32_t)n;
    return (int64_t)n - folder->n;
}

int64_t weir_parts_add_file(struct weir_parts *parts, const char *name)
{
    if (parts->n == INT32_MAX)
        return -EFBIG;
    if (strlen(parts->root) + strlen(name) + 2 > WEIR_PART_PATH_MAX)
        return -ENAMETOOLONG;
    if (!weir_grow(&parts->parts, parts->n, sizeof *parts->parts) ||
        !weir_grow(&parts->names, parts->n, sizeof *parts->names) || !(parts->names[parts->n] = strdup(name)))
        return -ENOMEM;
    parts->parts[parts->n] = (struct weir_part){0};
    return parts->n++;
}

struct weir_part weir_part_identify(const struct stat *st)
{
    return (struct weir_part){(uint64_t)st->st_size, st->st_dev, st->st_ino,
                              (int64_t)st->st_mtim.tv_sec * 1000000000 + st->st_mtim.tv_nsec};
}

struct weir_part weir_part_of(const struct weir_file_id *id)
{
    return (struct weir_part){id->size_bytes, id->device, id->inode, id->mtime_ns};
}

void weir_part_name(const struct weir_part_folder *folder, uint32_t number, char *text, size_t size)
{
    uint64_t at[WEIR_PART_RANK_MAX];
    size_t used = 0;
    for (int d = folder->rank - 1; d >= 0; d--) {
        at[d] = number % folder->count[d];
        number = (uint32_t)(number / folder->count[d]);
    }
    for (int d = 0; d < folder->rank && used < size; d++) {
        char separator[2] = {d ? folder->separator : '\0'};
        used += (size_t)snprintf(text + used, size - used, "%s%llu", separator, (unsigned long long)at[d]);
    }
}

void weir_part_path(const struct weir_parts *parts, uint32_t i, char *text, size_t size)
{
    int f = 0;
    if (parts->names) {
        weir_url_join(text, size, parts->root, parts->names[i]);
        return;
    }
    while (f + 1 < parts->n_folders && parts->folders[f + 1].first <= i)
        f++;
    size_t used = (size_t)snprintf(text, size, "%s/", parts->folders[f].path);
    if (used < size)
        weir_part_name(&parts->folders[f], i - parts->folders[f].first, text + used, size - used);
}

size_t weir_parts_bytes(const struct weir_parts *parts)
{
    size_t bytes = sizeof *parts + parts->n * sizeof *parts->parts;
    for (int f = 0; f < parts->n_folders; f++)
        bytes += sizeof *parts->folders + strlen(parts->folders[f].path);
    for (uint32_t i = 0; parts->names && i < parts->n; i++)
        bytes += sizeof *parts->names + strlen(parts->names[i]);
    return bytes;
}

void weir_parts_close(struct weir_parts **parts)
{
    if (!*parts)
        return;
    for (int f = 0; f < (*parts)->n_folders; f++)
        free((*parts)->folders[f].path);
    for (uint32_t i = 0; (*parts)->names && i < (*parts)->n; i++)
        free((*parts)->names[i]);
    free((*parts)->names);
    free((*parts)->folders);
    free((*parts)->parts);
    free((*parts)->stand_in);
    free(*parts);
    *parts = NULL;
}
