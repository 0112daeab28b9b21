/* storage_bytes.h: what this process has read from storage, as the kernel counts it. */
#ifndef WEIR_BASE_STORAGE_BYTES_H
#define WEIR_BASE_STORAGE_BYTES_H

#include <stdint.h>

/* Bytes that reads of this process have fetched from storage so far (read_bytes of /proc/self/io: not those that were
 * in the page cache); UINT64_MAX = the kernel does not say. Some 20 us. */
uint64_t weir_storage_bytes(void);

#endif
