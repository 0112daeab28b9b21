/* compare.h: opens a copy as any reader would, and compares every sample with the converted source. */
#ifndef WEIR_CONVERT_COMPARE_H
#define WEIR_CONVERT_COMPARE_H

#include "convert/plan.h"

/* path: the copy. Numbers, strings and frames must be identical; for PNGs, their pixels must be identical. Stores the
 * loss of new JPEGs in report. Returns 0, or -EBADMSG with the first difference, or another negative code. */
int weir_convert_compare(const struct weir_convert_plan *plan, const char *path, int workers,
                         struct weir_convert_report *report, struct weir_err *err);

#endif
