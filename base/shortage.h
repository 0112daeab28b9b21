/* shortage.h: errors caused by the machine, not by the data: exhausted resources and failing storage. Codes are -errno.
 */
#ifndef WEIR_BASE_SHORTAGE_H
#define WEIR_BASE_SHORTAGE_H

#include "weir/base.h"

#include <stdbool.h>

/* Whether the process ran out of memory, descriptors, threads or processes: -ENOMEM, -EMFILE, -ENFILE, -EAGAIN. The
 * data may be intact, so policies for bad data do not apply. */
bool weir_is_shortage(int code);

/* Whether storage failed, local or remote: -EIO, -ENXIO, -EREMOTEIO, -ETIMEDOUT. */
bool weir_is_storage_error(int code);

/* Advice for both kinds, without a full stop: "raise the limit of open files (ulimit -n)"; NULL for other codes. */
const char *weir_machine_advice(int code);

/* Advice for a file that cannot be opened; for other codes "check the path and its permissions". */
const char *weir_open_advice(int code);

/* Advice for a file that cannot be written; for other codes "name a file in a folder that may be written". */
const char *weir_write_advice(int code);

/* Sets "out of memory". Returns -ENOMEM. */
int weir_no_memory(struct weir_err *err);

#endif
