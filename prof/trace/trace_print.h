/* trace_print.h: shared by the parts of the trace writer: a buffer before the file, and printing of numbers, times and
 * texts into it. Errors are kept in the file (weir_gz_commit). */
#ifndef WEIR_PROF_TRACE_TRACE_PRINT_H
#define WEIR_PROF_TRACE_TRACE_PRINT_H

#include "base/gz_file.h"
#include "weir/trace.h"

#include <string.h>

enum { WEIR_PRINT_BYTES = 1 << 16 };

struct weir_print {
    struct weir_gz_file *file;
    const struct weir_trace *trace;
    bool first; /* nothing printed yet in this object or array */
    size_t used;
    char buffer[WEIR_PRINT_BYTES];
};

/* Writes the buffer out. Returns 0 or the file's error. */
int weir_print_flush(struct weir_print *p);

/* Returns n bytes of room; n must be far below the buffer's size. */
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

/* Prints a literal, whose length is known at compile time. */
#define weir_print(p, literal) weir_print_bytes(p, "" literal, sizeof(literal) - 1)

void weir_print_int(struct weir_print *p, int64_t value);
void weir_print_uint(struct weir_print *p, uint64_t value);
/* Prints ns as us with exactly three decimals; negative values as 0. */
void weir_print_us(struct weir_print *p, int64_t ns);
/* Prints the shortest of 6, 9 or 17 digits; value must be finite. */
void weir_print_double(struct weir_print *p, double value);

/* Prints a name without quotes: \ becomes /, " is escaped, newlines are removed. A name that is empty, still has
 * control characters or is not UTF-8 becomes "unknown". */
void weir_print_name(struct weir_print *p, const char *text);
/* The same for a text, but each unprintable character becomes ?. */
void weir_print_text(struct weir_print *p, const char *text);
/* Prints JSON text as it is; control characters, which are invalid in JSON, become spaces. */
void weir_print_json(struct weir_print *p, const char *json);

/* trace_head.c: prints the part before the events, including "traceEvents": [, and the part after them. */
void weir_print_head(struct weir_print *p);
void weir_print_tail(struct weir_print *p, const char *path);
/* Ends the previous event and its line. */
void weir_print_next(struct weir_print *p);

#endif
