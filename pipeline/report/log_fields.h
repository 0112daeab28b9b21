/* log_fields.h: the lines of a log as tables for their writer and their reader (docs/log-format.md). */
#ifndef WEIR_PIPELINE_REPORT_LOG_FIELDS_H
#define WEIR_PIPELINE_REPORT_LOG_FIELDS_H

#include "base/fields.h"

extern const struct weir_fields weir_start_fields;    /* struct weir_start_line */
extern const struct weir_fields weir_epoch_fields;    /* struct weir_epoch_line */
extern const struct weir_fields weir_measured_fields; /* struct weir_measured_line */
extern const struct weir_fields weir_stages_fields;   /* struct weir_loader_report */

#endif
