#include "extras/scenario/temporaries.h"
#include "weir/recorder.h"

#include <errno.h>
#include <stdio.h>
#include <sys/mman.h>

enum { NUMBERS_PER_MIB = (1 << 20) / sizeof(weir_real), SIZES = 4 };

static size_t numbers_of(int i)
{
    return (size_t)(1 + i % SIZES) * NUMBERS_PER_MIB;
}

/* On the CPU memory of the system: malloc keeps what is freed, as a pool does. */
static weir_real *take(const struct weir_temporaries *t, size_t numbers)
{
    if (!t->ops->host_memory)
        return t->ops->allocate(t->self, numbers);
    void *memory = mmap(NULL, numbers * sizeof(weir_real), PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    return memory == MAP_FAILED ? NULL : memory;
}

static weir_real *allocate(const struct weir_temporaries *t, int i, struct weir_err *err)
{
    weir_real *memory = take(t, numbers_of(i));
    if (memory)
        weir_memory_reserved((int64_t)(numbers_of(i) * sizeof *memory), t->device);
    else
        weir_err_set(err, -ENOMEM, "%s: there are no %d MiB of memory left; take a smaller batch",
                     weir_name_text(t->names[i]), 1 + i % SIZES);
    return memory;
}

static void release(const struct weir_temporaries *t, int i, weir_real *memory)
{
    if (!memory)
        return;
    weir_memory_reserved(-(int64_t)(numbers_of(i) * sizeof *memory), t->device);
    if (t->ops->host_memory)
        munmap(memory, numbers_of(i) * sizeof *memory);
    else
        t->ops->release(t->self, memory);
}

int weir_temporaries_open(struct weir_temporaries *t, struct weir_err *err)
{
    for (int i = 0; i < WEIR_TEMPORARIES; i++) {
        char name[32];
        snprintf(name, sizeof name, "temporary_%02d", i);
        t->names[i] = weir_name_intern(name, WEIR_CAT_CPU_OP);
        t->kept[i] = NULL;
    }
    for (int i = 0; i < WEIR_TEMPORARIES && t->pool; i++)
        if (!(t->kept[i] = allocate(t, i, err)))
            return -ENOMEM;
    return 0;
}

void weir_temporaries_close(struct weir_temporaries *t)
{
    for (int i = 0; i < WEIR_TEMPORARIES; i++) {
        release(t, i, t->kept[i]);
        t->kept[i] = NULL;
    }
}

int weir_temporaries_use(struct weir_temporaries *t, int first, int end, struct weir_err *err)
{
    for (int i = first; i < end; i++) {
        struct weir_range range = weir_range_begin(t->names[i]);
        weir_real *memory = t->pool ? t->kept[i] : allocate(t, i, err);
        if (memory) {
            weir_memory_allocated(memory, numbers_of(i) * sizeof *memory, t->device);
            t->ops->affine(t->self, numbers_of(i), 0, 1, 1, memory);
            weir_memory_freed(memory, numbers_of(i) * sizeof *memory, t->device);
        }
        if (!t->pool)
            release(t, i, memory);
        weir_range_end(&range);
        if (!memory)
            return -ENOMEM;
    }
    return 0;
}
