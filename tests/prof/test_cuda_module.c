/* Opening the CUDA module: its search path, and one error line for each reason why it cannot be opened. Criterion runs
 * each test in its own process, so each test opens the module for the first time. */
#include "prof/gpu/cuda_module.h"
#include "tests/fixtures/loader_fixture.h"

#include <criterion/criterion.h>
#include <elf.h>
#include <errno.h>
#include <pthread.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

TestSuite(cuda_module, .init = fixture_open, .fini = fixture_close);

static void write_file(const char *path, const char *text)
{
    FILE *file = fopen(path, "w");
    cr_assert_not_null(file);
    fputs(text, file);
    fclose(file);
}

/* Expects a refusal, with the same message at the second attempt. */
static void refuses(const char *part, const char *other_part)
{
    for (int i = 0; i < 2; i++) {
        struct weir_err err = WEIR_ERR_NONE;
        const struct weir_cuda_module *module = (const void *)&err;
        cr_assert_eq(weir_cuda_module_open(&module, &err), -ENODEV);
        cr_assert_null(module);
        cr_assert_eq(err.code, -ENODEV);
        cr_assert_not_null(strstr(err.text, part), "no '%s' in: %s", part, err.text);
        cr_assert_not_null(strstr(err.text, other_part), "no '%s' in: %s", other_part, err.text);
        cr_assert_null(strchr(err.text, '\n'));
    }
    cr_assert_str_eq(weir_cuda_module_path(), "");
    const struct weir_cuda_module *module;
    cr_assert_eq(weir_cuda_module_open(&module, NULL), -ENODEV);
}

Test(cuda_module, a_file_that_is_not_there)
{
    setenv("WEIR_CUDA_MODULE", fixture_path("nothing.so"), 1);
    refuses("WEIR_CUDA_MODULE", "nothing.so: cannot open shared object file");
}

Test(cuda_module, a_file_that_is_no_library)
{
    const char *path = fixture_path("text.so");
    write_file(path, "This is a text, longer than the head of any library: it has no sections.\n");
    setenv("WEIR_CUDA_MODULE", path, 1);
    refuses("WEIR_CUDA_MODULE", "text.so: ");
}

Test(cuda_module, a_library_that_is_no_module)
{
    setenv("WEIR_CUDA_MODULE", OTHER_PLAIN, 1);
    refuses(OTHER_PLAIN, "is not a Weir module");
}

Test(cuda_module, a_module_with_another_table)
{
    setenv("WEIR_CUDA_MODULE", OTHER_ABI_MODULE, 1);
    refuses(OTHER_ABI_MODULE, "of another version");
}

Test(cuda_module, a_module_with_a_shorter_table)
{
    setenv("WEIR_CUDA_MODULE", OTHER_BYTES_MODULE, 1);
    refuses(OTHER_BYTES_MODULE, "of another version");
}

Test(cuda_module, nowhere)
{
    unsetenv("WEIR_CUDA_MODULE");
    refuses("WEIR_WITH_CUDA=ON", "libweir_cuda.so");
}

static void *open_one(void *user)
{
    const struct weir_cuda_module **module = user;
    weir_cuda_module_open(module, NULL);
    return NULL;
}

/* Tested through the environment, because CUDA reads the variable and the fake module does not. */
Test(cuda_module, streams_do_not_share_queues)
{
    const struct weir_cuda_module *module;
    unsetenv("CUDA_DEVICE_MAX_CONNECTIONS");
    cr_assert_eq(setenv("WEIR_CUDA_MODULE", FAKE_CUDA_MODULE, 1), 0);
    cr_assert_eq(weir_cuda_module_open(&module, NULL), 0);
    cr_assert_str_eq(getenv("CUDA_DEVICE_MAX_CONNECTIONS"), "32");
}

Test(cuda_module, what_the_user_says_of_queues_stays)
{
    const struct weir_cuda_module *module;
    setenv("CUDA_DEVICE_MAX_CONNECTIONS", "4", 1);
    cr_assert_eq(setenv("WEIR_CUDA_MODULE", FAKE_CUDA_MODULE, 1), 0);
    cr_assert_eq(weir_cuda_module_open(&module, NULL), 0);
    cr_assert_str_eq(getenv("CUDA_DEVICE_MAX_CONNECTIONS"), "4");
}

Test(cuda_module, opens_once_for_all_threads)
{
    enum { THREADS = 8 };
    pthread_t threads[THREADS];
    const struct weir_cuda_module *modules[THREADS] = {NULL};
    setenv("WEIR_CUDA_MODULE", FAKE_CUDA_MODULE, 1);
    cr_assert_str_eq(weir_cuda_module_path(), "");
    for (int i = 0; i < THREADS; i++)
        pthread_create(&threads[i], NULL, open_one, &modules[i]);
    for (int i = 0; i < THREADS; i++)
        pthread_join(threads[i], NULL);
    cr_assert_not_null(modules[0]);
    for (int i = 0; i < THREADS; i++)
        cr_assert_eq(modules[i], modules[0]);
    cr_assert_eq(modules[0]->abi, WEIR_CUDA_ABI);
    cr_assert_not_null(modules[0]->gpu);
    cr_assert_str_eq(weir_cuda_module_path(), FAKE_CUDA_MODULE);
}

/* ---- next to the program: a copy of open_module.c's program in a folder with a given module ---- */

static void copy_file(const char *from, const char *to)
{
    char command[2048];
    snprintf(command, sizeof command, "cp '%s' '%s'", from, to);
    cr_assert_eq(system(command), 0);
}

/* Runs the copy and stores its output: the path of the opened module, or the error. */
static void run_beside(char *said, size_t size)
{
    const char *program = fixture_path("program");
    copy_file(OPEN_MODULE, program);
    unsetenv("WEIR_CUDA_MODULE");
    FILE *output = popen(program, "r");
    cr_assert_not_null(output);
    said[fread(said, 1, size - 1, output)] = '\0';
    cr_assert_eq(pclose(output), 0);
}

Test(cuda_module, is_found_beside_the_program)
{
    char said[2048];
    copy_file(FAKE_CUDA_MODULE, fixture_path("libweir_cuda.so"));
    run_beside(said, sizeof said);
    cr_assert_str_eq(said, fixture_path("libweir_cuda.so"));
}

Test(cuda_module, a_damaged_one_beside_the_program_is_named)
{
    char said[2048];
    write_file(fixture_path("libweir_cuda.so"), "not this, and not long enough to be one either, whatever it is\n");
    run_beside(said, sizeof said);
    cr_assert_not_null(strstr(said, fixture_path("libweir_cuda.so")), "%s", said);
}

/* ---- truncated modules, on which the dynamic linker would fail with SIGBUS ---- */

static const char *cut_module(size_t bytes)
{
    const char *path = fixture_path("libweir_cuda.so");
    copy_file(FAKE_CUDA_MODULE, path);
    cr_assert_eq(truncate(path, (off_t)bytes), 0);
    return path;
}

static size_t module_bytes(Elf64_Ehdr *head)
{
    struct stat status;
    FILE *file = fopen(FAKE_CUDA_MODULE, "rb");
    cr_assert_not_null(file);
    cr_assert_eq(fread(head, sizeof *head, 1, file), 1);
    fclose(file);
    cr_assert_eq(stat(FAKE_CUDA_MODULE, &status), 0);
    return (size_t)status.st_size;
}

Test(cuda_module, one_that_was_cut_short_is_refused)
{
    Elf64_Ehdr head;
    size_t whole = module_bytes(&head);
    size_t cuts[] = {0, 1, 63, 64, 100, 1000, 4096, 8192, whole / 4, whole / 2, head.e_shoff, whole - 1};
    for (size_t i = 0; i < sizeof cuts / sizeof cuts[0]; i++) {
        char said[2048], part[64];
        const char *path = cut_module(cuts[i]);
        run_beside(said, sizeof said);
        snprintf(part, sizeof part, "it has %zu bytes instead of at least ", cuts[i]);
        cr_assert_not_null(strstr(said, part), "%zu: %s", cuts[i], said);
        cr_assert_not_null(strstr(said, path), "%s", said);
        cr_assert_not_null(strstr(said, "build or copy it again"), "%s", said);
    }
}

Test(cuda_module, one_that_was_cut_short_is_refused_by_name)
{
    Elf64_Ehdr head;
    char part[64];
    snprintf(part, sizeof part, "it has 4096 bytes instead of at least %zu", module_bytes(&head));
    setenv("WEIR_CUDA_MODULE", cut_module(4096), 1);
    refuses("WEIR_CUDA_MODULE=", part);
}

static void patch(const char *path, size_t offset, const void *bytes, size_t n)
{
    FILE *file = fopen(path, "r+b");
    cr_assert_not_null(file);
    cr_assert_eq(fseek(file, (long)offset, SEEK_SET), 0);
    cr_assert_eq(fwrite(bytes, n, 1, file), 1);
    fclose(file);
}

/* Offsets and sizes that overflow or exceed the file. */
Test(cuda_module, one_whose_headers_lie_is_refused)
{
    Elf64_Ehdr head;
    size_t whole = module_bytes(&head);
    static const struct {
        size_t offset; /* of the 8 changed bytes; relative to the first program header if in_part is set */
        bool in_part;
        uint64_t value;
    } lies[] = {{offsetof(Elf64_Ehdr, e_phoff), false, UINT64_MAX},
                {offsetof(Elf64_Ehdr, e_phoff), false, UINT64_MAX - 55},
                {offsetof(Elf64_Ehdr, e_phoff), false, 1u << 30},
                {offsetof(Elf64_Ehdr, e_shoff), false, UINT64_MAX - 7},
                {offsetof(Elf64_Phdr, p_offset), true, UINT64_MAX - 4095},
                {offsetof(Elf64_Phdr, p_filesz), true, UINT64_MAX},
                {offsetof(Elf64_Phdr, p_filesz), true, (uint64_t)INT64_MAX + 1},
                {offsetof(Elf64_Phdr, p_filesz), true, 1u << 30},
                {offsetof(Elf64_Ehdr, e_ident), false, 0},
                {offsetof(Elf64_Ehdr, e_flags), false, 0}}; /* overwrites e_phentsize, too */
    for (size_t i = 0; i < sizeof lies / sizeof lies[0]; i++) {
        char said[2048];
        const char *path = cut_module(whole);
        Elf64_Phdr first = {.p_type = PT_LOAD};
        size_t base = lies[i].in_part ? head.e_phoff : 0;
        if (lies[i].in_part)
            patch(path, base, &first.p_type, sizeof first.p_type);
        patch(path, base + lies[i].offset, &lies[i].value, sizeof lies[i].value);
        run_beside(said, sizeof said);
        cr_assert_not_null(strstr(said, "it is damaged"), "%zu: %s", i, said);
    }
}
