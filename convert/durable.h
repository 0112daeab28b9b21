/* durable.h: names and contents that outlast a power cut. Any thread. */
#ifndef WEIR_CONVERT_DURABLE_H
#define WEIR_CONVERT_DURABLE_H

#include "base/err.h"

/* The file's (or the folder's entries') data is on the storage when this returns. */
int weir_durable_sync(const char *path, struct weir_err *err);
/* Gives a file or folder that is on the storage its name, in the same folder; nothing has that name yet. */
int weir_durable_rename(const char *from, const char *to, struct weir_err *err);

#endif
