/* tcp_store.h: a client of the key-value store of torch.distributed (TCPStore), which torchrun's agent or rank 0
 * serves.
 *
 * Every call has a deadline and bounded lengths, so a store that is slow, gone or not a store at all costs time but
 * cannot hang the caller. Tested against the stores of torch 1.13 to 2.15, with and without libuv. */
#ifndef WEIR_PROF_RANKS_TCP_STORE_H
#define WEIR_PROF_RANKS_TCP_STORE_H

#include "weir/base.h"

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { WEIR_STORE_KEY = 256, WEIR_STORE_HOST = 256, WEIR_STORE_KEYS = 64, WEIR_STORE_VALUE = 16384 };

/* The protocol: stores up to torch 2.1 number their queries from 0, later ones expect a greeting first. */
enum weir_store_dialect { WEIR_STORE_UNKNOWN, WEIR_STORE_UP_TO_2_1, WEIR_STORE_SINCE_2_2 };

struct weir_store_address {
    char host[WEIR_STORE_HOST];
    int port;
    enum weir_store_dialect dialect; /* found by the first weir_store_open, and reused */
};

/* A connection. It belongs to one thread. */
struct weir_store {
    int fd;
    enum weir_store_dialect dialect;
    uint64_t timeout_ns, deadline_ns;
    const atomic_bool *stop; /* true ends a call early with -ECANCELED; may be NULL */
};

/* Reads MASTER_ADDR and MASTER_PORT. Returns 0, -ENOENT if MASTER_ADDR is not set, or -EINVAL. */
int weir_store_from_environment(struct weir_store_address *address, struct weir_err *err);

/* Connects and checks that a store answers. Each call on the connection then takes at most timeout_ns; only resolving
 * the host's name can take longer. Returns 0 or -errno with store->fd = -1. */
int weir_store_open(struct weir_store *store, struct weir_store_address *address, uint64_t timeout_ns,
                    const atomic_bool *stop, struct weir_err *err);
void weir_store_close(struct weir_store *store);

/* Sets a key, shorter than WEIR_STORE_KEY, to `bytes` bytes, at most WEIR_STORE_VALUE. The store does not confirm it.
 */
int weir_store_set(struct weir_store *store, const char *key, const void *value, size_t bytes, struct weir_err *err);
/* Sets present[i] to whether keys[i] exists. n is at most WEIR_STORE_KEYS. */
int weir_store_check(struct weir_store *store, const char (*keys)[WEIR_STORE_KEY], int n, bool *present,
                     struct weir_err *err);
/* Reads a key, which weir_store_check must have found. Returns its length, or -EMSGSIZE if it exceeds `size`. */
int weir_store_get(struct weir_store *store, const char *key, void *value, size_t size, struct weir_err *err);

#endif
