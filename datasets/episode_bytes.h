/* episode_bytes.h: serialises episodes, for the index file and for replies of the HDF5 helper process. The reader
 * treats its input as hostile.
 *
 * Byte order and sizes are native. Every field begins at a multiple of 8. A text is its length, including the final
 * zero, and its bytes. docs/storage.md lists the fields. */
#ifndef WEIR_DATASETS_EPISODE_BYTES_H
#define WEIR_DATASETS_EPISODE_BYTES_H

#include "datasets/index.h"

/* A buffer that grows; free(bytes). */
struct weir_bytes_writer {
    uint8_t *bytes;
    size_t n, capacity;
    bool full; /* out of memory */
};

void weir_bytes_put(struct weir_bytes_writer *w, const void *data, size_t n);
void weir_bytes_put_text(struct weir_bytes_writer *w, const char *text); /* NULL is stored as such */
void weir_bytes_put_episode(struct weir_bytes_writer *w, const struct weir_episode *episode);

/* Reads a writer's bytes; bad after the first failed check. */
struct weir_bytes_reader {
    uint8_t *at;
    size_t left;
    bool bad, no_memory; /* no_memory: the reason for bad */
};

/* Returns n bytes, lent; NULL when fewer remain. */
void *weir_bytes_get(struct weir_bytes_reader *c, uint64_t n);
/* Returns NULL for a stored NULL, too. */
char *weir_bytes_get_text(struct weir_bytes_reader *c);
/* Texts and arrays of the episode are lent. weir_episode_close frees the rest, also after an error. */
void weir_bytes_get_episode(struct weir_bytes_reader *c, struct weir_episode *episode);
/* Replaces lent texts and arrays by copies, before frames are located. 0 or -ENOMEM; the caller closes the episode
 * either way. */
int weir_episode_copy_lent(struct weir_episode *episode);

#endif
