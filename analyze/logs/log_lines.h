/* log_lines.h: reads lines of a file of unknown origin one at a time, in bounded memory. A carriage return ends a line
 * too, because progress bars write hours of updates into one line. */
#ifndef WEIR_ANALYZE_LOGS_LOG_LINES_H
#define WEIR_ANALYZE_LOGS_LOG_LINES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

enum { WEIR_LINE_MAX_BYTES = 1 << 20 };

struct weir_lines {
    FILE *in;            /* borrowed */
    uint64_t number;     /* of text's line, 1-based */
    char *text;          /* the line without its end; NUL-terminated, may contain NULs; valid until the next call */
    size_t length;       /* at most WEIR_LINE_MAX_BYTES; the rest of a longer line is dropped */
    bool cut;            /* the line was longer */
    bool ended;          /* followed by a newline or carriage return, so it is complete */
    uint64_t nul_bytes;  /* in the file so far */
    uint64_t cut_lines;  /* in the file so far */
    bool pushed_back;    /* the next call returns the same line again */
    bool after_newline_; /* the last piece ended with a newline, so the next one begins a line */
    size_t capacity_;
};

/* Starts at the file's position and skips a UTF-8 byte order mark. */
void weir_lines_open(struct weir_lines *lines, FILE *in);
void weir_lines_close(struct weir_lines *lines);
/* Returns 1 for a line (even an empty one), 0 at the end, -errno on a read error. */
int weir_lines_next(struct weir_lines *lines);

#endif
