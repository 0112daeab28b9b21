#include "prof/ranks/rank_exchange.h"
#include "base/threads.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static const uint64_t CALL_NS = 2000000000u, SOON_NS = 100000000u, LATER_NS = 1000000000u, RETRY_MAX_NS = 30000000000u;
enum { SOON_ROUNDS = 50 }; /* rounds with SOON_NS between them */

struct peer {
    char *text; /* NULL = none yet */
    size_t length;
    uint64_t changed_ns;
    bool exists; /* its key was found on the current store */
};

struct weir_exchange {
    struct weir_exchange_config config;
    pid_t process;
    atomic_bool stop;
    _Atomic uint64_t changes;
    pthread_t thread;
    bool has_thread;
    bool lost;          /* a thread did not end and still uses this struct */
    struct peer *peers; /* of rank 0 */
    char *buffer;       /* of the thread */
    uint64_t opened_ns, beat_ns;

    pthread_mutex_t lock; /* protects the members below, and peers */
    pthread_cond_t wake, idle;
    char *text;
    uint64_t published, sent; /* number of the current text, and of the last one sent */
    int rounds;               /* of reading since the last publish; -1 = settled */
    bool ended;               /* the thread returned */
    bool connected;
    int refused; /* rounds in a row since the last publish to which no store answered */
    char why[256];
};

/* ---- rounds of the thread ---- */

static void key_of(const struct weir_exchange *exchange, int rank, char key[WEIR_STORE_KEY])
{
    snprintf(key, WEIR_STORE_KEY, "weir/%s/%d", exchange->config.key, rank);
}

static int send_text(struct weir_exchange *exchange, struct weir_store *store, uint64_t beat, struct weir_err *err)
{
    char key[WEIR_STORE_KEY];
    pthread_mutex_lock(&exchange->lock);
    int n = snprintf(exchange->buffer, WEIR_EXCHANGE_TEXT, "%llu\n%s", (unsigned long long)beat,
                     exchange->text ? exchange->text : "");
    pthread_mutex_unlock(&exchange->lock);
    key_of(exchange, exchange->config.rank, key);
    int rc = weir_store_set(store, key, exchange->buffer, (size_t)n, err);
    /* A check of the same key is answered after the set, which itself is not confirmed. */
    char keys[1][WEIR_STORE_KEY];
    bool present = false;
    memcpy(keys[0], key, sizeof key);
    return rc < 0 ? rc : weir_store_check(store, keys, 1, &present, err);
}

static void keep_text(struct weir_exchange *exchange, struct peer *peer, size_t length)
{
    pthread_mutex_lock(&exchange->lock);
    if (!peer->text || peer->length != length || memcmp(peer->text, exchange->buffer, length) != 0) {
        char *copy = malloc(length + 1);
        if (copy) {
            memcpy(copy, exchange->buffer, length);
            copy[length] = '\0';
            free(peer->text);
            peer->text = copy;
            peer->length = length;
            peer->changed_ns = weir_clock_monotonic_ns();
            atomic_fetch_add(&exchange->changes, 1);
        }
    }
    pthread_mutex_unlock(&exchange->lock);
}

/* Reads the texts of `n` ranks from `first` on. A key is read only after a check has found it: reading a missing key
 * can block a store's client. */
static int read_texts(struct weir_exchange *exchange, struct weir_store *store, int first, int n, struct weir_err *err)
{
    char keys[WEIR_STORE_KEYS][WEIR_STORE_KEY];
    bool present[WEIR_STORE_KEYS];
    bool all = true;
    for (int i = 0; i < n; i++) {
        key_of(exchange, first + i, keys[i]);
        present[i] = exchange->peers[first + i].exists;
        all = all && present[i];
    }
    int rc = all ? 0 : weir_store_check(store, keys, n, present, err);
    for (int i = 0; i < n && rc >= 0; i++) {
        struct peer *peer = &exchange->peers[first + i];
        peer->exists = present[i];
        if (!present[i])
            continue;
        rc = weir_store_get(store, keys[i], exchange->buffer, WEIR_EXCHANGE_TEXT, err);
        if (rc >= 0)
            keep_text(exchange, peer, (size_t)rc);
    }
    return rc < 0 ? rc : 0;
}

static int read_all(struct weir_exchange *exchange, struct weir_store *store, struct weir_err *err)
{
    int rc = 0, world = exchange->config.world_size;
    for (int first = 1; first < world && rc == 0; first += WEIR_STORE_KEYS)
        rc = read_texts(exchange, store, first, world - first < WEIR_STORE_KEYS ? world - first : WEIR_STORE_KEYS, err);
    for (int i = 0; i < world && rc < 0; i++) /* the store may be another one next time */
        exchange->peers[i].exists = false;
    return rc;
}

/* Connects, sends or reads, and disconnects. A connection per round needs no care around fork() and survives a store
 * that restarts. */
static int round_trip(struct weir_exchange *exchange, uint64_t beat)
{
    struct weir_err err = WEIR_ERR_NONE;
    struct weir_store store;
    int rc = weir_store_open(&store, &exchange->config.address, CALL_NS, &exchange->stop, &err);
    if (rc == 0)
        rc = exchange->config.rank > 0 ? send_text(exchange, &store, beat, &err) : read_all(exchange, &store, &err);
    weir_store_close(&store);
    pthread_mutex_lock(&exchange->lock);
    exchange->connected = exchange->connected || rc == 0;
    if (rc != -ECANCELED)
        snprintf(exchange->why, sizeof exchange->why, "%.255s", rc < 0 ? err.text : "");
    pthread_mutex_unlock(&exchange->lock);
    return rc;
}

/* ---- the thread ---- */

/* Returns the time until the next round. */
static uint64_t pause_ns(const struct weir_exchange *exchange, int failures)
{
    if (failures > 0) {
        uint64_t ns = LATER_NS << (failures < 6 ? failures - 1 : 5);
        return ns < RETRY_MAX_NS ? ns : RETRY_MAX_NS;
    }
    if (exchange->config.rank == 0 && exchange->rounds >= 0) {
        uint64_t ns = exchange->rounds < SOON_ROUNDS ? SOON_NS : LATER_NS;
        return ns < exchange->beat_ns ? ns : exchange->beat_ns;
    }
    return exchange->beat_ns;
}

/* Waits until the next round is due, or a text has been published since the last one began. */
static void wait_for_round(struct weir_exchange *exchange, uint64_t published, int failures)
{
    pthread_mutex_lock(&exchange->lock);
    uint64_t until_ns = weir_clock_monotonic_ns() + pause_ns(exchange, failures);
    while (!atomic_load(&exchange->stop) && exchange->published == published) {
        uint64_t now_ns = weir_clock_monotonic_ns();
        if (now_ns >= until_ns)
            break;
        weir_cond_wait_ns(&exchange->wake, &exchange->lock, until_ns - now_ns);
    }
    exchange->rounds += exchange->rounds >= 0;
    pthread_mutex_unlock(&exchange->lock);
}

static void *exchange_main(void *user)
{
    struct weir_exchange *exchange = user;
    int failures = 0;
    pthread_setname_np(pthread_self(), "weir-ranks");
    for (uint64_t beat = 1; !atomic_load(&exchange->stop); beat++) {
        pthread_mutex_lock(&exchange->lock);
        uint64_t published = exchange->published;
        pthread_mutex_unlock(&exchange->lock);
        int rc = round_trip(exchange, beat);
        failures = rc < 0 ? failures + 1 : 0;
        pthread_mutex_lock(&exchange->lock);
        if (rc == 0)
            exchange->sent = published;
        bool is_refused = rc == -ECONNREFUSED || rc == -ECONNRESET || rc == -EPIPE;
        exchange->refused = is_refused && published == exchange->published ? exchange->refused + 1 : 0;
        pthread_cond_broadcast(&exchange->idle);
        pthread_mutex_unlock(&exchange->lock);
        if (exchange->config.gathered && exchange->config.rank == 0 && !atomic_load(&exchange->stop))
            exchange->config.gathered(exchange->config.user);
        wait_for_round(exchange, published, failures);
    }
    pthread_mutex_lock(&exchange->lock);
    exchange->ended = true;
    pthread_cond_broadcast(&exchange->idle);
    pthread_mutex_unlock(&exchange->lock);
    return NULL;
}

static int start_thread(struct weir_exchange *exchange)
{
    exchange->ended = false;
    atomic_store(&exchange->stop, false);
    int rc = weir_thread_start(&exchange->thread, exchange_main, exchange);
    exchange->has_thread = rc == 0;
    return rc;
}

/* Stops the thread and joins it. Returns false if it does not end in time, because the host's name is being resolved:
 * it then keeps its memory. */
static bool stop_thread(struct weir_exchange *exchange)
{
    if (!exchange->has_thread)
        return !exchange->lost;
    exchange->has_thread = false;
    uint64_t until_ns = weir_clock_monotonic_ns() + CALL_NS;
    pthread_mutex_lock(&exchange->lock);
    atomic_store(&exchange->stop, true);
    pthread_cond_broadcast(&exchange->wake);
    while (!exchange->ended && weir_clock_monotonic_ns() < until_ns)
        weir_cond_wait_ns(&exchange->idle, &exchange->lock, LATER_NS / 10);
    bool ended = exchange->ended;
    pthread_mutex_unlock(&exchange->lock);
    if (ended)
        pthread_join(exchange->thread, NULL);
    else
        pthread_detach(exchange->thread);
    exchange->lost = !ended;
    return ended;
}

/* ---- the caller's side ---- */

static bool is_here(const struct weir_exchange *exchange)
{
    return exchange && exchange->process == getpid();
}

static void free_exchange(struct weir_exchange *exchange)
{
    for (int i = 0; exchange->peers && i < exchange->config.world_size; i++)
        free(exchange->peers[i].text);
    free(exchange->peers);
    free(exchange->buffer);
    free(exchange->text);
    pthread_mutex_destroy(&exchange->lock);
    pthread_cond_destroy(&exchange->wake);
    pthread_cond_destroy(&exchange->idle);
    free(exchange);
}

int weir_exchange_open(struct weir_exchange **out, const struct weir_exchange_config *config, struct weir_err *err)
{
    *out = NULL;
    if (config->world_size > WEIR_EXCHANGE_RANKS)
        return weir_err_set(err, -E2BIG, "%d ranks: the table over ranks is limited to %d", config->world_size,
                            WEIR_EXCHANGE_RANKS);
    struct weir_exchange *exchange = calloc(1, sizeof *exchange);
    if (!exchange)
        return weir_err_set(err, -ENOMEM, "out of memory");
    exchange->config = *config;
    exchange->process = getpid();
    exchange->opened_ns = weir_clock_monotonic_ns();
    exchange->beat_ns = config->beat_s > 0 ? (uint64_t)(config->beat_s * 1e9) : 5000000000u;
    exchange->rounds = -1;
    pthread_mutex_init(&exchange->lock, NULL);
    weir_cond_init(&exchange->wake);
    weir_cond_init(&exchange->idle);
    exchange->buffer = malloc(WEIR_EXCHANGE_TEXT);
    exchange->peers = config->rank == 0 ? calloc((size_t)config->world_size, sizeof *exchange->peers) : NULL;
    int rc = !exchange->buffer || (config->rank == 0 && !exchange->peers) ? -ENOMEM : start_thread(exchange);
    if (rc < 0) {
        free_exchange(exchange);
        return weir_err_set(err, rc, "cannot start the thread of the table over ranks: %s", strerror(-rc));
    }
    *out = exchange;
    return 0;
}

void weir_exchange_publish(struct weir_exchange *exchange, const char *text)
{
    char *copy = is_here(exchange) ? strndup(text, WEIR_EXCHANGE_TEXT - 32) : NULL;
    if (!copy)
        return;
    pthread_mutex_lock(&exchange->lock);
    free(exchange->text);
    exchange->text = copy;
    exchange->published++;
    exchange->rounds = exchange->refused = 0;
    pthread_cond_broadcast(&exchange->wake);
    pthread_mutex_unlock(&exchange->lock);
}

void weir_exchange_settle(struct weir_exchange *exchange)
{
    if (!is_here(exchange))
        return;
    pthread_mutex_lock(&exchange->lock);
    exchange->rounds = -1;
    pthread_mutex_unlock(&exchange->lock);
}

bool weir_exchange_gone(struct weir_exchange *exchange)
{
    enum { FIRST_ROUNDS = 3 }; /* a store that has never answered may not have begun */
    if (!is_here(exchange))
        return false;
    pthread_mutex_lock(&exchange->lock);
    bool gone = exchange->refused >= (exchange->connected ? 1 : FIRST_ROUNDS);
    pthread_mutex_unlock(&exchange->lock);
    return gone;
}

void weir_exchange_pause(struct weir_exchange *exchange)
{
    if (is_here(exchange))
        stop_thread(exchange);
}

void weir_exchange_resume(struct weir_exchange *exchange)
{
    if (is_here(exchange) && !exchange->has_thread && !exchange->lost)
        start_thread(exchange);
}

void weir_exchange_close(struct weir_exchange **address, double wait_s)
{
    struct weir_exchange *exchange = *address;
    *address = NULL;
    if (!is_here(exchange))
        return; /* in a child of fork(), a lock may be held by a thread that does not exist */
    uint64_t until_ns = weir_clock_monotonic_ns() + (uint64_t)(fmax(wait_s, 0) * 1e9);
    pthread_mutex_lock(&exchange->lock);
    while (exchange->config.rank > 0 && exchange->has_thread && exchange->sent < exchange->published &&
           weir_clock_monotonic_ns() < until_ns)
        weir_cond_wait_ns(&exchange->idle, &exchange->lock, SOON_NS);
    pthread_mutex_unlock(&exchange->lock);
    if (stop_thread(exchange))
        free_exchange(exchange);
}

bool weir_exchange_read(struct weir_exchange *exchange, int rank, char *text, size_t size, uint64_t *quiet_ns)
{
    *text = '\0';
    *quiet_ns = 0;
    if (!is_here(exchange) || !exchange->peers || rank < 0 || rank >= exchange->config.world_size)
        return false;
    pthread_mutex_lock(&exchange->lock);
    const struct peer *peer = &exchange->peers[rank];
    const char *after_beat = peer->text ? strchr(peer->text, '\n') : NULL;
    *quiet_ns = weir_clock_monotonic_ns() - (peer->text ? peer->changed_ns : exchange->opened_ns);
    if (after_beat)
        snprintf(text, size, "%s", after_beat + 1);
    pthread_mutex_unlock(&exchange->lock);
    return after_beat != NULL;
}

uint64_t weir_exchange_changes(const struct weir_exchange *exchange)
{
    return exchange ? atomic_load_explicit(&exchange->changes, memory_order_relaxed) : 0;
}

bool weir_exchange_connected(struct weir_exchange *exchange, char *why, size_t size)
{
    *why = '\0';
    if (!is_here(exchange))
        return false;
    pthread_mutex_lock(&exchange->lock);
    bool connected = exchange->connected;
    snprintf(why, size, "%s", exchange->why);
    pthread_mutex_unlock(&exchange->lock);
    return connected;
}
