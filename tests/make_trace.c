/* make_trace.c: writes a trace for the clients to read (tests/check_clients.sh), or tells how fast writing is:
 *
 *   make_trace cpu|gpu FILE        make_trace speed FILE [EVENTS] */
#include "prof/trace_write.h"
#include "tests/trace_fixture.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

static double now_s(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + (double)now.tv_nsec * 1e-9;
}

static struct weir_trace *make(const char *kind, size_t n)
{
    if (strcmp(kind, "cpu") == 0)
        return fixture_cpu_trace();
    if (strcmp(kind, "gpu") == 0)
        return fixture_gpu_trace();
    return strcmp(kind, "speed") == 0 ? fixture_long_trace(n) : NULL;
}

int main(int argc, char **argv)
{
    struct weir_err err = WEIR_ERR_NONE;
    size_t n = argc > 3 ? strtoull(argv[3], NULL, 10) : 1000000;
    struct weir_trace *trace = argc > 2 ? make(argv[1], n) : NULL;
    if (!trace) {
        fprintf(stderr, "usage: make_trace cpu|gpu|speed FILE [EVENTS]\n");
        return 2;
    }
    double begin = now_s();
    int rc = weir_trace_write(trace, argv[2], &err);
    double seconds = now_s() - begin;
    if (rc < 0)
        fprintf(stderr, "make_trace: %s\n", err.text);
    else if (strcmp(argv[1], "speed") == 0)
        printf("%zu events in %.3f s: %.2f million/s\n", n, seconds, (double)n / seconds * 1e-6);
    weir_trace_free(&trace);
    return rc < 0;
}
