/* json_pieces.h: reads a JSON object one member at a time, and one of its arrays one element at a time. The file can be
 * far larger than memory, but each piece is limited to WEIR_PIECE_MAX_BYTES. */
#ifndef WEIR_PROF_TRACE_JSON_PIECES_H
#define WEIR_PROF_TRACE_JSON_PIECES_H

#include "base/gz_file.h"
#include "weir/base.h"

#include <stdbool.h>
#include <stdint.h>

enum { WEIR_PIECE_MAX_BYTES = 16 << 20, WEIR_KEY_MAX_BYTES = 128 };

struct weir_pieces {
    struct weir_gz_reader *reader; /* borrowed */
    const char *array;             /* name of the member whose elements are separate pieces */
    char key[WEIR_KEY_MAX_BYTES];  /* name of the member that contains the piece */
    char *piece;                   /* JSON of the piece; valid until the next call */
    size_t length;
    uint64_t offset; /* offset of the piece in the (decompressed) file */
    bool in_array, begun, ended_, bare_;
    size_t capacity_, at_, filled_; /* buffer; the bytes not yet consumed are at_ .. filled_ */
    char *buffer_;
    uint64_t read_;
};

int weir_pieces_open(struct weir_pieces *pieces, struct weir_gz_reader *reader, const char *array);
void weir_pieces_close(struct weir_pieces *pieces);
/* Reads the next piece. Returns 1, 0 at the end of the object, or a negative error code with the file offset in err. A
 * file that contains only an array is read as the value of `array`. */
int weir_pieces_next(struct weir_pieces *pieces, struct weir_err *err);

/* Finds a numeric member `key` of an object, ignoring nested objects. Points *number at its first character. Returns
 * its length, or 0 if it is missing. */
size_t weir_piece_number(const char *object, size_t length, const char *key, const char **number);

#endif
