/* weir_jpeg_color_row: with AVX2, 32 pixels at a time, or with AVX-512 (jpeg_color_avx512.c). */
#if defined(__x86_64__)

#include "decoders/jpeg_color_rows.h"

TARGET void weir_jpeg_color_row_avx2(const struct weir_jpeg_row *row)
{
    color_row(row);
}

void weir_jpeg_color_row(const struct weir_jpeg_row *row)
{
    if (weir_jpeg_color_has_avx512())
        weir_jpeg_color_row_avx512(row);
    else
        weir_jpeg_color_row_avx2(row);
}

#endif
