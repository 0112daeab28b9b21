/* gpu_jpeg_fixture.h: JPEGs through a GPU's decoder and back to the host, on the stand-in or on a real GPU. Free of
 * Criterion. */
#ifndef WEIR_TESTS_GPU_JPEG_FIXTURE_H
#define WEIR_TESTS_GPU_JPEG_FIXTURE_H

#include "decoders/gpu_jpeg.h"
#include "pipeline/gpu_ops.h"

struct gpujx {
    const struct weir_gpu_ops *ops;
    struct weir_gpu *gpu;
    void *stream, *event;
};

/* GPU 0 in use, by the module that weir_cuda_module_open finds. Negative, and err, when there is none. */
int gpujx_open(struct gpujx *x, struct weir_err *err);
void gpujx_close(struct gpujx *x);

struct gpujx_image {
    const uint8_t *bytes; /* the caller's */
    size_t length;
    struct weir_jpeg_header header;
    enum weir_jpeg_refusal refusal; /* weir_gpu_jpeg_look's */
    struct weir_gpu_jpeg_frame frame;
    int width[3], height[3];
    uint8_t *plane[3]; /* of the host, dense; free with gpujx_release */
    void *memory;      /* of the GPU: the planes that frame names */
};

/* Looks at it, and takes memory for its planes: for those that are refused too if their header could be read. */
int gpujx_take(struct gpujx *x, struct gpujx_image *image, const uint8_t *bytes, size_t length,
               enum weir_gpu_jpeg_engine engine, struct weir_err *err);
void gpujx_release(struct gpujx *x, struct gpujx_image *image);

/* Decodes the images as one call of weir_gpu_jpeg_decode, waits, and brings the planes to the host. */
int gpujx_decode(struct gpujx *x, struct weir_gpu_jpeg *decoder, struct gpujx_image *images, int n,
                 enum weir_jpeg_refusal *results, struct weir_err *err);

/* A decoded image as the GPU prepares it: RGB, height x width x 3; to be freed. */
int gpujx_rgb(struct gpujx *x, const struct gpujx_image *image, uint8_t **rgb, struct weir_err *err);

/* enum weir_gpu_source_kind of a header that engines take. */
uint32_t gpujx_kind(const struct weir_jpeg_header *header);

#endif
