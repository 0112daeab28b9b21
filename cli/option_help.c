/* Prints a command's help from its option tables. */
#include "cli/options.h"

#include <string.h>
#include <sys/param.h>

enum { COLUMN_MAX = 34, WIDTH = 100 };

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
}

struct help {
    FILE *out;
    int column;
    bool details, began;
};

static int left_width(const struct weir_opt *opt)
{
    return (int)strlen(opt->name) + (opt->kind == WEIR_OPT_FLAG ? 0 : 1 + (int)strlen(opt->value));
}

/* Prints text indented and wrapped at word boundaries. */
static void put_paragraph(FILE *out, int indent, const char *text)
{
    int column = 0;
    for (size_t n; *text; text += n + strspn(text + n, " ")) {
        n = strcspn(text, " ");
        bool wraps = column > 0 && column + 1 + (int)n > WIDTH;
        if (column == 0 || wraps)
            fprintf(out, "%s%*s", wraps ? "\n" : "", indent, "");
        else
            fputc(' ', out);
        fprintf(out, "%.*s", (int)n, text);
        column = (column == 0 || wraps ? indent : column + 1) + (int)n;
    }
    fputc('\n', out);
}

static void show_help(void *user, const char *heading, const struct weir_opt *opt)
{
    struct help *help = user;
    FILE *out = help->out;
    if (heading || !help->began)
        fprintf(out, "\n%s:\n", heading ? heading : "Options");
    help->began = true;
    if (heading)
        return;
    bool flag = opt->kind == WEIR_OPT_FLAG;
    int width = left_width(opt);
    fprintf(out, "  --%s%s%s", opt->name, flag ? "" : " ", flag ? "" : opt->value);
    if (width > help->column)
        fprintf(out, "\n%*s", help->column + 4, "");
    else
        fprintf(out, "%*s", help->column - width, "");
    fprintf(out, "  %s", opt->help);
    if (opt->preset)
        fprintf(out, " (default %s)", opt->preset);
    fputc('\n', out);
    if (help->details && opt->details)
        put_paragraph(out, help->column + 8, opt->details);
}

void weir_options_help(const struct weir_command *command, bool details, FILE *out)
{
    struct help help = {.out = out, .column = left_width(&weir_opt_help), .details = details};
    bool more = false;
    fprintf(out, "Usage: weir %s%s%s [OPTIONS]\n\n%s\n", command->name, command->args ? " " : "",
            command->args ? command->args : "", command->summary);
    for (struct weir_opt_walk walk = {.command = command}; weir_opt_next(&walk);) {
        more |= walk.opt->details != NULL;
        if (left_width(walk.opt) <= COLUMN_MAX)
            help.column = MAX(help.column, left_width(walk.opt));
    }
    weir_options_by_topic(command, show_help, &help);
    if (command->notes)
        fprintf(out, "\n%s%s", command->notes, command->notes[strlen(command->notes) - 1] == '\n' ? "" : "\n");
    if (more && !details)
        fprintf(out, "\nweir help %s explains the options.\n", command->name);
}
