/* record_priv.h: episodes as bytes: in the index file, and between the process that asks the HDF5 library and this one.
 * Native byte order and sizes; every field begins at a multiple of 8, texts are their length (with the final zero) and
 * the bytes. docs/storage.md has the fields. */
#ifndef WEIR_DATASETS_RECORD_PRIV_H
#define WEIR_DATASETS_RECORD_PRIV_H

#include "datasets/index.h"

/* Grows as it is written to; free(bytes). */
struct weir_record_writer {
    uint8_t *bytes;
    size_t n, capacity;
    bool full; /* out of memory */
};

void weir_record_put(struct weir_record_writer *w, const void *data, size_t n);
void weir_record_put_text(struct weir_record_writer *w, const char *text); /* NULL as "none" */
void weir_record_put_episode(struct weir_record_writer *w, const struct weir_episode *episode);

/* Reads what a writer wrote; bad once anything was not as it should be. */
struct weir_record_cursor {
    uint8_t *at;
    size_t left;
    bool bad, no_memory; /* no_memory: that is why it is bad */
};

/* n bytes, lent; NULL when they are not there. */
void *weir_record_get(struct weir_record_cursor *c, uint64_t n);
/* NULL for none as well. */
char *weir_record_text(struct weir_record_cursor *c);
/* The episode's texts and arrays are lent; what else it takes is freed by weir_episode_close, also when it was bad. */
void weir_record_episode(struct weir_record_cursor *c, struct weir_episode *episode);
/* Copies what was lent to such an episode, whose frames are not placed yet. 0 or -ENOMEM, to be closed all the same. */
int weir_record_own(struct weir_episode *episode);

#endif
