/* Reads a "whatif" record, which contains the result of weir whatif. */
#include "analyze/logs/log_read_priv.h"

#include "analyze/prediction/whatif.h"
#include "base/text.h"

#include <errno.h>
#include <inttypes.h>
#include <jansson.h>
#include <stdlib.h>
#include <string.h>

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
    for (size_t i = 0; i < json_array_size(from); i++)
        weir_log_fields(at, json_array_get(from, i), &weir_whatif_rung_fields, weir_whatif_add_rung(found, ""));
    from = weir_log_array(at, object, "changes", WEIR_WHATIF_CHANGES);
    for (size_t i = 0; i < json_array_size(from); i++)
        weir_log_fields(at, json_array_get(from, i), &weir_whatif_change_fields, weir_whatif_add_change(found, ""));
    return 0;
}
