/* tune_priv.h: what the steps of the search share. */
#ifndef WEIR_ANALYZE_TUNING_TUNE_PRIV_H
#define WEIR_ANALYZE_TUNING_TUNE_PRIV_H

#include "analyze/tuning/tune_search.h"

/* What can raise the rate by less is not tried, and not adopted. */
#define WEIR_TUNE_WORTH (1 + WEIR_CLOSE)

/* Measures the setting once (thrice, where others disturb it), unless it was measured, would take too much memory, or
 * has no place. *index: its number, or -1. why: what is hoped for. 0; -EINTR, -ETIME, -ENOMEM. */
int weir_tune_try(struct weir_tune *tune, const struct weir_tune_setting *setting, const char *why, int *index);
/* Whether it will take no more memory than it may. */
bool weir_tune_fits(const struct weir_tune *tune, const struct weir_tune_setting *setting);

/* How far turns of one setting were apart, of their median: what single turns are compared with is so much wider. */
double weir_tune_spread(const struct weir_tune *tune);
/* Its single turns are near those of the fastest: good enough to go on from. */
bool weir_tune_keeps_up(const struct weir_tune *tune, int candidate);
/* No bound leaves 3 % more, whatever the workers, the prefetch and the engine. */
bool weir_tune_at_limit(const struct weir_tune *tune);

/* What the search goes on from: the first measurement, and what was faster by more than noise might be. */
struct weir_tune_setting weir_tune_base(const struct weir_tune *tune);
const struct weir_demands *weir_tune_base_demands(const struct weir_tune *tune);
/* Takes the candidate for the base when it is worth it. */
bool weir_tune_adopt(struct weir_tune *tune, int candidate);

#endif
