/* shortage.h: errors caused by the machine and not by the data: exhausted resources and failing storage. Codes are
 * -errno. */
#ifndef WEIR_BASE_SHORTAGE_H
#define WEIR_BASE_SHORTAGE_H

#include "weir/base.h"

#include <stdbool.h>

/* Returns true if the process ran out of memory, descriptors, threads or processes (-ENOMEM, -EMFILE, -ENFILE,
 * -EAGAIN), or if the user interrupted it (-ECANCELED). The data may be intact, so policies for bad data do not apply.
 */
bool weir_is_shortage(int code);

/* Returns true if local or remote storage failed: -EIO, -ENXIO, -EREMOTEIO, -ETIMEDOUT. */
bool weir_is_storage_error(int code);

/* Returns advice for a shortage or a storage error, without a full stop, such as "raise the limit on open files (ulimit
 * -n)". Returns NULL for other codes. */
const char *weir_machine_advice(int code);

/* Returns advice for a frame that cannot be read or decoded for this reason. Empty if the reason contains advice, which
 * follows a semicolon. */
const char *weir_frame_advice(int code, const char *reason);

/* Returns advice for a file that cannot be opened. Without specific advice for the code, it is "check the path and its
 * permissions". */
const char *weir_open_advice(int code);

/* Returns advice for a file whose contents cannot be used. Without specific advice for the code, it is "copy the file
 * again". */
const char *weir_input_advice(int code);

/* Returns advice for a file that cannot be written. Without specific advice for the code, it is "choose a file in a
 * writable folder". */
const char *weir_write_advice(int code);

/* Sets the error "out of memory" and returns -ENOMEM. */
int weir_no_memory(struct weir_err *err);

#endif
