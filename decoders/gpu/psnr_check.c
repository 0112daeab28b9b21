#include "decoders/gpu/psnr_check.h"

#include <errno.h>
#include <math.h>
#include <pthread.h>
#include <stdlib.h>

enum { SLOTS = 2 * WEIR_PSNR_CHECK_KINDS_MAX }; /* a power of two, at most half full */

struct verdict {
    uint64_t key, frames;
    int by_engine; /* number of frames that the engine itself refused */
    bool used, compared;
    enum weir_jpeg_refusal refusal; /* WEIR_JPEG_TAKEN: the kind is not refused */
};

struct weir_psnr_check {
    pthread_mutex_t lock;
    struct verdict slots[SLOTS];
    struct verdict others[WEIR_GPU_JPEG_ENGINES]; /* shared by the kinds for which the table has no room */
    struct weir_psnr_check_counts counts;
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

int weir_psnr_check_open(struct weir_psnr_check **out, struct weir_err *err)
{
    *out = NULL;
    struct weir_psnr_check *check = calloc(1, sizeof *check);
    if (!check)
        return weir_err_set(err, -ENOMEM, "out of memory");
    pthread_mutex_init(&check->lock, NULL);
    check->counts.least_db = WEIR_PSNR_MAX_DB;
    *out = check;
    return 0;
}

void weir_psnr_check_close(struct weir_psnr_check **check)
{
    if (!*check)
        return;
    pthread_mutex_destroy(&(*check)->lock);
    free(*check);
    *check = NULL;
}

/* Returns the slot of a kind, or the empty slot where it would be added. The engine is part of the key, because engines
 * differ in their output. */
static struct verdict *slot_of(struct weir_psnr_check *check, enum weir_gpu_jpeg_engine engine, uint64_t kind,
                               uint64_t *key)
{
    *key = kind ^ (uint64_t)engine * UINT64_C(0x9E3779B97F4A7C15);
    size_t i = (size_t)(*key ^ *key >> 32) & (SLOTS - 1);
    while (check->slots[i].used && check->slots[i].key != *key)
        i = (i + 1) & (SLOTS - 1);
    return &check->slots[i];
}

static struct verdict *verdict_of(struct weir_psnr_check *check, enum weir_gpu_jpeg_engine engine, uint64_t kind)
{
    uint64_t key;
    struct verdict *verdict = slot_of(check, engine, kind, &key);
    if (verdict->used)
        return verdict;
    if (check->counts.kinds >= WEIR_PSNR_CHECK_KINDS_MAX)
        return &check->others[engine];
    verdict->key = key;
    verdict->used = true;
    check->counts.kinds++;
    return verdict;
}

enum weir_jpeg_refusal weir_psnr_check_refusal(struct weir_psnr_check *check, enum weir_gpu_jpeg_engine engine,
                                               uint64_t kind)
{
    uint64_t key;
    pthread_mutex_lock(&check->lock);
    const struct verdict *verdict = slot_of(check, engine, kind, &key);
    if (!verdict->used && check->counts.kinds >= WEIR_PSNR_CHECK_KINDS_MAX)
        verdict = &check->others[engine];
    enum weir_jpeg_refusal refusal = verdict->refusal;
    pthread_mutex_unlock(&check->lock);
    return refusal;
}

enum weir_psnr_advice weir_psnr_check_advise(struct weir_psnr_check *check, enum weir_gpu_jpeg_engine engine,
                                             uint64_t kind)
{
    pthread_mutex_lock(&check->lock);
    struct verdict *verdict = verdict_of(check, engine, kind);
    enum weir_psnr_advice advice = WEIR_PSNR_USE;
    if (verdict->refusal)
        advice = WEIR_PSNR_REFUSE;
    else if (!verdict->compared || verdict->frames % WEIR_PSNR_CHECK_EVERY == 0)
        advice = WEIR_PSNR_COMPARE;
    check->counts.refused += verdict->refusal != WEIR_JPEG_TAKEN;
    verdict->frames++;
    pthread_mutex_unlock(&check->lock);
    return advice;
}

bool weir_psnr_check_report(struct weir_psnr_check *check, enum weir_gpu_jpeg_engine engine, uint64_t kind, double db)
{
    bool below = !(db >= WEIR_PSNR_LEAST_DB);
    pthread_mutex_lock(&check->lock);
    struct verdict *verdict = verdict_of(check, engine, kind);
    check->counts.compared++;
    check->counts.below += below;
    check->counts.kinds_refused += below && !verdict->refusal;
    if (db < check->counts.least_db)
        check->counts.least_db = db;
    verdict->compared = true;
    if (below && !verdict->refusal)
        verdict->refusal = WEIR_JPEG_PSNR_REFUSED;
    pthread_mutex_unlock(&check->lock);
    return !below;
}

void weir_psnr_check_engine_refused(struct weir_psnr_check *check, enum weir_gpu_jpeg_engine engine, uint64_t kind)
{
    pthread_mutex_lock(&check->lock);
    struct verdict *verdict = verdict_of(check, engine, kind);
    if (!verdict->refusal && ++verdict->by_engine == WEIR_PSNR_CHECK_REFUSALS) {
        check->counts.kinds_refused++;
        verdict->refusal = WEIR_JPEG_ENGINE_REFUSED;
    }
    pthread_mutex_unlock(&check->lock);
}

void weir_psnr_check_counts(struct weir_psnr_check *check, struct weir_psnr_check_counts *counts)
{
    pthread_mutex_lock(&check->lock);
    *counts = check->counts;
    pthread_mutex_unlock(&check->lock);
}
