/* Built twice, with and without libdw (see tests/CMakeLists.txt). */
#include "prof/symbols/symbols.h"

#include <criterion/criterion.h>
#include <dlfcn.h>
#include <execinfo.h>
#include <inttypes.h>
#include <link.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { DEPTH = 32, TEXT = 512 };

struct stack {
    void *at[DEPTH];
    int n;
};

static char wanted[TEXT];

static const char *want(const char *file, int line, const char *function)
{
    snprintf(wanted, sizeof wanted, "%s(%d): %s", file, line, function);
    return wanted;
}

static void need_libdw(void)
{
    char text[TEXT];
    if (!weir_symbols_library(text, sizeof text))
        cr_skip_test("%s", text);
}

static struct weir_symbols *open_symbols(void)
{
    struct weir_symbols *symbols;
    cr_assert_eq(weir_symbols_open(&symbols), 0);
    return symbols;
}

/* Returns true if a frame of the stack has this description. Otherwise logs the descriptions of all frames. */
static bool has_frame(struct weir_symbols *symbols, const struct stack *stack, const char *frame)
{
    char text[TEXT];
    for (int i = 0; i < stack->n; i++) {
        weir_symbols_frame(symbols, stack->at[i], text, sizeof text);
        if (strcmp(text, frame) == 0)
            return true;
    }
    for (int i = 0; i < stack->n; i++) {
        weir_symbols_frame(symbols, stack->at[i], text, sizeof text);
        cr_log_warn("%s", text);
    }
    return false;
}

/* ---- this program ---- */

static struct stack here;
static volatile int calls; /* incremented after each call, so that it is not a tail call */

__attribute__((noinline)) static void capture(void)
{
    here.n = backtrace(here.at, DEPTH);
    calls++;
}

static int line_middle, line_outer;

__attribute__((noinline)) static void middle_of_three(void)
{
    line_middle = __LINE__ + 1;
    capture();
    calls++;
}

__attribute__((noinline)) static void outer_of_three(void)
{
    line_outer = __LINE__ + 1;
    middle_of_three();
    calls++;
}

Test(symbols, static_functions_of_the_program_have_their_lines)
{
    need_libdw();
    struct weir_symbols *symbols = open_symbols();
    outer_of_three();
    cr_assert(has_frame(symbols, &here, want("test_symbols.c", line_middle, "middle_of_three")));
    cr_assert(has_frame(symbols, &here, want("test_symbols.c", line_outer, "outer_of_three")));
    weir_symbols_close(&symbols);
    cr_assert_null(symbols);
    weir_symbols_close(&symbols);
}

__attribute__((noinline)) static const void *my_return_address(void)
{
    calls++;
    return __builtin_return_address(0);
}

__attribute__((noinline)) static void call_at_line(struct weir_symbols *symbols)
{
    char text[TEXT];
    int line = __LINE__ + 1;
    const void *at = my_return_address();
    int n = weir_symbols_frame(symbols, at, text, sizeof text);
    cr_assert_str_eq(text, want("test_symbols.c", line, __func__));
    cr_assert_eq(n, (int)strlen(text));
    cr_assert_eq(weir_symbols_frame(symbols, at, NULL, 0), n);
    char small[8];
    cr_assert_eq(weir_symbols_frame(symbols, at, small, sizeof small), n);
    cr_assert_str_eq(small, "test_sy");
}

Test(symbols, a_return_address_is_the_line_of_the_call)
{
    need_libdw();
    struct weir_symbols *symbols = open_symbols();
    call_at_line(symbols);
    weir_symbols_close(&symbols);
}

Test(symbols, what_is_in_no_module_says_its_address)
{
    struct weir_symbols *symbols = open_symbols();
    char text[TEXT];
    weir_symbols_frame(symbols, NULL, text, sizeof text);
    cr_assert_str_eq(text, "?"
                           "?(0x0): ?"
                           "?");
    weir_symbols_frame(symbols, (void *)0x1234, text, sizeof text);
    cr_assert_str_eq(text, "?"
                           "?(0x1234): ?"
                           "?");
    weir_symbols_frame(symbols, (void *)UINTPTR_MAX, text, sizeof text);
    cr_assert_str_eq(text, "?"
                           "?(0xffffffffffffffff): ?"
                           "?");
    weir_symbols_close(&symbols);
}

/* ---- the C library ---- */

static int compare_and_capture(const void *left, const void *right)
{
    if (here.n == 0)
        capture();
    return *(const int *)left - *(const int *)right;
}

Test(symbols, the_c_library_that_calls_back_is_named)
{
    need_libdw(); /* the calling function in libc is not always exported */
    struct weir_symbols *symbols = open_symbols();
    int numbers[] = {3, 1, 2};
    char text[TEXT];
    bool sorts = false;
    here.n = 0;
    qsort(numbers, 3, sizeof *numbers, compare_and_capture);
    for (int i = 0; i < here.n; i++) {
        weir_symbols_frame(symbols, here.at[i], text, sizeof text);
        sorts = sorts || strstr(text, "): qsort") || strstr(text, "msort") || strstr(text, "): __interceptor_qsort");
    }
    cr_assert(sorts, "no frame of qsort");
    weir_symbols_close(&symbols);
}

/* ---- libraries loaded later ---- */

typedef void (*fixture_callback)(void *user);
typedef void (*fixture_function)(fixture_callback callback, void *user);

static void capture_for_fixture(void *user)
{
    (void)user;
    capture();
}

static void *load(const char *path, int *line_hidden, int *line_visible)
{
    void *library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    cr_assert_not_null(library, "%s", dlerror());
    fixture_function call = (fixture_function)dlsym(library, "fixture_visible");
    *line_hidden = *(const int *)dlsym(library, "fixture_line_hidden");
    *line_visible = *(const int *)dlsym(library, "fixture_line_visible");
    call(capture_for_fixture, NULL);
    return library;
}

static void try_library(struct weir_symbols *symbols, const char *path)
{
    int hidden, visible;
    void *library = load(path, &hidden, &visible);
    cr_assert(has_frame(symbols, &here, want("symbols_fixture.c", hidden, "fixture_hidden")), "%s", path);
    cr_assert(has_frame(symbols, &here, want("symbols_fixture.c", visible, "fixture_visible")), "%s", path);
    dlclose(library);
    cr_assert(has_frame(symbols, &here, want("symbols_fixture.c", visible, "fixture_visible")), "%s, after dlclose",
              path);
}

/* The libraries are mostly loaded at the same address, one after the other. */
Test(symbols, libraries_come_and_go)
{
    need_libdw();
    struct weir_symbols *symbols = open_symbols();
    call_at_line(symbols);
    for (int i = 0; i < 2; i++) {
        try_library(symbols, SYMBOLS_FIXTURE_DWARF4);
        try_library(symbols, SYMBOLS_FIXTURE_DWARF5);
        try_library(symbols, SYMBOLS_FIXTURE_COMPRESSED);
    }
    weir_symbols_close(&symbols);
}

/* Frames contain the offset of the call from the start of the function. */
Test(symbols, without_libdw_exported_functions_have_offsets)
{
    struct weir_symbols *symbols = open_symbols();
    char text[TEXT], frame[TEXT];
    int hidden, visible;
    if (weir_symbols_library(text, sizeof text))
        cr_skip_test("%s is here", text);
    cr_assert_str_eq(text, "built without libdw");
    void *library = load(SYMBOLS_FIXTURE_DWARF5, &hidden, &visible);
    void *function = dlsym(library, "fixture_visible");
    bool called = false;
    for (int i = 0; i < here.n; i++) {
        Dl_info info;
        if (!dladdr(here.at[i], &info) || info.dli_saddr != function)
            continue;
        const char *file = strrchr(SYMBOLS_FIXTURE_DWARF5, '/') + 1;
        snprintf(frame, sizeof frame, "%s(0x%tx): fixture_visible+0x%tx", file,
                 (char *)here.at[i] - (char *)info.dli_fbase, (char *)here.at[i] - (char *)function);
        called |= has_frame(symbols, &here, frame);
    }
    cr_assert(called);
    cr_assert_gt(weir_symbols_frame(symbols, (const void *)need_libdw, text, sizeof text), 0);
    cr_assert(strncmp(text, "test_symbols", 12) == 0, "%s", text);
    dlclose(library);
    weir_symbols_close(&symbols);
}

Test(symbols, a_stripped_library_has_what_it_exports)
{
    struct weir_symbols *symbols = open_symbols();
    char text[TEXT], frame[TEXT];
    int hidden, visible, found = 0, nameless = 0;
    void *library = load(SYMBOLS_FIXTURE_STRIPPED, &hidden, &visible);
    for (int i = 0; i < here.n; i++) {
        Dl_info info;
        if (!dladdr(here.at[i], &info) || !strstr(info.dli_fname, "symbols_fixture"))
            continue;
        uintptr_t offset = (uintptr_t)here.at[i] - (uintptr_t)info.dli_fbase;
        weir_symbols_frame(symbols, here.at[i], text, sizeof text);
        const char *file = strrchr(SYMBOLS_FIXTURE_STRIPPED, '/') + 1;
        int n = snprintf(frame, sizeof frame, "%s(0x%" PRIxPTR "): fixture_visible", file, offset);
        found += strncmp(text, frame, (size_t)n) == 0;
        snprintf(frame, sizeof frame,
                 "%s(0x%" PRIxPTR "): ?"
                 "?",
                 file, offset);
        nameless += strcmp(text, frame) == 0;
    }
    cr_assert_eq(found, 1);
    cr_assert_eq(nameless, 1);
    dlclose(library);
    weir_symbols_close(&symbols);
}
