/* The client of torch.distributed's store, and the exchange of texts between ranks, with fake stores: both dialects,
 * and stores that are slow, gone, lying or no stores at all. tests/ranks/ has the real ones. */
#include "prof/ranks/rank_exchange.h"
#include "prof/ranks/tcp_store.h"
#include "tests/fakes/fake_store.h"

#include <criterion/criterion.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

static const uint64_t SECOND_NS = 1000000000u;

static struct weir_store_address address_of(const struct fake_store *fake, const char *host)
{
    struct weir_store_address address = {.port = fake_store_port(fake)};
    snprintf(address.host, sizeof address.host, "%s", host);
    return address;
}

/* ---- the client ---- */

static void set_check_get(enum fake_store_kind kind, bool ipv6, enum weir_store_dialect dialect)
{
    struct fake_store *fake = fake_store_open(kind, ipv6);
    if (!fake && ipv6)
        cr_skip_test("no IPv6 on this machine");
    cr_assert(fake);
    struct weir_store_address address = address_of(fake, ipv6 ? "::1" : "127.0.0.1");
    char keys[2][WEIR_STORE_KEY] = {"weir/a", "weir/missing"}, text[64];
    for (int i = 0; i < 2; i++) { /* the second time the dialect is known */
        struct weir_store store;
        struct weir_err err = WEIR_ERR_NONE;
        bool present[2];
        cr_assert(weir_store_open(&store, &address, 10 * SECOND_NS, NULL, &err) == 0, "%s", err.text);
        cr_expect(address.dialect == dialect && store.dialect == dialect);
        cr_assert(weir_store_set(&store, keys[0], "abc\0def", 7, &err) == 0);
        cr_assert(weir_store_check(&store, keys, 2, present, &err) == 0, "%s", err.text);
        cr_expect(present[0] && !present[1]);
        cr_expect(weir_store_get(&store, keys[0], text, sizeof text, &err) == 7, "%s", err.text);
        cr_expect(memcmp(text, "abc\0def", 7) == 0);
        weir_store_close(&store);
    }
    cr_expect(fake_store_blind_gets(fake) == 0);
    fake_store_close(&fake);
}

Test(tcp_store, since_2_2)
{
    set_check_get(FAKE_SINCE_2_2, false, WEIR_STORE_SINCE_2_2);
}

Test(tcp_store, up_to_2_1)
{
    set_check_get(FAKE_UP_TO_2_1, false, WEIR_STORE_UP_TO_2_1);
}

Test(tcp_store, ipv6)
{
    set_check_get(FAKE_SINCE_2_2, true, WEIR_STORE_SINCE_2_2);
}

/* A call on something that is not a store ends with an error that names the address. */
Test(tcp_store, no_store)
{
    static const enum fake_store_kind kinds[] = {FAKE_SILENT, FAKE_CLOSING, FAKE_GARBAGE};
    for (size_t i = 0; i < sizeof kinds / sizeof kinds[0]; i++) {
        struct fake_store *fake = fake_store_open(kinds[i], false);
        struct weir_store_address address = address_of(fake, "127.0.0.1");
        struct weir_store store;
        struct weir_err err = WEIR_ERR_NONE;
        cr_expect(weir_store_open(&store, &address, SECOND_NS / 5, NULL, &err) < 0 && store.fd == -1);
        cr_expect(strstr(err.text, "127.0.0.1"), "%s", err.text);
        cr_expect(address.dialect == WEIR_STORE_UNKNOWN);
        weir_store_close(&store);
        fake_store_close(&fake);
    }
}

Test(tcp_store, refused_and_unknown_hosts)
{
    struct fake_store *fake = fake_store_open(FAKE_SINCE_2_2, false);
    struct weir_store_address address = address_of(fake, "127.0.0.1");
    struct weir_store store;
    struct weir_err err = WEIR_ERR_NONE;
    fake_store_close(&fake);
    cr_expect(weir_store_open(&store, &address, SECOND_NS, NULL, &err) == -ECONNREFUSED, "%s", err.text);
    snprintf(address.host, sizeof address.host, "no host");
    err = (struct weir_err)WEIR_ERR_NONE;
    cr_expect(weir_store_open(&store, &address, SECOND_NS, NULL, &err) == -EHOSTUNREACH && strstr(err.text, "no host"));
}

/* Values with a wrong length, that end early or that come a byte at a time do not hang or overflow the caller. */
Test(tcp_store, bad_values)
{
    static const struct {
        enum fake_store_kind kind;
        int rc;
    } cases[] = {{FAKE_HUGE, -EMSGSIZE}, {FAKE_SHORT, -ECONNRESET}, {FAKE_DRIBBLING, -ETIMEDOUT}};
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct fake_store *fake = fake_store_open(cases[i].kind, false);
        struct weir_store_address address = address_of(fake, "127.0.0.1");
        char text[1000], value[900];
        struct weir_store store;
        struct weir_err err = WEIR_ERR_NONE;
        memset(value, 'x', sizeof value);
        cr_assert(weir_store_open(&store, &address, 2 * SECOND_NS, NULL, &err) == 0, "%s", err.text);
        cr_assert(weir_store_set(&store, "k", value, sizeof value, &err) == 0);
        int rc = weir_store_get(&store, "k", text, sizeof text, &err);
        cr_expect(rc == cases[i].rc, "%d instead of %d", rc, cases[i].rc);
        weir_store_close(&store);
        fake_store_close(&fake);
    }
}

Test(tcp_store, a_value_larger_than_the_buffer)
{
    struct fake_store *fake = fake_store_open(FAKE_SINCE_2_2, false);
    struct weir_store_address address = address_of(fake, "127.0.0.1");
    char text[8];
    struct weir_store store;
    cr_assert(weir_store_open(&store, &address, 10 * SECOND_NS, NULL, NULL) == 0);
    cr_assert(weir_store_set(&store, "k", "123456789", 9, NULL) == 0);
    cr_expect(weir_store_get(&store, "k", text, sizeof text, NULL) == -EMSGSIZE);
    weir_store_close(&store);
    fake_store_close(&fake);
}

Test(tcp_store, limits_and_stop)
{
    struct fake_store *fake = fake_store_open(FAKE_SINCE_2_2, false);
    struct weir_store_address address = address_of(fake, "127.0.0.1");
    atomic_bool stop = false;
    char keys[1][WEIR_STORE_KEY], longer[WEIR_STORE_KEY + 1];
    bool present;
    struct weir_store store;
    memset(keys[0], 'k', sizeof keys[0]); /* not terminated */
    memset(longer, 'k', sizeof longer);
    longer[WEIR_STORE_KEY] = '\0';
    cr_assert(weir_store_open(&store, &address, 10 * SECOND_NS, &stop, NULL) == 0);
    cr_expect(weir_store_check(&store, keys, 1, &present, NULL) == -ENAMETOOLONG);
    cr_expect(weir_store_set(&store, longer, "", 0, NULL) == -ENAMETOOLONG);
    cr_expect(weir_store_check(&store, keys, WEIR_STORE_KEYS + 1, &present, NULL) == -E2BIG);
    strcpy(keys[0], "a");
    stop = true;
    cr_expect(weir_store_check(&store, keys, 1, &present, NULL) == -ECANCELED);
    weir_store_close(&store);
    fake_store_close(&fake);
}

Test(tcp_store, environment)
{
    struct weir_store_address address;
    struct weir_err err = WEIR_ERR_NONE;
    unsetenv("MASTER_ADDR");
    cr_expect(weir_store_from_environment(&address, &err) == -ENOENT && strstr(err.text, "MASTER_ADDR"));
    setenv("MASTER_ADDR", "node0", 1);
    static const char *const bad[] = {"", "0", "65536", "29500x", "-1"};
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        setenv("MASTER_PORT", bad[i], 1);
        cr_expect(weir_store_from_environment(&address, NULL) == -EINVAL, "%s", bad[i]);
    }
    setenv("MASTER_PORT", "29500", 1);
    cr_expect(weir_store_from_environment(&address, NULL) == 0 && address.port == 29500 &&
              strcmp(address.host, "node0") == 0);
}

/* ---- the exchange ---- */

static struct weir_exchange *open_exchange(const struct fake_store *fake, int rank, double beat_s)
{
    struct weir_exchange_config config = {.rank = rank, .world_size = 3, .key = "test", .beat_s = beat_s};
    struct weir_exchange *exchange;
    struct weir_err err = WEIR_ERR_NONE;
    config.address = address_of(fake, "127.0.0.1");
    cr_assert(weir_exchange_open(&exchange, &config, &err) == 0, "%s", err.text);
    return exchange;
}

/* Waits until rank 0 has a text. */
static void await_text(struct weir_exchange *exchange, int rank, const char *wanted)
{
    char text[100];
    uint64_t quiet_ns;
    while (!weir_exchange_read(exchange, rank, text, sizeof text, &quiet_ns) || strcmp(text, wanted) != 0)
        usleep(1000);
}

Test(rank_exchange, texts_arrive_and_are_replaced)
{
    struct fake_store *fake = fake_store_open(FAKE_SINCE_2_2, false);
    struct weir_exchange *exchanges[3];
    char text[100];
    uint64_t quiet_ns;
    for (int rank = 0; rank < 3; rank++)
        exchanges[rank] = open_exchange(fake, rank, 0.05);
    weir_exchange_publish(exchanges[0], "zero");
    weir_exchange_publish(exchanges[2], "two");
    await_text(exchanges[0], 2, "two");
    uint64_t changes = weir_exchange_changes(exchanges[0]);
    weir_exchange_publish(exchanges[2], "two again");
    weir_exchange_publish(exchanges[1], "one\nof two lines");
    await_text(exchanges[0], 2, "two again");
    await_text(exchanges[0], 1, "one\nof two lines");
    cr_expect(weir_exchange_changes(exchanges[0]) > changes);
    cr_expect(!weir_exchange_read(exchanges[0], 0, text, sizeof text, &quiet_ns), "its own text is not sent");
    cr_expect(!weir_exchange_read(exchanges[1], 2, text, sizeof text, &quiet_ns), "only rank 0 reads");
    cr_expect(weir_exchange_connected(exchanges[0], text, sizeof text) && !text[0], "%s", text);
    for (int rank = 0; rank < 3; rank++)
        weir_exchange_close(&exchanges[rank], 10);
    cr_expect(fake_store_blind_gets(fake) == 0);
    fake_store_close(&fake);
}

/* A rank whose text stops changing becomes quiet, one that repeats it does not. */
Test(rank_exchange, quiet_ranks)
{
    struct fake_store *fake = fake_store_open(FAKE_SINCE_2_2, false);
    struct weir_exchange *zero = open_exchange(fake, 0, 0.02), *one = open_exchange(fake, 1, 0.02);
    char text[100];
    uint64_t quiet_ns, one_ns = 0;
    fake_store_set(fake, "weir/test/2", "7\nonly once");
    weir_exchange_publish(one, "alive");
    weir_exchange_publish(zero, "");
    await_text(zero, 1, "alive");
    await_text(zero, 2, "only once");
    do { /* until rank 2 has been quiet for much longer than rank 1 */
        usleep(1000);
        weir_exchange_read(zero, 1, text, sizeof text, &one_ns);
        cr_assert(weir_exchange_read(zero, 2, text, sizeof text, &quiet_ns));
    } while (quiet_ns < SECOND_NS || one_ns > quiet_ns / 2);
    weir_exchange_close(&one, 10);
    weir_exchange_close(&zero, 10);
    fake_store_close(&fake);
}

/* Closing sends the last text first, and a store that never answers does not hold the caller up for long. */
Test(rank_exchange, closing)
{
    char text[100];
    struct fake_store *fake = fake_store_open(FAKE_UP_TO_2_1, false);
    struct weir_exchange *one = open_exchange(fake, 1, 100);
    weir_exchange_publish(one, "last words");
    weir_exchange_close(&one, 60);
    cr_expect(one == NULL && fake_store_value(fake, "weir/test/1", text, sizeof text));
    cr_expect(strstr(text, "last words"), "%s", text);
    fake_store_close(&fake);

    fake = fake_store_open(FAKE_SILENT, false);
    one = open_exchange(fake, 1, 100);
    uint64_t before_ns = weir_clock_monotonic_ns();
    weir_exchange_publish(one, "never sent");
    cr_expect(weir_clock_monotonic_ns() - before_ns < SECOND_NS, "publishing does not wait");
    weir_exchange_close(&one, 0.1);
    fake_store_close(&fake);
}

/* A text is sent even if it is published just as the thread ends a round, before it begins to wait. */
Test(rank_exchange, published_between_rounds)
{
    struct fake_store *fake = fake_store_open(FAKE_SINCE_2_2, false);
    for (int i = 0; i < 1000; i++) {
        struct weir_exchange *one = open_exchange(fake, 1, 100);
        char text[100] = "", wanted[16];
        snprintf(wanted, sizeof wanted, "text %d", i);
        while (!fake_store_value(fake, "weir/test/1", text, sizeof text) || !text[0])
            ; /* the first round is near its end */
        uint64_t until_ns = weir_clock_monotonic_ns() + (uint64_t)(i % 200) * 500;
        while (weir_clock_monotonic_ns() < until_ns)
            ;
        weir_exchange_publish(one, wanted);
        weir_exchange_close(&one, 60);
        cr_assert(fake_store_value(fake, "weir/test/1", text, sizeof text) && strstr(text, wanted), "%s: %s", wanted,
                  text);
        fake_store_set(fake, "weir/test/1", "");
    }
    fake_store_close(&fake);
}

/* A store that starts late, or again on the same port, is found. */
Test(rank_exchange, store_starts_late)
{
    struct fake_store *fake = fake_store_open(FAKE_CLOSING, false);
    struct weir_exchange *zero = open_exchange(fake, 0, 0.05);
    char why[200];
    weir_exchange_publish(zero, "");
    do
        usleep(1000);
    while (weir_exchange_connected(zero, why, sizeof why) || !why[0]);
    cr_expect(strstr(why, "does not answer"), "%s", why);
    weir_exchange_close(&zero, 0);
    fake_store_close(&fake);
}

Test(rank_exchange, pause_ends_the_thread)
{
    struct fake_store *fake = fake_store_open(FAKE_SINCE_2_2, false);
    struct weir_exchange *zero = open_exchange(fake, 0, 0.05), *one = open_exchange(fake, 1, 0.05);
    weir_exchange_pause(one);
    weir_exchange_publish(one, "during the pause");
    weir_exchange_resume(one);
    weir_exchange_publish(zero, "");
    await_text(zero, 1, "during the pause");
    weir_exchange_pause(zero);
    weir_exchange_close(&zero, 0);
    weir_exchange_close(&one, 10);
    fake_store_close(&fake);
}

/* A child of fork() has no thread, and no call hangs or disturbs the parent. */
Test(rank_exchange, fork)
{
    struct fake_store *fake = fake_store_open(FAKE_SINCE_2_2, false);
    struct weir_exchange *one = open_exchange(fake, 1, 0.01), *zero = open_exchange(fake, 0, 0.01);
    weir_exchange_publish(one, "parent");
    for (int i = 0; i < 20; i++) {
        pid_t child = fork();
        if (child == 0) {
            char text[16];
            uint64_t quiet_ns;
            weir_exchange_publish(one, "child");
            weir_exchange_pause(one);
            weir_exchange_resume(one);
            weir_exchange_settle(one);
            bool any = weir_exchange_read(zero, 1, text, sizeof text, &quiet_ns);
            weir_exchange_close(&one, 10);
            _exit(any || one ? 1 : 0);
        }
        int status = -1;
        cr_assert(waitpid(child, &status, 0) == child && WIFEXITED(status) && WEXITSTATUS(status) == 0);
    }
    await_text(zero, 1, "parent");
    weir_exchange_close(&one, 10);
    weir_exchange_close(&zero, 0);
    fake_store_close(&fake);
}
