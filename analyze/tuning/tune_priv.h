/* tune_priv.h: parts of the search that its files share: trials of candidates, the race between finalists, and the
 * base. */
#ifndef WEIR_ANALYZE_TUNING_TUNE_PRIV_H
#define WEIR_ANALYZE_TUNING_TUNE_PRIV_H

#include "analyze/tuning/tune_search.h"

/* Settings with a smaller possible gain are neither tried nor adopted. */
#define WEIR_TUNE_WORTH (1 + WEIR_CLOSE)

/* Number of rounds for each finalist. MORE rounds are added if other processes use the machine. */
enum { WEIR_TUNE_ROUNDS_MIN = 3, WEIR_TUNE_ROUNDS_MAX = 7, WEIR_TUNE_ROUNDS_MORE = 2 };

/* Measures a setting once, or up to three times if other processes disturb it. Skips a setting that has been measured,
 * that needs too much memory, or for which the list has no room. Sets *index to the candidate's index, or -1. why:
 * reason for the trial. Returns 0, -EINTR, -ETIME or -ENOMEM. */
int weir_tune_try(struct weir_tune *tune, const struct weir_tune_setting *setting, const char *why, int *index);
/* Returns whether the setting's predicted memory is within the limit. */
bool weir_tune_fits(const struct weir_tune *tune, const struct weir_tune_setting *setting);

/* Runs one trial of a candidate in the current round. A candidate that fails or exceeds a limit drops out, with the
 * reason in measured.why. Returns 0, -EINTR, -ETIME or -ENOMEM. */
int weir_tune_trial(struct weir_tune *tune, int candidate);
/* Formats a line like printf and passes it to tune->say. */
void weir_tune_tell(struct weir_tune *tune, const char *format, ...) __attribute__((format(printf, 2, 3)));
/* Returns whether other processes used cores during the trial. */
bool weir_tune_is_disturbed(const struct weir_tune *tune, const struct weir_trial *trial);

/* Returns the median images/s of weir_tune_interval, or 0 if the candidate dropped out or has no trial. If other
 * processes disturb the search, returns the maximum instead until the rounds begin, because disturbances only make
 * trials slower. */
double weir_tune_rate(const struct weir_tune *tune, int candidate);
/* Returns the index of the fastest candidate, or -1 if none is left. */
int weir_tune_fastest(const struct weir_tune *tune);

/* Runs rounds of the finalists and drops those that are clearly slower. Then sets chosen to the cheapest candidate
 * within 3 % of the fastest. */
int weir_tune_race(struct weir_tune *tune);

/* Returns the relative spread between trials of the same setting. Comparisons of single trials allow for it. */
double weir_tune_spread(const struct weir_tune *tune);
/* Returns whether the candidate is nearly as fast as the fastest one, judging by single trials, so that it can be a
 * base. */
bool weir_tune_keeps_up(const struct weir_tune *tune, int candidate);
/* Returns whether the fastest rate is within 3 % of a bound that workers, prefetch and engine cannot change. */
bool weir_tune_at_limit(const struct weir_tune *tune);

/* Returns the setting from which further settings are derived: the fastest of those measured at first, or a later one
 * that was clearly faster. */
struct weir_tune_setting weir_tune_base(const struct weir_tune *tune);
const struct weir_demands *weir_tune_base_demands(const struct weir_tune *tune);
/* Makes the candidate the base if it is fast enough. Returns whether it did. */
bool weir_tune_adopt(struct weir_tune *tune, int candidate);

#endif
