/* Prints the keys of a log's lines as their field tables define them, for check_log_format.py: "stages io.reads". */
#include "analyze/jobs/dataloader.h"
#include "analyze/prediction/whatif.h"
#include "pipeline/report/log_fields.h"

#include <stdio.h>

static void print_fields(const char *line, const char *above, const struct weir_fields *fields)
{
    char key[512];
    for (int i = 0; i < fields->n; i++) {
        const struct weir_field *field = &fields->fields[i];
        snprintf(key, sizeof key, "%s%s%s", above, *above && field->key ? "." : "", field->key ? field->key : "");
        if (field->key)
            printf("%s %s\n", line, key);
        if (field->older)
            printf("%s %s%s%s\n", line, above, *above ? "." : "", field->older);
        if (field->inner)
            print_fields(line, key, field->inner);
    }
}

int main(void)
{
    print_fields("start", "", &weir_start_fields);
    print_fields("epoch", "", &weir_epoch_fields);
    print_fields("measured", "", &weir_measured_fields);
    print_fields("stages", "", &weir_stages_fields);
    print_fields("watch", "", &weir_watch_fields);
    print_fields("whatif", "", &weir_whatif_fields);
    print_fields("whatif", "ladder", &weir_whatif_rung_fields);
    print_fields("whatif", "changes", &weir_whatif_change_fields);
    return 0;
}
