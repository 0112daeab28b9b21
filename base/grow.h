/* grow.h: makes room for one more element in an array that grows only by appending. */
#ifndef WEIR_BASE_GROW_H
#define WEIR_BASE_GROW_H

#include <stdbool.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

enum { WEIR_GROW_FIRST = 16 };

/* Makes room for element n. `array` is the address of a pointer to n elements of size bytes each (NULL if n is 0).
 * Returns true if element n fits, or false if memory is exhausted, in which case the array is unchanged. The capacity
 * is not stored but follows from n (the next power of two), so the function must be called for every element that is
 * appended. */
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
