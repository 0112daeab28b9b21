#include "base/shortage.h"
#include "base/text.h"
#include "datasets/builder.h"
#include "datasets/index.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

int weir_texts_count(const char *texts, size_t bytes)
{
    int strings = 0;
    for (size_t at = 0; at < bytes; strings++) {
        size_t left = bytes - at, n = strnlen(texts + at, left);
        if (n == left || (n == 0 && strings % 2 == 0))
            return -1;
        at += n + 1;
    }
    return strings % 2 == 0 && strings / 2 <= WEIR_TEXTS_MAX && bytes <= WEIR_TEXTS_BYTES ? strings / 2 : -1;
}

static bool next_text(const struct weir_episode *episode, size_t *at, const char **key, const char **value)
{
    if (*at >= episode->texts_bytes)
        return false;
    *key = episode->texts + *at;
    *value = *key + strlen(*key) + 1;
    *at += (size_t)(*value - *key) + strlen(*value) + 1;
    return true;
}

bool weir_dataset_text(const struct weir_dataset *dataset, int episode, int i, const char **key, const char **value)
{
    size_t at = 0;
    for (; next_text(&dataset->episodes[episode], &at, key, value); i--)
        if (i == 0)
            return true;
    return false;
}

static bool has_key(const struct weir_episode *episode, const char *key)
{
    const char *other, *value;
    for (size_t at = 0; next_text(episode, &at, &other, &value);)
        if (strcmp(other, key) == 0)
            return true;
    return false;
}

int weir_episode_add_text(struct weir_episode *e, const char *key, const char *value, size_t length,
                          struct weir_err *err)
{
    size_t name = strlen(key) + 1, n = strnlen(value, length), taken = e->texts_bytes;
    if (!*key || n == 0 || name > WEIR_TEXT_KEY_MAX || n >= WEIR_TEXT_MAX || e->n_texts == WEIR_TEXTS_MAX ||
        name + n + 1 > WEIR_TEXTS_BYTES - taken || has_key(e, key))
        return 0;
    char *texts = realloc(e->texts, taken + name + n + 1);
    if (!texts)
        return weir_no_memory(err);
    memcpy(texts + taken, key, name);
    memcpy(texts + taken + name, value, n);
    texts[taken + name + n] = '\0';
    e->texts = texts;
    e->texts_bytes = taken + name + n + 1;
    e->n_texts++;
    return 0;
}

/* ---- colours ---- */

int weir_color_parse(const char *where, const char *value, bool *is_bgr, struct weir_err *err)
{
    *is_bgr = value && strcmp(value, "bgr") == 0;
    if (*is_bgr || (value && strcmp(value, "rgb") == 0))
        return 0;
    return weir_err_set(err, -EBADMSG,
                        "%s must be rgb or bgr%s%.16s%s: red and blue may be swapped; repair it, or remove it", where,
                        value ? ", not \"" : "", value ? value : "", value ? "\"" : "");
}

/* ---- contents that are not loaded ---- */

int weir_episode_leave_out(struct weir_episode *episode, struct weir_err *err, const char *format, ...)
{
    char *line = NULL, *all = NULL;
    va_list args;
    va_start(args, format);
    bool fine = vasprintf(&line, format, args) >= 0;
    va_end(args);
    if (fine)
        weir_text_printable(line);
    fine = fine && asprintf(&all, "%s%s%s", episode->left_out ? episode->left_out : "", episode->left_out ? "\n" : "",
                            line) >= 0;
    free(line);
    if (!fine)
        return weir_no_memory(err);
    free(episode->left_out);
    episode->left_out = all;
    return 0;
}
