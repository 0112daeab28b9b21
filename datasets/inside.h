/* inside.h: which files an episode's HDF5 objects may lead to: external links, external storage, virtual sources.
 *
 * The paths come out of the file, which is taken to be hostile: a recording must not be able to name the password file
 * and have it trained on. What the file system itself links to is trusted: an episode, or a folder of them, may be a
 * symbolic link (as in a Hugging Face cache), and so may a file beside it. One thread. */
#ifndef WEIR_DATASETS_INSIDE_H
#define WEIR_DATASETS_INSIDE_H

#include <stdbool.h>
#include <stddef.h>

enum { WEIR_INSIDE_PATH_MAX = 4096 };

struct weir_inside {
    char episode[WEIR_INSIDE_PATH_MAX];     /* path of the episode's file; it may lie anywhere */
    char root[WEIR_INSIDE_PATH_MAX];        /* real path of the dataset's folder */
    char folder[WEIR_INSIDE_PATH_MAX];      /* real path of the episode's own folder, which a link may have led to */
    bool all;                               /* --allow-external */
    char refusal[2 * WEIR_INSIDE_PATH_MAX]; /* the first file that was refused, and why; "" = none */
};

/* root: as weir_inside_root gave it; NULL = the episode's folder alone. Forgets a refusal. */
void weir_inside_set(struct weir_inside *inside, const char *root, const char *episode, bool all);

/* The real path of a dataset's folder: of path, or of the folder that it is in. free; NULL when there is none, or no
 * memory. */
char *weir_inside_root(const char *path);

/* Opens a regular file for reading, without waiting (a FIFO). The descriptor, or -errno; -EPERM when the file may not
 * be read: then inside->refusal says why. A path is inside when its last name lies in one of the two folders, wherever
 * that name, as a link, leads; or when what it leads to lies there. What was checked is what is opened: a path that is
 * exchanged meanwhile makes no difference. */
int weir_inside_open(struct weir_inside *inside, const char *path);

#endif
