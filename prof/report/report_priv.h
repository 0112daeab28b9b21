/* report_priv.h: shared by the files of the tables. */
#ifndef WEIR_PROF_REPORT_REPORT_PRIV_H
#define WEIR_PROF_REPORT_REPORT_PRIV_H

#include "weir/profiler.h"

/* The lines of threads. Fill returns 0 or -ENOMEM. */
int weir_report_fill_threads(struct weir_report *report, const struct weir_snapshot *snapshot);

#endif
