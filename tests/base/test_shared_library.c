#include "base/shared_library.h"

#include <criterion/criterion.h>
#include <string.h>

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

Test(shared_library, without_the_symbol)
{
    char why[200] = "";
    const char *const files[] = {TEST_NEIGHBOUR, NULL};
    cr_assert_not(weir_shared_library_open(files, symbols, 1, "install it", why, sizeof why));
    cr_assert(strstr(why, "weir_test_answer") && strstr(why, "; install it"), "%s", why);
}
