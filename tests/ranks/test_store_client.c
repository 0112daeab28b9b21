/* Uses a store of torch.distributed as ranks do: test_store_client HOST PORT. Prints the dialect; exits 1 with a line
 * on stderr if a call does not do what it should. */
#include "prof/ranks/tcp_store.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const uint64_t TIMEOUT_NS = 60000000000u;

static int fail(const char *what, int rc, const struct weir_err *err)
{
    fprintf(stderr, "%s: %d %s\n", what, rc, err->text);
    return 1;
}

/* Sets, checks and gets keys on one connection. */
static int use(struct weir_store_address *address)
{
    static char value[16000], got[16000];
    char keys[3][WEIR_STORE_KEY] = {"weir/test/0", "weir/test/none", "after"};
    struct weir_store store;
    struct weir_err err = WEIR_ERR_NONE;
    bool present[3];
    int rc = weir_store_open(&store, address, TIMEOUT_NS, NULL, &err);
    if (rc < 0)
        return fail("open", rc, &err);
    for (size_t i = 0; i < sizeof value; i++)
        value[i] = (char)(i * 7);
    if ((rc = weir_store_set(&store, keys[0], value, sizeof value, &err)) < 0 ||
        (rc = weir_store_set(&store, "/after", "set", 3, &err)) < 0)
        return fail("set", rc, &err);
    if ((rc = weir_store_check(&store, keys, 3, present, &err)) < 0 || !present[0] || present[1])
        return fail("check", rc, &err);
    if ((rc = weir_store_get(&store, keys[0], got, sizeof got, &err)) != (int)sizeof value ||
        memcmp(value, got, sizeof value) != 0)
        return fail("get", rc, &err);
    weir_store_close(&store);
    return 0;
}

int main(int argc, char **argv)
{
    struct weir_store_address address = {.port = argc > 2 ? atoi(argv[2]) : 0};
    if (argc != 3)
        return 2;
    snprintf(address.host, sizeof address.host, "%s", argv[1]);
    int rc = use(&address);
    if (rc == 0)
        rc = use(&address); /* with the known dialect */
    printf("%s\n", address.dialect == WEIR_STORE_UP_TO_2_1 ? "queries from 0" : "with a greeting");
    return rc;
}
