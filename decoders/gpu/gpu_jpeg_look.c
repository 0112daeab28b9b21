/* The functions of gpu_jpeg.h that need no GPU. */
#include "decoders/gpu/gpu_jpeg.h"

#include <inttypes.h>
#include <stdio.h>

const char *weir_gpu_jpeg_engine_name(enum weir_gpu_jpeg_engine engine)
{
    return engine == WEIR_GPU_JPEG_HARDWARE ? "hardware" : "sm";
}

static enum weir_jpeg_refusal process_refused(const struct weir_jpeg_header *header, enum weir_gpu_jpeg_engine engine)
{
    switch (header->process) {
    case WEIR_JPEG_BASELINE:
        return header->one_scan ? WEIR_JPEG_TAKEN : WEIR_JPEG_HAS_SCANS;
    case WEIR_JPEG_PROGRESSIVE:
        return engine == WEIR_GPU_JPEG_SM ? WEIR_JPEG_TAKEN : WEIR_JPEG_IS_PROGRESSIVE;
    case WEIR_JPEG_EXTENDED:
        return WEIR_JPEG_IS_EXTENDED;
    case WEIR_JPEG_ARITHMETIC:
        return WEIR_JPEG_IS_ARITHMETIC;
    default:
        return WEIR_JPEG_IS_LOSSLESS;
    }
}

enum weir_jpeg_refusal weir_gpu_jpeg_takes(const struct weir_jpeg_header *header, enum weir_gpu_jpeg_engine engine)
{
    if (header->bit_depth != 8)
        return WEIR_JPEG_IS_DEEP;
    enum weir_jpeg_refusal refusal = process_refused(header, engine);
    if (refusal != WEIR_JPEG_TAKEN)
        return refusal;
    if (header->components == 4)
        return WEIR_JPEG_IS_CMYK;
    if (header->color != WEIR_JPEG_Y && header->color != WEIR_JPEG_YCC)
        return WEIR_JPEG_IS_RGB;
    if (header->sampling == WEIR_JPEG_SAMPLED_OTHERWISE)
        return WEIR_JPEG_IS_SAMPLED;
    if (!header->tables)
        return WEIR_JPEG_NO_TABLES;
    bool large = header->width > WEIR_GPU_JPEG_SIDE_MAX || header->height > WEIR_GPU_JPEG_SIDE_MAX;
    return large ? WEIR_JPEG_TOO_LARGE : WEIR_JPEG_TAKEN;
}

enum weir_jpeg_refusal weir_gpu_jpeg_look(const uint8_t *bytes, size_t length, enum weir_gpu_jpeg_engine engine,
                                          struct weir_jpeg_header *header, struct weir_gpu_jpeg_frame *frame)
{
    *frame = (struct weir_gpu_jpeg_frame){.bytes = bytes};
    enum weir_jpeg_refusal refusal = weir_jpeg_header_read(header, bytes, length);
    if (refusal == WEIR_JPEG_TAKEN)
        refusal = weir_gpu_jpeg_takes(header, engine);
    if (refusal == WEIR_JPEG_TAKEN)
        refusal = weir_jpeg_check_scan(header, bytes, length, &frame->length);
    frame->progressive = header->process == WEIR_JPEG_PROGRESSIVE;
    return refusal;
}

void weir_gpu_jpeg_note(struct weir_gpu_jpeg_tally *tally, enum weir_jpeg_refusal refusal)
{
    atomic_fetch_add_explicit(&tally->frames[refusal], 1, memory_order_relaxed);
}

void weir_gpu_jpeg_tally_text(const struct weir_gpu_jpeg_tally *tally, char *text, size_t size)
{
    size_t length = 0;
    text[0] = '\0';
    for (int i = WEIR_JPEG_TAKEN + 1; i < WEIR_JPEG_REFUSALS; i++) {
        uint64_t n = atomic_load_explicit(&tally->frames[i], memory_order_relaxed);
        int wrote = n == 0 ? 0
                           : snprintf(text + length, size - length, "%s%" PRIu64 " %s", length ? ", " : "", n,
                                      weir_jpeg_refusal_name((enum weir_jpeg_refusal)i));
        if (wrote < 0 || (size_t)wrote >= size - length)
            return;
        length += (size_t)wrote;
    }
}

int weir_gpu_jpeg_planes(const struct weir_jpeg_header *header)
{
    return header->sampling == WEIR_JPEG_GRAY ? 1 : 3;
}

void weir_gpu_jpeg_plane(const struct weir_jpeg_header *header, int i, int *width, int *height)
{
    bool narrow = header->sampling == WEIR_JPEG_422 || header->sampling == WEIR_JPEG_420;
    bool low = header->sampling == WEIR_JPEG_440 || header->sampling == WEIR_JPEG_420;
    *width = i > 0 && narrow ? (header->width + 1) / 2 : header->width;
    *height = i > 0 && low ? (header->height + 1) / 2 : header->height;
}
