/* durable.h: names and contents of files that outlast a power cut. Any thread. */
#ifndef WEIR_BASE_DURABLE_H
#define WEIR_BASE_DURABLE_H

#include "weir/base.h"

/* The file's (or the folder's entries') data is on the storage when this returns. */
int weir_durable_sync(const char *path, struct weir_err *err);
/* Gives a file or folder that is on the storage its name, in the same folder; nothing has that name yet. */
int weir_durable_rename(const char *from, const char *to, struct weir_err *err);
/* The same for a file, which replaces the file that may have that name: at any moment the name is that of a whole file.
 */
int weir_durable_replace(const char *from, const char *to, struct weir_err *err);

#endif
