#include "decoders/frame_end.h"
#include "decoders/decoder_ops.h"

size_t weir_frame_end(const uint8_t *bytes, size_t length)
{
    const struct weir_decoder_ops *ops;
    for (int row = 0; (ops = weir_decoder_ops_at(row)); row++)
        if (ops->end && ops->begins(bytes, length))
            return ops->end(bytes, length);
    return 0;
}
