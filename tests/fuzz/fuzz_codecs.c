/* libFuzzer: probes and decodes a hostile image of kind CODEC. Like the loader, it decodes with the size returned by
 * probing, into a buffer of exactly that size. */
#include "tests/fuzz/fuzz.h"
#include "weir/decoder.h"

#include <errno.h>
#include <string.h>

enum { SIDE_MAX = 256, CANARY = 64 }; /* a canary, since sanitizers do not see the library's own writes */

static void decode(struct weir_decoder *decoder, const uint8_t *bytes, size_t length, int width, int height)
{
    size_t n = (size_t)width * (size_t)height * 3;
    uint8_t *image = malloc(n + CANARY);
    memset(image + n, 0xA5, CANARY);
    int rc = weir_decode(decoder, &(struct weir_frame){CODEC, bytes, length, width, height, NULL}, image);
    require(rc == 0 || (rc == -EBADMSG && *weir_decoder_reason(decoder)));
    for (int i = 0; i < CANARY; i++)
        require(image[n + (size_t)i] == 0xA5);
    free(image);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static struct weir_decoder *decoder;
    struct weir_pixel_format format = {.dtype = WEIR_DTYPE_U8};
    struct weir_image_info info;
    if (!decoder)
        require(weir_decoder_open(&decoder, "turbo", &format, 4096, NULL) == 0);
    int rc = weir_probe_image(decoder, CODEC, data, size, &info);
    require(rc == 0 || (rc == -EBADMSG && *weir_decoder_reason(decoder)));
    if (rc == 0 && info.width <= SIDE_MAX && info.height <= SIDE_MAX)
        decode(decoder, data, size, info.width, info.height);
    decode(decoder, data, size, 16, 16);
    return 0;
}
