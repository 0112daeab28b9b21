/* Reads a "whatif" record, which contains the result of weir whatif. */
#include "analyze/logs/log_read_priv.h"

#include "analyze/prediction/whatif.h"
#include "base/text.h"

#include <errno.h>
#include <inttypes.h>
#include <jansson.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

/* Copies a string member, or "" if it is null or missing. */
static void optional_text(const json_t *object, const char *key, char *text, size_t size)
{
    const char *value = json_string_value(json_object_get(object, key));
    snprintf(text, size, "%s", value ? value : "");
    weir_text_printable(text);
}

static void read_verdict(const json_t *object, struct weir_whatif *found)
{
    const json_t *lines = json_object_get(object, "verdict");
    size_t used = 0;
    for (size_t i = 0; i < json_array_size(lines) && used + 2 < sizeof found->verdict; i++) {
        char line[1024];
        const char *text = json_string_value(json_array_get(lines, i));
        snprintf(line, sizeof line, "%s", text ? text : "");
        weir_text_printable(line);
        int n = snprintf(found->verdict + used, sizeof found->verdict - used, "%s\n", line);
        used = used + (size_t)n < sizeof found->verdict ? used + (size_t)n : sizeof found->verdict - 1;
    }
}

int weir_log_read_whatif(struct weir_log_at *at, const json_t *object, struct weir_whatif **out)
{
    struct weir_whatif *found = *out = calloc(1, sizeof *found);
    if (!found)
        return weir_err_set(at->err, -ENOMEM, "line %" PRIu64 ": out of memory", at->line);
    weir_log_fields(at, object, &weir_whatif_fields, found);
    read_verdict(object, found);
    const json_t *from = weir_log_array(at, object, "ladder", WEIR_WHATIF_RUNGS);
    for (size_t i = 0; i < json_array_size(from); i++) {
        struct weir_whatif_rung *rung = weir_whatif_add_rung(found, "");
        weir_log_fields(at, json_array_get(from, i), &weir_whatif_rung_fields, rung);
        optional_text(json_array_get(from, i), "left_out", rung->why, sizeof rung->why);
    }
    from = weir_log_array(at, object, "changes", WEIR_WHATIF_CHANGES);
    for (size_t i = 0; i < json_array_size(from); i++) {
        struct weir_whatif_change *change = weir_whatif_add_change(found, "");
        weir_log_fields(at, json_array_get(from, i), &weir_whatif_change_fields, change);
        change->predicted = fmax(weir_log_double(at, json_array_get(from, i), "predicted", 0), 0);
    }
    return 0;
}
