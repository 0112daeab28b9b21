#include "datasets/file_array.h"

#include <stdlib.h>

void weir_file_array_free(struct weir_file_array *array)
{
    free(array->values);
    free(array->texts);
    *array = (struct weir_file_array){0};
}
