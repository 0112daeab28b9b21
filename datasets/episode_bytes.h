/* episode_bytes.h: serialises episodes, for the index file and for replies of the HDF5 helper process. The reader
 * treats its input as hostile.
 *
 * Byte order and sizes are native. Every field begins at a multiple of 8. A string is stored as its length, which
 * includes the final zero, followed by its bytes. docs/internals/storage.md lists the fields. */
#ifndef WEIR_DATASETS_EPISODE_BYTES_H
#define WEIR_DATASETS_EPISODE_BYTES_H

#include "datasets/index.h"

/* A growing buffer. The caller frees bytes. */
struct weir_bytes_writer {
    uint8_t *bytes;
    size_t n, capacity;
    bool full; /* an allocation failed */
};

void weir_bytes_put(struct weir_bytes_writer *w, const void *data, size_t n);
void weir_bytes_put_text(struct weir_bytes_writer *w, const char *text); /* a NULL string is also stored as NULL */
void weir_bytes_put_episode(struct weir_bytes_writer *w, const struct weir_episode *episode);

/* Reads a writer's bytes. After the first failed check, bad is set. */
struct weir_bytes_reader {
    uint8_t *at;
    size_t left;
    bool bad, no_memory; /* no_memory: bad was set because memory ran out */
};

/* Returns a pointer to the next n bytes, which the buffer lends; NULL if fewer remain. */
void *weir_bytes_get(struct weir_bytes_reader *c, uint64_t n);
/* Also returns NULL if the stored string is NULL. */
char *weir_bytes_get_text(struct weir_bytes_reader *c);
/* The buffer lends the episode's strings and arrays. weir_episode_close frees the rest, also after an error. */
void weir_bytes_get_episode(struct weir_bytes_reader *c, struct weir_episode *episode);
/* Returns true if a parsed episode is plausible for a file of file_bytes bytes: it has cameras, its pixels fill their
 * rows, and all offsets lie inside the file. A hash proves integrity, but not origin. */
bool weir_index_file_is_sane(const struct weir_episode *episode, uint64_t file_bytes);
/* Like weir_index_file_is_sane without the offsets: checks dimensions, and that pixels fill their rows. */
bool weir_index_shapes_fit(const struct weir_episode *episode);
/* Replaces lent strings and arrays with copies. Call it before the frames are located. Returns 0 or -ENOMEM; in either
 * case, the caller closes the episode. */
int weir_episode_copy_lent(struct weir_episode *episode);

#endif
