/* rank_exchange.h: sends a text of each rank to rank 0, through the store of torch.distributed.
 *
 * A small thread of its own does all network calls: publishing costs the caller a copy, and a store that hangs, lies or
 * vanishes never delays it. The thread also repeats the text every few seconds with a counter, so that rank 0 sees
 * which ranks are alive. Texts are opaque here. In a child of fork() an exchange does nothing. */
#ifndef WEIR_PROF_RANKS_RANK_EXCHANGE_H
#define WEIR_PROF_RANKS_RANK_EXCHANGE_H

#include "prof/ranks/tcp_store.h"
#include "weir/base.h"

#include <stdbool.h>
#include <stdint.h>

enum {
    WEIR_EXCHANGE_TEXT = WEIR_STORE_VALUE,
    WEIR_EXCHANGE_RANKS = 16384
}; /* max bytes of a text; max number of ranks */

struct weir_exchange;

struct weir_exchange_config {
    struct weir_store_address address;
    char
        key[128]; /* prefix of the keys: the same on all ranks of a run, and different for each exchange of a process */
    int rank, world_size;
    double beat_s; /* time between repetitions; 0 = 5 s */
    /* Called on the exchange's thread of rank 0 after it has read all ranks; may be NULL. It must not call
     * weir_exchange_close or weir_exchange_pause. */
    void (*gathered)(void *user);
    void *user;
};

/* Starts the thread. Returns 0, -E2BIG, -ENOMEM or the error of the thread. */
int weir_exchange_open(struct weir_exchange **out, const struct weir_exchange_config *config, struct weir_err *err);
/* Sends the last text if it has not been sent, for at most wait_s, ends the thread and sets *exchange to NULL. */
void weir_exchange_close(struct weir_exchange **exchange, double wait_s);

/* Replaces this rank's text (copied, cut at WEIR_EXCHANGE_TEXT - 32 bytes). Rank 0 then asks for the others' texts
 * every 100 ms, and after a while every second, until weir_exchange_settle. */
void weir_exchange_publish(struct weir_exchange *exchange, const char *text);
/* Rank 0: reads the others' texts only at each beat from now on. */
void weir_exchange_settle(struct weir_exchange *exchange);
/* Returns whether no store accepts connections at the address any more, since the last text was published. */
bool weir_exchange_gone(struct weir_exchange *exchange);
/* Ends the thread until weir_exchange_resume, so that a process can fork without threads. */
void weir_exchange_pause(struct weir_exchange *exchange);
void weir_exchange_resume(struct weir_exchange *exchange);

/* Rank 0: copies the latest text of a rank, at most size - 1 bytes. *quiet_ns: time since it last changed, or since the
 * exchange was opened if there is none. Returns false without a text. */
bool weir_exchange_read(struct weir_exchange *exchange, int rank, char *text, size_t size, uint64_t *quiet_ns);
/* Returns a number that changes with each text that arrives. Cheap. */
uint64_t weir_exchange_changes(const struct weir_exchange *exchange);
/* Returns whether the store has answered at least once, and copies the last error (empty: none). */
bool weir_exchange_connected(struct weir_exchange *exchange, char *why, size_t size);

#endif
