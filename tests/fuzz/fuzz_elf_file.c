/* libFuzzer: checks a hostile shared library against its own headers. If it is accepted, all segments to be mapped must
 * be inside the file. It is never loaded, since a complete file can still contain hostile code. */
#include "prof/gpu/cuda_module.h"
#include "tests/fuzz/fuzz.h"

#include <elf.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

static void require_all_there(const uint8_t *data, size_t size)
{
    Elf64_Ehdr head;
    require(size >= sizeof head);
    memcpy(&head, data, sizeof head);
    for (size_t i = 0; i < head.e_phnum; i++) {
        Elf64_Phdr part;
        require(head.e_phoff <= size && (i + 1) * sizeof part <= size - head.e_phoff);
        memcpy(&part, data + head.e_phoff + i * sizeof part, sizeof part);
        require(part.p_type != PT_LOAD || (part.p_offset <= size && part.p_filesz <= size - part.p_offset));
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static int fd = -1;
    char path[64], why[WEIR_ELF_WHY] = "";
    if (fd < 0)
        fd = memfd_create("fuzz_elf_file", MFD_CLOEXEC);
    require(fd >= 0 && ftruncate(fd, 0) == 0 && pwrite(fd, data, size, 0) == (ssize_t)size);
    snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
    if (weir_elf_is_whole(path, why))
        require_all_there(data, size);
    else
        require(why[0] != '\0' && strlen(why) < sizeof why - 1);
    return 0;
}
