#include "decoders/gpu/gate.h"

#include <errno.h>
#include <math.h>
#include <pthread.h>
#include <stdlib.h>

enum { SLOTS = 2 * WEIR_GATE_KINDS_MAX }; /* a power of two, half empty */

struct verdict {
    uint64_t key, frames;
    int by_engine; /* that the engine itself refused */
    bool used, told;
    enum weir_jpeg_refusal refusal; /* WEIR_JPEG_TAKEN: none */
};

struct weir_gate {
    pthread_mutex_t lock;
    struct verdict slots[SLOTS];
    struct verdict others[WEIR_GPU_JPEG_ENGINES]; /* kinds that came when the table was full */
    struct weir_gate_counts counts;
};

double weir_psnr_db(const uint8_t *a, const uint8_t *b, size_t n)
{
    uint64_t sum = 0;
    for (size_t i = 0; i < n; i++) {
        int difference = a[i] - b[i];
        sum += (uint64_t)(difference * difference);
    }
    if (sum == 0)
        return WEIR_PSNR_MAX_DB;
    double db = 10 * log10(255.0 * 255.0 * (double)n / (double)sum);
    return db < WEIR_PSNR_MAX_DB ? db : WEIR_PSNR_MAX_DB;
}

int weir_gate_open(struct weir_gate **out, struct weir_err *err)
{
    *out = NULL;
    struct weir_gate *gate = calloc(1, sizeof *gate);
    if (!gate)
        return weir_err_set(err, -ENOMEM, "out of memory");
    pthread_mutex_init(&gate->lock, NULL);
    gate->counts.least_db = WEIR_PSNR_MAX_DB;
    *out = gate;
    return 0;
}

void weir_gate_close(struct weir_gate **gate)
{
    if (!*gate)
        return;
    pthread_mutex_destroy(&(*gate)->lock);
    free(*gate);
    *gate = NULL;
}

/* The slot of a kind, or the empty one where it belongs. Engines differ, so each has its own verdict. */
static struct verdict *slot_of(struct weir_gate *gate, enum weir_gpu_jpeg_engine engine, uint64_t kind, uint64_t *key)
{
    *key = kind ^ (uint64_t)engine * UINT64_C(0x9E3779B97F4A7C15);
    size_t i = (size_t)(*key ^ *key >> 32) & (SLOTS - 1);
    while (gate->slots[i].used && gate->slots[i].key != *key)
        i = (i + 1) & (SLOTS - 1);
    return &gate->slots[i];
}

static struct verdict *verdict_of(struct weir_gate *gate, enum weir_gpu_jpeg_engine engine, uint64_t kind)
{
    uint64_t key;
    struct verdict *verdict = slot_of(gate, engine, kind, &key);
    if (verdict->used)
        return verdict;
    if (gate->counts.kinds >= WEIR_GATE_KINDS_MAX)
        return &gate->others[engine];
    verdict->key = key;
    verdict->used = true;
    gate->counts.kinds++;
    return verdict;
}

enum weir_jpeg_refusal weir_gate_refuses(struct weir_gate *gate, enum weir_gpu_jpeg_engine engine, uint64_t kind)
{
    uint64_t key;
    pthread_mutex_lock(&gate->lock);
    const struct verdict *verdict = slot_of(gate, engine, kind, &key);
    if (!verdict->used && gate->counts.kinds >= WEIR_GATE_KINDS_MAX)
        verdict = &gate->others[engine];
    enum weir_jpeg_refusal refusal = verdict->refusal;
    pthread_mutex_unlock(&gate->lock);
    return refusal;
}

enum weir_gate_advice weir_gate_ask(struct weir_gate *gate, enum weir_gpu_jpeg_engine engine, uint64_t kind)
{
    pthread_mutex_lock(&gate->lock);
    struct verdict *verdict = verdict_of(gate, engine, kind);
    enum weir_gate_advice advice = WEIR_GATE_PASS;
    if (verdict->refusal)
        advice = WEIR_GATE_REFUSE;
    else if (!verdict->told || verdict->frames % WEIR_GATE_EVERY == 0)
        advice = WEIR_GATE_COMPARE;
    gate->counts.refused += verdict->refusal != WEIR_JPEG_TAKEN;
    verdict->frames++;
    pthread_mutex_unlock(&gate->lock);
    return advice;
}

bool weir_gate_tell(struct weir_gate *gate, enum weir_gpu_jpeg_engine engine, uint64_t kind, double db)
{
    bool below = !(db >= WEIR_GATE_DB);
    pthread_mutex_lock(&gate->lock);
    struct verdict *verdict = verdict_of(gate, engine, kind);
    gate->counts.compared++;
    gate->counts.below += below;
    gate->counts.kinds_refused += below && !verdict->refusal;
    if (db < gate->counts.least_db)
        gate->counts.least_db = db;
    verdict->told = true;
    if (below && !verdict->refusal)
        verdict->refusal = WEIR_JPEG_GATE_REFUSED;
    pthread_mutex_unlock(&gate->lock);
    return !below;
}

void weir_gate_refused(struct weir_gate *gate, enum weir_gpu_jpeg_engine engine, uint64_t kind)
{
    pthread_mutex_lock(&gate->lock);
    struct verdict *verdict = verdict_of(gate, engine, kind);
    if (!verdict->refusal && ++verdict->by_engine == WEIR_GATE_REFUSALS) {
        gate->counts.kinds_refused++;
        verdict->refusal = WEIR_JPEG_ENGINE_REFUSED;
    }
    pthread_mutex_unlock(&gate->lock);
}

void weir_gate_counts(struct weir_gate *gate, struct weir_gate_counts *counts)
{
    pthread_mutex_lock(&gate->lock);
    *counts = gate->counts;
    pthread_mutex_unlock(&gate->lock);
}
