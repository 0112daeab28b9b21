/* packed_index.h: an open packed file: its header, its index, and the records of its episodes, one at a time. One
 * thread at a time. */
#ifndef WEIR_DATASETS_PACKED_PACKED_INDEX_H
#define WEIR_DATASETS_PACKED_PACKED_INDEX_H

#include "datasets/packed/packed_file.h"

struct weir_packed_index {
    int fd;
    struct weir_packed_header header;
    uint8_t *index;
    uint8_t *record; /* bytes of the last record read */
    uint64_t record_capacity;
};

/* file_bytes: current size of the file. Errors do not name the path. After an error the file is closed. */
int weir_packed_open(struct weir_packed_index *file, const char *path, uint64_t file_bytes, struct weir_err *err);
void weir_packed_close(struct weir_packed_index *file);

/* Reads the record of episode i into file->record and checks it. */
int weir_packed_read_record(struct weir_packed_index *file, uint32_t i, struct weir_packed_record *record,
                            struct weir_err *err);
/* Reads any range of the file. */
int weir_packed_read(const struct weir_packed_index *file, uint64_t offset, void *buffer, size_t n,
                     struct weir_err *err);

#endif
