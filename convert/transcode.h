/* transcode.h: converts a frame of the source to a frame of the copy. A transcoder is used by one thread. */
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
    uint8_t *pixels; /* last decoded frame; the buffer grows on demand */
    size_t pixels_bytes;
    struct weir_bytes encoded;
    const char *reason; /* reason of the last failure */
};

/* All transcoders that share files must be opened by one thread, before any of them is used. */
int weir_transcoder_open(struct weir_transcoder *t, const struct weir_convert_plan *plan, struct weir_file_set *files,
                         struct weir_err *err);
void weir_transcoder_close(struct weir_transcoder *t);

/* Converts a frame of an episode, which is numbered as in the source. bytes: the stored frame. *made is valid until the
 * next call, and only as long as bytes is valid. Returns 0, or a negative code with t->reason: -EBADMSG if the frame is
 * unusable. */
int weir_transcode(struct weir_transcoder *t, int episode, int camera, const uint8_t *bytes, size_t length,
                   const uint8_t **made, size_t *made_length);

/* Reads the frame at step `at` and converts it like weir_transcode. */
int weir_transcode_frame(struct weir_transcoder *t, int episode, int camera, int at, const uint8_t **made,
                         size_t *made_length);

/* Returns the size in bytes of a decoded frame of this camera in the copy. */
size_t weir_transcode_pixels(const struct weir_convert_plan *plan, int camera);

#endif
