/* json_pieces.h: the members of a JSON file's object, and the elements of one of its arrays, one at a time: a file may
 * be far larger than memory, a piece may not. */
#ifndef WEIR_PROF_TRACE_JSON_PIECES_H
#define WEIR_PROF_TRACE_JSON_PIECES_H

#include "base/gz_file.h"
#include "weir/base.h"

#include <stdbool.h>
#include <stdint.h>

enum { WEIR_PIECE_MAX_BYTES = 16 << 20, WEIR_KEY_MAX_BYTES = 128 };

struct weir_pieces {
    struct weir_gz_reader *reader; /* borrowed */
    const char *array;             /* the member whose elements are pieces of their own */
    char key[WEIR_KEY_MAX_BYTES];  /* of the member that the piece is the value of, or an element of */
    char *piece;                   /* its text; lent until the next call */
    size_t length;
    uint64_t offset; /* of the piece in the (decompressed) file */
    bool in_array, begun, ended_, bare_;
    size_t capacity_, at_, filled_; /* buffer: what was read and not looked at yet is at_ .. filled_ */
    char *buffer_;
    uint64_t read_;
};

int weir_pieces_open(struct weir_pieces *pieces, struct weir_gz_reader *reader, const char *array);
void weir_pieces_close(struct weir_pieces *pieces);
/* 1 = a piece, 0 = the object's end, negative with the offset in err. A file that is an array itself is taken for the
 * value of array. */
int weir_pieces_next(struct weir_pieces *pieces, struct weir_err *err);

/* The text of a number that is a direct member of an object; its length, 0 when there is none. */
size_t weir_piece_number(const char *object, size_t length, const char *key, const char **number);

#endif
