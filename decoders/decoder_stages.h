/* decoder_stages.h: what the profiler times of decoding. The numbers are the loader's table's,
 * pipeline/loader_stages.h. */
#ifndef WEIR_DECODERS_DECODER_STAGES_H
#define WEIR_DECODERS_DECODER_STAGES_H

enum weir_decoder_stage {
    WEIR_STAGE_IMAGE_DECODE = 5, /* 03b_image_decode */
    WEIR_STAGE_TO_TENSOR = 14,   /* 05_to_tensor_normalize */
};

#endif
