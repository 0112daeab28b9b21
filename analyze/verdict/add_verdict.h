/* add_verdict.h: the verdict behind the tables that commands print, and in their JSON. */
#ifndef WEIR_ANALYZE_VERDICT_ADD_VERDICT_H
#define WEIR_ANALYZE_VERDICT_ADD_VERDICT_H

#include "analyze/verdict/verdict.h"
#include "weir/report.h"

/* For weir_loader_report, which takes the addition in it; it stays where it is until then. */
struct weir_added_verdict {
    struct weir_report_addition addition;
    struct weir_loader *loader_;
    struct weir_verdict verdict_; /* of the report that is being written */
};

/* loader (may be NULL) is borrowed, and probed when the last report cannot tell otherwise what storage lacks. */
void weir_add_verdict(struct weir_added_verdict *added, struct weir_loader *loader);

/* After the report: the verdict is another than "cannot tell". */
bool weir_added_verdict_tells(const struct weir_added_verdict *added);

/* The same for a report that was read back. */
void weir_verdict_of_log(FILE *out, const struct weir_loader_report *report);
void weir_verdict_of_log_json(struct weir_json *json, const struct weir_loader_report *report);

#endif
