/* Read-ahead, the page cache, and the choice of an engine. */
#include "io/ahead.h"
#include "io/storage.h"
#include "tests/fixtures/loader_fixture.h"
#include "weir/base.h"

#include <criterion/criterion.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <unistd.h>

TestSuite(ahead, .init = fixture_open, .fini = fixture_close);

enum { FILES = 6, FILE_BYTES = 60000, TASKS = 1500, PER_TASK = 3 };

static uint8_t byte_at(int file, uint64_t offset)
{
    return (uint8_t)(offset * 31 + offset / 257 + (uint64_t)file * 101);
}

static const char *file_path(int file)
{
    char name[32];
    snprintf(name, sizeof name, "file%d", file);
    return fixture_path(name);
}

static struct weir_file_set *make_set(void)
{
    struct weir_file_set *set;
    cr_assert_eq(weir_file_set_open(&set, 4), 0);
    for (int i = 0; i < FILES; i++) {
        FILE *out = fopen(file_path(i), "w");
        for (int k = 0; k < FILE_BYTES; k++)
            fputc(byte_at(i, (uint64_t)k), out);
        fclose(out);
        struct stat st;
        cr_assert_eq(stat(file_path(i), &st), 0);
        struct weir_file_id id = {(uint64_t)st.st_size, st.st_dev, st.st_ino,
                                  (int64_t)st.st_mtim.tv_sec * 1000000000 + st.st_mtim.tv_nsec, false};
        cr_assert_eq(weir_file_set_add(set, file_path(i), &id), i);
    }
    return set;
}

/* Returns true if io_uring, the engine that reads ahead, is available. */
static bool can_uring(void)
{
    char text[256];
    if (weir_io_check("uring", NULL) == 0 && weir_uring_describe(text, sizeof text))
        return true;
    fprintf(stderr, "skipped: io_uring is not available\n");
    return false;
}

/* ---- a list of extents, with PER_TASK extents per task, and threads that take tasks ---- */

struct list {
    struct weir_extent extents[TASKS * PER_TASK];
    uint64_t next; /* position of the read-ahead */
    _Atomic uint64_t taken;
    struct weir_ahead *ahead;
    uint64_t n_tasks;
    _Atomic int wrong;
};

static int next_extent(void *user, uint64_t from, uint64_t *task_id, struct weir_extent *extent)
{
    struct list *list = user;
    if (list->next < from * PER_TASK)
        list->next = from * PER_TASK;
    if (list->next >= list->n_tasks * PER_TASK)
        return -1;
    *task_id = list->next / PER_TASK;
    *extent = list->extents[list->next++];
    return 1;
}

static void open_ahead(struct list *list, struct weir_file_set *set, const char *engine, int depth, int takers)
{
    struct weir_err err = WEIR_ERR_NONE;
    struct weir_ahead_config config = {.engine = engine,
                                       .set = set,
                                       .depth = depth,
                                       .takers = takers,
                                       .extent_max = FILE_BYTES,
                                       .next = next_extent,
                                       .taken = &list->taken,
                                       .user = list};
    cr_assert_eq(weir_ahead_open(&list->ahead, &config, &err), 0, "%s", err.text);
}

static int read_one(struct weir_reader *reader, const struct weir_extent *x)
{
    static _Thread_local uint8_t buffer[FILE_BYTES];
    const uint8_t *data;
    int rc = weir_read(reader, x->file, x->offset, x->length, buffer, &data);
    for (size_t i = 0; i < x->length && rc == 0; i++)
        if (data[i] != byte_at(x->file, x->offset + i))
            rc = -EBADMSG;
    return rc;
}

struct taker {
    pthread_t thread;
    struct list *list;
    struct weir_reader *reader;
};

/* Takes tasks and reads their extents. Some tasks are abandoned early, some read an extent that is not in the list, and
 * some read an extent twice. */
static void *take(void *user)
{
    struct taker *taker = user;
    struct list *list = taker->list;
    uint64_t task_id;
    while ((task_id = atomic_fetch_add(&list->taken, 1)) < list->n_tasks) {
        const struct weir_extent *x = &list->extents[task_id * PER_TASK], other = {(int)task_id % FILES, task_id, 77};
        weir_reader_begin(taker->reader, list->ahead, task_id);
        for (int i = 0; i < (task_id % 7 ? PER_TASK : 1); i++)
            list->wrong += read_one(taker->reader, &x[i]) != 0;
        if (task_id % 5 == 0)
            list->wrong += read_one(taker->reader, &other) != 0;
        if (task_id % 11 == 0)
            list->wrong += read_one(taker->reader, &x[0]) != 0;
        weir_reader_end(taker->reader);
    }
    return NULL;
}

static void fill(struct list *list, unsigned random)
{
    *list = (struct list){.n_tasks = TASKS};
    for (int i = 0; i < TASKS * PER_TASK; i++) {
        random = random * 1103515245 + 12345;
        uint64_t offset = (random >> 7) % FILE_BYTES;
        size_t length = 1 + (random >> 9) % 5000;
        struct weir_extent before = list->extents[i ? i - 1 : 0];
        length = i % 9 == 0 || length > FILE_BYTES - offset ? FILE_BYTES - offset : length; /* to the end of the file */
        list->extents[i] = (struct weir_extent){(int)(random >> 20) % FILES, offset, length};
        /* A neighbour of the previous extent, after a gap. */
        if (i % 4 == 1 && before.offset + before.length + 200 < FILE_BYTES)
            list->extents[i] = (struct weir_extent){before.file, before.offset + before.length + 100, 100};
        if (i % PER_TASK == 2 && i % 8 == 0)
            list->extents[i] = before; /* same as the previous extent */
    }
}

static void take_all(const char *engine, int depth, int n_takers, bool direct)
{
    struct weir_err err = WEIR_ERR_NONE;
    struct weir_file_set *set = make_set();
    struct list *list = malloc(sizeof *list);
    struct taker takers[16];
    if (direct && weir_file_set_direct(set, &err) < 0) {
        fprintf(stderr, "skipped: %s\n", err.text);
        weir_file_set_close(&set);
        free(list);
        return;
    }
    fill(list, (unsigned)(depth * 17 + n_takers));
    open_ahead(list, set, engine, depth, n_takers);
    for (int i = 0; i < n_takers; i++) {
        takers[i].list = list;
        cr_assert_eq(weir_reader_open(&takers[i].reader, engine, set, &err), 0, "%s", err.text);
    }
    for (int i = 0; i < n_takers; i++)
        cr_assert_eq(pthread_create(&takers[i].thread, NULL, take, &takers[i]), 0);
    uint64_t staged = 0;
    for (int i = 0; i < n_takers; i++) {
        struct weir_read_counts counts;
        pthread_join(takers[i].thread, NULL);
        weir_reader_counts(takers[i].reader, &counts);
        staged += counts.ahead;
        weir_reader_close(&takers[i].reader);
    }
    struct weir_ahead_facts facts;
    weir_ahead_facts(list->ahead, &facts);
    cr_assert_eq(list->wrong, 0, "%s, depth %d, %d readers: %d wrong reads", engine, depth, n_takers, list->wrong);
    cr_assert_gt(facts.extents, 0);
    cr_assert_leq(facts.reads, facts.extents);
    cr_assert(strcmp(engine, "uring") != 0 || staged > 0);
    weir_ahead_close(&list->ahead);
    cr_assert_null(list->ahead);
    weir_file_set_close(&set);
    free(list);
}

Test(ahead, everyone_gets_their_bytes)
{
    static const int depths[] = {1, 2, 8, 64}, takers[] = {1, 3, 16};
    for (size_t d = 0; d < sizeof depths / sizeof depths[0]; d++)
        for (size_t t = 0; t < sizeof takers / sizeof takers[0]; t++) {
            take_all("pread", depths[d], takers[t], false); /* read-ahead only gives hints to the kernel */
            if (!can_uring())
                continue;
            take_all("uring", depths[d], takers[t], false);
            take_all("uring", depths[d], takers[t], true);
        }
}

Test(ahead, neighbours_become_one_read)
{
    if (!can_uring())
        return;
    struct weir_file_set *set = make_set();
    struct list *list = calloc(1, sizeof *list);
    struct weir_reader *reader;
    list->n_tasks = 100;
    for (int i = 0; i < 300; i++)
        list->extents[i] = (struct weir_extent){2, (uint64_t)i * 150, 120};
    open_ahead(list, set, "uring", 4, 1);
    cr_assert_eq(weir_reader_open(&reader, "uring", set, NULL), 0);
    struct weir_ahead_facts facts;
    do /* no task is taken, so read-ahead continues until its space is used up */
        weir_ahead_facts(list->ahead, &facts);
    while (facts.reads == 0);
    cr_assert_geq(facts.extents, 16 * facts.reads);
    struct taker taker = {.list = list, .reader = reader};
    take(&taker);
    cr_assert_eq(list->wrong, 0);
    weir_reader_close(&reader);
    weir_ahead_close(&list->ahead);
    weir_file_set_close(&set);
    free(list);
}

/* Reads the first `length` bytes of the task's file, whose parts are the task's extents. */
static void take_joined(struct list *list, struct weir_reader *reader, uint64_t task, size_t length)
{
    struct weir_extent whole = {(int)task % FILES, 0, length};
    struct weir_ahead_facts facts;
    do /* nothing is taken, so read-ahead plans the task's parts */
        weir_ahead_facts(list->ahead, &facts);
    while (facts.extents < (task + 1) * PER_TASK);
    list->taken = task + 1;
    weir_reader_begin(reader, list->ahead, task);
    cr_assert_eq(read_one(reader, &whole), 0, "task %d", (int)task);
    weir_reader_end(reader);
}

Test(ahead, parts_of_an_extent_are_joined)
{
    enum { N = 200, PART = 20000 };
    if (!can_uring())
        return;
    struct weir_file_set *set = make_set();
    struct list *list = calloc(1, sizeof *list);
    struct weir_reader *reader;
    struct weir_read_counts counts;
    list->n_tasks = N;
    for (int i = 0; i < N * PER_TASK; i++) {
        int file = i / PER_TASK % FILES, part = i % PER_TASK;
        size_t length = part == PER_TASK - 1 ? PART / 2 : PART; /* the file's last bytes are not read ahead */
        list->extents[i] = (struct weir_extent){file, (uint64_t)part * PART, length};
    }
    open_ahead(list, set, "uring", 64, 1);
    cr_assert_eq(weir_reader_open(&reader, "uring", set, NULL), 0);
    for (uint64_t task = 0; task < N; task++) {
        const size_t lengths[] = {FILE_BYTES, 2 * PART, 2 * PART + 5, PART - 1};
        take_joined(list, reader, task, lengths[task % 4]);
    }
    weir_reader_counts(reader, &counts);
    cr_assert_eq(counts.reads, N);
    cr_assert_gt(counts.ahead, 0);
    cr_assert_leq(counts.ahead, N / 4 * 3);
    weir_reader_close(&reader);
    weir_ahead_close(&list->ahead);
    weir_file_set_close(&set);
    free(list);
}

Test(ahead, what_cannot_be_read_is_the_takers_error)
{
    if (!can_uring())
        return;
    struct weir_file_set *set = make_set();
    struct list *list = calloc(1, sizeof *list);
    struct weir_reader *reader;
    list->n_tasks = 4;
    for (int i = 0; i < 12; i++)
        list->extents[i] = (struct weir_extent){i / PER_TASK, (uint64_t)i, 100};
    list->extents[0].offset = FILE_BYTES - 50;
    list->extents[6].offset = 1ull << 50;
    cr_assert_eq(truncate(file_path(1), 10), 0);
    cr_assert_eq(unlink(file_path(3)), 0);
    open_ahead(list, set, "uring", 8, 1);
    cr_assert_eq(weir_reader_open(&reader, "uring", set, NULL), 0);
    struct weir_ahead_facts facts;
    do /* reads in flight are limited by the file handles; the remaining extents are read on demand */
        weir_ahead_facts(list->ahead, &facts);
    while (facts.extents < 9);
    static const int wanted[4][3] = {
        {-ENODATA, 0, 0}, {-ESTALE, -ESTALE, -ESTALE}, {-ENODATA, 0, 0}, {-ENOENT, -ENOENT, -ENOENT}};
    for (int task_id = 0; task_id < 4; task_id++) {
        atomic_store(&list->taken, (uint64_t)task_id + 1);
        weir_reader_begin(reader, list->ahead, (uint64_t)task_id);
        for (int i = 0; i < 3; i++)
            cr_assert_eq(read_one(reader, &list->extents[task_id * 3 + i]), wanted[task_id][i], "%d, %d", task_id, i);
        weir_reader_end(reader);
    }
    struct weir_read_counts counts;
    weir_reader_counts(reader, &counts);
    cr_assert_eq(counts.ahead, 4);
    weir_reader_close(&reader);
    weir_ahead_close(&list->ahead);
    weir_file_set_close(&set);
    free(list);
}

Test(ahead, it_ends_while_reads_are_in_flight)
{
    if (!can_uring())
        return;
    struct list *list = malloc(sizeof *list);
    for (int i = 0; i < 20; i++) {
        struct weir_file_set *set = make_set();
        fill(list, (unsigned)i);
        open_ahead(list, set, "uring", 64, 2);
        weir_ahead_close(&list->ahead);
        weir_file_set_close(&set);
    }
    free(list);
}

static _Thread_local int locked; /* number of locks taken by this thread */

int __real_pthread_mutex_lock(pthread_mutex_t *lock);
int __wrap_pthread_mutex_lock(pthread_mutex_t *lock);
int __wrap_pthread_mutex_lock(pthread_mutex_t *lock)
{
    locked++;
    return __real_pthread_mutex_lock(lock);
}

static void take_without_locks(const char *engine)
{
    struct weir_file_set *set = make_set();
    struct list *list = malloc(sizeof *list);
    struct weir_reader *reader;
    struct weir_ahead_facts facts;
    fill(list, 5);
    open_ahead(list, set, engine, 8, 1);
    cr_assert_eq(weir_reader_open(&reader, engine, set, NULL), 0);
    do /* waits for the first extent */
        weir_ahead_facts(list->ahead, &facts);
    while (facts.extents == 0);
    int locks = 0;
    for (uint64_t task_id = 0; task_id < TASKS; task_id++) {
        atomic_store(&list->taken, task_id + 1);
        locked = 0;
        weir_reader_begin(reader, list->ahead, task_id);
        locks += locked;
        /* Locks are not counted here, since the read may have to open the file. */
        list->wrong += read_one(reader, &list->extents[task_id * PER_TASK]) != 0;
        locked = 0;
        weir_reader_end(reader);
        locks += locked;
    }
    cr_assert_eq(list->wrong, 0);
    cr_assert_eq(locks, 0, "%s: %d locks were taken for %d tasks", engine, locks, (int)TASKS);
    weir_reader_close(&reader);
    weir_ahead_close(&list->ahead);
    weir_file_set_close(&set);
    free(list);
}

/* If workers took a lock between two tasks, they could have to wait until the lock's holder gets a core. */
Test(ahead, who_takes_a_task_locks_nothing)
{
    take_without_locks("pread");
    if (can_uring())
        take_without_locks("uring");
}

/* ---- the page cache ---- */

/* Returns false if the files are in memory, where they cannot be dropped from the cache. */
static bool on_disk(void)
{
    struct statfs fs;
    bool memory = statfs(file_path(0), &fs) == 0 && fs.f_type == 0x01021994; /* TMPFS_MAGIC */
    if (memory)
        fprintf(stderr, "skipped: /tmp is in memory\n");
    return !memory;
}

Test(ahead, files_are_dropped_from_the_page_cache)
{
    struct weir_file_set *set = make_set();
    struct weir_extent all[FILES];
    struct weir_cold cold;
    struct weir_err err = WEIR_ERR_NONE;
    for (int i = 0; i < FILES; i++)
        all[i] = (struct weir_extent){i, 0, FILE_BYTES};
    cr_assert_float_eq(weir_page_cache_fraction(set, all, FILES), 1, 1e-9);
    cr_assert_eq(weir_page_cache_fraction(set, all, 0), -1);
    if (on_disk()) {
        cr_assert_eq(weir_page_cache_drop(set, &cold, &err), 0, "%s", err.text);
        cr_assert_eq(cold.files, FILES);
        cr_assert_eq(cold.bytes, (uint64_t)FILES * FILE_BYTES);
        cr_assert_eq(cold.stayed_bytes, 0);
        cr_assert_float_eq(weir_page_cache_fraction(set, all, FILES), 0, 1e-9);
        struct weir_reader *reader;
        cr_assert_eq(weir_reader_open(&reader, "pread", set, NULL), 0);
        cr_assert_eq(read_one(reader, &all[2]), 0);
        weir_reader_close(&reader);
        cr_assert_float_eq(weir_page_cache_fraction(set, &all[2], 1), 1, 1e-9);
        cr_assert_float_eq(weir_page_cache_fraction(set, &all[1], 1), 0, 1e-9);
    }
    cr_assert_eq(unlink(file_path(0)), 0);
    cr_assert_eq(weir_page_cache_drop(set, &cold, &err), -ENOENT);
    cr_assert_not_null(strstr(err.text, "file0"), "%s", err.text);
    weir_file_set_close(&set);
}

/* ---- choice of an engine ---- */

Test(ahead, the_choice_has_a_reason)
{
    struct weir_file_set *set = make_set();
    struct weir_extent extents[FILES * 10];
    struct weir_choice choice;
    for (int i = 0; i < FILES * 10; i++)
        extents[i] = (struct weir_extent){i % FILES, (uint64_t)(i / FILES) * 5000, 4096};
    struct weir_choice_config config = {.set = set, .threads = 2, .extents = extents, .n = FILES * 10};
    weir_io_choose(&choice, &config);
    cr_assert_str_eq(choice.engine, "pread");
    cr_assert_not_null(strstr(choice.why, "100 % of 60 sampled frames are in the page cache"), "%s", choice.why);
    config.n = 0;
    weir_io_choose(&choice, &config);
    cr_assert_str_eq(choice.engine, "pread");
    struct weir_cold cold;
    config.n = FILES * 10;
    if (on_disk()) {
        cr_assert_eq(weir_page_cache_drop(set, &cold, NULL), 0);
        weir_io_choose(&choice, &config);
        cr_assert_str_eq(choice.engine, "pread");
        cr_assert_not_null(strstr(choice.why, "fit in"), "%s", choice.why);
    }
    if (on_disk() && weir_file_set_direct(set, NULL) == 0) {
        weir_io_choose(&choice, &config);
        cr_assert_eq(weir_io_check(choice.engine, NULL), 0);
        cr_assert_not_null(strstr(choice.why, "fastest for direct reads: pread "), "%s", choice.why);
    }
    weir_file_set_close(&set);
}
