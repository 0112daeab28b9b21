/* Preloaded into a program, makes one of its calls fail as on a machine that is short of something:
 *
 *     WEIR_FAIL=CALL:WHO:K[+] LD_PRELOAD=libweir_fail_calls.so weir run DATA
 *
 * CALL: alloc (malloc and its kin, and anonymous mmap) with ENOMEM; read (of *.hdf5 and *.h5) with EIO; open (of the
 * same) with EMFILE; thread (pthread_create) with EAGAIN; fork with EAGAIN; walk (readdir) with EIO. WHO: program is
 * the process that is started, helper each process that is forked from it or from those, each with a count of its own
 * from its birth. K: the K-th of these calls (from 1) fails; with a + all after it do, too.
 *
 * WEIR_FAIL_COUNT=FILE: FILE gets two numbers of 8 bytes, the most such calls of a program and of a helper. With K = 0
 * nothing fails. */
#include <dirent.h>
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

enum call { NONE, ALLOC, READ, OPEN, THREAD, FORK, WALK };
static const char *const names[] = {"none", "alloc", "read", "open", "thread", "fork", "walk"};

static enum call failing;
static bool in_helper, onward, is_child;
static uint64_t failing_at;
static _Atomic uint64_t calls;
static _Atomic uint64_t *most; /* of the program and of helpers; NULL: nobody asked */

static void next_process(void)
{
    is_child = true;
    atomic_store(&calls, 0);
}

__attribute__((constructor)) static void begin(void)
{
    const char *text = getenv("WEIR_FAIL"), *file = getenv("WEIR_FAIL_COUNT");
    char call[16], who[16], plus = 0;
    unsigned long long k;
    if (!text || sscanf(text, "%15[a-z]:%15[a-z]:%llu%c", call, who, &k, &plus) < 3)
        return;
    int fd = file ? open(file, O_RDWR | O_CREAT | O_CLOEXEC, 0666) : -1;
    if (fd >= 0 && ftruncate(fd, 2 * sizeof *most) == 0) {
        void *shared = mmap(NULL, 2 * sizeof *most, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
        most = shared == MAP_FAILED ? NULL : shared;
    }
    if (fd >= 0)
        close(fd);
    pthread_atfork(NULL, NULL, next_process);
    in_helper = strcmp(who, "helper") == 0;
    onward = plus == '+';
    failing_at = k;
    for (size_t i = 1; i < sizeof names / sizeof names[0]; i++)
        if (strcmp(call, names[i]) == 0)
            failing = (enum call)i;
    atomic_store(&calls, 0);
}

/* Whether this call is one to fail. */
static bool fails(enum call call)
{
    if (failing != call)
        return false;
    uint64_t n = atomic_fetch_add(&calls, 1) + 1;
    for (uint64_t seen = most ? most[is_child] : n; seen < n;)
        if (atomic_compare_exchange_weak(&most[is_child], &seen, n))
            break;
    return is_child == in_helper && failing_at > 0 && (n == failing_at || (onward && n > failing_at));
}

static bool is_data(const char *path)
{
    const char *dot = path ? strrchr(path, '.') : NULL;
    return dot && (strcmp(dot, ".hdf5") == 0 || strcmp(dot, ".h5") == 0);
}

static bool is_data_fd(int fd)
{
    char link[64], path[4096];
    int before = errno;
    snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
    ssize_t n = failing == READ ? readlink(link, path, sizeof path - 1) : -1;
    path[n > 0 ? n : 0] = '\0';
    errno = before;
    return is_data(path);
}

/* ---- memory ---- */

void *__libc_malloc(size_t bytes);
void *__libc_calloc(size_t n, size_t bytes);
void *__libc_realloc(void *old, size_t bytes);
void *__libc_memalign(size_t alignment, size_t bytes);

static void *no_memory(void)
{
    errno = ENOMEM;
    return NULL;
}

void *malloc(size_t bytes)
{
    return fails(ALLOC) ? no_memory() : __libc_malloc(bytes);
}

void *calloc(size_t n, size_t bytes)
{
    return fails(ALLOC) ? no_memory() : __libc_calloc(n, bytes);
}

void *realloc(void *old, size_t bytes)
{
    return fails(ALLOC) ? no_memory() : __libc_realloc(old, bytes);
}

void *memalign(size_t alignment, size_t bytes);
void *memalign(size_t alignment, size_t bytes)
{
    return fails(ALLOC) ? no_memory() : __libc_memalign(alignment, bytes);
}

void *aligned_alloc(size_t alignment, size_t bytes)
{
    return memalign(alignment, bytes);
}

int posix_memalign(void **out, size_t alignment, size_t bytes)
{
    *out = memalign(alignment, bytes);
    return *out ? 0 : ENOMEM;
}

void *mmap(void *at, size_t bytes, int protection, int flags, int fd, off_t offset)
{
    static void *(*real)(void *, size_t, int, int, int, off_t);
    if (!real)
        *(void **)&real = dlsym(RTLD_NEXT, "mmap");
    if (flags & MAP_ANONYMOUS && fails(ALLOC)) {
        errno = ENOMEM;
        return MAP_FAILED;
    }
    return real(at, bytes, protection, flags, fd, offset);
}

/* ---- files ---- */

ssize_t pread(int fd, void *buffer, size_t bytes, off_t offset)
{
    static ssize_t (*real)(int, void *, size_t, off_t);
    if (!real)
        *(void **)&real = dlsym(RTLD_NEXT, "pread");
    if (is_data_fd(fd) && fails(READ)) {
        errno = EIO;
        return -1;
    }
    return real(fd, buffer, bytes, offset);
}

int open(const char *path, int flags, ...)
{
    static int (*real)(const char *, int, ...);
    va_list args;
    va_start(args, flags);
    mode_t mode = flags & (O_CREAT | O_TMPFILE) ? va_arg(args, mode_t) : 0;
    va_end(args);
    if (!real)
        *(void **)&real = dlsym(RTLD_NEXT, "open");
    if (is_data(path) && fails(OPEN)) {
        errno = EMFILE;
        return -1;
    }
    return real(path, flags, mode);
}

struct dirent *readdir(DIR *folder)
{
    static struct dirent *(*real)(DIR *);
    if (!real)
        *(void **)&real = dlsym(RTLD_NEXT, "readdir");
    if (fails(WALK)) {
        errno = EIO;
        return NULL;
    }
    return real(folder);
}

/* ---- threads and processes ---- */

int pthread_create(pthread_t *thread, const pthread_attr_t *attributes, void *(*main)(void *), void *user)
{
    static int (*real)(pthread_t *, const pthread_attr_t *, void *(*)(void *), void *);
    if (!real)
        *(void **)&real = dlsym(RTLD_NEXT, "pthread_create");
    return fails(THREAD) ? EAGAIN : real(thread, attributes, main, user);
}

pid_t fork(void)
{
    static pid_t (*real)(void);
    if (!real)
        *(void **)&real = dlsym(RTLD_NEXT, "fork");
    if (fails(FORK)) {
        errno = EAGAIN;
        return -1;
    }
    return real();
}
