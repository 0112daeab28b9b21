#include "cuda/cuda_context.h"

#include <dlfcn.h>
#include <pthread.h>
#include <stddef.h>
#include <string.h>

#include <cuda.h>

static struct {
    pthread_once_t once;
    CUresult (*get)(CUcontext *context);
    CUresult (*set)(CUcontext context);
} current = {.once = PTHREAD_ONCE_INIT};

static void load_driver(void)
{
    void *driver = dlopen("libcuda.so.1", RTLD_NOW | RTLD_LOCAL); /* the runtime has it open: not closed here */
    void *get = driver ? dlsym(driver, "cuCtxGetCurrent") : NULL,
         *set = driver ? dlsym(driver, "cuCtxSetCurrent") : NULL;
    memcpy(&current.get, &get, sizeof get);
    memcpy(&current.set, &set, sizeof set);
}

void *weir_cuda_context_now(void)
{
    CUcontext context = NULL;
    pthread_once(&current.once, load_driver);
    if (current.get && current.set)
        current.get(&context);
    return context;
}

void weir_cuda_context_set(void *context)
{
    pthread_once(&current.once, load_driver);
    if (current.set)
        current.set(context);
}
