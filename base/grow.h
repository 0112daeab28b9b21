/* grow.h: room for one more element of an array that only grows by appending. */
#ifndef WEIR_BASE_GROW_H
#define WEIR_BASE_GROW_H

#include <stdbool.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

enum { WEIR_GROW_FIRST = 16 };

/* array is the address of the pointer to n elements of size bytes, NULL for none. Returns true when element n fits;
 * false when memory is short, and the array stays. The room is not recorded: it is the power of two above n, so every
 * element must be added after a call of this. */
static inline bool weir_grow(void *array, size_t n, size_t size)
{
    void *old, *moved;
    if (n != 0 && (n < WEIR_GROW_FIRST || (n & (n - 1)) != 0))
        return true;
    memcpy(&old, array, sizeof old);
    moved = realloc(old, (n ? 2 * n : WEIR_GROW_FIRST) * size);
    if (moved)
        memcpy(array, &moved, sizeof moved);
    return moved != NULL;
}

#endif
