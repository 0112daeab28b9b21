/* trace_print.h: what the parts of the trace writer share: a buffer in front of the file, and how numbers, times and
 * texts are printed into it. Errors stay in the file (weir_gz_commit). */
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

/* Writes the buffer out; 0 or the file's error. */
int weir_print_flush(struct weir_print *p);

/* n bytes of room; n is far below the buffer's size. */
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

/* A literal: its length is known when it is compiled. */
#define weir_print(p, literal) weir_print_bytes(p, "" literal, sizeof(literal) - 1)

void weir_print_int(struct weir_print *p, int64_t value);
void weir_print_uint(struct weir_print *p, uint64_t value);
/* ns as us with exactly three decimals; negative: 0. */
void weir_print_us(struct weir_print *p, int64_t ns);
/* Shortest of 6, 9 or 17 digits; value is finite. */
void weir_print_double(struct weir_print *p, double value);

/* A name, without quotes: \ becomes /, " is escaped, newlines go; one that still holds a control character or bytes
 * that are no UTF-8 becomes unknown, as does an empty one. */
void weir_print_name(struct weir_print *p, const char *text);
/* Likewise, but characters that cannot be shown become ? one by one. */
void weir_print_text(struct weir_print *p, const char *text);
/* JSON text as it is; control characters, which JSON has no place for, become spaces. */
void weir_print_json(struct weir_print *p, const char *json);

/* trace_head.c: what comes before the events, up to and with "traceEvents": [, and after them. */
void weir_print_head(struct weir_print *p);
void weir_print_tail(struct weir_print *p, const char *path);
/* Ends the event before, and its line. */
void weir_print_next(struct weir_print *p);

#endif
