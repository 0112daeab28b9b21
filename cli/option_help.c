/* Prints a command's help from its option tables. */
#include "base/terminal.h"
#include "cli/options.h"

#include <string.h>
#include <sys/param.h>

enum { COLUMN_MAX = 34, LINE = 1024 };

static bool is_same_topic(const char *a, const char *b)
{
    return a && b ? strcmp(a, b) == 0 : a == b;
}

static void show_topic(const struct weir_command *command, const char *topic, weir_opt_show_fn *show, void *user)
{
    for (struct weir_opt_walk walk = {.command = command}; weir_opt_next(&walk);)
        if (is_same_topic(walk.topic, topic))
            show(user, NULL, walk.opt);
}

/* Returns whether this is the first option of its topic. Several tables can contain the same topic. */
static bool is_first_of_topic(const struct weir_opt_walk *walk)
{
    struct weir_opt_walk first = {.command = walk->command};
    while (weir_opt_next(&first) && !is_same_topic(first.topic, walk->topic))
        ;
    return first.opt == walk->opt;
}

void weir_options_by_topic(const struct weir_command *command, weir_opt_show_fn *show, void *user)
{
    bool topics = false;
    show_topic(command, NULL, show, user);
    for (struct weir_opt_walk walk = {.command = command}; weir_opt_next(&walk);) {
        if (!walk.topic || !is_first_of_topic(&walk))
            continue;
        topics = true;
        show(user, walk.topic, NULL);
        show_topic(command, walk.topic, show, user);
    }
    if (topics)
        show(user, "Other options", NULL);
    if (command->takes_config)
        show(user, NULL, &weir_opt_config);
    show(user, NULL, &weir_opt_help);
    show(user, NULL, &weir_opt_help_all);
}

struct help {
    FILE *out;
    int column; /* width of the options and their values */
    bool details, began;
};

static int left_width(const struct weir_opt *opt)
{
    return (int)strlen(opt->name) + (opt->kind == WEIR_OPT_FLAG ? 0 : 1 + (int)strlen(opt->value));
}

/* Returns the width of the first column: the widest option, except for those that would leave too little room. */
static int column_width(const struct weir_command *command, bool common, int width)
{
    int column = left_width(&weir_opt_help_all), most = MIN(COLUMN_MAX, width / 3);
    for (struct weir_opt_walk walk = {.command = command}; weir_opt_next(&walk);)
        if ((walk.opt->is_common || !common) && left_width(walk.opt) <= most)
            column = MAX(column, left_width(walk.opt));
    return column;
}

static void put_line(FILE *out, int indent, const char *text)
{
    struct weir_wrap wrap;
    fprintf(weir_wrap_open(&wrap, out, indent, NULL), "%*s%s\n", indent, "", text);
    weir_wrap_close(&wrap);
}

/* Prints "  --name VALUE" and the help text next to it, or below it if the value is too wide. */
static void put_option(const struct help *help, const struct weir_opt *opt)
{
    bool flag = opt->kind == WEIR_OPT_FLAG;
    int indent = help->column + 6, space = help->column - left_width(opt) + 2;
    char left[LINE], line[2 * LINE];
    snprintf(left, sizeof left, "  --%s%s%s", opt->name, flag ? "" : " ", flag ? "" : opt->value);
    if (space < 2) {
        weir_wrap_print(help->out, left, 8, "|");
        fputc('\n', help->out);
    }
    snprintf(line, sizeof line, "%s%*s%s%s%s%s\n", space < 2 ? "" : left, space < 2 ? indent : space, "", opt->help,
             opt->preset ? " (default " : "", opt->preset ? opt->preset : "", opt->preset ? ")" : "");
    weir_wrap_print(help->out, line, indent, NULL);
    if (help->details && opt->details)
        put_line(help->out, indent + 2, opt->details);
}

static void show_help(void *user, const char *heading, const struct weir_opt *opt)
{
    struct help *help = user;
    if (heading || !help->began)
        fprintf(help->out, "\n%s:\n", heading ? heading : "Options");
    help->began = true;
    if (!heading)
        put_option(help, opt);
}

static void show_common(const struct weir_command *command, const struct help *help)
{
    fputs("\nCommon options:\n", help->out);
    for (struct weir_opt_walk walk = {.command = command}; weir_opt_next(&walk);)
        if (walk.opt->is_common)
            put_option(help, walk.opt);
}

/* Prints paragraphs. In rows of a table, which begin with spaces, later lines begin below the second column. */
static void put_notes(FILE *out, const char *notes)
{
    for (size_t n; *notes; notes += n + (notes[n] == '\n')) {
        struct weir_wrap wrap;
        size_t column = strspn(notes, " ");
        n = strcspn(notes, "\n");
        if (column > 0) {
            column += strcspn(notes + column, " ");
            column += strspn(notes + column, " ");
        }
        fprintf(weir_wrap_open(&wrap, out, (int)column, NULL), "%.*s\n", (int)n, notes);
        weir_wrap_close(&wrap);
    }
}

void weir_options_help(const struct weir_command *command, bool all, FILE *out)
{
    int n_common = 0, n_details = 0;
    char last[LINE];
    for (struct weir_opt_walk walk = {.command = command}; weir_opt_next(&walk);) {
        n_common += walk.opt->is_common;
        n_details += walk.opt->details != NULL;
    }
    bool common = n_common > 0 && !all;
    struct help help = {.out = out, .column = column_width(command, common, weir_terminal_width(out)), .details = all};
    fprintf(out, "Usage: weir %s%s%s [OPTIONS]\n\n", command->name, command->args ? " " : "",
            command->args ? command->args : "");
    put_line(out, 0, command->summary);
    if (common)
        show_common(command, &help);
    else
        weir_options_by_topic(command, show_help, &help);
    if (command->notes)
        fputs("\n", out);
    put_notes(out, command->notes ? command->notes : "");
    snprintf(last, sizeof last, "\nweir %s --help-all %s.", command->name,
             common ? "lists and explains all options" : "explains the options");
    if (common || (n_details > 0 && !all))
        put_line(out, 0, last);
}
