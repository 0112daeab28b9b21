/* inside.h: decides which files an episode's HDF5 objects may refer to: external links, external storage, virtual
 * sources.
 *
 * Paths from the file are hostile: a recording must not be able to have the password file trained on. Links in the file
 * system are trusted: an episode, a folder of episodes, or a file beside one may be a symbolic link (as in a Hugging
 * Face cache). One thread. */
#ifndef WEIR_DATASETS_INSIDE_H
#define WEIR_DATASETS_INSIDE_H

#include <stdbool.h>
#include <stddef.h>

enum { WEIR_INSIDE_PATH_MAX = 4096 };

struct weir_inside {
    char episode[WEIR_INSIDE_PATH_MAX];     /* path of the episode's file, anywhere */
    char root[WEIR_INSIDE_PATH_MAX];        /* real path of the dataset's folder */
    char folder[WEIR_INSIDE_PATH_MAX];      /* real path of the episode's own folder, possibly reached by a link */
    bool all;                               /* --allow-external */
    char refusal[2 * WEIR_INSIDE_PATH_MAX]; /* the first refused file, with the reason; "" = none */
};

/* root: from weir_inside_root; NULL = only the episode's folder. Clears the refusal. */
void weir_inside_set(struct weir_inside *inside, const char *root, const char *episode, bool all);

/* Returns the real path of a dataset's folder: path, or the folder that contains it. free; NULL when it does not exist,
 * or without memory. */
char *weir_inside_root(const char *path);

/* Opens a regular file for reading without waiting (for a FIFO). Returns the descriptor or -errno; -EPERM with
 * inside->refusal for a file that may not be read. A path is inside when its last component lies in one of the two
 * folders, wherever it leads as a link, or when its target lies there. The checked file is the one opened, even if the
 * path is replaced meanwhile. */
int weir_inside_open(struct weir_inside *inside, const char *path);

#endif
