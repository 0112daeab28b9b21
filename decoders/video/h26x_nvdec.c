/* h264 and hevc on the video engines of an NVIDIA GPU (NVDEC), through the driver's libraries.
 *
 * The engines decode exactly what both standards prescribe, so pictures equal libavcodec's. Pictures return to host
 * memory as planes: conversion, cropping and resizing are those of every video. Only 8 bits with 4:2:0 are decoded
 * here, and whatever the engines refuse or call damaged is left to libavcodec (video.c). */
#if !WEIR_HAVE_NVDEC
#include "decoders/video/video_ops.h"

#define WHY_NOT "built without ffnvcodec"
#else
#include "base/shared_library.h"
#include "decoders/decoder_ops.h"
#include "decoders/video/h26x_priv.h"
#include "decoders/video/video_ops.h"

#include <errno.h>
#include <ffnvcodec/dynlink_cuda.h>
#include <ffnvcodec/dynlink_nvcuvid.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { STREAMS_MAX = 4, CONFIG_BYTES_MAX = 1 << 20, PACKET_BYTES_MAX = 1 << 26 };

/* ---- the libraries ---- */

static struct {
    tcuInit *init;
    tcuDeviceGet *device_get;
    tcuDevicePrimaryCtxRetain *retain;
    tcuDevicePrimaryCtxRelease *release;
    tcuCtxPushCurrent_v2 *push;
    tcuCtxPopCurrent_v2 *pop;
    tcuStreamCreate *stream_create;
    tcuStreamSynchronize *stream_wait;
    tcuStreamDestroy_v2 *stream_destroy;
    tcuMemcpy2DAsync_v2 *copy;
    CUresult (*host_alloc)(void **memory, size_t bytes);
    CUresult (*host_free)(void *memory);
} cuda;

static struct {
    tcuvidGetDecoderCaps *capabilities;
    tcuvidCreateVideoParser *create_parser;
    tcuvidParseVideoData *parse;
    tcuvidDestroyVideoParser *destroy_parser;
    tcuvidCreateDecoder *create;
    tcuvidDestroyDecoder *destroy;
    tcuvidDecodePicture *decode;
    tcuvidGetDecodeStatus *status;
    tcuvidMapVideoFrame64 *map;
    tcuvidUnmapVideoFrame64 *unmap;
} cuvid;

static char why_no_libs[WEIR_REASON_MAX];
static pthread_once_t once = PTHREAD_ONCE_INIT;

static void load_libs(void)
{
    static const struct weir_symbol of_cuda[] = {
        {"cuInit", &cuda.init},
        {"cuDeviceGet", &cuda.device_get},
        {"cuDevicePrimaryCtxRetain", &cuda.retain},
        {"cuDevicePrimaryCtxRelease_v2", &cuda.release},
        {"cuCtxPushCurrent_v2", &cuda.push},
        {"cuCtxPopCurrent_v2", &cuda.pop},
        {"cuStreamCreate", &cuda.stream_create},
        {"cuStreamSynchronize", &cuda.stream_wait},
        {"cuStreamDestroy_v2", &cuda.stream_destroy},
        {"cuMemcpy2DAsync_v2", &cuda.copy},
        {"cuMemAllocHost_v2", &cuda.host_alloc},
        {"cuMemFreeHost", &cuda.host_free},
    };
    static const struct weir_symbol of_cuvid[] = {
        {"cuvidGetDecoderCaps", &cuvid.capabilities}, {"cuvidCreateVideoParser", &cuvid.create_parser},
        {"cuvidParseVideoData", &cuvid.parse},        {"cuvidDestroyVideoParser", &cuvid.destroy_parser},
        {"cuvidCreateDecoder", &cuvid.create},        {"cuvidDestroyDecoder", &cuvid.destroy},
        {"cuvidDecodePicture", &cuvid.decode},        {"cuvidGetDecodeStatus", &cuvid.status},
        {"cuvidMapVideoFrame64", &cuvid.map},         {"cuvidUnmapVideoFrame64", &cuvid.unmap},
    };
    static const char *const cuda_files[] = {"libcuda.so.1", NULL}, *const cuvid_files[] = {"libnvcuvid.so.1", NULL};
    bool is_open = weir_shared_library_open(cuda_files, of_cuda, sizeof of_cuda / sizeof *of_cuda,
                                            "no NVIDIA driver is installed", why_no_libs, sizeof why_no_libs) &&
                   weir_shared_library_open(cuvid_files, of_cuvid, sizeof of_cuvid / sizeof *of_cuvid,
                                            "in a container, set NVIDIA_DRIVER_CAPABILITIES=video,compute,utility",
                                            why_no_libs, sizeof why_no_libs) &&
                   cuda.init(0) == CUDA_SUCCESS;
    if (is_open)
        why_no_libs[0] = '\0';
    else if (!why_no_libs[0])
        snprintf(why_no_libs, sizeof why_no_libs, "the NVIDIA driver finds no GPU");
}

/* ---- contexts ---- */

static const struct codec {
    const char *title;
    cudaVideoCodec id;
} codecs[] = {[WEIR_VIDEO_H264] = {"H.264", cudaVideoCodec_H264}, [WEIR_VIDEO_HEVC] = {"HEVC", cudaVideoCodec_HEVC}};

struct nvdec {
    const struct codec *codec;
    CUdevice device;
    CUcontext context;
    CUstream stream;
    struct weir_whole_image units; /* a packet as a byte stream */
    uint8_t *host;                 /* a picture: luma and interleaved chroma; pinned */
    size_t host_bytes;
    uint8_t *chroma; /* both chroma planes of the same picture */
    /* A decoder for each configuration of a stream; usually a data set has one per size of its cameras. */
    struct stream {
        uint8_t *config;
        size_t config_bytes;
        bool is_refused; /* the engines cannot decode it */
        CUvideodecoder decoder;
        CUVIDEOFORMAT format; /* for which decoder was made */
        uint64_t last_used;
    } streams[STREAMS_MAX];
    uint64_t calls;
    struct weir_in_order order;
    /* The call in progress. */
    struct weir_video_job *job;
    struct stream *current;
    CUvideoparser parser;
    int sending, decoding; /* the packet that is being parsed, and the one whose picture is decoded next */
    int result;            /* as weir_video_put's */
    char *reason;
};

/* Opens the libraries and the GPU. Release the context with cuda.release(*device). */
static int retain(int gpu, CUdevice *device, CUcontext *context, struct weir_err *err)
{
    pthread_once(&once, load_libs);
    if (why_no_libs[0])
        return weir_err_set(err, -ENODEV, "%s", why_no_libs);
    if (cuda.device_get(device, gpu) != CUDA_SUCCESS || cuda.retain(context, *device) != CUDA_SUCCESS)
        return weir_err_set(err, -ENODEV, "GPU %d cannot be opened", gpu);
    return 0;
}

static int nvdec_ready(const struct weir_video_ops *ops, int gpu, struct weir_err *err)
{
    const struct codec *codec = &codecs[ops->codec];
    CUdevice device;
    CUcontext context;
    CUVIDDECODECAPS caps = {.eCodecType = codec->id, .eChromaFormat = cudaVideoChromaFormat_420};
    int rc = retain(gpu, &device, &context, err);
    if (rc < 0)
        return rc;
    cuda.push(context);
    CUresult asked = cuvid.capabilities(&caps);
    cuda.pop(&context);
    cuda.release(device);
    return asked == CUDA_SUCCESS && caps.bIsSupported
               ? 0
               : weir_err_set(err, -ENODEV, "GPU %d has no engine for %s", gpu, codec->title);
}

static void close_stream(struct stream *stream)
{
    if (stream->decoder)
        cuvid.destroy(stream->decoder);
    free(stream->config);
    *stream = (struct stream){0};
}

static void nvdec_close(void *self)
{
    struct nvdec *n = self;
    CUcontext context;
    cuda.push(n->context);
    for (int i = 0; i < STREAMS_MAX; i++)
        close_stream(&n->streams[i]);
    if (n->host)
        cuda.host_free(n->host);
    if (n->stream)
        cuda.stream_destroy(n->stream);
    cuda.pop(&context);
    cuda.release(n->device);
    weir_in_order_free(&n->order);
    free(n->chroma);
    free(n->units.pixels);
    free(n);
}

/* Whether the GPU has an engine for the codec is asked at the first stream (fits_engine). */
static int nvdec_open(const struct weir_video_ops *ops, void **self, int gpu, char *reason)
{
    struct weir_err err = WEIR_ERR_NONE;
    CUcontext context;
    struct nvdec *n = calloc(1, sizeof *n);
    if (!n)
        return -ENOMEM;
    n->codec = &codecs[ops->codec];
    if (retain(gpu, &n->device, &n->context, &err) < 0) {
        snprintf(reason, WEIR_REASON_MAX, "%s video: %.200s", n->codec->title, err.text);
        free(n);
        return -ENOTSUP;
    }
    cuda.push(n->context);
    CUresult created = cuda.stream_create(&n->stream, CU_STREAM_NON_BLOCKING);
    cuda.pop(&context);
    if (created != CUDA_SUCCESS) {
        nvdec_close(n);
        return -ENOMEM;
    }
    *self = n;
    return 0;
}

/* ---- pictures ---- */

static int stop(struct nvdec *n, int rc, const char *why)
{
    n->result = rc;
    if (why)
        snprintf(n->reason, WEIR_REASON_MAX, "%s video on the GPU: %s", n->codec->title, why);
    return rc;
}

static size_t shown_width(const CUVIDEOFORMAT *format)
{
    return (size_t)(format->display_area.right - format->display_area.left);
}

static size_t shown_height(const CUVIDEOFORMAT *format)
{
    return (size_t)(format->display_area.bottom - format->display_area.top);
}

static size_t luma_bytes(const CUVIDEOFORMAT *format)
{
    return shown_width(format) * shown_height(format);
}

static size_t picture_bytes(const CUVIDEOFORMAT *format)
{
    return luma_bytes(format) / 2 * 3;
}

static int make_room(struct nvdec *n)
{
    size_t bytes = picture_bytes(&n->current->format);
    if (bytes <= n->host_bytes)
        return 0;
    if (n->host)
        cuda.host_free(n->host);
    free(n->chroma);
    n->host = NULL;
    n->host_bytes = 0;
    n->chroma = malloc(bytes / 3);
    if (!n->chroma || cuda.host_alloc((void **)&n->host, bytes) != CUDA_SUCCESS)
        return -ENOMEM;
    n->host_bytes = bytes;
    return 0;
}

/* The picture's memory is the engine's until unmap. */
static int copy_out(struct nvdec *n, int surface, size_t width, size_t height)
{
    CUVIDPROCPARAMS parameters = {.progressive_frame = 1, .output_stream = n->stream};
    CUdeviceptr memory = 0;
    unsigned pitch = 0;
    if (cuvid.map(n->current->decoder, surface, &memory, &pitch, &parameters) != CUDA_SUCCESS)
        return stop(n, -EBADMSG, "a picture cannot be read from the engine");
    const CUDA_MEMCPY2D copy = {.srcMemoryType = CU_MEMORYTYPE_DEVICE,
                                .srcDevice = memory,
                                .srcPitch = pitch,
                                .dstMemoryType = CU_MEMORYTYPE_HOST,
                                .dstHost = n->host,
                                .dstPitch = width,
                                .WidthInBytes = width,
                                .Height = height + height / 2};
    CUresult copied = cuda.copy(&copy, n->stream);
    if (copied == CUDA_SUCCESS)
        copied = cuda.stream_wait(n->stream);
    cuvid.unmap(n->current->decoder, memory);
    return copied == CUDA_SUCCESS ? 0 : stop(n, -EBADMSG, "a picture cannot be copied");
}

static bool is_damaged(const struct nvdec *n, int surface)
{
    CUVIDGETDECODESTATUS status = {0};
    return cuvid.status(n->current->decoder, surface, &status) == CUDA_SUCCESS &&
           (status.decodeStatus == cuvidDecodeStatus_Error || status.decodeStatus == cuvidDecodeStatus_Error_Concealed);
}

static void split_chroma(const uint8_t *restrict pairs, size_t n, uint8_t *restrict cb, uint8_t *restrict cr)
{
    for (size_t i = 0; i < n; i++) {
        cb[i] = pairs[2 * i];
        cr[i] = pairs[2 * i + 1];
    }
}

/* The stream's own tags, if it has them, replace those of its file, as with libavcodec. */
static struct weir_picture picture_of(const struct nvdec *n)
{
    const CUVIDEOFORMAT *format = &n->current->format;
    const struct weir_video_format *file = n->job->format;
    size_t width = shown_width(format), height = shown_height(format), half = width / 2;
    int matrix = format->video_signal_description.matrix_coefficients;
    if (matrix == WEIR_MATRIX_UNKNOWN && file->matrix >= 0)
        matrix = file->matrix;
    return (struct weir_picture){
        .planes = {n->host, n->chroma, n->chroma + half * (height / 2)},
        .strides = {(ptrdiff_t)width, (ptrdiff_t)half, (ptrdiff_t)half},
        .width = (int)width,
        .height = (int)height,
        .bit_depth = 8,
        .chroma = WEIR_CHROMA_420,
        .matrix = (enum weir_matrix)matrix,
        .full_range = format->video_signal_description.video_full_range_flag,
        .from_gpu = true,
    };
}

static void take(struct nvdec *n, int surface, int packet)
{
    const CUVIDEOFORMAT *format = &n->current->format;
    size_t luma = luma_bytes(format), chroma = luma / 4;
    if (copy_out(n, surface, shown_width(format), shown_height(format)) < 0)
        return;
    if (is_damaged(n, surface)) {
        stop(n, -EBADMSG, "the stream is damaged");
        return;
    }
    split_chroma(n->host + luma, chroma, n->chroma, n->chroma + chroma);
    struct weir_picture picture = picture_of(n);
    n->result = weir_in_order_put(&n->order, packet, &picture, n->reason);
}

/* ---- what the parser calls: always successful for the parser, which ignores what follows n->result ---- */

static int refuse(struct nvdec *n, const char *why)
{
    n->current->is_refused = true;
    stop(n, -ENOTSUP, why);
    return 1;
}

static bool is_supported(const CUVIDEOFORMAT *format)
{
    size_t width = shown_width(format), height = shown_height(format);
    return format->chroma_format == cudaVideoChromaFormat_420 && format->bit_depth_luma_minus8 == 0 &&
           format->bit_depth_chroma_minus8 == 0 && format->progressive_sequence && width % 2 == 0 && height % 2 == 0 &&
           format->display_area.left == 0 && format->display_area.top == 0 && width > 0 && height > 0 &&
           width <= format->coded_width && height <= format->coded_height;
}

/* Takes milliseconds. */
static bool fits_engine(const CUVIDEOFORMAT *format)
{
    CUVIDDECODECAPS caps = {.eCodecType = format->codec, .eChromaFormat = format->chroma_format};
    uint64_t blocks = (uint64_t)format->coded_width * format->coded_height / 256;
    return cuvid.capabilities(&caps) == CUDA_SUCCESS && caps.bIsSupported && format->coded_width >= caps.nMinWidth &&
           format->coded_height >= caps.nMinHeight && format->coded_width <= caps.nMaxWidth &&
           format->coded_height <= caps.nMaxHeight && blocks <= caps.nMaxMBCount;
}

static bool is_same(const CUVIDEOFORMAT *a, const CUVIDEOFORMAT *b)
{
    return a->coded_width == b->coded_width && a->coded_height == b->coded_height &&
           memcmp(&a->display_area, &b->display_area, sizeof a->display_area) == 0 &&
           a->min_num_decode_surfaces == b->min_num_decode_surfaces;
}

static CUresult create_decoder(struct stream *stream)
{
    const CUVIDEOFORMAT *format = &stream->format;
    CUVIDDECODECREATEINFO info = {
        .ulWidth = format->coded_width,
        .ulHeight = format->coded_height,
        .ulMaxWidth = format->coded_width,
        .ulMaxHeight = format->coded_height,
        .ulNumDecodeSurfaces = format->min_num_decode_surfaces,
        .CodecType = format->codec,
        .ChromaFormat = format->chroma_format,
        .ulCreationFlags = cudaVideoCreate_PreferCUVID,
        .display_area = {0, 0, (short)format->display_area.right, (short)format->display_area.bottom},
        .OutputFormat = cudaVideoSurfaceFormat_NV12,
        .DeinterlaceMode = cudaVideoDeinterlaceMode_Weave,
        .ulTargetWidth = shown_width(format),
        .ulTargetHeight = shown_height(format),
        .ulNumOutputSurfaces = 1,
    };
    return cuvid.create(&stream->decoder, &info);
}

static int CUDAAPI on_sequence(void *user, CUVIDEOFORMAT *format)
{
    struct nvdec *n = user;
    struct stream *stream = n->current;
    const struct weir_video_format *file = n->job->format;
    if (n->result != 0)
        return 1;
    if (n->order.next > 0 || n->order.n_held > 0)
        return refuse(n, "the stream changes within a group of pictures");
    if (!is_supported(format))
        return refuse(n, "the engines decode 8 bits with 4:2:0 only, up to their largest size");
    if (file->full_range > 0 && !format->video_signal_description.video_full_range_flag)
        return refuse(n, "the file and the stream may differ in their range");
    if (stream->decoder && !is_same(&stream->format, format)) {
        cuvid.destroy(stream->decoder);
        stream->decoder = NULL;
    }
    stream->format = *format;
    if (!stream->decoder && (!fits_engine(format) || create_decoder(stream) != CUDA_SUCCESS)) {
        stream->decoder = NULL;
        return refuse(n, "the engines take no stream of this size, or no further one");
    }
    if (make_room(n) < 0)
        stop(n, -ENOMEM, "out of memory");
    return format->min_num_decode_surfaces;
}

/* Each packet is one picture, and the parser calls this once it has seen the next packet or the end. Takes the picture
 * at once, because its surface may become that of a later one. The parser's own order of presentation is not used: it
 * holds pictures back beyond the end of a group. */
static int CUDAAPI on_decode(void *user, CUVIDPICPARAMS *picture)
{
    struct nvdec *n = user;
    int packet = n->decoding;
    if (n->result != 0)
        return 1;
    n->decoding = weir_in_order_packet(n->job, packet + 1);
    if (packet > n->sending || picture->field_pic_flag || !n->current->decoder ||
        cuvid.decode(n->current->decoder, picture) != CUDA_SUCCESS)
        stop(n, -EBADMSG, "the engine refuses a picture");
    else
        take(n, picture->CurrPicIdx, packet);
    return 1;
}

static int CUDAAPI on_show(void *user, CUVIDPARSERDISPINFO *shown)
{
    (void)user, (void)shown;
    return 1;
}

/* ---- packets ---- */

/* Parses packet i, the first one with the stream's parameter sets before it. */
static int send(struct nvdec *n, int i, bool is_first)
{
    const struct weir_packet *packet = &n->job->packets[i];
    const struct weir_video_format *format = n->job->format;
    size_t used = 0;
    if (packet->length == 0 || packet->length > PACKET_BYTES_MAX)
        return stop(n, -EBADMSG, "the stream is damaged");
    if (weir_whole_image_grow(&n->units, weir_annexb_bytes(packet->length + format->config_bytes), n->reason) < 0)
        return stop(n, -ENOMEM, NULL);
    uint8_t *to = n->units.pixels;
    if (is_first)
        used = weir_annexb_config(format, to, n->units.capacity);
    size_t units = weir_annexb_packet(format, packet, to + used, n->units.capacity - used);
    if (units == 0 || (is_first && used == 0))
        return stop(n, -EBADMSG, "the stream is damaged");
    CUVIDSOURCEDATAPACKET source = {.flags = CUVID_PKT_ENDOFPICTURE, .payload_size = used + units, .payload = to};
    n->sending = i;
    if (cuvid.parse(n->parser, &source) != CUDA_SUCCESS && n->result == 0)
        return stop(n, -EBADMSG, "the stream is damaged");
    return n->result;
}

/* The end of the stream makes the parser decode the last picture. */
static void decode_packets(struct nvdec *n)
{
    CUVIDSOURCEDATAPACKET end = {.flags = CUVID_PKT_ENDOFSTREAM};
    struct weir_video_job *job = n->job;
    for (int i = 0; i < job->n && n->result == 0; i = weir_in_order_packet(job, i + 1))
        send(n, i, i == 0);
    if ((cuvid.parse(n->parser, &end) != CUDA_SUCCESS || n->decoding < job->n) && n->result == 0)
        stop(n, -EBADMSG, "the stream is damaged");
}

/* Returns the stream's entry. A new one replaces the one that was used least recently. */
static struct stream *find_stream(struct nvdec *n, const struct weir_video_format *format)
{
    struct stream *oldest = &n->streams[0];
    for (int i = 0; i < STREAMS_MAX; i++) {
        struct stream *stream = &n->streams[i];
        if (stream->config && stream->config_bytes == format->config_bytes &&
            memcmp(stream->config, format->config, format->config_bytes) == 0)
            return stream;
        oldest = stream->last_used < oldest->last_used ? stream : oldest;
    }
    close_stream(oldest);
    oldest->config = malloc(format->config_bytes + 1);
    if (!oldest->config)
        return NULL;
    memcpy(oldest->config, format->config, format->config_bytes);
    oldest->config_bytes = format->config_bytes;
    return oldest;
}

/* Each call has a parser of its own: at the end of a stream, a parser does not forget all of it. */
static int decode_stream(struct nvdec *n)
{
    CUVIDPARSERPARAMS parameters = {.CodecType = n->codec->id,
                                    .ulMaxNumDecodeSurfaces = 1, /* on_sequence returns the number */
                                    .pUserData = n,
                                    .pfnSequenceCallback = on_sequence,
                                    .pfnDecodePicture = on_decode,
                                    .pfnDisplayPicture = on_show};
    if (weir_in_order_begin(&n->order, n->job) < 0)
        return stop(n, -ENOMEM, "out of memory");
    if (cuvid.create_parser(&n->parser, &parameters) != CUDA_SUCCESS)
        return stop(n, -ENOMEM, "out of memory");
    decode_packets(n);
    cuvid.destroy_parser(n->parser);
    weir_in_order_end(&n->order);
    return n->result < 0 ? n->result : 0;
}

static int nvdec_decode(void *self, struct weir_video_job *job, char *reason)
{
    struct nvdec *n = self;
    CUcontext context;
    n->job = job;
    n->reason = reason;
    n->sending = n->decoding = n->result = 0;
    if (job->format->config_bytes > CONFIG_BYTES_MAX || job->n == 0)
        return stop(n, -EBADMSG, "the stream is damaged");
    if (!weir_annexb_is_closed(job->format, &job->packets[0]))
        return stop(n, -ENOTSUP, "the group of pictures does not start with an IDR picture");
    if (cuda.push(n->context) != CUDA_SUCCESS)
        return stop(n, -ENOTSUP, "the GPU is lost");
    n->current = find_stream(n, job->format);
    int rc = !n->current              ? stop(n, -ENOMEM, "out of memory")
             : n->current->is_refused ? stop(n, -ENOTSUP, "the engines cannot decode this stream")
                                      : decode_stream(n);
    if (n->current)
        n->current->last_used = ++n->calls;
    cuda.pop(&context);
    return rc;
}

#endif

const struct weir_video_ops weir_video_h264_nvdec = {
    .name = "h264-nvdec",
    .codec = WEIR_VIDEO_H264,
    .on_gpu = true,
    .summary = "H.264 on the GPU's video engines",
#if WEIR_HAVE_NVDEC
    .ready = nvdec_ready,
    .open = nvdec_open,
    .close = nvdec_close,
    .decode = nvdec_decode,
#else
    .why_not = WHY_NOT,
#endif
};

const struct weir_video_ops weir_video_hevc_nvdec = {
    .name = "hevc-nvdec",
    .codec = WEIR_VIDEO_HEVC,
    .on_gpu = true,
    .summary = "HEVC on the GPU's video engines",
#if WEIR_HAVE_NVDEC
    .ready = nvdec_ready,
    .open = nvdec_open,
    .close = nvdec_close,
    .decode = nvdec_decode,
#else
    .why_not = WHY_NOT,
#endif
};
