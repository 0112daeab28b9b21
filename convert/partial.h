/* partial.h: an unfinished copy. It is written to the folder "TARGET.partial", under its final name, alongside
 * state.json, which identifies source and options. Only a complete copy moves to TARGET. */
#ifndef WEIR_CONVERT_PARTIAL_H
#define WEIR_CONVERT_PARTIAL_H

#include "weir/base.h"

#include <stdbool.h>
#include <stdint.h>

struct weir_partial {
    const char *target;          /* borrowed */
    char *folder, *state, *copy; /* paths; copy: for the writer */
    int lock;                    /* descriptor of state.json, locked until close */
    bool is_there;               /* an interrupted call left a partial copy */
};

/* Reserves the target for this process. -EEXIST when it exists, -EBUSY when another process is writing it, -EINVAL when
 * the folder holds other files, -ELOOP for symbolic links in the way. */
int weir_partial_open(struct weir_partial *partial, const char *target, struct weir_err *err);
/* state: identifies the copy. -EINVAL when the partial copy has another state. */
int weir_partial_begin(struct weir_partial *partial, const char *state, struct weir_err *err);
/* Removes the partial copy. */
int weir_partial_clear(struct weir_partial *partial, struct weir_err *err);
/* Moves the copy to target. */
int weir_partial_finish(struct weir_partial *partial, struct weir_err *err);
/* Removes the folder unless it holds a copy that the next call can resume. */
void weir_partial_close(struct weir_partial *partial);

/* Returns the total size of the files at and below path. */
uint64_t weir_partial_bytes(const char *path);

#endif
