/* libFuzzer: decodes a hostile group of pictures. The input is: codec (1 byte), length of the configuration (u16),
 * configuration, and for each packet its length (u16) and bytes. Like the loader, it decodes pictures with their own
 * size, into an image of exactly that size. The codecs' libraries are not instrumented. */
#include "decoders/video/h26x_priv.h"
#include "decoders/video/video.h"
#include "tests/fuzz/fuzz_bytes.h"

enum { PACKETS_MAX = 16, SIDE_MAX = 512, PICTURE_BYTES = sizeof(struct weir_picture) };

static struct weir_video_decoder *video;
static struct weir_decoder *decoders[2];

static int convert(void *user, int64_t pts, const struct weir_picture *picture)
{
    int *pictures = user;
    bool depth = picture->chroma == WEIR_CHROMA_400;
    struct weir_frame frame = {depth ? WEIR_FRAME_VIDEO16 : WEIR_FRAME_VIDEO,
                               (const void *)picture,
                               PICTURE_BYTES,
                               picture->width,
                               picture->height,
                               NULL};
    require(picture->width > 0 && picture->height > 0);
    ++*pictures;
    if (picture->width > SIDE_MAX || picture->height > SIDE_MAX)
        return 0;
    struct weir_decoder *decoder = decoders[pts & 1];
    void *image = malloc((size_t)picture->width * (size_t)picture->height * 3);
    int rc = weir_decode(decoder, &frame, image);
    require(rc == 0 || (rc == -EBADMSG && *weir_decoder_reason(decoder)));
    free(image);
    return 0;
}

/* What a GPU's parser would get of each packet. */
static void convert_units(const struct weir_video_format *format, const struct weir_packet *packets, int n)
{
    for (int i = 0; i < n && format->codec != WEIR_VIDEO_AV1; i++) {
        size_t config_room = weir_annexb_bytes(format->config_bytes), room = weir_annexb_bytes(packets[i].length);
        uint8_t *units = malloc(config_room + room);
        require(weir_annexb_config(format, units, config_room) <= config_room);
        require(weir_annexb_packet(format, &packets[i], units, room) <= room);
        weir_annexb_is_closed(format, &packets[i]);
        free(units);
    }
}

static void open_all(void)
{
    require(weir_video_open(&video, -1) == 0);
    for (int i = 0; i < 2; i++) {
        struct weir_pixel_format format = {.layout = i ? WEIR_LAYOUT_NCHW : WEIR_LAYOUT_NHWC};
        require(weir_decoder_open(&decoders[i], "turbo", &format, SIDE_MAX, NULL) == 0);
    }
}

/* Takes a length of 2 bytes and that many bytes, fewer at the end of the input. */
static size_t take(const uint8_t **at, const uint8_t *end, const uint8_t **bytes)
{
    if (end - *at < 2)
        return 0;
    size_t n = (size_t)((*at)[0] | (*at)[1] << 8), left = (size_t)(end - *at - 2);
    n = n < left ? n : left;
    *bytes = *at + 2;
    *at += 2 + n;
    return n;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct weir_packet packets[PACKETS_MAX];
    char reason[WEIR_REASON_MAX] = "";
    const uint8_t *at = data + 1, *end = data + size, *config = data;
    int n = 0, pictures = 0;
    if (size < 3)
        return 0;
    if (!video)
        open_all();
    struct weir_video_format format = {.codec = (enum weir_video_codec)(data[0] % WEIR_VIDEO_CODECS)};
    format.config_bytes = take(&at, end, &config);
    format.config = config;
    format.matrix = data[0] >> 4;
    format.full_range = (data[0] >> 3 & 1) - 1;
    for (; n < PACKETS_MAX && at < end; n++) {
        const uint8_t *bytes = at;
        size_t length = take(&at, end, &bytes);
        packets[n] = (struct weir_packet){bytes, length, n * 3 % 7};
        if (length == 0)
            at = end;
    }
    convert_units(&format, packets, n);
    int rc = weir_video_decode(video, &format, packets, n, convert, &pictures, reason);
    require(rc == 0 ? pictures > 0 : rc == -EBADMSG || rc == -ENOTSUP);
    require(rc == 0 || *reason);
    return 0;
}
