/* Runs a fuzz target without libFuzzer, which is not available everywhere. Suitable only for targets that interpret
 * their input as choices, since inputs are random. Several processes use different random numbers. The input that
 * crashes a process is written to found-SEED-PROCESS. */
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
size_t LLVMFuzzerMutate(uint8_t *data, size_t size, size_t size_max);

enum { INPUT_MAX = 96, PROCESSES_MAX = 1024 };

static struct {
    uint8_t input[INPUT_MAX];
    size_t size;
    char found[64];
} now;

/* Never called, but the target's mutator refers to it. */
size_t LLVMFuzzerMutate(uint8_t *data, size_t size, size_t size_max)
{
    (void)data;
    (void)size_max;
    return size;
}

static void on_signal(int number)
{
    FILE *file = fopen(now.found, "w"); /* not async-signal-safe, but the process ends here anyway */
    if (file) {
        fwrite(now.input, 1, now.size, file);
        fclose(file);
        fprintf(stderr, "signal %d: the input is in %s\n", number, now.found);
    }
    _exit(1);
}

static uint64_t next(uint64_t *state)
{
    uint64_t z = *state += 0x9E3779B97F4A7C15u;
    z = (z ^ z >> 30) * 0xBF58476D1CE4E5B9u;
    z = (z ^ z >> 27) * 0x94D049BB133111EBu;
    return z ^ z >> 31;
}

static int run_process(int process, uint64_t seed, double seconds, uint64_t inputs)
{
    static const int signals[] = {SIGABRT, SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGALRM};
    snprintf(now.found, sizeof now.found, "found-%llu-%d", (unsigned long long)seed, process);
    for (size_t i = 0; i < sizeof signals / sizeof signals[0]; i++)
        signal(signals[i], on_signal);
    uint64_t state = seed * 1000003 + (uint64_t)process, n = 0;
    time_t end = time(NULL) + (time_t)seconds;
    for (; inputs ? n < inputs : time(NULL) < end; n++) {
        now.size = 2 + next(&state) % (INPUT_MAX - 1);
        for (size_t i = 0; i < now.size; i++)
            now.input[i] = (uint8_t)(next(&state) >> 56);
        alarm(60); /* ends a target that hangs */
        LLVMFuzzerTestOneInput(now.input, now.size);
    }
    printf("process %d: %llu inputs\n", process, (unsigned long long)n);
    return 0;
}

static int replay(const char *path)
{
    FILE *file = fopen(path, "r");
    if (!file) {
        fprintf(stderr, "%s cannot be opened\n", path);
        return 1;
    }
    static uint8_t bytes[1 << 20];
    size_t size = fread(bytes, 1, sizeof bytes, file);
    fclose(file);
    uint8_t *copy = malloc(size ? size : 1); /* exact size, so that reads past the input are detected */
    memcpy(copy, bytes, size);
    LLVMFuzzerTestOneInput(copy, size);
    free(copy);
    return 0;
}

static int run_all(int processes, uint64_t seed, double seconds, uint64_t inputs)
{
    int failed = 0;
    for (int i = 0; i < processes; i++)
        switch (fork()) {
        case 0:
            exit(run_process(i, seed, seconds, inputs));
        case -1:
            perror("fork");
            failed++;
        }
    for (int status; wait(&status) > 0;)
        failed += status != 0;
    printf("%d processes, %d with a finding\n", processes, failed);
    return failed ? 1 : 0;
}

int main(int argc, char **argv)
{
    int processes = 1, option;
    uint64_t seed = 1, inputs = 0;
    double seconds = 60;
    while ((option = getopt(argc, argv, "n:p:s:t:")) != -1)
        switch (option) {
        case 'n':
            inputs = strtoull(optarg, NULL, 10);
            break;
        case 'p':
            processes = atoi(optarg);
            break;
        case 's':
            seed = strtoull(optarg, NULL, 10);
            break;
        case 't':
            seconds = atof(optarg);
            break;
        default:
            processes = 0;
        }
    if (processes < 1 || processes > PROCESSES_MAX) {
        fprintf(stderr, "usage: %s [-t SECONDS | -n INPUTS] [-p PROCESSES] [-s SEED], or FILE... to replay inputs\n",
                *argv);
        return 2;
    }
    int rc = 0;
    for (int i = optind; i < argc; i++)
        rc |= replay(argv[i]);
    return optind < argc ? rc : run_all(processes, seed, seconds, inputs);
}
