/* words.h: command lines of child processes, built word by word, and printed for a shell. */
#ifndef WEIR_ANALYZE_TRIALS_WORDS_H
#define WEIR_ANALYZE_TRIALS_WORDS_H

#include "base/option.h"

#include <stdbool.h>
#include <stdio.h>

/* A command line. Zero at first. argv, owned, ends with NULL, and is NULL without words. */
struct weir_words {
    char **argv;
    int n;
    bool failed; /* out of memory: argv is NULL */
};
void weir_words_add(struct weir_words *words, const char *word);
/* Adds all words of a list that ends with NULL; argv may be NULL. */
void weir_words_add_all(struct weir_words *words, const char *const *argv);
/* Adds --name, and its value unless it is NULL. */
void weir_words_add_option(struct weir_words *words, const char *name, const char *value);
/* Adds the options of a table (base/option.h) for these users whose values differ from their defaults. */
void weir_words_add_options(struct weir_words *words, const struct weir_opt *opts, unsigned users, const void *values);
/* Adds the options of weir run for a trial: measures so many seconds, and prints their table alone, as JSON lines. */
void weir_words_add_measured(struct weir_words *words, double seconds);
void weir_words_free(struct weir_words *words);

/* Prints a word as a shell reads it: plain, or in quotes: '...', and $'...' (bash, zsh) around control characters. */
void weir_shell_word(FILE *out, const char *word);

#endif
