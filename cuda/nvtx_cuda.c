/* NVTX ranges for an attached profiler. NVTX's headers find the profiler. */
#include "prof/gpu/gpu_trace_ops.h"

#include <nvtx3/nvToolsExt.h>

#include <pthread.h>
#include <stddef.h>

static nvtxDomainHandle_t domain;

static void create_domain(void)
{
    domain = nvtxDomainCreateA("weir");
}

/* Whether a tool is attached; without one, the domain is NULL. */
static int active(void)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    pthread_once(&once, create_domain);
    return domain != NULL;
}

static void *intern(const char *text)
{
    return nvtxDomainRegisterStringA(domain, text);
}

static void push(void *text, uint64_t item)
{
    nvtxEventAttributes_t attributes = {
        .version = NVTX_VERSION,
        .size = NVTX_EVENT_ATTRIB_STRUCT_SIZE,
        .payloadType = item ? NVTX_PAYLOAD_TYPE_UNSIGNED_INT64 : NVTX_PAYLOAD_UNKNOWN,
        .payload.ullValue = item,
        .messageType = NVTX_MESSAGE_TYPE_REGISTERED,
        .message.registered = text,
    };
    nvtxDomainRangePushEx(domain, &attributes);
}

static void pop(void)
{
    nvtxDomainRangePop(domain);
}

static void name_thread(uint32_t tid, const char *name)
{
    nvtxNameOsThreadA(tid, name);
}

const struct weir_nvtx_ops weir_nvtx_cuda = {
    .active = active,
    .intern = intern,
    .push = push,
    .pop = pop,
    .name_thread = name_thread,
};
