/* dataset_stages.h: what the profiler times of a dataset. The number is the loader's table's, pipeline/loader_stages.h.
 */
#ifndef WEIR_DATASETS_DATASET_STAGES_H
#define WEIR_DATASETS_DATASET_STAGES_H

enum weir_dataset_stage {
    WEIR_STAGE_WAIT_LIBRARY = 22, /* 09c_wait_for_library */
};

#endif
