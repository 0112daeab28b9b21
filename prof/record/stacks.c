/* Captures call stacks of C functions. */
#include "base/hash.h"
#include "base/shared_library.h"
#include "prof/record/track_priv.h"

#include <stdlib.h>
#include <string.h>
#include <unwind.h>

enum { SEEN = 128 };

/* Recently captured stacks of one thread, hashed by base address and recorded name. */
struct weir_stacks_seen {
    struct seen {
        const char *base;
        const void *const *addresses;
        int n;
        uint32_t number;
        uint32_t offsets[WEIR_STACK_DEPTH]; /* distance of each return address from base, in bytes */
    } at[SEEN];
};

/* State of an unwind in progress. */
struct walk {
    const char *base;
    int n;
    bool known; /* the stack positions of all return addresses were found */
    void *addresses[WEIR_STACK_DEPTH];
    uint32_t offsets[WEIR_STACK_DEPTH];
};

/* GCC's unwinder. It is loaded with dlopen at the first stack, as in glibc's backtrace, so programs need not link it.
 */
static struct {
    pthread_once_t once;
    _Unwind_Reason_Code (*backtrace)(_Unwind_Trace_Fn each, void *user); /* NULL: no stacks are recorded */
    _Unwind_Word (*frame)(struct _Unwind_Context *context);
    _Unwind_Ptr (*address)(struct _Unwind_Context *context);
} unwinder = {.once = PTHREAD_ONCE_INIT};

static void open_unwinder(void)
{
    static const char *const files[] = {"libgcc_s.so.1", NULL};
    static const struct weir_symbol symbols[] = {{"_Unwind_GetCFA", &unwinder.frame},
                                                 {"_Unwind_GetIP", &unwinder.address},
                                                 {"_Unwind_Backtrace", &unwinder.backtrace}};
    char why[192];
    if (!weir_shared_library_open(files, symbols, sizeof symbols / sizeof *symbols, "", why, sizeof why))
        unwinder.backtrace = NULL;
}

/* Adds one frame to the walk. On x86-64, a return address is stored right below the frame of the function that it
 * returns to. On other machines its position stays unknown, so the stack is unwound every time. */
static _Unwind_Reason_Code take_frame(struct _Unwind_Context *context, void *user)
{
    struct walk *walk = user;
    const char *frame = (const char *)unwinder.frame(context);
    void *address = (void *)unwinder.address(context);
    if (frame <= walk->base && walk->n == 0)
        return _URC_NO_REASON; /* skip frames of the capture itself */
    if (!address || walk->n == WEIR_STACK_DEPTH)
        return _URC_END_OF_STACK;
    const char *slot = frame - sizeof(void *);
    if (slot <= walk->base || slot - walk->base > UINT32_MAX || memcmp(slot, &address, sizeof address) != 0)
        walk->known = false;
    else
        walk->offsets[walk->n] = (uint32_t)(slot - walk->base);
    walk->addresses[walk->n++] = address;
    return _URC_NO_REASON;
}

/* Unwinding costs several hundred ns per frame, but a thread calls from the same places again and again. If base is
 * equal and memory holds the same return addresses at the same offsets from it, the stack is the same. This reads
 * arbitrary words of the thread's own stack, so sanitizers are disabled. */
__attribute__((noinline, no_sanitize_address, no_sanitize_thread)) static bool is_same(const struct seen *seen,
                                                                                       const char *base)
{
    if (seen->base != base)
        return false;
    for (int i = 0; i < seen->n; i++)
        if (*(const void *const volatile *)(base + seen->offsets[i]) != seen->addresses[i])
            return false;
    return true;
}

static uint32_t unwind(struct weir_stacks_seen *all, struct seen *seen, const char *base)
{
    struct walk walk = {.base = base, .known = true};
    pthread_once(&unwinder.once, open_unwinder);
    if (unwinder.backtrace)
        unwinder.backtrace(take_frame, &walk);
    if (walk.n == 0)
        return 0;
    uint32_t number = weir_stack_intern(walk.addresses, walk.n);
    if (all && number && walk.known) {
        *seen = (struct seen){.base = base, .number = number};
        seen->n = weir_stack_addresses(number, &seen->addresses);
        memcpy(seen->offsets, walk.offsets, sizeof seen->offsets);
    }
    return number;
}

__attribute__((noinline)) uint32_t weir_stack_capture(struct weir_stacks_seen **seen, weir_name name)
{
    const char *base = __builtin_frame_address(0);
    uint64_t key[2] = {(uintptr_t)base, name};
    if (!*seen)
        *seen = calloc(1, sizeof **seen);
    struct seen *mine = *seen ? &(*seen)->at[weir_hash64(key, sizeof key) % SEEN] : NULL;
    if (mine && is_same(mine, base))
        return mine->number;
    uint32_t number = unwind(*seen, mine, base);
    __asm__ volatile("" ::: "memory"); /* prevents a tail call, which would remove this frame */
    return number;
}
