#include "analyze/trials/words.h"

#include <stdlib.h>
#include <string.h>

enum { NAME_BYTES = 64 };

void weir_words_free(struct weir_words *words)
{
    for (int i = 0; words->argv && i < words->n; i++)
        free(words->argv[i]);
    free(words->argv);
    words->argv = NULL;
    words->n = 0;
}

void weir_words_add(struct weir_words *words, const char *word)
{
    if (words->failed)
        return;
    char *copy = strdup(word), **argv = realloc(words->argv, ((size_t)words->n + 2) * sizeof *argv);
    if (argv)
        words->argv = argv;
    words->failed = !copy || !argv;
    if (words->failed) {
        free(copy);
        weir_words_free(words);
        return;
    }
    argv[words->n++] = copy;
    argv[words->n] = NULL;
}

void weir_words_add_all(struct weir_words *words, const char *const *argv)
{
    for (const char *const *arg = argv; arg && *arg; arg++)
        weir_words_add(words, *arg);
}

void weir_words_add_option(struct weir_words *words, const char *name, const char *value)
{
    char option[NAME_BYTES];
    snprintf(option, sizeof option, "--%s", name);
    weir_words_add(words, option);
    if (value)
        weir_words_add(words, value);
}

void weir_words_add_options(struct weir_words *words, const struct weir_opt *opts, unsigned users, const void *values)
{
    char buffer[WEIR_OPTION_TEXT];
    for (const struct weir_opt *opt = opts; opt->name; opt++) {
        const char *typed = opt->users & users ? weir_option_typed(opt, values, buffer) : NULL;
        if (typed)
            weir_words_add_option(words, opt->name, opt->kind == WEIR_OPT_FLAG ? NULL : typed);
    }
}

void weir_words_add_measured(struct weir_words *words, double seconds)
{
    char text[32];
    snprintf(text, sizeof text, "%.9g", seconds);
    weir_words_add_option(words, "seconds", text);
    weir_words_add_option(words, "every", "0");
    weir_words_add_option(words, "log", "-");
}
