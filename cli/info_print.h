/* info_print.h: prints the output of weir info for one dataset. */
#ifndef WEIR_CLI_INFO_PRINT_H
#define WEIR_CLI_INFO_PRINT_H

#include "base/fields.h"
#include "cli/commands.h"
#include "weir/base.h"
#include "weir/dataset.h"

/* Prints one dataset as a JSON object to json, or as text to stdout if json is NULL. At depth 0, the object is a whole
 * document with its schema. tolerant: skip bad frames. Prints nothing on failure. */
int weir_info_print(struct weir_dataset *dataset, const char *path, bool tolerant, struct weir_json *json,
                    struct weir_err *err);

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
