#include "cli/options.h"
#include "base/shortage.h"
#include "cli/commands.h"

#include <assert.h>
#include <ctype.h>
#include <errno.h>
#include <limits.h>
#include <math.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/param.h>

enum { NAME_BYTES = 64, COLUMN_MAX = 34 };

const struct weir_opt weir_opt_help = {.name = "help", .kind = WEIR_OPT_FLAG, .help = "print this"};

static int usage_error(const struct weir_command *command, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

static int usage_error(const struct weir_command *command, const char *format, ...)
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
        return usage_error(command, "unknown option --%s; did you mean --%s?", name, near->name);
    return usage_error(command, "unknown option --%s", name);
}

/* ---- values ---- */

static int out_of_bounds(const struct weir_command *command, const struct weir_opt *opt, const char *text)
{
    return usage_error(command, "--%s %s is out of bounds: %.12g to %.12g", opt->name, text, opt->min, opt->max);
}

static bool within(const struct weir_opt *opt, double value)
{
    return opt->max <= opt->min || (value >= opt->min && value <= opt->max);
}

static bool ends_number(const char *text, const char *end)
{
    return end != text && *end == '\0';
}

static int parse_int(const struct weir_command *command, const struct weir_opt *opt, const char *text, int *out)
{
    if (opt->allow_auto && strcmp(text, "auto") == 0) {
        *out = WEIR_OPT_AUTO;
        return 0;
    }
    char *end;
    errno = 0;
    long value = strtol(text, &end, 10);
    if (!ends_number(text, end))
        return usage_error(command, "--%s needs a whole number%s, not '%s'", opt->name,
                           opt->allow_auto ? " or auto" : "", text);
    if (!within(opt, (double)value))
        return out_of_bounds(command, opt, text);
    if (errno == ERANGE || value < INT_MIN || value > INT_MAX)
        return usage_error(command, "--%s %s is too large", opt->name, text);
    *out = (int)value;
    return 0;
}

static int parse_uint64(const struct weir_command *command, const struct weir_opt *opt, const char *text, uint64_t *out)
{
    char *end;
    errno = 0;
    uint64_t value = strtoull(text, &end, 10);
    if (!ends_number(text, end) || strchr(text, '-'))
        return usage_error(command, "--%s needs a whole number from 0, not '%s'", opt->name, text);
    if (errno == ERANGE)
        return usage_error(command, "--%s %s is too large", opt->name, text);
    if (!within(opt, (double)value))
        return out_of_bounds(command, opt, text);
    *out = value;
    return 0;
}

static int parse_double(const struct weir_command *command, const struct weir_opt *opt, const char *text, double *out)
{
    char *end;
    double value = strtod(text, &end);
    if (!ends_number(text, end) || !isfinite(value))
        return usage_error(command, "--%s needs a number, not '%s'", opt->name, text);
    if (!within(opt, value))
        return out_of_bounds(command, opt, text);
    *out = value;
    return 0;
}

static int parse_enum(const struct weir_command *command, const struct weir_opt *opt, const char *text, int *out)
{
    const char *at = opt->value;
    for (int i = 0; at; i++) {
        size_t n = strcspn(at, "|");
        if (strlen(text) == n && strncmp(at, text, n) == 0) {
            *out = i;
            return 0;
        }
        at = at[n] ? at + n + 1 : NULL;
    }
    return usage_error(command, "--%s '%s' is not one of %s", opt->name, text, opt->value);
}

static int parse_size(const struct weir_command *command, const struct weir_opt *opt, const char *text,
                      struct weir_opt_size *out)
{
    char *end;
    long width = strtol(text, &end, 10), height = 0;
    bool ok = end != text && (*end == 'x' || *end == 'X');
    if (ok) {
        const char *second = end + 1;
        height = strtol(second, &end, 10);
        ok = ends_number(second, end);
    }
    if (!ok || width <= 0 || height <= 0)
        return usage_error(command, "--%s needs WIDTHxHEIGHT such as 640x480, not '%s'", opt->name, text);
    if (!within(opt, (double)width) || !within(opt, (double)height))
        return out_of_bounds(command, opt, text);
    if (width > INT_MAX || height > INT_MAX)
        return usage_error(command, "--%s %s is too large", opt->name, text);
    *out = (struct weir_opt_size){(int)width, (int)height};
    return 0;
}

static int parse_bytes(const struct weir_command *command, const struct weir_opt *opt, const char *text, uint64_t *out)
{
    static const char units[] = "KMGT";
    char *end;
    errno = 0;
    uint64_t value = strtoull(text, &end, 10);
    const char *unit = *end ? strchr(units, toupper((unsigned char)*end)) : NULL;
    int shift = unit ? 10 * (int)(unit - units + 1) : 0;
    if (!ends_number(text, end + (unit != NULL)) || end == text || strchr(text, '-'))
        return usage_error(command, "--%s needs bytes such as 512M or 2G, not '%s'", opt->name, text);
    if (errno == ERANGE || value > (uint64_t)INT64_MAX >> shift)
        return usage_error(command, "--%s %s is too large", opt->name, text);
    *out = value << shift;
    return 0;
}

static int set_value(const struct weir_command *command, const struct weir_opt *opt, const char *text, void *values)
{
    void *field = (char *)values + opt->offset;
    if (opt->kind != WEIR_OPT_FLAG && text[0] == '\0')
        return usage_error(command, "--%s has an empty value", opt->name);
    switch (opt->kind) {
    case WEIR_OPT_FLAG:
        *(bool *)field = true;
        return 0;
    case WEIR_OPT_INT:
        return parse_int(command, opt, text, field);
    case WEIR_OPT_UINT64:
        return parse_uint64(command, opt, text, field);
    case WEIR_OPT_DOUBLE:
        return parse_double(command, opt, text, field);
    case WEIR_OPT_TEXT:
        *(const char **)field = text;
        return 0;
    case WEIR_OPT_ENUM:
        return parse_enum(command, opt, text, field);
    case WEIR_OPT_SIZE:
        return parse_size(command, opt, text, field);
    case WEIR_OPT_BYTES:
        return parse_bytes(command, opt, text, field);
    }
    return 0;
}

/* ---- the command line ---- */

/* Takes the option at argv[*i], and its value from argv[*i + 1] when it is not in the same word. */
static int take_option(const struct weir_command *command, int argc, char **argv, int *i, void *values)
{
    const char *typed = argv[*i] + 2;
    const char *value = strchr(typed, '=');
    char name[NAME_BYTES];
    option_name(typed, name);
    const struct weir_opt *opt = find_option(command, name, strlen(name));
    if (!opt)
        return unknown_option(command, name);
    if (opt->kind == WEIR_OPT_FLAG)
        return value ? usage_error(command, "--%s takes no value", opt->name) : set_value(command, opt, "", values);
    if (value)
        return set_value(command, opt, value + 1, values);
    if (*i + 1 >= argc)
        return usage_error(command, "--%s needs a value: %s", opt->name, opt->value);
    value = argv[++*i];
    if (strncmp(value, "--", 2) == 0)
        return usage_error(command, "--%s needs a value: %s (for one that begins with --, write --%s=%s)", opt->name,
                           opt->value, opt->name, value);
    return set_value(command, opt, value, values);
}

static int set_presets(const struct weir_command *command, void *values)
{
    for (size_t i = 0; i < command->n_opts; i++) {
        const struct weir_opt *opt = &command->opts[i];
        int rc = opt->preset ? set_value(command, opt, opt->preset, values) : 0;
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
            rc = usage_error(command, "unknown option %s; options begin with two hyphens", argv[i]);
        else if (*n_args == command->max_args)
            rc = usage_error(command, "unexpected argument '%s'", argv[i]);
        else
            args[(*n_args)++] = argv[i];
        if (rc < 0)
            return rc;
    }
    if (*n_args < command->min_args)
        return usage_error(command, "%s is missing", command->args);
    return 0;
}

enum weir_parse weir_options_parse(const struct weir_command *command, void *values, size_t size, int argc, char **argv,
                                   const char **args, int *n_args)
{
    memset(values, 0, size);
    *n_args = 0;
    if (asks_for_help(argc, argv)) {
        weir_options_help(command, stdout);
        return WEIR_PARSE_HELP;
    }
    if (set_presets(command, values) < 0 || take_all(command, values, argc, argv, args, n_args) < 0)
        return WEIR_PARSE_USAGE;
    return WEIR_PARSE_RUN;
}

/* ---- echo and help ---- */

static void write_enum(const struct weir_opt *opt, int index, const char *key, struct weir_json *json)
{
    const char *at = opt->value;
    for (int i = 0; i < index && at; i++) {
        at = strchr(at, '|');
        at = at ? at + 1 : NULL;
    }
    char text[NAME_BYTES];
    snprintf(text, sizeof text, "%.*s", at ? (int)strcspn(at, "|") : 0, at ? at : "");
    weir_json_text(json, key, text);
}

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
        weir_json_uint(json, key, *(const uint64_t *)field);
        break;
    case WEIR_OPT_DOUBLE:
        weir_json_double(json, key, *(const double *)field);
        break;
    case WEIR_OPT_TEXT:
        weir_json_text(json, key, *(const char *const *)field);
        break;
    case WEIR_OPT_ENUM:
        write_enum(opt, *(const int *)field, key, json);
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
