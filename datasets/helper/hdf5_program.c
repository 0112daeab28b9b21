/* weir-hdf5: the HDF5 library, in a program of its own (helper_spawner_priv.h). */
#include "datasets/helper/hdf5_helper_protocol_priv.h"
#include "datasets/helper/helper_spawner_priv.h"
#include "datasets/helper/lmdb_hold_priv.h"

int main(int argc, char **argv)
{
    static weir_helper_serve_fn *const serve[WEIR_HELPER_KINDS] = {
        [WEIR_HELPER_HDF5] = weir_hdf5_helper_serve, [WEIR_HELPER_LMDB] = weir_lmdb_hold_serve};
    (void)argv;
    return weir_helper_program(argc, serve, WEIR_HELPER_KINDS);
}
