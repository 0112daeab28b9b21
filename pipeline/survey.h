/* survey.h: the files of a folder, in groups that can be loaded together. */
#ifndef WEIR_PIPELINE_SURVEY_H
#define WEIR_PIPELINE_SURVEY_H

#include "weir/dataset.h"

/* Files with the same layout, dimensions, cameras, codecs and sizes. */
struct weir_survey_group {
    char *kind;                  /* all of these as one text, for comparing */
    char *path;                  /* the folder of all these files, or the only file */
    bool alone;                  /* no files of other groups lie in that folder */
    struct weir_path_list files; /* in the order of the folder */
};

struct weir_survey {
    struct weir_survey_group *groups; /* in the order of their first files */
    int n, n_files;
    struct weir_path_list bad; /* files that cannot be opened, as "PATH: why" */
};

/* Opens every file below config->path separately and examines the first frame of each camera. On failure (no memory, no
 * folder) the survey is empty. */
int weir_survey_open(struct weir_survey *survey, const struct weir_dataset_config *config, struct weir_err *err);
void weir_survey_close(struct weir_survey *survey);

#endif
