/* team.h: a team of threads that work together on one task after another, such as the layers of a network.
 *
 * After a task the threads spin for about 20 us before they sleep, because the next task usually follows immediately.
 * A team must be used by one thread only, which also runs part 0. */
#ifndef WEIR_EXTRAS_COMMON_TEAM_H
#define WEIR_EXTRAS_COMMON_TEAM_H

#include <pthread.h>

/* Starts a thread that blocks all signals, so that the program's own threads receive them. Returns 0 or -errno. */
int weir_team_thread(pthread_t *thread, void *(*main)(void *), void *user);

struct weir_team;

/* "threads" is at least 1 and includes the caller. 0, -ENOMEM or -EAGAIN (cannot start a thread). */
int weir_team_open(struct weir_team **out, int threads);
/* Accepts a pointer to NULL, and sets the pointer to NULL. */
void weir_team_close(struct weir_team **team);

int weir_team_size(const struct weir_team *team);
/* Calls work(user, part, parts) once for each part 0 .. parts-1, each in its own thread. parts is weir_team_size.
 * Returns when all calls have returned. */
void weir_team_run(struct weir_team *team, void (*work)(void *user, int part, int parts), void *user);

#endif
