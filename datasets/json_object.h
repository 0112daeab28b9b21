/* json_object.h: parses JSON objects in datasets. */
#ifndef WEIR_DATASETS_JSON_OBJECT_H
#define WEIR_DATASETS_JSON_OBJECT_H

#include "weir/base.h"

#include <stddef.h>

struct json_t;

/* Parses a JSON object. The caller releases it with json_decref(*object). Returns 0; -ENOMEM; -EBADMSG with err "not a
 * JSON object (why)"; or -E2BIG if its values would take too much memory. *object is NULL after an error. */
int weir_json_object_parse(const char *text, size_t n, struct json_t **object, struct weir_err *err);

#endif
