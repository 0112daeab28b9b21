/* Writes episodes whose frames only the HDF5 library can read (virtual datasets), for bench/bottlenecks.sh.
 * Usage: virtual_episodes FOLDER EPISODES STEPS WIDTH HEIGHT */
#include "tests/fixtures/h5_fixture.h"

#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>

int main(int argc, char **argv)
{
    char path[4096];
    if (argc != 6) {
        fprintf(stderr, "usage: virtual_episodes FOLDER EPISODES STEPS WIDTH HEIGHT\n");
        return 2;
    }
    struct h5fx_episode episode = {.steps = atoi(argv[3]),
                                   .cameras = {{.name = "top",
                                                .content = H5FX_RAW,
                                                .storage = H5FX_VIRTUAL,
                                                .width = atoi(argv[4]),
                                                .height = atoi(argv[5])}}};
    mkdir(argv[1], 0777);
    for (int i = 0; i < atoi(argv[2]); i++) {
        episode.seed = i;
        snprintf(path, sizeof path, "%s/episode_%d.hdf5", argv[1], i);
        h5fx_write(path, &episode);
    }
    return 0;
}
