/* options.h: commands and their options: parsing, --config, help, and the settings as JSON. */
#ifndef WEIR_CLI_OPTIONS_H
#define WEIR_CLI_OPTIONS_H

#include "base/document.h"
#include "pipeline/loader_options.h"
#include "weir/base.h"

#include <signal.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>

/* Selects the rows of a shared option table that a command has. The table ends with a row that has no name. */
struct weir_opt_set {
    const struct weir_opt *opts; /* NULL after the last set */
    size_t at;                   /* offset of the struct described by the table, within the command's struct */
    unsigned users;              /* bit mask; selects the rows with at least one of these bits */
};

/* Sets of a command that opens a dataset. at is the offset of a struct weir_loader_config in the command's struct. */
#define WEIR_DATASET_SETS(at)                                                                                          \
    {                                                                                                                  \
        {weir_loader_opts, at, WEIR_FOR_DATA | WEIR_FOR_CACHE},                                                        \
        {                                                                                                              \
            0                                                                                                          \
        }                                                                                                              \
    }

/* --help and --help-all, which every command has, and --config, which commands that read data have. */
extern const struct weir_opt weir_opt_help, weir_opt_help_all, weir_opt_config;

/* Headings of weir --help, in order of appearance. */
#define WEIR_GROUP_MEASURE  "Measure"
#define WEIR_GROUP_IMPROVE  "Improve"
#define WEIR_GROUP_DATASETS "Datasets"
#define WEIR_GROUP_EXTRAS   "Extras"

/* An option of another program that a command refuses. */
struct weir_opt_refused {
    const char *name, *why; /* the error is "--NAME: WHY" */
};

struct weir_command {
    const char *name, *summary;
    const char *group; /* WEIR_GROUP_... */
    const char *args;  /* names of the arguments in help, such as "DATA" */
    int min_args, max_args;
    enum weir_opt_path arg_paths[2]; /* how the first argument is used, and how later ones are */
    const struct weir_opt *opts;     /* options that only this command has */
    size_t n_opts;
    const struct weir_opt_refused *refused; /* ends with a row without a name; may be NULL */
    const struct weir_opt_set *sets;        /* options shared with other commands; may be NULL */
    bool takes_config;                      /* accepts --config */
    const char *examples; /* for the man page; each line is a command, a tab and an explanation; may be NULL */
    const char *notes; /* printed after the options in help; may be NULL. Lines are wrapped; one that begins with spaces
                          is a row of a table, and continues below its second column */
    int (*run)(const struct weir_command *command, int argc, char **argv); /* returns the exit status */
};

/* Iterates over a command's own options, then over those of its sets. Initialise it with {.command = command}. */
struct weir_opt_walk {
    const struct weir_command *command;
    const struct weir_opt *opt; /* the current option */
    size_t at;                  /* offset, within the command's struct, of the struct that contains opt's field */
    const char *topic;          /* heading of the current option; NULL: none */
    size_t table, row;          /* private: position of the next option; table 0 contains the command's own options */
};
bool weir_opt_next(struct weir_opt_walk *walk); /* returns false after the last option */

/* Exit statuses of all commands; weir --help and the man pages print this table. X(name, status, meaning). */
#define WEIR_EXIT_STATUSES(X)                                                                                          \
    X(SUCCESS, 0, "success")                                                                                           \
    X(FAILURE, 1, "failure")                                                                                           \
    X(USAGE, 2, "usage error")                                                                                         \
    X(FOUND, 3, "unusable data (verify) or data wait above --max-wait (run)")                                          \
    X(SLOWER, 4, "slower than --fail-if-slower (compare)")                                                             \
    X(SIGINT, 130, "ended by SIGINT (Ctrl-C)")                                                                         \
    X(SIGTERM, 143, "ended by SIGTERM")
#define WEIR_EXIT_ENUM(name, status, meaning) WEIR_EXIT_##name = (status),
enum weir_exit { WEIR_EXIT_STATUSES(WEIR_EXIT_ENUM) };

/* Returns the exit status of a command that a signal has ended: the shell's, 128 more than the signal's number. */
static inline int weir_exit_by_signal(int number)
{
    return WEIR_EXIT_SIGINT - SIGINT + number;
}

enum weir_parse { WEIR_PARSE_RUN, WEIR_PARSE_HELP, WEIR_PARSE_USAGE, WEIR_PARSE_NO_MEMORY };

/* Registers all commands, in a list that ends with NULL and must remain valid until the process ends. A --config file
 * can then contain options of any registered command. Options of other commands are skipped. */
void weir_options_register(const struct weir_command *const *commands);

/* Fills values from the defaults, then the --config file, then argv[1..]; later sources take precedence. argv[0] is the
 * command's name, and "--" ends the options. Stores up to max_args positional arguments in args. --help and
 * --help-all print to stdout and return WEIR_PARSE_HELP (exit status 0). A usage error prints one line and a hint to
 * stderr and returns WEIR_PARSE_USAGE (exit status 2). If an output is also an input or another output, only the line
 * is printed. WEIR_PARSE_NO_MEMORY also prints one line (exit status 1). */
enum weir_parse weir_options_parse(const struct weir_command *command, void *values, size_t size, int argc, char **argv,
                                   const char **args, int *n_args);

/* Returns the value of the last option --NAME before "--" in argv[1..], without parsing the others; NULL if there is
 * none. */
const char *weir_options_value(int argc, char **argv, const char *name);

/* Returns the exit status for a command that does not run after parsing. */
static inline int weir_parse_status(enum weir_parse parse)
{
    return parse == WEIR_PARSE_HELP    ? WEIR_EXIT_SUCCESS
           : parse == WEIR_PARSE_USAGE ? WEIR_EXIT_USAGE
                                       : WEIR_EXIT_FAILURE;
}

/* Prints "weir COMMAND: ..." and a hint to stderr. Returns -EINVAL. */
int weir_usage_error(const struct weir_command *command, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* Write all options as members of the open JSON object (weir_option_json), and as an object, which begins with the
 * member "data" unless data is NULL. */
void weir_options_json(const struct weir_command *command, const void *values, struct weir_json *json);
void weir_options_object(struct weir_json *json, const char *key, const char *data, const struct weir_command *command,
                         const void *values);
/* The same in a document's JSON. */
void weir_options_document(struct weir_document *document, const char *key, const char *data,
                           const struct weir_command *command, const void *values);

/* Calls put for each option of the sets that differs from its default, in table order. value is the value as it would
 * be typed, or NULL for a flag, and is valid only during the call. */
typedef void weir_opt_typed_fn(void *user, const struct weir_opt *opt, const char *value);
void weir_options_typed(const struct weir_opt_set *sets, const void *values, weir_opt_typed_fn *put, void *user);

/* Calls show for each heading, with a NULL opt, and then for each option below the heading. --help and
 * --help-all come last. */
typedef void weir_opt_show_fn(void *user, const char *heading, const struct weir_opt *opt);
void weir_options_by_topic(const struct weir_command *command, weir_opt_show_fn *show, void *user);

/* Prints a command's help, wrapped at the width of `out`. all: all options with their explanations, otherwise the
 * common ones, or all if none is marked as common. */
void weir_options_help(const struct weir_command *command, bool all, FILE *out);

/* Finds suggestions for "did you mean". *best is the smallest edit distance so far and starts as INT_MAX. Returns true
 * and lowers *best if typed is similar to name and closer than *best. */
bool weir_names_close(const char *typed, const char *name, int *best);

/* ---- config_file.c: settings files for --config, with lines `option = value`. Spaces around the option and the value
 * are ignored. A '#' at the start of a line or after a space begins a comment. docs/tune.md describes the format. */

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
