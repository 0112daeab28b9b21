/* team.h: threads that do the parts of one piece of work together, again and again: what a layer is computed by.
 *
 * Between pieces of work the threads spin for some 20 us before they sleep, because the next layer usually follows at
 * once. One thread uses a team; it does part 0 itself. */
#ifndef WEIR_EXTRAS_COMMON_TEAM_H
#define WEIR_EXTRAS_COMMON_TEAM_H

struct weir_team;

/* threads: at least 1, the caller counted. 0; -ENOMEM or -EAGAIN (no thread to be had). */
int weir_team_open(struct weir_team **out, int threads);
/* Accepts NULL, and sets it to NULL. */
void weir_team_close(struct weir_team **team);

int weir_team_size(const struct weir_team *team);
/* Calls work(user, part, parts) for each part of parts = weir_team_size, each in a thread of its own, and returns when
 * all have returned. */
void weir_team_run(struct weir_team *team, void (*work)(void *user, int part, int parts), void *user);

#endif
