/* npz_fixture.h: builds valid and invalid archives of npy arrays in memory. Exits if a call fails that should succeed.
 */
#ifndef WEIR_EXTRAS_MOTION_TESTS_NPZ_FIXTURE_H
#define WEIR_EXTRAS_MOTION_TESTS_NPZ_FIXTURE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { NPZFX_MEMBERS = 32 };

/* An archive. All zeros is an empty archive. deflate and zip64 apply to the members added after they are set. */
struct npzfx {
    uint8_t *bytes;
    size_t n, capacity;
    bool deflate, zip64; /* zip64: the directory stores sizes and offsets in ZIP64 fields */
    int n_members;
    struct npzfx_member {
        char name[64];
        uint64_t at, data, stored, unpacked; /* data: file offset. Tests may change all of these before npzfx_end */
        uint32_t crc;
        uint16_t method, flags;
        bool zip64;
    } members[NPZFX_MEMBERS];
};

/* Adds a member. Returns it, valid until the next member is added. */
struct npzfx_member *npzfx_put(struct npzfx *npz, const char *name, const void *bytes, size_t n);
/* Adds NAME.npy, version 1.0, with this header and this data. */
struct npzfx_member *npzfx_npy(struct npzfx *npz, const char *name, const char *header, const void *data, size_t n);
/* Adds NAME.npy with a float32 array. */
struct npzfx_member *npzfx_floats(struct npzfx *npz, const char *name, int rank, const size_t *dims,
                                  const float *values);
/* Adds the directory and the end record. The first n bytes of "bytes" are then the complete file. */
void npzfx_end(struct npzfx *npz);
void npzfx_write(const struct npzfx *npz, const char *path);
void npzfx_free(struct npzfx *npz);

#endif
