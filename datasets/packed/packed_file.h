/* packed_file.h: serialises and parses the parts of a packed file: header, index, and records of episodes.
 * docs/internals/packed.md lists the fields. Parsed sizes are checked against the sizes of the enclosing parts; no
 * memory is allocated here. Any thread. */
#ifndef WEIR_DATASETS_PACKED_PACKED_FILE_H
#define WEIR_DATASETS_PACKED_PACKED_FILE_H

#include "base/numbers.h"
#include "datasets/writer.h"
#include "origin/source.h"
#include "weir/base.h"
#include "weir/dataset.h"

#include <stddef.h>
#include <stdint.h>

enum {
    WEIR_PACKED_VERSION = 1,
    WEIR_PACKED_HEADER = 4096,    /* size of the header, at the start of the file */
    WEIR_PACKED_INDEX_ENTRY = 16, /* size of an index entry, one per episode */
    WEIR_PACKED_RECORD_MIN = 48,  /* size of a record's head, before its arrays */
    WEIR_PACKED_FRAME = 16,       /* size of a frame's entry in its record */
    WEIR_PACKED_STEP_ALIGN = 4096,
    WEIR_PACKED_FRAME_ALIGN = 512,
};

struct weir_packed_header {
    struct weir_copy copy; /* without n_episodes and chunk_frames; a width and height of 0 = see each frame */
    uint64_t index_offset; /* 0: the file is unfinished */
    uint64_t file_bytes;   /* size of the file including the index; 0 until finished */
    uint64_t last_record;  /* offset of the last record written; 0 = none */
    uint32_t n_episodes;
    uint32_t index_crc;
};

void weir_packed_put_header(const struct weir_packed_header *header, uint8_t bytes[WEIR_PACKED_HEADER]);
/* Returns 0, or -EBADMSG with err (-ENOTSUP if a newer Weir wrote the file). */
int weir_packed_get_header(struct weir_packed_header *header, const uint8_t bytes[WEIR_PACKED_HEADER],
                           struct weir_err *err);

/* Offsets of the parts of a record, from its start. */
struct weir_packed_record {
    uint32_t number;   /* number of the episode, from 0 */
    uint64_t bytes;    /* total size */
    uint64_t previous; /* file offset of the previous record; 0 = none */
    int steps;
    uint32_t n_texts;
    uint64_t qpos, actions, frames, texts;
};

/* Computes the offsets of a record's parts. text_bytes: total size of the metadata strings. Returns false if a part
 * would exceed 1 GiB. */
bool weir_packed_lay_out(struct weir_packed_record *record, const struct weir_packed_header *header,
                         uint64_t text_bytes);
/* Writes the record's head and checksum. */
void weir_packed_seal(const struct weir_packed_record *record, uint8_t *bytes);
/* Returns the length in the first WEIR_PACKED_RECORD_MIN bytes of a record, unchecked. */
uint64_t weir_packed_record_bytes(const uint8_t *bytes);
/* Parses the first bytes of a record of n bytes into *record, and checks that the record belongs to this file. */
int weir_packed_get_head(struct weir_packed_record *record, const struct weir_packed_header *header,
                         const uint8_t bytes[WEIR_PACKED_RECORD_MIN], uint64_t n, uint64_t offset,
                         struct weir_err *err);
/* Parses and checks a whole record. All frames must precede it, and raw frames must have the size that the header
 * implies. */
int weir_packed_get_record(struct weir_packed_record *record, const struct weir_packed_header *header,
                           const uint8_t *bytes, uint64_t n, uint64_t offset, struct weir_err *err);

/* Location and checksum of a frame. */
struct weir_packed_frame {
    uint64_t offset;
    uint32_t length, crc;
};
void weir_packed_put_frame(const struct weir_packed_frame *frame, uint8_t bytes[WEIR_PACKED_FRAME]);
/* Returns the frame of `camera` at step t of a parsed record. */
struct weir_packed_frame weir_packed_frame_at(const struct weir_packed_record *record,
                                              const struct weir_packed_header *header, const uint8_t *bytes, int t,
                                              int camera);

/* Key and value of a metadata string, without final zeros. */
struct weir_packed_text {
    const uint8_t *key, *value;
    uint32_t key_bytes, value_bytes;
};
/* Parses the key and value at *at and advances *at. Returns false for malformed bytes. */
bool weir_packed_text_at(const uint8_t *bytes, uint64_t n, uint64_t *at, struct weir_packed_text *text);

/* ---- open files ---- */

struct weir_packed_index {
    struct weir_source *source;
    struct weir_packed_header header;
    uint8_t *index;
    uint8_t *record; /* the record that was read last */
    uint64_t record_capacity;
    uint32_t announced; /* episodes before this one were announced */
};

/* Messages do not contain the path. After an error the file is closed. */
int weir_packed_open(struct weir_packed_index *file, struct weir_origin *origin, const struct weir_dataset_file *of,
                     struct weir_err *err);
void weir_packed_close(struct weir_packed_index *file);

/* Reads the record of episode i into file->record and checks it. */
int weir_packed_read_record(struct weir_packed_index *file, uint32_t i, struct weir_packed_record *record,
                            struct weir_err *err);
/* Reads any range of the file. */
int weir_packed_read(const struct weir_packed_index *file, uint64_t offset, void *buffer, size_t n,
                     struct weir_err *err);

#endif
