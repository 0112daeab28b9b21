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

/* Properties of all videos of one camera. */
struct weir_video_facts {
    const struct weir_video_stream *stream; /* of the first video */
    const char *codec;                      /* "AV1" */
    char pixels[16];                        /* FFmpeg's name of its pixel format: "yuv420p"; "" if unknown */
    double fps;                             /* mean rate of the first video; 0 if it has one picture */
    int videos;                             /* number of files */
    /* Pictures per group of pictures, that is, from one key frame to the next: */
    uint32_t group_median, group_max;
    double random_pictures; /* mean number of pictures to decode for one random picture */
};
/* Returns false if the camera's frames are not stored as video. */
bool weir_dataset_video_facts(const struct weir_dataset *dataset, int camera, struct weir_video_facts *facts);

#endif
