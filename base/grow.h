/* grow.h: arrays that grow only by appending, and binary search. */
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

/* The first number from 0 to n - 1 for which `holds`, an expression of i, is true; n if there is none. It must be true
 * for all numbers after that one. */
#define WEIR_FIRST(i, n, holds)                                                                                        \
    ({                                                                                                                 \
        __typeof__((n) + 0) low_ = 0, high_ = (n);                                                                     \
        while (low_ < high_) {                                                                                         \
            __typeof__(low_) i = low_ + (high_ - low_) / 2;                                                            \
            if (holds)                                                                                                 \
                high_ = i;                                                                                             \
            else                                                                                                       \
                low_ = i + 1;                                                                                          \
        }                                                                                                              \
        low_;                                                                                                          \
    })

#endif
