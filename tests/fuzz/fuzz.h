/* fuzz.h: the entry point of a libFuzzer target, and its assertion. */
#ifndef WEIR_TESTS_FUZZ_FUZZ_H
#define WEIR_TESTS_FUZZ_FUZZ_H

#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static inline void require(bool holds)
{
    if (!holds)
        abort();
}

#endif
