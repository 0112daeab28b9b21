/* log_lines.h: reads a file of unknown origin line by line, in bounded memory. A carriage return also ends a line,
 * because progress bars can write hours of updates without a newline. */
#ifndef WEIR_ANALYZE_LOGS_LOG_LINES_H
#define WEIR_ANALYZE_LOGS_LOG_LINES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

enum { WEIR_LINE_MAX_BYTES = 1 << 20 };

struct weir_lines {
    FILE *in;            /* borrowed */
    uint64_t number;     /* 1-based number of the line that contains text */
    char *text;          /* the line without its end; NUL-terminated, can contain NULs; valid until the next call */
    size_t length;       /* at most WEIR_LINE_MAX_BYTES; the rest of the line is dropped */
    bool cut;            /* the rest of the line was dropped */
    bool ended;          /* the line is complete: a newline or carriage return follows */
    uint64_t nul_bytes;  /* number of NUL bytes in the file so far */
    uint64_t cut_lines;  /* number of lines cut so far */
    bool pushed_back;    /* set by the caller to get the same line again */
    bool after_newline_; /* the previous piece ended with a newline, so the next piece starts a line */
    size_t capacity_;
};

/* Reads from the file's current position. A UTF-8 byte order mark in the first line is skipped. */
void weir_lines_open(struct weir_lines *lines, FILE *in);
void weir_lines_close(struct weir_lines *lines);
/* Reads the next line, which can be empty. Returns 1, 0 at the end of the file, or -errno. */
int weir_lines_next(struct weir_lines *lines);
/* Reads up to the first line that is not blank, and pushes it back. Returns the same as weir_lines_next. */
int weir_lines_peek(struct weir_lines *lines);

#endif
