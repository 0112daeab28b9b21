/* Records in CUPTI's binary layout, stored and returned: cuda/cupti_records.c, cuda/cupti_read.c. Building needs
 * CUPTI's headers, but running needs neither a GPU nor CUPTI. */
#include "cuda/cupti_priv.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

static void check(bool ok, const char *what)
{
    if (ok)
        return;
    fprintf(stderr, "FAILED: %s\n", what);
    exit(1);
}

static CUptiResult CUPTIAPI give_name(CUpti_CallbackDomain domain, uint32_t cbid, const char **name)
{
    *name = domain == CUPTI_CB_DOMAIN_DRIVER_API ? "cuLaunchKernel"
            : cbid == 211                        ? "cudaLaunchKernel_v7000"
                                                 : "cudaStreamWaitEvent_ptsz_v7000";
    return CUPTI_SUCCESS;
}

enum { MANY = 64 };
static struct weir_gpu_record seen[MANY];
static int n_seen;

static void see(void *user, const struct weir_gpu_record *record)
{
    (void)user;
    check(n_seen < MANY, "too many records");
    seen[n_seen++] = *record;
}

static struct weir_gpu_records *records;

static uint64_t unix_now_ns(void)
{
    struct timespec now;
    clock_gettime(CLOCK_REALTIME, &now);
    return (uint64_t)now.tv_sec * 1000000000 + (uint64_t)now.tv_nsec;
}

/* A clock that is slower than Unix time by one part in sixteen. */
static uint64_t clock_of(uint64_t unix_ns)
{
    static uint64_t first_ns;
    first_ns = first_ns ? first_ns : unix_ns;
    return UINT64_C(1000000000000) + (unix_ns - first_ns) / 16 * 15;
}

static uint64_t clock_ns(void)
{
    return clock_of(unix_now_ns());
}

static void begin(uint64_t bytes_max)
{
    records = weir_cupti_records_new(bytes_max, clock_ns);
    n_seen = 0;
    check(records != NULL, "no memory");
}

static void finish(void)
{
    const struct weir_cupti cupti = {.get_callback_name = give_name};
    weir_cupti_records_finish(records, &cupti, clock_ns);
    weir_cupti_records_each(records, see, NULL);
}

static void keep(const void *record)
{
    weir_cupti_records_keep(records, record);
}

static void end(uint64_t dropped)
{
    check(weir_cupti_records_dropped(records) == dropped, "lost records are not counted");
    weir_cupti_records_free(records);
}

static void add_event(uint32_t context, uint32_t event, uint64_t sync_id, uint32_t correlation, uint32_t stream)
{
    CUpti_ActivityCudaEvent2 record = {.kind = CUPTI_ACTIVITY_KIND_CUDA_EVENT,
                                       .contextId = context,
                                       .eventId = event,
                                       .cudaEventSyncId = sync_id,
                                       .correlationId = correlation,
                                       .streamId = stream,
                                       .deviceId = 3};
    keep(&record);
}

static void add_wait(uint32_t context, uint32_t event, uint64_t sync_id, uint32_t correlation)
{
    CUpti_ActivitySynchronization2 record = {.kind = CUPTI_ACTIVITY_KIND_SYNCHRONIZATION,
                                             .type = CUPTI_ACTIVITY_SYNCHRONIZATION_TYPE_EVENT_SYNCHRONIZE,
                                             .start = 1500000,
                                             .end = 1500100,
                                             .contextId = context,
                                             .streamId = CUPTI_SYNCHRONIZATION_INVALID_VALUE,
                                             .cudaEventId = event,
                                             .cudaEventSyncId = sync_id,
                                             .correlationId = correlation};
    keep(&record);
}

/* A wait is linked to its event record by CUPTI's number, or otherwise to the event's last record before the wait. */
static void test_waits_find_their_records(void)
{
    begin(1 << 20);
    add_event(1, 7, 101, 10, 20);
    add_event(1, 7, 102, 30, 21);
    add_event(2, 7, 103, 25, 22); /* in another context */
    add_wait(1, 7, 101, 40);
    add_wait(1, 7, 999, 29);
    add_wait(1, 7, 0, 50);
    add_wait(1, 8, 0, 50);
    add_wait(1, 7, 0, 5);
    finish();
    static const int64_t by[] = {10, 10, 30, -1, -1}, on[] = {20, 20, 21, -1, -1};
    check(n_seen == 5, "event records are returned");
    for (int i = 0; i < 5; i++) {
        check(seen[i].recorded_by == by[i] && seen[i].recorded_on == on[i], "a wait has the wrong event record");
        check(seen[i].device == 3, "the context's device is not taken from other records");
        check(seen[i].stream == UINT32_MAX && seen[i].sync == WEIR_GPU_SYNC_EVENT, "no stream");
    }
    end(0);
}

static CUpti_ActivityKernel10 a_kernel(const char *name)
{
    return (CUpti_ActivityKernel10){.kind = CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL,
                                    .name = name,
                                    .start = 1100000,
                                    .end = 1200000,
                                    .gridX = 2,
                                    .gridY = 3,
                                    .gridZ = 4,
                                    .blockX = 32,
                                    .blockY = 1,
                                    .blockZ = 1,
                                    .registersPerThread = 16,
                                    .streamId = 7,
                                    .correlationId = 5};
}

static void test_names_outlive_cupti(void)
{
    char *text = strdup("_Z4busyPfi");
    begin(1 << 20);
    CUpti_ActivityKernel10 kernel = a_kernel(text);
    keep(&kernel);
    strcpy(text, "plain"); /* the same address now contains another kernel's name */
    keep(&kernel);
    free(text);
    CUpti_ActivityAPI call = {
        .kind = CUPTI_ACTIVITY_KIND_RUNTIME, .cbid = 211, .start = 1, .end = 2, .threadId = 9, .correlationId = 5};
    keep(&call);
    call.cbid = 147;
    keep(&call);
    call.kind = CUPTI_ACTIVITY_KIND_DRIVER;
    keep(&call);
    finish();
    check(n_seen == 5, "the number of records is wrong");
    check(strcmp(seen[0].name, "busy(float*, int)") == 0, "a mangled name is not demangled");
    check(strcmp(seen[1].name, "plain") == 0, "an unmangled name is changed");
    check(seen[0].grid[2] == 4 && seen[0].block[0] == 32 && seen[0].registers == 16 && seen[0].stream == 7,
          "the attributes of a kernel are wrong");
    check(strcmp(seen[2].name, "cudaLaunchKernel") == 0, "the version is not removed");
    check(strcmp(seen[3].name, "cudaStreamWaitEvent_ptsz") == 0, "the default stream is not kept");
    check(seen[4].kind == WEIR_GPU_RECORD_DRIVER && strcmp(seen[4].name, "cuLaunchKernel") == 0,
          "the driver's name is wrong");
    check(seen[2].tid == 9, "the thread is wrong");
    weir_cupti_records_each(records, see, NULL);
    check(n_seen == 10 && strcmp(seen[5].name, seen[0].name) == 0, "records cannot be read again");
    end(0);
}

static void test_what_is_lost_is_counted(void)
{
    begin(300);
    CUpti_ActivityKernel10 kernel = a_kernel("kernel");
    keep(&kernel);
    keep(&kernel); /* no space left */
    kernel.start = kernel.end = 0;
    keep(&kernel); /* without times */
    CUpti_ActivityAPI call = {.kind = CUPTI_ACTIVITY_KIND_RUNTIME, .cbid = 0xffffff, .start = 1, .end = 2};
    keep(&call); /* an unknown function */
    CUpti_Activity other = {.kind = CUPTI_ACTIVITY_KIND_DEVICE};
    keep(&other); /* a kind that was not requested */
    weir_cupti_records_lost(records, 100);
    finish();
    check(n_seen == 1, "more than one record is kept");
    end(103);
}

/* Returns the largest error of a kernel's start time if CUPTI's times are Unix time. */
static int64_t unix_times_off_ns(void)
{
    uint64_t starts_ns[3];
    int64_t worst_ns = 0;
    enum { KERNELS = 3, APART_US = 20000 };
    begin(1 << 20);
    for (int i = 0; i < KERNELS; i++) {
        usleep(APART_US);
        CUpti_ActivityKernel10 kernel = a_kernel("kernel");
        kernel.start = unix_now_ns();
        kernel.end = kernel.start + 500;
        starts_ns[i] = clock_of(kernel.start);
        keep(&kernel);
    }
    usleep(APART_US);
    finish();
    for (int i = 0; i < KERNELS; i++) {
        int64_t off_ns = (int64_t)(seen[i].start_ns - starts_ns[i]);
        worst_ns = llabs(off_ns) > worst_ns ? llabs(off_ns) : worst_ns;
        check(seen[i].end_ns - seen[i].start_ns < 600, "the duration is wrong");
    }
    end(0);
    return worst_ns;
}

/* After a teardown, CUPTI may report Unix time again, which must be converted to our clock. Several attempts are
 * allowed, since other processes may take the core between a reading of Unix time and one of our clock. */
static void test_unix_times_are_brought_back(void)
{
    enum { OFF_NS = 20000 };
    int64_t off_ns = OFF_NS;
    for (int i = 0; i < 50 && off_ns >= OFF_NS; i++)
        off_ns = unix_times_off_ns();
    check(off_ns < OFF_NS, "times do not follow our clock");
}

static void test_copies_and_memory(void)
{
    begin(1 << 20);
    CUpti_ActivityMemcpy6 copy = {.kind = CUPTI_ACTIVITY_KIND_MEMCPY,
                                  .copyKind = CUPTI_ACTIVITY_MEMCPY_KIND_HTOD,
                                  .srcKind = CUPTI_ACTIVITY_MEMORY_KIND_PINNED,
                                  .dstKind = CUPTI_ACTIVITY_MEMORY_KIND_DEVICE,
                                  .bytes = 77,
                                  .start = 1100000,
                                  .end = 1100001};
    keep(&copy);
    CUpti_ActivityMemory4 memory = {.kind = CUPTI_ACTIVITY_KIND_MEMORY2,
                                    .memoryOperationType = CUPTI_ACTIVITY_MEMORY_OPERATION_TYPE_RELEASE,
                                    .memoryKind = CUPTI_ACTIVITY_MEMORY_KIND_DEVICE,
                                    .bytes = 4096,
                                    .timestamp = 1100002,
                                    .address = 99};
    keep(&memory);
    memory.memoryKind = CUPTI_ACTIVITY_MEMORY_KIND_PINNED; /* host memory */
    keep(&memory);
    finish();
    check(n_seen == 2, "pinned memory is counted as the GPU's");
    check(strcmp(seen[0].copy_kind, "HtoD") == 0 && strcmp(seen[0].from_kind, "Pinned") == 0 &&
              strcmp(seen[0].to_kind, "Device") == 0 && seen[0].bytes == 77 && seen[0].from_device == -1,
          "a copy");
    check(seen[1].memory_bytes == -4096 && seen[1].address == 99 && seen[1].start_ns == 1100002,
          "freed memory is not negative");
    end(0);
}

int main(void)
{
    test_waits_find_their_records();
    test_names_outlive_cupti();
    test_what_is_lost_is_counted();
    test_unix_times_are_brought_back();
    test_copies_and_memory();
    return 0;
}
