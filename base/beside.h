/* beside.h: files that are installed beside our code: a module, a helper program. */
#ifndef WEIR_BASE_BESIDE_H
#define WEIR_BASE_BESIDE_H

#include <limits.h>

/* The real path of relative ("name", "../bin/name") from the folder of the program or library that has ours, a constant
 * or a function, in it, whatever the current folder is. 0; else path is "": -ENOENT, there is no such file, or another
 * -errno. Any thread. */
int weir_path_beside(const void *ours, const char *relative, char path[PATH_MAX]);

#endif
