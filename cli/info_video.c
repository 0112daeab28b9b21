/* The part of weir info that describes videos. */
#include "cli/info_print.h"
#include "datasets/open_dataset.h"
#include "decoders/video/video.h"
#include "pipeline/samples/probe.h"

/* Returns the name of the pictures' colour matrix, or NULL if they have no tag. */
static const char *color_name(const struct weir_camera_probe *probe)
{
    switch (probe->matrix) {
    case WEIR_MATRIX_709:
        return "BT.709";
    case WEIR_MATRIX_BT470BG:
    case WEIR_MATRIX_601:
        return "BT.601";
    case WEIR_MATRIX_FCC:
        return "FCC";
    case WEIR_MATRIX_SMPTE240M:
        return "SMPTE 240M";
    case WEIR_MATRIX_2020:
    case WEIR_MATRIX_2020_CONSTANT:
        return "BT.2020";
    default:
        return NULL;
    }
}

void weir_info_video(FILE *out, const struct weir_dataset *dataset, int camera, const struct weir_camera_probe *probe,
                     double fetch_s)
{
    struct weir_video_facts facts;
    if (!weir_dataset_video_facts(dataset, camera, &facts))
        return;
    const char *color = color_name(probe);
    fprintf(out, "video: %s: %s (%s)", weir_dataset_camera(dataset, camera)->name, facts.codec, facts.stream->fourcc);
    if (facts.pixels[0])
        fprintf(out, ", %s", facts.pixels);
    if (color)
        fprintf(out, ", %s", color);
    if (probe->is_full_range)
        fprintf(out, ", full range");
    if (facts.stream->tracks > 1)
        fprintf(out,
                ", track %d of %d video tracks (the best one, as torchcodec chooses; PyAV and OpenCV read the first)",
                facts.stream->number, facts.stream->tracks);
    fprintf(out,
            ", %.5g fps, %d file%s; a key frame every %u frames (median; at most %u), so "
            "that a random one needs %.3g decoded",
            facts.fps, facts.videos, facts.videos == 1 ? "" : "s", facts.group_median, facts.group_max,
            facts.random_pictures);
    if (fetch_s > 0)
        fprintf(out, "; loading a random frame takes %.3g ms on one core", fetch_s * 1e3);
    fprintf(out, "\n");
}

void weir_info_video_json(struct weir_json *json, const struct weir_dataset *dataset, int camera,
                          const struct weir_camera_probe *probe, double fetch_s)
{
    struct weir_video_facts facts;
    if (!weir_dataset_video_facts(dataset, camera, &facts))
        return;
    weir_json_object(json, "video");
    weir_json_text(json, "codec", facts.codec);
    weir_json_text(json, "fourcc", facts.stream->fourcc);
    weir_json_text(json, "pixels", facts.pixels[0] ? facts.pixels : NULL);
    weir_json_text(json, "matrix", color_name(probe));
    weir_json_bool(json, "full_range", probe->is_full_range);
    weir_json_double(json, "fps", facts.fps);
    weir_json_int(json, "files", facts.videos);
    weir_json_int(json, "track", facts.stream->number);
    weir_json_int(json, "tracks", facts.stream->tracks);
    weir_json_text(json, "display_matrix", facts.stream->turn);
    weir_json_uint(json, "key_frame_distance_median", facts.group_median);
    weir_json_uint(json, "key_frame_distance_max", facts.group_max);
    weir_json_double(json, "random_frame_pictures", facts.random_pictures);
    weir_json_double(json, "random_frame_s", fetch_s);
    weir_json_end(json, '}');
}
