/* NAL units: from an mp4 file's form to a byte stream. */
#include "decoders/video/h26x_priv.h"

#include <criterion/criterion.h>
#include <string.h>

static const uint8_t avc[] = {1, 77, 0, 30, 0xFF, 0xE1, 0, 2, 0x67, 9, 1, 0, 1, 0x68};
static const uint8_t hvc[] = {1, 1, 0, 0, 0,    0, 0, 0, 0, 0,    0, 0,    0, 0, 0, 0, 0,    0, 0,
                              0, 0, 3, 2, 0x20, 0, 1, 0, 2, 0x40, 1, 0x21, 0, 1, 0, 2, 0x42, 1};
static uint8_t out[256];

static struct weir_video_format format_of(enum weir_video_codec codec, const uint8_t *config, size_t bytes)
{
    return (struct weir_video_format){codec, config, bytes, -1, -1};
}

static size_t convert(const struct weir_video_format *format, const uint8_t *bytes, size_t length)
{
    struct weir_packet packet = {bytes, length, 0};
    return weir_annexb_packet(format, &packet, out, sizeof out);
}

Test(annexb, parameter_sets)
{
    static const uint8_t avc_units[] = {0, 0, 0, 1, 0x67, 9, 0, 0, 0, 1, 0x68};
    static const uint8_t hvc_units[] = {0, 0, 0, 1, 0x40, 1, 0, 0, 0, 1, 0x42, 1};
    struct weir_video_format format = format_of(WEIR_VIDEO_H264, avc, sizeof avc);
    cr_assert_eq(weir_annexb_config(&format, out, sizeof out), sizeof avc_units);
    cr_assert_arr_eq(out, avc_units, sizeof avc_units);
    format = format_of(WEIR_VIDEO_HEVC, hvc, sizeof hvc);
    cr_assert_eq(weir_annexb_config(&format, out, sizeof out), sizeof hvc_units);
    cr_assert_arr_eq(out, hvc_units, sizeof hvc_units);
}

/* Every length is checked: a cut configuration gives nothing, and no room is exceeded. */
Test(annexb, damaged_parameter_sets)
{
    for (size_t bytes = 0; bytes < sizeof avc; bytes++) {
        struct weir_video_format format = format_of(WEIR_VIDEO_H264, avc, bytes);
        cr_assert_eq(weir_annexb_config(&format, out, sizeof out), 0);
    }
    for (size_t bytes = 0; bytes < sizeof hvc; bytes++) {
        struct weir_video_format format = format_of(WEIR_VIDEO_HEVC, hvc, bytes);
        cr_assert_eq(weir_annexb_config(&format, out, sizeof out), 0);
    }
    struct weir_video_format format = format_of(WEIR_VIDEO_H264, avc, sizeof avc);
    for (size_t room = 0; room < 11; room++)
        cr_assert_eq(weir_annexb_config(&format, out, room), 0);
}

Test(annexb, packets)
{
    static const uint8_t picture[] = {0, 0, 0, 2, 6, 7, 0, 0, 0, 3, 0x65, 0x88, 5};
    static const uint8_t units[] = {0, 0, 0, 1, 6, 7, 0, 0, 0, 1, 0x65, 0x88, 5};
    struct weir_video_format format = format_of(WEIR_VIDEO_H264, avc, sizeof avc);
    cr_assert_eq(convert(&format, picture, sizeof picture), sizeof units);
    cr_assert_arr_eq(out, units, sizeof units);
    for (size_t bytes = 0; bytes < sizeof picture; bytes++)
        cr_assert_eq(convert(&format, picture, bytes), 0, "%zu bytes", bytes);
}

/* The rest of a picture's slices, and units that are no slices, are not pictures; a second first slice is. */
Test(annexb, one_picture)
{
    static const uint8_t slices[] = {0, 0, 0, 2, 0x65, 0x88, 0, 0, 0, 2, 0x65, 0x40};
    static const uint8_t two[] = {0, 0, 0, 2, 0x65, 0x88, 0, 0, 0, 2, 0x41, 0x88};
    static const uint8_t none[] = {0, 0, 0, 2, 0x65, 0x40};
    struct weir_video_format format = format_of(WEIR_VIDEO_H264, avc, sizeof avc);
    cr_assert_eq(convert(&format, slices, sizeof slices), sizeof slices);
    cr_assert_eq(convert(&format, two, sizeof two), 0);
    cr_assert_eq(convert(&format, none, sizeof none), 0);
    static const uint8_t hevc_slices[] = {0, 0, 0, 3, 0x26, 1, 0x80, 0, 0, 0, 3, 0x26, 1, 0x40};
    static const uint8_t hevc_two[] = {0, 0, 0, 3, 0x26, 1, 0x80, 0, 0, 0, 3, 0x02, 1, 0x80};
    format = format_of(WEIR_VIDEO_HEVC, hvc, sizeof hvc);
    cr_assert_eq(convert(&format, hevc_slices, sizeof hevc_slices), sizeof hevc_slices);
    cr_assert_eq(convert(&format, hevc_two, sizeof hevc_two), 0);
}

Test(annexb, closed_groups)
{
    struct weir_video_format format = format_of(WEIR_VIDEO_H264, avc, sizeof avc);
    const uint8_t idr[] = {0, 0, 0, 1, 9, 0, 0, 0, 1, 0x65}, other[] = {0, 0, 0, 1, 9, 0, 0, 0, 1, 0x41};
    cr_assert(weir_annexb_is_closed(&format, &(struct weir_packet){idr, sizeof idr, 0}));
    cr_assert_not(weir_annexb_is_closed(&format, &(struct weir_packet){other, sizeof other, 0}));
    cr_assert(weir_annexb_is_closed(&format, &(struct weir_packet){other, sizeof other - 1, 0}), "damaged");
    format.codec = WEIR_VIDEO_HEVC;
    cr_assert(weir_annexb_is_closed(&format, &(struct weir_packet){other, sizeof other, 0}));
}
