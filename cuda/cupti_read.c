/* Converts stored records to the events of gpu_trace_ops.h. */
#include "cuda/cupti_priv.h"

#include <cuda_occupancy.h>

#include <dlfcn.h>
#include <limits.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

enum { DEVICES = 16 };
static const int64_t hour_ns = INT64_C(3600000000000);

/* ---- devices ---- */

static cudaOccDeviceProp devices[DEVICES];
static int n_devices;

static void ask_devices(void)
{
    struct cudaDeviceProp p;
    int n = 0;
    if (cudaGetDeviceCount(&n) != cudaSuccess)
        return;
    for (; n_devices < n && n_devices < DEVICES && cudaGetDeviceProperties(&p, n_devices) == cudaSuccess; n_devices++)
        devices[n_devices] = (cudaOccDeviceProp){
            .computeMajor = p.major,
            .computeMinor = p.minor,
            .maxThreadsPerBlock = p.maxThreadsPerBlock,
            .maxThreadsPerMultiprocessor = p.maxThreadsPerMultiProcessor,
            .regsPerBlock = p.regsPerBlock,
            .regsPerMultiprocessor = p.regsPerMultiprocessor,
            .warpSize = p.warpSize,
            .sharedMemPerBlock = p.sharedMemPerBlock,
            .sharedMemPerMultiprocessor = p.sharedMemPerMultiprocessor,
            .numSms = p.multiProcessorCount,
            .sharedMemPerBlockOptin = p.sharedMemPerBlockOptin,
            .reservedSharedMemPerBlock = p.reservedSharedMemPerBlock,
        };
}

void weir_cupti_know_devices(void)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    pthread_once(&once, ask_devices);
}

/* ---- preparation ---- */

static void walk(const struct weir_gpu_records *records, void (*each)(void *user, const CUpti_Activity *record),
                 void *user)
{
    for (const struct weir_cupti_block *block = records->first; block; block = block->next)
        for (size_t at = 0; at < block->used;) {
            const CUpti_Activity *record = (const CUpti_Activity *)(block->bytes + at);
            each(user, record);
            at += weir_cupti_record_bytes(record->kind);
        }
}

static void know_context(struct weir_gpu_records *records, uint32_t context, uint32_t device)
{
    if (context < WEIR_CUPTI_CONTEXTS)
        records->context_device[context] = device;
}

static void count_recorded(void *user, const CUpti_Activity *record)
{
    struct weir_gpu_records *records = user;
    if (record->kind == CUPTI_ACTIVITY_KIND_CUDA_EVENT) {
        const CUpti_ActivityCudaEvent2 *event = (const CUpti_ActivityCudaEvent2 *)record;
        records->n_recorded++;
        know_context(records, event->contextId, event->deviceId);
    } else if (record->kind == CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL) {
        const CUpti_ActivityKernel10 *kernel = (const CUpti_ActivityKernel10 *)record;
        know_context(records, kernel->contextId, kernel->deviceId);
    } else if (record->kind == CUPTI_ACTIVITY_KIND_MEMCPY) {
        const CUpti_ActivityMemcpy6 *copy = (const CUpti_ActivityMemcpy6 *)record;
        know_context(records, copy->contextId, copy->deviceId);
    }
}

static void note_recorded(void *user, const CUpti_Activity *record)
{
    struct weir_gpu_records *records = user;
    const CUpti_ActivityCudaEvent2 *event = (const CUpti_ActivityCudaEvent2 *)record;
    if (record->kind == CUPTI_ACTIVITY_KIND_CUDA_EVENT)
        records->recorded[records->n_recorded++] = (struct weir_cupti_recorded){
            event->cudaEventSyncId, event->contextId, event->eventId, event->correlationId, event->streamId};
}

static int by_sync_id(const void *a, const void *b)
{
    const struct weir_cupti_recorded *x = a, *y = b;
    return x->sync_id < y->sync_id ? -1 : x->sync_id > y->sync_id;
}

static int by_order(const void *a, const void *b)
{
    const struct weir_cupti_recorded *x = a, *y = b;
    if (x->context != y->context)
        return x->context < y->context ? -1 : 1;
    if (x->event != y->event)
        return x->event < y->event ? -1 : 1;
    return x->correlation < y->correlation ? -1 : x->correlation > y->correlation;
}

/* Demangles the names of kernels. They stay mangled if the C++ library is missing. */
static void demangle(struct weir_gpu_records *records)
{
    char *(*function)(const char *name, char *buffer, size_t *length, int *status) = NULL;
    void *handle = dlopen("libstdc++.so.6", RTLD_NOW | RTLD_LOCAL);
    void *symbol = handle ? dlsym(handle, "__cxa_demangle") : NULL;
    memcpy(&function, &symbol, sizeof symbol);
    for (size_t i = 0; i < WEIR_CUPTI_NAME_SLOTS && function; i++)
        for (struct weir_cupti_name *name = records->names[i]; name; name = name->next)
            if (!name->shown)
                name->shown = function(name->text, NULL, NULL, &(int){0});
}

static void prepare(struct weir_gpu_records *records)
{
    records->prepared = true;
    for (int i = 0; i < WEIR_CUPTI_CONTEXTS; i++)
        records->context_device[i] = UINT32_MAX;
    walk(records, count_recorded, records);
    size_t n = records->n_recorded;
    records->n_recorded = 0;
    records->recorded = malloc((n + 1) * sizeof *records->recorded);
    records->recorded_in_order = malloc((n + 1) * sizeof *records->recorded_in_order);
    if (records->recorded && records->recorded_in_order) {
        walk(records, note_recorded, records);
        memcpy(records->recorded_in_order, records->recorded, n * sizeof *records->recorded);
        qsort(records->recorded, n, sizeof *records->recorded, by_sync_id);
        qsort(records->recorded_in_order, n, sizeof *records->recorded_in_order, by_order);
    }
    demangle(records);
}

/* ---- times and names ---- */

static bool fits(const struct weir_gpu_records *records, int64_t ns)
{
    return ns > (int64_t)records->begin.ns - hour_ns && ns < (int64_t)records->end.ns + hour_ns;
}

/* Converts Unix time to the clock passed to start. Interpolates, because the two clocks drift apart. */
static int64_t from_unix(const struct weir_gpu_records *records, int64_t unix_ns)
{
    int64_t length_ns = (int64_t)(records->end.ns - records->begin.ns);
    int64_t since_ns = unix_ns - records->begin.ahead_ns - (int64_t)records->begin.ns;
    double part = length_ns > 0 ? (double)since_ns / (double)length_ns : 0;
    part = part < 0 ? 0 : part > 1 ? 1 : part;
    double drift_ns = (double)(records->end.ahead_ns - records->begin.ahead_ns);
    return unix_ns - records->begin.ahead_ns - (int64_t)(part * drift_ns / (1 + drift_ns / (double)(length_ns + 1)));
}

/* Converts a timestamp to the clock passed to start. The timestamp callback is registered only once per process,
 * because a second registration corrupts the timestamps of the first kernels. If detaching CUPTI removed the callback,
 * timestamps are Unix time; they are recognised because they are outside the recording. */
static uint64_t time_of(const struct weir_gpu_records *records, uint64_t ns)
{
    if (fits(records, (int64_t)ns))
        return ns;
    int64_t shifted = from_unix(records, (int64_t)ns);
    return fits(records, shifted) ? (uint64_t)shifted : ns;
}

static const char *memory_kind(unsigned kind)
{
    static const char *const names[] = {"Unknown", "Pageable", "Pinned",        "Device",
                                        "Array",   "Managed",  "Device Static", "Managed Static"};
    return names[kind < sizeof names / sizeof *names ? kind : 0];
}

static const char *copy_kind(unsigned kind)
{
    static const char *const names[] = {"Unknown", "HtoD", "DtoH", "HtoA", "AtoH", "AtoA",
                                        "AtoD",    "DtoA", "DtoD", "HtoH", "PtoP"};
    return names[kind < sizeof names / sizeof *names ? kind : 0];
}

static const char *overhead_kind(CUpti_ActivityOverheadKind kind)
{
    switch (kind) {
    case CUPTI_ACTIVITY_OVERHEAD_DRIVER_COMPILER:
        return "Driver Compiler";
    case CUPTI_ACTIVITY_OVERHEAD_CUPTI_BUFFER_FLUSH:
        return "Buffer Flush";
    case CUPTI_ACTIVITY_OVERHEAD_CUPTI_INSTRUMENTATION:
        return "Instrumentation";
    case CUPTI_ACTIVITY_OVERHEAD_CUPTI_RESOURCE:
        return "Resource";
    case CUPTI_ACTIVITY_OVERHEAD_RUNTIME_TRIGGERED_MODULE_LOADING:
        return "Runtime Triggered Module Loading";
    case CUPTI_ACTIVITY_OVERHEAD_LAZY_FUNCTION_LOADING:
        return "Lazy Function Loading";
    case CUPTI_ACTIVITY_OVERHEAD_COMMAND_BUFFER_FULL:
        return "Command Buffer Full";
    case CUPTI_ACTIVITY_OVERHEAD_ACTIVITY_BUFFER_REQUEST:
        return "Activity Buffer Request";
    default:
        return "Overhead";
    }
}

/* Returns the number of blocks of the kernel that can be resident on an SM simultaneously; 0: unknown. */
static float occupancy_of(const CUpti_ActivityKernel10 *kernel)
{
    if (kernel->deviceId >= (uint32_t)n_devices)
        return 0;
    const cudaOccFuncAttributes function = {
        .maxThreadsPerBlock = INT_MAX,
        .numRegs = kernel->registersPerThread,
        .sharedSizeBytes = (size_t)kernel->staticSharedMemory,
        .partitionedGCConfig = PARTITIONED_GC_OFF,
        .shmemLimitConfig = FUNC_SHMEM_LIMIT_OPTIN,
        .maxDynamicSharedSizeBytes = (size_t)kernel->dynamicSharedMemory,
        .numBlockBarriers = 1,
    };
    const cudaOccDeviceState state = {.cacheConfig = CACHE_PREFER_NONE, .carveoutConfig = SHAREDMEM_CARVEOUT_DEFAULT};
    cudaOccResult result;
    if (cudaOccMaxActiveBlocksPerMultiprocessor(&result, &devices[kernel->deviceId], &function, &state,
                                                kernel->blockX * kernel->blockY * kernel->blockZ,
                                                (size_t)kernel->dynamicSharedMemory) != CUDA_OCC_SUCCESS)
        return 0;
    return (float)result.activeBlocksPerMultiprocessor;
}

/* ---- one record ---- */

static void read_call(const struct weir_gpu_records *records, const CUpti_ActivityAPI *from, struct weir_gpu_record *to)
{
    bool driver = from->kind == CUPTI_ACTIVITY_KIND_DRIVER;
    const char *name = driver ? records->driver_names[from->cbid] : records->runtime_names[from->cbid];
    to->kind = driver ? WEIR_GPU_RECORD_DRIVER : WEIR_GPU_RECORD_RUNTIME;
    to->start_ns = from->start;
    to->end_ns = from->end;
    to->name = name ? name : "unknown call";
    to->pid = (int32_t)from->processId;
    to->tid = (int32_t)from->threadId;
    to->cbid = from->cbid;
    to->correlation = from->correlationId;
}

/* Copies the members that records of kernels, copies and memsets share. A macro, because the records have different
 * types. */
#define READ_WORK(from, to, what)                                                                                      \
    do {                                                                                                               \
        (to)->kind = (what);                                                                                           \
        (to)->start_ns = (from)->start;                                                                                \
        (to)->end_ns = (from)->end;                                                                                    \
        (to)->correlation = (from)->correlationId;                                                                     \
        (to)->device = (from)->deviceId;                                                                               \
        (to)->context = (from)->contextId;                                                                             \
        (to)->stream = (from)->streamId;                                                                               \
        (to)->graph = (from)->graphId;                                                                                 \
        (to)->graph_node = (uint32_t)(from)->graphNodeId;                                                              \
    } while (0)
#define READ_COPY(from, to)                                                                                            \
    do {                                                                                                               \
        READ_WORK(from, to, WEIR_GPU_RECORD_COPY);                                                                     \
        (to)->bytes = (from)->bytes;                                                                                   \
        (to)->copy_kind = copy_kind((from)->copyKind);                                                                 \
        (to)->from_kind = memory_kind((from)->srcKind);                                                                \
        (to)->to_kind = memory_kind((from)->dstKind);                                                                  \
    } while (0)

static void read_kernel(const CUpti_ActivityKernel10 *from, struct weir_gpu_record *to)
{
    const struct weir_cupti_name *name = (const struct weir_cupti_name *)from->name;
    READ_WORK(from, to, WEIR_GPU_RECORD_KERNEL);
    to->name = name->shown ? name->shown : name->text;
    to->grid[0] = (uint32_t)from->gridX;
    to->grid[1] = (uint32_t)from->gridY;
    to->grid[2] = (uint32_t)from->gridZ;
    to->block[0] = (uint32_t)from->blockX;
    to->block[1] = (uint32_t)from->blockY;
    to->block[2] = (uint32_t)from->blockZ;
    to->registers = from->registersPerThread;
    to->static_shared_bytes = (uint32_t)from->staticSharedMemory;
    to->dynamic_shared_bytes = (uint32_t)from->dynamicSharedMemory;
    to->occupancy = occupancy_of(from);
}

static void read_copy(const CUpti_ActivityMemcpy6 *from, struct weir_gpu_record *to)
{
    READ_COPY(from, to);
}

static void read_peer_copy(const CUpti_ActivityMemcpyPtoP4 *from, struct weir_gpu_record *to)
{
    READ_COPY(from, to);
    to->from_device = (int32_t)from->srcDeviceId;
    to->to_device = (int32_t)from->dstDeviceId;
}

static void read_memset(const CUpti_ActivityMemset4 *from, struct weir_gpu_record *to)
{
    READ_WORK(from, to, WEIR_GPU_RECORD_MEMSET);
    to->bytes = from->bytes;
    to->to_kind = memory_kind(from->memoryKind);
}

/* Returns the cudaEventRecord call that a wait refers to. Both records usually have the same sync id. Otherwise chooses
 * the event's last cudaEventRecord before the wait, by correlation id, which increases with time. */
static const struct weir_cupti_recorded *recorded_for(const struct weir_gpu_records *records,
                                                      const CUpti_ActivitySynchronization2 *wait)
{
    if (!records->recorded || !records->recorded_in_order)
        return NULL;
    const struct weir_cupti_recorded key = {.sync_id = wait->cudaEventSyncId};
    bool has_id = wait->cudaEventSyncId != 0 && wait->cudaEventSyncId != CUPTI_SYNCHRONIZATION_INVALID_VALUE;
    const struct weir_cupti_recorded *found =
        has_id ? bsearch(&key, records->recorded, records->n_recorded, sizeof key, by_sync_id) : NULL;
    if (found)
        return found;
    const struct weir_cupti_recorded last = {
        .context = wait->contextId, .event = wait->cudaEventId, .correlation = wait->correlationId};
    size_t low = 0, high = records->n_recorded;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (by_order(&records->recorded_in_order[middle], &last) < 0)
            low = middle + 1;
        else
            high = middle;
    }
    const struct weir_cupti_recorded *before = low > 0 ? &records->recorded_in_order[low - 1] : NULL;
    return before && before->context == last.context && before->event == last.event ? before : NULL;
}

static void read_sync(const struct weir_gpu_records *records, const CUpti_ActivitySynchronization2 *from,
                      struct weir_gpu_record *to)
{
    bool for_event = from->type == CUPTI_ACTIVITY_SYNCHRONIZATION_TYPE_EVENT_SYNCHRONIZE ||
                     from->type == CUPTI_ACTIVITY_SYNCHRONIZATION_TYPE_STREAM_WAIT_EVENT;
    const struct weir_cupti_recorded *recorded = for_event ? recorded_for(records, from) : NULL;
    uint32_t device = from->contextId < WEIR_CUPTI_CONTEXTS ? records->context_device[from->contextId] : UINT32_MAX;
    to->kind = WEIR_GPU_RECORD_SYNC;
    to->start_ns = from->start;
    to->end_ns = from->end;
    to->correlation = from->correlationId;
    to->device = device != UINT32_MAX ? device : 0;
    to->context = from->contextId;
    to->stream = from->streamId == CUPTI_SYNCHRONIZATION_INVALID_VALUE ? UINT32_MAX : from->streamId;
    to->sync = from->type <= CUPTI_ACTIVITY_SYNCHRONIZATION_TYPE_CONTEXT_SYNCHRONIZE ? (uint8_t)from->type : 0;
    to->event = from->cudaEventId;
    to->recorded_by = recorded ? (int64_t)recorded->correlation : -1;
    to->recorded_on = recorded ? (int64_t)recorded->stream : -1;
}

/* Returns false for pinned host memory, which is not GPU memory. */
static bool read_memory(const CUpti_ActivityMemory4 *from, struct weir_gpu_record *to)
{
    bool release = from->memoryOperationType == CUPTI_ACTIVITY_MEMORY_OPERATION_TYPE_RELEASE;
    if (from->memoryKind != CUPTI_ACTIVITY_MEMORY_KIND_DEVICE && from->memoryKind != CUPTI_ACTIVITY_MEMORY_KIND_MANAGED)
        return false;
    to->kind = WEIR_GPU_RECORD_MEMORY;
    to->start_ns = to->end_ns = from->timestamp;
    to->pid = to->tid = (int32_t)from->processId; /* the main thread, because CUPTI reports no thread */
    to->correlation = from->correlationId;
    to->device = from->deviceId;
    to->memory_bytes = release ? -(int64_t)from->bytes : (int64_t)from->bytes;
    to->address = from->address;
    return true;
}

static void read_overhead(const CUpti_ActivityOverhead3 *from, struct weir_gpu_record *to)
{
    to->kind = WEIR_GPU_RECORD_OVERHEAD;
    to->start_ns = from->start;
    to->end_ns = from->end;
    to->name = overhead_kind(from->overheadKind);
    if (from->objectKind == CUPTI_ACTIVITY_OBJECT_THREAD)
        to->tid = (int32_t)from->objectId.pt.threadId;
}

static bool read_record(const struct weir_gpu_records *records, const CUpti_Activity *from, struct weir_gpu_record *to)
{
    switch (from->kind) {
    case CUPTI_ACTIVITY_KIND_RUNTIME:
    case CUPTI_ACTIVITY_KIND_DRIVER:
        read_call(records, (const CUpti_ActivityAPI *)from, to);
        return true;
    case CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL:
        read_kernel((const CUpti_ActivityKernel10 *)from, to);
        return true;
    case CUPTI_ACTIVITY_KIND_MEMCPY:
        read_copy((const CUpti_ActivityMemcpy6 *)from, to);
        return true;
    case CUPTI_ACTIVITY_KIND_MEMCPY2:
        read_peer_copy((const CUpti_ActivityMemcpyPtoP4 *)from, to);
        return true;
    case CUPTI_ACTIVITY_KIND_MEMSET:
        read_memset((const CUpti_ActivityMemset4 *)from, to);
        return true;
    case CUPTI_ACTIVITY_KIND_SYNCHRONIZATION:
        read_sync(records, (const CUpti_ActivitySynchronization2 *)from, to);
        return true;
    case CUPTI_ACTIVITY_KIND_MEMORY2:
        return read_memory((const CUpti_ActivityMemory4 *)from, to);
    case CUPTI_ACTIVITY_KIND_OVERHEAD:
        read_overhead((const CUpti_ActivityOverhead3 *)from, to);
        return true;
    default:
        return false;
    }
}

struct reader {
    const struct weir_gpu_records *records;
    void (*on_record)(void *user, const struct weir_gpu_record *record);
    void *user;
};

static void hand_out(void *user, const CUpti_Activity *from)
{
    const struct reader *reader = user;
    struct weir_gpu_record record = {
        .name = "", .from_device = -1, .to_device = -1, .recorded_by = -1, .recorded_on = -1};
    if (!read_record(reader->records, from, &record))
        return;
    record.start_ns = time_of(reader->records, record.start_ns);
    record.end_ns = time_of(reader->records, record.end_ns);
    reader->on_record(reader->user, &record);
}

void weir_cupti_records_each(struct weir_gpu_records *records,
                             void (*on_record)(void *user, const struct weir_gpu_record *record), void *user)
{
    struct reader reader = {records, on_record, user};
    if (!records->prepared)
        prepare(records);
    walk(records, hand_out, &reader);
}
