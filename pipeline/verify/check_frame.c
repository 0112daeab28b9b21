#include "base/hash.h"
#include "base/shortage.h"
#include "decoders/frame_kind.h"
#include "pipeline/verify/findings.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

/* PREFIX: number of bytes of a frame that --fast reads first; enough for the header of nearly every image. */
enum { PREFIX = 16384, SIDE_MAX = 65535 };

static int widest(const struct weir_dataset *dataset, const struct weir_camera_probe *probes)
{
    int width = 1;
    for (int c = 0; c < weir_dataset_cameras(dataset); c++) {
        int camera = probes[c].width > 0 ? probes[c].width : SIDE_MAX;
        width = camera > width ? camera : width;
    }
    return width;
}

int weir_frame_checker_open(struct weir_frame_checker *checker, struct weir_dataset *dataset,
                            struct weir_file_set *files, const struct weir_camera_probe *probes,
                            const struct weir_verify_config *config, struct weir_err *err)
{
    struct weir_pixel_format format = {0};
    *checker = (struct weir_frame_checker){.dataset = dataset, .probes = probes, .fast = config->fast};
    int rc = weir_fetcher_open(&checker->fetcher, dataset, files, config->io ? config->io : weir_file_set_engine(files),
                               err);
    if (rc == 0)
        rc = weir_decoder_open(&checker->decoder, weir_decoder_at(WEIR_DECODE_ON_CPU), &format, widest(dataset, probes),
                               err);
    if (rc < 0) {
        weir_frame_checker_close(checker);
        return rc;
    }
    const struct weir_frame_rules rules = weir_dataset_frame_rules(dataset);
    weir_decoder_set_rules(checker->decoder, &rules);
    weir_decoder_set_on_warning(checker->decoder, config->on_warning);
    return 0;
}

void weir_frame_checker_close(struct weir_frame_checker *checker)
{
    weir_decoder_close(&checker->decoder);
    weir_fetcher_close(&checker->fetcher);
    free(checker->image);
    checker->image = NULL;
}

static int grow(uint8_t **buffer, size_t *capacity, size_t bytes)
{
    if (bytes <= *capacity)
        return 0;
    free(*buffer);
    *buffer = malloc(bytes);
    *capacity = *buffer ? bytes : 0;
    return *buffer ? 0 : -ENOMEM;
}

/* The result for one frame. */
struct verdict {
    int code;
    uint64_t hash;
    enum weir_finding_kind kind;
    const char *reason;
};

static struct verdict bad(int code, enum weir_finding_kind kind, const char *reason)
{
    return (struct verdict){code, 0, kind, reason};
}

static enum weir_frame_kind kind_of(const struct weir_frame_checker *checker, int episode, int camera)
{
    return weir_dataset_kind(checker->dataset, episode, camera);
}

/* Checks the header. If *width and *height are 0 (unknown), they receive the image's size. */
static struct verdict look_at_header(struct weir_frame_checker *checker, enum weir_frame_kind kind,
                                     const uint8_t *bytes, size_t length, int *width, int *height)
{
    struct weir_image_info info;
    int rc = weir_probe_image(checker->decoder, kind, bytes, length, &info);
    if (rc < 0)
        return bad(rc, WEIR_FOUND_FRAME, weir_decoder_reason(checker->decoder));
    *width = *width ? *width : info.width;
    *height = *height ? *height : info.height;
    rc = weir_probe_fits(checker->decoder, &info, *width, *height);
    return rc < 0 ? bad(rc, WEIR_FOUND_SIZE, weir_decoder_reason(checker->decoder)) : (struct verdict){0};
}

static struct verdict decode(struct weir_frame_checker *checker, enum weir_frame_kind kind, const uint8_t *bytes,
                             size_t length, int width, int height)
{
    struct weir_pixel_format format = {0};
    struct weir_frame frame = {kind, bytes, length, width, height, NULL};
    if (grow(&checker->image, &checker->image_bytes, weir_frame_bytes(&format, kind, width, height)) < 0)
        return bad(-ENOMEM, WEIR_FOUND_FRAME, "out of memory for the frame's pixels");
    int rc = weir_decode(checker->decoder, &frame, checker->image);
    return rc < 0 ? bad(rc, WEIR_FOUND_FRAME, weir_decoder_reason(checker->decoder)) : (struct verdict){0};
}

/* Checks a picture of a video. Equal pictures can have different samples, so the pixels are hashed. */
static struct verdict look_at_picture(struct weir_frame_checker *checker, int episode, int camera, int t,
                                      const uint8_t *picture, size_t length)
{
    enum weir_frame_kind kind = kind_of(checker, episode, camera);
    int width = checker->probes[camera].width, height = checker->probes[camera].height;
    struct weir_pixel_format format = {0};
    checker->bytes += weir_frame_stored_bytes(checker->dataset, episode, camera, t);
    struct verdict verdict = look_at_header(checker, kind, picture, length, &width, &height);
    if (verdict.code == 0)
        verdict = decode(checker, kind, picture, length, width, height);
    if (verdict.code == 0)
        verdict.hash = weir_hash64(checker->image, weir_frame_bytes(&format, kind, width, height));
    return verdict;
}

/* Checks a frame in memory. Bytes after the end of an image are not part of the frame. */
static struct verdict look_at_bytes(struct weir_frame_checker *checker, int episode, int camera, int t,
                                    const uint8_t *bytes, size_t length)
{
    enum weir_frame_kind kind = kind_of(checker, episode, camera);
    if (weir_frame_is_video(kind))
        return look_at_picture(checker, episode, camera, t, bytes, length);
    int width = checker->probes[camera].width, height = checker->probes[camera].height;
    struct verdict verdict = {0};
    size_t end = length;
    if (weir_frame_is_encoded(kind)) {
        size_t found = weir_frame_end(bytes, length);
        end = found ? found : length;
        verdict = look_at_header(checker, kind, bytes, length, &width, &height);
    }
    checker->bytes += end;
    if (verdict.code == 0 && !checker->fast && width > 0)
        verdict = decode(checker, kind, bytes, length, width, height);
    if (verdict.code == 0 && !checker->fast)
        verdict.hash = weir_hash64(bytes, end);
    return verdict;
}

static struct verdict look_at_frame(struct weir_frame_checker *checker, int episode, int camera, int t)
{
    const uint8_t *bytes;
    size_t length;
    int rc = weir_fetch_frame(&checker->fetcher, episode, camera, t, NULL, 0, &bytes, &length);
    return rc < 0 ? bad(rc, WEIR_FOUND_FRAME, checker->fetcher.reason)
                  : look_at_bytes(checker, episode, camera, t, bytes, length);
}

/* ---- headers only ---- */

static bool is_inside(const struct weir_frame_checker *checker, int file, uint64_t offset, uint64_t length)
{
    struct weir_dataset_file of;
    char path[WEIR_READ_PATH_MAX];
    weir_dataset_read_file(checker->dataset, file, &of, path);
    return offset <= of.size_bytes && length <= of.size_bytes - offset;
}

static struct verdict outside(void)
{
    return bad(-ENODATA, WEIR_FOUND_FRAME, weir_read_reason(-ENODATA));
}

/* Checks that the files contain the block's chunks, without reading them. */
static struct verdict glance_at_block(struct weir_frame_checker *checker, int episode, int camera, int t)
{
    struct weir_block block;
    weir_block_of(checker->dataset, episode, camera, t, &block);
    for (uint32_t piece = 0; piece < block.pieces; piece++) {
        int file;
        uint64_t offset;
        size_t length;
        weir_block_piece(&block, piece, &file, &offset, &length);
        if (length > 0 && !is_inside(checker, file, offset, length))
            return outside();
    }
    return (struct verdict){0};
}

/* Checks the header in the frame's first bytes. If they do not contain all of it, checks the whole frame. */
static struct verdict glance_at_extent(struct weir_frame_checker *checker, const struct weir_location *location,
                                       int episode, int camera, int t)
{
    const struct weir_camera_probe *probe = &checker->probes[camera];
    enum weir_frame_kind kind = kind_of(checker, episode, camera);
    uint8_t prefix[PREFIX];
    const uint8_t *bytes;
    if (!is_inside(checker, location->file, location->offset, location->length))
        return outside();
    if (!weir_frame_is_encoded(kind))
        return (struct verdict){0};
    if (location->heap_slot || location->unpacked_bytes || location->length <= PREFIX)
        return look_at_frame(checker, episode, camera, t);
    int width = probe->width, height = probe->height;
    int rc = weir_read(checker->fetcher.reader, location->file, location->offset, PREFIX, prefix, &bytes);
    if (rc < 0)
        return bad(rc, WEIR_FOUND_FRAME, weir_reader_reason(checker->fetcher.reader, rc));
    struct verdict verdict = look_at_header(checker, kind, bytes, PREFIX, &width, &height);
    if (verdict.code < 0)
        return look_at_frame(checker, episode, camera, t);
    checker->bytes += PREFIX;
    return verdict;
}

static struct verdict glance(struct weir_frame_checker *checker, int episode, int camera, int t)
{
    struct weir_location location;
    int how = weir_locate(checker->dataset, episode, camera, t, &location);
    if (how == WEIR_HOW_EXTENT)
        return glance_at_extent(checker, &location, episode, camera, t);
    if (how == WEIR_HOW_VIDEO && t > 0) /* the first picture shows the codec and the size, the track all locations */
        return (struct verdict){0};
    if (how == WEIR_HOW_BLOCK && !weir_frame_is_encoded(kind_of(checker, episode, camera)))
        return glance_at_block(checker, episode, camera, t);
    return look_at_frame(checker, episode, camera, t);
}

/* ---- several frames ---- */

struct check {
    struct weir_frame_checker *checker;
    int episode, camera;
    weir_frame_checked_fn *checked;
    void *user;
};

static int report(const struct check *check, int t, struct verdict verdict)
{
    return check->checked(check->user, t, verdict.code, verdict.hash, verdict.kind, verdict.reason);
}

static int fetched(void *user, int t, int code, const char *reason, const uint8_t *bytes, size_t length)
{
    const struct check *check = user;
    return report(check, t,
                  code < 0 ? bad(code, WEIR_FOUND_FRAME, reason)
                           : look_at_bytes(check->checker, check->episode, check->camera, t, bytes, length));
}

int weir_check_frames(struct weir_frame_checker *checker, int episode, int camera, int first, int n,
                      weir_frame_checked_fn *checked, void *user)
{
    struct check check = {checker, episode, camera, checked, user};
    int rc = 0;
    if (!checker->fast)
        return weir_fetch_frames(&checker->fetcher, episode, camera, first, n, fetched, &check);
    for (int t = first; t < first + n && rc == 0; t++)
        rc = report(&check, t, glance(checker, episode, camera, t));
    return rc;
}
