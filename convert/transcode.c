#include "convert/units.h"
#include "datasets/synth/image_write.h"
#include "decoders/frame_kind.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

static int widest(const struct weir_convert_plan *plan)
{
    int width = 1;
    for (int c = 0; c < plan->copy.n_cameras; c++)
        width = plan->probes[c].width > width ? plan->probes[c].width : width;
    return width;
}

static void set_rules(struct weir_transcoder *t, const struct weir_convert_plan *plan)
{
    struct weir_frame_rules rules = {.swapped = plan->swaps, .turns = weir_dataset_frame_rules(plan->dataset).turns};
    weir_decoder_set_rules(t->decoder, &rules);
    weir_decoder_set_on_warning(t->decoder, plan->config->on_warning);
}

int weir_transcoder_open(struct weir_transcoder *t, const struct weir_convert_plan *plan, struct weir_file_set *files,
                         struct weir_err *err)
{
    struct weir_pixel_format format = {.color = plan->swaps ? WEIR_COLOR_BGR : WEIR_COLOR_RGB};
    *t = (struct weir_transcoder){.plan = plan, .reason = ""};
    int rc = weir_fetcher_open(&t->fetcher, plan->dataset, files, weir_file_set_engine(files), err);
    if (rc == 0)
        rc = weir_decoder_open(&t->decoder, weir_decoder_at(WEIR_DECODE_ON_CPU), &format, widest(plan), err);
    if (rc == 0)
        set_rules(t, plan);
    else
        weir_transcoder_close(t);
    return rc;
}

void weir_transcoder_close(struct weir_transcoder *t)
{
    weir_decoder_close(&t->decoder);
    weir_fetcher_close(&t->fetcher);
    free(t->pixels);
    free(t->encoded.data);
    t->pixels = NULL;
    t->encoded = (struct weir_bytes){0};
}

size_t weir_transcode_pixels(const struct weir_convert_plan *plan, int camera)
{
    const struct weir_copy_camera *to = &plan->copy.cameras[camera];
    return (size_t)to->width * (size_t)to->height * (plan->is_depth[camera] ? 2 : 3);
}

static int fail(struct weir_transcoder *t, int code, const char *reason)
{
    t->reason = reason;
    return code;
}

/* Decodes a frame. Frames that are copied are also decoded, so that damaged frames are found now and not during
 * training; their pixels have the source's size. */
static int decode(struct weir_transcoder *t, enum weir_frame_kind kind, int camera, const uint8_t *bytes, size_t length)
{
    const struct weir_convert_plan *plan = t->plan;
    const struct weir_camera_probe *probe = &plan->probes[camera];
    const struct weir_copy_camera *to = &plan->copy.cameras[camera];
    const struct weir_view view = {0, 0, probe->width, probe->height, to->width, to->height};
    size_t whole = (size_t)probe->width * (size_t)probe->height * 3, wanted = weir_transcode_pixels(plan, camera);
    size_t needed = whole > wanted ? whole : wanted;
    if (needed > t->pixels_bytes) {
        free(t->pixels);
        t->pixels = malloc(needed);
        t->pixels_bytes = t->pixels ? needed : 0;
    }
    if (!t->pixels)
        return fail(t, -ENOMEM, "out of memory for its pixels");
    struct weir_frame frame = {kind,         bytes,         length,
                               probe->width, probe->height, plan->is_resized[camera] ? &view : NULL};
    int rc = weir_decode(t->decoder, &frame, t->pixels);
    return rc < 0 ? fail(t, rc, weir_decoder_reason(t->decoder)) : 0;
}

static int encode(struct weir_transcoder *t, int camera, const uint8_t **made, size_t *made_length)
{
    const struct weir_convert_plan *plan = t->plan;
    const struct weir_copy_camera *to = &plan->copy.cameras[camera];
    int rc;
    if (plan->makes[camera] == WEIR_MAKE_JPEG)
        rc = weir_jpeg_write(t->pixels, to->width, to->height, plan->config->quality, NULL, &t->encoded);
    else if (plan->is_depth[camera])
        rc = weir_png_write_grey16((const uint16_t *)t->pixels, to->width, to->height, &t->encoded);
    else
        rc = weir_png_write_rgb8(t->pixels, to->width, to->height, &t->encoded);
    if (rc < 0)
        return fail(t, rc, rc == -ENOMEM ? "out of memory for its encoded image" : "its pixels cannot be encoded");
    *made = t->encoded.data;
    *made_length = t->encoded.size;
    return 0;
}

/* Whether a copied frame has an orientation that readers of the source obey and readers of the copy do not, or vice
 * versa. */
static bool reads_differ(const struct weir_convert_plan *plan, const uint8_t *bytes, size_t length)
{
    struct weir_frame_marks marks;
    if (weir_dataset_frame_rules(plan->dataset).turns != plan->ops->ignores_exif)
        return false;
    weir_frame_marks(&marks, bytes, length);
    return marks.turn > 1;
}

int weir_transcode(struct weir_transcoder *t, int episode, int camera, const uint8_t *bytes, size_t length,
                   const uint8_t **made, size_t *made_length)
{
    const struct weir_convert_plan *plan = t->plan;
    enum weir_frame_kind kind = weir_dataset_kind(plan->dataset, episode, camera);
    bool encoded = weir_frame_is_encoded(kind), copies = plan->makes[camera] == WEIR_MAKE_COPY;
    *made = bytes;
    *made_length = length;
    if (!encoded && copies)
        return length == weir_transcode_pixels(plan, camera) ? 0
                                                             : fail(t, -EBADMSG, "it does not have its camera's size");
    int rc = decode(t, kind, camera, bytes, length);
    if (rc < 0)
        return rc;
    if (copies && reads_differ(plan, bytes, length))
        return fail(t, -EBADMSG,
                    plan->ops->ignores_exif
                        ? "its EXIF orientation would be ignored in the copy; use --codec jpeg, png or raw"
                        : "its EXIF orientation would turn it in the copy; use --codec jpeg, png or raw");
    if (copies) {
        size_t end = weir_frame_end(bytes, length);
        *made_length = end ? end : length;
        return 0;
    }
    if (plan->makes[camera] != WEIR_MAKE_PIXELS)
        return encode(t, camera, made, made_length);
    *made = t->pixels;
    *made_length = weir_transcode_pixels(plan, camera);
    return 0;
}

int weir_transcode_frame(struct weir_transcoder *t, int episode, int camera, int at, const uint8_t **made,
                         size_t *made_length)
{
    const uint8_t *bytes;
    size_t length;
    int rc = weir_fetch_frame(&t->fetcher, episode, camera, at, NULL, 0, &bytes, &length);
    return rc < 0 ? fail(t, rc, t->fetcher.reason)
                  : weir_transcode(t, episode, camera, bytes, length, made, made_length);
}
