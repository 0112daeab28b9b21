/* fake_nvcuvid.h: a stand-in for the functions of libcuda and libnvcuvid that decoders/video/h26x_nvdec.c calls, in the
 * test program itself (whose dlopen returns the program). Like the real one, its parser calls back for a picture once
 * it has seen the next packet or the end, and reuses surfaces. Pixels are made from the last byte of a packet. */
#ifndef WEIR_TESTS_FAKES_FAKE_NVCUVID_H
#define WEIR_TESTS_FAKES_FAKE_NVCUVID_H

#include <stdbool.h>

struct fake_nvcuvid {
    int width, height, surfaces; /* of each stream */
    bool interlaced;
    int damaged_at;                  /* number of the picture, from 0, whose status is an error; -1: none */
    int lost_at;                     /* number of the picture that the parser drops; -1: none */
    int decoded, maps;               /* pictures decoded, and pictures mapped at present */
    int decoders, parsers, contexts; /* open ones */
};
extern struct fake_nvcuvid fake_nvcuvid;

/* Values of a picture whose packet ends with this byte. */
static inline unsigned char fake_luma(unsigned char last, int x, int y)
{
    return (unsigned char)(last + 3 * x + 5 * y);
}

static inline unsigned char fake_chroma(unsigned char last, int plane, int x, int y)
{
    return (unsigned char)(last + 40 + 60 * plane + 7 * x + y);
}

#endif
