#include "cli/options.h"
#include "base/shortage.h"
#include "cli/commands.h"
#include "cli/config_file.h"
#include "cli/option_values.h"
#include "cli/outputs.h"

#include <assert.h>
#include <errno.h>
#include <limits.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/param.h>

enum { NAME_BYTES = 64, COLUMN_MAX = 34 };

const struct weir_opt weir_opt_help = {.name = "help", .kind = WEIR_OPT_FLAG, .help = "print this"};
const struct weir_opt weir_opt_config = {
    .name = "config",
    .kind = WEIR_OPT_TEXT,
    .value = "FILE",
    .help = "read options from a file of lines 'option = value'; the command line takes precedence",
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
    weir_err_set(&err, -EINVAL, "%s", text); /* what the user typed may hold control characters */
    fprintf(stderr, "weir %s: %s\nTry: weir %s --help\n", command->name, err.text, command->name);
    return -EINVAL;
}

/* What to do about a shortage is the same wherever it occurs: it is added here, unless the error line has it. */
int weir_cli_fail(const struct weir_command *command, const struct weir_err *err)
{
    const char *advice = weir_is_shortage(err->code) && !strchr(err->text, ';') ? weir_machine_advice(err->code) : NULL;
    fprintf(stderr, "weir %s: %s%s%s\n", command->name, err->text, advice ? "; " : "", advice ? advice : "");
    return 1;
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
    /* "--epochs" for --num-epochs, "--batch" for --batch-size: part of a name is a near miss as well. */
    if (d > limit && strlen(typed) >= 4 && strstr(name, typed))
        d = limit;
    if (d > limit || d >= *best)
        return false;
    *best = d;
    return true;
}

/* Copies the name part of "--name=value" with hyphens for underscores. */
static void option_name(const char *typed, char name[NAME_BYTES])
{
    size_t n = strcspn(typed, "=");
    if (n >= NAME_BYTES)
        n = NAME_BYTES - 1;
    for (size_t i = 0; i < n; i++)
        name[i] = typed[i] == '_' ? '-' : typed[i];
    name[n] = '\0';
}

static const struct weir_opt *find_option(const struct weir_command *command, const char *name, size_t length)
{
    for (size_t i = 0; i < command->n_opts; i++)
        if (strncmp(command->opts[i].name, name, length) == 0 && command->opts[i].name[length] == '\0')
            return &command->opts[i];
    return NULL;
}

static int unknown_option(const struct weir_command *command, const char *name)
{
    const struct weir_opt *near = NULL;
    int best = INT_MAX;
    for (size_t i = 0; i < command->n_opts; i++)
        if (weir_names_close(name, command->opts[i].name, &best))
            near = &command->opts[i];
    if (near)
        return weir_usage_error(command, "unknown option --%s; did you mean --%s?", name, near->name);
    return weir_usage_error(command, "unknown option --%s", name);
}

/* ---- files of options ---- */

static bool some_command_has(const char *name)
{
    for (const struct weir_command *const *command = all_commands; command && *command; command++)
        if (find_option(*command, name, strlen(name)))
            return true;
    return false;
}

static int take_line(const struct weir_option_origin *origin, const struct weir_config_line *line, void *values)
{
    const struct weir_opt *opt = find_option(origin->command, line->name, strlen(line->name));
    if (!opt && some_command_has(line->name))
        return 0;
    if (!opt)
        return weir_usage_error(origin->command, "%s:%d: no command has an option --%s", origin->file, line->number,
                                line->name);
    if (opt->kind != WEIR_OPT_FLAG)
        return weir_option_set(origin, opt, line->value, values);
    if (strcmp(line->value, "false") == 0)
        return 0;
    if (strcmp(line->value, "true") == 0)
        return weir_option_set(origin, opt, "", values);
    return weir_usage_error(origin->command, "%s:%d: %s is true or false, not '%s'", origin->file, line->number,
                            opt->name, line->value);
}

/* Options of text borrow from the file's bytes. */
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
        const struct weir_option_origin origin = {command, path, file.lines[i].number};
        rc = take_line(&origin, &file.lines[i], values);
    }
    return rc;
}

/* Whether argv[i] is --config, and its value, which is the next word unless it is in this one; NULL = it has none. */
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

/* The file's options come before those of the command line, wherever --config stands in it. */
static int take_config(const struct weir_command *command, void *values, int argc, char **argv, const char **config)
{
    const char *found = NULL, *path;
    for (int i = 1; i < argc && strcmp(argv[i], "--") != 0; i++) {
        if (!is_config(command, argc, argv, i, &path))
            continue;
        if (!path || !*path || strncmp(path, "--", 2) == 0)
            return weir_usage_error(command, "--config needs a value: %s", weir_opt_config.value);
        if (found)
            return weir_usage_error(command, "--config is there twice; one file is all that it takes");
        found = path;
    }
    *config = found;
    return found ? take_file(command, found, values) : 0;
}

/* ---- the command line ---- */

/* Takes the option at argv[*i], and its value from argv[*i + 1] when it is not in the same word. */
static int take_option(const struct weir_command *command, int argc, char **argv, int *i, void *values)
{
    const char *typed = argv[*i] + 2;
    const char *value = strchr(typed, '=');
    const struct weir_option_origin origin = {.command = command};
    char name[NAME_BYTES];
    if (is_config(command, argc, argv, *i, &value)) { /* take_config took it */
        *i += typed[strlen(weir_opt_config.name)] != '=';
        return 0;
    }
    option_name(typed, name);
    const struct weir_opt *opt = find_option(command, name, strlen(name));
    if (!opt)
        return unknown_option(command, name);
    if (opt->kind == WEIR_OPT_FLAG)
        return value ? weir_usage_error(command, "--%s takes no value", opt->name)
                     : weir_option_set(&origin, opt, "", values);
    if (value)
        return weir_option_set(&origin, opt, value + 1, values);
    if (*i + 1 >= argc)
        return weir_usage_error(command, "--%s needs a value: %s", opt->name, opt->value);
    value = argv[++*i];
    if (strncmp(value, "--", 2) == 0)
        return weir_usage_error(command, "--%s needs a value: %s (for one that begins with --, write --%s=%s)",
                                opt->name, opt->value, opt->name, value);
    return weir_option_set(&origin, opt, value, values);
}

static int set_presets(const struct weir_command *command, void *values)
{
    const struct weir_option_origin origin = {.command = command};
    for (size_t i = 0; i < command->n_opts; i++) {
        const struct weir_opt *opt = &command->opts[i];
        int rc = opt->preset ? weir_option_set(&origin, opt, opt->preset, values) : 0;
        if (rc < 0)
            return rc;
    }
    return 0;
}

static bool asks_for_help(int argc, char **argv)
{
    for (int i = 1; i < argc && strcmp(argv[i], "--") != 0; i++)
        if (strcmp(argv[i], "--help") == 0 || strcmp(argv[i], "-h") == 0)
            return true;
    return false;
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
    if (asks_for_help(argc, argv)) {
        weir_options_help(command, stdout);
        return WEIR_PARSE_HELP;
    }
    if (set_presets(command, values) < 0 || take_config(command, values, argc, argv, &config) < 0 ||
        take_all(command, values, argc, argv, args, n_args) < 0)
        return WEIR_PARSE_USAGE;
    if (weir_outputs_check(command, values, args, *n_args, config, &err) == 0)
        return WEIR_PARSE_RUN;
    weir_cli_fail(command, &err);
    return err.code == -ENOMEM ? WEIR_PARSE_NO_MEMORY : WEIR_PARSE_USAGE;
}

/* ---- echo and help ---- */

static void write_option(const struct weir_opt *opt, const void *values, struct weir_json *json)
{
    const void *field = (const char *)values + opt->offset;
    const struct weir_opt_size *size = field;
    char key[NAME_BYTES], text[NAME_BYTES];
    snprintf(key, sizeof key, "%s", opt->name);
    for (char *c = key; *c; c++)
        if (*c == '-')
            *c = '_';
    switch (opt->kind) {
    case WEIR_OPT_FLAG:
        weir_json_bool(json, key, *(const bool *)field);
        break;
    case WEIR_OPT_INT:
        if (opt->allow_auto && *(const int *)field == WEIR_OPT_AUTO)
            weir_json_text(json, key, "auto");
        else
            weir_json_int(json, key, *(const int *)field);
        break;
    case WEIR_OPT_UINT64:
    case WEIR_OPT_BYTES:
        if (opt->allow_auto && *(const uint64_t *)field == WEIR_OPT_BYTES_AUTO)
            weir_json_text(json, key, "auto");
        else
            weir_json_uint(json, key, *(const uint64_t *)field);
        break;
    case WEIR_OPT_DOUBLE:
        weir_json_double(json, key, *(const double *)field);
        break;
    case WEIR_OPT_TEXT:
        weir_json_text(json, key, *(const char *const *)field);
        break;
    case WEIR_OPT_ENUM:
        weir_option_choice(opt, *(const int *)field, text);
        weir_json_text(json, key, text);
        break;
    case WEIR_OPT_SIZE:
        snprintf(text, sizeof text, "%dx%d", size->width, size->height);
        weir_json_text(json, key, text);
        break;
    }
}

void weir_options_json(const struct weir_command *command, const void *values, struct weir_json *json)
{
    for (size_t i = 0; i < command->n_opts; i++)
        write_option(&command->opts[i], values, json);
}

static int left_width(const struct weir_opt *opt)
{
    return (int)strlen(opt->name) + (opt->kind == WEIR_OPT_FLAG ? 0 : 1 + (int)strlen(opt->value));
}

static void help_line(const struct weir_opt *opt, int column, FILE *out)
{
    bool flag = opt->kind == WEIR_OPT_FLAG;
    int width = left_width(opt);
    fprintf(out, "  --%s%s%s", opt->name, flag ? "" : " ", flag ? "" : opt->value);
    if (width > column)
        fprintf(out, "\n%*s", column + 4, "");
    else
        fprintf(out, "%*s", column - width, "");
    fprintf(out, "  %s", opt->help);
    if (opt->preset)
        fprintf(out, " (default %s)", opt->preset);
    fputc('\n', out);
}

static void show_topic(const struct weir_command *command, const char *names, weir_opt_show_fn *show, void *user)
{
    for (size_t length; *(names += strspn(names, " ")); names += length) {
        length = strcspn(names, " ");
        const struct weir_opt *opt = find_option(command, names, length);
        assert(opt);
        show(user, NULL, opt);
    }
}

void weir_options_by_topic(const struct weir_command *command, weir_opt_show_fn *show, void *user)
{
    const struct weir_opt_topic *topic = command->topics;
    for (; topic && topic->heading; topic++) {
        show(user, topic->heading, NULL);
        show_topic(command, topic->names, show, user);
    }
    for (size_t i = 0; !topic && i < command->n_opts; i++)
        show(user, NULL, &command->opts[i]);
    if (command->takes_config)
        show(user, NULL, &weir_opt_config);
    show(user, NULL, &weir_opt_help);
}

struct help {
    FILE *out;
    int column;
};

static void show_help(void *user, const char *heading, const struct weir_opt *opt)
{
    struct help *help = user;
    if (heading)
        fprintf(help->out, "\n%s:\n", heading);
    else
        help_line(opt, help->column, help->out);
}

void weir_options_help(const struct weir_command *command, FILE *out)
{
    fprintf(out, "Usage: weir %s%s%s%s\n\n%s\n", command->name, command->args ? " " : "",
            command->args ? command->args : "", command->n_opts ? " [OPTIONS]" : "", command->summary);
    int column = left_width(&weir_opt_help);
    for (size_t i = 0; i < command->n_opts; i++)
        if (left_width(&command->opts[i]) <= COLUMN_MAX)
            column = MAX(column, left_width(&command->opts[i]));
    if (!command->topics)
        fputs("\nOptions:\n", out);
    weir_options_by_topic(command, show_help, &(struct help){out, column});
    if (command->notes)
        fprintf(out, "\n%s%s", command->notes, command->notes[strlen(command->notes) - 1] == '\n' ? "" : "\n");
}
