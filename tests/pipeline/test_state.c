/* The file with the position of a run: read back as written, or refused. */
#include "pipeline/loader_priv.h"
#include "tests/fixtures/loader_fixture.h"
#include "weir/loader.h"

#include <criterion/criterion.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>

TestSuite(state, .init = fixture_open, .fini = fixture_close);

static const struct weir_state_field fields[WEIR_STATE_FIELDS] = {
    {"--seed", UINT64_MAX},
    {"--a", 1},
    {"--b", 2},
    {"--c", 3},
    {"--d", 4},
    {"--e", 5},
    {"--f", 6},
    {"--g", 7},
    {"--h", 8},
    {"--i", 999},
    {"--j", 100},
    {"--k", 11},
    {"--l", 12},
    {"--m", 13},
    {"--n", 14},
    {"--o", 15},
};

static size_t write_and_read(const char *path, char text[4096])
{
    struct weir_err err = WEIR_ERR_NONE;
    cr_assert_eq(weir_state_write(path, 1234567, fields, &err), 0, "%s", err.text);
    FILE *file = fopen(path, "r");
    size_t n = fread(text, 1, 4095, file);
    fclose(file);
    text[n] = 0;
    return n;
}

static void put(const char *path, const char *text, size_t n)
{
    FILE *file = fopen(path, "w");
    cr_assert_eq(fwrite(text, 1, n, file), n);
    fclose(file);
}

static int read_back(const char *path, struct weir_state *state, struct weir_err *err)
{
    *err = WEIR_ERR_NONE;
    return weir_state_read(path, state, err);
}

Test(state, it_is_read_as_it_was_written)
{
    const char *path = fixture_path("state");
    char text[4096];
    struct weir_state state;
    struct weir_err err;
    cr_assert_eq(read_back(path, &state, &err), 0);
    cr_assert(!state.given);
    write_and_read(path, text);
    cr_assert_eq(read_back(path, &state, &err), 0, "%s", err.text);
    cr_assert(state.given);
    cr_assert_eq(state.next, 1234567);
    for (int i = 0; i < WEIR_STATE_FIELDS; i++)
        cr_assert_eq(state.values[i], fields[i].value);
    cr_assert_eq(weir_state_check(&state, fields, &err), 0);
}

/* With a single digit changed, another run would be resumed, or this one at another position. */
Test(state, no_byte_of_it_may_change)
{
    const char *path = fixture_path("state");
    char text[4096];
    struct weir_state state;
    struct weir_err err;
    size_t n = write_and_read(path, text);
    for (size_t i = 0; i < n; i++) {
        char was = text[i];
        text[i] = was == '3' ? '4' : '3';
        put(path, text, n);
        text[i] = was;
        cr_assert_lt(read_back(path, &state, &err), 0, "byte %zu", i);
        cr_assert(!state.given);
        cr_assert(strncmp(err.text, path, strlen(path)) == 0, "%s", err.text);
    }
    for (size_t cut = 0; cut < n; cut++) {
        put(path, text, cut);
        cr_assert_lt(read_back(path, &state, &err), 0, "cut at %zu", cut);
    }
    text[n] = '\n';
    put(path, text, n + 1);
    cr_assert_eq(read_back(path, &state, &err), -EBADMSG);
    cr_assert_not_null(strstr(err.text, "is damaged"), "%s", err.text);
}

Test(state, what_has_no_checksum_is_refused)
{
    const char *path = fixture_path("state");
    char text[4096];
    struct weir_state state;
    struct weir_err err;
    size_t n = write_and_read(path, text);
    for (char version = '1'; version <= '2'; version++) {
        text[strlen("weir-state ")] = version;
        put(path, text, n);
        cr_assert_eq(read_back(path, &state, &err), -ENOTSUP);
        cr_assert_not_null(strstr(err.text, "older Weir, which did not store which data"), "%s", err.text);
    }
    put(path, "\x89HDF\r\n\x1a\n", 8);
    cr_assert_eq(read_back(path, &state, &err), -EEXIST);
    cr_assert_not_null(strstr(err.text, "is not a saved state; use another file"), "%s", err.text);
}
