/* The cache on disk: whatever happens to its files, a read returns the right bytes or none. */
#include "base/files.h"
#include "base/terminal.h"
#include "origin/disk_cache.h"

#include <criterion/criterion.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

enum { SEGMENT = 64 << 10, LONG = 1 << 20, MEDIUM = 300001 };

static char folder[] = "/tmp/weir-cache-XXXXXX", text[96], data_path[96], table_path[96];

static void make_folder(void)
{
    cr_assert(mkdtemp(folder));
    snprintf(text, sizeof text, "%s/c:64M", folder);
    snprintf(data_path, sizeof data_path, "%s/c/weir-cache.data", folder);
    snprintf(table_path, sizeof table_path, "%s/c/weir-cache.table", folder);
}

static void remove_folder(void)
{
    char command[64];
    snprintf(command, sizeof command, "rm -r '%s'", folder);
    cr_assert_eq(system(command), 0);
}

TestSuite(disk_cache, .init = make_folder, .fini = remove_folder);

/* Byte `at` of file `number`. */
static uint8_t byte_of(int number, uint64_t at)
{
    return (uint8_t)((at * 2654435761u >> 13) + at / 4096 * 7 + (uint64_t)number * 31);
}

static void fill(uint8_t *bytes, int number, uint64_t offset, size_t n)
{
    for (size_t i = 0; i < n; i++)
        bytes[i] = byte_of(number, offset + i);
}

static struct weir_disk_cache *open_text(const char *what)
{
    struct weir_disk_cache *cache;
    struct weir_err err = WEIR_ERR_NONE;
    cr_assert_eq(weir_disk_cache_open(&cache, what, &err), 0, "%s", err.text);
    return cache;
}

static void refuse(const char *what, int rc, const char *words)
{
    struct weir_disk_cache *cache;
    struct weir_err err = WEIR_ERR_NONE;
    cr_assert_eq(weir_disk_cache_open(&cache, what, &err), rc, "%s: %d %s", what, err.code, err.text);
    cr_assert(!cache && strstr(err.text, words), "%s", err.text);
}

static struct weir_disk_key key_of(const struct weir_disk_cache *cache, int number, uint64_t size)
{
    char identity[32];
    snprintf(identity, sizeof identity, "http://x/%d", number);
    return weir_disk_cache_key(cache, identity, size);
}

static void store(struct weir_disk_cache *cache, int number, uint64_t size, uint64_t offset, size_t n)
{
    const struct weir_disk_key key = key_of(cache, number, size);
    uint8_t *bytes = malloc(n);
    fill(bytes, number, offset, n);
    weir_disk_cache_store(cache, &key, offset, bytes, n);
    free(bytes);
}

/* Returns how many bytes the cache has from offset on, which must be right. */
static size_t load(struct weir_disk_cache *cache, int number, uint64_t size, uint64_t offset, size_t n)
{
    const struct weir_disk_key key = key_of(cache, number, size);
    uint8_t *bytes = malloc(n + 1);
    bytes[n] = 170;
    size_t got = weir_disk_cache_read(cache, &key, offset, bytes, n);
    cr_assert(got <= n && bytes[n] == 170);
    for (size_t i = 0; i < got; i++)
        cr_assert_eq(bytes[i], byte_of(number, offset + i), "file %d, byte %zu", number, (size_t)offset + i);
    free(bytes);
    return got;
}

static struct weir_disk_counts counts_of(const struct weir_disk_cache *cache)
{
    struct weir_disk_counts counts;
    weir_disk_cache_counts(cache, &counts);
    return counts;
}

Test(disk_cache, reads_what_was_stored)
{
    struct weir_disk_cache *cache = open_text(text);
    const struct weir_disk_key key = key_of(cache, 1, MEDIUM);
    static const uint64_t places[][2] = {{0, 1},          {4095, 2},          {5000, 100},
                                         {4096, 4096},    {65535, 2},         {1, MEDIUM - 2},
                                         {MEDIUM - 1, 1}, {SEGMENT, SEGMENT}, {MEDIUM - 5000, 5000}};
    cr_assert_eq(load(cache, 1, MEDIUM, 0, 1), 0u);
    cr_assert(!weir_disk_cache_find(cache, &key, 0, 1));
    store(cache, 1, MEDIUM, 0, MEDIUM);
    for (size_t i = 0; i < sizeof places / sizeof *places; i++) {
        cr_assert_eq(load(cache, 1, MEDIUM, places[i][0], places[i][1]), places[i][1]);
        cr_assert(weir_disk_cache_find(cache, &key, places[i][0], places[i][1]));
    }
    cr_assert_eq(load(cache, 2, MEDIUM, 0, 100), 0u, "another file");
    cr_assert_eq(load(cache, 1, MEDIUM, MEDIUM - 10, 20), 0u, "past the end of the file");
    cr_assert_eq(load(cache, 1, MEDIUM, UINT64_MAX - 10, 20), 0u);
    weir_disk_cache_close(&cache);
    cache = open_text(text);
    cr_assert_eq(load(cache, 1, MEDIUM, 0, MEDIUM), (size_t)MEDIUM, "after opening it again");
    weir_disk_cache_close(&cache);
}

Test(disk_cache, stores_only_whole_blocks)
{
    struct weir_disk_cache *cache = open_text(text);
    store(cache, 1, LONG, 5000, 10000); /* whole: 8192 to 12288 */
    cr_assert_eq(load(cache, 1, LONG, 8192, 4096), 4096u);
    cr_assert_eq(load(cache, 1, LONG, 8192, 5000), 0u, "a part of a segment is missing");
    cr_assert_eq(load(cache, 1, LONG, 5000, 100), 0u);
    store(cache, 1, LONG, 0, SEGMENT);
    cr_assert_eq(load(cache, 1, LONG, 100, 2 * SEGMENT), (size_t)SEGMENT - 100, "up to the first missing block");
    weir_disk_cache_close(&cache);
}

static void damage(const char *path, off_t offset)
{
    uint8_t byte;
    int fd = open(path, O_RDWR);
    cr_assert_eq(pread(fd, &byte, 1, offset), 1);
    byte ^= 4;
    cr_assert_eq(pwrite(fd, &byte, 1, offset), 1);
    close(fd);
}

Test(disk_cache, damage_is_never_returned)
{
    struct weir_disk_cache *cache = open_text(text);
    struct stat st;
    store(cache, 1, LONG, 0, SEGMENT);
    cr_assert_eq(stat(data_path, &st), 0);
    damage(data_path, st.st_size - 1);
    cr_assert_eq(load(cache, 1, LONG, 0, SEGMENT), 0u);
    cr_assert_eq(counts_of(cache).damaged_blocks, 1u);
    cr_assert_eq(load(cache, 1, LONG, 0, SEGMENT - 4096), (size_t)SEGMENT - 4096, "the other blocks are good");
    store(cache, 1, LONG, 0, SEGMENT);
    cr_assert_eq(load(cache, 1, LONG, 0, SEGMENT), (size_t)SEGMENT, "stored again");
    cr_assert_eq(truncate(data_path, 0), 0);
    cr_assert_eq(load(cache, 1, LONG, 0, SEGMENT), 0u);
    cr_assert_eq(truncate(table_path, 4096), 0);
    cr_assert_eq(load(cache, 1, LONG, 0, SEGMENT), 0u);
    store(cache, 1, LONG, 0, SEGMENT);
    weir_disk_cache_close(&cache);
}

Test(disk_cache, survives_the_removal_of_its_files)
{
    struct weir_disk_cache *cache = open_text(text), *other;
    store(cache, 1, LONG, 0, SEGMENT);
    unlink(data_path);
    cr_assert_eq(load(cache, 1, LONG, 0, SEGMENT), (size_t)SEGMENT, "they are open");
    other = open_text(text);
    cr_assert_eq(load(other, 1, LONG, 0, SEGMENT), 0u, "the table has checksums without data");
    store(other, 1, LONG, 0, SEGMENT);
    cr_assert_eq(load(other, 1, LONG, 0, SEGMENT), (size_t)SEGMENT);
    unlink(table_path);
    weir_disk_cache_close(&other);
    other = open_text(text);
    cr_assert_eq(load(other, 1, LONG, 0, SEGMENT), 0u);
    weir_disk_cache_close(&other);
    weir_disk_cache_close(&cache);
}

/* Returns how much of file `number` is in the cache. */
static size_t amount(struct weir_disk_cache *cache, int number, uint64_t size)
{
    size_t all = 0;
    for (uint64_t at = 0; at < size; at += SEGMENT)
        all += load(cache, number, size, at, SEGMENT);
    return all;
}

Test(disk_cache, is_bounded_and_keeps_what_is_in_use)
{
    struct weir_disk_cache *cache;
    struct stat st, table;
    snprintf(text, sizeof text, "%s/c:1M", folder);
    cache = open_text(text);
    store(cache, 1, 4 * LONG, 0, 4 * LONG);
    size_t first = amount(cache, 1, 4 * LONG);
    cr_assert(first > LONG / 2 && first < LONG, "%zu", first);
    cr_assert(counts_of(cache).full_bytes >= 3 * LONG);
    store(cache, 1, 4 * LONG, 0, 4 * LONG);
    cr_assert_eq(amount(cache, 1, 4 * LONG), first, "a second pass replaces nothing");
    cr_assert(stat(data_path, &st) == 0 && stat(table_path, &table) == 0 && st.st_size + table.st_size <= LONG);
    weir_disk_cache_close(&cache);
    cache = open_text(text);
    store(cache, 2, 4 * LONG, 0, LONG / 2);
    cr_assert_eq(amount(cache, 2, 4 * LONG), (size_t)LONG / 2, "a later run replaces what it does not use");
    cr_assert_eq(amount(cache, 1, 4 * LONG), first - LONG / 2);
    weir_disk_cache_close(&cache);
}

Test(disk_cache, other_sizes_and_folders)
{
    struct weir_disk_cache *cache = open_text(text), *again;
    char smaller[96], plain[96];
    snprintf(smaller, sizeof smaller, "%s/c:32M", folder);
    snprintf(plain, sizeof plain, "%s/c", folder);
    store(cache, 1, LONG, 0, LONG);
    refuse(smaller, -EBUSY, "other processes use it with a size of 64 MiB");
    again = open_text(plain);
    cr_assert_eq(amount(again, 1, LONG), (size_t)LONG, "without a size, that of the cache");
    weir_disk_cache_close(&again);
    weir_disk_cache_close(&cache);
    cache = open_text(smaller);
    cr_assert_eq(amount(cache, 1, LONG), 0u, "another size empties the cache");
    weir_disk_cache_close(&cache);
    snprintf(plain, sizeof plain, "%s/a:b/", folder);
    cache = open_text(plain);
    weir_disk_cache_close(&cache);
    cr_assert_eq(access(plain, F_OK), 0, "a colon in the name");
}

static void write_file(const char *path, const char *bytes, size_t n)
{
    int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC, 0600);
    cr_assert(fd >= 0 && write(fd, bytes, n) == (ssize_t)n);
    close(fd);
}

static void expect_file(const char *path, const char *bytes)
{
    char buffer[64] = {0};
    int fd = open(path, O_RDONLY);
    cr_assert(fd >= 0 && read(fd, buffer, sizeof buffer - 1) >= 0);
    close(fd);
    cr_assert_str_eq(buffer, bytes);
}

Test(disk_cache, other_files_are_not_touched)
{
    char mine[96], at[96];
    struct weir_disk_cache *cache;
    static const char zeros[100];
    snprintf(mine, sizeof mine, "%s/mine", folder);
    snprintf(at, sizeof at, "%s/c", folder);
    write_file(mine, "kept", 4);
    refuse(mine, -ENOTDIR, "Not a directory");
    cr_assert_eq(mkdir(at, 0700), 0);
    write_file(table_path, "kept", 4);
    refuse(text, -EINVAL, "is not the table of a cache");
    expect_file(table_path, "kept");
    unlink(table_path);
    unlink(data_path);
    cr_assert_eq(symlink(mine, data_path), 0);
    refuse(text, -ELOOP, "a symbolic link");
    unlink(data_path);
    cr_assert_eq(link(mine, data_path), 0);
    refuse(text, -EMLINK, "a hard link");
    unlink(data_path);
    cr_assert_eq(mkfifo(data_path, 0600), 0);
    refuse(text, -EINVAL, "special file");
    unlink(data_path);
    expect_file(mine, "kept");
    write_file(table_path, zeros, sizeof zeros); /* as after a power failure */
    cache = open_text(text);
    weir_disk_cache_close(&cache);
    damage(table_path, 3);
    refuse(text, -EINVAL, "is not the table of a cache");
}

static int notices;
static char notice[200];

static void note(const char *said)
{
    notices++;
    snprintf(notice, sizeof notice, "%s", said);
}

/* Stores a file, and returns whether the cache has it. */
static bool keeps(struct weir_disk_cache *cache, int number)
{
    store(cache, number, LONG, 0, LONG);
    return load(cache, number, LONG, 0, LONG) == LONG;
}

Test(disk_cache, a_damaged_head_or_a_cut_table_begins_anew)
{
    struct stat st;
    struct weir_disk_cache *cache = open_text(text);
    weir_notice_set(note);
    for (int i = 0; i < 3; i++) {
        cr_assert(keeps(cache, 1));
        weir_disk_cache_close(&cache);
        cr_assert_eq(stat(table_path, &st), 0);
        if (i < 2)
            damage(table_path, i == 0 ? 20 : 60); /* the number of slots; the checksum */
        else
            cr_assert_eq(truncate(table_path, st.st_size / 2), 0);
        cache = open_text(text);
        cr_assert_eq(notices, i + 1);
        cr_assert(strstr(notice, "damaged") && strstr(notice, "anew"), "%s", notice);
        cr_assert_eq(load(cache, 1, LONG, 0, LONG), 0u);
    }
    cr_assert(keeps(cache, 1));
    weir_disk_cache_close(&cache);
    cache = open_text(text);
    cr_assert_eq(load(cache, 1, LONG, 0, LONG), (size_t)LONG);
    cr_assert_eq(notices, 3);
    weir_disk_cache_close(&cache);
}

/* Entries that no process can have written would otherwise never give up their slots. */
Test(disk_cache, damaged_entries_are_replaced)
{
    static uint8_t ones[1 << 16];
    struct stat st;
    struct weir_disk_cache *cache = open_text(text);
    weir_notice_set(note);
    weir_disk_cache_close(&cache);
    memset(ones, 0xff, sizeof ones);
    int fd = open(table_path, O_RDWR);
    cr_assert(fd >= 0 && fstat(fd, &st) == 0);
    for (off_t at = 4096; at < st.st_size; at += (off_t)sizeof ones)
        cr_assert_gt(
            pwrite(fd, ones, st.st_size - at < (off_t)sizeof ones ? (size_t)(st.st_size - at) : sizeof ones, at), 0);
    close(fd);
    cache = open_text(text);
    for (int i = 0; i < 4; i++)
        cr_assert(keeps(cache, i), "%d", i);
    cr_assert_eq(counts_of(cache).full_bytes, 0u);
    cr_assert_eq(notices, 1);
    weir_disk_cache_close(&cache);
}

Test(disk_cache, sizes_are_checked)
{
    static const char *const wrong[] = {"",        ":5M",    "c:1",  "c:0",   "c:1K", "c:999999999999T",
                                        "c:2000T", "c:1.5G", "c:5X", "c:abc", "c:",   "c:-5G"};
    cr_assert_eq(chdir(folder), 0);
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++)
        refuse(wrong[i], -EINVAL, "--cache");
    refuse("c:abc", -EINVAL, "the size must be a number of bytes, such as 200G; a folder whose name has a colon needs");
    cr_assert_neq(access("c", F_OK), 0);
    cr_assert_neq(access("c:abc", F_OK), 0);
    struct weir_disk_cache *cache = open_text("c:abc/");
    weir_disk_cache_close(&cache);
    cr_assert_eq(access("c:abc/weir-cache.table", F_OK), 0);
}

Test(disk_cache, a_stopped_process_stops_no_other_one)
{
    struct weir_disk_cache *cache = open_text(text);
    struct flock lock = {.l_type = F_WRLCK, .l_whence = SEEK_SET, .l_start = 0, .l_len = 1};
    int fd = open(table_path, O_RDWR); /* as if another process was stopped while it had the lock */
    store(cache, 1, LONG, 0, SEGMENT);
    cr_assert_eq(fcntl(fd, F_OFD_SETLK, &lock), 0);
    store(cache, 1, LONG, SEGMENT, LONG - SEGMENT);
    cr_assert_eq(counts_of(cache).error, -EBUSY);
    cr_assert_eq(amount(cache, 1, LONG), (size_t)SEGMENT);
    close(fd);
    weir_disk_cache_close(&cache);
}

Test(disk_cache, a_limit_of_file_sizes_is_no_signal)
{
    const struct rlimit limit = {1 << 20, 1 << 20};
    cr_assert_eq(setrlimit(RLIMIT_FSIZE, &limit), 0);
    refuse(text, -EFBIG, "ulimit -f");
}

/* Stores and reads pieces of several files in a random order until it is killed. */
static void work(int number)
{
    struct weir_disk_cache *cache = open_text(text);
    unsigned seed = (unsigned)number;
    for (;;) {
        uint64_t at = (uint64_t)(rand_r(&seed) % 256) * 16384;
        int file = rand_r(&seed) % 3;
        if (load(cache, file, 4 * LONG, at, 30000) < 30000)
            store(cache, file, 4 * LONG, at, 32768);
    }
}

Test(disk_cache, processes_share_it_and_may_be_killed)
{
    enum { PROCESSES = 3, ROUNDS = 8 };
    snprintf(text, sizeof text, "%s/c:2M", folder);
    for (int round = 0; round < ROUNDS; round++) {
        pid_t pids[PROCESSES];
        for (int i = 0; i < PROCESSES; i++)
            if ((pids[i] = fork()) == 0)
                work(round * PROCESSES + i);
        usleep(30000);
        for (int i = 0; i < PROCESSES; i++) {
            int status;
            kill(pids[i], SIGKILL);
            cr_assert_eq(waitpid(pids[i], &status, 0), pids[i]);
            cr_assert(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL, "a process read wrong bytes");
        }
    }
    struct weir_disk_cache *cache = open_text(text);
    store(cache, 3, 4 * LONG, 0, SEGMENT);
    cr_assert_eq(load(cache, 3, 4 * LONG, 0, SEGMENT), (size_t)SEGMENT);
    for (int file = 0; file < 3; file++)
        amount(cache, file, 4 * LONG);
    weir_disk_cache_close(&cache);
}
