/* report_sources.h: the part of a report that says which camera, which file. */
#ifndef WEIR_PIPELINE_REPORT_REPORT_SOURCES_H
#define WEIR_PIPELINE_REPORT_REPORT_SOURCES_H

#include <stdbool.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

enum { WEIR_REPORT_CAMERAS = 16, WEIR_REPORT_FILES = 3, WEIR_REPORT_CALLS = 20, WEIR_REPORT_CALLS_SHOWN = 10 };

/* Reading or decoding. */
struct weir_report_source {
    uint64_t count, bytes;
    double total_s, p50_s, p99_s, max_s;
};

struct weir_report_camera {
    char name[64];
    struct weir_report_source read, decode;
};

/* Reads of one file. */
struct weir_report_file {
    char name[256];
    uint64_t count;
    double mean_s, max_s;
};

struct weir_report_call {
    char file[256]; /* and the episode's group there */
    char camera[64];
    int64_t t;
    bool decode; /* else it is a read */
    double s;
};

/* In the time covered; nothing is printed where nothing was read or decoded. */
struct weir_report_sources {
    int n_cameras;
    struct weir_report_camera cameras[WEIR_REPORT_CAMERAS];
    uint64_t files_read;   /* files that were read from */
    double files_median_s; /* the median of their means */
    int n_files;           /* the slowest, by mean, slowest first */
    struct weir_report_file files[WEIR_REPORT_FILES];
    int n_calls; /* the longest, longest first: at most ten reads and ten of decoding */
    struct weir_report_call calls[WEIR_REPORT_CALLS];
};

#ifdef __cplusplus
}
#endif

#endif
