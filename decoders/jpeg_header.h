/* jpeg_header.h: reads the header of a JPEG, and checks the structure of its scan, without a codec (ITU-T T.81, annex
 * B). A GPU's decoders need both: they decode damaged scans to grey, noise or nothing, and report success.
 *
 * Bytes are hostile: nothing outside bytes[0 .. length - 1] is read. No allocation, any thread. */
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

/* As libjpeg takes it to be: by the JFIF and Adobe markers, else by the components' numbers. */
enum weir_jpeg_color { WEIR_JPEG_Y, WEIR_JPEG_YCC, WEIR_JPEG_RGB, WEIR_JPEG_CMYK, WEIR_JPEG_YCCK, WEIR_JPEG_OTHER };

struct weir_jpeg_header {
    int width, height; /* 1..65535 */
    int components;    /* 1..4 */
    int bit_depth;     /* of a sample */
    enum weir_jpeg_sampling sampling;
    enum weir_jpeg_process process;
    enum weir_jpeg_color color;
    int restart_interval; /* MCUs between restart markers; 0 = none */
    uint32_t mcus;        /* of a scan of all components */
    bool one_scan;        /* the first scan holds everything */
    bool tables;          /* those of the first scan, and of all quantisation, have come, are whole, and of 8 bits */
    bool zeros_are_flat;  /* zero bits in the scan mean a flat area: codes of an encoder that counted */
    size_t scan_offset;   /* of the first scan's coded data */
    uint64_t kind;        /* of all that pixels are made by: frame, quantisation, colour, restarts */
};

/* Why a JPEG is not decoded on a GPU. */
enum weir_jpeg_refusal {
    WEIR_JPEG_TAKEN,
    /* what is wrong with it */
    WEIR_JPEG_BAD_HEADER,
    WEIR_JPEG_TRUNCATED, /* no end-of-image marker, or no scan of a component */
    WEIR_JPEG_BAD_MARKER,
    WEIR_JPEG_BAD_RESTART, /* restart markers missing, too many or out of order */
    WEIR_JPEG_ZEROS,       /* a stretch of zero bytes where no encoder writes one */
    /* what it is */
    WEIR_JPEG_IS_PROGRESSIVE,
    WEIR_JPEG_IS_EXTENDED,
    WEIR_JPEG_IS_ARITHMETIC,
    WEIR_JPEG_IS_LOSSLESS, /* or hierarchical */
    WEIR_JPEG_IS_DEEP,     /* not of 8 bits */
    WEIR_JPEG_IS_CMYK,     /* or YCCK */
    WEIR_JPEG_IS_RGB,      /* or of two components, which have no meaning */
    WEIR_JPEG_IS_SAMPLED,  /* 4:1:1 and the like */
    WEIR_JPEG_HAS_SCANS,   /* not progressive, and yet in several scans */
    WEIR_JPEG_NO_TABLES,   /* a scan lacks some, as MJPEG cameras leave them out; or of 16 bits, or after a scan */
    WEIR_JPEG_TOO_LARGE,
    /* what became of it */
    WEIR_JPEG_ENGINE_REFUSED, /* the engine reported that it does not decode it */
    WEIR_JPEG_PSNR_REFUSED,   /* the GPU's pixels of its kind were not the CPU's (psnr_check.h) */
    WEIR_JPEG_REFUSALS
};

/* "progressive", "cmyk", "truncated", ...: for reports. */
const char *weir_jpeg_refusal_name(enum weir_jpeg_refusal refusal);

/* Reads from the start to the first scan. WEIR_JPEG_TAKEN, or WEIR_JPEG_BAD_HEADER: no JPEG, cut, or segments that are
 * shorter than they claim; the header is zero then. A header that can be read may still be of a kind that nobody
 * decodes. */
enum weir_jpeg_refusal weir_jpeg_header_read(struct weir_jpeg_header *header, const uint8_t *bytes, size_t length);

/* Walks the coded data from header->scan_offset to the end-of-image marker: WEIR_JPEG_TAKEN with *frame_bytes, the
 * length from the start of the image to behind that marker (what follows it is not the image's), or what is damaged, or
 * lacks tables: a decoder that keeps those of earlier images would use them.
 * Finds what a copy that broke off, lost sectors or misplaced markers leave behind; single flipped bits show
 * only in the pixels. 6 GB/s and more. */
enum weir_jpeg_refusal weir_jpeg_check_scan(const struct weir_jpeg_header *header, const uint8_t *bytes, size_t length,
                                            size_t *frame_bytes);

#endif
