/* Reads a "whatif" record, the result of weir whatif. */
#include "analyze/logs/log_read_priv.h"

#include "analyze/prediction/whatif.h"
#include "base/text.h"

#include <errno.h>
#include <inttypes.h>
#include <jansson.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

/* Copies a text; "" if it is null or missing. */
static void optional_text(const json_t *object, const char *key, char *text, size_t size)
{
    const char *value = json_string_value(json_object_get(object, key));
    snprintf(text, size, "%s", value ? value : "");
    weir_text_printable(text);
}

static void read_rung(struct weir_log_at *at, const json_t *from, struct weir_whatif_rung *rung)
{
    weir_log_text(at, from, "name", rung->name, sizeof rung->name);
    optional_text(from, "left_out", rung->why, sizeof rung->why);
    rung->images_per_s = weir_log_double(at, from, "images_per_s", 0);
    rung->ratio = weir_log_double(at, from, "ratio", 0);
    rung->ratio_low = weir_log_double(at, from, "ratio_low", 0);
    rung->ratio_high = weir_log_double(at, from, "ratio_high", 0);
    rung->data_wait = weir_log_double(at, from, "data_wait_fraction", -1);
    rung->trials = weir_log_int(at, from, "turns");
}

static void read_change(struct weir_log_at *at, const json_t *from, struct weir_whatif_change *change)
{
    weir_log_text(at, from, "name", change->name, sizeof change->name);
    optional_text(from, "flag", change->flag, sizeof change->flag);
    optional_text(from, "basis", change->basis, sizeof change->basis);
    optional_text(from, "limit", change->limit, sizeof change->limit);
    optional_text(from, "why", change->why, sizeof change->why);
    change->predicted = fmax(weir_log_double(at, from, "predicted", 0), 0);
    change->trials = weir_log_int(at, from, "turns");
    change->measured = weir_log_double(at, from, "measured", 0);
    change->measured_low = weir_log_double(at, from, "measured_low", 0);
    change->measured_high = weir_log_double(at, from, "measured_high", 0);
    change->noise = weir_log_double(at, from, "noise", 0);
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
    weir_log_text(at, object, "data", found->data, sizeof found->data);
    found->cold = weir_log_bool(at, object, "cold", false);
    found->checked = weir_log_bool(at, object, "checked", false);
    found->interrupted = weir_log_bool(at, object, "interrupted", false);
    found->workers = weir_log_int(at, object, "num_workers");
    found->prefetch = weir_log_int(at, object, "prefetch");
    found->batch_size = weir_log_int(at, object, "batch_size");
    found->cores = weir_log_int(at, object, "cores");
    found->images_per_s = weir_log_double(at, object, "images_per_s", 0);
    found->data_wait = weir_log_double(at, object, "data_wait_fraction", 0);
    found->simulated = weir_log_double(at, object, "simulated_images_per_s", 0);
    found->stretch = weir_log_double(at, object, "stretch", 1);
    found->seconds = weir_log_double(at, object, "seconds", 0);
    read_verdict(object, found);
    const json_t *rungs = weir_log_array(at, object, "ladder", WEIR_WHATIF_RUNGS);
    for (size_t i = 0; rungs && i < json_array_size(rungs); i++)
        read_rung(at, json_array_get(rungs, i), weir_whatif_add_rung(found, ""));
    const json_t *changes = weir_log_array(at, object, "changes", WEIR_WHATIF_CHANGES);
    for (size_t i = 0; changes && i < json_array_size(changes); i++)
        read_change(at, json_array_get(changes, i), weir_whatif_add_change(found, ""));
    return 0;
}
