#include "tests/fakes/fake_store.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <poll.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

enum { ENTRIES = 64, BYTES = 20000, CLIENTS = 16 };

struct entry {
    char key[256], value[BYTES];
    uint64_t bytes;
};

struct fake_store {
    enum fake_store_kind kind;
    int listening, port, control[2];
    int clients[CLIENTS];
    bool greeted[CLIENTS];
    pthread_t thread;
    pthread_mutex_t lock; /* protects the entries */
    int n;
    struct entry entries[ENTRIES];
    atomic_int blind_gets;
};

static bool receive(int fd, void *bytes, uint64_t n)
{
    return n == 0 || recv(fd, bytes, n, MSG_WAITALL) == (ssize_t)n;
}

static bool answer(int fd, const void *bytes, size_t n)
{
    return send(fd, bytes, n, MSG_NOSIGNAL) == (ssize_t)n;
}

static bool receive_text(int fd, char *text, uint64_t size, uint64_t *bytes)
{
    if (!receive(fd, bytes, sizeof *bytes) || *bytes >= size || !receive(fd, text, *bytes))
        return false; /* as a store that cannot allocate the length closes the connection */
    text[*bytes] = '\0';
    return true;
}

static struct entry *find(struct fake_store *store, const char *key, bool add)
{
    for (int i = 0; i < store->n; i++)
        if (strcmp(store->entries[i].key, key) == 0)
            return &store->entries[i];
    if (!add || store->n == ENTRIES)
        return NULL;
    struct entry *entry = &store->entries[store->n++];
    snprintf(entry->key, sizeof entry->key, "%s", key);
    return entry;
}

static bool serve_set(struct fake_store *store, int fd)
{
    char key[256];
    static char value[BYTES];
    uint64_t bytes;
    if (!receive_text(fd, key, sizeof key, &bytes) || !receive_text(fd, value, sizeof value, &bytes))
        return false;
    pthread_mutex_lock(&store->lock);
    struct entry *entry = find(store, key, true);
    if (entry) {
        memcpy(entry->value, value, bytes + 1);
        entry->bytes = bytes;
    }
    pthread_mutex_unlock(&store->lock);
    return entry != NULL;
}

static bool serve_check(struct fake_store *store, int fd)
{
    uint64_t n, bytes;
    char key[256];
    unsigned char missing = 0;
    if (!receive(fd, &n, sizeof n) || n > ENTRIES)
        return false;
    for (uint64_t i = 0; i < n; i++) {
        if (!receive_text(fd, key, sizeof key, &bytes))
            return false;
        missing |= !find(store, key, false);
    }
    return answer(fd, &missing, 1);
}

static bool serve_get(struct fake_store *store, int fd)
{
    char key[256];
    uint64_t bytes;
    if (!receive_text(fd, key, sizeof key, &bytes))
        return false;
    const struct entry *entry = find(store, key, false);
    if (!entry) {
        atomic_fetch_add(&store->blind_gets, 1);
        return false;
    }
    bytes = store->kind == FAKE_HUGE ? (uint64_t)1 << 62 : entry->bytes;
    if (!answer(fd, &bytes, sizeof bytes))
        return false;
    if (store->kind == FAKE_SHORT)
        return answer(fd, entry->value, entry->bytes / 2) && false;
    for (uint64_t i = 0; i < entry->bytes && store->kind == FAKE_DRIBBLING; i++) {
        if (!answer(fd, entry->value + i, 1))
            return false;
        usleep(50000);
    }
    return store->kind == FAKE_DRIBBLING || store->kind == FAKE_HUGE || answer(fd, entry->value, entry->bytes);
}

/* Serves one query. Returns false to close the connection. */
static bool serve(struct fake_store *store, int fd, bool *greeted)
{
    unsigned char query;
    uint32_t magic;
    int64_t keys = store->n;
    if (store->kind == FAKE_CLOSING || !receive(fd, &query, 1))
        return false;
    if (store->kind == FAKE_SILENT)
        return true;
    if (store->kind == FAKE_GARBAGE) {
        char ones[64];
        memset(ones, 0xFF, sizeof ones);
        return answer(fd, ones, sizeof ones);
    }
    if (store->kind == FAKE_UP_TO_2_1)
        query++;
    else if (!*greeted)
        return *greeted = query == 0 && receive(fd, &magic, sizeof magic) && magic == 0x3C85F7CE;
    switch (query) {
    case 1:
        return serve_set(store, fd);
    case 3:
        return serve_get(store, fd);
    case 5:
        return serve_check(store, fd);
    case 7:
        return answer(fd, &keys, sizeof keys);
    default:
        return false;
    }
}

static void accept_client(struct fake_store *store)
{
    int fd = accept(store->listening, NULL, NULL);
    for (int i = 0; i < CLIENTS && fd >= 0; i++)
        if (store->clients[i] < 0) {
            store->clients[i] = fd;
            store->greeted[i] = false;
            return;
        }
    if (fd >= 0)
        close(fd);
}

static void *fake_main(void *user)
{
    struct fake_store *store = user;
    for (;;) {
        struct pollfd fds[CLIENTS + 2] = {{.fd = store->control[0], .events = POLLIN},
                                          {.fd = store->listening, .events = POLLIN}};
        for (int i = 0; i < CLIENTS; i++)
            fds[i + 2] = (struct pollfd){.fd = store->clients[i], .events = POLLIN};
        if (poll(fds, CLIENTS + 2, -1) < 0 || fds[0].revents)
            return NULL;
        for (int i = 0; i < CLIENTS; i++)
            if (store->clients[i] >= 0 && fds[i + 2].revents && !serve(store, store->clients[i], &store->greeted[i])) {
                close(store->clients[i]);
                store->clients[i] = -1;
            }
        if (fds[1].revents)
            accept_client(store);
    }
}

static int listen_on(bool ipv6, int *port)
{
    struct sockaddr_in6 six = {.sin6_family = AF_INET6, .sin6_addr = IN6ADDR_LOOPBACK_INIT};
    struct sockaddr_in four = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    struct sockaddr *address = ipv6 ? (struct sockaddr *)&six : (struct sockaddr *)&four;
    socklen_t size = ipv6 ? sizeof six : sizeof four;
    int fd = socket(ipv6 ? AF_INET6 : AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (fd >= 0 && bind(fd, address, size) == 0 && listen(fd, 64) == 0 && getsockname(fd, address, &size) == 0) {
        *port = ntohs(ipv6 ? six.sin6_port : four.sin_port);
        return fd;
    }
    if (fd >= 0)
        close(fd);
    return -1;
}

struct fake_store *fake_store_open(enum fake_store_kind kind, bool ipv6)
{
    struct fake_store *store = calloc(1, sizeof *store);
    if (!store)
        return NULL;
    store->kind = kind;
    store->listening = listen_on(ipv6, &store->port);
    for (int i = 0; i < CLIENTS; i++)
        store->clients[i] = -1;
    pthread_mutex_init(&store->lock, NULL);
    if (store->listening < 0 || pipe(store->control) < 0 ||
        pthread_create(&store->thread, NULL, fake_main, store) != 0) {
        free(store);
        return NULL;
    }
    return store;
}

int fake_store_port(const struct fake_store *store)
{
    return store->port;
}

int fake_store_blind_gets(const struct fake_store *store)
{
    return store->blind_gets;
}

bool fake_store_value(struct fake_store *store, const char *key, char *text, int size)
{
    pthread_mutex_lock(&store->lock);
    const struct entry *entry = find(store, key, false);
    if (entry)
        snprintf(text, (size_t)size, "%s", entry->value);
    pthread_mutex_unlock(&store->lock);
    return entry != NULL;
}

void fake_store_set(struct fake_store *store, const char *key, const char *text)
{
    pthread_mutex_lock(&store->lock);
    struct entry *entry = find(store, key, true);
    entry->bytes = strlen(text);
    memcpy(entry->value, text, entry->bytes + 1);
    pthread_mutex_unlock(&store->lock);
}

void fake_store_close(struct fake_store **address)
{
    struct fake_store *store = *address;
    *address = NULL;
    if (write(store->control[1], "", 1) == 1)
        pthread_join(store->thread, NULL);
    for (int i = 0; i < CLIENTS; i++)
        if (store->clients[i] >= 0)
            close(store->clients[i]);
    close(store->listening);
    close(store->control[0]);
    close(store->control[1]);
    pthread_mutex_destroy(&store->lock);
    free(store);
}
