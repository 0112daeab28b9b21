/* libFuzzer: parses a hostile JPEG in the same way as before GPU decoding. Reads must stay within the bytes, which
 * sanitizers check. The headers of accepted frames must be consistent, and these frames must still be accepted when the
 * bytes after their end are removed. */
#include "decoders/frame_kind.h"
#include "decoders/gpu/gpu_jpeg.h"
#include "tests/fuzz/fuzz.h"

#include <string.h>

static void check_taken(const struct weir_jpeg_header *header, const struct weir_gpu_jpeg_frame *frame, size_t size,
                        enum weir_gpu_jpeg_engine engine)
{
    require(header->width >= 1 && header->width <= WEIR_GPU_JPEG_SIDE_MAX);
    require(header->height >= 1 && header->height <= WEIR_GPU_JPEG_SIDE_MAX);
    require(header->components == 1 || header->components == 3);
    require(header->bit_depth == 8 && header->tables && header->mcus > 0);
    require(header->one_scan || engine == WEIR_GPU_JPEG_SM);
    require(frame->length > header->scan_offset && frame->length <= size);
    require(frame->bytes[frame->length - 2] == 0xFF && frame->bytes[frame->length - 1] == 0xD9);
    for (int i = 0; i < weir_gpu_jpeg_planes(header); i++) {
        int width, height;
        weir_gpu_jpeg_plane(header, i, &width, &height);
        require(width >= 1 && width <= header->width && height >= 1 && height <= header->height);
    }
}

/* Finds the end of an image in a padded row, which must not depend on the bytes after it. */
static void check_end(const uint8_t *data, size_t size)
{
    size_t end = weir_frame_end(data, size);
    require(end <= size);
    if (end == 0)
        return;
    uint8_t *copy = malloc(end);
    memcpy(copy, data, end);
    require(weir_frame_end(copy, end) == end && weir_frame_end(copy, end - 1) == 0);
    free(copy);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    check_end(data, size);
    for (int engine = 0; engine < WEIR_GPU_JPEG_ENGINES; engine++) {
        struct weir_jpeg_header header, again;
        struct weir_gpu_jpeg_frame frame, cut;
        enum weir_jpeg_refusal refusal =
            weir_gpu_jpeg_look(data, size, (enum weir_gpu_jpeg_engine)engine, &header, &frame);
        require(refusal >= 0 && refusal < WEIR_JPEG_REFUSALS);
        if (refusal != WEIR_JPEG_TAKEN)
            continue;
        check_taken(&header, &frame, size, (enum weir_gpu_jpeg_engine)engine);
        require(frame.length == weir_frame_end(data, size));
        uint8_t *copy = malloc(frame.length);
        memcpy(copy, data, frame.length);
        require(weir_gpu_jpeg_look(copy, frame.length, (enum weir_gpu_jpeg_engine)engine, &again, &cut) ==
                WEIR_JPEG_TAKEN);
        require(again.kind == header.kind && cut.length == frame.length);
        require(weir_gpu_jpeg_look(copy, frame.length - 1, (enum weir_gpu_jpeg_engine)engine, &again, &cut) !=
                WEIR_JPEG_TAKEN);
        free(copy);
    }
    return 0;
}
