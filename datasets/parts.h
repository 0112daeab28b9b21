/* parts.h: the files of a dataset that is a folder. The name of a chunk's file follows from its number, so only the
 * file's identity (32 bytes) is kept per chunk. Other files have names of their own. A dataset has either chunks or
 * named files. */
#ifndef WEIR_DATASETS_PARTS_H
#define WEIR_DATASETS_PARTS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { WEIR_PART_RANK_MAX = 8, WEIR_PART_PATH_MAX = 4096 };

struct weir_part {
    uint64_t size_bytes, device, inode; /* all 0: the chunk was never written, or the file is not needed */
    int64_t mtime_ns;
};

/* Parts first, first + 1, ... are the chunks of one array, in row-major order. */
struct weir_part_folder {
    char *path; /* owned */
    char separator;
    int rank;
    uint64_t count[WEIR_PART_RANK_MAX]; /* chunks along each dimension */
    uint32_t first, n;
};

struct weir_parts {
    struct weir_part *parts;
    uint32_t n;
    struct weir_part_folder *folders;
    int n_folders;
    const char *root;        /* folder of named files; borrowed */
    char **names;            /* per part, its path in that folder; NULL: the parts are chunks */
    char *stand_in;          /* path of a file that exists in every store and represents the folder; owned */
    struct weir_part looked; /* identity of that file when it was indexed */
};

/* Adds n zeroed parts of a folder, whose path is copied. Returns the number of the first part, -ENOMEM or -EFBIG. */
int64_t weir_parts_add(struct weir_parts *parts, const char *path, const struct weir_part_folder *folder);
/* Adds a file by its path in parts->root, which is copied. Returns its number, -ENAMETOOLONG, -ENOMEM or -EFBIG. The
 * file is not looked at: its part remains zeroed until weir_part_identify. */
int64_t weir_parts_add_file(struct weir_parts *parts, const char *name);
struct stat;
struct weir_part weir_part_identify(const struct stat *st);
struct weir_file_id;
struct weir_part weir_part_of(const struct weir_file_id *id);
/* Writes the name of a chunk's file, such as "12.0.0.0" or "12/0/0/0". text and size are used as by snprintf. */
void weir_part_name(const struct weir_part_folder *folder, uint32_t number, char *text, size_t size);
/* Writes the path of part i. */
void weir_part_path(const struct weir_parts *parts, uint32_t i, char *text, size_t size);
size_t weir_parts_bytes(const struct weir_parts *parts);
void weir_parts_close(struct weir_parts **parts);

#endif
