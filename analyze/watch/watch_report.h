/* watch_report.h: reports of a watched loader. These functions are exported by the library that the Python package
 * opens with ctypes; they are called in the training process, on any thread. */
#ifndef WEIR_ANALYZE_WATCH_WATCH_REPORT_H
#define WEIR_ANALYZE_WATCH_WATCH_REPORT_H

#include <stddef.h>

struct weir_watch;

enum weir_watch_what {
    WEIR_WATCH_TABLE,   /* verdict and tables */
    WEIR_WATCH_VERDICT, /* the verdict without tables */
    WEIR_WATCH_JSON,    /* one JSON object */
    WEIR_WATCH_LOG,     /* log lines (JSON lines): epochs since the last call for lines, and a "stages" line */
    WEIR_WATCH_PAGE,    /* the lines of a log, for a page; later logs have the same epochs again */
    WEIR_WATCH_TRIAL,   /* what weir.Loader gives, if the setting weir_items_s is known */
};

/* Writes a report to *text, which the caller frees with weir_watch_free. loader: -1 = the one that is waited for most.
 * whole: the time since the watch began; else the time since the last report of this loader that was not whole. lang:
 * "en" or "zh" for the tables. Returns 0 or -errno, with *text = NULL: -EINVAL for an unknown loader, kind of report or
 * language. */
int weir_watch_report(struct weir_watch *watch, int loader, int what, int whole, const char *lang, char **text);
void weir_watch_free(char *text);
/* Writes a file completely, or leaves it as it was (base/gz_file.h). On failure returns -errno and writes one line to
 * why. */
int weir_watch_write(const char *path, const char *bytes, size_t n, char *why, size_t why_size);

/* Starts or stops the thread that samples what the watched threads wait for. It also stops before any fork() of this
 * process, and starts again with the next request of a loop. A process has one such thread. */
void weir_watch_sampling(struct weir_watch *watch, int on);

#endif
