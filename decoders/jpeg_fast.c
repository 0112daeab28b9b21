#include "decoders/jpeg_fast.h"
#include "decoders/jpeg_color_priv.h"
#include "decoders/jpeg_scan_priv.h"
#include "decoders/jpeg_walk_priv.h"

#include <pthread.h>
#include <setjmp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define JPEG_INTERNALS
#include <jpeglib.h>

#include <jerror.h>

/* The library's modules are reached by jpegint.h, which is not the same in every version. */
#if defined(__x86_64__) && defined(LIBJPEG_TURBO_VERSION_NUMBER) && JPEG_LIB_VERSION == 62
#define BUILT (LIBJPEG_TURBO_VERSION_NUMBER / 1000 == 2001)
#else
#define BUILT 0
#endif

#if BUILT

/* A frame of fewer bytes is decoded by the library when its tables are new: they take longer than they save. */
enum { SMALL_FRAME = 4096 };
enum { MARKER = 2 }; /* bytes of one */

/* Where a block of an MCU goes. */
struct place {
    jpeg_component_info *info;
    const int16_t *quant;
    JSAMPARRAY rows; /* NULL: it is below the image */
    JDIMENSION column, step;
    bool past_last; /* the last MCU of a row has it right of the image */
};

struct weir_jpeg_fast {
    struct jpeg_entropy_decoder entropy; /* the library's view of it; must come first */
    struct weir_huffman_tables *tables;
    struct weir_jpeg_scan scan;
    size_t segment_bytes;                /* of scan.segment, which grows as frames need it */
    unsigned units_left, restarts_to_go; /* MCUs of the scan; until the next restart marker */
    struct place places[WEIR_JPEG_BLOCKS];
    _Alignas(32) int16_t quant[WEIR_JPEG_COMPONENTS][WEIR_JPEG_BLOCK]; /* in the order of pairs */
    struct weir_jpeg_output output;
    struct weir_jpeg_row row; /* what all rows of the frame have in common */
    uint16_t *sums;           /* for row.sums */
    size_t sums_width;
    void (*color_convert)(j_decompress_ptr, JSAMPIMAGE, JDIMENSION, JSAMPARRAY, int); /* the library's */
};

static struct weir_jpeg_fast *of(j_decompress_ptr jpeg)
{
    return (struct weir_jpeg_fast *)jpeg->entropy;
}

struct weir_jpeg_fast *weir_jpeg_fast_open(void)
{
    struct weir_jpeg_fast *fast = aligned_alloc(_Alignof(struct weir_jpeg_fast), sizeof *fast);
    if (fast)
        memset(fast, 0, sizeof *fast);
    if (fast && !(fast->tables = weir_huffman_open())) {
        free(fast);
        return NULL;
    }
    return fast;
}

void weir_jpeg_fast_close(struct weir_jpeg_fast *fast)
{
    if (!fast)
        return;
    weir_huffman_close(fast->tables);
    free(fast->scan.segment);
    free(fast->sums);
    free(fast);
}

/* ---- segments ---- */

static _Noreturn void give_up(j_decompress_ptr jpeg)
{
    jpeg->err->msg_code = JMSG_NOMESSAGE;
    for (;;) /* it does not return */
        jpeg->err->error_exit((j_common_ptr)jpeg);
}

static void start_segment(struct weir_jpeg_fast *fast)
{
    fast->scan.bits = (struct weir_jpeg_bits){.at = fast->scan.segment};
    for (int i = 0; i < fast->scan.n_components; i++)
        fast->scan.components[i].last_dc = 0;
}

/* All of the segment was used, but what fills its last byte. */
static bool used_up(const struct weir_jpeg_fast *fast)
{
    return fast->scan.bits.at - (fast->scan.bits.count >> 3) == fast->scan.segment_end;
}

static void restart(j_decompress_ptr jpeg)
{
    struct weir_jpeg_fast *fast = of(jpeg);
    if (!used_up(fast) || fast->scan.source[1] != MARKER_RST0 + jpeg->marker->next_restart_num)
        give_up(jpeg);
    jpeg->marker->next_restart_num = (jpeg->marker->next_restart_num + 1) & 7;
    fast->scan.source += MARKER;
    if (!weir_jpeg_unstuff(&fast->scan))
        give_up(jpeg);
    start_segment(fast);
    fast->restarts_to_go = jpeg->restart_interval - 1;
}

/* The library goes on at the marker behind the scan. */
static void end_scan(j_decompress_ptr jpeg)
{
    struct weir_jpeg_fast *fast = of(jpeg);
    if (!used_up(fast))
        give_up(jpeg);
    jpeg->src->next_input_byte = fast->scan.source;
    jpeg->src->bytes_in_buffer = (size_t)(fast->scan.source_end - fast->scan.source);
}

/* ---- blocks ---- */

static void next_unit(j_decompress_ptr jpeg)
{
    struct weir_jpeg_fast *fast = of(jpeg);
    if (jpeg->restart_interval && fast->restarts_to_go-- == 0)
        restart(jpeg);
    if (!weir_jpeg_unit(&fast->scan))
        give_up(jpeg);
    if (--fast->units_left == 0)
        end_scan(jpeg);
}

/* What jpeg_skip_scanlines calls: without anywhere to write to. */
static boolean skip_unit(j_decompress_ptr jpeg, JBLOCKROW *blocks)
{
    if (blocks)
        give_up(jpeg);
    next_unit(jpeg);
    return TRUE;
}

/* To fewer samples than a block has, or more, by the library's. */
static void put_block(j_decompress_ptr jpeg, const struct place *place, int at)
{
    struct weir_jpeg_fast *fast = of(jpeg);
    jpeg_component_info *info = place->info;
    int16_t *block = fast->scan.blocks[at];
    if (info->DCT_scaled_size != DCTSIZE)
        jpeg->idct->inverse_DCT[info->component_index](jpeg, info, block, place->rows, place->column);
    else if (fast->scan.ends[at] == 1)
        weir_jpeg_idct_dc(block, place->quant, place->rows, place->column);
    else
        weir_jpeg_idct(block, place->quant, place->rows, place->column);
}

/* Those of component i of the scan, the first of which is block at, in a row of MCUs that begins left of them. */
static void place_component(j_decompress_ptr jpeg, int i, int at, JSAMPIMAGE to)
{
    struct weir_jpeg_fast *fast = of(jpeg);
    jpeg_component_info *info = jpeg->cur_comp_info[i];
    int rows = jpeg->input_iMCU_row + 1 < jpeg->total_iMCU_rows ? info->MCU_height : info->last_row_height;
    for (int y = 0; y < info->MCU_height; y++)
        for (int x = 0; x < info->MCU_width; x++, at++)
            fast->places[at] = (struct place){
                .info = info,
                .quant = fast->quant[i],
                .rows = y < rows ? to[info->component_index] + y * info->DCT_scaled_size : NULL,
                .column = (JDIMENSION)(x * info->DCT_scaled_size),
                .step = (JDIMENSION)info->MCU_sample_width,
                .past_last = x >= info->last_col_width,
            };
}

static void put_unit(j_decompress_ptr jpeg, bool last)
{
    struct weir_jpeg_fast *fast = of(jpeg);
    for (int at = 0; at < fast->scan.n_blocks; at++) {
        struct place *place = &fast->places[at];
        if (place->rows && !(last && place->past_last))
            put_block(jpeg, place, at);
        place->column += place->step;
    }
}

/* The memory that this MCU becomes is fetched meanwhile. */
static void fetch_for(j_decompress_ptr jpeg, JDIMENSION unit)
{
    struct weir_jpeg_scan *scan = &of(jpeg)->scan;
    size_t width = jpeg->output_width, plane = width * jpeg->output_height;
    JDIMENSION rows = (JDIMENSION)jpeg->max_v_samp_factor * DCTSIZE, y = jpeg->input_iMCU_row * rows;
    size_t x = (size_t)unit * (size_t)jpeg->max_h_samp_factor * DCTSIZE;
    scan->fetch_rows = (int)(jpeg->output_height - y < rows ? jpeg->output_height - y : rows);
    for (size_t c = 0; c < 3; c++)
        scan->fetch[c] = of(jpeg)->output.f32 + c * plane + y * width + x;
    scan->fetch_stride = width;
}

/* One row of MCUs, as decompress_onepass of jdcoefct.c does it. */
static int put_row(j_decompress_ptr jpeg, JSAMPIMAGE to)
{
    for (int i = 0, at = 0; i < jpeg->comps_in_scan; at += jpeg->cur_comp_info[i++]->MCU_blocks)
        place_component(jpeg, i, at, to);
    for (JDIMENSION unit = 0; unit < jpeg->MCUs_per_row; unit++) {
        if (of(jpeg)->output.f32)
            fetch_for(jpeg, unit);
        next_unit(jpeg);
        if (unit >= jpeg->master->first_iMCU_col && unit <= jpeg->master->last_iMCU_col)
            put_unit(jpeg, unit + 1 == jpeg->MCUs_per_row);
    }
    jpeg->output_iMCU_row++;
    if (++jpeg->input_iMCU_row < jpeg->total_iMCU_rows)
        return JPEG_ROW_COMPLETED;
    jpeg->inputctl->finish_input_pass(jpeg);
    return JPEG_SCAN_COMPLETED;
}

/* ---- colours ---- */

/* Row y of the image, of row group `group` of what the IDCT gave. */
static void put_colors(j_decompress_ptr jpeg, JSAMPIMAGE in, JDIMENSION group, JDIMENSION y, JSAMPROW to)
{
    struct weir_jpeg_fast *fast = of(jpeg);
    struct weir_jpeg_row *row = &fast->row;
    bool two_rows = row->chroma == WEIR_JPEG_420, lower = y % 2 == 1;
    row->luma = in[0][two_rows ? 2 * group + lower : group];
    for (int c = 0; c < 2; c++) {
        JSAMPARRAY rows = in[c + 1] + group;
        row->near[c] = rows[0];
        row->far[c] = two_rows ? rows[lower ? 1 : -1] : NULL;
    }
    row->to = to;
    weir_jpeg_color_row(row);
}

/* In place of upsampling and colour conversion, as sep_upsample of jdsample.c does it. Rows that jpeg_skip_scanlines
 * reads to leave them out have nowhere to go to: it takes the colour conversion away meanwhile. */
static void put_rows(j_decompress_ptr jpeg, JSAMPIMAGE in, JDIMENSION *group, JDIMENSION groups, JSAMPARRAY to,
                     JDIMENSION *at, JDIMENSION end)
{
    (void)groups;
    JDIMENSION y = jpeg->output_scanline + *at, of_group = (JDIMENSION)jpeg->max_v_samp_factor;
    JDIMENSION n = of_group - y % of_group;
    n = n < jpeg->output_height - y ? n : jpeg->output_height - y;
    n = n < end - *at ? n : end - *at;
    for (JDIMENSION i = 0; i < n && jpeg->cconvert->color_convert == of(jpeg)->color_convert; i++)
        put_colors(jpeg, in, *group, y + i, to[*at + i]);
    *at += n;
    if ((y + n) % of_group == 0)
        ++*group;
}

static bool has_chroma(const struct jpeg_decompress_struct *jpeg, enum weir_jpeg_chroma *chroma)
{
    const jpeg_component_info *c = jpeg->comp_info;
    *chroma = c[0].v_samp_factor == 2 ? WEIR_JPEG_420 : c[0].h_samp_factor == 2 ? WEIR_JPEG_422 : WEIR_JPEG_444;
    bool known = (c[0].h_samp_factor == 1 && c[0].v_samp_factor == 1) || c[0].h_samp_factor == 2;
    for (int i = 0; i < 3; i++) {
        known = known && c[i].DCT_scaled_size == DCTSIZE && c[i].component_needed;
        known = known && (i == 0 || (c[i].h_samp_factor == 1 && c[i].v_samp_factor == 1));
    }
    return known && c[0].v_samp_factor <= 2 && c[1].downsampled_width > 2 && c[2].downsampled_width > 2;
}

static bool grow_sums(struct weir_jpeg_fast *fast, size_t width)
{
    size_t one = width + 2 * WEIR_JPEG_ROW_SLACK;
    if (width > fast->sums_width) {
        uint16_t *sums = calloc(2 * one, sizeof *sums);
        if (!sums)
            return false;
        free(fast->sums);
        fast->sums = sums;
        fast->sums_width = width;
    }
    for (size_t c = 0; c < 2; c++)
        fast->row.sums[c] = fast->sums + c * (fast->sums_width + 2 * WEIR_JPEG_ROW_SLACK) + WEIR_JPEG_ROW_SLACK;
    return true;
}

/* Chroma that is interpolated as put_rows does it. */
static bool replace_colors(struct weir_jpeg_fast *fast, struct jpeg_decompress_struct *jpeg, bool planes)
{
    bool ycc = jpeg->num_components == 3 && jpeg->jpeg_color_space == JCS_YCbCr;
    bool rgb = jpeg->out_color_space == JCS_EXT_RGB || jpeg->out_color_space == JCS_EXT_BGR;
    enum weir_jpeg_chroma chroma;
    if (!ycc || !rgb || !jpeg->do_fancy_upsampling || jpeg->quantize_colors || jpeg->CCIR601_sampling ||
        !has_chroma(jpeg, &chroma) || !grow_sums(fast, jpeg->comp_info[1].downsampled_width))
        return false;
    fast->row.chroma = chroma;
    fast->row.width = jpeg->output_width;
    fast->row.chroma_width = jpeg->comp_info[1].downsampled_width;
    fast->row.bgr = jpeg->out_color_space == JCS_EXT_BGR;
    fast->row.planes = planes;
    fast->color_convert = jpeg->cconvert->color_convert;
    jpeg->post->post_process_data = put_rows;
    return true;
}

/* ---- the beginning ---- */

/* What put_row knows how to do. A component alone has MCUs of one block, and more than one row of them where it says
 * so. */
static bool suits(const struct jpeg_decompress_struct *jpeg)
{
    bool baseline = !jpeg->progressive_mode && !jpeg->arith_code && jpeg->data_precision == 8;
    bool one_row = jpeg->comps_in_scan > 1 || jpeg->cur_comp_info[0]->v_samp_factor == 1;
    return baseline && one_row && !jpeg->inputctl->has_multiple_scans && !jpeg->coef->coef_arrays &&
           jpeg->dct_method == JDCT_ISLOW && jpeg->unread_marker == 0 && jpeg->Ss == 0 && jpeg->Se == DCTSIZE2 - 1 &&
           jpeg->Ah == 0 && jpeg->Al == 0;
}

static bool find_tables(struct weir_jpeg_fast *fast, const struct jpeg_decompress_struct *jpeg)
{
    bool make_new = jpeg->src->bytes_in_buffer >= SMALL_FRAME, found = true;
    for (int i = 0; i < jpeg->comps_in_scan; i++) {
        const JHUFF_TBL *dc = jpeg->dc_huff_tbl_ptrs[jpeg->cur_comp_info[i]->dc_tbl_no];
        const JHUFF_TBL *ac = jpeg->ac_huff_tbl_ptrs[jpeg->cur_comp_info[i]->ac_tbl_no];
        struct weir_jpeg_component *to = &fast->scan.components[i];
        to->dc = weir_huffman_table(fast->tables, WEIR_HUFFMAN_DC, dc->bits, dc->huffval, make_new);
        to->ac = weir_huffman_table(fast->tables, WEIR_HUFFMAN_AC, ac->bits, ac->huffval, make_new);
        found = found && to->dc && to->ac;
    }
    fast->scan.n_components = jpeg->comps_in_scan;
    fast->scan.n_blocks = jpeg->blocks_in_MCU;
    for (int i = 0; i < jpeg->blocks_in_MCU && i < WEIR_JPEG_BLOCKS; i++)
        fast->scan.component_of[i] = (uint8_t)jpeg->MCU_membership[i];
    return found;
}

static void order_blocks(struct weir_jpeg_fast *fast, const struct jpeg_decompress_struct *jpeg)
{
    const uint8_t *natural = weir_jpeg_natural(), *pairs = weir_jpeg_pairs();
    for (int i = 0; i < jpeg->comps_in_scan; i++) {
        const jpeg_component_info *info = jpeg->cur_comp_info[i];
        const int16_t *quant = info->dct_table;
        fast->scan.components[i].order = info->DCT_scaled_size == DCTSIZE ? pairs : natural;
        for (int k = 0; k < DCTSIZE2; k++)
            fast->quant[i][pairs[k]] = quant[natural[k]];
    }
}

static bool grow_segment(struct weir_jpeg_fast *fast, size_t bytes)
{
    if (bytes + WEIR_JPEG_SEGMENT_SLACK <= fast->segment_bytes)
        return true;
    uint8_t *segment = calloc(1, bytes + bytes / 4 + WEIR_JPEG_SEGMENT_SLACK);
    if (!segment)
        return false;
    free(fast->scan.segment);
    fast->scan.segment = segment;
    fast->segment_bytes = bytes + bytes / 4 + WEIR_JPEG_SEGMENT_SLACK;
    return true;
}

enum weir_jpeg_rows weir_jpeg_fast_begin(struct weir_jpeg_fast *fast, struct jpeg_decompress_struct *jpeg,
                                         const struct weir_jpeg_output *output)
{
    if (!suits(jpeg) || !find_tables(fast, jpeg) || !grow_segment(fast, jpeg->src->bytes_in_buffer))
        return WEIR_JPEG_ORIGINAL;
    fast->scan.source = jpeg->src->next_input_byte;
    fast->scan.source_end = fast->scan.source + jpeg->src->bytes_in_buffer;
    if (!weir_jpeg_unstuff(&fast->scan))
        return WEIR_JPEG_ORIGINAL;
    start_segment(fast);
    order_blocks(fast, jpeg);
    fast->units_left = jpeg->MCUs_per_row * jpeg->MCU_rows_in_scan;
    fast->restarts_to_go = jpeg->restart_interval;
    fast->entropy = *jpeg->entropy;
    fast->entropy.decode_mcu = skip_unit;
    jpeg->entropy = &fast->entropy;
    jpeg->coef->decompress_data = put_row;
    fast->output = *output;
    if (jpeg->output_width != jpeg->image_width || !output->planes)
        fast->output.f32 = NULL;
    fast->scan.fetch_rows = 0;
    return replace_colors(fast, jpeg, output->planes) && output->planes ? WEIR_JPEG_PLANES : WEIR_JPEG_INTERLEAVED;
}

/* ---- whether it is used ---- */

/* 40 x 24 pixels, 4:2:0, with restart markers and the standard Huffman tables: blocks of nothing but DC, of a few
 * coefficients, of many, and some at the edges that are cut. */
static const uint8_t sample[] = {
    0xFF, 0xD8, 0xFF, 0xDB, 0x00, 0x43, 0x00, 0x06, 0x04, 0x05, 0x06, 0x05, 0x04, 0x06, 0x06, 0x05, 0x06, 0x07, 0x07,
    0x06, 0x08, 0x0A, 0x10, 0x0A, 0x0A, 0x09, 0x09, 0x0A, 0x14, 0x0E, 0x0F, 0x0C, 0x10, 0x17, 0x14, 0x18, 0x18, 0x17,
    0x14, 0x16, 0x16, 0x1A, 0x1D, 0x25, 0x1F, 0x1A, 0x1B, 0x23, 0x1C, 0x16, 0x16, 0x20, 0x2C, 0x20, 0x23, 0x26, 0x27,
    0x29, 0x2A, 0x29, 0x19, 0x1F, 0x2D, 0x30, 0x2D, 0x28, 0x30, 0x25, 0x28, 0x29, 0x28, 0xFF, 0xDB, 0x00, 0x43, 0x01,
    0x07, 0x07, 0x07, 0x0A, 0x08, 0x0A, 0x13, 0x0A, 0x0A, 0x13, 0x28, 0x1A, 0x16, 0x1A, 0x28, 0x28, 0x28, 0x28, 0x28,
    0x28, 0x28, 0x28, 0x28, 0x28, 0x28, 0x28, 0x28, 0x28, 0x28, 0x28, 0x28, 0x28, 0x28, 0x28, 0x28, 0x28, 0x28, 0x28,
    0x28, 0x28, 0x28, 0x28, 0x28, 0x28, 0x28, 0x28, 0x28, 0x28, 0x28, 0x28, 0x28, 0x28, 0x28, 0x28, 0x28, 0x28, 0x28,
    0x28, 0x28, 0x28, 0x28, 0x28, 0x28, 0x28, 0xFF, 0xC0, 0x00, 0x11, 0x08, 0x00, 0x18, 0x00, 0x28, 0x03, 0x01, 0x22,
    0x00, 0x02, 0x11, 0x01, 0x03, 0x11, 0x01, 0xFF, 0xDD, 0x00, 0x04, 0x00, 0x04, 0xFF, 0xDA, 0x00, 0x0C, 0x03, 0x01,
    0x00, 0x02, 0x11, 0x03, 0x11, 0x00, 0x3F, 0x00, 0xF1, 0x28, 0x34, 0xCE, 0x9F, 0x2D, 0x68, 0x41, 0xA6, 0x7F, 0xB3,
    0x5E, 0xD3, 0x45, 0x7B, 0x35, 0xF8, 0xD2, 0x75, 0x7F, 0xE5, 0xD5, 0xBF, 0xED, 0xEF, 0xFE, 0xD4, 0xF9, 0x1C, 0x3F,
    0x13, 0xCE, 0x87, 0xD8, 0xBF, 0xCF, 0xFE, 0x01, 0x49, 0xA4, 0x1A, 0xC6, 0xA1, 0xA6, 0x5B, 0xC7, 0x68, 0x82, 0xFE,
    0x48, 0xA3, 0x5C, 0xCB, 0x2A, 0x30, 0x23, 0x00, 0xAB, 0x3E, 0xF5, 0x12, 0x48, 0xA3, 0x00, 0x96, 0x1B, 0xB7, 0xAA,
    0xB7, 0x41, 0x9C, 0x3E, 0x58, 0x8D, 0xCD, 0xD5, 0xCE, 0x93, 0x73, 0x75, 0x36, 0x9D, 0x6B, 0x2A, 0x95, 0x4B, 0x3B,
    0xB4, 0xD9, 0x29, 0x77, 0x2B, 0x96, 0x8C, 0x10, 0x4B, 0x8D, 0x8B, 0xB8, 0x91, 0xB4, 0x83, 0xF2, 0xE0, 0x64, 0xD6,
    0x3C, 0x1A, 0x67, 0xFB, 0x35, 0xA1, 0x06, 0x99, 0xFE, 0xCD, 0x79, 0xAD, 0xC3, 0x0A, 0xAC, 0x9D, 0xD7, 0x9D, 0xF7,
    0xD7, 0x5D, 0xDF, 0x4D, 0x3B, 0xE9, 0x7B, 0x9F, 0x7D, 0x4B, 0xD9, 0xE2, 0x25, 0xCD, 0x16, 0xA3, 0xF2, 0xBF, 0xE6,
    0xFF, 0x00, 0x0D, 0xAF, 0x7E, 0x8E, 0xC7, 0x2D, 0x06, 0x99, 0xFE, 0xCD, 0x15, 0xDC, 0x41, 0xA6, 0x7F, 0xB3, 0x45,
    0x78, 0xD5, 0xB3, 0x0F, 0x7B, 0x73, 0xF4, 0x7C, 0x3E, 0x69, 0xEE, 0x6E, 0x45, 0x06, 0x99, 0xFE, 0xCD, 0x5F, 0x83,
    0x4C, 0xFF, 0x00, 0x66, 0x8A, 0x2B, 0xE9, 0xF1, 0xB5, 0xA7, 0xDC, 0xFE, 0x57, 0xCB, 0xB1, 0x13, 0xD3, 0x53, 0xFF,
    0xD0, 0xE8, 0xE0, 0xD3, 0x3F, 0xD9, 0xAB, 0xF0, 0x69, 0x9F, 0xEC, 0xD1, 0x45, 0x78, 0xD8, 0xDA, 0xD3, 0xEE, 0x79,
    0x39, 0x76, 0x22, 0x7A, 0x6A, 0x68, 0x41, 0xA6, 0x74, 0xF9, 0x68, 0xA2, 0x8A, 0xF9, 0x7A, 0xD5, 0xA7, 0xCD, 0xB9,
    0xF6, 0x78, 0x7C, 0x44, 0xF9, 0x37, 0x3F, 0xFF, 0xD9,
};
enum { SAMPLE_WIDTH = 40, SAMPLE_HEIGHT = 24, SAMPLE_PIXELS = SAMPLE_WIDTH * SAMPLE_HEIGHT };

struct self_test {
    struct jpeg_decompress_struct jpeg;
    struct jpeg_error_mgr errors;
    jmp_buf escape;
};

static void on_error(j_common_ptr common)
{
    struct self_test *test = common->client_data;
    longjmp(test->escape, 1);
}

static void on_message(j_common_ptr common, int level)
{
    if (level < 0)
        on_error(common);
}

/* False when it fails, or fast does not take part where it is not NULL. */
static bool decode_sample(struct weir_jpeg_fast *fast, uint8_t pixels[SAMPLE_PIXELS * 3])
{
    struct self_test test;
    test.jpeg.err = jpeg_std_error(&test.errors);
    test.errors.error_exit = on_error;
    test.errors.emit_message = on_message;
    test.jpeg.client_data = &test;
    if (setjmp(test.escape)) {
        jpeg_destroy_decompress(&test.jpeg);
        return false;
    }
    jpeg_create_decompress(&test.jpeg);
    jpeg_mem_src(&test.jpeg, sample, sizeof sample);
    jpeg_read_header(&test.jpeg, TRUE);
    test.jpeg.out_color_space = JCS_EXT_RGB;
    jpeg_start_decompress(&test.jpeg);
    bool fine = test.jpeg.output_width == SAMPLE_WIDTH && test.jpeg.output_height == SAMPLE_HEIGHT;
    fine =
        fine && (!fast || weir_jpeg_fast_begin(fast, &test.jpeg, &(struct weir_jpeg_output){0}) != WEIR_JPEG_ORIGINAL);
    while (fine && test.jpeg.output_scanline < SAMPLE_HEIGHT) {
        JSAMPROW row = pixels + (size_t)test.jpeg.output_scanline * SAMPLE_WIDTH * 3;
        jpeg_read_scanlines(&test.jpeg, &row, 1);
    }
    if (fine)
        jpeg_finish_decompress(&test.jpeg);
    jpeg_destroy_decompress(&test.jpeg);
    return fine;
}

static bool agrees(void)
{
    uint8_t original[SAMPLE_PIXELS * 3], pixels[SAMPLE_PIXELS * 3] = {0};
    struct weir_jpeg_fast *fast = weir_jpeg_fast_open();
    bool fine = fast && decode_sample(NULL, original);
    decode_sample(fine ? fast : NULL, pixels); /* tables that are new to it are not used for so small a frame */
    fine = fine && decode_sample(fast, pixels) && memcmp(pixels, original, sizeof pixels) == 0;
    weir_jpeg_fast_close(fast);
    return fine;
}

/* What the library's own SIMD code leaves out; that of AVX2 is what the pixels are to be the same as. */
static bool is_forced(void)
{
    static const char *const names[] = {"JSIMD_FORCENONE", "JSIMD_FORCEMMX", "JSIMD_FORCESSE", "JSIMD_FORCESSE2"};
    bool forced = false;
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        const char *value = getenv(names[i]);
        forced = forced || (value && strcmp(value, "1") == 0);
    }
    return forced;
}

/* Messages were added with versions: as many as in the header of which the library was taken to be. */
static bool is_other_library(void)
{
    struct jpeg_error_mgr errors;
    jpeg_std_error(&errors);
    return errors.last_jpeg_message != JMSG_LASTMSGCODE - 1;
}

static const char *find(void)
{
    if (!weir_jpeg_scan_cpu())
        return "the CPU has no AVX2, BMI and BMI2";
    if (is_forced())
        return "libjpeg-turbo's own SIMD code is restricted by JSIMD_FORCE..";
    if (is_other_library())
        return "libjpeg-turbo is of another version than it was built with";
    return agrees() ? NULL : "it does not decode a sample as libjpeg-turbo does";
}

static const char *found;

static void find_once(void)
{
    found = find();
}

const char *weir_jpeg_fast_why_not(void)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    pthread_once(&once, find_once);
    return found;
}

#else
const char *weir_jpeg_fast_why_not(void)
{
    return "it is built on x86-64, with libjpeg-turbo 2.1";
}

struct weir_jpeg_fast *weir_jpeg_fast_open(void)
{
    return NULL;
}

void weir_jpeg_fast_close(struct weir_jpeg_fast *fast)
{
    (void)fast;
}

enum weir_jpeg_rows weir_jpeg_fast_begin(struct weir_jpeg_fast *fast, struct jpeg_decompress_struct *jpeg,
                                         const struct weir_jpeg_output *output)
{
    (void)fast;
    (void)jpeg;
    (void)output;
    return WEIR_JPEG_ORIGINAL;
}
#endif
