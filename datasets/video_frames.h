/* video_frames.h: frames of a dataset that are pictures of a video (WEIR_HOW_VIDEO). */
#ifndef WEIR_DATASETS_VIDEO_FRAMES_H
#define WEIR_DATASETS_VIDEO_FRAMES_H

#include "datasets/video/video_track.h"
#include "weir/dataset.h"

/* Returns the video of a camera in an episode, and the number of its file (weir_dataset_read_file). Returns NULL if the
 * camera's frames are not stored as video. */
const struct weir_video_track *weir_dataset_video(const struct weir_dataset *dataset, int episode, int camera,
                                                  int *file);
/* Returns the number of frame t in the video, in presentation order. */
uint32_t weir_dataset_video_rank(const struct weir_dataset *dataset, int episode, int camera, int t);

#endif
