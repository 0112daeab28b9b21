/* config_file.h: settings files for --config, with lines `option = value`. Spaces around the option and the value are
 * ignored. A '#' at the start of a line or after a space begins a comment. docs/tune.md describes the format. */
#ifndef WEIR_CLI_CONFIG_FILE_H
#define WEIR_CLI_CONFIG_FILE_H

#include "weir/base.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>

enum { WEIR_CONFIG_BYTES = 64 << 10, WEIR_CONFIG_LINES = 256, WEIR_CONFIG_NAME = 64 };

struct weir_config_line {
    int number;        /* line number, from 1 */
    const char *name;  /* option name with hyphens; 1 to WEIR_CONFIG_NAME - 1 bytes */
    const char *value; /* neither empty nor with control characters */
};

struct weir_config_file {
    size_t n;
    struct weir_config_line lines[WEIR_CONFIG_LINES]; /* in file order, with unique names */
};

/* Parses text in place. text[length] must be a zero byte, and text can otherwise contain arbitrary bytes. The lines in
 * file point into text. Returns 0, or -EINVAL with err "LINE: problem". */
int weir_config_parse(struct weir_config_file *file, char *text, size_t length, struct weir_err *err);

/* Reads a whole file of at most WEIR_CONFIG_BYTES and appends a zero byte. The caller frees *text. Returns 0 or -errno,
 * which is -ENXIO if no process opens a FIFO for writing within 3 s. */
int weir_config_read(const char *path, char **text, size_t *length, struct weir_err *err);

/* Writes a line that weir_config_parse reads back as name and value. Returns false and writes nothing if the value
 * cannot be stored, because it is empty, starts or ends with a space, starts with '#', or contains " #" or a control
 * character. */
bool weir_config_write(FILE *out, const char *name, const char *value);

#endif
