#include "datasets/synth/image_write.h"

#include <errno.h>
#include <setjmp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <jpeglib.h>

#include <jerror.h>

struct encoder {
    struct jpeg_compress_struct jpeg;
    struct jpeg_error_mgr errors;
    struct jpeg_destination_mgr destination;
    struct weir_bytes *out;
    jmp_buf failed;
    int rc;
};

static void fail(struct encoder *encoder, int rc)
{
    encoder->rc = rc;
    longjmp(encoder->failed, 1);
}

static void on_error(j_common_ptr common)
{
    fail(common->client_data, common->err->msg_code == JERR_OUT_OF_MEMORY ? -ENOMEM : -EINVAL);
}

static void on_message(j_common_ptr common)
{
    (void)common;
}

static void grow(struct encoder *encoder, size_t capacity)
{
    uint8_t *data = realloc(encoder->out->data, capacity);
    if (!data)
        fail(encoder, -ENOMEM);
    encoder->out->data = data;
    encoder->out->capacity = capacity;
}

static void on_start(j_compress_ptr jpeg)
{
    struct encoder *encoder = jpeg->client_data;
    if (encoder->out->capacity == 0)
        grow(encoder, 64 * 1024);
    encoder->destination.next_output_byte = encoder->out->data;
    encoder->destination.free_in_buffer = encoder->out->capacity;
}

static boolean on_full(j_compress_ptr jpeg)
{
    struct encoder *encoder = jpeg->client_data;
    size_t used = encoder->out->capacity; /* all of the capacity, because free_in_buffer is not valid here */
    grow(encoder, used * 2);
    encoder->destination.next_output_byte = encoder->out->data + used;
    encoder->destination.free_in_buffer = encoder->out->capacity - used;
    return TRUE;
}

static void on_end(j_compress_ptr jpeg)
{
    struct encoder *encoder = jpeg->client_data;
    encoder->out->size = encoder->out->capacity - encoder->destination.free_in_buffer;
}

static void start(struct encoder *encoder)
{
    struct jpeg_compress_struct *jpeg = &encoder->jpeg;
    jpeg->err = jpeg_std_error(&encoder->errors);
    encoder->errors.error_exit = on_error;
    encoder->errors.output_message = on_message;
    jpeg->client_data = encoder;
    jpeg_create_compress(jpeg);
    jpeg->client_data = encoder; /* some versions of the library clear it */
    encoder->destination.init_destination = on_start;
    encoder->destination.empty_output_buffer = on_full;
    encoder->destination.term_destination = on_end;
    jpeg->dest = &encoder->destination;
}

int weir_jpeg_write(const uint8_t *rgb, int width, int height, int quality, const char *comment, struct weir_bytes *out)
{
    struct encoder encoder = {.out = out};
    struct jpeg_compress_struct *jpeg = &encoder.jpeg;
    out->size = 0;
    if (setjmp(encoder.failed)) {
        jpeg_destroy_compress(jpeg);
        return encoder.rc;
    }
    start(&encoder);
    jpeg->image_width = (JDIMENSION)width;
    jpeg->image_height = (JDIMENSION)height;
    jpeg->input_components = 3;
    jpeg->in_color_space = JCS_RGB;
    jpeg_set_defaults(jpeg); /* selects 4:2:0 */
    jpeg_set_quality(jpeg, quality, TRUE);
    jpeg->dct_method = JDCT_ISLOW;
    jpeg_start_compress(jpeg, TRUE);
    if (comment)
        jpeg_write_marker(jpeg, JPEG_COM, (const JOCTET *)comment, (unsigned int)strlen(comment));
    while (jpeg->next_scanline < jpeg->image_height) {
        JSAMPROW row = (JSAMPROW)(rgb + (size_t)jpeg->next_scanline * (size_t)width * 3);
        jpeg_write_scanlines(jpeg, &row, 1);
    }
    jpeg_finish_compress(jpeg);
    jpeg_destroy_compress(jpeg);
    return 0;
}
