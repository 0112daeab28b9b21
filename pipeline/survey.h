/* survey.h: what a folder holds: its files in groups, each of those that can be loaded together. */
#ifndef WEIR_PIPELINE_SURVEY_H
#define WEIR_PIPELINE_SURVEY_H

#include "weir/dataset.h"

/* Files of the same layout, dimensions and cameras, with the same codecs and sizes. */
struct weir_survey_group {
    char *kind;                  /* all that in words, to compare */
    char *path;                  /* the folder that all of them lie in, or the only file */
    bool alone;                  /* in which no files of other groups lie */
    struct weir_path_list files; /* in the order of the folder */
};

struct weir_survey {
    struct weir_survey_group *groups; /* in the order of their first files */
    int n, n_files;
    struct weir_path_list bad; /* what cannot be opened, as "PATH: why" */
};

/* Opens every file below config->path by itself and looks at the first frame of each camera. On failure (no memory, no
 * folder) the survey is empty. */
int weir_survey_open(struct weir_survey *survey, const struct weir_dataset_config *config, struct weir_err *err);
void weir_survey_close(struct weir_survey *survey);

#endif
