/* What weir_cuda_module_open must not take: OTHER_ABI and OTHER_BYTES differ from the program's, or without either a
 * library that has no table. */
#include "prof/cuda_module.h"

#ifdef OTHER_ABI
__attribute__((visibility("default"))) const struct weir_cuda_module *weir_cuda_module_table(void);

const struct weir_cuda_module *weir_cuda_module_table(void)
{
    static const struct weir_cuda_module table = {.abi = OTHER_ABI, .bytes = OTHER_BYTES, .built_with = "nothing"};
    return &table;
}
#else
int weir_other_library(void);

int weir_other_library(void)
{
    return 0;
}
#endif
