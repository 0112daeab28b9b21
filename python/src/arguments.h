/* arguments.h: errors of the library name the program's options; in Python they are arguments of weir.Loader. */
#ifndef WEIR_PYTHON_SRC_ARGUMENTS_H
#define WEIR_PYTHON_SRC_ARGUMENTS_H

#include <stddef.h>

/* text with "--device cuda:0" as device="cuda:0", "--num-workers 8" as num_workers=8 and "--batch-size" as batch_size;
 * options that the loader has no argument for stay as they are. Cut to room bytes, of which it wants at most twice
 * those of text. */
void weir_name_arguments(char *to, size_t room, const char *text);

#endif
