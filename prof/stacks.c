/* The stacks of calls as numbers: each different one is kept once, for the life of the process. */
#include "prof/fork_priv.h"
#include "prof/hash.h"
#include "prof/track_priv.h"

#include <execinfo.h>
#include <stdlib.h>
#include <string.h>

enum { STACKS_MAX = 1 << 16, SLOTS = 1 << 17, SKIP = 1 };

struct stack {
    int n;
    uint64_t hash;
    const void *addresses[WEIR_STACK_DEPTH];
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct stack *_Atomic kept[STACKS_MAX];
static uint32_t count = 1;
static uint32_t *slots; /* numbers by hash, open addressing */

static struct stack *get(uint32_t stack)
{
    return stack < STACKS_MAX ? atomic_load_explicit(&kept[stack], memory_order_acquire) : NULL;
}

static uint32_t keep(void *const *addresses, int n, uint64_t hash)
{
    struct stack *s = count < STACKS_MAX ? malloc(sizeof *s) : NULL;
    if (!s)
        return 0;
    s->n = n;
    s->hash = hash;
    memcpy(s->addresses, addresses, (size_t)n * sizeof *addresses);
    atomic_store_explicit(&kept[count], s, memory_order_release);
    return count++;
}

static uint32_t find_or_keep(void *const *addresses, int n)
{
    uint64_t hash = weir_hash64(addresses, (size_t)n * sizeof *addresses);
    if (!slots)
        slots = calloc(SLOTS, sizeof *slots);
    if (!slots)
        return 0;
    for (uint64_t at = hash;; at++) {
        uint32_t *slot = &slots[at & (SLOTS - 1)];
        if (*slot == 0)
            return *slot = keep(addresses, n, hash);
        const struct stack *s = get(*slot);
        if (s->hash == hash && s->n == n && memcmp(s->addresses, addresses, (size_t)n * sizeof *addresses) == 0)
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

__attribute__((noinline)) uint32_t weir_stack_capture(void)
{
    void *addresses[WEIR_STACK_DEPTH + SKIP];
    int n = backtrace(addresses, WEIR_STACK_DEPTH + SKIP) - SKIP;
    if (n <= 0)
        return 0;
    pthread_mutex_lock(&lock);
    uint32_t stack = find_or_keep(addresses + SKIP, n);
    pthread_mutex_unlock(&lock);
    return stack;
}

int weir_stack_addresses(uint32_t stack, const void *const **addresses)
{
    const struct stack *s = stack ? get(stack) : NULL;
    *addresses = s ? s->addresses : NULL;
    return s ? s->n : 0;
}
