#include "extras/common/team.h"

#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>

enum { SPINS = 1000 };

struct member {
    struct weir_team *team;
    pthread_t thread;
    int part;
};

struct weir_team {
    int size, started; /* all threads; threads started, which excludes the caller */
    void (*work)(void *user, int part, int parts);
    void *user;
    bool ends;
    _Atomic uint32_t round; /* number of tasks so far; storing it publishes the fields above to the other threads */
    _Atomic uint32_t left;  /* threads that have not finished this round */
    pthread_mutex_t lock;
    pthread_cond_t begun, finished; /* signalled, with the lock held, after "round" and "left" have changed */
    struct member members[];
};

static void spin(void)
{
#if defined(__x86_64__)
    __builtin_ia32_pause();
#elif defined(__aarch64__)
    __asm__ volatile("yield");
#endif
}

static void notify(struct weir_team *team, pthread_cond_t *changed)
{
    pthread_mutex_lock(&team->lock);
    pthread_cond_broadcast(changed);
    pthread_mutex_unlock(&team->lock);
}

/* Waits until *value is, or (with differs) is not, the number. */
static void wait_for(struct weir_team *team, _Atomic uint32_t *value, uint32_t number, bool differs,
                     pthread_cond_t *changed)
{
    for (int i = 0; i < SPINS; i++) {
        if ((atomic_load(value) != number) == differs)
            return;
        spin();
    }
    pthread_mutex_lock(&team->lock);
    while ((atomic_load(value) != number) != differs)
        pthread_cond_wait(changed, &team->lock);
    pthread_mutex_unlock(&team->lock);
}

static void *member_main(void *user)
{
    struct member *member = user;
    struct weir_team *team = member->team;
    for (uint32_t seen = 0;; seen++) {
        wait_for(team, &team->round, seen, true, &team->begun);
        if (team->ends)
            return NULL;
        team->work(team->user, member->part, team->size);
        if (atomic_fetch_sub(&team->left, 1) == 1)
            notify(team, &team->finished);
    }
}

static void begin_round(struct weir_team *team)
{
    atomic_store(&team->left, (uint32_t)team->started);
    atomic_fetch_add(&team->round, 1);
    notify(team, &team->begun);
}

int weir_team_thread(pthread_t *thread, void *(*main)(void *), void *user)
{
    sigset_t all, before;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    int rc = pthread_create(thread, NULL, main, user);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    return -rc;
}

int weir_team_open(struct weir_team **out, int threads)
{
    *out = NULL;
    struct weir_team *team = calloc(1, sizeof *team + (size_t)threads * sizeof team->members[0]);
    if (!team)
        return -ENOMEM;
    team->size = threads;
    pthread_mutex_init(&team->lock, NULL);
    pthread_cond_init(&team->begun, NULL);
    pthread_cond_init(&team->finished, NULL);
    for (int part = 1; part < threads; part++) {
        struct member *member = &team->members[part];
        *member = (struct member){.team = team, .part = part};
        int rc = weir_team_thread(&member->thread, member_main, member);
        if (rc < 0) {
            weir_team_close(&team);
            return rc;
        }
        team->started++;
    }
    *out = team;
    return 0;
}

void weir_team_close(struct weir_team **team)
{
    if (!*team)
        return;
    (*team)->ends = true;
    begin_round(*team);
    for (int part = 1; part <= (*team)->started; part++)
        pthread_join((*team)->members[part].thread, NULL);
    pthread_cond_destroy(&(*team)->finished);
    pthread_cond_destroy(&(*team)->begun);
    pthread_mutex_destroy(&(*team)->lock);
    free(*team);
    *team = NULL;
}

int weir_team_size(const struct weir_team *team)
{
    return team->size;
}

void weir_team_run(struct weir_team *team, void (*work)(void *user, int part, int parts), void *user)
{
    team->work = work;
    team->user = user;
    begin_round(team);
    work(user, 0, team->size);
    wait_for(team, &team->left, 0, false, &team->finished);
}
