/* fetch_priv.h: shared by fetch.c, fetch_video.c and read_plan.c, which plans their reads. */
#ifndef WEIR_PIPELINE_SAMPLES_FETCH_PRIV_H
#define WEIR_PIPELINE_SAMPLES_FETCH_PRIV_H

#include "pipeline/samples/fetch.h"

/* Ensure room for this many bytes in fetcher->buffer and fetcher->row, whose contents are kept. Return 0, or a negative
 * code with fetcher->reason. */
int weir_fetch_grow_buffer(struct weir_fetcher *fetcher, size_t bytes);
int weir_fetch_grow_row(struct weir_fetcher *fetcher, size_t bytes);

void weir_fetch_video_close(struct weir_fetcher *fetcher);
/* Implements weir_fetch_frame for videos. */
int weir_fetch_video_frame(struct weir_fetcher *fetcher, int episode, int camera, int t, const uint8_t **bytes,
                           size_t *length);
/* Implements weir_fetch_frames for n frames of one block, in increasing order. */
int weir_fetch_video_frames(struct weir_fetcher *fetcher, int episode, int camera, const int *ts, int n,
                            weir_fetched_fn *fetched, void *user);

struct weir_video_track;

/* A run of a video's samples that are adjacent in the file. It is read as one extent. */
struct weir_video_run {
    uint32_t first, n;
    uint64_t offset, bytes;
};
/* Returns the run that begins with sample `first` and ends with sample `last` or before it. */
struct weir_video_run weir_video_run_from(const struct weir_video_track *track, uint32_t first, uint32_t last);

#endif
