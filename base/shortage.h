/* shortage.h: errors that are the machine's and not the data's: what a process lacks, and storage that fails. */
#ifndef WEIR_BASE_SHORTAGE_H
#define WEIR_BASE_SHORTAGE_H

#include <stdbool.h>

/* Codes are -errno. */

/* The process lacks memory, descriptors, threads or processes: -ENOMEM, -EMFILE, -ENFILE, -EAGAIN. What it worked on
 * may be in order, so that no policy for bad data applies. */
bool weir_is_shortage(int code);

/* The device or the network could not give what is stored: -EIO, -ENXIO, -EREMOTEIO, -ETIMEDOUT. */
bool weir_is_storage_error(int code);

/* What to do about one of both, without a full stop: "raise the limit of open files (ulimit -n)"; NULL for other codes.
 */
const char *weir_machine_advice(int code);

/* The same for a file that cannot be opened: "check the path and its permissions" for other codes. */
const char *weir_open_advice(int code);

/* The same for a file that cannot be written: "name a file in a folder that may be written" for other codes. */
const char *weir_write_advice(int code);

#endif
