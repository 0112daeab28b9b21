/* packed_file.h: the parts of a packed file, as bytes and as structs: header, index, record of an episode.
 * docs/packed.md has every field. What is read is checked against the sizes around it, and nothing is allocated here.
 * Any thread. */
#ifndef WEIR_DATASETS_PACKED_PACKED_FILE_H
#define WEIR_DATASETS_PACKED_PACKED_FILE_H

#include "base/numbers.h"
#include "weir/base.h"
#include "weir/dataset.h"

#include <stddef.h>
#include <stdint.h>

enum {
    WEIR_PACKED_VERSION = 1,
    WEIR_PACKED_HEADER = 4096,    /* bytes, the first of the file */
    WEIR_PACKED_INDEX_ENTRY = 16, /* bytes of an episode in the index */
    WEIR_PACKED_RECORD_MIN = 48,  /* bytes of a record before its arrays */
    WEIR_PACKED_FRAME = 16,       /* bytes of a frame in its record */
    WEIR_PACKED_STEP_ALIGN = 4096,
    WEIR_PACKED_FRAME_ALIGN = 512,
};

struct weir_packed_camera {
    char name[WEIR_NAME_MAX];
    enum weir_frame_kind kind;
    int width, height; /* of every frame; 0 = each one's header tells */
};

struct weir_packed_header {
    bool is_bgr;
    uint64_t index_offset; /* 0: the file was never finished */
    uint64_t file_bytes;   /* with the index; 0 before */
    uint64_t last_record;  /* offset of the record of the episode written last; 0 = none */
    uint32_t n_episodes;
    uint32_t index_crc;
    enum weir_number_type qpos_type, action_type;
    int qpos_dim, action_dim;
    int n_cameras;
    struct weir_packed_camera cameras[WEIR_CAMERAS_MAX];
};

void weir_packed_put_header(const struct weir_packed_header *header, uint8_t bytes[WEIR_PACKED_HEADER]);
/* 0, or -EBADMSG with err (-ENOTSUP: written by a newer Weir). */
int weir_packed_get_header(struct weir_packed_header *header, const uint8_t bytes[WEIR_PACKED_HEADER],
                           struct weir_err *err);

/* Where the parts of a record begin, from its start. */
struct weir_packed_record {
    uint32_t number;   /* of the episode, from 0 */
    uint64_t bytes;    /* all of it */
    uint64_t previous; /* offset in the file of the record before; 0 = it is the first */
    int steps;
    uint32_t n_texts;
    uint64_t qpos, actions, frames, texts;
};

/* Fills the places of a record's parts; text_bytes: of all texts. False when one of them would be over 1 GiB. */
bool weir_packed_lay_out(struct weir_packed_record *record, const struct weir_packed_header *header,
                         uint64_t text_bytes);
/* Writes the record's head, and the checksum over all of it. */
void weir_packed_seal(const struct weir_packed_record *record, uint8_t *bytes);
/* The length of a record that says so in its first WEIR_PACKED_RECORD_MIN bytes, whatever these are. */
uint64_t weir_packed_record_bytes(const uint8_t *bytes);
/* Checks the first bytes of a record of n bytes, so that no other file is read as one, and fills *record. */
int weir_packed_get_head(struct weir_packed_record *record, const struct weir_packed_header *header,
                         const uint8_t bytes[WEIR_PACKED_RECORD_MIN], uint64_t n, uint64_t offset,
                         struct weir_err *err);
/* Reads and checks a record whose bytes are all there. frames: that every frame lies before it and raw ones have their
 * size. */
int weir_packed_get_record(struct weir_packed_record *record, const struct weir_packed_header *header,
                           const uint8_t *bytes, uint64_t n, uint64_t offset, struct weir_err *err);

/* One frame. */
struct weir_packed_frame {
    uint64_t offset;
    uint32_t length, crc;
};
void weir_packed_put_frame(const struct weir_packed_frame *frame, uint8_t bytes[WEIR_PACKED_FRAME]);
/* Of camera c at step t of a record that was read. */
struct weir_packed_frame weir_packed_frame_at(const struct weir_packed_record *record,
                                              const struct weir_packed_header *header, const uint8_t *bytes, int t,
                                              int camera);

/* A text of an episode: its key and value, which have no zero at their end. */
struct weir_packed_text {
    const uint8_t *key, *value;
    uint32_t key_bytes, value_bytes;
};
/* The text at *at, which goes on to the next; false when what is there is none. */
bool weir_packed_text_at(const uint8_t *bytes, uint64_t n, uint64_t *at, struct weir_packed_text *text);

uint32_t weir_packed_get32(const uint8_t *bytes);
uint64_t weir_packed_get64(const uint8_t *bytes);
void weir_packed_put32(uint8_t *bytes, uint32_t value);
void weir_packed_put64(uint8_t *bytes, uint64_t value);

/* Pixels of depth: "raw16", "png16". */
/* What a raw frame takes; 0 for encoded ones. */
uint64_t weir_packed_raw_bytes(const struct weir_packed_camera *camera);

#endif
