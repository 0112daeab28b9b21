/* Damaged JPEGs decoded by "turbo" and by "turbo-original" must be refused with the same message or decode to the same
 * pixels. Every byte of a few small files is damaged in every way. */
#include "tests/fixtures/jpeg_both.h"
#include "tests/fixtures/jpeg_choices.h"
#include "tests/fixtures/jpeg_encode.h"
#include "tests/fixtures/loader_fixture.h"

#include <criterion/criterion.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { ROOM = 64 };

static const struct jpeg_encode kinds[] = {
    {.width = 40, .height = 24, .quality = 75, .h = {2, 1, 1}, .v = {2, 1, 1}, .restart = 1},
    {.width = 33, .height = 20, .quality = 30, .colours = JPEG_ENCODE_GRAY, .restart = 2, .optimised = true},
    {.width = 17, .height = 9, .quality = 90, .picture = JPEG_ENCODE_NOISE, .optimised = true},
    {.width = 48, .height = 16, .quality = 95, .h = {2, 1, 1}, .v = {1, 1, 1}, .picture = JPEG_ENCODE_BLACK_WHITE},
};
enum { KINDS = sizeof kinds / sizeof kinds[0] };

/* A small file, a copy to be damaged (with space for more bytes), and the decoders. */
static struct victim {
    uint8_t *fine, *bytes;
    size_t length, scan;
    int width, height, damaged;
    bool all_but_a_row; /* also compare a view without the last row; decoders must ignore bytes after the last row of a
                           view */
    struct jpeg_both both;
} victim;

static void open_victim(int kind)
{
    uint8_t *fine = jpeg_encode(&kinds[kind], &victim.length);
    victim.fine = fine;
    victim.bytes = malloc(victim.length + ROOM);
    victim.scan = jpeg_scan_begin(fine, victim.length);
    victim.width = kinds[kind].width;
    victim.height = kinds[kind].height;
    victim.damaged = 0;
    victim.all_but_a_row = false;
    memcpy(victim.bytes, fine, victim.length);
    jpeg_both_open(&victim.both, kind, 256);
    cr_assert_gt(victim.scan, 0);
}

static void close_victim(void)
{
    jpeg_both_close(&victim.both);
    free(victim.fine);
    free(victim.bytes);
}

static void check(const uint8_t *bytes, size_t length, const char *about, size_t at)
{
    int width = victim.width, height = victim.height;
    const struct weir_view view = {0, 0, width, height - 1, width, height - 1};
    const char *different = jpeg_both_differ(&victim.both, bytes, length, width, height, NULL);
    if (!different && victim.all_but_a_row)
        different = jpeg_both_differ(&victim.both, bytes, length, width, height, &view);
    cr_assert_null(different, "%dx%d, %s at byte %zu of %zu: %s", width, height, about, at, victim.length, different);
}

/* Compares the decoders on the damaged copy, then restores it. Every eighth call also decodes the intact file, to
 * detect effects of the damage on later frames. */
static void check_damage(size_t length, const char *about, size_t at)
{
    check(victim.bytes, length, about, at);
    if (victim.damaged++ % 8 == 0)
        check(victim.fine, victim.length, "an intact frame after a damaged one", at);
    memcpy(victim.bytes, victim.fine, victim.length);
}

/* Replaces n bytes with n_with bytes. */
static void check_replaced(size_t at, size_t n, const void *with, size_t n_with, const char *about)
{
    cr_assert(at + n <= victim.length && n_with <= ROOM);
    if (n_with)
        memcpy(victim.bytes + at, with, n_with);
    memcpy(victim.bytes + at + n_with, victim.fine + at + n, victim.length - at - n);
    check_damage(victim.length - n + n_with, about, at);
}

static void each_kind(void (*try)(void))
{
    for (int kind = 0; kind < KINDS; kind++) {
        open_victim(kind);
        try();
        close_victim();
    }
}

static void cut(void)
{
    victim.all_but_a_row = true;
    for (size_t at = 0; at < victim.length; at++)
        check(victim.fine, at, "cut", at);
    check(victim.fine, victim.length, "fine", victim.length);
}

Test(turbo_damaged, cut_at_every_byte)
{
    each_kind(cut);
}

static void flip(void)
{
    for (size_t at = 0; at < victim.length; at++)
        for (int bit = 0; bit < 8; bit++) {
            victim.bytes[at] ^= (uint8_t)(1u << bit);
            check_damage(victim.length, "a bit flipped", at);
        }
}

Test(turbo_damaged, every_bit_flipped)
{
    each_kind(flip);
}

static void replace(void)
{
    static const uint8_t values[] = {0x00, 0xFF, 0x7F, 0x80, 0xD9};
    for (size_t at = 0; at < victim.length; at++)
        for (size_t i = 0; i < sizeof values; i++)
            check_replaced(at, 1, &values[i], 1, "a byte replaced");
}

Test(turbo_damaged, every_byte_replaced)
{
    each_kind(replace);
}

static void lose_and_add(void)
{
    static const uint8_t values[] = {0x00, 0xFF, 0x55};
    for (size_t at = victim.scan; at < victim.length; at++) {
        for (size_t n = 1; n <= 4 && at + n <= victim.length; n++)
            check_replaced(at, n, NULL, 0, "bytes lost");
        for (size_t i = 0; i < sizeof values; i++)
            check_replaced(at, 0, &values[i], 1, "an additional byte");
    }
}

Test(turbo_damaged, bytes_lost_and_added)
{
    each_kind(lose_and_add);
}

static void add_markers(void)
{
    static const uint8_t markers[] = {0xD0, 0xD1, 0xD7, 0xD8, 0xD9, 0xDA, 0xC4, 0xDC, 0xFE, 0x01, 0xFF, 0x00};
    for (size_t at = victim.scan; at < victim.length; at++)
        for (size_t i = 0; i < sizeof markers; i++)
            check_replaced(at, 0, (const uint8_t[]){0xFF, markers[i]}, 2, "an additional marker");
}

Test(turbo_damaged, markers_everywhere)
{
    each_kind(add_markers);
}

static void change_restart(size_t at)
{
    static const uint8_t fill[] = {0xFF, 0xFF, 0xFF};
    uint8_t twice[4] = {0xFF, victim.fine[at + 1], 0xFF, victim.fine[at + 1]};
    check_replaced(at, 2, NULL, 0, "a restart lost");
    check_replaced(at, 2, twice, 4, "a restart twice");
    twice[3] = 0xD0 | ((twice[1] + 1) & 7);
    check_replaced(at, 2, twice, 4, "the next restart, too");
    for (uint8_t number = 0; number < 8; number++) {
        twice[1] = 0xD0 | number;
        check_replaced(at, 2, twice, 2, "another restart");
    }
    for (size_t n = 1; n <= 3; n++)
        check_replaced(at, 0, fill, n, "fill bytes before a restart");
    check_replaced(at, 0, "\0", 1, "a zero before a restart");
    check_replaced(at, 0, "garbage", 7, "garbage before a restart");
    check_replaced(at + 2, 0, "garbage", 7, "garbage after a restart");
    check_replaced(at, victim.length - at, NULL, 0, "cut before a restart");
    check_replaced(at + 2, victim.length - at - 2, NULL, 0, "cut after a restart");
}

static void change_markers(void)
{
    int restarts = 0;
    for (size_t at = victim.scan; at + 1 < victim.length; at++) {
        if (victim.fine[at] != 0xFF)
            continue;
        if (victim.fine[at + 1] == 0) {
            check_replaced(at + 1, 1, NULL, 0, "a stuffed zero lost");
            check_replaced(at, 0, "\xFF", 1, "a fill byte before a stuffed one");
            check_replaced(at + 1, 1, "\xFF\xFF\0", 3, "fill bytes before a stuffed zero");
            check_replaced(at, 2, NULL, 0, "a stuffed byte lost");
        } else if (victim.fine[at + 1] != 0xD9) {
            change_restart(at);
            restarts++;
        }
    }
    cr_assert(restarts > 0 || victim.width != kinds[0].width);
}

Test(turbo_damaged, restarts_and_stuffing)
{
    each_kind(change_markers);
}

/* Garbage between the last coefficient and EOI, after EOI, and in place of EOI. */
static void change_end(void)
{
    uint8_t bytes[ROOM];
    size_t end = victim.length - 2;
    victim.all_but_a_row = true;
    for (size_t n = 1; n <= 24; n++)
        for (int with = 0; with < 4; with++) {
            for (size_t i = 0; i < n; i++)
                bytes[i] = (uint8_t)(with == 0 ? 0 : with == 1 ? 0xFF : with == 2 ? 0x55 : i * 37);
            check_replaced(end, 0, bytes, n, "garbage before EOI");
            check_replaced(victim.length, 0, bytes, n, "garbage after EOI");
            check_replaced(end, 2, bytes, n, "garbage instead of EOI");
        }
    check_replaced(end, 2, NULL, 0, "no EOI");
    check_replaced(end, 2, "\xFF", 1, "half of EOI");
    check_replaced(end, 0, "\xFF\xD9", 2, "EOI twice");
    check_replaced(end, 0, "\xFF\xD0", 2, "a restart before EOI");
    check_replaced(end, 0, "\xFF\0", 2, "a stuffed byte before EOI");
    for (unsigned last = 0; last < 256; last++) /* includes all values of the last byte's padding bits */
        check_replaced(end - 1, 1, &(uint8_t){(uint8_t)last}, 1, "another last byte");
}

Test(turbo_damaged, the_end)
{
    each_kind(change_end);
}

/* Scans that repeat one byte: invalid codes, blocks without an end, and too many coefficients. */
static void same_scan(void)
{
    uint8_t *bytes = malloc(victim.scan + 2 * 4096);
    memcpy(bytes, victim.fine, victim.scan);
    for (unsigned value = 0; value < 256; value++)
        for (size_t n = 1; n <= 512; n *= 8) {
            size_t length = victim.scan;
            for (size_t i = 0; i < n; i++) {
                bytes[length++] = (uint8_t)value;
                if (value == 0xFF)
                    bytes[length++] = 0;
            }
            bytes[length++] = 0xFF;
            bytes[length++] = 0xD9;
            check(bytes, length, "a scan of one byte", value);
        }
    free(bytes);
}

Test(turbo_damaged, scans_of_one_byte)
{
    each_kind(same_scan);
}

/* Several pieces of random damage per image, with intact frames in between. */
static void some_damage(void)
{
    struct jpeg_choices choices = jpeg_choices_of_seed((unsigned)victim.length);
    for (unsigned i = 0; i < 1000; i++) {
        size_t length = victim.length;
        for (unsigned n = 1 + i % 4; n > 0; n--)
            length = jpeg_damage(victim.bytes, length, victim.length + ROOM, victim.scan, &choices);
        check_damage(length, "damage number", i);
    }
}

Test(turbo_damaged, several_at_once)
{
    each_kind(some_damage);
}

/* A view that ends early does not report damage below it. */
Test(turbo_damaged, views_of_damaged_frames)
{
    struct jpeg_choices choices = jpeg_choices_of_seed(5);
    open_victim(0);
    for (unsigned i = 0; i < 3000; i++) {
        struct weir_view view = jpeg_both_view(i, victim.width, victim.height);
        size_t length = jpeg_damage(victim.bytes, victim.length, victim.length + ROOM, victim.scan, &choices);
        const char *different =
            jpeg_both_differ(&victim.both, victim.bytes, length, victim.width, victim.height, &view);
        cr_assert_null(different, "view %u: %s", i, different);
        memcpy(victim.bytes, victim.fine, victim.length);
    }
    cr_assert_lt(victim.both.refused, victim.both.frames * 9 / 10);
    close_victim();
}

Test(turbo_damaged, frames_of_cameras)
{
    struct jpeg_both both;
    struct jpeg_choices choices = jpeg_choices_of_seed(7);
    jpeg_both_open(&both, 0, 1024);
    for (int i = 1; i <= 20; i++) {
        char name[64];
        size_t length;
        snprintf(name, sizeof name, "corridor/%d.jpg", i);
        uint8_t *bytes = fixture_test_image(name, &length);
        if (!bytes)
            break;
        for (int again = 0; again < 3; again++) {
            size_t cut = jpeg_damage(bytes, length, length, jpeg_scan_begin(bytes, length), &choices);
            const char *different = jpeg_both_differ_thrice(&both, bytes, cut, (unsigned)i);
            cr_assert_null(different, "%s damaged %d times: %s", name, again + 1, different);
            length = cut;
        }
        free(bytes);
    }
    jpeg_both_close(&both);
}
