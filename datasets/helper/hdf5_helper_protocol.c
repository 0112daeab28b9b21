#include "datasets/hdf5/h5_read.h"
#include "datasets/helper/hdf5_helper_protocol_priv.h"
#include "datasets/helper/helper_spawner_priv.h"

#include <errno.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/stat.h>

enum { CPU_S = 60 /* for one request, and as much again for every 600 MB of the file */, BYTES_PER_CPU_S = 10000000 };

/* Counts up with every change of what is sent that changes no size. */
enum { ABI = 2 };

struct weir_helper_hello weir_helper_hello(void)
{
    return (struct weir_helper_hello){.name = "weir-hdf5",
                                      .abi = ABI,
                                      .bytes = {sizeof(struct weir_helper_request), sizeof(struct weir_helper_reply),
                                                sizeof(struct weir_helper_described),
                                                sizeof(struct weir_h5_description)}};
}

uint64_t weir_helper_cpu_limit_s(const char *path)
{
    struct stat st;
    return CPU_S + (stat(path, &st) == 0 ? (uint64_t)st.st_size / BYTES_PER_CPU_S : 0);
}

bool weir_helper_send(int fd, const void *data, size_t n)
{
    for (size_t done = 0; done < n;) {
        ssize_t sent = send(fd, (const char *)data + done, n - done, MSG_NOSIGNAL);
        if (sent < 0 && errno == EINTR)
            continue;
        if (sent <= 0)
            return false;
        done += (size_t)sent;
    }
    return true;
}

bool weir_helper_receive(int fd, void *data, size_t n, int timeout_s)
{
    for (size_t done = 0; done < n;) {
        struct pollfd poll_fd = {.fd = fd, .events = POLLIN};
        int ready = poll(&poll_fd, 1, timeout_s < 0 ? -1 : timeout_s * 1000);
        if (ready < 0 && errno == EINTR)
            continue;
        ssize_t got = ready > 0 ? recv(fd, (char *)data + done, n - done, 0) : 0;
        if (got < 0 && errno == EINTR)
            continue;
        if (got <= 0)
            return false;
        done += (size_t)got;
    }
    return true;
}
