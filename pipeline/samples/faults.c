#include "pipeline/samples/file_watch.h"

#include <stdio.h>
#include <string.h>

void weir_faults_init(struct weir_faults *faults)
{
    memset(faults, 0, sizeof *faults);
    pthread_mutex_init(&faults->lock, NULL);
}

void weir_faults_destroy(struct weir_faults *faults)
{
    pthread_mutex_destroy(&faults->lock);
}

static void keep(struct weir_faults *faults, const char *text)
{
    pthread_mutex_lock(&faults->lock);
    int i = 0;
    while (i < faults->n && strncmp(faults->kept[i].text, text, WEIR_FAULT_TEXT - 1) != 0)
        i++;
    if (i == faults->n && i < WEIR_FAULTS_MAX) {
        snprintf(faults->kept[i].text, WEIR_FAULT_TEXT, "%s", text);
        faults->n++;
    }
    if (i < faults->n)
        faults->kept[i].count++;
    pthread_mutex_unlock(&faults->lock);
}

void weir_faults_add(struct weir_faults *faults, const char *text)
{
    atomic_fetch_add_explicit(&faults->bad_frames, 1, memory_order_relaxed);
    keep(faults, text);
}

void weir_faults_add_file(struct weir_faults *faults, const char *text)
{
    atomic_fetch_add_explicit(&faults->changed_files, 1, memory_order_relaxed);
    keep(faults, text);
}
