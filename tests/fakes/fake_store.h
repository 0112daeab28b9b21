/* fake_store.h: a store of torch.distributed for tests, in a thread, which can misbehave. */
#ifndef WEIR_TESTS_FAKES_FAKE_STORE_H
#define WEIR_TESTS_FAKES_FAKE_STORE_H

#include <stdbool.h>

enum fake_store_kind {
    FAKE_SINCE_2_2, /* expects a greeting */
    FAKE_UP_TO_2_1, /* numbers its queries from 0 */
    FAKE_SILENT,    /* accepts connections and never answers */
    FAKE_CLOSING,   /* closes every connection */
    FAKE_GARBAGE,   /* answers everything with bytes of 0xFF */
    FAKE_HUGE,      /* a value's length is 2^62 */
    FAKE_SHORT,     /* closes in the middle of a value */
    FAKE_DRIBBLING, /* sends a byte of a value every 50 ms */
};

struct fake_store;

/* Listens on 127.0.0.1, or with ipv6 on ::1. Returns NULL if that fails. */
struct fake_store *fake_store_open(enum fake_store_kind kind, bool ipv6);
int fake_store_port(const struct fake_store *store);
/* Returns the number of GETs of keys that did not exist: a client must never send one. */
int fake_store_blind_gets(const struct fake_store *store);
/* Copies a value as text. Returns false if the key does not exist. */
bool fake_store_value(struct fake_store *store, const char *key, char *text, int size);
void fake_store_set(struct fake_store *store, const char *key, const char *text);
void fake_store_close(struct fake_store **store);

#endif
