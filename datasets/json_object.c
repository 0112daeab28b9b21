#include "datasets/json_object.h"
#include "base/shortage.h"

#include <errno.h>
#include <stdbool.h>

#include <jansson.h>

/* If memory runs out, jansson reports a syntax error or silently drops a character of a string. malloc sets errno to
 * ENOMEM, but parsing a later number resets errno. So the JSON is parsed twice and the results are compared, because
 * the same failure will not occur unnoticed in the same place twice. */
int weir_json_object_parse(const char *text, size_t n, struct json_t **object, struct weir_err *err)
{
    json_error_t why;
    errno = 0;
    json_t *value = json_loadb(text, n, 0, &why);
    bool lacks = errno == ENOMEM;
    if (json_is_object(value) && !lacks) {
        json_t *again = json_loadb(text, n, 0, NULL);
        lacks = !json_equal(value, again);
        json_decref(again);
    }
    *object = json_is_object(value) && !lacks ? value : NULL;
    if (*object)
        return 0;
    json_decref(value);
    if (lacks)
        return weir_no_memory(err);
    return weir_err_set(err, -EBADMSG, "not a JSON object (%s)", value ? "another JSON value" : why.text);
}
