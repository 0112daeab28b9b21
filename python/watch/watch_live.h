/* watch_live.h: live figures of watched loaders. Exported like prof/watch/watch.h, for ctypes. The calls are made one
 * at a time; those that can wait for the thread that shows the figures: weir_watch_live, _live_loader, _live_pause and
 * _live_end. */
#ifndef WEIR_PYTHON_WATCH_WATCH_LIVE_H
#define WEIR_PYTHON_WATCH_WATCH_LIVE_H

#include <stddef.h>

struct weir_watch;

/* Checks an address for weir_watch_live. Returns 0, or -errno with one line in why. */
int weir_watch_live_check(const char *serve, char *why, size_t why_size);
/* Shows the loaders of a watch in a file, if prometheus is not NULL, and over HTTP, if serve is not NULL. version: of
 * the package. page: a weir_live_page_fn, or NULL. Returns 0 with the URL, or -errno with one line in why. */
int weir_watch_live(struct weir_watch *watch, const char *prometheus, const char *serve, int rank, int world_size,
                    const char *version, void *page, char *url, size_t url_size, char *why, size_t why_size);
/* Shows one more loader. Returns 0, or -errno with one line in why. */
int weir_watch_live_loader(int loader, char *why, size_t why_size);
void weir_watch_live_epoch(void);
/* No thread that shows figures exists between pause (1) and resume (0): for fork(). */
void weir_watch_live_pause(int pause);
void weir_watch_live_end(void);

/* Writes the metrics of all loaders of a watch to *text (weir_watch_free). Returns 0 or -errno. */
int weir_watch_metrics(struct weir_watch *watch, int rank, int world_size, const char *version, char **text);

#endif
