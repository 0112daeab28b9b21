/* tune_race.h: finalists of a search take turns in rounds until it is known which are within 3 % of the fastest. */
#ifndef WEIR_ANALYZE_TUNING_TUNE_RACE_H
#define WEIR_ANALYZE_TUNING_TUNE_RACE_H

#include "analyze/tuning/tune_search.h"

/* Beside other processes two rounds more of each. */
enum { WEIR_TUNE_ROUNDS_MIN = 3, WEIR_TUNE_ROUNDS_MAX = 7, WEIR_TUNE_ROUNDS_MORE = 2 };

/* One turn of a candidate, in the current round. 0; -EINTR, -ETIME, -ENOMEM. A candidate that fails or passes a limit
 * is out: its cell says why. */
int weir_tune_turn(struct weir_tune *tune, int candidate);
/* What is said, printf's way. */
void weir_tune_tell(struct weir_tune *tune, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* Other processes used cores during the turn. */
bool weir_tune_is_disturbed(const struct weir_tune *tune, const struct weir_turn *turn);

/* Median images/s; 0 when it is out, or has had no turn. Where other processes disturb turns, the highest instead as
 * long as there were no rounds: they only ever make a turn slower. */
double weir_tune_rate(const struct weir_tune *tune, int candidate);
/* Number of the fastest candidate; -1 when none is left. */
int weir_tune_fastest(const struct weir_tune *tune);

/* Takes rounds among the candidates marked as finalists, drops those that are clearly slower, and sets chosen: the
 * cheapest that is within 3 % of the fastest. */
int weir_tune_race(struct weir_tune *tune);

#endif
