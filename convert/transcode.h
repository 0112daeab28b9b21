/* transcode.h: per-thread state for turning a frame of the source into a frame of the copy. */
#ifndef WEIR_CONVERT_TRANSCODE_H
#define WEIR_CONVERT_TRANSCODE_H

#include "convert/plan.h"
#include "datasets/synth/image_write.h"
#include "pipeline/samples/fetch.h"
#include "weir/decoder.h"

struct weir_transcoder {
    const struct weir_convert_plan *plan; /* borrowed */
    struct weir_fetcher fetcher;
    struct weir_decoder *decoder;
    uint8_t *pixels; /* of the last decoded frame; grows */
    size_t pixels_bytes;
    struct weir_bytes encoded;
    const char *reason; /* of the last failure */
};

/* One thread opens all transcoders of a set of files, before using any of them. */
int weir_transcoder_open(struct weir_transcoder *t, const struct weir_convert_plan *plan, struct weir_file_set *files,
                         struct weir_err *err);
void weir_transcoder_close(struct weir_transcoder *t);

/* episode: number in the source; bytes: as stored there. *made is valid until the next call, or as long as bytes. 0, or
 * negative with t->reason: -EBADMSG for an unusable frame. */
int weir_transcode(struct weir_transcoder *t, int episode, int camera, const uint8_t *bytes, size_t length,
                   const uint8_t **made, size_t *made_length);

/* Reads frame `at`, then does the same. */
int weir_transcode_frame(struct weir_transcoder *t, int episode, int camera, int at, const uint8_t **made,
                         size_t *made_length);

/* Returns the bytes of a decoded frame of the copy's camera. */
size_t weir_transcode_pixels(const struct weir_convert_plan *plan, int camera);

#endif
