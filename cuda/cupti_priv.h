/* cupti_priv.h: declarations shared by the files that record through CUPTI. Part of the CUDA module.
 *
 *   cupti_library.c   loads the library on first use; formats its errors
 *   cupti.c           recording: buffers, start, stop, tear-down
 *   cupti_records.c   stores records in CUPTI's format
 *   cupti_read.c      converts records to the events of gpu_trace_ops.h */
#ifndef WEIR_CUDA_CUPTI_PRIV_H
#define WEIR_CUDA_CUPTI_PRIV_H

#include "prof/gpu/gpu_trace_ops.h"

#include <cuda_runtime_api.h>
#include <cupti.h>

/* The CUPTI functions in use; their names lack the prefix "cupti". */
struct weir_cupti {
    __typeof__(&cuptiGetVersion) get_version;
    __typeof__(&cuptiSubscribe) subscribe;
    __typeof__(&cuptiUnsubscribe) unsubscribe;
    __typeof__(&cuptiEnableCallback) enable_callback;
    __typeof__(&cuptiGetCallbackName) get_callback_name;
    __typeof__(&cuptiFinalize) finalize;
    __typeof__(&cuptiSetThreadIdType) set_thread_id_type;
    __typeof__(&cuptiActivityRegisterTimestampCallback) register_timestamp;
    __typeof__(&cuptiActivityRegisterCallbacks) register_callbacks;
    __typeof__(&cuptiActivityEnable) enable;
    __typeof__(&cuptiActivityDisable) disable;
    __typeof__(&cuptiActivityFlushAll) flush_all;
    __typeof__(&cuptiActivityGetNextRecord) get_next_record;
    __typeof__(&cuptiActivityGetNumDroppedRecords) get_num_dropped;
    /* NULL if the library is too old */
    __typeof__(&cuptiActivityEnableDriverApi) enable_driver_api;
    __typeof__(&cuptiActivityEnableAllSyncRecords) enable_all_sync_records;
};

/* Loads CUPTI once, if the machine has a GPU. Returns NULL with err if there is no GPU or CUPTI is unusable. */
const struct weir_cupti *weir_cupti_open(struct weir_err *err);
/* Sets err to an explanation of the result and returns a negative errno. what: the failed operation. Calls no CUPTI
 * function. */
int weir_cupti_fail(CUptiResult result, const char *what, struct weir_err *err);
/* Waits for all launched work in the primary contexts of all GPUs. Does not change the calling thread's current
 * context. Returns 0 or -EIO. */
int weir_cupti_wait_for_gpus(struct weir_err *err);
/* Makes a driver API call and ignores its result. */
void weir_cupti_count_devices(void);
void weir_cupti_library(char *text, size_t size);
void weir_cupti_versions(int *driver, int *runtime, int *cupti);
int weir_cupti_properties(struct weir_gpu_properties *properties, int n, struct weir_err *err);

/* ---- records ---- */

enum { WEIR_CUPTI_BLOCK_BYTES = 1 << 20, WEIR_CUPTI_NAME_SLOTS = 1 << 12, WEIR_CUPTI_CONTEXTS = 64 };

/* Consecutive records in CUPTI's format. The name of a kernel is replaced by a pointer to its struct weir_cupti_name.
 */
struct weir_cupti_block {
    struct weir_cupti_block *next;
    size_t used;
    char bytes[WEIR_CUPTI_BLOCK_BYTES];
};

/* A kernel's name, copied because CUPTI may free the original when it is detached. */
struct weir_cupti_name {
    struct weir_cupti_name *next;
    const char *given; /* CUPTI's pointer, which is the key */
    char *shown;       /* demangled name, or NULL */
    char text[];
};

/* A call to cudaEventRecord. */
struct weir_cupti_recorded {
    uint64_t sync_id;
    uint32_t context, event, correlation, stream;
};

/* The same instant on both clocks. */
struct weir_cupti_instant {
    uint64_t ns;      /* on the clock passed to start */
    int64_t ahead_ns; /* Unix time minus ns */
};

struct weir_gpu_records {
    struct weir_cupti_block *first, *last;
    uint64_t bytes, bytes_max, dropped;
    struct weir_cupti_name *names[WEIR_CUPTI_NAME_SLOTS];
    const char *runtime_names[CUPTI_RUNTIME_TRACE_CBID_SIZE], *driver_names[CUPTI_DRIVER_TRACE_CBID_SIZE];
    struct weir_cupti_instant begin, end;
    /* The following members are set when the records are first read. */
    bool prepared;
    struct weir_cupti_recorded *recorded;          /* sorted by sync_id */
    struct weir_cupti_recorded *recorded_in_order; /* sorted by context, event and correlation */
    size_t n_recorded;
    uint32_t context_device[WEIR_CUPTI_CONTEXTS]; /* device of each context id; UINT32_MAX: unknown */
};

/* Returns the number of bytes stored for a record of this kind; 0 if the kind was not requested. */
size_t weir_cupti_record_bytes(CUpti_ActivityKind kind);
/* Reads the device properties from CUDA on the first call, which must precede recording. */
void weir_cupti_know_devices(void);

/* Returns NULL if out of memory. */
struct weir_gpu_records *weir_cupti_records_new(uint64_t bytes_max, uint64_t (*now_ns)(void));
/* Stores a copy of a record if its kind was requested. Records without timestamps and records beyond bytes_max are
 * counted as lost. Must not be called by two threads simultaneously. */
void weir_cupti_records_keep(struct weir_gpu_records *records, const CUpti_Activity *record);
void weir_cupti_records_lost(struct weir_gpu_records *records, uint64_t n);
/* Call after the last record: determines the names of the API functions and reads both clocks. */
void weir_cupti_records_finish(struct weir_gpu_records *records, const struct weir_cupti *cupti,
                               uint64_t (*now_ns)(void));

void weir_cupti_records_each(struct weir_gpu_records *records,
                             void (*on_record)(void *user, const struct weir_gpu_record *record), void *user);
uint64_t weir_cupti_records_dropped(const struct weir_gpu_records *records);
void weir_cupti_records_free(struct weir_gpu_records *records);

#endif
