/* log_lines.h: the lines of a file of unknown origin, one at a time, in bounded memory. A carriage return ends a piece
 * too: progress bars write hours of them into one line. */
#ifndef WEIR_ANALYZE_LOGS_LOG_LINES_H
#define WEIR_ANALYZE_LOGS_LOG_LINES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

enum { WEIR_LINE_MAX_BYTES = 1 << 20 };

struct weir_lines {
    FILE *in;            /* borrowed */
    uint64_t number;     /* of the line that text is (part of), 1-based */
    char *text;          /* the line without its end; NUL-terminated, and may hold NULs; lent until the next call */
    size_t length;       /* at most WEIR_LINE_MAX_BYTES; the rest of a longer line is dropped */
    bool cut;            /* it was longer */
    bool ended;          /* a newline (or return) followed, so it was written to its end */
    uint64_t nul_bytes;  /* seen so far in the file */
    uint64_t cut_lines;  /* so far */
    bool pushed_back;    /* the next call returns the same line again */
    bool after_newline_; /* the last piece ended with a newline: the next one begins a line */
    size_t capacity_;
};

/* Begins at the file's position; a byte order mark (UTF-8) is skipped. */
void weir_lines_open(struct weir_lines *lines, FILE *in);
void weir_lines_close(struct weir_lines *lines);
/* 1 = a line (empty ones too), 0 = the end, -errno when reading fails. */
int weir_lines_next(struct weir_lines *lines);

#endif
