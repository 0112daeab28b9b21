/* json_pieces.h: reads the members of a JSON file's object, and the elements of one of its arrays, one at a time. The
 * file may be far larger than memory; a piece may not. */
#ifndef WEIR_PROF_TRACE_JSON_PIECES_H
#define WEIR_PROF_TRACE_JSON_PIECES_H

#include "base/gz_file.h"
#include "weir/base.h"

#include <stdbool.h>
#include <stdint.h>

enum { WEIR_PIECE_MAX_BYTES = 16 << 20, WEIR_KEY_MAX_BYTES = 128 };

struct weir_pieces {
    struct weir_gz_reader *reader; /* borrowed */
    const char *array;             /* the member whose elements are separate pieces */
    char key[WEIR_KEY_MAX_BYTES];  /* member that the piece belongs to */
    char *piece;                   /* its text; valid until the next call */
    size_t length;
    uint64_t offset; /* offset of the piece in the (decompressed) file */
    bool in_array, begun, ended_, bare_;
    size_t capacity_, at_, filled_; /* buffer; unread text is at_ .. filled_ */
    char *buffer_;
    uint64_t read_;
};

int weir_pieces_open(struct weir_pieces *pieces, struct weir_gz_reader *reader, const char *array);
void weir_pieces_close(struct weir_pieces *pieces);
/* Returns 1 for a piece, 0 at the object's end, negative with the offset in err. A file that is itself an array counts
 * as the value of `array`. */
int weir_pieces_next(struct weir_pieces *pieces, struct weir_err *err);

/* Finds the text of a number that is a direct member of an object. Returns its length, 0 when missing. */
size_t weir_piece_number(const char *object, size_t length, const char *key, const char **number);

#endif
