#include "datasets/chunks/filters.h"

#include <errno.h>
#include <zstd.h>
#include <zstd_errors.h>

/* Casts to the library's type. */
static ZSTD_DCtx *library_type(struct weir_zstd *zstd)
{
    return (ZSTD_DCtx *)zstd;
}

struct weir_zstd *weir_zstd_open(void)
{
    return (struct weir_zstd *)ZSTD_createDCtx();
}

void weir_zstd_close(struct weir_zstd **zstd)
{
    ZSTD_freeDCtx(library_type(*zstd));
    *zstd = NULL;
}

int weir_zstd_bytes(const uint8_t *in, size_t n, size_t *bytes)
{
    unsigned long long size = ZSTD_getFrameContentSize(in, n);
    *bytes = size >= SIZE_MAX ? SIZE_MAX : (size_t)size;
    return size == ZSTD_CONTENTSIZE_ERROR ? -EBADMSG : 0;
}

int weir_zstd_unpack(struct weir_zstd *zstd, const uint8_t *in, size_t n, uint8_t *out, size_t capacity, size_t *made)
{
    *made = ZSTD_decompressDCtx(library_type(zstd), out, capacity, in, n);
    if (!ZSTD_isError(*made))
        return 0;
    return ZSTD_getErrorCode(*made) == ZSTD_error_dstSize_tooSmall ? -ENOSPC : -EBADMSG;
}
