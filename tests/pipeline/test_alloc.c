/* Counts allocations in steady state by caller: this program (including the statically linked library), the codec, or
 * other libraries. Our own code must not allocate per sample. A plain program, because it replaces malloc. */
#include "tests/fixtures/loader_fixture.h"
#include "weir/stages.h"

#include <errno.h>
#include <link.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#if defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer)
#define SANITIZED 1
#endif
#endif
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define SANITIZED 1
#endif

#if defined(SANITIZED)
int main(void)
{
    fprintf(stderr, "skipped: the sanitizer replaces malloc\n");
    return 77;
}
#else

enum who { WHO_US, WHO_CODEC, WHO_LIBC, WHO_OTHER, WHO_COUNT };

struct range {
    uintptr_t begin, end;
    enum who who;
};

static struct range ranges[256];
static int n_ranges;
static _Atomic bool counting;
static _Atomic uint64_t calls[WHO_COUNT];

static int add_ranges(struct dl_phdr_info *info, size_t size, void *first)
{
    (void)size;
    enum who who = WHO_OTHER;
    if (*(bool *)first)
        who = WHO_US; /* the program is listed first */
    else if (strstr(info->dlpi_name, "libjpeg"))
        who = WHO_CODEC;
    else if (strstr(info->dlpi_name, "/libc.so"))
        who = WHO_LIBC;
    *(bool *)first = false;
    for (int i = 0; i < info->dlpi_phnum && n_ranges < 256; i++) {
        const ElfW(Phdr) *segment = &info->dlpi_phdr[i];
        if (segment->p_type == PT_LOAD && (segment->p_flags & PF_X))
            ranges[n_ranges++] = (struct range){info->dlpi_addr + segment->p_vaddr,
                                                info->dlpi_addr + segment->p_vaddr + segment->p_memsz, who};
    }
    return 0;
}

/* Must not be inlined, so that the return address identifies the caller of malloc. */
#define OWN __attribute__((noinline))

static void count(void *caller)
{
    if (!atomic_load_explicit(&counting, memory_order_relaxed))
        return;
    enum who who = WHO_OTHER;
    for (int i = 0; i < n_ranges; i++)
        if ((uintptr_t)caller >= ranges[i].begin && (uintptr_t)caller < ranges[i].end)
            who = ranges[i].who;
    atomic_fetch_add_explicit(&calls[who], 1, memory_order_relaxed);
}

void *__libc_malloc(size_t bytes);
void *__libc_calloc(size_t n, size_t bytes);
void *__libc_realloc(void *old, size_t bytes);
void *__libc_memalign(size_t alignment, size_t bytes);

OWN void *malloc(size_t bytes)
{
    count(__builtin_return_address(0));
    return __libc_malloc(bytes);
}

OWN void *calloc(size_t n, size_t bytes)
{
    count(__builtin_return_address(0));
    return __libc_calloc(n, bytes);
}

OWN void *realloc(void *old, size_t bytes)
{
    count(__builtin_return_address(0));
    return __libc_realloc(old, bytes);
}

OWN void *aligned_alloc(size_t alignment, size_t bytes)
{
    count(__builtin_return_address(0));
    return __libc_memalign(alignment, bytes);
}

OWN int posix_memalign(void **out, size_t alignment, size_t bytes)
{
    count(__builtin_return_address(0));
    *out = __libc_memalign(alignment, bytes);
    return *out ? 0 : ENOMEM;
}

/* ---- runs ---- */

static int failures, checks;

static void check(bool fine, const char *what, const struct weir_loader_config *config, const char *format)
{
    checks++;
    if (fine)
        return;
    failures++;
    printf("FAIL: %s (%s, %s, %d workers%s)\n", what, format, config->format.dtype ? "f32" : "u8", config->num_workers,
           config->no_timing ? ", no timing" : "");
}

static uint64_t take_epochs(struct weir_loader *loader, int n)
{
    struct weir_batch *batch;
    struct weir_err err = WEIR_ERR_NONE;
    uint64_t samples = 0;
    for (int left = weir_sampler_batches(weir_loader_sampler(loader), WEIR_SPLIT_TRAIN) * n; left > 0; left--) {
        if (weir_loader_next(loader, &batch, &err) != 1)
            fixture_die("%s", err.text);
        samples += (uint64_t)batch->n;
        weir_loader_release(loader, batch);
    }
    return samples;
}

/* A thread allocates a stage's counters when it first enters the stage, and which worker does so when is a matter of
 * chance. So after a first epoch, windows of five epochs are counted until one has no allocation. An allocation per
 * sample would be in every window, while allocations at first calls are limited to threads x stages. The run has more
 * epochs than the windows need, so that no worker reaches its end. */
enum { WINDOWS = 12, WINDOW_EPOCHS = 5 };

static void measure(const char *data, const char *format, enum weir_dtype dtype, int workers, bool no_timing)
{
    struct weir_loader_config config;
    weir_loader_config_default(&config);
    config.data = data;
    config.num_workers = workers;
    config.num_epochs = 1 + WINDOWS * WINDOW_EPOCHS + 20;
    config.train_split = 1;
    config.batch_size = 5;
    config.obs_history = 2;
    config.format.dtype = dtype;
    config.decode_cache_bytes = no_timing ? 100000 : 0; /* large enough for some of the frames */
    config.no_timing = no_timing;
    struct weir_loader *loader = fixture_loader(&config);
    uint64_t samples = 0, ours = 0;
    take_epochs(loader, 1);
    for (int window = 0; window == 0 || (window < WINDOWS && calls[WHO_US] > 0); window++) {
        memset(calls, 0, sizeof calls);
        counting = true;
        samples = take_epochs(loader, WINDOW_EPOCHS);
        counting = false;
        ours += calls[WHO_US];
    }
    printf("%-14s %s %d workers%s: %llu samples; allocations: ours %llu (%llu before, at first calls), codec %llu, "
           "libc %llu, others %llu\n",
           format, dtype ? "f32" : "u8 ", workers, no_timing ? ", no timing" : "", (unsigned long long)samples,
           (unsigned long long)calls[WHO_US], (unsigned long long)ours, (unsigned long long)calls[WHO_CODEC],
           (unsigned long long)calls[WHO_LIBC], (unsigned long long)calls[WHO_OTHER]);
    check(samples == WINDOW_EPOCHS * 4 * 7, "all samples are delivered", &config, format);
    check(calls[WHO_US] == 0, "our code allocates nothing in steady state", &config, format);
    check(ours <= (uint64_t)(workers + 1) * WEIR_LOADER_STAGES, "first calls are few", &config, format);
    check(calls[WHO_LIBC] == 0 && calls[WHO_OTHER] == 0, "other libraries allocate nothing in steady state", &config,
          format);
    if (strcmp(format, "act") == 0 || strcmp(format, "robomimic-gzip") == 0)
        check(calls[WHO_CODEC] == 0, "raw frames need no codec", &config, format);
    weir_loader_close(&loader);
}

/* The counter itself must work. */
static void check_counter(void)
{
    struct weir_loader_config config = {.num_workers = 0};
    memset(calls, 0, sizeof calls);
    counting = true;
    /* Through volatile pointers, since the compiler could remove direct calls. */
    void *(*volatile get)(size_t) = malloc;
    void *(*volatile get_zeros)(size_t, size_t) = calloc;
    char *(*volatile copy)(const char *) = strdup;
    void *a = get(10), *b = get_zeros(1, 10), *c = copy("libc's");
    counting = false;
    check(calls[WHO_US] == 2, "the counter sees our calls", &config, "-");
    check(calls[WHO_LIBC] == 1, "the counter sees libc's calls", &config, "-");
    free(a);
    free(b);
    free(c);
}

int main(void)
{
    static const char *const formats[] = {"act", "robomimic-gzip", "act-jpeg", "astrobench"};
    bool first = true;
    dl_iterate_phdr(add_ranges, &first);
    fixture_open();
    check_counter();
    for (int f = 0; f < 4; f++) {
        const char *data = fixture_synth(formats[f], formats[f], 4, 7, 64, 48, "top,wrist");
        for (int dtype = 0; dtype < 2; dtype++)
            for (int workers = 0; workers <= 3; workers += 3) {
                measure(data, formats[f], (enum weir_dtype)dtype, workers, false);
                measure(data, formats[f], (enum weir_dtype)dtype, workers, true);
            }
    }
    fixture_close();
    printf("%d checks, %d failed\n", checks, failures);
    return failures ? 1 : 0;
}
#endif
