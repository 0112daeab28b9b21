/* Says where the CUDA module was found, or why it was not. */
#include "prof/cuda_module.h"

#include <stdio.h>

int main(void)
{
    struct weir_err err = WEIR_ERR_NONE;
    const struct weir_cuda_module *module;
    fputs(weir_cuda_module_open(&module, &err) == 0 ? weir_cuda_module_path() : err.text, stdout);
    return 0;
}
