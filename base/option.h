/* option.h: descriptors of options, their values as text, and structs of them that have a size. Tables of descriptors
 * drive the command line, files of
 * --config, help, man pages, shell completion, the JSON echo, and Python's keywords (pipeline/loader_options.h). */
#ifndef WEIR_BASE_OPTION_H
#define WEIR_BASE_OPTION_H

#include "weir/base.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum weir_opt_kind {
    WEIR_OPT_FLAG,   /* bool: present = true */
    WEIR_OPT_INT,    /* int */
    WEIR_OPT_UINT64, /* uint64_t */
    WEIR_OPT_DOUBLE, /* double */
    WEIR_OPT_TEXT,   /* const char *, borrowed from the caller's text */
    WEIR_OPT_ENUM,   /* int or an enum: index into the choices */
    WEIR_OPT_SIZE,   /* struct weir_opt_size: "WxH" */
    WEIR_OPT_BYTES,  /* uint64_t: "512M"; K, M, G and T are powers of 1024 */
};

/* How a command uses the file or folder that a text option, or an argument, names (cli/outputs.h). */
enum weir_opt_path {
    WEIR_PATH_NONE,
    WEIR_PATH_READ,       /* read only */
    WEIR_PATH_WRITE,      /* a file that is written, or read and written */
    WEIR_PATH_WRITE_INTO, /* a folder that gets files of names that the command chooses */
    WEIR_PATH_WRITE_DATA, /* a dataset, or a folder of datasets: never inside one that is read */
};

struct weir_opt_size {
    int width, height;
};

enum { WEIR_OPT_AUTO = -1 }; /* value of an int option given as "auto" */
#define WEIR_OPT_BYTES_AUTO UINT64_MAX

struct weir_opt {
    const char *name; /* "batch-size"; --batch-size N, --batch-size=N and --batch_size N all parse */
    enum weir_opt_kind kind;
    size_t offset;           /* of the field in the struct of values */
    const char *value;       /* as help shows it: "N", "FILE", "WxH"; for enums the choices: "rgb|bgr" */
    const char *preset;      /* default, parsed as if typed; NULL leaves the field zero */
    const char *help;        /* a noun phrase; with the default it takes at most WEIR_HELP_MAX characters */
    double min, max;         /* bounds of numbers, checked when max > min */
    bool allow_auto;         /* "auto" is WEIR_OPT_AUTO, for bytes WEIR_OPT_BYTES_AUTO */
    bool zero_is_auto;       /* with allow_auto: "auto" is 0 instead, which min excludes */
    bool allow_empty;        /* text: an empty value is accepted */
    bool is_list;            /* text: names separated by commas */
    enum weir_opt_path path; /* text that names a file or folder */
    const char *files;       /* WEIR_PATH_WRITE_INTO: known names of the files, separated by spaces; may be NULL */
    const char *unit;        /* of numbers: "batches"; may be NULL */
    const char *details;     /* sentences for weir help COMMAND and the man page; may be NULL */
    const char *topic;       /* heading in help of this row and of those below without one; may be NULL */
    const char *old_name;    /* accepted with a warning, in Python too; may be NULL */
    unsigned users;          /* shared tables: who has the option (loader_options.h) */

    /* Python's keyword, in tables with a user WEIR_FOR_PYTHON. */
    const char *keyword;         /* NULL: the name with underscores */
    const char *keyword_preset;  /* Python expression; NULL: from preset */
    const char *keyword_choices; /* enum: names in Python, in the order of value; NULL: those of value */
    const char *old_keyword;     /* accepted with a warning, apart from old_name; may be NULL */
    bool keyword_inverted;       /* flag: the keyword is true where the field is false */
};

enum { WEIR_HELP_MAX = 60, WEIR_OPTION_TEXT = 64 };

/* Sets the option's field in values from text; a flag becomes true for any text. -EINVAL names the option and value. */
int weir_option_parse(const struct weir_opt *opt, const char *text, void *values, struct weir_err *err);

/* Checks a field that was set without parsing against the bounds: 0, or -EINVAL as weir_option_parse. "auto" and a size
 * of 0x0 pass. */
int weir_option_check(const struct weir_opt *opt, const void *values, struct weir_err *err);

/* The value as a user would type it, for flags "true" or "false"; NULL: a text that is not set. Uses buffer, or borrows
 * the text itself. */
const char *weir_option_text(const struct weir_opt *opt, const void *values, char buffer[WEIR_OPTION_TEXT]);
/* The same for an option that differs from its default; "" for a flag that is set, NULL for the default. */
const char *weir_option_typed(const struct weir_opt *opt, const void *values, char buffer[WEIR_OPTION_TEXT]);

/* Writes the value as a member of the open object: the name with underscores, "auto" as text. */
void weir_option_json(const struct weir_opt *opt, const void *values, struct weir_json *json);

/* Choice number index of a list "a|b"; "" past the end. */
void weir_option_choice(const char *choices, int index, char text[WEIR_OPTION_TEXT]);

/* Copies a name with underscores for hyphens, cut to size bytes. */
void weir_option_key(char *key, size_t size, const char *name);

/* ---- configuration structs of other versions ---- */

/* Public configuration structs start with their size_t size. Options are only appended: an older program's struct is
 * shorter, and missing options take their defaults; a newer program's struct is longer, and its extra bytes must be 0.
 */

/* Size of the first version of a struct. last: its last member in that version, which stays when options are appended.
 */
#define WEIR_SIZED_LEAST(type, last) (offsetof(type, last) + sizeof(((type *)0)->last))

/* Copies a program's struct over this library's, which holds the defaults and keeps its own size. type is "struct
 * weir_loader_config", for messages. -EINVAL: given's size is below least, or implausible; -ENOTSUP: given sets an
 * option that this library lacks. */
int weir_sized_copy(void *full, size_t full_size, size_t least, const void *given, const char *type,
                    struct weir_err *err);

/* Copies this library's struct to a program's of size bytes, zeroes what is beyond, and sets its size. */
void weir_sized_fill(void *out, size_t size, const void *full, size_t full_size);

#endif
