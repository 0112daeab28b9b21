/* jpeg_header.h: reads the header of a JPEG and checks the structure of its scan without a codec (ITU-T T.81, annex B).
 * GPU decoders need both: they decode damaged scans to grey, noise or nothing, and report success.
 *
 * The bytes are untrusted: nothing outside bytes[0 .. length - 1] is read. Allocates nothing; any thread. */
#ifndef WEIR_DECODERS_JPEG_HEADER_H
#define WEIR_DECODERS_JPEG_HEADER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum weir_jpeg_sampling {
    WEIR_JPEG_GRAY, /* one component */
    WEIR_JPEG_444,
    WEIR_JPEG_422, /* chroma half as wide */
    WEIR_JPEG_420, /* half as wide and half as high */
    WEIR_JPEG_440, /* half as high */
    WEIR_JPEG_SAMPLED_OTHERWISE,
};

enum weir_jpeg_process {
    WEIR_JPEG_BASELINE,
    WEIR_JPEG_EXTENDED, /* sequential, Huffman: more tables, or 12 bits */
    WEIR_JPEG_PROGRESSIVE,
    WEIR_JPEG_LOSSLESS,
    WEIR_JPEG_ARITHMETIC, /* sequential or progressive */
    WEIR_JPEG_HIERARCHICAL,
};

/* As determined by libjpeg: from the JFIF and Adobe markers, else from the component numbers. */
enum weir_jpeg_color { WEIR_JPEG_Y, WEIR_JPEG_YCC, WEIR_JPEG_RGB, WEIR_JPEG_CMYK, WEIR_JPEG_YCCK, WEIR_JPEG_OTHER };

struct weir_jpeg_header {
    int width, height; /* 1..65535 */
    int components;    /* 1..4 */
    int bit_depth;     /* per sample */
    enum weir_jpeg_sampling sampling;
    enum weir_jpeg_process process;
    enum weir_jpeg_color color;
    int restart_interval; /* MCUs between restart markers; 0 = none */
    uint32_t mcus;        /* in a scan of all components */
    bool one_scan;        /* the first scan contains all components */
    bool tables;         /* all tables of the first scan and all quantisation tables are defined, complete, and 8-bit */
    bool zeros_are_flat; /* zero bits in the scan encode a flat area: the encoder optimised its codes */
    size_t scan_offset;  /* of the first scan's coded data */
    uint64_t kind;       /* hash of everything that determines the pixels: frame, quantisation, colour, restarts */
};

/* Reason why a JPEG is not decoded on a GPU. */
enum weir_jpeg_refusal {
    WEIR_JPEG_TAKEN,
    /* damaged: */
    WEIR_JPEG_BAD_HEADER,
    WEIR_JPEG_TRUNCATED, /* no end-of-image marker, or a component without a scan */
    WEIR_JPEG_BAD_MARKER,
    WEIR_JPEG_BAD_RESTART, /* restart markers missing, too many or out of order */
    WEIR_JPEG_ZEROS,       /* a run of zero bytes that no encoder writes */
    /* not supported by GPU decoders: */
    WEIR_JPEG_IS_PROGRESSIVE,
    WEIR_JPEG_IS_EXTENDED,
    WEIR_JPEG_IS_ARITHMETIC,
    WEIR_JPEG_IS_LOSSLESS, /* or hierarchical */
    WEIR_JPEG_IS_DEEP,     /* not of 8 bits */
    WEIR_JPEG_IS_CMYK,     /* or YCCK */
    WEIR_JPEG_IS_RGB,      /* or two components, which have no defined meaning */
    WEIR_JPEG_IS_SAMPLED,  /* 4:1:1 and the like */
    WEIR_JPEG_HAS_SCANS,   /* several scans without being progressive */
    WEIR_JPEG_NO_TABLES, /* a scan lacks a table, as in motion JPEG, or has a 16-bit one, or one is defined after a scan
                          */
    WEIR_JPEG_TOO_LARGE,
    /* refused after the attempt: */
    WEIR_JPEG_ENGINE_REFUSED, /* the engine reported that it cannot decode it */
    WEIR_JPEG_PSNR_REFUSED,   /* the GPU's pixels of this kind differed from the CPU's (psnr_check.h) */
    WEIR_JPEG_REFUSALS
};

/* "progressive", "cmyk", "truncated", ...: for reports. */
const char *weir_jpeg_refusal_name(enum weir_jpeg_refusal refusal);

/* Reads up to the first scan. Returns WEIR_JPEG_TAKEN, or WEIR_JPEG_BAD_HEADER when it is not a JPEG, is truncated, or
 * has segments shorter than they claim; the header is zero then. A readable header may still be of an unsupported kind.
 */
enum weir_jpeg_refusal weir_jpeg_header_read(struct weir_jpeg_header *header, const uint8_t *bytes, size_t length);

/* Walks the coded data from header->scan_offset to the end-of-image marker. Returns WEIR_JPEG_TAKEN with *frame_bytes,
 * the length of the image including that marker (later bytes do not belong to it), or the kind of damage, or missing
 * tables, as a decoder might use those of an earlier image. Finds the traces of interrupted copies, lost sectors and
 * misplaced markers; single flipped bits show only in the pixels. At least 6 GB/s. */
enum weir_jpeg_refusal weir_jpeg_check_scan(const struct weir_jpeg_header *header, const uint8_t *bytes, size_t length,
                                            size_t *frame_bytes);

#endif
