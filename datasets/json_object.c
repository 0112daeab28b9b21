#include "datasets/json_object.h"

#include <errno.h>
#include <stdbool.h>

#include <jansson.h>

int weir_json_object_parse(const char *text, size_t n, struct json_t **object, struct weir_err *err)
{
    json_error_t why;
    /* Without memory jansson reports a syntax error, or loses a character of a string; malloc leaves it in errno. */
    errno = 0;
    json_t *value = json_loadb(text, n, 0, &why);
    bool lacks = errno == ENOMEM;
    *object = json_is_object(value) && !lacks ? value : NULL;
    if (*object)
        return 0;
    json_decref(value);
    if (lacks)
        return weir_err_set(err, -ENOMEM, "out of memory");
    return weir_err_set(err, -EBADMSG, "not a JSON object (%s)", value ? "another JSON value" : why.text);
}
