/* live_report.h: reports of a running loader for other threads than the consumer's, which they never delay: they read
 * what the threads of the loader count, without taking anything from the reports of the consumer (weir/report.h). */
#ifndef WEIR_PIPELINE_REPORT_LIVE_REPORT_H
#define WEIR_PIPELINE_REPORT_LIVE_REPORT_H

#include "weir/report.h"

/* Starts counting for live reports. Call it on the consumer's thread, before the first of them. setup: the reports have
 * a setup, from which verdicts predict. Returns 0 or -ENOMEM. */
int weir_live_report_begin(struct weir_loader_reports *reports, bool setup);

/* Fills in the report for the time since weir_live_report_begin. It lacks the figures that only the consumer's thread
 * can read (epochs, late batches) or that take time to measure (cameras and files, the speed of copies and of storage),
 * and the min and max of ready batches. Thread-safe, before weir_loader_reports_end. The caller clears the
 * report (weir_loader_report_clear). Returns 0 or -ENOMEM. */
int weir_live_report(const struct weir_loader_reports *reports, struct weir_loader_report *report);

#endif
