#include "analyze/trials/shell_words.h"

#include <ctype.h>
#include <string.h>

void weir_shell_word(FILE *out, const char *word)
{
    static const char plain[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_./:,=+@%";
    if (*word && word[strspn(word, plain)] == '\0') {
        fputs(word, out);
        return;
    }
    const char *control = word;
    while (*control && !iscntrl((unsigned char)*control))
        control++;
    if (*control) { /* as bash and zsh read them */
        fputs("$'", out);
        for (; *word; word++)
            if (iscntrl((unsigned char)*word) || *word == '\'' || *word == '\\')
                fprintf(out, "\\%03o", (unsigned char)*word);
            else
                fputc(*word, out);
        fputc('\'', out);
        return;
    }
    fputc('\'', out);
    for (; *word; word++)
        if (*word == '\'')
            fputs("'\\''", out);
        else
            fputc(*word, out);
    fputc('\'', out);
}
