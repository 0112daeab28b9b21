/* npz_fixture.h: archives of npy arrays in memory, valid and invalid ones. Exits if a call fails that must not. */
#ifndef WEIR_EXTRAS_MOTION_TESTS_NPZ_FIXTURE_H
#define WEIR_EXTRAS_MOTION_TESTS_NPZ_FIXTURE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { NPZFX_MEMBERS = 32 };

/* All zeros is an empty archive. deflate and zip64 apply to the members added next. */
struct npzfx {
    uint8_t *bytes;
    size_t n, capacity;
    bool deflate, zip64; /* zip64: sizes and offsets in the directory as ZIP64 has them */
    int n_members;
    struct npzfx_member {
        char name[64];
        uint64_t at, data, stored, unpacked; /* data: offset of its bytes. The directory's values may be changed */
        uint32_t crc;
        uint16_t method, flags;
        bool zip64;
    } members[NPZFX_MEMBERS];
};

/* The member, valid until the next one. */
struct npzfx_member *npzfx_put(struct npzfx *npz, const char *name, const void *bytes, size_t n);
/* NAME.npy, version 1.0, with this header followed by these bytes. */
struct npzfx_member *npzfx_npy(struct npzfx *npz, const char *name, const char *header, const void *data, size_t n);
/* NAME.npy of float32. */
struct npzfx_member *npzfx_floats(struct npzfx *npz, const char *name, int rank, const size_t *dims,
                                  const float *values);
/* Adds the directory and the end record; then bytes and n are the file. */
void npzfx_end(struct npzfx *npz);
void npzfx_write(const struct npzfx *npz, const char *path);
void npzfx_free(struct npzfx *npz);

#endif
