#include "decoders/jpeg_fast.h"
#include "decoders/jpeg_fast_priv.h"
#include "decoders/jpeg_walk_priv.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define JPEG_INTERNALS
#include <jpeglib.h> /* must precede jpegint.h and jerror.h */

/* jpegint.h differs between versions, so only 2.1 is supported. 2.1.90 is a beta of 3.0. */
#if defined(__x86_64__) && defined(LIBJPEG_TURBO_VERSION_NUMBER) && JPEG_LIB_VERSION == 62
#define BUILT (LIBJPEG_TURBO_VERSION_NUMBER / 1000 == 2001 && LIBJPEG_TURBO_VERSION_NUMBER < 2001090)
#else
#define BUILT 0
#endif

#if BUILT

/* Smaller scans with new Huffman tables are decoded by libjpeg-turbo, because building the look-up tables would cost
 * more time than they save. */
enum { SMALL_SCAN = 4096 };
/* The same for tables that only step over coefficients. Smaller scans are decoded without them. */
enum { SMALL_SKIPPED = 65536 };
enum { MARKER = 2 }; /* bytes of a marker */

typedef void transform(const int16_t *block, const int16_t *quant, uint8_t *const *to, size_t column);

/* Destination of one block of an MCU. */
struct place {
    transform *transform;
    const int16_t *quant;
    JSAMPARRAY rows; /* NULL: the block is below the image */
    JDIMENSION column, step;
    bool past_last; /* in the last MCU of a row, the block is right of the image */
};

struct weir_jpeg_fast {
    struct jpeg_entropy_decoder entropy; /* installed as libjpeg's entropy decoder; must be the first member */
    struct weir_huffman_tables *tables;
    struct weir_jpeg_scan scan;
    size_t segment_bytes;               /* size of scan.segment, which grows on demand */
    unsigned mcus_left, restarts_to_go; /* MCUs left in the scan, and MCUs until the next restart marker */
    struct place places[WEIR_JPEG_BLOCKS];
    unsigned only_dc, skipped; /* the scan's only_dc for MCUs that are put out, and for the others */
    _Alignas(32) int16_t quant[WEIR_JPEG_COMPONENTS][WEIR_JPEG_BLOCK]; /* in the coefficient order of weir_jpeg_idct */
    struct weir_jpeg_output output;
    struct weir_jpeg_row row; /* template with the fields that all rows of the frame share */
    uint16_t *sums;           /* memory for row.sums */
    size_t sums_width;
    void (*color_convert)(j_decompress_ptr, JSAMPIMAGE, JDIMENSION, JSAMPARRAY, int); /* libjpeg's own function */
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
    for (;;) /* error_exit does not return */
        jpeg->err->error_exit((j_common_ptr)jpeg);
}

static void start_segment(struct weir_jpeg_fast *fast)
{
    fast->scan.bits = (struct weir_jpeg_bits){.at = fast->scan.segment};
    for (int i = 0; i < fast->scan.n_components; i++)
        fast->scan.components[i].last_dc = 0;
}

/* Whether the whole segment has been decoded, except for the padding bits of its last byte. */
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

/* Makes libjpeg continue at the marker after the scan. */
static void end_scan(j_decompress_ptr jpeg)
{
    struct weir_jpeg_fast *fast = of(jpeg);
    if (!used_up(fast))
        give_up(jpeg);
    jpeg->src->next_input_byte = fast->scan.source;
    jpeg->src->bytes_in_buffer = (size_t)(fast->scan.source_end - fast->scan.source);
}

/* ---- blocks ---- */

static void next_mcu(j_decompress_ptr jpeg, unsigned only_dc)
{
    struct weir_jpeg_fast *fast = of(jpeg);
    fast->scan.only_dc = only_dc;
    if (jpeg->restart_interval && fast->restarts_to_go-- == 0)
        restart(jpeg);
    if (!weir_jpeg_mcu(&fast->scan))
        give_up(jpeg);
    if (--fast->mcus_left == 0)
        end_scan(jpeg);
}

/* Called by jpeg_skip_scanlines: decodes an MCU without storing it. */
static boolean skip_mcu(j_decompress_ptr jpeg, JBLOCKROW *blocks)
{
    if (blocks)
        give_up(jpeg);
    next_mcu(jpeg, of(jpeg)->skipped);
    return TRUE;
}

/* Returns the inverse DCT with this number of columns and rows, or NULL. */
static transform *transform_of(int size)
{
    switch (size) {
    case 8:
        return weir_jpeg_idct;
    case 4:
        return weir_jpeg_idct_4x4;
    case 2:
        return weir_jpeg_idct_2x2;
    case 1:
        return weir_jpeg_idct_1x1;
    default:
        return NULL;
    }
}

/* Sets the destinations of component i's blocks in the first MCU of a row. `at` is the index of the component's first
 * block in the MCU. */
static void place_component(j_decompress_ptr jpeg, int i, int at, JSAMPIMAGE to)
{
    struct weir_jpeg_fast *fast = of(jpeg);
    jpeg_component_info *info = jpeg->cur_comp_info[i];
    int rows = jpeg->input_iMCU_row + 1 < jpeg->total_iMCU_rows ? info->MCU_height : info->last_row_height;
    for (int y = 0; y < info->MCU_height; y++)
        for (int x = 0; x < info->MCU_width; x++, at++)
            fast->places[at] = (struct place){
                .transform = transform_of(info->DCT_scaled_size),
                .quant = fast->quant[i],
                .rows = y < rows ? to[info->component_index] + y * info->DCT_scaled_size : NULL,
                .column = (JDIMENSION)(x * info->DCT_scaled_size),
                .step = (JDIMENSION)info->MCU_sample_width,
                .past_last = x >= info->last_col_width,
            };
}

static void put_mcu(j_decompress_ptr jpeg, bool last)
{
    struct weir_jpeg_fast *fast = of(jpeg);
    for (int at = 0; at < fast->scan.n_blocks; at++) {
        struct place *place = &fast->places[at];
        bool only_dc = fast->scan.ends[at] == 1 && place->transform == weir_jpeg_idct;
        if (place->rows && !(last && place->past_last))
            (only_dc ? weir_jpeg_idct_dc : place->transform)(fast->scan.blocks[at], place->quant, place->rows,
                                                             place->column);
        place->column += place->step;
    }
}

/* Sets the memory to prefetch while this MCU is decoded: the MCU's part of the final image. */
static void fetch_for(j_decompress_ptr jpeg, JDIMENSION mcu)
{
    struct weir_jpeg_scan *scan = &of(jpeg)->scan;
    size_t width = jpeg->output_width, plane = width * jpeg->output_height;
    JDIMENSION rows = (JDIMENSION)jpeg->max_v_samp_factor * DCTSIZE, y = jpeg->input_iMCU_row * rows;
    size_t x = (size_t)mcu * (size_t)jpeg->max_h_samp_factor * DCTSIZE;
    scan->fetch_rows = (int)(jpeg->output_height - y < rows ? jpeg->output_height - y : rows);
    for (size_t c = 0; c < 3; c++)
        scan->fetch[c] = of(jpeg)->output.f32 + c * plane + y * width + x;
    scan->fetch_stride = width;
}

/* Decodes one row of MCUs. Replaces decompress_onepass in jdcoefct.c. */
static int put_row(j_decompress_ptr jpeg, JSAMPIMAGE to)
{
    for (int i = 0, at = 0; i < jpeg->comps_in_scan; at += jpeg->cur_comp_info[i++]->MCU_blocks)
        place_component(jpeg, i, at, to);
    for (JDIMENSION mcu = 0; mcu < jpeg->MCUs_per_row; mcu++) {
        if (of(jpeg)->output.f32)
            fetch_for(jpeg, mcu);
        bool wanted = mcu >= jpeg->master->first_iMCU_col && mcu <= jpeg->master->last_iMCU_col;
        next_mcu(jpeg, wanted ? of(jpeg)->only_dc : of(jpeg)->skipped);
        if (wanted)
            put_mcu(jpeg, mcu + 1 == jpeg->MCUs_per_row);
    }
    jpeg->output_iMCU_row++;
    if (++jpeg->input_iMCU_row < jpeg->total_iMCU_rows)
        return JPEG_ROW_COMPLETED;
    jpeg->inputctl->finish_input_pass(jpeg);
    return JPEG_SCAN_COMPLETED;
}

/* ---- colours ---- */

/* Outputs row y of the image. group: its row group in the samples output by the IDCT. */
static void put_colors(j_decompress_ptr jpeg, JSAMPIMAGE in, JDIMENSION group, JDIMENSION y, JSAMPROW to)
{
    struct weir_jpeg_row *row = &of(jpeg)->row;
    JDIMENSION of_group = (JDIMENSION)jpeg->max_v_samp_factor, at = group * of_group + y % of_group;
    bool two_rows = row->chroma == WEIR_JPEG_420, lower = y % 2 == 1;
    row->luma = in[0][at];
    for (int c = 0; c < 2; c++) {
        JSAMPARRAY rows = in[c + 1] + (two_rows ? group : at);
        row->near[c] = rows[0];
        row->far[c] = two_rows ? rows[lower ? 1 : -1] : NULL;
    }
    row->to = to;
    weir_jpeg_color_row(row);
}

/* Replaces libjpeg's upsampling and colour conversion (sep_upsample in jdsample.c). jpeg_skip_scanlines temporarily
 * replaces the colour conversion because skipped rows have no destination, so nothing is output in that case. */
static void put_rows(j_decompress_ptr jpeg, JSAMPIMAGE in, JDIMENSION *group, JDIMENSION groups, JSAMPARRAY to,
                     JDIMENSION *at, JDIMENSION end)
{
    (void)groups;
    JDIMENSION y = jpeg->output_scanline + *at, of_group = (JDIMENSION)jpeg->max_v_samp_factor;
    JDIMENSION n = of_group - y % of_group; /* libjpeg requests only existing rows */
    n = n < jpeg->output_height - y ? n : jpeg->output_height - y;
    n = n < end - *at ? n : end - *at;
    for (JDIMENSION i = 0; i < n && jpeg->cconvert->color_convert == of(jpeg)->color_convert; i++)
        put_colors(jpeg, in, *group, y + i, to[*at + i]);
    *at += n;
    if ((y + n) % of_group == 0)
        ++*group;
}

/* Sets the subsampling of the samples output by the IDCT, which is less than that of the JPEG if chroma is scaled less
 * than luma. Returns false if it is not supported, or if libjpeg does not interpolate. */
static bool has_chroma(const struct jpeg_decompress_struct *jpeg, enum weir_jpeg_chroma *chroma)
{
    const jpeg_component_info *c = jpeg->comp_info;
    int least = jpeg->min_DCT_scaled_size, width = jpeg->max_h_samp_factor * least;
    int height = jpeg->max_v_samp_factor * least, h = c[1].h_samp_factor * c[1].DCT_scaled_size;
    int v = c[1].v_samp_factor * c[1].DCT_scaled_size;
    bool known = jpeg->max_v_samp_factor <= 2;
    for (int i = 0; i < 3; i++)
        known = known && c[i].component_needed && c[i].h_samp_factor * c[i].DCT_scaled_size == (i ? h : width) &&
                c[i].v_samp_factor * c[i].DCT_scaled_size == (i ? v : height);
    if (!known || v > height || h > width)
        return false;
    if (v == height && h == width) {
        *chroma = WEIR_JPEG_444;
        return true;
    }
    *chroma = v == height ? WEIR_JPEG_422 : WEIR_JPEG_420;
    return 2 * h == width && (v == height || 2 * v == height) && least > 1 && c[1].downsampled_width > 2;
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

/* Installs put_rows if it supports the image's chroma subsampling and colour space. Returns whether it did. */
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

/* ---- start of an image ---- */

/* Whether put_row supports this scan. If a scan has a single component, each of its MCUs is one block, and with a
 * vertical sampling factor above 1 an iMCU row has several rows of MCUs, which put_row does not support. */
static bool suits(const struct jpeg_decompress_struct *jpeg)
{
    bool baseline = !jpeg->progressive_mode && !jpeg->arith_code && jpeg->data_precision == 8;
    bool one_row = jpeg->comps_in_scan > 1 || jpeg->cur_comp_info[0]->v_samp_factor == 1, known = true;
    for (int i = 0; i < jpeg->comps_in_scan; i++)
        known = known && transform_of(jpeg->cur_comp_info[i]->DCT_scaled_size);
    return baseline && one_row && known && !jpeg->inputctl->has_multiple_scans && !jpeg->coef->coef_arrays &&
           jpeg->dct_method == JDCT_ISLOW && jpeg->unread_marker == 0 && jpeg->Ss == 0 && jpeg->Se == DCTSIZE2 - 1 &&
           jpeg->Ah == 0 && jpeg->Al == 0;
}

/* Returns the Huffman table of component i, or NULL if the table is new and the scan is small. Reuses the result if an
 * earlier component has the same table. */
static const struct weir_huffman *find_table(struct weir_jpeg_fast *fast, const struct jpeg_decompress_struct *jpeg,
                                             int i, enum weir_huffman_kind kind)
{
    bool make_new = jpeg->src->bytes_in_buffer >= (kind == WEIR_HUFFMAN_SKIP ? SMALL_SKIPPED : SMALL_SCAN);
    bool is_dc = kind == WEIR_HUFFMAN_DC;
    int number = is_dc ? jpeg->cur_comp_info[i]->dc_tbl_no : jpeg->cur_comp_info[i]->ac_tbl_no;
    for (int before = 0; before < i; before++)
        if (number == (is_dc ? jpeg->cur_comp_info[before]->dc_tbl_no : jpeg->cur_comp_info[before]->ac_tbl_no))
            return fast->scan.components[before].huffman[kind];
    const JHUFF_TBL *table = is_dc ? jpeg->dc_huff_tbl_ptrs[number] : jpeg->ac_huff_tbl_ptrs[number];
    return weir_huffman_table(fast->tables, kind, table->bits, table->huffval, make_new);
}

/* Sets which blocks need their AC coefficients. Returns whether some do not. */
static bool choose_blocks(struct weir_jpeg_fast *fast, const struct jpeg_decompress_struct *jpeg, bool skips_rows)
{
    const struct jpeg_decomp_master *master = jpeg->master;
    fast->only_dc = 0;
    for (int i = 0; i < jpeg->blocks_in_MCU; i++) {
        fast->scan.component_of[i] = (uint8_t)jpeg->MCU_membership[i];
        fast->only_dc |= (unsigned)(jpeg->cur_comp_info[jpeg->MCU_membership[i]]->DCT_scaled_size == 1) << i;
    }
    bool skips = skips_rows || master->first_iMCU_col > 0 || master->last_iMCU_col + 1 < jpeg->MCUs_per_row;
    fast->skipped = skips ? (1u << jpeg->blocks_in_MCU) - 1 : 0;
    return fast->only_dc || fast->skipped;
}

static bool find_kind(struct weir_jpeg_fast *fast, const struct jpeg_decompress_struct *jpeg,
                      enum weir_huffman_kind kind)
{
    bool found = true;
    for (int i = 0; i < jpeg->comps_in_scan; i++) {
        fast->scan.components[i].huffman[kind] = find_table(fast, jpeg, i, kind);
        found = found && fast->scan.components[i].huffman[kind];
    }
    return found;
}

static bool find_tables(struct weir_jpeg_fast *fast, const struct jpeg_decompress_struct *jpeg, bool skips_rows)
{
    fast->scan.n_components = jpeg->comps_in_scan;
    fast->scan.n_blocks = jpeg->blocks_in_MCU;
    if (choose_blocks(fast, jpeg, skips_rows) && !find_kind(fast, jpeg, WEIR_HUFFMAN_SKIP))
        fast->only_dc = fast->skipped = 0;
    bool dc = find_kind(fast, jpeg, WEIR_HUFFMAN_DC), ac = find_kind(fast, jpeg, WEIR_HUFFMAN_AC);
    return dc && ac;
}

static void order_blocks(struct weir_jpeg_fast *fast, const struct jpeg_decompress_struct *jpeg)
{
    const uint8_t *order = weir_jpeg_idct_order();
    for (int i = 0; i < jpeg->comps_in_scan; i++) {
        const int16_t *quant = jpeg->cur_comp_info[i]->dct_table;
        for (int k = 0; k < DCTSIZE2; k++)
            fast->quant[i][order[k]] = quant[jpeg_natural_order[k]];
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
    if (!suits(jpeg) || !find_tables(fast, jpeg, output->skips_rows) || !grow_segment(fast, jpeg->src->bytes_in_buffer))
        return WEIR_JPEG_ORIGINAL;
    fast->scan.source = jpeg->src->next_input_byte;
    fast->scan.source_end = fast->scan.source + jpeg->src->bytes_in_buffer;
    if (!weir_jpeg_unstuff(&fast->scan))
        return WEIR_JPEG_ORIGINAL;
    start_segment(fast);
    order_blocks(fast, jpeg);
    fast->mcus_left = jpeg->MCUs_per_row * jpeg->MCU_rows_in_scan;
    fast->restarts_to_go = jpeg->restart_interval;
    fast->entropy = *jpeg->entropy;
    fast->entropy.decode_mcu = skip_mcu;
    jpeg->entropy = &fast->entropy;
    jpeg->coef->decompress_data = put_row;
    fast->output = *output;
    fast->scan.fetch_rows = 0;
    bool planes = replace_colors(fast, jpeg, output->planes) && output->planes;
    if (!planes || jpeg->output_width != jpeg->image_width)
        fast->output.f32 = NULL;
    return planes ? WEIR_JPEG_PLANES : WEIR_JPEG_INTERLEAVED;
}

const char *weir_jpeg_fast_lacks(void)
{
    return weir_jpeg_scan_cpu() ? NULL : "the CPU lacks AVX2, BMI or BMI2";
}

#else
const char *weir_jpeg_fast_lacks(void)
{
    return "it requires an x86-64 build with libjpeg-turbo 2.1";
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
