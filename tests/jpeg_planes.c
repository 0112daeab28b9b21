#include "tests/jpeg_planes.h"
#include "tests/prepare_reference.h"

#include <errno.h>
#include <setjmp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <jpeglib.h>

struct reader {
    struct jpeg_decompress_struct jpeg;
    struct jpeg_error_mgr errors;
    jmp_buf escape;
    bool warned;
    uint8_t *block_rows[3]; /* of whole blocks, one iMCU row */
};

static void on_error(j_common_ptr common)
{
    longjmp(((struct reader *)common->client_data)->escape, 1);
}

static void on_message(j_common_ptr common, int level)
{
    struct reader *reader = common->client_data;
    reader->warned = reader->warned || level < 0;
}

static int kind_of(const struct jpeg_decompress_struct *jpeg)
{
    if (jpeg->num_components == 1)
        return WEIR_GPU_GRAY;
    if (jpeg->num_components != 3 || jpeg->jpeg_color_space != JCS_YCbCr)
        return -1;
    const jpeg_component_info *c = jpeg->comp_info;
    if (c[1].h_samp_factor != c[2].h_samp_factor || c[1].v_samp_factor != c[2].v_samp_factor ||
        c[0].h_samp_factor % c[1].h_samp_factor != 0 || c[0].v_samp_factor % c[1].v_samp_factor != 0)
        return -1;
    int h = c[0].h_samp_factor / c[1].h_samp_factor, v = c[0].v_samp_factor / c[1].v_samp_factor;
    if (h > 2 || v > 2)
        return -1;
    return h == 2 ? v == 2 ? WEIR_GPU_YUV420 : WEIR_GPU_YUV422 : v == 2 ? WEIR_GPU_YUV440 : WEIR_GPU_YUV444;
}

/* One iMCU row of all components, and of it the samples that the planes have. */
static void read_block_rows(struct reader *reader, struct jpeg_planes *planes)
{
    struct jpeg_decompress_struct *jpeg = &reader->jpeg;
    JSAMPROW rows[3][MAX_SAMP_FACTOR * DCTSIZE];
    JSAMPARRAY arrays[3] = {rows[0], rows[1], rows[2]};
    int lines = jpeg->max_v_samp_factor * DCTSIZE, done = (int)jpeg->output_scanline;
    for (int c = 0; c < jpeg->num_components; c++)
        for (int r = 0; r < jpeg->comp_info[c].v_samp_factor * DCTSIZE; r++)
            rows[c][r] = reader->block_rows[c] + (size_t)r * jpeg->comp_info[c].width_in_blocks * DCTSIZE;
    jpeg_read_raw_data(jpeg, arrays, (JDIMENSION)lines);
    for (int c = 0; c < jpeg->num_components; c++) {
        int n = jpeg->comp_info[c].v_samp_factor * DCTSIZE, first = done / lines * n;
        size_t width = (size_t)planes->plane_width[c];
        for (int r = 0; r < n && first + r < planes->plane_height[c]; r++)
            memcpy(planes->plane[c] + (size_t)(first + r) * width, rows[c][r], width);
    }
}

static void read_planes(struct reader *reader, struct jpeg_planes *planes)
{
    struct jpeg_decompress_struct *jpeg = &reader->jpeg;
    jpeg->raw_data_out = TRUE;
    jpeg->out_color_space = jpeg->jpeg_color_space;
    jpeg_start_decompress(jpeg);
    for (int c = 0; c < jpeg->num_components; c++) {
        const jpeg_component_info *info = &jpeg->comp_info[c];
        planes->plane_width[c] = c == 0 ? planes->width : prepare_chroma_width((uint32_t)planes->kind, planes->width);
        planes->plane_height[c] =
            c == 0 ? planes->height : prepare_chroma_height((uint32_t)planes->kind, planes->height);
        planes->plane[c] = malloc((size_t)planes->plane_width[c] * (size_t)planes->plane_height[c]);
        reader->block_rows[c] = malloc((size_t)info->width_in_blocks * DCTSIZE * (size_t)info->v_samp_factor * DCTSIZE);
    }
    while (jpeg->output_scanline < jpeg->output_height)
        read_block_rows(reader, planes);
    jpeg_finish_decompress(jpeg);
}

static int read_all(struct reader *reader, struct jpeg_planes *planes, const uint8_t *bytes, size_t length)
{
    if (setjmp(reader->escape))
        return -EBADMSG;
    jpeg_create_decompress(&reader->jpeg);
    jpeg_mem_src(&reader->jpeg, bytes, length);
    jpeg_read_header(&reader->jpeg, TRUE);
    planes->width = (int)reader->jpeg.image_width;
    planes->height = (int)reader->jpeg.image_height;
    planes->kind = kind_of(&reader->jpeg);
    planes->progressive = reader->jpeg.progressive_mode || reader->jpeg.arith_code;
    if (planes->kind >= 0)
        read_planes(reader, planes);
    planes->warned = reader->warned;
    return 0;
}

int jpeg_planes_read(struct jpeg_planes *planes, const uint8_t *bytes, size_t length)
{
    struct reader *reader = calloc(1, sizeof *reader);
    *planes = (struct jpeg_planes){.kind = -1};
    reader->jpeg.err = jpeg_std_error(&reader->errors);
    reader->errors.error_exit = on_error;
    reader->errors.emit_message = on_message;
    reader->jpeg.client_data = reader;
    int rc = read_all(reader, planes, bytes, length);
    jpeg_destroy_decompress(&reader->jpeg);
    for (int c = 0; c < 3; c++)
        free(reader->block_rows[c]);
    free(reader);
    if (rc < 0)
        jpeg_planes_free(planes);
    return rc;
}

void jpeg_planes_free(struct jpeg_planes *planes)
{
    for (int c = 0; c < 3; c++)
        free(planes->plane[c]);
    *planes = (struct jpeg_planes){.kind = -1};
}
