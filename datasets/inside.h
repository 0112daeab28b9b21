/* inside.h: decides which files the HDF5 objects of an episode may refer to through external links, external storage
 * and virtual sources.
 *
 * Paths in the file are hostile: a recording must not be able to make the password file part of the training data.
 * Links in the file system are trusted: an episode, a folder of episodes, or a file next to an episode can be a
 * symbolic link (as in a Hugging Face cache). One thread. */
#ifndef WEIR_DATASETS_INSIDE_H
#define WEIR_DATASETS_INSIDE_H

#include <stdbool.h>
#include <stddef.h>

enum { WEIR_INSIDE_PATH_MAX = 4096 };

struct weir_inside {
    char episode[WEIR_INSIDE_PATH_MAX]; /* path of the episode's file, which may be in any folder */
    char root[WEIR_INSIDE_PATH_MAX]; /* real path of the dataset's folder; if unknown, that of the episode's own folder
                                      */
    char folder[WEIR_INSIDE_PATH_MAX];      /* real path of the episode's own folder, which a link may have led to */
    bool all;                               /* --allow-external was given */
    char refusal[2 * WEIR_INSIDE_PATH_MAX]; /* the first refused file, with the reason; "" = none */
};

/* root: the result of weir_inside_root, or NULL to permit only the episode's folder. Clears the refusal. */
void weir_inside_set(struct weir_inside *inside, const char *root, const char *episode, bool all);

/* Returns the real path of a dataset's folder: path itself, or the folder that contains it. The caller frees it.
 * Returns NULL if path does not exist or memory runs out. */
char *weir_inside_root(const char *path);

/* Records the refusal of a file, unless one is recorded. Returns -EPERM. */
int weir_inside_refuse(struct weir_inside *inside, const char *path, const char *why);

/* Opens a regular file for reading, without waiting if it is a FIFO. Returns the descriptor or -errno; -EPERM with
 * inside->refusal for a file that may not be read. A path is permitted if its last component lies in one of the two
 * folders, even if it is a link that leads elsewhere, or if its target lies there. The checked file is the one that is
 * opened, even if the path is replaced in the meantime. */
int weir_inside_open(struct weir_inside *inside, const char *path);

#endif
