/* weir-hdf5: the HDF5 library in a separate program (helper_spawner.h). */
#include "datasets/hdf5/hdf5_helper.h"
#include "datasets/helper/helper_spawner.h"
#include "datasets/lmdb/lmdb_hold.h"

int main(int argc, char **argv)
{
    static weir_helper_serve_fn *const serve[WEIR_HELPER_KINDS] = {
        [WEIR_HELPER_HDF5] = weir_hdf5_helper_serve, [WEIR_HELPER_LMDB] = weir_lmdb_hold_serve};
    (void)argv;
    return weir_helper_program(argc, serve, WEIR_HELPER_KINDS);
}
