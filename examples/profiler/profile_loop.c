/* Runs a loop with a producer thread and a consumer under the profiler, without a loader. Three of its steps are
 * recorded as a trace for TensorBoard, Perfetto and HolisticTraceAnalysis, and as a table of averages.
 *
 *     cc profile_loop.c $(pkg-config --cflags --libs weir_prof) -o profile_loop && ./profile_loop TRACES */
#define _GNU_SOURCE /* declares pthread_setname_np */
#include <weir/profiler.h>
#include <weir/trace.h>

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { STEPS = 8, BLOCK = 1 << 20 };

/* Protects the block that the producer passes to the consumer, one at a time. */
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t changed = PTHREAD_COND_INITIALIZER;
static unsigned char *ready;
static struct weir_async on_its_way; /* lasts from the production of a block to its consumption */

static unsigned char *produce(int step)
{
    static uint32_t shapes;
    struct weir_range range = weir_range_begin(weir_name_intern("produce", WEIR_CAT_CPU_OP));
    unsigned char *block = malloc(BLOCK);
    weir_memory_allocated(block, BLOCK, WEIR_MEMORY_CPU);
    if (!shapes)
        shapes = weir_shapes_intern(1, (int[]){2}, (int64_t[]){1024, 1024}, (const char *[]){"unsigned char"});
    weir_range_shapes(&range, shapes);
    if (block)
        memset(block, step, BLOCK);
    weir_range_end(&range);
    return block;
}

static void *producer(void *unused)
{
    pthread_setname_np(pthread_self(), "producer");
    for (int step = 0; step < STEPS; step++) {
        unsigned char *block = produce(step);
        pthread_mutex_lock(&lock);
        while (ready)
            pthread_cond_wait(&changed, &lock);
        ready = block;
        on_its_way = weir_async_begin(weir_name_intern("block", WEIR_CAT_LOADER_ITEM));
        pthread_cond_signal(&changed);
        pthread_mutex_unlock(&lock);
    }
    return unused;
}

static unsigned char *next_block(int step)
{
    WEIR_OPERATOR("enumerate(DataLoader)#Blocks.__next__"); /* TensorBoard counts this name as the loader's time */
    pthread_mutex_lock(&lock);
    while (!ready)
        pthread_cond_wait(&changed, &lock);
    unsigned char *block = ready;
    weir_async_end(&on_its_way, (uint64_t)step + 1);
    ready = NULL;
    pthread_cond_signal(&changed);
    pthread_mutex_unlock(&lock);
    return block;
}

static unsigned long consume(unsigned char *block)
{
    WEIR_OPERATOR("consume");
    unsigned long sum = 0;
    for (int i = 0; i < BLOCK; i++)
        sum += block[i];
    weir_counter(weir_name_intern("sum", WEIR_CAT_OTHER), (double)sum);
    weir_memory_freed(block, BLOCK, WEIR_MEMORY_CPU);
    free(block);
    return sum;
}

/* Called once per window, on a thread of the profiler. */
static void on_window(void *user, const struct weir_profiler_window *window)
{
    (void)user;
    printf("steps %lld to %lld: %zu events, %s\n", (long long)window->first_step, (long long)window->last_step,
           window->trace ? window->trace->n_events : 0, window->path ? window->path : window->error);
}

static void print_averages(struct weir_profiler *profiler)
{
    const struct weir_averages_config config = {.by_shape = true};
    const struct weir_averages_table table = {"self_cpu_time_total", 10, false, NULL};
    struct weir_averages *averages;
    weir_profiler_flush(profiler);
    if (!weir_profiler_last(profiler) || weir_averages_open(&averages, weir_profiler_last(profiler), &config) < 0)
        return;
    weir_averages_print(stdout, averages, &table);
    weir_averages_close(&averages);
}

int main(int argc, char **argv)
{
    struct weir_profiler_config config;
    struct weir_profiler *profiler;
    struct weir_err err = WEIR_ERR_NONE;
    pthread_t thread;
    unsigned long sum = 0;
    weir_profiler_config_default(&config);
    config.schedule = (struct weir_schedule){.wait = 1, .warmup = 1, .active = 3, .repeat = 1};
    config.folder = argc > 1 ? argv[1] : "traces";
    config.record_shapes = config.profile_memory = true;
    config.on_trace_ready = on_window;
    if (weir_profiler_open(&profiler, &config, &err) < 0) {
        fprintf(stderr, "profile_loop: %s\n", err.text);
        return 1;
    }
    if (pthread_create(&thread, NULL, producer, NULL) != 0)
        return 1;
    for (int step = 0; step < STEPS; step++) {
        sum += consume(next_block(step));
        weir_profiler_step(profiler);
    }
    pthread_join(thread, NULL);
    print_averages(profiler);
    weir_profiler_close(&profiler);
    printf("sum %lu\n", sum);
    return 0;
}
