#include "tests/gpu/gpu_fixture.h"
#include "bench/bench_gpu.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { SKIPPED = 77 };

void gpufx_check(bool ok, const char *format, ...)
{
    va_list args;
    if (ok)
        return;
    va_start(args, format);
    fflush(stdout);
    fputs("FAILED: ", stderr);
    vfprintf(stderr, format, args);
    fputc('\n', stderr);
    va_end(args);
    exit(1);
}

void gpufx_fine(int rc, const struct weir_err *err)
{
    gpufx_check(rc == 0, "%d: %s", rc, err->text);
}

void gpufx_open(struct gpufx *fx)
{
    struct weir_err err = WEIR_ERR_NONE;
    int n;
    *fx = (struct gpufx){0};
    bench_gpu_find_module();
    gpufx_fine(weir_cuda_module_open(&fx->module, &err), &err);
    fx->ops = fx->module->gpu;
    if (fx->ops->count(&n, &err) < 0) {
        printf("skipped: %s\n", err.text);
        exit(SKIPPED);
    }
    gpufx_fine(fx->ops->open(&fx->gpu, 0, &err), &err);
    gpufx_fine(fx->ops->describe(0, true, &fx->info, &err), &err);
    fx->stream = gpufx_stream(fx, true);
}

void gpufx_close(struct gpufx *fx)
{
    fx->ops->stream_free(fx->gpu, fx->stream);
    fx->ops->close(&fx->gpu);
}

void *gpufx_alloc(struct gpufx *fx, size_t bytes)
{
    struct weir_err err = WEIR_ERR_NONE;
    void *memory;
    gpufx_fine(fx->ops->alloc(fx->gpu, bytes, &memory, &err), &err);
    return memory;
}

void gpufx_free(struct gpufx *fx, void *memory)
{
    fx->ops->free(fx->gpu, memory);
}

void *gpufx_upload(struct gpufx *fx, const void *bytes, size_t n)
{
    void *memory = gpufx_alloc(fx, n);
    gpufx_copy_in(fx, memory, bytes, n);
    return memory;
}

void gpufx_copy_in(struct gpufx *fx, void *to, const void *from, size_t n)
{
    struct weir_err err = WEIR_ERR_NONE;
    gpufx_fine(fx->ops->copy_in(fx->gpu, to, from, n, fx->stream, &err), &err);
    gpufx_sync(fx, fx->stream);
}

void gpufx_copy_out(struct gpufx *fx, void *to, const void *from, size_t n)
{
    struct weir_err err = WEIR_ERR_NONE;
    gpufx_fine(fx->ops->copy_out(fx->gpu, to, from, n, fx->stream, &err), &err);
    gpufx_sync(fx, fx->stream);
}

void gpufx_sync(struct gpufx *fx, void *stream)
{
    struct weir_err err = WEIR_ERR_NONE;
    void *event = gpufx_event(fx);
    gpufx_record(fx, event, stream);
    gpufx_fine(fx->ops->wait(fx->gpu, event, &err), &err);
    fx->ops->event_free(fx->gpu, event);
}

void *gpufx_stream(struct gpufx *fx, bool urgent)
{
    struct weir_err err = WEIR_ERR_NONE;
    void *stream;
    gpufx_fine(fx->ops->stream_new(fx->gpu, urgent, &stream, &err), &err);
    return stream;
}

void *gpufx_event(struct gpufx *fx)
{
    struct weir_err err = WEIR_ERR_NONE;
    void *event;
    gpufx_fine(fx->ops->event_new(fx->gpu, true, &event, &err), &err);
    return event;
}

void gpufx_record(struct gpufx *fx, void *event, void *stream)
{
    struct weir_err err = WEIR_ERR_NONE;
    gpufx_fine(fx->ops->record(fx->gpu, event, stream, &err), &err);
}

int64_t gpufx_elapsed_ns(struct gpufx *fx, void *from, void *to)
{
    struct weir_err err = WEIR_ERR_NONE;
    int64_t ns;
    gpufx_fine(fx->ops->elapsed(fx->gpu, from, to, &ns, &err), &err);
    return ns;
}
