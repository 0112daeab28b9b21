/* option.h: descriptors of options, conversion of their values from and to strings, and configuration structs with a
 * size member. Tables of descriptors define the command line, --config files, help, man pages, shell completion, the
 * JSON output, and Python's keywords (pipeline/loader_options.h). */
#ifndef WEIR_BASE_OPTION_H
#define WEIR_BASE_OPTION_H

#include "weir/base.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum weir_opt_kind {
    WEIR_OPT_FLAG,   /* bool: true if the option is present */
    WEIR_OPT_INT,    /* int */
    WEIR_OPT_UINT64, /* uint64_t */
    WEIR_OPT_DOUBLE, /* double */
    WEIR_OPT_TEXT,   /* const char *, borrowed from the parsed string */
    WEIR_OPT_ENUM,   /* int or an enum: index of the value among the choices */
    WEIR_OPT_SIZE,   /* struct weir_opt_size: "WxH" */
    WEIR_OPT_BYTES,  /* uint64_t: "512M"; K, M, G and T are powers of 1024 */
};

/* How a command uses the file or folder whose path is the value of a string option or of an argument (cli/outputs.h).
 */
enum weir_opt_path {
    WEIR_PATH_NONE,
    WEIR_PATH_READ,       /* a file or folder that is only read */
    WEIR_PATH_WRITE,      /* a file that is written, or read and written */
    WEIR_PATH_WRITE_INTO, /* a folder in which the command creates files, whose names it chooses */
    WEIR_PATH_WRITE_DATA, /* a dataset, or a folder of datasets; it must not be inside one that is read */
};

struct weir_opt_size {
    int width, height;
};

enum { WEIR_OPT_AUTO = -1 }; /* value of an int option for "auto" */
#define WEIR_OPT_BYTES_AUTO UINT64_MAX

struct weir_opt {
    const char *name; /* "batch-size"; --batch-size N, --batch-size=N and --batch_size N are all accepted */
    enum weir_opt_kind kind;
    size_t offset;           /* offset of the member in the struct of values */
    const char *value;       /* the value's placeholder in help: "N", "FILE", "WxH"; for enums the choices: "rgb|bgr" */
    const char *preset;      /* default, parsed like a typed value; NULL leaves the member 0 */
    const char *help;        /* a noun phrase, at most WEIR_HELP_MAX characters long including the default */
    double min, max;         /* bounds of a number, checked if max > min */
    bool allow_auto;         /* "auto" is accepted and means WEIR_OPT_AUTO, or WEIR_OPT_BYTES_AUTO for bytes */
    bool zero_is_auto;       /* with allow_auto: "auto" means 0, which is below min */
    bool allow_empty;        /* string: an empty value is accepted */
    bool is_list;            /* string: a list of names separated by commas */
    enum weir_opt_path path; /* string: the path of a file or folder */
    const char *files;       /* WEIR_PATH_WRITE_INTO: names of the files if known, separated by spaces; may be NULL */
    const char *otherwise;   /* string: the value if the option is given without one; NULL = it needs one */
    bool (*is_value)(const char *text); /* with otherwise: whether the next argument is the option's value */
    const char *unit;     /* number: its unit, such as "batches"; may be NULL. "%" may follow the number */
    const char *details;  /* whole sentences for --help-all and the man page; may be NULL */
    bool is_common;       /* listed by --help, which leaves out the other options of a command with many */
    const char *topic;    /* heading in help for this row and for the rows below it that have none; may be NULL */
    const char *old_name; /* former name, accepted with a warning, also in Python; may be NULL */
    unsigned users; /* in shared tables: set of the commands (and Python) that have the option (loader_options.h) */

    /* The option's keyword in Python, in tables that have the user WEIR_FOR_PYTHON. */
    const char *keyword;         /* NULL = the name with underscores */
    const char *keyword_preset;  /* default as a Python expression; NULL = derived from preset */
    const char *keyword_choices; /* enum: names in Python, in the order of value; NULL = the names in value */
    const char *keyword_details; /* details for Python; NULL = those above, with keywords in place of options */
    const char *old_keyword;     /* former keyword, accepted with a warning in addition to old_name; may be NULL */
    bool keyword_inverted;       /* flag: the keyword is true if the member is false */
};

enum { WEIR_HELP_MAX = 60, WEIR_OPTION_TEXT = 64 };

/* Sets the option's member of values from a string. A flag is set to true by any string. Returns 0, or -EINVAL with an
 * error that contains the option and the value. */
int weir_option_parse(const struct weir_opt *opt, const char *text, void *values, struct weir_err *err);

/* Checks the bounds of a member that was not set by parsing. Returns 0, or -EINVAL like weir_option_parse. "auto"
 * and a size of 0x0 are accepted. */
int weir_option_check(const struct weir_opt *opt, const void *values, struct weir_err *err);

/* Returns the value as a user would type it ("true" or "false" for flags), or NULL for a string that is not set. The
 * result is in buffer or is the string itself. */
const char *weir_option_text(const struct weir_opt *opt, const void *values, char buffer[WEIR_OPTION_TEXT]);
/* Like weir_option_text, but returns NULL if the value is the default, and "" for a flag that is set. */
const char *weir_option_typed(const struct weir_opt *opt, const void *values, char buffer[WEIR_OPTION_TEXT]);

/* Writes the value as a member of the open object. The key is the name with underscores, and "auto" is written as a
 * string. */
void weir_option_json(const struct weir_opt *opt, const void *values, struct weir_json *json);

/* Returns the choice with this index from a list "a|b"; "" past the last one. */
void weir_option_choice(const char *choices, int index, char text[WEIR_OPTION_TEXT]);

/* Copies a name, replaces hyphens with underscores, and truncates it to size bytes. */
void weir_option_key(char *key, size_t size, const char *name);

/* ---- configuration structs of other versions ---- */

/* A public configuration struct starts with its own size as a size_t, and options are only ever appended. The struct of
 * an older program is shorter, and the missing options get their defaults. The struct of a newer program is longer, and
 * its extra bytes must be 0. */

/* Size of the first version of a struct. last is the last member of that version; it stays the same when options are
 * appended. */
#define WEIR_SIZED_LEAST(type, last) (offsetof(type, last) + sizeof(((type *)0)->last))

/* Copies a program's struct over this library's struct, which contains the defaults and keeps its own size. type is
 * used in messages, such as "struct weir_loader_config". Returns 0; -EINVAL if the size in given is below least or
 * implausible; -ENOTSUP if given sets an option that this library does not have. */
int weir_sized_copy(void *full, size_t full_size, size_t least, const void *given, const char *type,
                    struct weir_err *err);

/* Copies this library's struct to a program's struct of size bytes, zeroes any bytes left over, and sets the size
 * member. */
void weir_sized_fill(void *out, size_t size, const void *full, size_t full_size);

#endif
