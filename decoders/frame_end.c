#include "decoders/frame_end.h"
#include "decoders/decoder_ops.h"

size_t weir_frame_end(const uint8_t *bytes, size_t length)
{
    enum weir_frame_kind kind = weir_frame_kind_of(bytes, length);
    const struct weir_decoder_ops *ops;
    for (int row = 0; (ops = weir_decoder_ops_at(row)); row++)
        if (ops->end && ops->kinds & WEIR_KIND(kind))
            return ops->end(bytes, length);
    return 0;
}
