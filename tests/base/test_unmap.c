/* An unmapped address range can be mapped again by another thread, through a system call that ThreadSanitizer does not
 * intercept (liburing makes such calls). ThreadSanitizer must not report a race. A separate program, mainly for
 * ThreadSanitizer. */
#include "base/resources.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

enum { PAGES = 3 };

static size_t page;
static char *_Atomic last; /* last page of the unmapped range, once it is mapped again */

/* Passes the page to the other thread with a relaxed store only, so that nothing else orders the two threads. */
static void *give_back(void *size)
{
    enum { PROT = PROT_READ | PROT_WRITE, PRIVATE = MAP_PRIVATE | MAP_ANONYMOUS };
    char *memory = mmap(NULL, *(size_t *)size, PROT, PRIVATE, -1, 0);
    char *mine = memory + (PAGES - 1) * page;
    weir_memory_unmap(memory, *(size_t *)size);
    long again = syscall(SYS_mmap, mine, page, PROT, PRIVATE | MAP_FIXED, -1, 0L);
    atomic_store_explicit(&last, again == (long)mine ? mine : MAP_FAILED, memory_order_relaxed);
    return NULL;
}

static void *take(void *value)
{
    char *mine;
    while (!(mine = atomic_load_explicit(&last, memory_order_relaxed)))
        usleep(100);
    if (mine == MAP_FAILED)
        return "the last page cannot be mapped again";
    *(int *)value = *(volatile int *)(void *)mine;
    return NULL;
}

int main(void)
{
    page = (size_t)sysconf(_SC_PAGESIZE);
    size_t size = (PAGES - 1) * page + 100;
    int value = 1;
    void *why_not = NULL;
    pthread_t giver, taker;
    if (pthread_create(&giver, NULL, give_back, &size) || pthread_create(&taker, NULL, take, &value))
        return 1;
    pthread_join(giver, NULL);
    pthread_join(taker, &why_not);
    printf("%s\n", why_not ? (const char *)why_not : value ? "FAIL: the page is not zero" : "the page is zero");
    return why_not || value;
}
