/* partial.h: where a copy grows: in the folder "TARGET.partial", under the name that it will have, beside state.json,
 * which says of what source and with what options. Only a whole copy gets the place of TARGET. */
#ifndef WEIR_CONVERT_PARTIAL_H
#define WEIR_CONVERT_PARTIAL_H

#include "weir/base.h"

#include <stdbool.h>
#include <stdint.h>

struct weir_partial {
    const char *target;          /* borrowed */
    char *folder, *state, *copy; /* paths; of the copy: what a writer is given */
    int lock;                    /* of state.json: held until close */
    bool is_there;               /* an interrupted call left something at copy */
};

/* Takes the target for this process. -EEXIST when it exists, -EBUSY when another process writes it, -EINVAL when the
 * folder holds something else, -ELOOP when links are in the way. */
int weir_partial_open(struct weir_partial *partial, const char *target, struct weir_err *err);
/* state: text that an equal call has too. -EINVAL when what an interrupted call left has another. */
int weir_partial_begin(struct weir_partial *partial, const char *state, struct weir_err *err);
/* Removes what is at copy. */
int weir_partial_clear(struct weir_partial *partial, struct weir_err *err);
/* Moves the copy to target. */
int weir_partial_finish(struct weir_partial *partial, struct weir_err *err);
/* Removes the folder unless it holds a copy; the next call resumes that. */
void weir_partial_close(struct weir_partial *partial);

/* Bytes of the files at path, and below it. */
uint64_t weir_partial_bytes(const char *path);

#endif
