/* log_fields.h: the lines of a log as tables, for both the writer and the reader of logs
 * (docs/internals/log-format.md). */
#ifndef WEIR_PIPELINE_REPORT_LOG_FIELDS_H
#define WEIR_PIPELINE_REPORT_LOG_FIELDS_H

#include "base/fields.h"

extern const struct weir_fields weir_start_fields;    /* for struct weir_start_line */
extern const struct weir_fields weir_epoch_fields;    /* for struct weir_epoch_line */
extern const struct weir_fields weir_measured_fields; /* for struct weir_measured_line */
extern const struct weir_fields weir_stages_fields;   /* for struct weir_loader_report */
const char *weir_reads_field_name(int reads);         /* for NAME fields that are an enum weir_reads */

#endif
