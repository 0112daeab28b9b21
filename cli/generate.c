#include "cli/commands.h"
#include "cli/outputs.h"
#include "cli/sysinfo.h"

#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

/* ---- option tables ---- */

static bool names_file(const struct weir_opt *opt)
{
    return opt->path != WEIR_PATH_NONE;
}

/* Enum options have choices, and so do string options whose values come from a registry. */
static bool has_choices(const struct weir_opt *opt)
{
    return opt->kind == WEIR_OPT_ENUM || (opt->kind == WEIR_OPT_TEXT && strchr(opt->value, '|') && !names_file(opt));
}

static bool has_words(const struct weir_opt *opt)
{
    return has_choices(opt) || opt->allow_auto;
}

/* Prints the possible values of an option, separated by spaces, for completion. */
static void put_words(FILE *out, const struct weir_opt *opt)
{
    if (!has_choices(opt)) {
        fputs("auto", out);
        return;
    }
    for (const char *c = opt->value; *c; c++)
        putc(*c == '|' ? ' ' : *c, out);
}

static void put_commands(FILE *out)
{
    for (int i = 0; weir_commands[i]; i++)
        fprintf(out, "%s%s", i ? " " : "", weir_commands[i]->name);
}

/* ---- quoting: a quote_fn returns the replacement of a character, or NULL to keep the character ---- */

typedef const char *(*quote_fn)(char c);

static const char *quote_man(char c)
{
    switch (c) {
    case '\\':
        return "\\e";
    case '-':
        return "\\-"; /* troff renders an unescaped hyphen as a typographic one, which shells do not accept */
    case '\'':
        return "\\(aq";
    case '.':
        return "\\&."; /* a period at the start of a line would begin a troff request */
    default:
        return NULL;
    }
}

/* Quotes characters for zsh's _arguments and _describe, within single quotes and an [explanation] or a :message:. */
static const char *quote_zsh(char c)
{
    switch (c) {
    case '\'':
        return "'\\''";
    case '[':
        return "\\[";
    case ']':
        return "\\]";
    case ':':
        return "\\:";
    case '\\':
        return "\\\\";
    default:
        return NULL;
    }
}

static void put_quoted(FILE *out, const char *text, quote_fn quote)
{
    for (const char *c = text; *c; c++) {
        const char *quoted = quote(*c);
        if (quoted)
            fputs(quoted, out);
        else
            putc(*c, out);
    }
}

/* ---- man pages ---- */

static void put_man(FILE *out, const char *text)
{
    put_quoted(out, text, quote_man);
}

/* The header has no date, so that man pages of the same version are reproducible. */
static void man_head(FILE *out, const char *name, const char *summary)
{
    fputs(".TH \"", out);
    put_man(out, name);
    fprintf(out, "\" 1 \"\" \"weir %s\" \"Weir\"\n.SH NAME\n", weir_version());
    put_man(out, name);
    fputs(" \\- ", out);
    put_man(out, summary);
    fputs("\n.SH SYNOPSIS\n", out);
}

static void man_exit_status(FILE *out)
{
    fputs(".SH EXIT STATUS\n", out);
    for (const struct weir_exit_status *row = weir_exit_statuses; row->meaning; row++) {
        fprintf(out, ".TP\n\\fB%d\\fR\n", row->status);
        put_man(out, row->meaning);
        fputs("\n", out);
    }
    fputs(".SH SEE ALSO\n", out);
}

static void man_bounds(FILE *out, const struct weir_opt *opt)
{
    bool bounds = opt->max > opt->min;
    if (!opt->preset && !bounds)
        return;
    fputs(" (", out);
    if (opt->preset) {
        fputs("default ", out);
        put_man(out, opt->preset);
    }
    if (bounds) {
        char text[64];
        snprintf(text, sizeof text, "%s%.12g to %.12g%s%s%s", opt->preset ? "; " : "", opt->min, opt->max,
                 opt->unit ? " " : "", opt->unit ? opt->unit : "", opt->allow_auto ? ", or auto" : "");
        put_man(out, text);
    }
    fputs(")", out);
}

static void man_option(FILE *out, const struct weir_opt *opt)
{
    fputs(".TP\n\\fB\\-\\-", out);
    put_man(out, opt->name);
    fputs("\\fR", out);
    if (opt->kind != WEIR_OPT_FLAG) {
        fputs(" \\fI", out);
        put_man(out, opt->value);
        fputs("\\fR", out);
    }
    fputs("\n", out);
    put_man(out, opt->help);
    man_bounds(out, opt);
    if (opt->details) {
        fputs(". ", out);
        put_man(out, opt->details);
    }
    fputs("\n", out);
}

static void show_man(void *user, const char *heading, const struct weir_opt *opt)
{
    FILE *out = user;
    if (opt) {
        man_option(out, opt);
        return;
    }
    fputs(".SS ", out);
    put_man(out, heading);
    fputs("\n", out);
}

/* Each line of examples is a command, a tab, and an explanation. */
static void man_examples(FILE *out, const char *examples)
{
    char line[256];
    fputs(".SH EXAMPLES\n", out);
    for (size_t length; *examples; examples += length + (examples[length] == '\n')) {
        length = strcspn(examples, "\n");
        snprintf(line, sizeof line, "%.*s", (int)length, examples);
        char *does = strchr(line, '\t');
        *does++ = '\0';
        fputs(".TP\n\\fB", out);
        put_man(out, line);
        fputs("\\fR\n", out);
        put_man(out, does);
        fputs("\n", out);
    }
}

static void man_command(FILE *out, const struct weir_command *command)
{
    char name[64];
    snprintf(name, sizeof name, "weir-%s", command->name);
    man_head(out, name, command->summary);
    fputs("\\fBweir ", out);
    put_man(out, command->name);
    fputs("\\fR", out);
    if (command->args) {
        fputs(" \\fI", out);
        put_man(out, command->args);
        fputs("\\fR", out);
    }
    fputs(" [\\fIOPTIONS\\fR]\n", out);
    if (command->notes) {
        fputs(".SH DESCRIPTION\n", out);
        put_man(out, command->notes);
        fputs(command->notes[strlen(command->notes) - 1] == '\n' ? "" : "\n", out);
    }
    fputs(".SH OPTIONS\n", out);
    weir_options_by_topic(command, show_man, out);
    if (command->examples)
        man_examples(out, command->examples);
    man_exit_status(out);
    fputs(".BR weir (1)\n", out);
}

static void man_program(FILE *out)
{
    man_head(out, "weir", weir_program.summary);
    fputs("\\fBweir\\fR \\fICOMMAND\\fR [\\fIARGUMENTS\\fR]\n.SH DESCRIPTION\n", out);
    put_man(out, weir_program.hint);
    fputs("\n.SH COMMANDS\n", out);
    for (int i = 0; weir_commands[i]; i++) {
        if (i == 0 || strcmp(weir_commands[i]->group, weir_commands[i - 1]->group) != 0)
            show_man(out, weir_commands[i]->group, NULL);
        fprintf(out, ".TP\n\\fB%s\\fR\n", weir_commands[i]->name);
        put_man(out, weir_commands[i]->summary);
        fputs("\n", out);
    }
    show_man(out, "Help", NULL);
    fputs(".TP\n\\fBhelp\\fR\n", out);
    put_man(out, weir_program.help);
    fputs("\n", out);
    man_exit_status(out);
    for (int i = 0; weir_commands[i]; i++)
        fprintf(out, ".BR weir\\-%s (1)%s\n", weir_commands[i]->name, weir_commands[i + 1] ? "," : "");
}

/* ---- bash ---- */

static void bash_option(FILE *out, const struct weir_command *command, const struct weir_opt *opt)
{
    if (opt->kind == WEIR_OPT_FLAG)
        return;
    fprintf(out, "    %s:--%s) ", command->name, opt->name);
    if (has_words(opt)) {
        fputs("words=\"", out);
        put_words(out, opt);
        fputs("\"", out);
    } else {
        fputs(names_file(opt) ? "files=yes" : "return", out);
    }
    fputs(" ;;\n", out);
}

static void bash_command(FILE *out, const struct weir_command *command)
{
    for (struct weir_opt_walk walk = {.command = command}; weir_opt_next(&walk);)
        bash_option(out, command, walk.opt);
    if (command->takes_config)
        bash_option(out, command, &weir_opt_config);
    fprintf(out, "    %s:*) words=\"", command->name);
    for (struct weir_opt_walk walk = {.command = command}; weir_opt_next(&walk);)
        fprintf(out, "--%s ", walk.opt->name);
    if (command->takes_config)
        fprintf(out, "--%s ", weir_opt_config.name);
    fprintf(out, "--%s --%s\"%s ;;\n", weir_opt_help.name, weir_opt_help_all.name, command->args ? " files=yes" : "");
}

static void write_bash(FILE *out)
{
    fputs("# Bash completion for weir, generated by weir --generate.\n"
          "_weir() {\n"
          "    local word=${COMP_WORDS[COMP_CWORD]} before=${COMP_WORDS[COMP_CWORD - 1]} words=\"\" files=\"\"\n"
          "    COMPREPLY=()\n"
          "    # Bash splits --name=value into three words, and --name= into two.\n"
          "    if [[ $word == \"=\" ]]; then\n"
          "        word=\"\"\n"
          "    elif [[ $before == \"=\" ]]; then\n"
          "        before=${COMP_WORDS[COMP_CWORD - 2]}\n"
          "    fi\n"
          "    case ${COMP_WORDS[1]}:${before//_/-} in\n",
          out);
    for (int i = 0; weir_commands[i]; i++)
        bash_command(out, weir_commands[i]);
    fputs("    help:*) words=\"", out);
    put_commands(out);
    fputs("\" ;;\n    esac\n    [[ $COMP_CWORD -gt 1 ]] || words=\"", out);
    put_commands(out);
    fputs(" help --help --version\" files=\"\"\n"
          "    if [[ $word == -* ]]; then\n"
          "        word=${word//_/-}\n"
          "    elif [[ $files ]]; then\n"
          "        words=\"\"\n"
          "    fi\n"
          "    if [[ $words ]]; then\n"
          "        mapfile -t COMPREPLY < <(compgen -W \"$words\" -- \"$word\")\n"
          "    elif [[ $files ]]; then\n"
          "        compopt -o filenames 2>/dev/null\n"
          "        mapfile -t COMPREPLY < <(compgen -f -- \"$word\")\n"
          "    fi\n"
          "}\n"
          "complete -F _weir weir\n",
          out);
}

/* ---- zsh ---- */

static void zsh_option(FILE *out, const struct weir_opt *opt)
{
    bool flag = opt->kind == WEIR_OPT_FLAG;
    fprintf(out, "            '--%s%s[", opt->name, flag ? "" : "=");
    put_quoted(out, opt->help, quote_zsh);
    fputs("]", out);
    if (!flag) {
        fputs(":", out);
        put_quoted(out, opt->value, quote_zsh);
        fputs(":", out);
        if (has_words(opt)) {
            fputs("(", out);
            put_words(out, opt);
            fputs(")", out);
        } else {
            fputs(names_file(opt) ? "_files" : " ", out);
        }
    }
    fputs("' \\\n", out);
}

static void zsh_command(FILE *out, const struct weir_command *command)
{
    fprintf(out, "    %s)\n        _arguments -M 'm:_=-' \\\n", command->name);
    for (struct weir_opt_walk walk = {.command = command}; weir_opt_next(&walk);)
        zsh_option(out, walk.opt);
    if (command->takes_config)
        zsh_option(out, &weir_opt_config);
    zsh_option(out, &weir_opt_help);
    zsh_option(out, &weir_opt_help_all);
    if (command->args) {
        fputs("            '*:", out);
        put_quoted(out, command->args, quote_zsh);
        fputs(":_files'\n", out);
    } else {
        fputs("            '*: : '\n", out);
    }
    fputs("        ;;\n", out);
}

static void write_zsh(FILE *out)
{
    fputs("#compdef weir\n# Zsh completion for weir, generated by weir --generate.\n_weir() {\n"
          "    local -a commands=(\n",
          out);
    for (int i = 0; weir_commands[i]; i++) {
        fprintf(out, "        '%s:", weir_commands[i]->name);
        put_quoted(out, weir_commands[i]->summary, quote_zsh);
        fputs("'\n", out);
    }
    fputs("    )\n"
          "    if ((CURRENT == 2)); then\n"
          "        _describe command commands\n"
          "        compadd -- help --help --version\n"
          "        return\n"
          "    fi\n"
          "    shift words\n"
          "    ((CURRENT--))\n"
          "    case $words[1] in\n"
          "    help)\n"
          "        _describe command commands\n"
          "        ;;\n",
          out);
    for (int i = 0; weir_commands[i]; i++)
        zsh_command(out, weir_commands[i]);
    fputs("    esac\n}\n_weir \"$@\"\n", out);
}

/* ---- files ---- */

static int open_in(const char *folder, const char *name, FILE **out, struct weir_err *err)
{
    char path[4096];
    int n = snprintf(path, sizeof path, "%s/%s", folder, name);
    if (n < 0 || (size_t)n >= sizeof path)
        return weir_err_set(err, -ENAMETOOLONG, "%s: the path is too long", folder);
    *out = fopen(path, "w");
    return *out ? 0 : weir_err_set(err, -errno, "%s: cannot be written: %s", path, strerror(errno));
}

static int write_script(const char *folder, const char *name, void (*write)(FILE *), struct weir_err *err)
{
    FILE *out;
    int rc = open_in(folder, name, &out, err);
    if (rc < 0)
        return rc;
    write(out);
    return weir_output_close(folder, out, err);
}

static int write_pages(const char *folder, struct weir_err *err)
{
    int rc = write_script(folder, "weir.1", man_program, err);
    for (int i = 0; weir_commands[i] && rc == 0; i++) {
        char name[64];
        FILE *out;
        snprintf(name, sizeof name, "weir-%s.1", weir_commands[i]->name);
        rc = open_in(folder, name, &out, err);
        if (rc < 0)
            break;
        man_command(out, weir_commands[i]);
        rc = weir_output_close(folder, out, err);
    }
    return rc;
}

int weir_generate(int argc, char **argv)
{
    struct weir_err err = WEIR_ERR_NONE;
    const char *what = argc == 3 ? argv[1] : "", *folder = argc == 3 ? argv[2] : NULL;
    int rc;
    if (strcmp(what, "man") == 0) {
        rc = write_pages(folder, &err);
    } else if (strcmp(what, "bash") == 0) {
        rc = write_script(folder, "weir", write_bash, &err);
    } else if (strcmp(what, "zsh") == 0) {
        rc = write_script(folder, "_weir", write_zsh, &err);
    } else {
        fputs("weir: --generate requires man, bash or zsh, followed by a folder\n", stderr);
        return WEIR_EXIT_USAGE;
    }
    if (rc < 0)
        fprintf(stderr, "weir: %s\n", err.text);
    return rc < 0 ? 1 : 0;
}
