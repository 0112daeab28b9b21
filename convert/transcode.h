/* transcode.h: one thread's tools for making a frame of the copy of one of the source. */
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
    uint8_t *pixels; /* of the last frame that was decoded; grown */
    size_t pixels_bytes;
    struct weir_bytes encoded;
    const char *reason; /* of the last failure */
};

/* Transcoders of one set of files are opened by one thread, before any of them is used. */
int weir_transcoder_open(struct weir_transcoder *t, const struct weir_convert_plan *plan, struct weir_file_set *files,
                         struct weir_err *err);
void weir_transcoder_close(struct weir_transcoder *t);

/* episode: of the source; bytes: as they are there. *made lasts until the next call, or as long as bytes. 0, or
 * negative with t->reason: -EBADMSG when the frame cannot be used. */
int weir_transcode(struct weir_transcoder *t, int episode, int camera, const uint8_t *bytes, size_t length,
                   const uint8_t **made, size_t *made_length);

/* Reads frame `at` and does the same. */
int weir_transcode_frame(struct weir_transcoder *t, int episode, int camera, int at, const uint8_t **made,
                         size_t *made_length);

/* Pixels that a frame of the copy's camera takes. */
size_t weir_transcode_pixels(const struct weir_convert_plan *plan, int camera);

#endif
