/* probe.h: determines the format of a camera's frames from its first readable frame. */
#ifndef WEIR_PIPELINE_SAMPLES_PROBE_H
#define WEIR_PIPELINE_SAMPLES_PROBE_H

#include "weir/dataset.h"
#include "weir/decoder.h"

struct weir_camera_probe {
    int width, height;
    enum weir_frame_kind kind;
    struct weir_image_info image; /* not set for raw cameras */
    int episode, t;               /* position of the probed frame */
    int matrix;                   /* of the picture of a video: enum weir_matrix (decoders/video/video.h) */
    bool is_full_range;           /* the same */
};

/* Returns the kind found in the header of the probed frame (WEIR_FRAME_PNG also for depth), or the camera's kind if no
 * header was read. */
enum weir_frame_kind weir_probe_kind(const struct weir_camera_probe *probe);

/* Probes every camera. tolerant: skips up to 256 bad frames per camera. gpu: as for weir_video_open. */
int weir_probe_cameras(struct weir_dataset *dataset, bool tolerant, int gpu, struct weir_camera_probe *probes,
                       struct weir_err *err);

/* Probes one camera; skips up to 256 bad frames. Returns 0, with a width of 0 if none of those tried is readable.
 * Returns negative on a resource shortage (base/shortage.h) or if no decoder supports the frames. */
int weir_probe_camera(struct weir_dataset *dataset, int camera, struct weir_camera_probe *probe, struct weir_err *err);

/* Returns 1 if a camera's image size differs between files, judged by the first frame of each file; unreadable frames
 * are ignored. Returns 0 if not, or negative on a resource shortage (base/shortage.h). */
int weir_probe_sizes_differ(struct weir_dataset *dataset, struct weir_err *err);

/* If the largest probed image exceeds 4096 x 4096 pixels, adds its frame's name and its size to the beginning of a
 * memory error. */
void weir_probe_blame(const struct weir_dataset *dataset, const struct weir_camera_probe *probes, struct weir_err *err);

/* Writes one line if frames have EXIF orientations that the dataset's layout ignores, judged by the probed frames.
 * Returns false if they have none. */
bool weir_probe_unturned(const struct weir_dataset *dataset, const struct weir_camera_probe *probes, char *text,
                         size_t size);

/* Stores the time in seconds that one thread takes to fetch one frame of the camera: the median over n frames (at most
 * 64) spread over the dataset, or 0 if none is readable. Returns 0, or negative with err set on a resource shortage
 * (base/shortage.h). */
int weir_probe_fetch_s(struct weir_dataset *dataset, int camera, int n, double *fetch_s, struct weir_err *err);

/* Stores the CPU time in seconds to decode one frame of the camera if it were a JPEG of quality 95, or 0 if no frame is
 * readable (probe_jpeg.c). Returns 0, or negative with err set. */
int weir_probe_jpeg_s(struct weir_dataset *dataset, int camera, const struct weir_camera_probe *probe, double *jpeg_s,
                      struct weir_err *err);

#endif
