/* File sets and engines. */
#include "io/ahead.h"
#include "io/file_set_priv.h"
#include "io/io.h"
#include "tests/fixtures/loader_fixture.h"

#include <criterion/criterion.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

TestSuite(io, .init = fixture_open, .fini = fixture_close);

enum { FILES = 40, FILE_BYTES = 10000 };

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

static void write_file(int file, size_t n)
{
    FILE *out = fopen(file_path(file), "w");
    for (size_t i = 0; i < n; i++)
        fputc(byte_at(file, i), out);
    fclose(out);
}

static struct weir_file_id identify(const char *path)
{
    struct stat st;
    cr_assert_eq(stat(path, &st), 0);
    return (struct weir_file_id){(uint64_t)st.st_size, st.st_dev, st.st_ino,
                                 (int64_t)st.st_mtim.tv_sec * 1000000000 + st.st_mtim.tv_nsec, false};
}

static struct weir_file_set *make_set(int files, int max_open)
{
    struct weir_file_set *set;
    cr_assert_eq(weir_file_set_open(&set, max_open), 0);
    for (int i = 0; i < files; i++) {
        write_file(i, FILE_BYTES);
        struct weir_file_id id = identify(file_path(i));
        cr_assert_eq(weir_file_set_add(set, file_path(i), &id), i);
        cr_assert_str_eq(weir_file_set_path(set, i), file_path(i));
    }
    return set;
}

static struct weir_reader *make_reader(struct weir_file_set *set, const char *engine)
{
    struct weir_reader *reader;
    struct weir_err err = WEIR_ERR_NONE;
    cr_assert_eq(weir_reader_open(&reader, engine, set, &err), 0, "%s", err.text);
    return reader;
}

/* Returns the number of this process's descriptors that are open on the test's files. */
static int open_files(void)
{
    int n = 0;
    char path[512], to[512];
    DIR *dir = opendir("/proc/self/fd");
    for (struct dirent *entry; (entry = readdir(dir));) {
        snprintf(path, sizeof path, "/proc/self/fd/%s", entry->d_name);
        ssize_t length = readlink(path, to, sizeof to - 1);
        to[length > 0 ? length : 0] = '\0';
        n += strstr(to, "/weir-loader-") != NULL;
    }
    closedir(dir);
    return n;
}

static bool reads_right(struct weir_reader *reader, int file, uint64_t offset, size_t length)
{
    uint8_t *buffer = malloc(length + 1);
    const uint8_t *data = NULL;
    bool right = weir_read(reader, file, offset, length, buffer, &data) == 0;
    for (size_t i = 0; i < length && right; i++)
        right = data[i] == byte_at(file, offset + i);
    free(buffer);
    return right;
}

/* ---- engines ---- */

/* Returns the name of available engine number e that reads local files, or NULL past the last one. */
static const char *engine_at(int e)
{
    const char *name, *summary, *why_not;
    for (int i = 0; weir_io_row(i, &name, &summary, &why_not); i++)
        if (!why_not && !weir_io_is_remote(name) && e-- == 0)
            return name;
    return NULL;
}

Test(io, all_engines_give_the_same_bytes)
{
    const char *engine;
    for (int e = 0; (engine = engine_at(e)); e++) {
        struct weir_file_set *set = make_set(4, 0);
        struct weir_reader *reader = make_reader(set, engine);
        uint64_t bytes = 0, reads = 0;
        unsigned random = 1;
        for (int i = 0; i < 2000; i++) {
            random = random * 1103515245 + 12345;
            uint64_t offset = (random >> 8) % (FILE_BYTES + 1);
            size_t length = (random >> 4) % (FILE_BYTES - offset + 1);
            cr_assert(reads_right(reader, i % 4, offset, length));
            bytes += length;
            reads++;
        }
        struct weir_read_counts counts;
        weir_reader_counts(reader, &counts);
        cr_assert_eq(counts.reads, reads);
        cr_assert_eq(counts.bytes, bytes);
        weir_reader_close(&reader);
        cr_assert_null(reader);
        weir_file_set_close(&set);
        cr_assert_null(set);
        cr_assert_eq(open_files(), 0);
    }
}

Test(io, reads_past_the_end_are_refused)
{
    const char *engine;
    static const struct {
        uint64_t offset;
        size_t length;
    } extents[] = {{0, FILE_BYTES + 1}, {FILE_BYTES, 1}, {FILE_BYTES - 1, 2}, {FILE_BYTES + 5, 1}, {1ull << 40, 10}};
    for (int e = 0; (engine = engine_at(e)); e++) {
        struct weir_file_set *set = make_set(1, 0);
        struct weir_reader *reader = make_reader(set, engine);
        uint8_t *buffer = malloc(FILE_BYTES + 1);
        const uint8_t *data;
        for (size_t i = 0; i < sizeof extents / sizeof extents[0]; i++)
            cr_assert_eq(weir_read(reader, 0, extents[i].offset, extents[i].length, buffer, &data), -ENODATA, "%s, %zu",
                         engine, i);
        struct weir_read_counts counts;
        weir_reader_counts(reader, &counts);
        cr_assert_eq(counts.reads, 0);
        free(buffer);
        weir_reader_close(&reader);
        weir_file_set_close(&set);
    }
    cr_assert_not_null(strstr(weir_read_reason(-ENODATA), "shorter"));
    cr_assert_not_null(strstr(weir_read_reason(-ESTALE), "changed"));
    cr_assert_str_eq(weir_read_reason(-EACCES), strerror(EACCES));
}

Test(io, the_engine_of_servers_reads_no_local_file)
{
    struct weir_file_set *set = make_set(1, 0);
    struct weir_reader *reader;
    struct weir_err err = WEIR_ERR_NONE;
    int rc = weir_reader_open(&reader, "http", set, &err);
    cr_assert(rc == -EINVAL || rc == -ENOTSUP);
    cr_assert(rc == -ENOTSUP || strstr(err.text, "use --io pread"), "%s", err.text);
    weir_file_set_close(&set);
}

Test(io, a_set_has_one_engine)
{
    struct weir_file_set *set = make_set(1, 0);
    struct weir_reader *first = make_reader(set, "pread"), *second;
    struct weir_err err = WEIR_ERR_NONE;
    cr_assert_eq(weir_reader_open(&second, "null", set, &err), -EBUSY);
    cr_assert_null(second);
    cr_assert_not_null(strstr(err.text, "pread"), "%s", err.text);
    second = make_reader(set, "pread");
    weir_reader_close(&first);
    weir_reader_close(&second);
    weir_file_set_close(&set);
}

Test(io, engines_are_known_by_name)
{
    struct weir_err err = WEIR_ERR_NONE;
    const char *name, *summary, *why_not;
    for (int i = 0; weir_io_row(i, &name, &summary, &why_not); i++) {
        cr_assert_neq(strlen(summary), 0);
        cr_assert_eq(weir_io_check(name, &err), why_not ? -ENOTSUP : 0);
        if (why_not || strcmp(name, "uring") != 0)
            cr_assert_eq(weir_io_ready(name, NULL), why_not ? -ENOTSUP : 0);
        cr_assert_eq(weir_io_from_memory(name), strcmp(name, "null") == 0);
    }
    cr_assert_str_eq(weir_io_default(), "pread");
    cr_assert_eq(weir_ahead_kind("pread"), WEIR_AHEAD_HINTS);
    cr_assert_eq(weir_ahead_kind("mmap"), WEIR_AHEAD_NOT);
    cr_assert_eq(weir_ahead_kind("nobody"), WEIR_AHEAD_NOT);
    if (weir_io_check("uring", NULL) == 0)
        cr_assert_eq(weir_ahead_kind("uring"), WEIR_AHEAD_BUFFERS);
    err = WEIR_ERR_NONE;
    cr_assert_eq(weir_io_ready("mmapp", NULL), -EINVAL);
    cr_assert_eq(weir_io_check("mmapp", &err), -EINVAL);
    cr_assert_not_null(strstr(err.text, "mmapp"));
    cr_assert_not_null(strstr(err.text, "pread, mmap, uring, http, null"), "%s", err.text);
}

Test(io, null_refuses_what_does_not_fit_in_memory)
{
    struct weir_file_set *set;
    struct weir_reader *reader;
    struct weir_err err = WEIR_ERR_NONE;
    struct weir_file_id id = {1ull << 50, 1, 1, 0, false};
    cr_assert_eq(weir_file_set_open(&set, 0), 0);
    cr_assert_eq(weir_file_set_add(set, "/nowhere/at/all", &id), 0);
    cr_assert_eq(weir_reader_open(&reader, "null", set, &err), -ENOMEM);
    cr_assert_null(reader);
    cr_assert_not_null(strstr(err.text, "--io pread"), "%s", err.text);
    weir_file_set_close(&set);
}

/* ---- files that are replaced ---- */

static int read_one(struct weir_reader *reader, int file)
{
    uint8_t buffer[16];
    const uint8_t *data;
    return weir_read(reader, file, 100, sizeof buffer, buffer, &data);
}

Test(io, a_changed_file_is_stale_when_it_is_opened)
{
    struct weir_file_set *set = make_set(6, 0);
    struct weir_reader *reader = make_reader(set, "pread");
    struct timespec times[2] = {{0, UTIME_OMIT}, {1, 5}};
    cr_assert_eq(truncate(file_path(0), FILE_BYTES - 1), 0);      /* changes the size */
    cr_assert_eq(utimensat(AT_FDCWD, file_path(1), times, 0), 0); /* changes the time */
    cr_assert_eq(rename(file_path(5), file_path(2)), 0);          /* another file of the same size */
    cr_assert_eq(unlink(file_path(3)), 0);
    cr_assert_eq(read_one(reader, 0), -ESTALE);
    cr_assert_eq(read_one(reader, 1), -ESTALE);
    cr_assert_eq(read_one(reader, 2), -ESTALE);
    cr_assert_eq(read_one(reader, 3), -ENOENT);
    cr_assert_eq(read_one(reader, 4), 0);
    cr_assert_eq(open_files(), 1);
    weir_reader_close(&reader);
    weir_file_set_close(&set);
}

Test(io, a_file_cut_while_it_is_open_is_short)
{
    struct weir_file_set *set = make_set(2, 1);
    struct weir_reader *reader = make_reader(set, "pread");
    cr_assert_eq(read_one(reader, 0), 0);
    cr_assert_eq(truncate(file_path(0), 107), 0);
    cr_assert_eq(read_one(reader, 0), -ENODATA);
    cr_assert_eq(read_one(reader, 1), 0); /* takes the only handle */
    cr_assert_eq(read_one(reader, 0), -ESTALE);
    weir_reader_close(&reader);
    weir_file_set_close(&set);
}

Test(io, null_loads_a_file_once_and_reports_one_that_is_short)
{
    struct weir_file_set *set = make_set(2, 0);
    struct weir_reader *reader = make_reader(set, "null");
    cr_assert_eq(read_one(reader, 0), 0);
    int fd = open(file_path(0), O_WRONLY);
    cr_assert_eq(pwrite(fd, "gone", 4, 100), 4);
    close(fd);
    cr_assert(reads_right(reader, 0, 0, FILE_BYTES));
    cr_assert_eq(truncate(file_path(1), 50), 0);
    cr_assert_eq(read_one(reader, 1), -ESTALE);
    weir_reader_close(&reader);
    weir_file_set_close(&set);
}

/* ---- files written while they are open ---- */

Test(io, bytes_written_since_the_file_was_indexed_are_an_error)
{
    static const char *const engines[] = {"pread", "mmap", "uring"};
    for (int e = 0; e < 3; e++) {
        struct weir_err err;
        struct weir_file_set *set = make_set(2, 0);
        if (weir_io_check(engines[e], &err) < 0) {
            weir_file_set_close(&set);
            continue;
        }
        struct weir_reader *reader = make_reader(set, engines[e]);
        cr_assert(reads_right(reader, 0, 0, FILE_BYTES));
        int fd = open(file_path(0), O_WRONLY);
        nanosleep(&(struct timespec){0, 20 * 1000 * 1000}, NULL); /* file times have the resolution of a timer tick */
        cr_assert_eq(pwrite(fd, "x", 1, 5), 1);
        close(fd);
        cr_assert_eq(read_one(reader, 0), -ESTALE, "%s", engines[e]);
        cr_assert(reads_right(reader, 1, 0, FILE_BYTES));
        weir_reader_close(&reader);
        weir_file_set_close(&set);
    }
}

/* ---- mmap ---- */

Test(io, a_file_that_shrinks_under_its_mapping_is_an_error)
{
    struct weir_file_set *set = make_set(1, 0);
    struct weir_reader *reader = make_reader(set, "mmap");
    cr_assert(reads_right(reader, 0, 0, FILE_BYTES));
    cr_assert_eq(truncate(file_path(0), 100), 0);
    uint8_t buffer[FILE_BYTES];
    const uint8_t *data;
    cr_assert_eq(weir_read(reader, 0, 5000, 5000, buffer, &data), -ENODATA); /* an error, not SIGBUS */
    cr_assert_eq(weir_read(reader, 0, 0, 100, buffer, &data), -ESTALE);
    weir_reader_close(&reader);
    weir_file_set_close(&set);
}

/* ---- direct reads ---- */

Test(io, direct_reads_give_the_same_bytes)
{
    static const char *const engines[] = {"pread", "uring"};
    for (int e = 0; e < 2; e++) {
        struct weir_err err = WEIR_ERR_NONE;
        struct weir_file_set *set = make_set(4, 2), *copy;
        int rc = weir_file_set_direct(set, &err);
        if (rc == -ENOTSUP || weir_io_check(engines[e], &err) < 0) {
            fprintf(stderr, "skipped: %s\n", err.text);
            weir_file_set_close(&set);
            continue;
        }
        cr_assert_eq(rc, 0, "%s", err.text);
        cr_assert_geq(weir_file_set_align(set), 512);
        cr_assert_eq(weir_file_set_copy(&copy, set, 2), 0);
        cr_assert_eq(weir_file_set_align(copy), weir_file_set_align(set));
        weir_file_set_close(&set);
        struct weir_reader *reader = make_reader(copy, engines[e]);
        unsigned random = 1;
        for (int i = 0; i < 500; i++) {
            random = random * 1103515245 + 12345;
            uint64_t offset = (random >> 8) % (FILE_BYTES + 1);
            size_t length = i % 5 ? (random >> 4) % (FILE_BYTES - offset + 1) : FILE_BYTES - offset;
            cr_assert(reads_right(reader, i % 4, offset, length), "%s: %zu bytes at %llu", engines[e], length,
                      (unsigned long long)offset);
        }
        uint8_t buffer[FILE_BYTES + 1];
        const uint8_t *data;
        cr_assert_eq(weir_read(reader, 0, 0, FILE_BYTES + 1, buffer, &data), -ENODATA);
        cr_assert_eq(weir_read(reader, 0, FILE_BYTES + 5000, 1, buffer, &data), -ENODATA);
        weir_reader_close(&reader);
        weir_file_set_close(&copy);
    }
}

Test(io, who_has_no_direct_reads_is_named)
{
    struct weir_err err = WEIR_ERR_NONE;
    struct weir_file_set *set;
    struct weir_file_id id = {0};
    cr_assert_eq(weir_file_set_open(&set, 0), 0);
    cr_assert_eq(weir_file_set_add(set, "/proc/version", &id), 0);
    cr_assert_eq(weir_file_set_direct(set, &err), -ENOTSUP);
    cr_assert_not_null(strstr(err.text, "/proc/version: "), "%s", err.text);
    cr_assert_not_null(strstr(err.text, "--direct"), "%s", err.text);
    weir_file_set_close(&set);

    set = make_set(1, 0);
    if (weir_file_set_direct(set, NULL) == 0) {
        struct weir_reader *reader;
        err = WEIR_ERR_NONE;
        cr_assert_eq(weir_reader_open(&reader, "mmap", set, &err), -EINVAL);
        cr_assert_not_null(strstr(err.text, "mmap does not support direct reads"), "%s", err.text);
    }
    weir_file_set_close(&set);
}

/* ---- few handles, many files ---- */

Test(io, handles_are_bounded_and_the_least_used_goes)
{
    struct weir_file_set *set = make_set(FILES, 3);
    struct weir_reader *reader = make_reader(set, "pread");
    for (int i = 0; i < 3 * FILES; i++) {
        cr_assert(reads_right(reader, i % FILES, 0, 100));
        cr_assert(reads_right(reader, 0, 0, 100)); /* used all the time, so its handle is kept */
        cr_assert_leq(open_files(), 3);
    }
    cr_assert_eq(unlink(file_path(0)), 0);
    for (int i = 0; i < FILES; i++) {
        cr_assert(reads_right(reader, 0, 0, 100), "the handle was closed");
        cr_assert(i == 0 || reads_right(reader, i, 0, 100));
    }
    weir_reader_close(&reader);
    weir_file_set_close(&set);
}

Test(io, more_pins_than_handles_pass)
{
    struct weir_file_set *set = make_set(FILES, 2);
    int fds[8];
    for (int i = 0; i < 8; i++)
        cr_assert_eq(weir_file_acquire(set, i, &fds[i]), 0);
    cr_assert_eq(open_files(), 8);
    for (int i = 0; i < 8; i++) {
        uint8_t byte;
        cr_assert_eq(pread(fds[i], &byte, 1, 77), 1);
        cr_assert_eq(byte, byte_at(i, 77));
        weir_file_release(set, i);
    }
    for (int i = 8; i < 12; i++) {
        cr_assert_eq(weir_file_acquire(set, i, &fds[0]), 0);
        weir_file_release(set, i);
    }
    cr_assert_leq(open_files(), 2, "%d files are still open", open_files());
    weir_file_set_close(&set);
}

struct hammer {
    struct weir_reader *reader;
    unsigned random;
    int wrong;
};

static void *hammer(void *user)
{
    struct hammer *h = user;
    for (int i = 0; i < 4000; i++) {
        h->random = h->random * 1103515245 + 12345;
        uint64_t offset = (h->random >> 8) % FILE_BYTES;
        size_t length = (h->random >> 4) % 64;
        length = length < FILE_BYTES - offset ? length : FILE_BYTES - offset;
        h->wrong += !reads_right(h->reader, (int)((h->random >> 16) % FILES), offset, length);
    }
    return NULL;
}

Test(io, many_threads_few_handles)
{
    const char *engine;
    for (int e = 0; (engine = engine_at(e)); e++) {
        struct weir_file_set *set = make_set(FILES, 2);
        struct hammer hammers[8];
        pthread_t threads[8];
        for (int i = 0; i < 8; i++) {
            hammers[i] = (struct hammer){make_reader(set, engine), (unsigned)i * 7919 + 1, 0};
            cr_assert_eq(pthread_create(&threads[i], NULL, hammer, &hammers[i]), 0);
        }
        for (int i = 0; i < 8; i++) {
            pthread_join(threads[i], NULL);
            cr_assert_eq(hammers[i].wrong, 0);
            weir_reader_close(&hammers[i].reader);
        }
        int fd;
        cr_assert_eq(weir_file_acquire(set, 0, &fd), 0);
        weir_file_release(set, 0);
        cr_assert_leq(open_files(), 8);
        weir_file_set_close(&set);
        cr_assert_eq(open_files(), 0);
    }
}
