/* faults.h: counts the bad frames of a run and keeps the messages about the first ones. */
#ifndef WEIR_PIPELINE_SAMPLES_FAULTS_H
#define WEIR_PIPELINE_SAMPLES_FAULTS_H

#include "weir/base.h"
#include "weir/loader.h"

#include <pthread.h>
#include <stdatomic.h>

struct weir_faults {
    pthread_mutex_t lock;
    int n;
    struct {
        char text[WEIR_FAULT_TEXT];
        uint64_t count;
    } kept[WEIR_FAULTS_MAX];
    _Atomic uint64_t bad_frames, skipped_samples, substituted_frames, changed_files;
};

void weir_faults_init(struct weir_faults *faults);
void weir_faults_destroy(struct weir_faults *faults);
/* Counts one bad frame; any thread. */
void weir_faults_add(struct weir_faults *faults, const char *text);
/* Counts one file that changed while it was read; any thread. */
void weir_faults_add_file(struct weir_faults *faults, const char *text);

#endif
