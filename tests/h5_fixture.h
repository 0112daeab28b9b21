/* h5_fixture.h: small HDF5 episodes of every storage kind, JPEGs of every kind, and what the HDF5 library itself reads
 * from them. Free of Criterion; what must not fail prints one line and aborts. */
#ifndef WEIR_TESTS_H5_FIXTURE_H
#define WEIR_TESTS_H5_FIXTURE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum h5fx_content {
    H5FX_RAW,     /* (T, H, W, 3) uint8 */
    H5FX_PADDED,  /* (T, longest) uint8, rows padded with zeros */
    H5FX_VLEN,    /* (T) of variable-length uint8 */
    H5FX_CONTENTS /* how many there are */
};

enum h5fx_storage {
    H5FX_CONTIGUOUS,
    H5FX_CHUNK_ONE,  /* a chunk a frame */
    H5FX_CHUNK_MANY, /* four frames a chunk */
    H5FX_CHUNK_HALF, /* a chunk a frame, odd ones never written */
    H5FX_CHUNK_CUT,  /* chunks that cut frames */
    H5FX_GZIP,
    H5FX_COMPACT,
    H5FX_UNWRITTEN, /* contiguous, with a fill value for raw frames */
    H5FX_EXTERNAL_RAW,
    H5FX_VIRTUAL,
    H5FX_EXTERNAL_LINK, /* to PATH.other */
    H5FX_SOFT_LINK,
    H5FX_STORAGES
};

enum { H5FX_CAMERAS = 12 };

struct h5fx_camera {
    const char *name; /* NULL ends the list */
    enum h5fx_content content;
    enum h5fx_storage storage;
    int width, height; /* 0 = 24 x 16 */
    int steps;         /* 0 = the episode's */
    size_t blob_max;   /* > 0: frames are random bytes, 1 to this many, instead of JPEGs */
    bool is_signed;    /* elements are int8 */
    int chunk_rows;    /* H5FX_GZIP: rows of a chunk, more than there are if you like; 0 = 2 */
};

struct h5fx_episode {
    int steps;       /* 0 = 10 */
    bool astrobench; /* keys of AstroBench; else those of ACT */
    struct h5fx_camera cameras[H5FX_CAMERAS + 1];
    bool no_lengths;          /* leave /compress_len out */
    int qpos_dim, action_dim; /* 0 = 4 and 3 */
    uint64_t user_block;      /* bytes */
    bool latest;              /* the library's newest file format */
    int seed;
};

/* Writes the episode. */
void h5fx_write(const char *path, const struct h5fx_episode *episode);

/* Name of a camera's dataset; one of the last eight. */
const char *h5fx_key(const struct h5fx_episode *episode, const char *camera);

/* What H5Dread gives for row t: bytes to be freed. A padded row comes whole, a variable-length element as it is. */
uint8_t *h5fx_read(const char *path, const char *key, int t, size_t *length);
/* Rows of a numeric dataset as the library converts them to double; to be freed. */
double *h5fx_read_doubles(const char *path, const char *key, int *rows, int *columns);

/* Replaces (or with type NULL removes) a dataset. type: f32 f32be f64 f64be i16 i32be u8 i8 str. The values
 * (rows x columns x ..., row-major) are given as double; NULL = never written. */
void h5fx_put(const char *path, const char *key, const char *type, int rank, const uint64_t *dims,
              const double *values);

/* Writes another frame: into a padded row (zeros follow; row 0 of /compress_len becomes n there) or a variable-length
 * element. */
void h5fx_replace(const char *path, const char *key, int t, const void *bytes, size_t n);

/* Overwrites bytes of a file. */
void h5fx_poke(const char *path, uint64_t offset, const void *bytes, size_t n);
/* Where the 16-byte heap references of a contiguous variable-length dataset begin in the file. */
uint64_t h5fx_references(const char *path, const char *key);
uint64_t h5fx_file_bytes(const char *path);

enum h5fx_jpeg {
    H5FX_JPEG_420,
    H5FX_JPEG_444,
    H5FX_JPEG_422,
    H5FX_JPEG_GRAY,
    H5FX_JPEG_CMYK,
    H5FX_JPEG_PROGRESSIVE,
    H5FX_JPEG_ARITHMETIC,
    H5FX_JPEG_RESTART, /* restart markers */
    H5FX_JPEG_411,     /* luma sampled 4x1 */
    H5FX_JPEG_410,     /* 4x2 */
    H5FX_JPEG_440,     /* 1x2 */
    H5FX_JPEG_2X4,
    H5FX_JPEG_MANY_SCANS,
    H5FX_JPEG_YCCK, /* CMYK as YCCK, of which chroma is halved */
    H5FX_JPEGS
};

/* A textured image that differs with seed; to be freed. */
uint8_t *h5fx_jpeg(enum h5fx_jpeg kind, int width, int height, int seed, size_t *length);
/* Pixels (RGB, or BGR) as libjpeg-turbo decodes them; to be freed. NULL when it cannot. */
uint8_t *h5fx_pixels(const uint8_t *bytes, size_t length, bool bgr, int *width, int *height);

#endif
