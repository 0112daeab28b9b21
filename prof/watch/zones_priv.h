/* zones_priv.h: what a thread that writes figures keeps to itself. */
#ifndef WEIR_PROF_WATCH_ZONES_PRIV_H
#define WEIR_PROF_WATCH_ZONES_PRIV_H

#include "prof/watch/segment_priv.h"

enum { WEIR_WATCH_OWN_SLOTS = WEIR_WATCH_LOADERS };

enum weir_watch_mode {
    WEIR_WATCH_NORMAL,
    WEIR_WATCH_HELD,    /* batches are held back */
    WEIR_WATCH_WINDOW,  /* batches are handed out without waits */
    WEIR_WATCH_RECOVER, /* the workers have run ahead meanwhile */
};

/* A loader's loop, as its thread sees it. */
struct weir_watch_loop {
    enum weir_watch_mode mode, request_mode; /* from now on, and of the open request or step */
    int recover;                             /* steps until the workers are no longer ahead */
    int window;                              /* batches of the last window without waits */
    bool is_open, has_batch;                 /* a request is open; a step is open */
    bool has_zone;                           /* the open request has a zone */
    bool is_first;                           /* of the epoch */
    enum weir_watch_wait why;
    int ready, due_worker, items;
    uint64_t request_start, wait;
    bool in_epoch;
    uint64_t epoch_start, startup;
    uint64_t epoch_wait, epoch_first_wait, epoch_batches, epoch_items;
};

struct weir_watch_thread {
    struct weir_watch *watch;
    struct weir_thread *thread;    /* its zones; their owners are slots */
    struct weir_shared_slot *slot; /* of the loader that the thread works for */
    struct weir_shared_slot *own[WEIR_WATCH_OWN_SLOTS];
    int n_own;
    unsigned until_sample;
    struct weir_own_file schedstat;
    struct weir_lap lap;            /* since the last batch, or since the thread began */
    bool has_batches;               /* there was a batch */
    uint64_t path_hash, path_start; /* the file that the open item reads; 0 = none */
    char path_name[WEIR_PATH_WORDS * 8];
    struct weir_watch_loop loops[WEIR_WATCH_LOADERS];
};

/* The calling thread's state; NULL if it has no slot. */
extern __thread struct weir_watch_thread *weir_watch_mine __attribute__((tls_model("initial-exec")));
static inline struct weir_watch_thread *weir_watch_self(void)
{
    return weir_watch_mine;
}

/* Makes the calling thread work for a loader, with a new slot if it has none for it. The role is that of its current
 * slot. Returns false if it has no slot or there is none left. */
bool weir_watch_turn_to(struct weir_watch_thread *self, int loader);

/* Makes it work for the loader of its innermost zone again, whose batch iterates the other loader. */
void weir_watch_turn_back(struct weir_watch_thread *self);

void weir_watch_zone_open(struct weir_watch_thread *self, int stage, uint64_t now);
/* Closes the innermost zone of this stage, wherever it is on the stack, if there is one. Zones above it stay open.
 * loader: -1 = any. Returns its duration. */
uint64_t weir_watch_zone_close_stage(struct weir_watch_thread *self, int stage, int loader, uint64_t now);
/* Forgets it instead. */
void weir_watch_zone_drop(struct weir_watch_thread *self, int stage, int loader);

/* Brings the slot's CPU time, waits for a core and time covered up to date. */
void weir_watch_account(struct weir_watch_thread *self, uint64_t now);
/* Decides whether the CPU time of the zones from now on is read, once per batch or request. */
void weir_watch_sample_next(struct weir_watch_thread *self);

#endif
