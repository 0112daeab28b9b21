/* episode_bytes.h: serialises episodes, for the index file and for what an HDF5 helper process sends. What is read
 * back is checked as hostile input.
 *
 * Byte order and sizes are native; every field begins at a multiple of 8; a text is its length (with the final zero)
 * and the bytes. docs/storage.md has the fields. */
#ifndef WEIR_DATASETS_EPISODE_BYTES_H
#define WEIR_DATASETS_EPISODE_BYTES_H

#include "datasets/index.h"

/* Grows as it is written to; free(bytes). */
struct weir_bytes_writer {
    uint8_t *bytes;
    size_t n, capacity;
    bool full; /* out of memory */
};

void weir_bytes_put(struct weir_bytes_writer *w, const void *data, size_t n);
void weir_bytes_put_text(struct weir_bytes_writer *w, const char *text); /* NULL as "none" */
void weir_bytes_put_episode(struct weir_bytes_writer *w, const struct weir_episode *episode);

/* Reads what a writer wrote; bad once anything failed a check. */
struct weir_bytes_reader {
    uint8_t *at;
    size_t left;
    bool bad, no_memory; /* no_memory: that is why it is bad */
};

/* n bytes, lent; NULL when they are not there. */
void *weir_bytes_get(struct weir_bytes_reader *c, uint64_t n);
/* NULL for none as well. */
char *weir_bytes_get_text(struct weir_bytes_reader *c);
/* The episode's texts and arrays are lent; what else it takes is freed by weir_episode_close, also when it was bad. */
void weir_bytes_get_episode(struct weir_bytes_reader *c, struct weir_episode *episode);
/* Gives such an episode copies of what was lent to it, before its frames are located. 0 or -ENOMEM; it is closed either
 * way. */
int weir_episode_copy_lent(struct weir_episode *episode);

#endif
