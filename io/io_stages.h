/* io_stages.h: stages that time reading. The numbers come from the loader's table, pipeline/loader_stages.h. */
#ifndef WEIR_IO_IO_STAGES_H
#define WEIR_IO_IO_STAGES_H

enum weir_io_stage {
    WEIR_STAGE_FILE_CACHE = 1,  /* 01_file_cache */
    WEIR_STAGE_READ_BYTES = 6,  /* 03c_read_bytes */
    WEIR_STAGE_WAIT_AHEAD = 24, /* 09e_wait_for_read_ahead */
};

#endif
