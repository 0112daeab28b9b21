#include "datasets/hdf5/h5_read.h"
#include "datasets/hdf5/hdf5_helper_protocol_priv.h"
#include "datasets/helper/helper_spawner.h"

#include <sys/stat.h>

enum { CPU_S = 60 /* per request, plus 60 s for every 600 MB of the file */, BYTES_PER_CPU_S = 10000000 };

/* Incremented when messages change but keep their sizes. */
enum { ABI = 3 };

struct weir_helper_hello weir_helper_hello(void)
{
    return (struct weir_helper_hello){.name = "weir-hdf5",
                                      .abi = ABI,
                                      .bytes = {sizeof(struct weir_helper_request), sizeof(struct weir_helper_reply),
                                                sizeof(struct weir_helper_described),
                                                sizeof(struct weir_h5_description)}};
}

uint64_t weir_helper_cpu_limit_s(const char *path)
{
    struct stat st;
    return CPU_S + (stat(path, &st) == 0 ? (uint64_t)st.st_size / BYTES_PER_CPU_S : 0);
}
