#include "base/shortage.h"
#include "base/text.h"
#include "datasets/builder.h"
#include "datasets/index.h"
#include "datasets/open_dataset.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <jansson.h>

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

static int add_string(struct weir_episode *e, const char *key, const json_t *value, struct weir_err *err)
{
    return json_is_string(value)
               ? weir_episode_add_text(e, key, json_string_value(value), json_string_length(value), err)
               : 0;
}

int weir_episode_add_json(struct weir_episode *e, json_t *object, struct weir_err *err)
{
    const char *key;
    json_t *value;
    int rc = add_string(e, "weir_source", json_object_get(object, "name"), err);
    json_object_foreach(json_object_get(object, "texts"), key, value)
    {
        if (rc == 0 && *key && strncmp(key, "weir_", 5) != 0)
            rc = add_string(e, key, value, err);
    }
    return rc;
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

/* ---- what the files of a dataset have in common ---- */

/* One per line: "=NAME\tVALUE", or "?NAME\tVALUE" if others may lack it. */
int weir_traits_add(char **traits, const char *name, const char *value, bool is_optional, struct weir_err *err)
{
    char *line = NULL, *all = NULL;
    bool fine = asprintf(&line, "%c%s:%s", is_optional ? '?' : '=', name, value) >= 0;
    if (fine) {
        weir_text_printable(line);
        line[1 + strlen(name)] = '\t';
        fine = asprintf(&all, "%s%s\n", *traits ? *traits : "", line) >= 0;
    }
    free(line);
    if (!fine)
        return weir_no_memory(err);
    free(*traits);
    *traits = all;
    return 0;
}

/* Returns the value of the line's property among others, which ends at the end of its line; or NULL. */
static const char *find_trait(const char *traits, const char *line)
{
    size_t name = strcspn(line + 1, "\t") + 1;
    for (const char *at = traits; at && *at; at += strcspn(at, "\n") + 1)
        if (strncmp(at + 1, line + 1, name) == 0)
            return at + 1 + name;
    return NULL;
}

int weir_traits_merge(char **traits, const char *more, struct weir_err *err)
{
    bool same = *traits && more && strcmp(*traits, more) == 0;
    for (const char *line = same ? NULL : more; line && *line; line += strcspn(line, "\n") + 1) {
        char *all;
        if (find_trait(*traits, line))
            continue;
        if (asprintf(&all, "%s%.*s\n", *traits ? *traits : "", (int)strcspn(line, "\n"), line) < 0)
            return weir_no_memory(err);
        free(*traits);
        *traits = all;
    }
    return 0;
}

/* Appends the values from the first part of a list "a, b, c" in which they differ. */
static void append_values(const char *name, const char *mine, const char *first, char *text, size_t size)
{
    size_t used = strlen(text), at = 0;
    int length = (int)strcspn(name, "\t");
    for (size_t i = 0; mine[i] == first[i] && mine[i] != '\n'; i++)
        at = mine[i] == ',' && mine[i + 1] == ' ' ? i + 2 : at;
    snprintf(text + used, size - used, "%s%.*s: %s%.*s instead of %s%.*s", used ? "; " : "", length, name,
             at ? "... " : "", (int)strcspn(mine + at, "\n"), mine + at, at ? "... " : "",
             (int)strcspn(first + at, "\n"), first + at);
}

/* Appends the properties that only the first of two episodes has, or that differ if `both`. */
static void append_differences(const char *traits, const char *others, bool both, char *text, size_t size)
{
    for (const char *line = traits; line && *line; line += strcspn(line, "\n") + 1) {
        const char *value = line + strcspn(line, "\t") + 1, *other = find_trait(others, line);
        size_t used = strlen(text), length = strcspn(value, "\n") + 1;
        if (other && both && strncmp(value, other, length) != 0)
            append_values(line + 1, value, other, text, size);
        else if (!other && *line == '=')
            snprintf(text + used, size - used, "%s%s %.*s", used ? "; " : "", both ? "it alone has" : "it lacks",
                     (int)strcspn(line + 1, "\t"), line + 1);
    }
}

bool weir_traits_differ(const char *traits, const char *first, char *text, size_t size)
{
    const char *mine = traits ? traits : "", *theirs = first ? first : "";
    *text = '\0';
    if (strcmp(mine, theirs) == 0)
        return false;
    append_differences(mine, theirs, true, text, size);
    append_differences(theirs, mine, false, text, size);
    return *text != '\0';
}

const char *weir_dataset_traits(const struct weir_dataset *dataset)
{
    return dataset->traits;
}
