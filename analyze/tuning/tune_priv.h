/* tune_priv.h: steps of the search that its files share: trials of candidates, the race of the finalists, the base. */
#ifndef WEIR_ANALYZE_TUNING_TUNE_PRIV_H
#define WEIR_ANALYZE_TUNING_TUNE_PRIV_H

#include "analyze/tuning/tune_search.h"

/* A smaller possible gain is neither tried nor adopted. */
#define WEIR_TUNE_WORTH (1 + WEIR_CLOSE)

/* Rounds of each finalist; other processes on the machine cost MORE. */
enum { WEIR_TUNE_ROUNDS_MIN = 3, WEIR_TUNE_ROUNDS_MAX = 7, WEIR_TUNE_ROUNDS_MORE = 2 };

/* Measures the setting once (three times where others disturb it), unless it was measured, needs too much memory, or
 * there is no room for it. *index: its number, or -1. why: the hoped-for effect. 0; -EINTR, -ETIME, -ENOMEM. */
int weir_tune_try(struct weir_tune *tune, const struct weir_tune_setting *setting, const char *why, int *index);
/* Whether the setting is predicted to stay within the memory limit. */
bool weir_tune_fits(const struct weir_tune *tune, const struct weir_tune_setting *setting);

/* One trial of a candidate, in the current round. 0; -EINTR, -ETIME, -ENOMEM. A candidate that fails or passes a limit
 * drops out, with the reason in measured.why. */
int weir_tune_trial(struct weir_tune *tune, int candidate);
/* Passes a line to tune->say, as printf. */
void weir_tune_tell(struct weir_tune *tune, const char *format, ...) __attribute__((format(printf, 2, 3)));
/* Whether other processes used cores during the trial. */
bool weir_tune_is_disturbed(const struct weir_tune *tune, const struct weir_trial *trial);

/* Median images/s; 0 when the candidate dropped out or has no trial. Before the rounds of a disturbed search it is the
 * maximum, as other processes only make trials slower. */
double weir_tune_rate(const struct weir_tune *tune, int candidate);
/* Number of the fastest candidate; -1 when none is left. */
int weir_tune_fastest(const struct weir_tune *tune);

/* Runs rounds of the candidates marked as finalists, drops the clearly slower ones, and sets chosen: the cheapest one
 * within 3 % of the fastest. */
int weir_tune_race(struct weir_tune *tune);

/* Relative spread of the trials of one setting; comparisons of single trials allow for it. */
double weir_tune_spread(const struct weir_tune *tune);
/* Whether the candidate's single trials are near those of the fastest: good enough as a base. */
bool weir_tune_keeps_up(const struct weir_tune *tune, int candidate);
/* Whether no bound leaves 3 % more, whatever the workers, the prefetch and the engine. */
bool weir_tune_at_limit(const struct weir_tune *tune);

/* The base of further settings: the first measurement, or a later one that was faster by more than noise. */
struct weir_tune_setting weir_tune_base(const struct weir_tune *tune);
const struct weir_demands *weir_tune_base_demands(const struct weir_tune *tune);
/* Makes the candidate the base if that is worth it. */
bool weir_tune_adopt(struct weir_tune *tune, int candidate);

#endif
