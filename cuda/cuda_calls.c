#include "cuda/cuda_context.h"

#include <pthread.h>

/* Prefers writers: otherwise threads that wait for the GPU all the time would keep the lock among themselves. Such a
 * lock must not be taken twice by one thread, so nested calls are counted. */
static pthread_rwlock_t calls = PTHREAD_RWLOCK_WRITER_NONRECURSIVE_INITIALIZER_NP;
static _Thread_local int depth;

void weir_cuda_call_begin(void)
{
    if (depth++ == 0)
        pthread_rwlock_rdlock(&calls);
}

void weir_cuda_call_end(void)
{
    if (--depth == 0)
        pthread_rwlock_unlock(&calls);
}

void weir_cuda_calls_pause(void)
{
    pthread_rwlock_wrlock(&calls);
}

void weir_cuda_calls_resume(void)
{
    pthread_rwlock_unlock(&calls);
}
