/* options.h: one table per command drives parsing, help and the echo of the configuration in JSON. */
#ifndef WEIR_CLI_OPTIONS_H
#define WEIR_CLI_OPTIONS_H

#include "weir/base.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

enum weir_opt_kind {
    WEIR_OPT_FLAG,   /* bool: present = true */
    WEIR_OPT_INT,    /* int */
    WEIR_OPT_UINT64, /* uint64_t */
    WEIR_OPT_DOUBLE, /* double */
    WEIR_OPT_TEXT,   /* const char *: borrowed from argv, or from the file of --config until the next call */
    WEIR_OPT_ENUM,   /* int: index into the choices */
    WEIR_OPT_SIZE,   /* struct weir_opt_size: "WxH" */
    WEIR_OPT_BYTES,  /* uint64_t: "512M"; K, M, G and T are powers of 1024 */
};

/* What a command does with the file or folder that a text option, or an argument, names (cli/outputs.h). */
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
    size_t offset;           /* of the field in the command's struct */
    const char *value;       /* what help shows: "N", "FILE", "WxH"; for enums the choices: "rgb|bgr" */
    const char *preset;      /* default, parsed as if typed; NULL leaves the field zero */
    const char *help;        /* one line */
    double min, max;         /* bounds of numbers, checked when max > min */
    bool allow_auto;         /* "auto" is WEIR_OPT_AUTO, of bytes WEIR_OPT_BYTES_AUTO */
    bool allow_empty;        /* of texts: nothing is a value, too */
    enum weir_opt_path path; /* of texts that name a file or folder */
    const char *files;       /* WEIR_PATH_WRITE_INTO: known names of the files, spaces between; may be NULL */
};

/* What commands have beside their own options: all of them --help, those that read data --config. */
extern const struct weir_opt weir_opt_help, weir_opt_config;

/* Options that help and the man page show together, under a heading. */
struct weir_opt_topic {
    const char *heading;
    const char *names; /* in this order, spaces between them */
};

/* Headings of weir --help, in its order. */
#define WEIR_GROUP_RUN    "Load and report"
#define WEIR_GROUP_TUNE   "Choose settings and formats"
#define WEIR_GROUP_DATA   "Inspect and make datasets"
#define WEIR_GROUP_EXTRAS "Extras"

struct weir_command {
    const char *name, *summary;
    const char *group; /* WEIR_GROUP_... */
    const char *args;  /* "DATA" as help shows it */
    int min_args, max_args;
    enum weir_opt_path arg_paths[2]; /* of the first argument, and of all later ones */
    const struct weir_opt *opts;
    size_t n_opts;
    bool takes_config;                   /* options may come from a file: --config */
    const struct weir_opt_topic *topics; /* NULL: one list in the table's order; else the last heading is NULL */
    const char *examples;   /* of the man page, a line each: the command, a tab, what it does; may be NULL */
    const char *notes;      /* printed below the options in help; may be NULL */
    void (*complete)(void); /* fills parts of the tables that other tables hold, once before use; may be NULL */
    int (*run)(const struct weir_command *command, int argc, char **argv); /* returns the exit status */
};

enum weir_parse { WEIR_PARSE_RUN, WEIR_PARSE_HELP, WEIR_PARSE_USAGE, WEIR_PARSE_NO_MEMORY };

/* Registers all commands, a list that ends with NULL: a --config file may hold options of other commands, which are
 * skipped. Borrowed until the process ends. */
void weir_options_register(const struct weir_command *const *commands);

/* Fills values (zeroed here) from presets, the file of --config and argv[1..], the later of them first; argv[0] is the
 * command's name. Positional arguments go to args (max_args of them). --help prints to stdout and returns
 * WEIR_PARSE_HELP (exit 0). A usage error prints one line and a hint to stderr and returns WEIR_PARSE_USAGE (exit 2);
 * so does an output that is an input, or another output (cli/outputs.h), without the hint. WEIR_PARSE_NO_MEMORY: one
 * line (exit 1).
 * "--" ends the options. */
enum weir_parse weir_options_parse(const struct weir_command *command, void *values, size_t size, int argc, char **argv,
                                   const char **args, int *n_args);

/* The exit status of a command that ends with its parsing. */
static inline int weir_parse_status(enum weir_parse parse)
{
    return parse == WEIR_PARSE_HELP ? 0 : parse == WEIR_PARSE_USAGE ? 2 : 1;
}

/* Prints "weir COMMAND: ..." and a hint to stderr; -EINVAL. */
int weir_usage_error(const struct weir_command *command, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* Writes every option with its value as a member of the object that is open in json; names keep their hyphens as
 * underscores (batch_size); auto is written as "auto". */
void weir_options_json(const struct weir_command *command, const void *values, struct weir_json *json);

/* Calls show for each topic's heading (opt NULL) and the options below it, --help last; no heading without topics. */
typedef void weir_opt_show_fn(void *user, const char *heading, const struct weir_opt *opt);
void weir_options_by_topic(const struct weir_command *command, weir_opt_show_fn *show, void *user);

void weir_options_help(const struct weir_command *command, FILE *out);

/* True, and *best lowered, when typed looks more like name than what *best (INT_MAX at first) stands for: for "did you
 * mean". */
bool weir_names_close(const char *typed, const char *name, int *best);

#endif
