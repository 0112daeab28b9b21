/* folders.h: folders that are made where something will be written. */
#ifndef WEIR_BASE_FOLDERS_H
#define WEIR_BASE_FOLDERS_H

/* Makes the folder and those above it. 0, also when it is there; -ENOTDIR when it is something else, or -errno. */
int weir_folders_make(const char *folder);

#endif
