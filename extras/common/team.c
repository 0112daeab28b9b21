#include "extras/common/team.h"
#include "base/threads.h"

#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>

enum { SPINS = 1000 };
static const uint64_t sleep_ns = 1000000000;

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
    _Atomic int left;       /* threads that have not finished this round */
    struct weir_eventcount begun, finished;
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

static void wait_for_round(struct weir_team *team, uint32_t seen)
{
    for (int i = 0; i < SPINS; i++) {
        if (atomic_load(&team->round) != seen)
            return;
        spin();
    }
    for (;;) {
        uint32_t key = weir_eventcount_prepare(&team->begun);
        if (atomic_load(&team->round) != seen)
            return;
        weir_eventcount_wait(&team->begun, key, sleep_ns);
    }
}

static void *member_main(void *user)
{
    struct member *member = user;
    struct weir_team *team = member->team;
    for (uint32_t seen = 0;; seen++) {
        wait_for_round(team, seen);
        if (team->ends)
            return NULL;
        team->work(team->user, member->part, team->size);
        if (atomic_fetch_sub(&team->left, 1) == 1)
            weir_eventcount_notify(&team->finished);
    }
}

static void begin_round(struct weir_team *team)
{
    atomic_store(&team->left, team->started);
    atomic_fetch_add(&team->round, 1);
    weir_eventcount_notify(&team->begun);
}

static void wait_for_members(struct weir_team *team)
{
    for (int i = 0; i < SPINS; i++) {
        if (atomic_load(&team->left) == 0)
            return;
        spin();
    }
    for (;;) {
        uint32_t key = weir_eventcount_prepare(&team->finished);
        if (atomic_load(&team->left) == 0)
            return;
        weir_eventcount_wait(&team->finished, key, sleep_ns);
    }
}

int weir_team_open(struct weir_team **out, int threads)
{
    *out = NULL;
    struct weir_team *team = calloc(1, sizeof *team + (size_t)threads * sizeof team->members[0]);
    if (!team)
        return -ENOMEM;
    team->size = threads;
    for (int part = 1; part < threads; part++) {
        struct member *member = &team->members[part];
        *member = (struct member){.team = team, .part = part};
        int rc = weir_thread_start(&member->thread, member_main, member);
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
    wait_for_members(team);
}
