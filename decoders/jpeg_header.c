#include "decoders/jpeg_header.h"
#include "base/hash.h"
#include "decoders/jpeg_walk_priv.h"

#include <string.h>

enum { COMPONENTS_MAX = 4, TABLES_MAX = 4, SCANS_MAX = 100 };

struct component {
    uint8_t id, h, v, table;
};

/* Parser state up to the first scan. */
struct reader {
    const uint8_t *bytes;
    size_t length, at;
    struct weir_jpeg_header *header;
    struct component components[COMPONENTS_MAX];
    bool jfif, adobe, bad_tables;
    uint8_t adobe_transform;
    bool quantizers[TABLES_MAX], huffman[2][TABLES_MAX]; /* tables defined so far; huffman[0]: DC, huffman[1]: AC */
    uint8_t first_symbol[TABLES_MAX];                    /* for each AC table, the symbol whose code is all zeros */
    unsigned scanned;                                    /* bit i is set if component i has had a scan */
};

static const char *const names[WEIR_JPEG_REFUSALS] = {
    [WEIR_JPEG_TAKEN] = "taken",
    [WEIR_JPEG_BAD_HEADER] = "bad header",
    [WEIR_JPEG_TRUNCATED] = "truncated",
    [WEIR_JPEG_BAD_MARKER] = "stray marker",
    [WEIR_JPEG_BAD_RESTART] = "bad restart markers",
    [WEIR_JPEG_ZEROS] = "zeros in the scan",
    [WEIR_JPEG_IS_PROGRESSIVE] = "progressive",
    [WEIR_JPEG_IS_EXTENDED] = "extended",
    [WEIR_JPEG_IS_ARITHMETIC] = "arithmetic",
    [WEIR_JPEG_IS_LOSSLESS] = "lossless",
    [WEIR_JPEG_IS_DEEP] = "not 8 bits",
    [WEIR_JPEG_IS_CMYK] = "cmyk",
    [WEIR_JPEG_IS_RGB] = "rgb",
    [WEIR_JPEG_IS_SAMPLED] = "unsupported sampling",
    [WEIR_JPEG_HAS_SCANS] = "several scans",
    [WEIR_JPEG_NO_TABLES] = "unsupported tables",
    [WEIR_JPEG_TOO_LARGE] = "too large",
    [WEIR_JPEG_IS_MARKED] = "marked orientation or colours",
    [WEIR_JPEG_ENGINE_REFUSED] = "refused by the engine",
    [WEIR_JPEG_PSNR_REFUSED] = "pixels differ",
};

const char *weir_jpeg_refusal_name(enum weir_jpeg_refusal refusal)
{
    return refusal >= 0 && refusal < WEIR_JPEG_REFUSALS ? names[refusal] : "?";
}

/* Adds a segment to the hash. Each hash includes the previous one, so the order of segments matters. */
static void mix(struct weir_jpeg_header *header, const struct weir_jpeg_segment *segment)
{
    uint64_t words[3] = {header->kind, segment->marker, weir_hash64(segment->body, segment->length)};
    header->kind = weir_hash64(words, sizeof words);
}

/* ---- segments ---- */

static enum weir_jpeg_process process_of(int sof)
{
    switch (sof) {
    case 0:
        return WEIR_JPEG_BASELINE;
    case 1:
        return WEIR_JPEG_EXTENDED;
    case 2:
        return WEIR_JPEG_PROGRESSIVE;
    case 3:
    case 11:
        return WEIR_JPEG_LOSSLESS;
    case 9:
    case 10:
        return WEIR_JPEG_ARITHMETIC;
    default:
        return WEIR_JPEG_HIERARCHICAL;
    }
}

static enum weir_jpeg_sampling sampling_of(const struct component *c, int n)
{
    if (n == 1) /* sampling factors have no effect on a single component, but GPU decoders may apply them */
        return c[0].h == 1 && c[0].v == 1 ? WEIR_JPEG_GRAY : WEIR_JPEG_SAMPLED_OTHERWISE;
    if (n != 3 || c[1].h != 1 || c[1].v != 1 || c[2].h != 1 || c[2].v != 1 || c[0].h > 2 || c[0].v > 2)
        return WEIR_JPEG_SAMPLED_OTHERWISE;
    if (c[0].v == 1)
        return c[0].h == 1 ? WEIR_JPEG_444 : WEIR_JPEG_422;
    return c[0].h == 1 ? WEIR_JPEG_440 : WEIR_JPEG_420;
}

/* Returns the number of MCUs in a scan of all components. With a single component, an MCU is one block. */
static uint32_t mcus_of(const struct reader *r)
{
    uint32_t h = 1, v = 1;
    for (int i = 0; i < r->header->components && r->header->components > 1; i++) {
        h = r->components[i].h > h ? r->components[i].h : h;
        v = r->components[i].v > v ? r->components[i].v : v;
    }
    uint32_t width = (uint32_t)r->header->width, height = (uint32_t)r->header->height;
    return (width + 8 * h - 1) / (8 * h) * ((height + 8 * v - 1) / (8 * v));
}

static bool read_frame(struct reader *r, const struct weir_jpeg_segment *segment)
{
    struct weir_jpeg_header *header = r->header;
    const uint8_t *body = segment->body;
    if (header->components || segment->length < 6 || segment->length != 6 + 3 * (size_t)body[5])
        return false;
    header->process = process_of(segment->marker - MARKER_SOF0);
    header->bit_depth = body[0];
    header->height = weir_jpeg_u16(body + 1);
    header->width = weir_jpeg_u16(body + 3);
    header->components = body[5];
    if (!header->width || !header->height || header->components < 1 || header->components > COMPONENTS_MAX)
        return false;
    for (int i = 0; i < header->components; i++) {
        const uint8_t *c = body + 6 + 3 * i;
        r->components[i] = (struct component){c[0], c[1] >> 4, c[1] & 15, c[2]};
        if (r->components[i].h < 1 || r->components[i].h > 4 || r->components[i].v < 1 || r->components[i].v > 4)
            return false;
    }
    header->sampling = sampling_of(r->components, header->components);
    header->mcus = mcus_of(r);
    return true;
}

static bool read_quantizers(struct reader *r, const struct weir_jpeg_segment *segment)
{
    for (size_t i = 0; i < segment->length;) {
        int id = segment->body[i] & 15, precision = segment->body[i] >> 4;
        size_t bytes = precision ? 128 : 64;
        if (id >= TABLES_MAX || precision > 1 || segment->length - i - 1 < bytes)
            return false;
        r->quantizers[id] = true;
        r->bad_tables |= precision != 0;
        i += 1 + bytes;
    }
    return true;
}

/* Whether the number of codes of each length is valid. The code of all ones is reserved, and testing for it also
 * detects lengths that need more codes than exist. */
static bool codes_fit(const uint8_t counts[16])
{
    uint32_t code = 0;
    for (int bits = 1; bits <= 16; bits++) {
        code += counts[bits - 1];
        if (code >= 1U << bits)
            return false;
        code <<= 1;
    }
    return true;
}

static bool read_huffman(struct reader *r, const struct weir_jpeg_segment *segment)
{
    for (size_t i = 0; i < segment->length;) {
        const uint8_t *table = segment->body + i;
        size_t left = segment->length - i, symbols = 0;
        if (left < 17)
            return false;
        for (int bits = 1; bits <= 16; bits++)
            symbols += table[bits];
        int id = table[0] & 15, ac = table[0] >> 4;
        if (id >= TABLES_MAX || ac > 1 || symbols > 256 || left - 17 < symbols)
            return false;
        r->huffman[ac][id] = symbols > 0;
        r->bad_tables |= !codes_fit(table + 1);
        if (ac && symbols)
            r->first_symbol[id] = table[17];
        i += 17 + symbols;
    }
    return true;
}

static void read_application(struct reader *r, const struct weir_jpeg_segment *segment)
{
    if (segment->marker == MARKER_APP0 && segment->length >= 14 && memcmp(segment->body, "JFIF", 5) == 0)
        r->jfif = true;
    if (segment->marker != MARKER_APP14 || segment->length < 12 || memcmp(segment->body, "Adobe", 5) != 0)
        return;
    r->adobe = true;
    r->adobe_transform = segment->body[11];
}

/* Parses a segment before the first scan. Returns false if it is invalid. */
static bool read_segment(struct reader *r, const struct weir_jpeg_segment *segment)
{
    uint8_t marker = segment->marker;
    if (marker == MARKER_COM || (marker >= MARKER_APP0 && marker <= MARKER_APP15)) {
        read_application(r, segment);
        return true;
    }
    /* DHT is excluded from the hash, because encoders that optimise their Huffman tables write new ones for every
     * image. */
    if (marker == MARKER_DHT)
        return read_huffman(r, segment);
    mix(r->header, segment);
    if (marker == MARKER_DQT)
        return read_quantizers(r, segment);
    if (marker == MARKER_DRI) {
        r->header->restart_interval = segment->length == 2 ? weir_jpeg_u16(segment->body) : 0;
        return segment->length == 2;
    }
    if (marker == MARKER_DAC)
        return true;
    return marker <= MARKER_SOF15 && marker != MARKER_JPG && read_frame(r, segment);
}

/* ---- the first scan ---- */

static enum weir_jpeg_color color_of(const struct reader *r)
{
    const struct component *c = r->components;
    switch (r->header->components) {
    case 1:
        return WEIR_JPEG_Y;
    case 3:
        if (r->jfif)
            return WEIR_JPEG_YCC;
        if (r->adobe)
            return r->adobe_transform == 0 ? WEIR_JPEG_RGB : WEIR_JPEG_YCC;
        return c[0].id == 'R' && c[1].id == 'G' && c[2].id == 'B' ? WEIR_JPEG_RGB : WEIR_JPEG_YCC;
    case 4:
        return r->adobe && r->adobe_transform == 2 ? WEIR_JPEG_YCCK : WEIR_JPEG_CMYK;
    default:
        return WEIR_JPEG_OTHER;
    }
}

static int component_of(const struct reader *r, uint8_t id)
{
    for (int i = 0; i < r->header->components; i++)
        if (r->components[i].id == id)
            return i;
    return -1;
}

/* Parses a scan header. Sets *tables to whether every Huffman table that the scan uses is defined and valid. In a
 * progressive JPEG, DC scans need no AC table, AC scans need no DC table, and DC refinement scans need no table at all.
 * Returns false if the header is invalid. */
static bool scan_tables(struct reader *r, const struct weir_jpeg_segment *segment, bool *tables)
{
    const uint8_t *body = segment->body;
    if (!r->header->components || segment->length < 4 || segment->length != 4 + 2 * (size_t)body[0] || body[0] < 1 ||
        body[0] > r->header->components)
        return false;
    const uint8_t *spectrum = body + 1 + 2 * body[0];
    bool progressive = r->header->process == WEIR_JPEG_PROGRESSIVE, refines = spectrum[2] >> 4 != 0;
    bool needs_dc = !progressive || (spectrum[0] == 0 && !refines), needs_ac = !progressive || spectrum[0] > 0;
    *tables = !r->bad_tables;
    for (int i = 0; i < body[0]; i++) {
        int c = component_of(r, body[1 + 2 * i]), dc = body[2 + 2 * i] >> 4, ac = body[2 + 2 * i] & 15;
        if (c < 0 || dc >= TABLES_MAX || ac >= TABLES_MAX)
            return false;
        *tables &= (r->huffman[0][dc] || !needs_dc) && (r->huffman[1][ac] || !needs_ac);
        r->scanned |= 1u << c;
    }
    return true;
}

/* Whether every component's quantisation table precedes the first scan. A frame that defines one later is valid, but no
 * GPU decoder documents which of two definitions it uses or how it handles a missing one. */
static bool has_quantizers(const struct reader *r)
{
    for (int i = 0; i < r->header->components; i++)
        if (r->components[i].table >= TABLES_MAX || !r->quantizers[r->components[i].table])
            return false;
    return true;
}

static bool read_scan(struct reader *r, const struct weir_jpeg_segment *segment)
{
    struct weir_jpeg_header *header = r->header;
    const uint8_t *body = segment->body;
    if (!scan_tables(r, segment, &header->tables))
        return false;
    const uint8_t *spectrum = body + 1 + 2 * body[0];
    bool whole = spectrum[0] == 0 && spectrum[1] == 63 && spectrum[2] == 0;
    int first_ac = body[2] & 15;
    header->zeros_are_flat = r->huffman[1][first_ac] && r->first_symbol[first_ac] == 0;
    header->one_scan = body[0] == header->components && whole && header->process != WEIR_JPEG_PROGRESSIVE;
    header->tables &= has_quantizers(r);
    header->color = color_of(r);
    mix(header, segment);
    mix(header, &(struct weir_jpeg_segment){MARKER_APP14, (const uint8_t[]){(uint8_t)header->color}, 1});
    return true;
}

static bool read_header(struct reader *r)
{
    if (r->length < 4 || r->bytes[0] != 0xFF || r->bytes[1] != MARKER_SOI)
        return false;
    r->at = 2;
    struct weir_jpeg_segment segment;
    while (weir_jpeg_next_segment(r->bytes, r->length, &r->at, &segment)) {
        if (segment.marker == MARKER_SOS) {
            r->header->scan_offset = r->at;
            return read_scan(r, &segment);
        }
        if (!read_segment(r, &segment))
            return false;
    }
    return false;
}

enum weir_jpeg_refusal weir_jpeg_header_read(struct weir_jpeg_header *header, const uint8_t *bytes, size_t length)
{
    *header = (struct weir_jpeg_header){0};
    struct reader r = {.bytes = bytes, .length = length, .header = header};
    if (read_header(&r))
        return WEIR_JPEG_TAKEN;
    *header = (struct weir_jpeg_header){0};
    return WEIR_JPEG_BAD_HEADER;
}

/* ---- entropy-coded data ---- */

/* Advances *at past the next marker that is not a restart marker. Counts the restart markers and checks their order. */
static enum weir_jpeg_refusal walk_scan(const struct weir_jpeg_header *header, const uint8_t *bytes, size_t length,
                                        size_t *at, uint8_t *marker, uint32_t *restarts)
{
    bool zeros_matter = header->one_scan && !header->zeros_are_flat;
    *restarts = 0;
    for (size_t i = *at;; (*restarts)++) {
        size_t end = weir_jpeg_find_marker(bytes, i, length);
        if (end == length)
            return WEIR_JPEG_TRUNCATED;
        if (zeros_matter && weir_jpeg_has_zeros(bytes + i, end - i))
            return WEIR_JPEG_ZEROS;
        *marker = bytes[end + 1];
        i = end + 2;
        if (*marker < MARKER_RST0 || *marker > MARKER_RST7) {
            *at = i;
            return WEIR_JPEG_TAKEN;
        }
        if (*marker != MARKER_RST0 + (*restarts & 7))
            return WEIR_JPEG_BAD_RESTART;
    }
}

/* Advances from the end of a scan to the entropy-coded data of the next scan, whose tables must be defined, or past the
 * end-of-image marker. */
static enum weir_jpeg_refusal next_scan(struct reader *r, bool *ended)
{
    struct weir_jpeg_segment segment;
    bool tables;
    while (weir_jpeg_next_segment(r->bytes, r->length, &r->at, &segment)) {
        if (segment.marker == MARKER_SOS)
            return !scan_tables(r, &segment, &tables) ? WEIR_JPEG_BAD_MARKER
                   : tables                           ? WEIR_JPEG_TAKEN
                                                      : WEIR_JPEG_NO_TABLES;
        if (segment.marker == MARKER_DQT)
            return WEIR_JPEG_NO_TABLES; /* a table defined between scans: see has_quantizers */
        bool belongs = segment.marker == MARKER_DHT || segment.marker == MARKER_COM || segment.marker == MARKER_DRI ||
                       (segment.marker >= MARKER_APP0 && segment.marker <= MARKER_APP15);
        if (!belongs || !read_segment(r, &segment))
            return WEIR_JPEG_BAD_MARKER;
    }
    *ended = r->at + 2 <= r->length && r->bytes[r->at] == 0xFF && r->bytes[r->at + 1] == MARKER_EOI;
    r->at += *ended ? 2 : 0;
    return *ended ? WEIR_JPEG_TAKEN : r->at + 2 > r->length ? WEIR_JPEG_TRUNCATED : WEIR_JPEG_BAD_MARKER;
}

static enum weir_jpeg_refusal check_one_scan(const struct weir_jpeg_header *header, const uint8_t *bytes, size_t length,
                                             size_t *frame_bytes)
{
    uint8_t marker;
    uint32_t restarts, interval = (uint32_t)header->restart_interval;
    size_t at = header->scan_offset;
    enum weir_jpeg_refusal refusal = walk_scan(header, bytes, length, &at, &marker, &restarts);
    if (refusal != WEIR_JPEG_TAKEN)
        return refusal;
    if (marker != MARKER_EOI)
        return WEIR_JPEG_BAD_MARKER;
    if (restarts != (interval ? (header->mcus - 1) / interval : 0))
        return WEIR_JPEG_BAD_RESTART;
    *frame_bytes = at;
    return WEIR_JPEG_TAKEN;
}

static enum weir_jpeg_refusal check_scans(const uint8_t *bytes, size_t length, size_t *frame_bytes)
{
    struct weir_jpeg_header header = {0};
    struct reader r = {.bytes = bytes, .length = length, .header = &header};
    bool ended = false;
    if (!read_header(&r))
        return WEIR_JPEG_BAD_HEADER;
    for (int scans = 0; scans < SCANS_MAX && !ended; scans++) {
        uint8_t marker;
        uint32_t restarts;
        enum weir_jpeg_refusal refusal = walk_scan(&header, bytes, length, &r.at, &marker, &restarts);
        r.at -= 2; /* next_scan parses the marker again, as part of its segment */
        if (refusal == WEIR_JPEG_TAKEN)
            refusal = next_scan(&r, &ended);
        if (refusal != WEIR_JPEG_TAKEN)
            return refusal;
    }
    *frame_bytes = r.at;
    if (!ended)
        return WEIR_JPEG_HAS_SCANS;
    return r.scanned == (1u << header.components) - 1 ? WEIR_JPEG_TAKEN : WEIR_JPEG_TRUNCATED;
}

enum weir_jpeg_refusal weir_jpeg_check_scan(const struct weir_jpeg_header *header, const uint8_t *bytes, size_t length,
                                            size_t *frame_bytes)
{
    *frame_bytes = 0;
    return header->one_scan ? check_one_scan(header, bytes, length, frame_bytes)
                            : check_scans(bytes, length, frame_bytes);
}
