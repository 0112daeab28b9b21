/* compare.h: opens a copy as any reader would, and compares every sample with what conversion makes of its source. */
#ifndef WEIR_CONVERT_COMPARE_H
#define WEIR_CONVERT_COMPARE_H

#include "convert/plan.h"

/* path: of the copy. Numbers, texts and frames have to be the same bit for bit (PNGs: their pixels); what JPEGs that
 * were made have lost is put into report. 0, or -EBADMSG with the first difference. */
int weir_convert_compare(const struct weir_convert_plan *plan, const char *path, int workers,
                         struct weir_convert_report *report, struct weir_err *err);

#endif
