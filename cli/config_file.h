/* config_file.h: files of `option = value` lines, which --config reads. Spaces around both are left out; '#' begins a
 * comment at the beginning of a line or behind a space. docs/tune.md has the format. */
#ifndef WEIR_CLI_CONFIG_FILE_H
#define WEIR_CLI_CONFIG_FILE_H

#include "weir/base.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>

enum { WEIR_CONFIG_BYTES = 64 << 10, WEIR_CONFIG_LINES = 256, WEIR_CONFIG_NAME = 64 };

struct weir_config_line {
    int number;        /* from 1 */
    const char *name;  /* hyphens for underscores; 1 to WEIR_CONFIG_NAME - 1 bytes */
    const char *value; /* not empty, no control characters */
};

struct weir_config_file {
    size_t n;
    struct weir_config_line lines[WEIR_CONFIG_LINES]; /* in the file's order; no name is there twice */
};

/* Takes text apart in place: text[length] is a zero byte, and lines point into text. Any bytes may come. 0, or -EINVAL
 * with err "LINE: what is wrong". */
int weir_config_parse(struct weir_config_file *file, char *text, size_t length, struct weir_err *err);

/* The whole file, at most WEIR_CONFIG_BYTES, with a zero byte behind it; *text is to be freed. 0 or -errno: -ENXIO for
 * a FIFO that gets no writer within 3 s. */
int weir_config_read(const char *path, char **text, size_t *length, struct weir_err *err);

/* A line that weir_config_parse reads as these. False, and nothing is written, when the value cannot stand in a file:
 * it is empty, begins or ends with a space, or has a " #" or a control character in it. */
bool weir_config_write(FILE *out, const char *name, const char *value);

#endif
