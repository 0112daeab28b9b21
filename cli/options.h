/* options.h: commands and their options: parsing, --config, help, and the echo of the settings in JSON. */
#ifndef WEIR_CLI_OPTIONS_H
#define WEIR_CLI_OPTIONS_H

#include "pipeline/loader_options.h"

#include <stdio.h>

/* Rows of a shared table that a command has. The table ends with a row without a name. */
struct weir_opt_set {
    const struct weir_opt *opts; /* NULL: no more sets */
    size_t at;                   /* offset, in the command's struct, of the struct that the table describes */
    unsigned users;              /* selects rows with one of these bits */
};

/* The sets of a command that opens a dataset; its struct has a struct weir_loader_config at this offset. */
#define WEIR_DATASET_SETS(at)                                                                                          \
    {                                                                                                                  \
        {weir_loader_opts, at, WEIR_FOR_DATA},                                                                         \
        {                                                                                                              \
            0                                                                                                          \
        }                                                                                                              \
    }

/* Options of every command, and of commands that read data. */
extern const struct weir_opt weir_opt_help, weir_opt_config;

/* Headings of weir --help, in order. */
#define WEIR_GROUP_RUN    "Load and report"
#define WEIR_GROUP_TUNE   "Choose settings and formats"
#define WEIR_GROUP_DATA   "Inspect and make datasets"
#define WEIR_GROUP_EXTRAS "Extras"

struct weir_command {
    const char *name, *summary;
    const char *group; /* WEIR_GROUP_... */
    const char *args;  /* "DATA" as help shows it */
    int min_args, max_args;
    enum weir_opt_path arg_paths[2]; /* uses of the first argument, and of later ones */
    const struct weir_opt *opts;     /* its own options */
    size_t n_opts;
    const struct weir_opt_set *sets; /* options shared with other commands; may be NULL */
    bool takes_config;               /* has --config */
    const char *examples;            /* for the man page, one line each: command, tab, explanation; may be NULL */
    const char *notes;               /* printed below the options in help; may be NULL */
    int (*run)(const struct weir_command *command, int argc, char **argv); /* returns the exit status */
};

/* Visits a command's options: its own, then those of the sets. Start with {.command = command}. */
struct weir_opt_walk {
    const struct weir_command *command;
    const struct weir_opt *opt; /* the current one */
    size_t at;                  /* of the struct that opt->offset is in, within the command's struct */
    const char *topic;          /* heading of the current option; NULL: none */
    size_t table, row;          /* private: position of the next one; table 0 is the command's own */
};
bool weir_opt_next(struct weir_opt_walk *walk); /* false: no more */

enum weir_parse { WEIR_PARSE_RUN, WEIR_PARSE_HELP, WEIR_PARSE_USAGE, WEIR_PARSE_NO_MEMORY };

/* Registers all commands, a list that ends with NULL: a --config file may hold options of other commands, which are
 * skipped. Borrowed until the process ends. */
void weir_options_register(const struct weir_command *const *commands);

/* Fills values, zeroed first, from defaults, the --config file and argv[1..], in rising precedence; argv[0] is the
 * command's name, and "--" ends the options. Stores up to max_args positional arguments in args. --help prints to
 * stdout and returns WEIR_PARSE_HELP (exit 0). A usage error prints one line and a hint to stderr and returns
 * WEIR_PARSE_USAGE (exit 2); an output that is also an input or another output does the same without the hint.
 * WEIR_PARSE_NO_MEMORY prints one line (exit 1). */
enum weir_parse weir_options_parse(const struct weir_command *command, void *values, size_t size, int argc, char **argv,
                                   const char **args, int *n_args);

/* Exit status of a command that ends after parsing. */
static inline int weir_parse_status(enum weir_parse parse)
{
    return parse == WEIR_PARSE_HELP ? 0 : parse == WEIR_PARSE_USAGE ? 2 : 1;
}

/* Prints "weir COMMAND: ..." and a hint to stderr. Returns -EINVAL. */
int weir_usage_error(const struct weir_command *command, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* Writes all options as members of the open object; see weir_option_json. */
void weir_options_json(const struct weir_command *command, const void *values, struct weir_json *json);

/* Calls put for each option of the sets that differs from its default, in table order. value: as typed, NULL for a
 * flag; valid during the call. */
typedef void weir_opt_typed_fn(void *user, const struct weir_opt *opt, const char *value);
void weir_options_typed(const struct weir_opt_set *sets, const void *values, weir_opt_typed_fn *put, void *user);

/* Calls show for each heading (opt NULL) and the options below it; --help comes last. */
typedef void weir_opt_show_fn(void *user, const char *heading, const struct weir_opt *opt);
void weir_options_by_topic(const struct weir_command *command, weir_opt_show_fn *show, void *user);

/* details: includes the options' explanations. */
void weir_options_help(const struct weir_command *command, bool details, FILE *out);

/* For "did you mean": returns true and lowers *best, an edit distance, if typed is closer to name than *best. Start
 * with INT_MAX. */
bool weir_names_close(const char *typed, const char *name, int *best);

#endif
