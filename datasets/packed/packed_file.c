/* Serialises and parses the header, index and records of packed files (docs/internals/packed.md). */
#include "datasets/packed/packed_file.h"
#include "base/files.h"
#include "base/hash.h"
#include "decoders/frame_kind.h"

#include <endian.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>

static const uint8_t file_magic[8] = {0x89, 'W', 'E', 'I', 'R', '\r', '\n', 0x1A};
static const uint8_t record_magic[8] = {'W', 'E', 'I', 'R', 'e', 'p', 'i', 's'};

enum { FLAG_BGR = 1 };
/* offsets and sizes in the header */
enum {
    AT_VERSION = 8,
    AT_CRC = 12,
    AT_FLAGS = 16,
    AT_EPISODES = 20,
    AT_INDEX = 24,
    AT_FILE_BYTES = 32,
    AT_LAST_RECORD = 40,
    AT_INDEX_CRC = 48,
    AT_CAMERAS = 52,
    AT_QPOS_TYPE = 56,
    AT_ACTION_TYPE = 60,
    AT_QPOS_DIM = 64,
    AT_ACTION_DIM = 68,
    AT_CAMERA = 128,
};
/* offsets and sizes in a camera's entry of the header */
enum { CAMERA = 96, AT_CODEC = 64, CODEC = 16, AT_WIDTH = 80, AT_HEIGHT = 84 };
/* offsets and sizes in a record */
enum {
    AT_RECORD_CRC = 8,
    AT_NUMBER = 12,
    AT_RECORD_BYTES = 16,
    AT_PREVIOUS = 24,
    AT_STEPS = 32,
    AT_TEXTS = 36,
    AT_TEXTS_BEGIN = 40
};
enum { DIM_MAX = 65536, SIDE_MAX = 65500, STEPS_MAX = 100 * 1000 * 1000, TEXTS_MAX = 1000 };
/* Size limit for each part of a record (state, actions, frames, texts), because parts are read before their checksum
 * can be verified. */
enum { ARRAY_BYTES_MAX = 1 << 30 };

/* Computes the checksum of n bytes, with the four bytes at offset `at` counted as zeros. */
static uint32_t crc_without(const uint8_t *bytes, size_t n, size_t at)
{
    static const uint8_t zeros[4];
    uint32_t crc = weir_crc32c(0, bytes, at);
    crc = weir_crc32c(crc, zeros, sizeof zeros);
    return weir_crc32c(crc, bytes + at + 4, n - at - 4);
}

/* Frames of unknown codecs, which a newer Weir may write, are recognised by their first bytes, or as depth by the
 * codec's name. */
static enum weir_frame_kind kind_of(const char *codec)
{
    size_t n = strlen(codec);
    int kind = weir_frame_kind_from_name(codec);
    if (kind >= 0)
        return (enum weir_frame_kind)kind;
    return n > 2 && strcmp(codec + n - 2, "16") == 0 ? WEIR_FRAME_PNG16 : WEIR_FRAME_IMAGE;
}

/* ---- the header ---- */

void weir_packed_put_header(const struct weir_packed_header *header, uint8_t bytes[WEIR_PACKED_HEADER])
{
    memset(bytes, 0, WEIR_PACKED_HEADER);
    memcpy(bytes, file_magic, sizeof file_magic);
    weir_put_le(bytes + AT_VERSION, WEIR_PACKED_VERSION, 4);
    weir_put_le(bytes + AT_FLAGS, header->copy.is_bgr ? FLAG_BGR : 0, 4);
    weir_put_le(bytes + AT_EPISODES, header->n_episodes, 4);
    weir_put_le(bytes + AT_INDEX, header->index_offset, 8);
    weir_put_le(bytes + AT_FILE_BYTES, header->file_bytes, 8);
    weir_put_le(bytes + AT_LAST_RECORD, header->last_record, 8);
    weir_put_le(bytes + AT_INDEX_CRC, header->index_crc, 4);
    weir_put_le(bytes + AT_CAMERAS, (uint32_t)header->copy.n_cameras, 4);
    memcpy(bytes + AT_QPOS_TYPE, weir_number_code(header->copy.qpos_type), 4);
    memcpy(bytes + AT_ACTION_TYPE, weir_number_code(header->copy.action_type), 4);
    weir_put_le(bytes + AT_QPOS_DIM, (uint32_t)header->copy.qpos_dim, 4);
    weir_put_le(bytes + AT_ACTION_DIM, (uint32_t)header->copy.action_dim, 4);
    for (int i = 0; i < header->copy.n_cameras; i++) {
        const struct weir_copy_camera *camera = &header->copy.cameras[i];
        uint8_t *at = bytes + AT_CAMERA + i * CAMERA;
        memcpy(at, camera->name, strnlen(camera->name, WEIR_NAME_MAX - 1));
        const char *codec = weir_frame_kind_name(camera->kind);
        memcpy(at + AT_CODEC, codec, strnlen(codec, CODEC - 1));
        weir_put_le(at + AT_WIDTH, (uint32_t)camera->width, 4);
        weir_put_le(at + AT_HEIGHT, (uint32_t)camera->height, 4);
    }
    weir_put_le(bytes + AT_CRC, crc_without(bytes, WEIR_PACKED_HEADER, AT_CRC), 4);
}

static int type_of(const uint8_t *bytes)
{
    for (int i = 0; i < WEIR_NUMBER_TYPES; i++)
        if (memcmp(weir_number_code((enum weir_number_type)i), bytes, 4) == 0)
            return i;
    return -1;
}

static bool get_camera(struct weir_copy_camera *camera, const uint8_t *at)
{
    uint32_t width = weir_le(at + AT_WIDTH, 4), height = weir_le(at + AT_HEIGHT, 4);
    *camera = (struct weir_copy_camera){.width = (int)width, .height = (int)height};
    if (at[0] == 0 || at[WEIR_NAME_MAX - 1] != 0 || at[AT_CODEC] == 0 || at[AT_CODEC + CODEC - 1] != 0 ||
        width > SIDE_MAX || height > SIDE_MAX)
        return false;
    memcpy(camera->name, at, WEIR_NAME_MAX);
    camera->kind = kind_of((const char *)at + AT_CODEC);
    bool is_raw = !weir_frame_is_encoded(camera->kind);
    return !strchr(camera->name, '/') && (!is_raw || (width > 0 && height > 0));
}

static int get_fields(struct weir_packed_header *header, const uint8_t *bytes, struct weir_err *err)
{
    int qpos = type_of(bytes + AT_QPOS_TYPE), action = type_of(bytes + AT_ACTION_TYPE);
    uint32_t cameras = weir_le(bytes + AT_CAMERAS, 4), flags = weir_le(bytes + AT_FLAGS, 4);
    uint32_t qpos_dim = weir_le(bytes + AT_QPOS_DIM, 4), action_dim = weir_le(bytes + AT_ACTION_DIM, 4);
    if (qpos < 0 || action < 0 || cameras > WEIR_CAMERAS_MAX || qpos_dim - 1 >= DIM_MAX || action_dim - 1 >= DIM_MAX ||
        flags > FLAG_BGR)
        return weir_err_set(err, -EBADMSG, "its header is invalid; convert the dataset again");
    header->copy.is_bgr = flags & FLAG_BGR;
    header->copy.qpos_type = (enum weir_number_type)qpos;
    header->copy.action_type = (enum weir_number_type)action;
    header->copy.qpos_dim = (int)qpos_dim;
    header->copy.action_dim = (int)action_dim;
    header->copy.n_cameras = (int)cameras;
    header->n_episodes = weir_le(bytes + AT_EPISODES, 4);
    header->index_offset = weir_le(bytes + AT_INDEX, 8);
    header->file_bytes = weir_le(bytes + AT_FILE_BYTES, 8);
    header->last_record = weir_le(bytes + AT_LAST_RECORD, 8);
    header->index_crc = weir_le(bytes + AT_INDEX_CRC, 4);
    for (uint32_t i = 0; i < cameras; i++)
        if (!get_camera(&header->copy.cameras[i], bytes + AT_CAMERA + i * CAMERA))
            return weir_err_set(err, -EBADMSG, "camera %u in its header is invalid; convert the dataset again", i);
    return 0;
}

int weir_packed_get_header(struct weir_packed_header *header, const uint8_t bytes[WEIR_PACKED_HEADER],
                           struct weir_err *err)
{
    *header = (struct weir_packed_header){0};
    uint32_t version = weir_le(bytes + AT_VERSION, 4);
    if (memcmp(bytes, file_magic, sizeof file_magic) != 0)
        return weir_err_set(
            err, -EBADMSG,
            "is not a packed file, according to its first bytes; did weir convert --to packed write it?");
    if (version > WEIR_PACKED_VERSION)
        return weir_err_set(err, -ENOTSUP,
                            "has version %u of the format, but this Weir reads version %d; use a newer Weir, or "
                            "convert the dataset again",
                            version, WEIR_PACKED_VERSION);
    if (version == 0 || weir_le(bytes + AT_CRC, 4) != crc_without(bytes, WEIR_PACKED_HEADER, AT_CRC))
        return weir_err_set(err, -EBADMSG,
                            "the checksum of its header is wrong: the file is damaged; convert the "
                            "dataset again");
    return get_fields(header, bytes, err);
}

/* ---- a record ---- */

/* Advances *at past n elements of `bytes` bytes each, padded to a multiple of 8. Returns false on overflow. */
static bool go_on(uint64_t *at, uint64_t n, uint64_t bytes)
{
    uint64_t all;
    if (__builtin_mul_overflow(n, bytes, &all) || all > ARRAY_BYTES_MAX)
        return false;
    *at = (*at + all + 7) & ~(uint64_t)7;
    return true;
}

bool weir_packed_lay_out(struct weir_packed_record *record, const struct weir_packed_header *header,
                         uint64_t text_bytes)
{
    uint64_t at = WEIR_PACKED_RECORD_MIN, steps = (uint64_t)record->steps;
    record->qpos = at;
    bool fits = go_on(&at, steps * (uint64_t)header->copy.qpos_dim, weir_number_bytes(header->copy.qpos_type));
    record->actions = at;
    fits = fits && go_on(&at, steps * (uint64_t)header->copy.action_dim, weir_number_bytes(header->copy.action_type));
    record->frames = at;
    fits = fits && go_on(&at, steps * (uint64_t)header->copy.n_cameras, WEIR_PACKED_FRAME);
    record->texts = at;
    fits = fits && go_on(&at, text_bytes, 1);
    record->bytes = at;
    return fits;
}

void weir_packed_seal(const struct weir_packed_record *record, uint8_t *bytes)
{
    memcpy(bytes, record_magic, sizeof record_magic);
    weir_put_le(bytes + AT_NUMBER, record->number, 4);
    weir_put_le(bytes + AT_RECORD_BYTES, record->bytes, 8);
    weir_put_le(bytes + AT_PREVIOUS, record->previous, 8);
    weir_put_le(bytes + AT_STEPS, (uint32_t)record->steps, 4);
    weir_put_le(bytes + AT_TEXTS, record->n_texts, 4);
    weir_put_le(bytes + AT_TEXTS_BEGIN, record->texts, 8);
    weir_put_le(bytes + AT_RECORD_CRC, crc_without(bytes, record->bytes, AT_RECORD_CRC), 4);
}

void weir_packed_put_frame(const struct weir_packed_frame *frame, uint8_t bytes[WEIR_PACKED_FRAME])
{
    weir_put_le(bytes, frame->offset, 8);
    weir_put_le(bytes + 8, frame->length, 4);
    weir_put_le(bytes + 12, frame->crc, 4);
}

struct weir_packed_frame weir_packed_frame_at(const struct weir_packed_record *record,
                                              const struct weir_packed_header *header, const uint8_t *bytes, int t,
                                              int camera)
{
    const uint8_t *at =
        bytes + record->frames + ((size_t)t * (size_t)header->copy.n_cameras + (size_t)camera) * WEIR_PACKED_FRAME;
    return (struct weir_packed_frame){weir_le(at, 8), weir_le(at + 8, 4), weir_le(at + 12, 4)};
}

bool weir_packed_text_at(const uint8_t *bytes, uint64_t n, uint64_t *at, struct weir_packed_text *text)
{
    if (n - *at < 8)
        return false;
    text->key_bytes = weir_le(bytes + *at, 4);
    text->value_bytes = weir_le(bytes + *at + 4, 4);
    uint64_t both = (uint64_t)text->key_bytes + text->value_bytes;
    if (both > n - *at - 8)
        return false;
    text->key = bytes + *at + 8;
    text->value = text->key + text->key_bytes;
    *at += 8 + both;
    return true;
}

static int check_frames(const struct weir_packed_record *record, const struct weir_packed_header *header,
                        const uint8_t *bytes, uint64_t end, struct weir_err *err)
{
    for (int c = 0; c < header->copy.n_cameras; c++) {
        uint64_t raw = weir_frame_raw_bytes(header->copy.cameras[c].kind, header->copy.cameras[c].width,
                                            header->copy.cameras[c].height);
        for (int t = 0; t < record->steps; t++) {
            struct weir_packed_frame frame = weir_packed_frame_at(record, header, bytes, t, c);
            bool inside =
                frame.offset >= WEIR_PACKED_HEADER && frame.offset <= end && frame.length <= end - frame.offset;
            if (!inside || frame.length > INT32_MAX || (raw && frame.length && frame.length != raw))
                return weir_err_set(
                    err, -EBADMSG, "episode %u: %s[%d]: %u bytes at byte %llu cannot be a frame of this episode",
                    record->number, header->copy.cameras[c].name, t, frame.length, (unsigned long long)frame.offset);
        }
    }
    return 0;
}

static bool check_texts(const struct weir_packed_record *record, const uint8_t *bytes)
{
    uint64_t at = record->texts;
    struct weir_packed_text text;
    for (uint32_t i = 0; i < record->n_texts; i++)
        if (i == TEXTS_MAX || !weir_packed_text_at(bytes, record->bytes, &at, &text))
            return false;
    return true;
}

uint64_t weir_packed_record_bytes(const uint8_t *bytes)
{
    return weir_le(bytes + AT_RECORD_BYTES, 8);
}

static const char advice[] = "the file is damaged; convert the dataset again";

int weir_packed_get_head(struct weir_packed_record *record, const struct weir_packed_header *header,
                         const uint8_t bytes[WEIR_PACKED_RECORD_MIN], uint64_t n, uint64_t offset, struct weir_err *err)
{
    *record = (struct weir_packed_record){0};
    if (n < WEIR_PACKED_RECORD_MIN || memcmp(bytes, record_magic, sizeof record_magic) != 0)
        return weir_err_set(err, -EBADMSG, "no episode starts at byte %llu, where its index lists one; %s",
                            (unsigned long long)offset, advice);
    uint32_t steps = weir_le(bytes + AT_STEPS, 4);
    record->number = weir_le(bytes + AT_NUMBER, 4);
    record->previous = weir_le(bytes + AT_PREVIOUS, 8);
    record->n_texts = weir_le(bytes + AT_TEXTS, 4);
    record->steps = (int)steps;
    bool fits = steps - 1 < STEPS_MAX && weir_packed_lay_out(record, header, 0) && record->bytes <= n &&
                n - record->bytes <= ARRAY_BYTES_MAX;
    if (!fits || weir_packed_record_bytes(bytes) != n || weir_le(bytes + AT_TEXTS_BEGIN, 8) != record->texts)
        return weir_err_set(err, -EBADMSG, "the episode at byte %llu is invalid; %s", (unsigned long long)offset,
                            advice);
    record->bytes = n;
    return 0;
}

int weir_packed_get_record(struct weir_packed_record *record, const struct weir_packed_header *header,
                           const uint8_t *bytes, uint64_t n, uint64_t offset, struct weir_err *err)
{
    int rc = weir_packed_get_head(record, header, bytes, n, offset, err);
    if (rc < 0)
        return rc;
    if (weir_le(bytes + AT_RECORD_CRC, 4) != crc_without(bytes, n, AT_RECORD_CRC))
        return weir_err_set(err, -EBADMSG, "the checksum of the episode at byte %llu is wrong: %s",
                            (unsigned long long)offset, advice);
    if (!check_texts(record, bytes))
        return weir_err_set(err, -EBADMSG, "the metadata strings of episode %u are invalid; %s", record->number,
                            advice);
    return check_frames(record, header, bytes, offset, err);
}
