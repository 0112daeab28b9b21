/* weir_jpeg_color_row with AVX-512, 64 pixels at a time: decoding a 4:2:0 frame of 640x480 takes 12 % less time than
 * with AVX2 on a Xeon of 2023, and 3 % less on an EPYC with Zen 4. */
#if defined(__x86_64__)

#define WEIR_PIXELS_AVX512
#include "decoders/jpeg_color_rows.h"

TARGET void weir_jpeg_color_row_avx512(const struct weir_jpeg_row *row)
{
    color_row(row);
}

bool weir_jpeg_color_has_avx512(void)
{
    return __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
           __builtin_cpu_supports("avx512vl") && __builtin_cpu_supports("avx512vbmi");
}

#endif
