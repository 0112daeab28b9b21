/* words.h: command lines of child processes, which are built word by word and can be printed for a shell. */
#ifndef WEIR_ANALYZE_TRIALS_WORDS_H
#define WEIR_ANALYZE_TRIALS_WORDS_H

#include "base/option.h"

#include <stdbool.h>
#include <stdio.h>

/* A command line. Zero-initialise. argv is owned and ends with NULL; it is NULL if there are no words. */
struct weir_words {
    char **argv;
    int n;
    bool failed; /* out of memory; argv is then NULL */
};
void weir_words_add(struct weir_words *words, const char *word);
/* Adds all words of a list that ends with NULL. argv can be NULL. */
void weir_words_add_all(struct weir_words *words, const char *const *argv);
/* Adds --name, followed by its value unless this is NULL. */
void weir_words_add_option(struct weir_words *words, const char *name, const char *value);
/* Adds the options of a table (base/option.h) that these commands have and whose values differ from their defaults. */
void weir_words_add_options(struct weir_words *words, const struct weir_opt *opts, unsigned users, const void *values);
/* Adds the options of weir run for a trial, which measures this many seconds and prints only the table of this time, as
 * JSON lines. */
void weir_words_add_measured(struct weir_words *words, double seconds);
void weir_words_free(struct weir_words *words);

#endif
