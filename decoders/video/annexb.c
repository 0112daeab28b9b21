#include "decoders/video/h26x_priv.h"

#include <string.h>

enum { START_BYTES = 4 };

/* Bytes still to be read; ok is false once more were asked for. */
struct bytes {
    const uint8_t *at;
    size_t left;
    bool ok;
};

static const uint8_t *take(struct bytes *from, size_t n)
{
    if (!from->ok || n > from->left) {
        from->ok = false;
        return NULL;
    }
    const uint8_t *taken = from->at;
    from->at += n;
    from->left -= n;
    return taken;
}

static size_t number(struct bytes *from, size_t size)
{
    const uint8_t *bytes = take(from, size);
    size_t value = 0;
    for (size_t i = 0; bytes && i < size; i++)
        value = value << 8 | bytes[i];
    return value;
}

struct units {
    uint8_t *to;
    size_t used, capacity;
};

/* Moves a unit, whose length stands before it in `size` bytes. */
static void move_unit(struct bytes *from, size_t size, struct units *units)
{
    static const uint8_t start[START_BYTES] = {0, 0, 0, 1};
    size_t length = number(from, size);
    const uint8_t *unit = take(from, length);
    if (!unit || length == 0 || length + sizeof start > units->capacity - units->used) {
        from->ok = false;
        return;
    }
    memcpy(units->to + units->used, start, sizeof start);
    memcpy(units->to + units->used + sizeof start, unit, length);
    units->used += sizeof start + length;
}

/* AVCDecoderConfigurationRecord. */
static void move_avc(struct bytes *from, struct units *units)
{
    take(from, 5);
    for (size_t i = number(from, 1) & 31; i > 0 && from->ok; i--)
        move_unit(from, 2, units);
    for (size_t i = number(from, 1); i > 0 && from->ok; i--)
        move_unit(from, 2, units);
}

/* HEVCDecoderConfigurationRecord. */
static void move_hevc(struct bytes *from, struct units *units)
{
    take(from, 22);
    for (size_t arrays = number(from, 1); arrays > 0 && from->ok; arrays--) {
        take(from, 1);
        for (size_t i = number(from, 2); i > 0 && from->ok; i--)
            move_unit(from, 2, units);
    }
}

size_t weir_annexb_config(const struct weir_video_format *format, uint8_t *to, size_t capacity)
{
    struct bytes from = {format->config, format->config_bytes, true};
    struct units units = {to, 0, capacity};
    if (format->codec == WEIR_VIDEO_H264)
        move_avc(&from, &units);
    else
        move_hevc(&from, &units);
    return from.ok ? units.used : 0;
}

static size_t length_size(const struct weir_video_format *format)
{
    size_t at = format->codec == WEIR_VIDEO_H264 ? 4 : 21;
    return at < format->config_bytes ? (format->config[at] & 3) + 1u : 4;
}

/* Whether the unit is the first slice of a picture: H.264 states the number of its first macroblock, HEVC a flag. In
 * both a first slice has a set bit after the unit's header. */
static bool starts_picture(enum weir_video_codec codec, const uint8_t *unit, size_t length)
{
    enum { H264_SLICE = 1, H264_IDR = 5, HEVC_SLICES = 32 };
    size_t header = codec == WEIR_VIDEO_H264 ? 1 : 2;
    int type = codec == WEIR_VIDEO_H264 ? unit[0] & 31 : unit[0] >> 1 & 63;
    bool is_slice = codec == WEIR_VIDEO_H264 ? type == H264_SLICE || type == H264_IDR : type < HEVC_SLICES;
    return is_slice && length > header && unit[header] & 0x80;
}

size_t weir_annexb_packet(const struct weir_video_format *format, const struct weir_packet *packet, uint8_t *to,
                          size_t capacity)
{
    struct bytes from = {packet->bytes, packet->length, true};
    struct units units = {to, 0, capacity};
    int pictures = 0;
    while (from.ok && from.left > 0) {
        size_t before = units.used;
        move_unit(&from, length_size(format), &units);
        pictures +=
            from.ok && starts_picture(format->codec, to + before + START_BYTES, units.used - before - START_BYTES);
    }
    return from.ok && pictures == 1 ? units.used : 0;
}

bool weir_annexb_is_closed(const struct weir_video_format *format, const struct weir_packet *first)
{
    enum { TYPE_IDR = 5 };
    struct bytes from = {first->bytes, first->length, true};
    if (format->codec != WEIR_VIDEO_H264)
        return true;
    while (from.left > 0) {
        size_t length = number(&from, length_size(format));
        const uint8_t *unit = take(&from, length);
        if (!unit || (length > 0 && (unit[0] & 31) == TYPE_IDR))
            return true;
    }
    return false;
}
