/* Bob Jenkins' lookup3 (public domain, burtleburtle.net/bob/c/lookup3.c), the checksum of HDF5's metadata. It mixes
 * three words, that is twelve bytes, at a time. */
#include "datasets/chunks/heap.h"
#include "datasets/hdf5/chunk_walk_priv.h"

static uint32_t rotate(uint32_t x, int by)
{
    return x << by | x >> (32 - by);
}

static void mix(uint32_t v[3])
{
    static const int by[6] = {4, 6, 8, 16, 19, 4};
    for (int i = 0; i < 6; i++) {
        int a = i % 3, b = (i + 1) % 3, c = (i + 2) % 3;
        v[a] -= v[c];
        v[a] ^= rotate(v[c], by[i]);
        v[c] += v[b];
    }
}

static void finish(uint32_t v[3])
{
    static const int by[7] = {14, 11, 25, 16, 4, 14, 24};
    for (int i = 0; i < 7; i++) {
        int to = (i + 2) % 3, from = (i + 1) % 3;
        v[to] ^= v[from];
        v[to] -= rotate(v[from], by[i]);
    }
}

uint32_t weir_lookup3(const uint8_t *bytes, size_t n)
{
    uint32_t start = 0xdeadbeef + (uint32_t)n, v[3] = {start, start, start};
    for (; n > 12; bytes += 12, n -= 12) {
        for (int i = 0; i < 3; i++)
            v[i] += (uint32_t)weir_le(bytes + 4 * i, 4);
        mix(v);
    }
    if (n == 0)
        return v[2];
    for (size_t i = 0; i < n; i++)
        v[i / 4] += (uint32_t)bytes[i] << 8 * (i % 4);
    finish(v);
    return v[2];
}

bool weir_checksum_holds(const uint8_t *bytes, size_t n)
{
#ifdef FUZZING_BUILD_MODE_UNSAFE_FOR_PRODUCTION
    return bytes && n > 4; /* a fuzzer cannot find a valid checksum, so any is accepted */
#else
    return n > 4 && weir_lookup3(bytes, n - 4) == (uint32_t)weir_le(bytes + n - 4, 4);
#endif
}
