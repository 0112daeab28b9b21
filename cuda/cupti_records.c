#include "cuda/cupti_priv.h"

#include <stdlib.h>
#include <string.h>
#include <time.h>

/* ---- storage ---- */

size_t weir_cupti_record_bytes(CUpti_ActivityKind kind)
{
    switch (kind) {
    case CUPTI_ACTIVITY_KIND_RUNTIME:
    case CUPTI_ACTIVITY_KIND_DRIVER:
        return sizeof(CUpti_ActivityAPI);
    case CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL:
        return sizeof(CUpti_ActivityKernel10);
    case CUPTI_ACTIVITY_KIND_MEMCPY:
        return sizeof(CUpti_ActivityMemcpy6);
    case CUPTI_ACTIVITY_KIND_MEMCPY2:
        return sizeof(CUpti_ActivityMemcpyPtoP4);
    case CUPTI_ACTIVITY_KIND_MEMSET:
        return sizeof(CUpti_ActivityMemset4);
    case CUPTI_ACTIVITY_KIND_SYNCHRONIZATION:
        return sizeof(CUpti_ActivitySynchronization2);
    case CUPTI_ACTIVITY_KIND_CUDA_EVENT:
        return sizeof(CUpti_ActivityCudaEvent2);
    case CUPTI_ACTIVITY_KIND_MEMORY2:
        return sizeof(CUpti_ActivityMemory4);
    case CUPTI_ACTIVITY_KIND_OVERHEAD:
        return sizeof(CUpti_ActivityOverhead3);
    default:
        return 0; /* the kind was not requested */
    }
}

static bool has_no_times(const CUpti_Activity *record)
{
    switch (record->kind) {
    case CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL:
        return ((const CUpti_ActivityKernel10 *)record)->end == 0;
    case CUPTI_ACTIVITY_KIND_MEMCPY:
        return ((const CUpti_ActivityMemcpy6 *)record)->end == 0;
    case CUPTI_ACTIVITY_KIND_MEMCPY2:
        return ((const CUpti_ActivityMemcpyPtoP4 *)record)->end == 0;
    case CUPTI_ACTIVITY_KIND_MEMSET:
        return ((const CUpti_ActivityMemset4 *)record)->end == 0;
    case CUPTI_ACTIVITY_KIND_RUNTIME:
    case CUPTI_ACTIVITY_KIND_DRIVER:
        return ((const CUpti_ActivityAPI *)record)->end == 0;
    case CUPTI_ACTIVITY_KIND_SYNCHRONIZATION:
        return ((const CUpti_ActivitySynchronization2 *)record)->end == 0;
    default:
        return false;
    }
}

static void *room_for(struct weir_gpu_records *records, size_t size)
{
    struct weir_cupti_block *last = records->last;
    if (records->bytes + size > records->bytes_max)
        return NULL;
    if (!last || last->used + size > WEIR_CUPTI_BLOCK_BYTES) {
        struct weir_cupti_block *block = malloc(sizeof *block);
        if (!block)
            return NULL;
        block->next = NULL;
        block->used = 0;
        *(last ? &last->next : &records->first) = block;
        records->last = last = block;
    }
    void *at = last->bytes + last->used;
    last->used += size;
    records->bytes += size;
    return at;
}

/* Looks a name up by its pointer, which all records of a kernel share, and by its string, because the memory at the
 * pointer may have been reused. */
static struct weir_cupti_name *name_of(struct weir_gpu_records *records, const char *given)
{
    const char *text = given ? given : "";
    struct weir_cupti_name **slot = &records->names[((uintptr_t)given >> 4) % WEIR_CUPTI_NAME_SLOTS];
    for (struct weir_cupti_name *name = *slot; name; name = name->next)
        if (name->given == given && strcmp(name->text, text) == 0)
            return name;
    size_t length = strlen(text);
    struct weir_cupti_name *name = malloc(sizeof *name + length + 1);
    if (!name)
        return NULL;
    *name = (struct weir_cupti_name){.next = *slot, .given = given};
    memcpy(name->text, text, length + 1);
    *slot = name;
    return name;
}

static bool note_call(struct weir_gpu_records *records, const CUpti_ActivityAPI *call)
{
    bool driver = call->kind == CUPTI_ACTIVITY_KIND_DRIVER;
    const char **names = driver ? records->driver_names : records->runtime_names;
    uint32_t n = driver ? CUPTI_DRIVER_TRACE_CBID_SIZE : CUPTI_RUNTIME_TRACE_CBID_SIZE;
    if (call->cbid >= n)
        return false;       /* the function is newer than the headers */
    names[call->cbid] = ""; /* looked up when recording ends */
    return true;
}

static bool keep(struct weir_gpu_records *records, const CUpti_Activity *record, size_t size)
{
    bool call = record->kind == CUPTI_ACTIVITY_KIND_RUNTIME || record->kind == CUPTI_ACTIVITY_KIND_DRIVER;
    bool kernel = record->kind == CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL;
    if (has_no_times(record) || (call && !note_call(records, (const CUpti_ActivityAPI *)record)))
        return false;
    struct weir_cupti_name *name = kernel ? name_of(records, ((const CUpti_ActivityKernel10 *)record)->name) : NULL;
    if (kernel && !name)
        return false;
    void *at = room_for(records, size);
    if (!at)
        return false;
    memcpy(at, record, size);
    if (kernel)
        ((CUpti_ActivityKernel10 *)at)->name = (const char *)name;
    return true;
}

void weir_cupti_records_keep(struct weir_gpu_records *records, const CUpti_Activity *record)
{
    size_t size = weir_cupti_record_bytes(record->kind);
    if (size > 0 && !keep(records, record, size))
        records->dropped++;
}

void weir_cupti_records_lost(struct weir_gpu_records *records, uint64_t n)
{
    records->dropped += n;
}

/* ---- start and end ---- */

static int64_t unix_now_ns(void)
{
    struct timespec now;
    clock_gettime(CLOCK_REALTIME, &now);
    return (int64_t)now.tv_sec * 1000000000 + now.tv_nsec;
}

/* Reads both clocks at almost the same instant. Keeps the fastest of several attempts, because an interrupt can occur
 * between the two readings. */
static struct weir_cupti_instant instant_now(uint64_t (*now_ns)(void))
{
    struct weir_cupti_instant instant = {0};
    uint64_t best = UINT64_MAX;
    for (int i = 0; i < 16; i++) {
        uint64_t before = now_ns();
        int64_t unix_ns = unix_now_ns();
        uint64_t after = now_ns();
        if (after - before >= best)
            continue;
        best = after - before;
        instant.ns = before + best / 2;
        instant.ahead_ns = unix_ns - (int64_t)instant.ns;
    }
    return instant;
}

struct weir_gpu_records *weir_cupti_records_new(uint64_t bytes_max, uint64_t (*now_ns)(void))
{
    struct weir_gpu_records *records = calloc(1, sizeof *records);
    if (!records)
        return NULL;
    weir_cupti_know_devices();
    records->bytes_max = bytes_max;
    records->begin = instant_now(now_ns);
    return records;
}

static void ask_names(const struct weir_cupti *cupti, CUpti_CallbackDomain domain, const char **names, uint32_t n)
{
    for (uint32_t cbid = 0; cbid < n; cbid++) {
        const char *given = NULL;
        if (!names[cbid])
            continue;
        if (cupti->get_callback_name(domain, cbid, &given) != CUPTI_SUCCESS || !given)
            given = "unknown call";
        char *text = strdup(given);
        char *version = text ? strstr(text, "_v") : NULL; /* as in cudaLaunchKernel_ptsz_v7000 */
        if (version && strspn(version + 2, "0123456789") >= 4)
            *version = '\0';
        names[cbid] = text;
    }
}

void weir_cupti_records_finish(struct weir_gpu_records *records, const struct weir_cupti *cupti,
                               uint64_t (*now_ns)(void))
{
    records->end = instant_now(now_ns);
    ask_names(cupti, CUPTI_CB_DOMAIN_RUNTIME_API, records->runtime_names, CUPTI_RUNTIME_TRACE_CBID_SIZE);
    ask_names(cupti, CUPTI_CB_DOMAIN_DRIVER_API, records->driver_names, CUPTI_DRIVER_TRACE_CBID_SIZE);
}

uint64_t weir_cupti_records_dropped(const struct weir_gpu_records *records)
{
    return records->dropped;
}

static void free_texts(const char **texts, size_t n)
{
    for (size_t i = 0; i < n; i++)
        if (texts[i] && *texts[i])
            free((void *)texts[i]);
}

void weir_cupti_records_free(struct weir_gpu_records *records)
{
    if (!records)
        return;
    for (struct weir_cupti_block *block = records->first, *next; block; block = next) {
        next = block->next;
        free(block);
    }
    for (size_t i = 0; i < WEIR_CUPTI_NAME_SLOTS; i++)
        for (struct weir_cupti_name *name = records->names[i], *next; name; name = next) {
            next = name->next;
            free(name->shown);
            free(name);
        }
    free_texts(records->runtime_names, CUPTI_RUNTIME_TRACE_CBID_SIZE);
    free_texts(records->driver_names, CUPTI_DRIVER_TRACE_CBID_SIZE);
    free(records->recorded);
    free(records->recorded_in_order);
    free(records);
}
