/* The stand-in's NVTX: writes down what is pushed and popped, for tests to look at. */
#include "tests/fake_cuda.h"
#include "tests/fake_trace.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

struct text {
    struct text *next;
    char text[];
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct text *texts; /* for the life of the process, as promised */
static struct fake_nvtx_event events[FAKE_NVTX_MAX];
static int n_events;
static bool listening = true;

static int active(void)
{
    return listening;
}

static void *intern(const char *text)
{
    struct text *copy = malloc(sizeof *copy + strlen(text) + 1);
    if (!copy)
        fake_die("the host has no memory left");
    strcpy(copy->text, text);
    pthread_mutex_lock(&lock);
    copy->next = texts;
    texts = copy;
    pthread_mutex_unlock(&lock);
    return copy;
}

static void note(bool push, const char *text, uint64_t item)
{
    pthread_mutex_lock(&lock);
    if (n_events < FAKE_NVTX_MAX)
        events[n_events++] = (struct fake_nvtx_event){(uint32_t)gettid(), push, text, item};
    pthread_mutex_unlock(&lock);
}

static void push(void *text, uint64_t item)
{
    note(true, ((struct text *)text)->text, item);
}

static void pop(void)
{
    note(false, "", 0);
}

static void name_thread(uint32_t tid, const char *name)
{
    (void)tid;
    (void)name;
}

const struct weir_nvtx_ops weir_nvtx_fake = {
    .active = active,
    .intern = intern,
    .push = push,
    .pop = pop,
    .name_thread = name_thread,
};

static void listen(bool now)
{
    listening = now;
}

static int take(struct fake_nvtx_event *to)
{
    pthread_mutex_lock(&lock);
    int n = n_events;
    memcpy(to, events, (size_t)n * sizeof *to);
    n_events = 0;
    pthread_mutex_unlock(&lock);
    return n;
}

__attribute__((visibility("default"))) const struct fake_nvtx fake_nvtx = {listen, take};
