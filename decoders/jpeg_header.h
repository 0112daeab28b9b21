/* jpeg_header.h: parses the header of a JPEG and checks the structure of its scans without decoding them (ITU-T T.81,
 * annex B). Frames for a GPU need both, because GPU decoders decode damaged scans to grey, noise or nothing and still
 * report success.
 *
 * The input is untrusted, and no byte outside bytes[0 .. length - 1] is read. The functions allocate no memory and can
 * be called by any thread. */
#ifndef WEIR_DECODERS_JPEG_HEADER_H
#define WEIR_DECODERS_JPEG_HEADER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum weir_jpeg_sampling {
    WEIR_JPEG_GRAY, /* one component */
    WEIR_JPEG_444,
    WEIR_JPEG_422, /* chroma has half the width */
    WEIR_JPEG_420, /* chroma has half the width and half the height */
    WEIR_JPEG_440, /* chroma has half the height */
    WEIR_JPEG_SAMPLED_OTHERWISE,
};

enum weir_jpeg_process {
    WEIR_JPEG_BASELINE,
    WEIR_JPEG_EXTENDED, /* sequential with Huffman coding, but with more tables or 12 bits per sample */
    WEIR_JPEG_PROGRESSIVE,
    WEIR_JPEG_LOSSLESS,
    WEIR_JPEG_ARITHMETIC, /* arithmetic coding, sequential or progressive */
    WEIR_JPEG_HIERARCHICAL,
};

/* Colour space, determined as in libjpeg: by the JFIF or Adobe marker, or else by the component identifiers. */
enum weir_jpeg_color { WEIR_JPEG_Y, WEIR_JPEG_YCC, WEIR_JPEG_RGB, WEIR_JPEG_CMYK, WEIR_JPEG_YCCK, WEIR_JPEG_OTHER };

struct weir_jpeg_header {
    int width, height; /* 1..65535 */
    int components;    /* 1..4 */
    int bit_depth;     /* bits per sample */
    enum weir_jpeg_sampling sampling;
    enum weir_jpeg_process process;
    enum weir_jpeg_color color;
    int restart_interval; /* MCUs between restart markers; 0: no restart markers */
    uint32_t mcus;        /* MCUs in a scan that contains all components */
    bool one_scan;        /* the first scan is sequential and contains all components */
    bool tables; /* the first scan's Huffman tables and all quantisation tables are defined and valid; the latter have 8
                    bits */
    bool zeros_are_flat; /* the end-of-block code is all zeros (possible with optimised codes), so zero bytes in the
                            scan are valid */
    size_t scan_offset;  /* offset of the first scan's entropy-coded data */
    uint64_t kind; /* hash of the properties that images of one kind share: frame header, quantisation, colour space,
                      restart interval */
};

/* Reason why a JPEG is not decoded on a GPU; WEIR_JPEG_TAKEN if none exists. */
enum weir_jpeg_refusal {
    WEIR_JPEG_TAKEN,
    /* damaged: */
    WEIR_JPEG_BAD_HEADER,
    WEIR_JPEG_TRUNCATED, /* no end-of-image marker, or a component without a scan */
    WEIR_JPEG_BAD_MARKER,
    WEIR_JPEG_BAD_RESTART, /* missing, surplus or misordered restart markers */
    WEIR_JPEG_ZEROS,       /* a run of zero bytes that no encoder produces */
    /* not supported by the GPU decoder: */
    WEIR_JPEG_IS_PROGRESSIVE,
    WEIR_JPEG_IS_EXTENDED,
    WEIR_JPEG_IS_ARITHMETIC,
    WEIR_JPEG_IS_LOSSLESS, /* lossless or hierarchical */
    WEIR_JPEG_IS_DEEP,     /* not 8 bits per sample */
    WEIR_JPEG_IS_CMYK,     /* CMYK or YCCK */
    WEIR_JPEG_IS_RGB,      /* RGB, or two components, for which no colour space is defined */
    WEIR_JPEG_IS_SAMPLED,  /* other sampling factors, such as 4:1:1 */
    WEIR_JPEG_HAS_SCANS,   /* several scans, but not progressive */
    WEIR_JPEG_NO_TABLES,   /* a table is missing (as in motion JPEG), has 16 bits, or is defined after the first scan */
    WEIR_JPEG_TOO_LARGE,
    WEIR_JPEG_IS_MARKED, /* its metadata requires turning, or another channel order (weir_gpu_jpeg_marks) */
    /* refused after submission to the engine: */
    WEIR_JPEG_ENGINE_REFUSED, /* the engine reported that it cannot decode the image */
    WEIR_JPEG_PSNR_REFUSED,   /* the GPU's pixels differ from the CPU's for images of this kind (psnr_check.h) */
    WEIR_JPEG_REFUSALS
};

/* Returns a short name for reports, such as "progressive", "cmyk" or "truncated". */
const char *weir_jpeg_refusal_name(enum weir_jpeg_refusal refusal);

/* Parses the header up to the first scan. Returns WEIR_JPEG_TAKEN; or WEIR_JPEG_BAD_HEADER and a zeroed header if the
 * data is not a JPEG, is truncated, or has an invalid segment. WEIR_JPEG_TAKEN does not imply that a GPU supports the
 * image. */
enum weir_jpeg_refusal weir_jpeg_header_read(struct weir_jpeg_header *header, const uint8_t *bytes, size_t length);

/* Walks the entropy-coded data from header->scan_offset to the end-of-image marker. Returns WEIR_JPEG_TAKEN and sets
 * *frame_bytes to the size of the image including that marker (bytes after it are not part of the image). Otherwise
 * returns the kind of damage, WEIR_JPEG_NO_TABLES if a scan lacks a table (a decoder might use that of an earlier
 * image) or a quantisation table follows the first scan, or WEIR_JPEG_HAS_SCANS if there are too many scans. Detects
 * the effects of interrupted copies, lost sectors and misplaced markers, but not single flipped bits, which are visible
 * only in the pixels. Processes at least 6 GB/s. */
enum weir_jpeg_refusal weir_jpeg_check_scan(const struct weir_jpeg_header *header, const uint8_t *bytes, size_t length,
                                            size_t *frame_bytes);

#endif
