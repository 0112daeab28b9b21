/* progress.h: progress on stderr. A terminal shows one live line, which is redrawn. It is off if $TERM is "dumb". */
#ifndef WEIR_CLI_PROGRESS_H
#define WEIR_CLI_PROGRESS_H

#include <stdbool.h>
#include <stdint.h>

/* ---- the live line ---- */

#define WEIR_ANNOUNCE_S 20 /* a longer run announces its duration */
enum { WEIR_TIME_LEFT = 24 };

/* Returns whether stderr is a terminal that can show a live line. */
bool weir_progress_on_terminal(void);
/* Draws the line in place of the previous one, cut to the terminal's width. */
void weir_progress_draw(const char *text);
/* Erases the line, if there is one, before other output. */
void weir_progress_clear(void);
/* Returns the characters that erase the line, as the beginning of a message that is printed to stderr by one call on
 * any thread. They are "" if there is no line. */
const char *weir_progress_erase(void);

/* Format a remaining time, such as "2:41" or "1:02:41", and an approximate duration, such as "4.5 s" or "3 min". */
void weir_time_left(double seconds, char text[WEIR_TIME_LEFT]);
void weir_duration(double seconds, char text[WEIR_TIME_LEFT]);

/* ---- trials ---- */

struct weir_trial_progress {
    bool terminal;
    uint64_t begin_ns, end_ns; /* the start, and the time limit */
    int done, total;           /* number of trials; total: at least, 0 = unknown */
};

/* Starts counting. If the time limit is the only estimate (total is 0) and it is long, announces it. limit is its
 * option, such as "--max-minutes". */
void weir_trial_progress_begin(struct weir_trial_progress *progress, int total, uint64_t end_ns, const char *limit);
/* Counts a trial and shows the number of trials, the remaining time, and text on a terminal. */
void weir_trial_progress(struct weir_trial_progress *progress, const char *text);

/* ---- counted work: opening, verifying and converting datasets ---- */

/* The line of a terminal starts after one second. Otherwise a new line is printed every ten seconds. */
struct weir_progress {
    bool terminal, shown;
    uint64_t last_ns;
    const char *doing; /* for weir_rate_progress: the activity that began at begin_ns, after begin_done units */
    uint64_t begin_ns, begin_done;
    bool announced;
};

void weir_progress_begin(struct weir_progress *progress);

/* Shows progress with frames per second and the remaining time, and announces the duration if it is long. doing is a
 * static string that names the activity. A different pointer restarts the rate. */
void weir_rate_progress(struct weir_progress *progress, const char *doing, uint64_t done, uint64_t total);

/* Callback for weir_dataset_config and weir_loader_config. user is a struct weir_progress. */
void weir_index_progress(void *user, int done, int total);

#endif
