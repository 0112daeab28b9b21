/* cupti_priv.h: what the files that record by CUPTI share. Part of the CUDA module.
 *
 *   cupti_library.c   the library, opened when it is first needed; its errors as lines
 *   cupti.c           recording: buffers, start, stop, tear-down
 *   cupti_records.c   what was collected: kept as CUPTI gave it
 *   cupti_read.c      the same as events of gpu_trace_ops.h */
#ifndef WEIR_CUDA_CUPTI_PRIV_H
#define WEIR_CUDA_CUPTI_PRIV_H

#include "prof/gpu/gpu_trace_ops.h"

#include <cuda_runtime_api.h>
#include <cupti.h>

/* The functions that are used, by their names without cupti. */
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
    /* NULL where the library is too old for them. */
    __typeof__(&cuptiActivityEnableDriverApi) enable_driver_api;
    __typeof__(&cuptiActivityEnableAllSyncRecords) enable_all_sync_records;
};

/* Loads CUPTI once, on machines with a GPU. NULL with err when there is no GPU or CUPTI cannot be used. */
const struct weir_cupti *weir_cupti_open(struct weir_err *err);
/* What a result means here; what: what was tried. Calls nothing of CUPTI's. Returns a negative errno. */
int weir_cupti_fail(CUptiResult result, const char *what, struct weir_err *err);
/* Waits for all that was launched in any context there is; the calling thread's own stays what it was. 0 or -EIO. */
int weir_cupti_wait_for_gpus(struct weir_err *err);
/* A call of the driver's API, whatever it says. */
void weir_cupti_count_devices(void);
void weir_cupti_library(char *text, size_t size);
void weir_cupti_versions(int *driver, int *runtime, int *cupti);
int weir_cupti_properties(struct weir_gpu_properties *properties, int n, struct weir_err *err);

/* ---- what was collected ---- */

enum { WEIR_CUPTI_BLOCK_BYTES = 1 << 20, WEIR_CUPTI_NAME_SLOTS = 1 << 12, WEIR_CUPTI_CONTEXTS = 64 };

/* Records as CUPTI gave them, one after another; a kernel's name is a struct weir_cupti_name. */
struct weir_cupti_block {
    struct weir_cupti_block *next;
    size_t used;
    char bytes[WEIR_CUPTI_BLOCK_BYTES];
};

/* A kernel's name: CUPTI may free its text when it is torn down. */
struct weir_cupti_name {
    struct weir_cupti_name *next;
    const char *given; /* CUPTI's pointer, to find it again */
    char *shown;       /* demangled */
    char text[];
};

/* A call that recorded a CUDA event. */
struct weir_cupti_recorded {
    uint64_t sync_id;
    uint32_t context, event, correlation, stream;
};

/* One instant by two clocks. */
struct weir_cupti_instant {
    uint64_t ns;      /* the clock that was given */
    int64_t ahead_ns; /* Unix time less that */
};

struct weir_gpu_records {
    struct weir_cupti_block *first, *last;
    uint64_t bytes, bytes_max, dropped;
    struct weir_cupti_name *names[WEIR_CUPTI_NAME_SLOTS];
    const char *runtime_names[CUPTI_RUNTIME_TRACE_CBID_SIZE], *driver_names[CUPTI_DRIVER_TRACE_CBID_SIZE];
    struct weir_cupti_instant begin, end;
    /* Made when the records are first read. */
    bool prepared;
    struct weir_cupti_recorded *recorded; /* by sync_id; and by context, event, correlation */
    struct weir_cupti_recorded *recorded_in_order;
    size_t n_recorded;
    uint32_t context_device[WEIR_CUPTI_CONTEXTS]; /* by context number; UINT32_MAX = not known */
};

/* How much of a record is kept; 0: nothing, it was not asked for. */
size_t weir_cupti_record_bytes(CUpti_ActivityKind kind);
/* Asks CUDA about the devices, once: before it records. */
void weir_cupti_know_devices(void);

/* NULL: no memory. */
struct weir_gpu_records *weir_cupti_records_new(uint64_t bytes_max, uint64_t (*now_ns)(void));
/* Copies a record that is worth it; those without times, and those beyond bytes_max, are counted as lost. One thread
 * at a time. */
void weir_cupti_records_keep(struct weir_gpu_records *records, const CUpti_Activity *record);
void weir_cupti_records_lost(struct weir_gpu_records *records, uint64_t n);
/* Nothing more will come: asks for the names of the calls that there are, and what the clocks show now. */
void weir_cupti_records_finish(struct weir_gpu_records *records, const struct weir_cupti *cupti,
                               uint64_t (*now_ns)(void));

void weir_cupti_records_each(struct weir_gpu_records *records,
                             void (*on_record)(void *user, const struct weir_gpu_record *record), void *user);
uint64_t weir_cupti_records_dropped(const struct weir_gpu_records *records);
void weir_cupti_records_free(struct weir_gpu_records *records);

#endif
