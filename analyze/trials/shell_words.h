/* shell_words.h: words of a command line as a shell reads them back. */
#ifndef WEIR_ANALYZE_TRIALS_SHELL_WORDS_H
#define WEIR_ANALYZE_TRIALS_SHELL_WORDS_H

#include <stdio.h>

/* As it is, or in quotes: '...', and $'...' (bash, zsh) for one with control characters. */
void weir_shell_word(FILE *out, const char *word);

#endif
