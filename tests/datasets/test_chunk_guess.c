#include "datasets/hdf5/h5_write.h"

#include <criterion/criterion.h>
#include <inttypes.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

static void expect(const uint64_t *dims, int rank, size_t element_bytes, const uint64_t *wanted)
{
    uint64_t chunk[4] = {0};
    weir_chunk_guess(dims, rank, element_bytes, chunk);
    for (int i = 0; i < rank; i++)
        cr_assert_eq(chunk[i], wanted[i],
                     "dimension %d of %" PRIu64 " (rank %d, %zu bytes an element): %" PRIu64 ", not %" PRIu64, i,
                     dims[i], rank, element_bytes, chunk[i], wanted[i]);
}

/* The chunk shapes that h5py 3.7 chose. */
Test(chunk_guess, known_datasets)
{
    expect((uint64_t[]){150, 84, 84, 3}, 4, 1, (uint64_t[]){38, 21, 21, 2});
    expect((uint64_t[]){300, 128, 128, 3}, 4, 1, (uint64_t[]){38, 32, 32, 1});
    expect((uint64_t[]){400, 480, 640, 3}, 4, 1, (uint64_t[]){25, 60, 80, 1});
    expect((uint64_t[]){100000, 14}, 2, 4, (uint64_t[]){6250, 1});
    expect((uint64_t[]){104, 28}, 2, 4, (uint64_t[]){104, 28});
    expect((uint64_t[]){1}, 1, 8, (uint64_t[]){1});
}

/* Runs tests/datasets/h5py_chunks.py. Returns false, after printing a note, if h5py is not installed. */
static bool h5py_chooses(char *path)
{
    const char *source = getenv("WEIR_SOURCE");
    char script[4096];
    snprintf(script, sizeof script, "%s/tests/datasets/h5py_chunks.py", source ? source : ".");
    char *arguments[] = {"/usr/bin/python3", script, path, NULL};
    pid_t child;
    int status = -1;
    extern char **environ;
    if (posix_spawn(&child, "/usr/bin/python3", NULL, NULL, arguments, environ) == 0)
        cr_assert_eq(waitpid(child, &status, 0), child);
    if (status != -1 && WIFEXITED(status) && WEXITSTATUS(status) == 0)
        return true;
    cr_assert(status == -1 || (WIFEXITED(status) && WEXITSTATUS(status) == 77), "%s failed", script);
    cr_assert_null(getenv("CI"), "h5py is missing");
    fprintf(stderr, "skipped: comparison with h5py's chunks (h5py is not installed)\n");
    return false;
}

static int expect_line(FILE *file)
{
    size_t element_bytes;
    int rank;
    uint64_t dims[4], wanted[4];
    int n = fscanf(file, "%zu %d", &element_bytes, &rank);
    if (n == EOF)
        return 0;
    cr_assert(n == 2 && rank >= 1 && rank <= 4);
    for (int i = 0; i < 2 * rank; i++)
        cr_assert_eq(fscanf(file, "%" SCNu64, i < rank ? &dims[i] : &wanted[i - rank]), 1);
    expect(dims, rank, element_bytes, wanted);
    return 1;
}

Test(chunk_guess, as_h5py)
{
    char path[] = "/tmp/weir-chunks-XXXXXX";
    int fd = mkstemp(path), lines = 0;
    cr_assert_geq(fd, 0);
    FILE *file = fdopen(fd, "r");
    bool chosen = h5py_chooses(path);
    unlink(path);
    while (chosen && expect_line(file))
        lines++;
    fclose(file);
    cr_expect(!chosen || lines > 10000, "%d lines", lines);
}
