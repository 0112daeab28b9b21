#include "base/shortage.h"

#include <errno.h>
#include <stddef.h>
#include <string.h>

bool weir_is_shortage(int code)
{
    return code == -ENOMEM || code == -EMFILE || code == -ENFILE || code == -EAGAIN || code == -ECANCELED;
}

bool weir_is_storage_error(int code)
{
    return code == -EIO || code == -ENXIO || code == -EREMOTEIO || code == -ETIMEDOUT;
}

const char *weir_machine_advice(int code)
{
    if (weir_is_storage_error(code))
        return "check the disk or its connection, and the kernel's log (dmesg)";
    switch (code) {
    case -ENOMEM:
        return "free some memory, or raise this process's memory limit (ulimit -v, or the container's)";
    case -EMFILE:
        return "raise the limit on open files (ulimit -n)";
    case -ENFILE:
        return "raise the whole machine's limit on open files (sysctl fs.file-max)";
    case -EAGAIN:
        return "raise the limit on processes and threads (ulimit -u, or the container's), or free some memory";
    case -ECANCELED:
        return "run again";
    default:
        return NULL;
    }
}

const char *weir_frame_advice(int code, const char *reason)
{
    if (code == -ENOTSUP || strstr(reason, "; "))
        return "";
    const char *machine = weir_machine_advice(code);
    if (machine)
        return machine;
    return code == -ESTALE ? "rerun on files that no process writes to" : "repair or remove the frame";
}

const char *weir_open_advice(int code)
{
    const char *advice = weir_machine_advice(code);
    return advice ? advice : "check the path and its permissions";
}

const char *weir_input_advice(int code)
{
    const char *advice = weir_machine_advice(code);
    return advice ? advice : code == -E2BIG ? "write it again" : "copy the file again";
}

const char *weir_write_advice(int code)
{
    if (code == -ENOSPC || code == -EDQUOT || code == -EFBIG)
        return "free some space there, or choose a file on another disk";
    if (code == -ENOENT || code == -ENOTDIR)
        return "create its folder first, or choose another path";
    if (code == -EISDIR)
        return "specify a file, not a folder";
    if (code == -ENXIO)
        return "start the program that reads this FIFO first";
    const char *advice = weir_machine_advice(code);
    return advice ? advice : "choose a file in a writable folder";
}

int weir_no_memory(struct weir_err *err)
{
    return weir_err_set(err, -ENOMEM, "out of memory");
}
