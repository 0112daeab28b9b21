/* png_fixture.h: PNGs of every kind as libpng writes them, the pixels that must come out of them, and the tools to
 * damage them. Free of Criterion; what must not fail aborts. */
#ifndef WEIR_TESTS_PNG_FIXTURE_H
#define WEIR_TESTS_PNG_FIXTURE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum pngfx_kind {
    PNGFX_GRAY1,
    PNGFX_GRAY2,
    PNGFX_GRAY4,
    PNGFX_GRAY8,
    PNGFX_GRAY16,
    PNGFX_GRAY_ALPHA8,
    PNGFX_GRAY_ALPHA16,
    PNGFX_RGB8,
    PNGFX_RGB16,
    PNGFX_RGBA8,
    PNGFX_RGBA16,
    PNGFX_PALETTE1,
    PNGFX_PALETTE2,
    PNGFX_PALETTE4,
    PNGFX_PALETTE8,
    PNGFX_KINDS
};

enum pngfx_filter { PNGFX_NONE, PNGFX_SUB, PNGFX_UP, PNGFX_AVERAGE, PNGFX_PAETH, PNGFX_MIXED, PNGFX_FILTERS };

struct pngfx_image {
    enum pngfx_kind kind;
    int width, height;
    enum pngfx_filter filter;
    bool interlaced;
    bool transparent; /* a tRNS chunk: of a palette, or one color of kinds without alpha */
    bool described;   /* gamma, text, time, and a colour profile that is no profile */
    int seed;
};

/* The file, to be freed. */
uint8_t *pngfx_write(const struct pngfx_image *image, size_t *length);

/* Bits of a value as stored, and values of a pixel. */
int pngfx_bits(enum pngfx_kind kind);
int pngfx_channels(enum pngfx_kind kind);

/* The pixels of a kind of up to 8 bits as interleaved RGB, alpha dropped; to be freed. */
uint8_t *pngfx_rgb(const struct pngfx_image *image);
/* The values of a gray kind as stored; to be freed. */
uint16_t *pngfx_values(const struct pngfx_image *image);

/* The pixels of an 8-bit file as libpng's own short interface gives them, interleaved RGB; to be freed. */
uint8_t *pngfx_library_rgb(const uint8_t *bytes, size_t length, int *width, int *height);

/* Makes the checksum of every chunk right again, as far as there are chunks. */
void pngfx_mend(uint8_t *bytes, size_t length);
/* Where the first chunk of this type begins (its length field); aborts when there is none. */
size_t pngfx_chunk(const uint8_t *bytes, size_t length, const char *type);

#endif
