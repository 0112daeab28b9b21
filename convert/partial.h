/* partial.h: an unfinished copy. The copy is written under its final name in the folder "TARGET.partial", together with
 * state.json, which identifies the source and the options. The complete copy is moved to TARGET. */
#ifndef WEIR_CONVERT_PARTIAL_H
#define WEIR_CONVERT_PARTIAL_H

#include "weir/base.h"

#include <stdbool.h>
#include <stdint.h>

struct weir_partial {
    const char *target;          /* borrowed */
    char *folder, *state, *copy; /* paths of the folder, of state.json, and of the copy inside the folder */
    int lock;                    /* descriptor of state.json, which is locked until close */
    bool is_there;               /* a partial copy from an interrupted call exists */
};

/* Reserves the target for this process. Returns 0; -EEXIST if the target exists; -EBUSY if another process is writing
 * it; -EINVAL if the folder contains other files; -ELOOP if the partial copy contains a link or a special file; or
 * another negative code. */
int weir_partial_open(struct weir_partial *partial, const char *target, struct weir_err *err);
/* Writes state, a string that identifies the copy, or compares it with that of an existing partial copy. Returns
 * -EINVAL if they differ. */
int weir_partial_begin(struct weir_partial *partial, const char *state, struct weir_err *err);
/* Removes the partial copy. */
int weir_partial_clear(struct weir_partial *partial, struct weir_err *err);
/* Moves the complete copy to the target. */
int weir_partial_finish(struct weir_partial *partial, struct weir_err *err);
/* Releases the lock. Removes the folder unless it contains a copy that the next call can resume. */
void weir_partial_close(struct weir_partial *partial);

/* Returns the total size of all files at and below path. */
uint64_t weir_partial_bytes(const char *path);

#endif
