#include "base/threads.h"
#include "cli/top/top.h"
#include "prof/processes/process_files.h"

#include <ctype.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

static const uint64_t PERIOD_NS = 1000000000u;

struct top_gpus {
    int n;
    pthread_t thread;
    pthread_mutex_t lock;
    pthread_cond_t stop_changed;
    bool stop;
    bool wanted[WEIR_NVML_GPUS], known[WEIR_NVML_GPUS];
    struct weir_nvml_gpu figures[WEIR_NVML_GPUS];
};

static void read_one(struct top_gpus *gpus, int gpu)
{
    struct weir_nvml_gpu figures;
    pthread_mutex_unlock(&gpus->lock);
    bool known = weir_nvml_read(&figures, gpu);
    pthread_mutex_lock(&gpus->lock);
    if (known)
        gpus->figures[gpu] = figures;
    gpus->known[gpu] = known;
}

static void *read_gpus(void *user)
{
    struct top_gpus *gpus = user;
    pthread_mutex_lock(&gpus->lock);
    while (!gpus->stop) {
        for (int gpu = 0; gpu < gpus->n && !gpus->stop; gpu++)
            if (gpus->wanted[gpu])
                read_one(gpus, gpu);
        if (!gpus->stop)
            weir_cond_wait_ns(&gpus->stop_changed, &gpus->lock, PERIOD_NS);
    }
    pthread_mutex_unlock(&gpus->lock);
    return NULL;
}

struct top_gpus *top_gpus_open(void)
{
    char why[256];
    int n = weir_nvml_count(why, sizeof why);
    struct top_gpus *gpus = n > 0 ? calloc(1, sizeof *gpus) : NULL;
    if (!gpus)
        return NULL;
    gpus->n = n;
    pthread_mutex_init(&gpus->lock, NULL);
    weir_cond_init(&gpus->stop_changed);
    if (weir_thread_start(&gpus->thread, read_gpus, gpus) == 0)
        return gpus;
    free(gpus);
    return NULL;
}

void top_gpus_close(struct top_gpus *gpus)
{
    if (!gpus)
        return;
    pthread_mutex_lock(&gpus->lock);
    gpus->stop = true;
    pthread_cond_signal(&gpus->stop_changed);
    pthread_mutex_unlock(&gpus->lock);
    pthread_join(gpus->thread, NULL);
    pthread_cond_destroy(&gpus->stop_changed);
    pthread_mutex_destroy(&gpus->lock);
    free(gpus);
}

/* CUDA_VISIBLE_DEVICES lists the GPUs of the host that a process can use, in its own order. */
static int visible_device(pid_t pid, int index)
{
    char list[256], *at = list, *end;
    if (!weir_process_variable("", pid, "CUDA_VISIBLE_DEVICES", list, sizeof list))
        return index;
    for (int i = 0;; i++) {
        long gpu = strtol(at, &end, 10);
        if (end == at || gpu < 0 || gpu >= WEIR_NVML_GPUS)
            return -1;
        if (i == index)
            return (int)gpu;
        if (*end != ',')
            return -1;
        at = end + 1;
    }
}

/* Finds a file such as /dev/nvidia0, which a process opens when it begins to use CUDA. */
static bool is_not_gpu_file(void *user, const char *path)
{
    static const char device[] = "nvidia";
    bool *uses = user;
    const char *name = strrchr(path, '/') + 1;
    *uses = strncmp(path, "/dev/", 5) == 0 && strncmp(name, device, sizeof device - 1) == 0 &&
            isdigit((unsigned char)name[sizeof device - 1]);
    return !*uses;
}

int top_gpus_of(struct top_gpus *gpus, pid_t pid, int local_rank)
{
    int found = -1;
    if (!gpus)
        return -1;
    for (int gpu = 0; gpu < gpus->n && found < 0; gpu++)
        if (weir_nvml_has_process(gpu, pid))
            found = gpu;
    bool uses = false;
    if (found < 0 && weir_process_files("", pid, is_not_gpu_file, &uses) && uses)
        found = visible_device(pid, local_rank > 0 ? local_rank : 0);
    if (found >= gpus->n)
        return -1;
    if (found >= 0) {
        pthread_mutex_lock(&gpus->lock);
        gpus->wanted[found] = true;
        pthread_mutex_unlock(&gpus->lock);
    }
    return found;
}

bool top_gpus_read(struct top_gpus *gpus, int gpu, struct weir_nvml_gpu *figures)
{
    if (!gpus || gpu < 0)
        return false;
    pthread_mutex_lock(&gpus->lock);
    bool known = gpus->known[gpu];
    *figures = gpus->figures[gpu];
    pthread_mutex_unlock(&gpus->lock);
    return known;
}
