/* info_print.h: describes one dataset for weir info. */
#ifndef WEIR_CLI_INFO_PRINT_H
#define WEIR_CLI_INFO_PRINT_H

#include "base/document.h"
#include "cli/commands.h"
#include "weir/base.h"
#include "weir/dataset.h"

/* Describes one dataset, in_list as an element of the open array. tolerant: skip bad frames. Describes nothing on
 * failure. */
int weir_info_describe(struct weir_document *document, struct weir_dataset *dataset, const char *path, bool tolerant,
                       bool in_list, struct weir_err *err);

/* Lengths of a dataset's episodes, in steps. */
struct weir_lengths {
    int min, max;
    double median;
};
extern const struct weir_fields weir_lengths_fields;
/* Returns false if out of memory. */
bool weir_lengths_of(const struct weir_dataset *dataset, struct weir_lengths *lengths);

struct weir_camera_probe;

/* Print the videos of a camera, as a line and as a member of a JSON object; nothing if it has no videos.
 * fetch_s: measured time to load a random frame; 0 = unknown. */
void weir_info_video(FILE *out, const struct weir_dataset *dataset, int camera, const struct weir_camera_probe *probe,
                     double fetch_s);
void weir_info_video_json(struct weir_json *json, const struct weir_dataset *dataset, int camera,
                          const struct weir_camera_probe *probe, double fetch_s);

#endif
