/* turbo: libjpeg-turbo through the libjpeg API. That API outputs rows band by band, so they are still in the cache when
 * they are converted, and it provides the text of warnings. Uses the accurate ("slow") integer DCT and fancy
 * upsampling, like TurboJPEG and OpenCV. The decoder turbo replaces parts of libjpeg-turbo if possible (jpeg_fast.h);
 * turbo-original never does. */
#include "decoders/decoder_ops.h"
#include "decoders/jpeg_fast.h"
#include "decoders/jpeg_walk_priv.h"

#include <errno.h>
#include <setjmp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <jpeglib.h>

#include <jerror.h>

enum { COLUMNS_MIN = 32 };
/* Limit, because even a small progressive file can contain so many scans that decoding would take years. */
enum { SCANS_MAX = 500 };

struct turbo {
    struct jpeg_decompress_struct jpeg;
    struct jpeg_error_mgr errors;
    struct jpeg_progress_mgr progress;
    jmp_buf escape;
    char message[JMSG_LENGTH_MAX];
    struct weir_jpeg_fast *fast; /* NULL: libjpeg-turbo decodes everything */
    bool warnings_fail, warned;  /* as in struct weir_rows */
    bool flawed_header;          /* the header has extraneous bytes */
    const uint8_t *unchecked;    /* first byte of the scan not yet searched for zeros; NULL before the first scan */
    uint8_t *inks;               /* buffer for a band of CMYK rows */
    size_t inks_bytes;
};

static struct turbo *of(j_common_ptr common)
{
    return common->client_data;
}

static void on_error(j_common_ptr common)
{
    struct turbo *turbo = of(common);
    common->err->format_message(common, turbo->message);
    longjmp(turbo->escape, 1);
}

/* Whether runs of zero bytes in the scan are damage: the image has a single sequential scan, whose end-of-block code is
 * not all zeros. */
static bool zeros_are_damage(const struct jpeg_decompress_struct *jpeg)
{
    if (jpeg->progressive_mode || jpeg->arith_code || jpeg->comps_in_scan != jpeg->num_components)
        return false;
    const JHUFF_TBL *table = jpeg->ac_huff_tbl_ptrs[jpeg->cur_comp_info[0]->ac_tbl_no];
    return table && table->huffval[0] != 0;
}

/* Whether the data decoded since the last call is whole, judged by runs of zeros that no encoder produces: if a part
 * of a scan is zeroed, its decoding can end early, and the rest of the scan looks like extraneous bytes. Zeros among
 * the extraneous bytes themselves are padding. */
static bool decoded_is_whole(struct turbo *turbo, size_t extraneous)
{
    const uint8_t *from = turbo->unchecked, *to = turbo->jpeg.src->next_input_byte;
    if (!from || to < from || !zeros_are_damage(&turbo->jpeg))
        return true;
    turbo->unchecked = to;
    size_t n = (size_t)(to - from);
    return n <= extraneous || !weir_jpeg_has_zeros(from, n - extraneous);
}

/* Whether all pixels are correct in spite of the warning. */
static bool is_harmless(struct turbo *turbo)
{
    switch (turbo->errors.msg_code) {
    case JWRN_EXTRANEOUS_DATA:
        turbo->flawed_header |= !turbo->unchecked;
        return decoded_is_whole(turbo, (size_t)turbo->errors.msg_parm.i[0]);
    case JWRN_JFIF_MAJOR:
    case JWRN_ADOBE_XFORM:
    case JWRN_NOT_SEQUENTIAL:
        return true;
    default:
        return false;
    }
}

/* Level -1 is a warning: libjpeg would continue and output pixels, even if the data is corrupt. */
static void on_message(j_common_ptr common, int level)
{
    if (level >= 0)
        return;
    struct turbo *turbo = of(common);
    if (turbo->warnings_fail || !is_harmless(turbo))
        on_error(common);
    turbo->warned = true;
}

static void on_progress(j_common_ptr common)
{
    if (((j_decompress_ptr)common)->input_scan_number <= SCANS_MAX)
        return;
    common->err->msg_code = JERR_BAD_PROGRESSION; /* libjpeg has no code of its own for too many scans */
    snprintf(of(common)->message, JMSG_LENGTH_MAX, "more than %d progressive scans", SCANS_MAX);
    longjmp(of(common)->escape, 1);
}

/* Whether libjpeg will use a standard Huffman table because the header defines none. */
static bool lacks_tables(const struct jpeg_decompress_struct *jpeg)
{
    bool lacks = false;
    for (int i = 0; i < jpeg->comps_in_scan && !jpeg->arith_code && !jpeg->progressive_mode; i++)
        lacks |= !jpeg->dc_huff_tbl_ptrs[jpeg->cur_comp_info[i]->dc_tbl_no & 3] ||
                 !jpeg->ac_huff_tbl_ptrs[jpeg->cur_comp_info[i]->ac_tbl_no & 3];
    return lacks;
}

/* Starts a frame with a new decompressor. libjpeg keeps DQT and DHT tables from one image to the next, so a frame
 * without tables would be decoded with those of the previous frame. With a new decompressor, missing DHT tables are
 * replaced with the standard tables (motion JPEG; ITU-T T.81, annex K), and a missing DQT table is an error. */
static void begin_frame(struct turbo *turbo, const uint8_t *bytes, size_t length)
{
    jpeg_destroy_decompress(&turbo->jpeg);
    jpeg_create_decompress(&turbo->jpeg);
    turbo->jpeg.progress = &turbo->progress;
    turbo->warned = turbo->flawed_header = false;
    turbo->unchecked = NULL;
    jpeg_mem_src(&turbo->jpeg, bytes, length);
    jpeg_read_header(&turbo->jpeg, TRUE);
    turbo->unchecked = turbo->jpeg.src->next_input_byte;
    if (turbo->flawed_header && lacks_tables(&turbo->jpeg)) {
        snprintf(turbo->message, sizeof turbo->message,
                 "Corrupt JPEG data: extraneous bytes in place of Huffman tables");
        longjmp(turbo->escape, 1);
    }
}

static int original_open(void **self)
{
    struct turbo *turbo = calloc(1, sizeof *turbo);
    if (!turbo)
        return -ENOMEM;
    turbo->jpeg.err = jpeg_std_error(&turbo->errors);
    turbo->errors.error_exit = on_error;
    turbo->errors.emit_message = on_message;
    turbo->jpeg.client_data = turbo;
    if (setjmp(turbo->escape)) {
        free(turbo);
        return -ENOMEM;
    }
    jpeg_create_decompress(&turbo->jpeg);
    turbo->progress.progress_monitor = on_progress;
    *self = turbo;
    return 0;
}

static void turbo_close(void *self)
{
    struct turbo *turbo = self;
    jpeg_destroy_decompress(&turbo->jpeg);
    weir_jpeg_fast_close(turbo->fast);
    free(turbo->inks);
    free(turbo);
}

static int turbo_open(void **self)
{
    int rc = original_open(self);
    if (rc < 0 || weir_jpeg_fast_why_not())
        return rc;
    struct turbo *turbo = *self;
    turbo->fast = weir_jpeg_fast_open();
    if (turbo->fast)
        return 0;
    turbo_close(turbo);
    *self = NULL;
    return -ENOMEM;
}

/* Whether malloc failed. libjpeg-turbo uses the same error code for an invalid size, so the parameter has to be checked
 * (the numbers are those of its jmemmgr.c). */
static bool lacks_memory(const struct turbo *turbo)
{
    int which = turbo->errors.msg_parm.i[0];
    return turbo->errors.msg_code == JERR_OUT_OF_MEMORY && (which == 0 || which == 2 || which == 4);
}

static int fail(struct turbo *turbo, char *reason)
{
    jpeg_abort_decompress(&turbo->jpeg);
    if (lacks_memory(turbo)) {
        snprintf(reason, WEIR_REASON_MAX, "out of memory during decoding");
        return -ENOMEM;
    }
    snprintf(reason, WEIR_REASON_MAX, "%s", turbo->message);
    return -EBADMSG;
}

/* Crops to whole iMCU columns that contain one extra pixel on either side: a column at the edge of the decoded area has
 * no neighbour for chroma interpolation, and would differ from the same column of the whole image. The area has at
 * least COLUMNS_MIN columns, because libjpeg-turbo chooses its upsampling function by the width of the whole image, and
 * the function for wide images needs at least three chroma samples. */
static void crop_columns(struct turbo *turbo, struct weir_rows *rows)
{
    if (rows->first_column == 0 && rows->end_column == rows->width)
        return;
    int from = rows->first_column > 0 ? rows->first_column - 1 : 0;
    int to = rows->end_column < rows->width ? rows->end_column + 1 : rows->width;
    if (to - from < COLUMNS_MIN)
        to = from + COLUMNS_MIN < rows->width ? from + COLUMNS_MIN : rows->width;
    if (to - from < COLUMNS_MIN)
        from = to > COLUMNS_MIN ? to - COLUMNS_MIN : 0;
    /* libjpeg-turbo 2.1.5 mishandles cropped images whose chroma is scaled less than luma: with more than four luma
     * samples per chroma sample, it upsamples the remaining factor with a wrong width. */
    bool wrong_width = rows->scale < 8 && turbo->jpeg.max_h_samp_factor * turbo->jpeg.max_v_samp_factor > 4;
    if (to - from == rows->width || wrong_width) {
        rows->first_column = 0;
        rows->end_column = rows->width;
        return;
    }
    JDIMENSION first = (JDIMENSION)from, columns = (JDIMENSION)(to - from);
    jpeg_crop_scanline(&turbo->jpeg, &first, &columns);
    rows->first_column = (int)first;
    rows->end_column = (int)(first + columns);
}

/* ---- CMYK ---- */

static bool has_inks(const struct turbo *turbo)
{
    return turbo->jpeg.jpeg_color_space == JCS_CMYK || turbo->jpeg.jpeg_color_space == JCS_YCCK;
}

/* Allocates a band of CMYK rows, because libjpeg-turbo does not convert CMYK to RGB. */
static int allocate_inks(struct turbo *turbo, char *reason)
{
    size_t bytes = (size_t)WEIR_BAND_ROWS * turbo->jpeg.output_width * 4;
    if (bytes <= turbo->inks_bytes)
        return 0;
    uint8_t *inks = realloc(turbo->inks, bytes);
    if (!inks) {
        snprintf(reason, WEIR_REASON_MAX, "out of memory");
        return -ENOMEM;
    }
    turbo->inks = inks;
    turbo->inks_bytes = bytes;
    return 0;
}

/* Assumes inverted CMYK values, like OpenCV, because programs that write CMYK JPEGs usually invert them. */
static void inks_to_pixels(const uint8_t *inks, uint8_t *to, size_t pixels, bool bgr)
{
    for (size_t i = 0; i < pixels; i++, inks += 4, to += 3) {
        int black = inks[3];
        for (int c = 0; c < 3; c++)
            to[bgr ? 2 - c : c] = (uint8_t)(black - ((255 - inks[c]) * black >> 8));
    }
}

/* ---- rows ---- */

static void read_rows(struct turbo *turbo, struct weir_rows *rows)
{
    JSAMPROW pointers[WEIR_BAND_ROWS];
    bool inks = has_inks(turbo);
    size_t pixels = turbo->jpeg.output_width;
    if (rows->first_row > 0)
        jpeg_skip_scanlines(&turbo->jpeg, (JDIMENSION)rows->first_row);
    for (int y = rows->first_row; y < rows->end_row; y += WEIR_BAND_ROWS) {
        int n = weir_rows_in_band(rows, y);
        uint8_t *at = weir_rows_at(rows, y);
        for (int row = 0; row < n; row++)
            pointers[row] = inks ? turbo->inks + (size_t)row * pixels * 4 : at + (size_t)row * rows->stride;
        for (int done = 0; done < n;)
            done += (int)jpeg_read_scanlines(&turbo->jpeg, pointers + done, (JDIMENSION)(n - done));
        for (int row = 0; row < n && inks; row++)
            inks_to_pixels(pointers[row], at + (size_t)row * rows->stride, pixels, rows->color == WEIR_COLOR_BGR);
        weir_rows_done(rows, y, n);
    }
}

/* Decodes a frame. fast may be NULL; *took_part reports whether the fast path was active when decoding ended. */
static int decode(struct turbo *turbo, struct weir_jpeg_fast *fast, const struct weir_frame *frame,
                  struct weir_rows *rows, bool *took_part, char *reason)
{
    turbo->warnings_fail = rows->warnings_fail;
    if (setjmp(turbo->escape))
        return fail(turbo, reason);
    begin_frame(turbo, frame->bytes, frame->length);
    int rc = weir_check_frame_size(frame, turbo->jpeg.image_width, turbo->jpeg.image_height, reason);
    if (rc < 0) {
        jpeg_abort_decompress(&turbo->jpeg);
        return rc;
    }
    J_COLOR_SPACE pixels = rows->color == WEIR_COLOR_RGB ? JCS_EXT_RGB : JCS_EXT_BGR;
    turbo->jpeg.out_color_space = has_inks(turbo) ? JCS_CMYK : pixels;
    turbo->jpeg.scale_num = (unsigned int)rows->scale;
    turbo->jpeg.scale_denom = 8;
    jpeg_start_decompress(&turbo->jpeg);
    rc = has_inks(turbo) ? allocate_inks(turbo, reason) : 0;
    if (rc < 0) {
        jpeg_abort_decompress(&turbo->jpeg);
        return rc;
    }
    crop_columns(turbo, rows);
    const struct weir_jpeg_output output = {rows->takes_planes, rows->first_row > 0, rows->planes_f32};
    enum weir_jpeg_rows made = fast ? weir_jpeg_fast_begin(fast, &turbo->jpeg, &output) : WEIR_JPEG_ORIGINAL;
    *took_part = made != WEIR_JPEG_ORIGINAL;
    rows->planes = made == WEIR_JPEG_PLANES;
    read_rows(turbo, rows);
    *took_part = false; /* All rows are done. An error in the data after the scan, which may contain tables, does not
                           need a second attempt. */
    if (rows->end_row == rows->height)
        jpeg_finish_decompress(&turbo->jpeg);
    else
        jpeg_abort_decompress(&turbo->jpeg);
    rows->warned = turbo->warned;
    return 0;
}

/* If the fast path fails, the frame is decoded again from the start by libjpeg-turbo, which also reports any error. */
static int turbo_decode(void *self, const struct weir_frame *frame, struct weir_rows *rows, char *reason)
{
    struct turbo *turbo = self;
    struct weir_rows asked = *rows;
    bool took_part = false;
    int rc = decode(turbo, turbo->fast, frame, rows, &took_part, reason);
    if (rc == 0 || !took_part)
        return rc;
    asked.convert_ticks = rows->convert_ticks;
    *rows = asked;
    reason[0] = '\0';
    return decode(turbo, NULL, frame, rows, &took_part, reason);
}

static const char *subsampling(const struct jpeg_decompress_struct *jpeg)
{
    static const struct {
        int h, v;
        const char *name;
    } known[] = {{1, 1, "4:4:4"}, {2, 1, "4:2:2"}, {2, 2, "4:2:0"}, {1, 2, "4:4:0"}, {4, 1, "4:1:1"}};
    if (jpeg->num_components == 1)
        return "gray";
    const jpeg_component_info *c = jpeg->comp_info;
    if (jpeg->num_components != 3 || c[1].h_samp_factor != c[2].h_samp_factor ||
        c[1].v_samp_factor != c[2].v_samp_factor || c[0].h_samp_factor % c[1].h_samp_factor != 0 ||
        c[0].v_samp_factor % c[1].v_samp_factor != 0)
        return "other";
    for (size_t i = 0; i < sizeof known / sizeof known[0]; i++)
        if (c[0].h_samp_factor / c[1].h_samp_factor == known[i].h &&
            c[0].v_samp_factor / c[1].v_samp_factor == known[i].v)
            return known[i].name;
    return "other";
}

/* Whether the data can contain the image. Each block needs at least one bit, except with arithmetic coding, so a header
 * that declares more blocks than the data has bits is damaged. */
static bool can_hold(const struct jpeg_decompress_struct *jpeg, size_t length)
{
    uint64_t blocks = 0;
    for (int i = 0; i < jpeg->num_components; i++)
        blocks += (uint64_t)jpeg->comp_info[i].width_in_blocks * jpeg->comp_info[i].height_in_blocks;
    return jpeg->arith_code || blocks / 8 <= length;
}

static int turbo_probe(void *self, enum weir_frame_kind kind, const uint8_t *bytes, size_t length,
                       struct weir_image_info *info, char *reason)
{
    (void)kind;
    struct turbo *turbo = self;
    turbo->warnings_fail = false; /* only decoding counts a frame */
    if (setjmp(turbo->escape))
        return fail(turbo, reason);
    begin_frame(turbo, bytes, length);
    info->width = (int)turbo->jpeg.image_width;
    info->height = (int)turbo->jpeg.image_height;
    info->components = turbo->jpeg.num_components;
    info->bit_depth = turbo->jpeg.data_precision;
    info->kind = WEIR_FRAME_JPEG;
    info->subsampling = subsampling(&turbo->jpeg);
    info->process = turbo->jpeg.arith_code ? "arithmetic" : turbo->jpeg.progressive_mode ? "progressive" : "baseline";
    bool fine = can_hold(&turbo->jpeg, length);
    jpeg_abort_decompress(&turbo->jpeg);
    return fine ? 0 : weir_probe_refuses(info, length, reason);
}

/* Returns libjpeg-turbo's SIMD instruction set, which the library does not report. Repeats the choice in its
 * simd/ARCH/jsimd.c: the best instruction set of the CPU, unless an environment variable overrides it. */
static const char *simd(void)
{
#if defined(__x86_64__)
    const char *none = getenv("JSIMD_FORCENONE"), *sse2 = getenv("JSIMD_FORCESSE2");
    if (none && strcmp(none, "1") == 0)
        return "off (JSIMD_FORCENONE)";
    if (sse2 && strcmp(sse2, "1") == 0)
        return "SSE2 (JSIMD_FORCESSE2)";
    return __builtin_cpu_supports("avx2") ? "AVX2" : "SSE2";
#elif defined(__aarch64__)
    return "Neon";
#else
    return "unknown on this architecture";
#endif
}

static void turbo_library(char *text, size_t size)
{
#if defined(LIBJPEG_TURBO_VERSION_NUMBER)
    const char *why_not = weir_jpeg_fast_why_not();
    snprintf(text, size, "libjpeg-turbo %d.%d.%d, SIMD: %s, %s%s", LIBJPEG_TURBO_VERSION_NUMBER / 1000000,
             LIBJPEG_TURBO_VERSION_NUMBER / 1000 % 1000, LIBJPEG_TURBO_VERSION_NUMBER % 1000, simd(),
             why_not ? "without Weir's own Huffman, IDCT and colour code: "
                     : "with Weir's own Huffman, IDCT and colour code",
             why_not ? why_not : "");
#else
    snprintf(text, size, "libjpeg %d (not libjpeg-turbo: no SIMD)", JPEG_LIB_VERSION);
#endif
}

#define TURBO(open_it)                                                                                                 \
    .selectable = true, .kinds = WEIR_KIND(WEIR_FRAME_JPEG), .scales = true, .end = weir_jpeg_end, .open = open_it,    \
    .close = turbo_close, .decode = turbo_decode, .probe = turbo_probe

const struct weir_decoder_ops weir_decoder_turbo_original = {
    .name = "turbo-original",
    .summary = "JPEG on the CPU with unmodified libjpeg-turbo, for comparison",
    TURBO(original_open),
};

const struct weir_decoder_ops weir_decoder_turbo = {
    .name = "turbo",
    .summary = "JPEG on the CPU with libjpeg-turbo, partly replaced by faster code",
    .library = turbo_library,
    TURBO(turbo_open),
};
