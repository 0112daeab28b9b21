/* jpeg_planes.h: the samples of a JPEG's components, as libjpeg has them before upsampling. */
#ifndef WEIR_TESTS_JPEG_PLANES_H
#define WEIR_TESTS_JPEG_PLANES_H

#include "pipeline/gpu_ops.h"

struct jpeg_planes {
    int width, height;
    int kind;          /* enum weir_gpu_source_kind, gray or YUV; -1 = another, nothing was decoded */
    bool progressive;  /* or arithmetic: not for JPEG engines */
    bool warned;       /* libjpeg did */
    uint8_t *plane[3]; /* dense, no sample more than there is; free with jpeg_planes_free */
    int plane_width[3], plane_height[3];
};

/* 0, or -EBADMSG for what libjpeg refuses; then there is nothing to free. */
int jpeg_planes_read(struct jpeg_planes *planes, const uint8_t *bytes, size_t length);
void jpeg_planes_free(struct jpeg_planes *planes);

#endif
