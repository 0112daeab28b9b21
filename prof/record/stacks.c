/* Represents call stacks as numbers. Each distinct stack is stored once and kept until the process ends. */
#include "base/hash.h"
#include "base/shared_library.h"
#include "prof/record/fork_priv.h"
#include "prof/record/track_priv.h"

#include <stdlib.h>
#include <string.h>
#include <unwind.h>

enum { STACKS_MAX = 1 << 16, SLOTS = 1 << 17, SEEN = 128 };

struct stack {
    int n;
    uint64_t hash;
    char *text; /* the frames as a string, or NULL if the stack consists of addresses */
    const void *addresses[WEIR_STACK_DEPTH];
};

/* Recently captured stacks of one thread, hashed by base address and recorded name. */
struct weir_stacks_seen {
    struct seen {
        const char *base;
        const struct stack *stack;
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

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct stack *_Atomic kept[STACKS_MAX];
static uint32_t count = 1;
static uint32_t *slots; /* hash table of stack numbers with open addressing */

static struct stack *get(uint32_t stack)
{
    return stack < STACKS_MAX ? atomic_load_explicit(&kept[stack], memory_order_acquire) : NULL;
}

/* Stores a new stack, which consists of either a string of frames or n addresses. Returns its number, or 0 on failure.
 */
static uint32_t keep(const char *text, void *const *addresses, int n, uint64_t hash)
{
    struct stack *s = count < STACKS_MAX ? malloc(sizeof *s) : NULL;
    char *copy = s && text ? strdup(text) : NULL;
    if (!s || (text && !copy)) {
        free(s);
        return 0;
    }
    s->n = n;
    s->hash = hash;
    s->text = copy;
    if (n > 0)
        memcpy(s->addresses, addresses, (size_t)n * sizeof *addresses);
    atomic_store_explicit(&kept[count], s, memory_order_release);
    return count++;
}

static bool is_stack(const struct stack *s, const char *text, void *const *addresses, int n, uint64_t hash)
{
    if (s->hash != hash || s->n != n || !s->text != !text)
        return false;
    return text ? strcmp(s->text, text) == 0 : memcmp(s->addresses, addresses, (size_t)n * sizeof *addresses) == 0;
}

static uint32_t find_or_keep(const char *text, void *const *addresses, int n)
{
    uint64_t hash = text ? weir_hash64(text, strlen(text)) : weir_hash64(addresses, (size_t)n * sizeof *addresses);
    if (!slots)
        slots = calloc(SLOTS, sizeof *slots);
    if (!slots)
        return 0;
    for (uint64_t at = hash;; at++) {
        uint32_t *slot = &slots[at & (SLOTS - 1)];
        if (*slot == 0)
            return *slot = keep(text, addresses, n, hash);
        if (is_stack(get(*slot), text, addresses, n, hash))
            return *slot;
    }
}

void weir_stacks_fork(enum weir_fork when)
{
    if (when == WEIR_FORK_PREPARE)
        pthread_mutex_lock(&lock);
    else
        pthread_mutex_unlock(&lock);
}

/* ---- unwinding ---- */

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
    for (int i = 0; i < seen->stack->n; i++)
        if (*(const void *const volatile *)(base + seen->offsets[i]) != seen->stack->addresses[i])
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
    weir_fork_safe(WEIR_FORK_STACKS, weir_stacks_fork);
    pthread_mutex_lock(&lock);
    uint32_t number = find_or_keep(NULL, walk.addresses, walk.n);
    pthread_mutex_unlock(&lock);
    if (all && number && walk.known) {
        *seen = (struct seen){.base = base, .stack = get(number), .number = number};
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

int weir_stack_addresses(uint32_t stack, const void *const **addresses)
{
    const struct stack *s = stack ? get(stack) : NULL;
    *addresses = s ? s->addresses : NULL;
    return s ? s->n : 0;
}

uint32_t weir_stack_text(const char *frames)
{
    weir_fork_safe(WEIR_FORK_STACKS, weir_stacks_fork);
    pthread_mutex_lock(&lock);
    uint32_t number = find_or_keep(frames, NULL, 0);
    pthread_mutex_unlock(&lock);
    return number;
}

const char *weir_stack_frames(uint32_t stack)
{
    const struct stack *s = stack ? get(stack) : NULL;
    return s ? s->text : NULL;
}
