#include "prof/record/nvtx.h"
#include "base/threads.h"

#include "prof/gpu/cuda_module.h"
#include "prof/gpu/gpu_trace_ops.h"
#include "weir/recorder.h"

#include <errno.h>
#include <inttypes.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>

enum { NAMES = UINT16_MAX + 1 };

static const struct weir_nvtx_ops *ops;
static void *_Atomic *handles; /* indexed by name; created at first use and never freed */
static _Atomic bool on;
static __thread uint16_t depth;
static __thread bool named;

static int switch_on(struct weir_err *err)
{
    const struct weir_cuda_module *module;
    int rc = weir_cuda_module_open(&module, err);
    if (rc < 0)
        return rc;
    if (!module->nvtx)
        return weir_err_set(err, -ENOTSUP, "%s was built without NVTX; build it again with the NVTX headers",
                            weir_cuda_module_path());
    if (!handles)
        handles = calloc(NAMES, sizeof *handles);
    if (!handles)
        return weir_err_set(err, -ENOMEM, "out of memory");
    ops = module->nvtx;
    if (!ops->active())
        return weir_err_set(err, -ENODEV, "no profiling tool is attached; run under nsys profile");
    atomic_store(&on, true);
    __atomic_fetch_or(&weir_recording_state, WEIR_RECORDING_NVTX, __ATOMIC_RELEASE);
    return 0;
}

static void switch_off(void)
{
    atomic_store(&on, false);
    __atomic_fetch_and(&weir_recording_state, ~(uint32_t)WEIR_RECORDING_NVTX, __ATOMIC_RELEASE);
}

uint32_t weir_nvtx_state(void)
{
    return atomic_load_explicit(&on, memory_order_relaxed) ? WEIR_RECORDING_NVTX : 0;
}

static void name_thread(void)
{
    char name[16] = "";
    named = true;
    if (pthread_getname_np(pthread_self(), name, sizeof name) == 0)
        ops->name_thread((uint32_t)weir_thread_id(), name);
}

static void push(void *handle)
{
    if (!named)
        name_thread();
    ops->push(handle, weir_item_self);
    depth++;
}

/* Two threads can create a name's handle at the same time. Either handle works, because both have the same string. */
void weir_nvtx_push_(weir_name name)
{
    atomic_thread_fence(memory_order_acquire); /* makes the setup visible, because the caller read the state relaxed */
    void *handle = atomic_load_explicit(&handles[name], memory_order_acquire);
    if (!handle) {
        handle = ops->intern(weir_name_text(name));
        atomic_store_explicit(&handles[name], handle, memory_order_release);
    }
    push(handle);
}

void weir_nvtx_pop_(void)
{
    if (depth == 0)
        return;
    depth--;
    ops->pop();
}

uint16_t weir_nvtx_depth_(void)
{
    return depth;
}

void weir_nvtx_pop_to_(uint16_t to)
{
    while (depth > to)
        weir_nvtx_pop_();
}

/* ---- steps ---- */

static void open_step(struct weir_nvtx_steps *steps)
{
    char text[48];
    snprintf(text, sizeof text, "ProfilerStep#%" PRId64, steps->number++);
    steps->depth = depth;
    push(ops->intern(text));
}

int weir_nvtx_steps_begin(struct weir_nvtx_steps *steps, struct weir_err *err)
{
    int rc = switch_on(err);
    steps->on = rc == 0;
    if (steps->on)
        open_step(steps);
    return rc;
}

void weir_nvtx_steps_next(struct weir_nvtx_steps *steps)
{
    if (!steps->on)
        return;
    weir_nvtx_pop_to_(steps->depth);
    open_step(steps);
}

void weir_nvtx_steps_end(struct weir_nvtx_steps *steps)
{
    if (!steps->on)
        return;
    weir_nvtx_pop_to_(steps->depth);
    switch_off();
    steps->on = false;
}
