/* libFuzzer: decodes a sequence of JPEGs with one "turbo" and one "turbo-original" decoder. Return codes, reasons and
 * pixels must be equal.
 *
 * The first byte selects the meaning of the rest: JPEGs, choices for JPEGs written bit by bit, or choices for
 * libjpeg's encoder and for damage to its output. tests/fuzz/plain_driver.c runs this target without libFuzzer. */
#include "tests/fixtures/jpeg_both.h"
#include "tests/fixtures/jpeg_choices.h"
#include "tests/fixtures/jpeg_encode.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
size_t LLVMFuzzerMutate(uint8_t *data, size_t size, size_t size_max);
size_t LLVMFuzzerCustomMutator(uint8_t *data, size_t size, size_t size_max, unsigned seed);

enum { SIDE_MAX = 256, IMAGES_MAX = 6, KINDS = 4 };
enum kind { AS_THEY_ARE, MADE, ENCODED, MADE_WELL };

static void check(struct jpeg_both *both, const uint8_t *bytes, size_t length, unsigned number)
{
    const char *different = jpeg_both_differ_thrice(both, bytes, length, number);
    if (!different)
        return;
    fprintf(stderr, "image %u of the input, %zu bytes, format %d%d%d: %s\n", number / 256, length, both->format.color,
            both->format.dtype, both->format.layout, different);
    const char *to = getenv("WEIR_FOUND_JPEG"); /* file for the image that differs, without the rest of the input */
    FILE *file = to ? fopen(to, "w") : NULL;
    if (file) {
        fwrite(bytes, 1, length, file);
        fclose(file);
    }
    abort();
}

/* Returns the length of the image that starts here: up to an EOI that is followed by an SOI, or to the input's end. */
static size_t image_end(const uint8_t *bytes, size_t length)
{
    for (size_t at = 2; at + 4 <= length; at++)
        if (memcmp(bytes + at, "\xFF\xD9\xFF\xD8", 4) == 0)
            return at + 2;
    return length;
}

static void check_images(struct jpeg_both *both, const uint8_t *bytes, size_t length)
{
    for (unsigned n = 0; length && n < IMAGES_MAX; n++) {
        size_t end = image_end(bytes, length);
        check(both, bytes, end, n * 256 + bytes[end / 2]);
        bytes += end;
        length -= end;
    }
}

static void check_made(struct jpeg_both *both, struct jpeg_choices *choices, enum jpeg_make kind)
{
    static struct jpeg_maker maker;
    maker.has_codes = false;
    unsigned images = 1 + jpeg_choose(choices, 4);
    for (unsigned n = 0; n < images; n++) {
        unsigned view = jpeg_choose(choices, 256);
        jpeg_make(&maker, choices, kind);
        check(both, maker.bytes, maker.length, n * 256 + view);
    }
}

static void choose_encoding(struct jpeg_encode *how, struct jpeg_choices *choices)
{
    static const int sides[] = {8, 20, 40, 100}, restarts[] = {0, 0, 0, 1, 2, 5, -1, 9};
    static const int quantisations[] = {0, 0, 0, 0, 0, 1, 255, 32767};
    *how = (struct jpeg_encode){
        .width = 1 + (int)jpeg_choose(choices, (unsigned)sides[jpeg_choose(choices, 4)]),
        .height = 1 + (int)jpeg_choose(choices, (unsigned)sides[jpeg_choose(choices, 4)]),
        .seed = (int)jpeg_choose(choices, 256),
        .picture = (enum jpeg_encode_picture)jpeg_choose(choices, 4),
        .quality = 1 + (int)jpeg_choose(choices, 100),
        .colours = (enum jpeg_encode_colours)(jpeg_choose(choices, 4) ? 0 : jpeg_choose(choices, 5)),
        .restart = restarts[jpeg_choose(choices, 8)],
        .quantisation = quantisations[jpeg_choose(choices, 8)],
        .optimised = jpeg_choose(choices, 2),
        .progressive = jpeg_choose(choices, 32) == 0,
        .arithmetic = jpeg_choose(choices, 64) == 0,
        .one_by_one = jpeg_choose(choices, 16) == 0,
        .without_tables = jpeg_choose(choices, 16) == 0,
    };
    how->h[0] =
        1 + (int)jpeg_choose(choices, 2) + 2 * (jpeg_choose(choices, 16) == 0 && how->colours == JPEG_ENCODE_YCC);
    how->v[0] = 1 + (int)jpeg_choose(choices, 2);
    if (how->colours == JPEG_ENCODE_GRAY)
        how->h[0] = how->v[0] = 1;
    how->without_tables &= !how->progressive && !how->arithmetic && !how->optimised;
}

static void check_encoded(struct jpeg_both *both, struct jpeg_choices *choices)
{
    unsigned images = 1 + jpeg_choose(choices, 4);
    for (unsigned n = 0; n < images; n++) {
        struct jpeg_encode how;
        size_t length;
        choose_encoding(&how, choices);
        unsigned damages = jpeg_choose(choices, 4);
        uint8_t *bytes = jpeg_encode(&how, &length);
        size_t from = jpeg_choose(choices, 8) ? jpeg_scan_begin(bytes, length) : 2, capacity = length;
        for (unsigned i = 0; i < damages; i++)
            length = jpeg_damage(bytes, length, capacity, from, choices);
        check(both, bytes, length, n * 256 + (unsigned)how.seed);
        free(bytes);
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static bool said;
    char library[512];
    if (!said) { /* shows whether the fast decoder is in use; if not, the target compares the library with itself */
        weir_decoder_library(library, sizeof library);
        fprintf(stderr, "%s\n", library);
        said = true;
    }
    if (size < 2)
        return 0;
    struct jpeg_both both;
    struct jpeg_choices choices = jpeg_choices_of(data + 1, size - 1);
    jpeg_both_open(&both, data[0] / KINDS % JPEG_BOTH_FORMATS, SIDE_MAX);
    switch ((enum kind)(data[0] % KINDS)) {
    case AS_THEY_ARE:
        check_images(&both, data + 1, size - 1);
        break;
    case MADE:
        check_made(&both, &choices, JPEG_MAKE_ANY);
        break;
    case MADE_WELL:
        check_made(&both, &choices, JPEG_MAKE_WELL_FORMED);
        break;
    case ENCODED:
        check_encoded(&both, &choices);
        break;
    }
    jpeg_both_close(&both);
    return 0;
}

/* For inputs of JPEGs, every other mutation changes only the entropy-coded data of one JPEG, so that its header remains
 * valid. */
size_t LLVMFuzzerCustomMutator(uint8_t *data, size_t size, size_t size_max, unsigned seed)
{
    if (size < 2 || data[0] % KINDS != AS_THEY_ARE || seed % 2)
        return LLVMFuzzerMutate(data, size, size_max);
    struct jpeg_choices choices = jpeg_choices_of_seed(seed);
    size_t at = 1, end = image_end(data + 1, size - 1) + 1;
    while (end < size && jpeg_choose(&choices, 2)) {
        at = end;
        end += image_end(data + end, size - end);
    }
    size_t scan = jpeg_scan_begin(data + at, end - at);
    if (!scan)
        return LLVMFuzzerMutate(data, size, size_max);
    for (unsigned n = 1 + jpeg_choose(&choices, 2); n > 0; n--)
        size = jpeg_damage(data, size, size_max, at + scan, &choices);
    return size;
}
