#include "base/shared_library.h"

#include <criterion/criterion.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

static int (*answer)(void);
static const struct weir_symbol symbols[] = {{"weir_test_answer", &answer}};

/* The library has no run path, and needs another one in its folder. */
Test(shared_library, needs_its_neighbour)
{
    char why[200] = "";
    const char *const files[] = {TEST_LIBRARY, NULL};
    cr_assert(weir_shared_library_open(files, symbols, 1, "install it", why, sizeof why), "%s", why);
    cr_assert_eq(answer(), 42);
}

Test(shared_library, that_does_not_exist)
{
    char why[200] = "";
    const char *const files[] = {"/nowhere/liba.so", NULL};
    cr_assert_not(weir_shared_library_open(files, symbols, 1, "install it", why, sizeof why));
    cr_assert(strstr(why, "/nowhere/liba.so") && strstr(why, "; install it"), "%s", why);
}

/* The last file is not the reason if another one exists. */
Test(shared_library, reports_the_library_that_exists)
{
    char why[200] = "", path[] = "/tmp/weir-library-XXXXXX";
    const char *const files[] = {"/nowhere/liba.so", path, TEST_NEIGHBOUR, "/nowhere/libb.so", NULL};
    int fd = mkstemp(path);
    cr_assert(fd >= 0 && write(fd, "no library", 10) == 10);
    close(fd);
    cr_assert_not(weir_shared_library_open(files, symbols, 1, "install it", why, sizeof why));
    unlink(path);
    cr_assert(strstr(why, path) && strstr(why, "; install it"), "%s", why);
}

Test(shared_library, that_does_not_fit_into_memory)
{
    char why[400] = "";
    const char *const files[] = {"/nowhere/liba.so", TEST_NEIGHBOUR, "/nowhere/libb.so", NULL};
    const struct rlimit none = {0, 0};
    cr_assert_eq(setrlimit(RLIMIT_AS, &none), 0);
    bool opened = weir_shared_library_open(files, symbols, 1, "install it", why, sizeof why);
    cr_assert_not(opened);
    cr_assert(strstr(why, TEST_NEIGHBOUR) && strstr(why, "ulimit -v") && !strstr(why, "install it"), "%s", why);
}

Test(shared_library, without_the_symbol)
{
    char why[200] = "";
    const char *const files[] = {TEST_NEIGHBOUR, NULL};
    cr_assert_not(weir_shared_library_open(files, symbols, 1, "install it", why, sizeof why));
    cr_assert(strstr(why, "weir_test_answer") && strstr(why, "; install it"), "%s", why);
}
