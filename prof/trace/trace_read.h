/* trace_read.h: reads a Chrome trace written by Weir or torch.profiler, plain or gzip, one element at a time. */
#ifndef WEIR_PROF_TRACE_TRACE_READ_H
#define WEIR_PROF_TRACE_TRACE_READ_H

#include "base/gz_file.h"
#include "weir/base.h"
#include "weir/trace.h"

#include <stdbool.h>
#include <stdint.h>

/* Returns whether the file is a trace, judging by its first bytes, or by its name if it is empty or damaged. Returns
 * false for files that cannot be opened. */
bool weir_trace_recognised(const char *path);

/* Reads a trace's ranges, instants, counters and [memory] events; skips flows and async ranges. Error messages contain
 * the file name and, if the file is damaged, the byte offset. */
int weir_trace_read(struct weir_trace **out, const char *path, struct weir_err *err);

/* The same, with the events' other args (weir_event.args), the devices, and the operators' FLOPs that weir.profile adds
 * to a trace of torch.profiler, which has none: the last member, "weir_flops": {"EXTERNAL ID": FLOPS}. */
int weir_trace_read_whole(struct weir_trace **out, const char *path, struct weir_err *err);

/* Reads a trace that torch.profiler recorded in this process during the window of `trace` and adds it to `trace`, which
 * stays sorted. Ranges of threads are cut to the window; events outside it are left out,
 * except work of devices, which may run later. External ids are moved above the numbers in `trace`. After an error
 * `trace` is incomplete. */
int weir_trace_merge(struct weir_trace *trace, const char *path, struct weir_err *err);

/* ---- json_pieces.c: reads a JSON object one member at a time, and one of its arrays one element at a time. The file
 * can be far larger than memory, but each piece is limited to WEIR_PIECE_MAX_BYTES. */

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
