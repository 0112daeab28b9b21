/* team.h: a team of threads that run the parts of one task together, repeatedly, such as a layer of a network.
 *
 * Between tasks the threads spin for about 20 us before they sleep, because the next layer usually follows at once. One
 * thread uses a team, and runs part 0 itself. */
#ifndef WEIR_EXTRAS_COMMON_TEAM_H
#define WEIR_EXTRAS_COMMON_TEAM_H

struct weir_team;

/* threads includes the caller, at least 1. 0, -ENOMEM or -EAGAIN (no thread available). */
int weir_team_open(struct weir_team **out, int threads);
/* Accepts NULL, and sets it to NULL. */
void weir_team_close(struct weir_team **team);

int weir_team_size(const struct weir_team *team);
/* Calls work(user, part, parts) for each part of parts = weir_team_size, each in its own thread. Returns after the last
 * one. */
void weir_team_run(struct weir_team *team, void (*work)(void *user, int part, int parts), void *user);

#endif
