/* trace_print.h: shared by the parts of the trace writer: an output buffer, and functions that print numbers, times and
 * strings into it. Errors are kept in the file and returned by weir_gz_commit. */
#ifndef WEIR_PROF_TRACE_TRACE_PRINT_H
#define WEIR_PROF_TRACE_TRACE_PRINT_H

#include "base/gz_file.h"
#include "weir/trace.h"

#include <string.h>

enum { WEIR_PRINT_BYTES = 1 << 16 };

/* Offsets of a device's thread ids: the row for a stream's synchronisation, and rows for clocks inside kernels. */
enum { WEIR_SYNC_ROW = 1000000, WEIR_CLOCK_ROW = 1000000000, WEIR_OVERHEAD_PID = -1 };

struct weir_print {
    struct weir_gz_file *file;
    const struct weir_trace *trace;
    bool first; /* nothing has been printed yet in this object or array */
    size_t used;
    char buffer[WEIR_PRINT_BYTES];
};

/* Writes the buffer to the file. Returns 0 or the file's error. */
int weir_print_flush(struct weir_print *p);

/* Returns space for n bytes, flushing the buffer if needed; n must be far below the buffer's size. */
static inline char *weir_print_room(struct weir_print *p, size_t n)
{
    if (WEIR_PRINT_BYTES - p->used < n)
        weir_print_flush(p);
    return p->buffer + p->used;
}

void weir_print_bytes(struct weir_print *p, const char *text, size_t length);

static inline void weir_print_raw(struct weir_print *p, const char *text)
{
    weir_print_bytes(p, text, strlen(text));
}

/* Prints a string literal, whose length is known at compile time. */
#define weir_print(p, literal) weir_print_bytes(p, "" literal, sizeof(literal) - 1)

void weir_print_int(struct weir_print *p, int64_t value);
void weir_print_uint(struct weir_print *p, uint64_t value);
/* Prints nanoseconds as microseconds with exactly three decimals, or 0 if negative. */
void weir_print_us(struct weir_print *p, int64_t ns);
/* Prints a finite value with 6, 9 or 17 digits, the fewest that represent it exactly. */
void weir_print_double(struct weir_print *p, double value);

/* Prints a name without quotes: \ becomes /, " is escaped, newlines are removed. Prints "unknown" instead if the name
 * is empty, contains other control characters or is not UTF-8. */
void weir_print_name(struct weir_print *p, const char *text);
/* Like weir_print_name, but replaces each unprintable character with ?. */
void weir_print_text(struct weir_print *p, const char *text);
/* Prints JSON unchanged, except that control characters, which are invalid in JSON, become spaces. */
void weir_print_json(struct weir_print *p, const char *json);

/* Implemented in trace_head.c. Print the part before the events, including "traceEvents": [, and the part after them.
 */
void weir_print_head(struct weir_print *p);
void weir_print_tail(struct weir_print *p, const char *path);
/* Ends the previous event, if any, with a comma and a newline. */
void weir_print_next(struct weir_print *p);

#endif
