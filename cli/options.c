#include "cli/options.h"
#include "base/shortage.h"
#include "cli/commands.h"
#include "cli/outputs.h"
#include "cli/progress.h"
#include "pipeline/report/log_fields.h"

#include <assert.h>
#include <errno.h>
#include <limits.h>
#include <signal.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/param.h>
#include <unistd.h>

enum { NAME_BYTES = 64 };

const struct weir_opt weir_opt_help = {.name = "help", .kind = WEIR_OPT_FLAG, .help = "this help"};
const struct weir_opt weir_opt_help_all = {
    .name = "help-all", .kind = WEIR_OPT_FLAG, .help = "all options, with explanations"};
const struct weir_opt weir_opt_config = {.name = "config",
                                         .kind = WEIR_OPT_TEXT,
                                         .value = "FILE",
                                         .help = "settings file with lines of the form option = value",
                                         .details = "The command line takes precedence.",
                                         .path = WEIR_PATH_READ};

static const struct weir_command *const *all_commands;

void weir_options_register(const struct weir_command *const *commands)
{
    all_commands = commands;
}

int weir_usage_error(const struct weir_command *command, const char *format, ...)
{
    struct weir_err err = WEIR_ERR_NONE;
    char text[sizeof err.text];
    va_list args;
    va_start(args, format);
    vsnprintf(text, sizeof text, format, args);
    va_end(args);
    weir_err_set(&err, -EINVAL, "%s", text); /* removes control characters that the user may have typed */
    fprintf(stderr, "weir %s: %s\nTry: weir %s --help\n", command->name, err.text, command->name);
    return -EINVAL;
}

/* If memory, open files or processes ran out, appends advice, unless the error already contains some. */
int weir_cli_fail(const struct weir_command *command, const struct weir_err *err)
{
    const char *advice = weir_is_shortage(err->code) && !strchr(err->text, ';') ? weir_machine_advice(err->code) : NULL;
    fprintf(stderr, "%sweir %s: %s%s%s\n", weir_progress_erase(), command->name, err->text, advice ? "; " : "",
            advice ? advice : "");
    return 1;
}

void weir_cli_exec(char *const *argv)
{
    signal(SIGPIPE, SIG_DFL); /* exec resets handlers, but not ignored signals */
    signal(SIGXFSZ, SIG_DFL);
    execvp(argv[0], argv);
}

/* ---- names ---- */

/* Levenshtein distance of two short names. */
static int distance(const char *a, const char *b)
{
    int row[NAME_BYTES + 1];
    size_t n = MIN(strlen(b), (size_t)NAME_BYTES);
    for (size_t j = 0; j <= n; j++)
        row[j] = (int)j;
    for (size_t i = 0; a[i] && i < NAME_BYTES; i++) {
        int diagonal = row[0];
        row[0] = (int)i + 1;
        for (size_t j = 0; j < n; j++) {
            int changed = diagonal + (a[i] != b[j]);
            diagonal = row[j + 1];
            row[j + 1] = MIN(changed, MIN(row[j], diagonal) + 1);
        }
    }
    return row[n];
}

bool weir_names_close(const char *typed, const char *name, int *best)
{
    int d = distance(typed, name);
    int limit = (int)strlen(name) / 3 + 1;
    /* A substring of a name counts as close, such as --epochs for --num-epochs or --batch for --batch-size. */
    if (d > limit && strlen(typed) >= 4 && strstr(name, typed))
        d = limit;
    if (d > limit || d >= *best)
        return false;
    *best = d;
    return true;
}

/* Copies the name from "name" or "name=value", and replaces underscores with hyphens. */
static void option_name(const char *typed, char name[NAME_BYTES])
{
    size_t n = strcspn(typed, "=");
    if (n >= NAME_BYTES)
        n = NAME_BYTES - 1;
    for (size_t i = 0; i < n; i++)
        name[i] = typed[i] == '_' ? '-' : typed[i];
    name[n] = '\0';
}

/* ---- iterating over the tables ---- */

static bool next_own(struct weir_opt_walk *walk)
{
    if (walk->row == walk->command->n_opts)
        return false;
    walk->opt = &walk->command->opts[walk->row++];
    walk->at = 0;
    if (walk->opt->topic)
        walk->topic = walk->opt->topic;
    return true;
}

static bool next_shared(struct weir_opt_walk *walk, const struct weir_opt_set *set)
{
    for (const struct weir_opt *opt = &set->opts[walk->row]; opt->name; opt++) {
        walk->row++;
        if (opt->topic)
            walk->topic = opt->topic;
        if (!(opt->users & set->users))
            continue;
        walk->opt = opt;
        walk->at = set->at;
        return true;
    }
    return false;
}

bool weir_opt_next(struct weir_opt_walk *walk)
{
    const struct weir_opt_set *sets = walk->command->sets;
    while (true) {
        if (walk->table == 0 ? next_own(walk) : next_shared(walk, &sets[walk->table - 1]))
            return true;
        if (!sets || !sets[walk->table].opts)
            return false;
        walk->table++;
        walk->row = 0;
        walk->topic = NULL;
    }
}

void weir_options_typed(const struct weir_opt_set *sets, const void *values, weir_opt_typed_fn *put, void *user)
{
    const struct weir_command command = {.sets = sets};
    char buffer[WEIR_OPTION_TEXT];
    for (struct weir_opt_walk walk = {.command = &command}; weir_opt_next(&walk);) {
        const char *typed = weir_option_typed(walk.opt, (const char *)values + walk.at, buffer);
        if (typed)
            put(user, walk.opt, walk.opt->kind == WEIR_OPT_FLAG ? NULL : typed);
    }
}

/* ---- finding an option ---- */

static bool is_named(const char *name, const char *typed)
{
    return name && strcmp(name, typed) == 0;
}

static bool find_option(const struct weir_command *command, const char *name, struct weir_opt_walk *found)
{
    *found = (struct weir_opt_walk){.command = command};
    while (weir_opt_next(found))
        if (is_named(found->opt->name, name) || is_named(found->opt->old_name, name))
            return true;
    return false;
}

static int unknown_option(const struct weir_command *command, const char *name)
{
    const struct weir_opt *near = NULL;
    int best = INT_MAX;
    for (const struct weir_opt_refused *row = command->refused; row && row->name; row++)
        if (is_named(row->name, name))
            return weir_usage_error(command, "--%s: %s", name, row->why);
    for (struct weir_opt_walk walk = {.command = command}; weir_opt_next(&walk);)
        if (weir_names_close(name, walk.opt->name, &best))
            near = walk.opt;
    if (near)
        return weir_usage_error(command, "unknown option --%s; did you mean --%s?", name, near->name);
    return weir_usage_error(command, "unknown option --%s; weir %s --help-all lists all options", name, command->name);
}

/* ---- setting an option ---- */

/* Where an option was given, for error messages. */
struct origin {
    const struct weir_command *command;
    const char *file; /* settings file; NULL for the command line */
    int line;
};

static int usage_error(const struct origin *origin, const char *text)
{
    if (origin->file)
        return weir_usage_error(origin->command, "%s:%d: %s", origin->file, origin->line, text);
    return weir_usage_error(origin->command, "%s", text);
}

/* name is the option's current or old name, as given by the user. */
static int set_option(const struct origin *origin, const struct weir_opt_walk *found, const char *name,
                      const char *text, void *values)
{
    struct weir_err err = WEIR_ERR_NONE;
    const struct weir_opt *opt = found->opt;
    if (is_named(opt->old_name, name)) {
        fprintf(stderr, "weir %s: ", origin->command->name);
        if (origin->file)
            fprintf(stderr, "%s:%d: ", origin->file, origin->line);
        fprintf(stderr, "--%s is deprecated and will be removed in the next release; use --%s\n", name, opt->name);
    }
    if (weir_option_parse(opt, text, (char *)values + found->at, &err) < 0)
        return usage_error(origin, err.text);
    return 0;
}

/* ---- settings files ---- */

static bool some_command_has(const char *name)
{
    struct weir_opt_walk found;
    for (const struct weir_command *const *command = all_commands; command && *command; command++)
        if (find_option(*command, name, &found))
            return true;
    return false;
}

static int take_line(const struct origin *origin, const struct weir_config_line *line, void *values)
{
    char text[256];
    struct weir_opt_walk found;
    bool known = find_option(origin->command, line->name, &found);
    if (!known && some_command_has(line->name))
        return 0;
    if (!known)
        snprintf(text, sizeof text, "no command has an option --%s", line->name);
    else if (found.opt->kind != WEIR_OPT_FLAG)
        return set_option(origin, &found, line->name, line->value, values);
    else if (strcmp(line->value, "false") == 0)
        return 0;
    else if (strcmp(line->value, "true") == 0)
        return set_option(origin, &found, line->name, "", values);
    else
        snprintf(text, sizeof text, "%s '%s': must be true or false", found.opt->name, line->value);
    return usage_error(origin, text);
}

/* String options point into the file's content, which remains valid until the next call. */
static int take_file(const struct weir_command *command, const char *path, void *values)
{
    static char *text;
    struct weir_config_file file;
    struct weir_err err = WEIR_ERR_NONE;
    size_t length;
    free(text);
    if (weir_config_read(path, &text, &length, &err) < 0)
        return weir_usage_error(command, "--config %s", err.text);
    if (weir_config_parse(&file, text, length, &err) < 0)
        return weir_usage_error(command, "%s:%s", path, err.text);
    int rc = 0;
    for (size_t i = 0; i < file.n && rc == 0; i++) {
        const struct origin origin = {command, path, file.lines[i].number};
        rc = take_line(&origin, &file.lines[i], values);
    }
    return rc;
}

/* Returns whether argv[i] is --config. Stores its value, from this argument or the next, in *path; NULL if it is
 * missing. */
static bool is_config(const struct weir_command *command, int argc, char **argv, int i, const char **path)
{
    size_t n = strlen(weir_opt_config.name);
    if (!command->takes_config || strncmp(argv[i], "--", 2) != 0 || strncmp(argv[i] + 2, weir_opt_config.name, n) != 0)
        return false;
    const char *rest = argv[i] + 2 + n;
    if (*rest != '=' && *rest != '\0')
        return false;
    *path = *rest == '=' ? rest + 1 : i + 1 < argc ? argv[i + 1] : NULL;
    return true;
}

/* Applies the settings file before the command line is parsed, so that the command line takes precedence. */
static int take_config(const struct weir_command *command, void *values, int argc, char **argv, const char **config)
{
    const char *found = NULL, *path;
    for (int i = 1; i < argc && strcmp(argv[i], "--") != 0; i++) {
        if (!is_config(command, argc, argv, i, &path))
            continue;
        if (!path || !*path || strncmp(path, "--", 2) == 0)
            return weir_usage_error(command, "--config needs a value: %s", weir_opt_config.value);
        if (found)
            return weir_usage_error(command, "--config given twice");
        found = path;
    }
    *config = found;
    return found ? take_file(command, found, values) : 0;
}

/* ---- the command line ---- */

/* Parses the option at argv[*i]. Its value follows a '=' or is argv[*i + 1], in which case *i is incremented. */
static int take_option(const struct weir_command *command, int argc, char **argv, int *i, void *values)
{
    const char *typed = argv[*i] + 2;
    const char *value = strchr(typed, '=');
    const struct origin origin = {.command = command};
    struct weir_opt_walk found;
    char name[NAME_BYTES];
    if (is_config(command, argc, argv, *i, &value)) { /* already applied by take_config */
        *i += typed[strlen(weir_opt_config.name)] != '=';
        return 0;
    }
    option_name(typed, name);
    if (!find_option(command, name, &found))
        return unknown_option(command, name);
    const struct weir_opt *opt = found.opt;
    if (opt->kind == WEIR_OPT_FLAG)
        return value ? weir_usage_error(command, "--%s takes no value", opt->name)
                     : set_option(&origin, &found, name, "", values);
    if (value)
        return set_option(&origin, &found, name, value + 1, values);
    if (opt->otherwise && (*i + 1 >= argc || !opt->is_value(argv[*i + 1])))
        return set_option(&origin, &found, name, opt->otherwise, values);
    if (*i + 1 >= argc)
        return weir_usage_error(command, "--%s needs a value: %s", opt->name, opt->value);
    value = argv[++*i];
    if (strncmp(value, "--", 2) == 0)
        return weir_usage_error(command, "--%s needs a value: %s (if the value begins with --, write --%s=%s)",
                                opt->name, opt->value, opt->name, value);
    return set_option(&origin, &found, name, value, values);
}

static void set_preset(const struct weir_opt *opt, void *values)
{
    struct weir_err err = WEIR_ERR_NONE;
    if (opt->preset && weir_option_parse(opt, opt->preset, values, &err) < 0)
        assert(!"every default in the table must parse");
}

/* Sets the defaults of all rows of the shared tables, even of rows that the command does not have. The command's own
 * rows come last, so their defaults override shared ones. */
static void set_presets(const struct weir_command *command, void *values)
{
    for (const struct weir_opt_set *set = command->sets; set && set->opts; set++)
        for (const struct weir_opt *opt = set->opts; opt->name; opt++)
            set_preset(opt, (char *)values + set->at);
    for (size_t i = 0; i < command->n_opts; i++)
        set_preset(&command->opts[i], values);
}

/* Returns whether an argument before "--" is this one. */
static bool has_argument(int argc, char **argv, const char *argument)
{
    for (int i = 1; i < argc && strcmp(argv[i], "--") != 0; i++)
        if (strcmp(argv[i], argument) == 0)
            return true;
    return false;
}

const char *weir_options_value(int argc, char **argv, const char *name)
{
    const char *value = NULL;
    char typed[NAME_BYTES];
    for (int i = 1; i < argc && strcmp(argv[i], "--") != 0; i++) {
        if (strncmp(argv[i], "--", 2) != 0)
            continue;
        option_name(argv[i] + 2, typed);
        const char *rest = strchr(argv[i], '=');
        if (is_named(name, typed))
            value = rest ? rest + 1 : argv[i + 1];
    }
    return value;
}

static int take_all(const struct weir_command *command, void *values, int argc, char **argv, const char **args,
                    int *n_args)
{
    bool options = true;
    for (int i = 1; i < argc; i++) {
        int rc = 0;
        if (options && strcmp(argv[i], "--") == 0)
            options = false;
        else if (options && strncmp(argv[i], "--", 2) == 0)
            rc = take_option(command, argc, argv, &i, values);
        else if (options && argv[i][0] == '-' && argv[i][1])
            rc = weir_usage_error(command, "unknown option %s; options begin with two hyphens", argv[i]);
        else if (*n_args == command->max_args)
            rc = weir_usage_error(command, "unexpected argument '%s'", argv[i]);
        else
            args[(*n_args)++] = argv[i];
        if (rc < 0)
            return rc;
    }
    if (*n_args < command->min_args)
        return weir_usage_error(command, "%s is missing", command->args);
    return 0;
}

enum weir_parse weir_options_parse(const struct weir_command *command, void *values, size_t size, int argc, char **argv,
                                   const char **args, int *n_args)
{
    const char *config = NULL;
    struct weir_err err = WEIR_ERR_NONE;
    memset(values, 0, size);
    *n_args = 0;
    bool all = has_argument(argc, argv, "--help-all") || has_argument(argc, argv, "--help_all");
    if (all || has_argument(argc, argv, "--help") || has_argument(argc, argv, "-h")) {
        weir_options_help(command, all, stdout);
        return WEIR_PARSE_HELP;
    }
    set_presets(command, values);
    if (take_config(command, values, argc, argv, &config) < 0 ||
        take_all(command, values, argc, argv, args, n_args) < 0)
        return WEIR_PARSE_USAGE;
    if (weir_outputs_check(command, values, args, *n_args, config, &err) == 0)
        return WEIR_PARSE_RUN;
    weir_cli_fail(command, &err);
    return err.code == -ENOMEM ? WEIR_PARSE_NO_MEMORY : WEIR_PARSE_USAGE;
}

/* ---- JSON ---- */

void weir_options_object(struct weir_json *json, const char *key, const char *data, const struct weir_command *command,
                         const void *values)
{
    weir_json_object(json, key);
    if (data)
        weir_json_text(json, "data", data);
    weir_options_json(command, values, json);
    weir_json_end(json, '}');
}

void weir_options_document(struct weir_document *document, const char *key, const char *data,
                           const struct weir_command *command, const void *values)
{
    if (document->json)
        weir_options_object(document->json, key, data, command, values);
}

void weir_options_json(const struct weir_command *command, const void *values, struct weir_json *json)
{
    for (struct weir_opt_walk walk = {.command = command}; weir_opt_next(&walk);)
        weir_option_json(walk.opt, (const char *)values + walk.at, json);
}
