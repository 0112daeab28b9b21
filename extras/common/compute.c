/* Selects the backend for networks. */
#include "extras/common/compute_ops.h"
#include "prof/gpu/cuda_module.h"

#include <errno.h>

static const struct weir_compute_ops *const rows[] = {&weir_compute_cpu};
enum { ROWS = sizeof rows / sizeof rows[0] };

const struct weir_compute_ops *weir_compute_ops_at(int row)
{
    return row >= 0 && row < ROWS ? rows[row] : NULL;
}

const struct weir_compute_ops *weir_compute_ops_cuda(struct weir_err *err)
{
    if (sizeof(weir_real) != sizeof(float)) {
        weir_err_set(err, -ENOTSUP, "a GPU computes with float, and this program with double");
        return NULL;
    }
    return weir_cuda_module_extra("compute", err);
}
