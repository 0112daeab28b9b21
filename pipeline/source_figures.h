/* source_figures.h: what reading and decoding took of each camera and each file of a loader so far. */
#ifndef WEIR_PIPELINE_SOURCE_FIGURES_H
#define WEIR_PIPELINE_SOURCE_FIGURES_H

#include "prof/record/recorder.h"

struct weir_loader;

/* What is counted: sources.h says what belongs to it. */
enum weir_source_kind { WEIR_SOURCE_READ, WEIR_SOURCE_DECODE, WEIR_SOURCES };

enum { WEIR_SOURCE_CALLS = 10 };

struct weir_source_camera {
    struct weir_stage_stats stats[WEIR_SOURCES]; /* count, total, min, max and histogram */
    uint64_t bytes[WEIR_SOURCES];                /* read; as stored, of the frames decoded */
};

/* Reads of frames of one file. Of a block of chunks, all that was read of it is one read. */
struct weir_source_file_figures {
    uint64_t count, total_ns, max_ns;
    uint64_t window_max_ns; /* since the figures before */
};

/* One call: of a block of chunks, of its first frame. */
struct weir_source_call {
    enum weir_source_kind kind;
    int episode, camera, t;
    uint64_t ns;
};

struct weir_source_figures {
    int n_cameras, n_files;
    struct weir_source_camera *cameras; /* by the dataset's numbers */
    struct weir_source_file_figures *files;
    int n_calls[WEIR_SOURCES], n_window_calls[WEIR_SOURCES]; /* the longest, longest first: of all, and since then */
    struct weir_source_call calls[WEIR_SOURCES][WEIR_SOURCE_CALLS], window_calls[WEIR_SOURCES][WEIR_SOURCE_CALLS];
};

/* Since the loader was opened. *out is owned by the caller. -ENOMEM. One thread at a time. */
int weir_loader_sources(struct weir_loader *loader, struct weir_source_figures **out);
void weir_source_figures_free(struct weir_source_figures **figures);

#endif
