/* A small shared library, built in several ways (tests/CMakeLists.txt), for test_symbols to load and to damage. The
 * lines of the calls are what the test looks for. */
#include <stddef.h>

typedef void (*fixture_callback)(void *user);

void fixture_visible(fixture_callback callback, void *user);
extern const int fixture_line_visible, fixture_line_hidden;
extern volatile int fixture_calls;

volatile int fixture_calls;
const int fixture_line_hidden = __LINE__ + 4;
__attribute__((noinline)) static void fixture_hidden(fixture_callback callback, void *user)
{
    fixture_calls = fixture_calls + 1;
    callback(user);
    fixture_calls = fixture_calls + 1;
}

const int fixture_line_visible = __LINE__ + 4;
__attribute__((noinline)) void fixture_visible(fixture_callback callback, void *user)
{
    fixture_calls = fixture_calls + 1;
    fixture_hidden(callback, user);
    fixture_calls = fixture_calls + 1;
}
