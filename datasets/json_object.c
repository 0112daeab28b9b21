#include "base/claims.h"
#include "base/shortage.h"
#include "datasets/index.h"

#include <errno.h>
#include <stdbool.h>
#include <string.h>

#include <jansson.h>

/* If memory runs out while jansson's buffer for a token grows, it drops a character of the token without an error. So
 * the text is parsed as the second element of an array, after a string as long as its longest token: if that string is
 * complete, the buffer never grows again. */
struct feed {
    const char *text;
    size_t n, at;    /* bytes of the text, and those given so far */
    size_t fill;     /* bytes of the string that remain */
    const char *now; /* the fixed text that is being given */
    int step;
};

static const char *const around[] = {"[\"", "\",", "]"};

static size_t give(void *buffer, size_t size, void *user)
{
    struct feed *f = user;
    for (;;) {
        size_t fixed = strlen(f->now), n = fixed < size ? fixed : size;
        if (n > 0) {
            memcpy(buffer, f->now, n);
            f->now += n;
            return n;
        }
        size_t *at = f->step == 0 ? &f->fill : &f->at, left = f->step == 0 ? f->fill : f->n - f->at;
        n = left < size ? left : size;
        if (f->step == 0 && n > 0)
            memset(buffer, '-', n);
        else if (f->step == 1 && n > 0)
            memcpy(buffer, f->text + f->at, n);
        if (f->step < 2 && n > 0) {
            *at += f->step == 0 ? -n : n;
            return n;
        }
        if (f->step == 2)
            return 0;
        f->now = around[++f->step];
    }
}

/* Returns the value, or NULL if it is no JSON or memory ran out. */
static json_t *parse(const char *text, size_t n, size_t longest)
{
    struct feed feed = {.text = text, .n = n, .fill = longest, .now = around[0]};
    json_t *pair = json_load_callback(give, &feed, 0, NULL);
    bool complete = json_array_size(pair) == 2 && json_string_length(json_array_get(pair, 0)) == longest;
    json_t *value = complete ? json_incref(json_array_get(pair, 1)) : NULL;
    json_decref(pair);
    return value;
}

int weir_json_object_parse(const char *text, size_t n, struct json_t **object, struct weir_err *err)
{
    json_error_t why;
    size_t longest;
    *object = NULL;
    int rc = weir_json_claim(text, n, &longest, err);
    if (rc < 0)
        return rc;
    errno = 0;
    json_t *value = parse(text, n, longest);
    if (json_is_object(value)) {
        *object = value;
        return 0;
    }
    bool lacks = !value && errno == ENOMEM; /* jansson reports a failed allocation as a syntax error */
    json_decref(value);
    value = lacks ? NULL : json_loadb(text, n, 0, &why); /* for the reason */
    lacks |= json_is_object(value);
    if (!lacks)
        weir_err_set(err, -EBADMSG, "not a JSON object (%s)", value ? "another JSON value" : why.text);
    json_decref(value);
    return lacks ? weir_no_memory(err) : -EBADMSG;
}
