/* survey.h: the files of a folder, in groups of files that can be loaded together. */
#ifndef WEIR_PIPELINE_SURVEY_H
#define WEIR_PIPELINE_SURVEY_H

#include "weir/dataset.h"

/* Files with the same layout, dimensions, cameras, codecs, sizes and traits. */
struct weir_survey_group {
    char *kind;                  /* all of these except the traits in one string, for comparison */
    char *traits;                /* of all of them together (datasets/open_dataset.h) */
    char *path;                  /* common folder of these files, or the path of the only file */
    bool alone;                  /* that folder contains no files of other groups */
    struct weir_path_list files; /* in the order of the folder's files */
};

struct weir_survey {
    struct weir_survey_group *groups; /* sorted by first file, in the order of the folder */
    int n, n_files;
    struct weir_path_list bad; /* files that cannot be opened, as "PATH: reason" */
};

/* Opens every file below config->path separately and examines the first frame of each camera. If this fails (out of
 * memory, or no such folder), the survey is empty. */
int weir_survey_open(struct weir_survey *survey, const struct weir_dataset_config *config, struct weir_err *err);
void weir_survey_close(struct weir_survey *survey);

#endif
