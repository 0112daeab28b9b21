#include "tests/fakes/fake_nvcuvid.h"

#include <ffnvcodec/dynlink_cuda.h>
#include <ffnvcodec/dynlink_nvcuvid.h>
#include <stdlib.h>
#include <string.h>

struct fake_nvcuvid fake_nvcuvid;

enum { PITCH = 512, SURFACES_MAX = 32 };

/* ---- libcuda ---- */

tcuInit cuInit;
tcuDeviceGet cuDeviceGet;
tcuDevicePrimaryCtxRetain cuDevicePrimaryCtxRetain;
tcuDevicePrimaryCtxRelease cuDevicePrimaryCtxRelease_v2;
tcuCtxPushCurrent_v2 cuCtxPushCurrent_v2;
tcuCtxPopCurrent_v2 cuCtxPopCurrent_v2;
tcuStreamCreate cuStreamCreate;
tcuStreamSynchronize cuStreamSynchronize;
tcuStreamDestroy_v2 cuStreamDestroy_v2;
tcuMemcpy2DAsync_v2 cuMemcpy2DAsync_v2;
CUresult cuMemAllocHost_v2(void **memory, size_t bytes);
CUresult cuMemFreeHost(void *memory);

CUresult cuInit(unsigned flags)
{
    (void)flags;
    return CUDA_SUCCESS;
}

CUresult cuDeviceGet(CUdevice *device, int ordinal)
{
    *device = ordinal;
    return ordinal == 0 ? CUDA_SUCCESS : CUDA_ERROR_NOT_READY;
}

CUresult cuDevicePrimaryCtxRetain(CUcontext *context, CUdevice device)
{
    (void)device;
    *context = (CUcontext)&fake_nvcuvid;
    fake_nvcuvid.contexts++;
    return CUDA_SUCCESS;
}

CUresult cuDevicePrimaryCtxRelease_v2(CUdevice device)
{
    (void)device;
    fake_nvcuvid.contexts--;
    return CUDA_SUCCESS;
}

CUresult cuCtxPushCurrent_v2(CUcontext context)
{
    return context == (CUcontext)&fake_nvcuvid ? CUDA_SUCCESS : CUDA_ERROR_NOT_READY;
}

CUresult cuCtxPopCurrent_v2(CUcontext *context)
{
    *context = (CUcontext)&fake_nvcuvid;
    return CUDA_SUCCESS;
}

CUresult cuStreamCreate(CUstream *stream, unsigned flags)
{
    (void)flags;
    *stream = (CUstream)&fake_nvcuvid;
    return CUDA_SUCCESS;
}

CUresult cuStreamSynchronize(CUstream stream)
{
    (void)stream;
    return CUDA_SUCCESS;
}

CUresult cuStreamDestroy_v2(CUstream stream)
{
    (void)stream;
    return CUDA_SUCCESS;
}

CUresult cuMemcpy2DAsync_v2(const CUDA_MEMCPY2D *copy, CUstream stream)
{
    (void)stream;
    for (size_t y = 0; y < copy->Height; y++)
        memcpy((char *)copy->dstHost + y * copy->dstPitch,
               (const char *)(uintptr_t)copy->srcDevice + y * copy->srcPitch, copy->WidthInBytes);
    return CUDA_SUCCESS;
}

CUresult cuMemAllocHost_v2(void **memory, size_t bytes)
{
    *memory = malloc(bytes);
    return CUDA_SUCCESS;
}

CUresult cuMemFreeHost(void *memory)
{
    free(memory);
    return CUDA_SUCCESS;
}

/* ---- libnvcuvid ---- */

struct parser {
    CUVIDPARSERPARAMS callbacks;
    bool has_format, has_pending;
    unsigned char pending; /* last byte of the packet whose picture has not been handed out */
    int next_surface, surfaces;
};

struct decoder {
    unsigned char surfaces[SURFACES_MAX]; /* last byte of the packet decoded into each */
    int picture[SURFACES_MAX];            /* its number */
    unsigned char *mapped;
};

tcuvidGetDecoderCaps cuvidGetDecoderCaps;
tcuvidCreateVideoParser cuvidCreateVideoParser;
tcuvidParseVideoData cuvidParseVideoData;
tcuvidDestroyVideoParser cuvidDestroyVideoParser;
tcuvidCreateDecoder cuvidCreateDecoder;
tcuvidDestroyDecoder cuvidDestroyDecoder;
tcuvidDecodePicture cuvidDecodePicture;
tcuvidGetDecodeStatus cuvidGetDecodeStatus;
tcuvidMapVideoFrame64 cuvidMapVideoFrame64;
tcuvidUnmapVideoFrame64 cuvidUnmapVideoFrame64;

CUresult cuvidGetDecoderCaps(CUVIDDECODECAPS *caps)
{
    caps->bIsSupported = 1;
    caps->nMaxWidth = caps->nMaxHeight = 256;
    caps->nMaxMBCount = 256;
    return CUDA_SUCCESS;
}

CUresult cuvidCreateVideoParser(CUvideoparser *out, CUVIDPARSERPARAMS *parameters)
{
    struct parser *parser = calloc(1, sizeof *parser);
    parser->callbacks = *parameters;
    fake_nvcuvid.parsers++;
    *out = (CUvideoparser)parser;
    return CUDA_SUCCESS;
}

CUresult cuvidDestroyVideoParser(CUvideoparser self)
{
    free(self);
    fake_nvcuvid.parsers--;
    return CUDA_SUCCESS;
}

static void show_format(struct parser *parser)
{
    const struct fake_nvcuvid *fake = &fake_nvcuvid;
    CUVIDEOFORMAT format = {.codec = parser->callbacks.CodecType,
                            .progressive_sequence = !fake->interlaced,
                            .min_num_decode_surfaces = (unsigned char)fake->surfaces,
                            .coded_width = (unsigned)(fake->width + 15) / 16 * 16,
                            .coded_height = (unsigned)(fake->height + 15) / 16 * 16,
                            .display_area = {0, 0, fake->width, fake->height},
                            .chroma_format = cudaVideoChromaFormat_420};
    format.video_signal_description.matrix_coefficients = 2;
    parser->surfaces = parser->callbacks.pfnSequenceCallback(parser->callbacks.pUserData, &format);
    parser->has_format = true;
}

static void hand_out(struct parser *parser)
{
    if (!parser->has_pending)
        return;
    parser->has_pending = false;
    if (fake_nvcuvid.lost_at == fake_nvcuvid.decoded)
        return;
    CUVIDPICPARAMS picture = {
        .CurrPicIdx = parser->next_surface, .pBitstreamData = &parser->pending, .nBitstreamDataLen = 1};
    parser->next_surface = (parser->next_surface + 1) % (parser->surfaces > 1 ? parser->surfaces : 1);
    parser->callbacks.pfnDecodePicture(parser->callbacks.pUserData, &picture);
}

CUresult cuvidParseVideoData(CUvideoparser self, CUVIDSOURCEDATAPACKET *packet)
{
    struct parser *parser = (struct parser *)self;
    hand_out(parser);
    if (packet->payload_size == 0)
        return CUDA_SUCCESS;
    if (!parser->has_format)
        show_format(parser);
    parser->pending = packet->payload[packet->payload_size - 1];
    parser->has_pending = true;
    return CUDA_SUCCESS;
}

CUresult cuvidCreateDecoder(CUvideodecoder *out, CUVIDDECODECREATEINFO *info)
{
    struct decoder *decoder = calloc(1, sizeof *decoder);
    (void)info;
    fake_nvcuvid.decoders++;
    *out = decoder;
    return CUDA_SUCCESS;
}

CUresult cuvidDestroyDecoder(CUvideodecoder self)
{
    free(self);
    fake_nvcuvid.decoders--;
    return CUDA_SUCCESS;
}

CUresult cuvidDecodePicture(CUvideodecoder self, CUVIDPICPARAMS *picture)
{
    struct decoder *decoder = self;
    decoder->surfaces[picture->CurrPicIdx] = *picture->pBitstreamData;
    decoder->picture[picture->CurrPicIdx] = fake_nvcuvid.decoded++;
    return CUDA_SUCCESS;
}

CUresult cuvidGetDecodeStatus(CUvideodecoder self, int surface, CUVIDGETDECODESTATUS *status)
{
    const struct decoder *decoder = self;
    status->decodeStatus = decoder->picture[surface] == fake_nvcuvid.damaged_at ? cuvidDecodeStatus_Error_Concealed
                                                                                : cuvidDecodeStatus_Success;
    return CUDA_SUCCESS;
}

CUresult cuvidMapVideoFrame64(CUvideodecoder self, int surface, CUdeviceptr *memory, unsigned *pitch,
                              CUVIDPROCPARAMS *parameters)
{
    struct decoder *decoder = self;
    int width = fake_nvcuvid.width, height = fake_nvcuvid.height;
    unsigned char last = decoder->surfaces[surface], *nv12 = calloc((size_t)height * 3 / 2, PITCH);
    (void)parameters;
    for (int y = 0; y < height; y++)
        for (int x = 0; x < width; x++)
            nv12[y * PITCH + x] = fake_luma(last, x, y);
    for (int y = 0; y < height / 2; y++)
        for (int x = 0; x < width; x++)
            nv12[(height + y) * PITCH + x] = fake_chroma(last, x & 1, x / 2, y);
    *memory = (CUdeviceptr)(uintptr_t)nv12;
    *pitch = PITCH;
    fake_nvcuvid.maps++;
    return CUDA_SUCCESS;
}

CUresult cuvidUnmapVideoFrame64(CUvideodecoder self, CUdeviceptr memory)
{
    (void)self;
    free((void *)(uintptr_t)memory);
    fake_nvcuvid.maps--;
    return CUDA_SUCCESS;
}
