#include "prof/gpu/cuda_module.h"

#include <elf.h>
#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static bool read_at(int fd, void *to, size_t bytes, uint64_t offset)
{
    return offset <= INT64_MAX && pread(fd, to, bytes, (off_t)offset) == (ssize_t)bytes;
}

static uint64_t end_of(uint64_t offset, uint64_t bytes)
{
    uint64_t end;
    return __builtin_add_overflow(offset, bytes, &end) ? UINT64_MAX : end;
}

static bool is_library(const Elf64_Ehdr *head)
{
    return memcmp(head->e_ident, ELFMAG, SELFMAG) == 0 && head->e_ident[EI_CLASS] == ELFCLASS64 &&
           head->e_ident[EI_DATA] == ELFDATA2LSB && head->e_type == ET_DYN && head->e_phnum > 0 &&
           head->e_phentsize == sizeof(Elf64_Phdr);
}

/* Returns the minimum size of a file with this header. Ignores the segments if the program headers themselves extend
 * beyond the file. Includes the section headers: they are not loaded, but come last in a file, so a truncated file
 * lacks them. */
static uint64_t needed(int fd, uint64_t file_bytes, const Elf64_Ehdr *head)
{
    uint64_t parts = end_of(head->e_phoff, (uint64_t)head->e_phnum * sizeof(Elf64_Phdr));
    uint64_t sections = end_of(head->e_shoff, (uint64_t)head->e_shnum * head->e_shentsize);
    uint64_t most = parts > sections ? parts : sections;
    if (parts > file_bytes)
        return most;
    for (unsigned i = 0; i < head->e_phnum; i++) {
        Elf64_Phdr part;
        if (!read_at(fd, &part, sizeof part, head->e_phoff + i * sizeof part))
            return UINT64_MAX;
        uint64_t end = part.p_type == PT_LOAD ? end_of(part.p_offset, part.p_filesz) : 0;
        most = end > most ? end : most;
    }
    return most;
}

static bool check(int fd, uint64_t file_bytes, char *why)
{
    Elf64_Ehdr head;
    uint64_t least = sizeof head;
    if (read_at(fd, &head, sizeof head, 0)) {
        if (!is_library(&head)) {
            snprintf(why, WEIR_ELF_WHY, "it is damaged, or not a 64-bit library (%llu bytes)",
                     (unsigned long long)file_bytes);
            return false;
        }
        least = needed(fd, file_bytes, &head);
    }
    if (least <= file_bytes)
        return true;
    if (least > INT64_MAX)
        snprintf(why, WEIR_ELF_WHY, "it is damaged: its %llu bytes do not match its headers",
                 (unsigned long long)file_bytes);
    else
        snprintf(why, WEIR_ELF_WHY, "it is damaged or truncated: it has %llu bytes instead of at least %llu",
                 (unsigned long long)file_bytes, (unsigned long long)least);
    return false;
}

bool weir_elf_is_whole(const char *path, char why[WEIR_ELF_WHY])
{
    struct stat status;
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    if (fd < 0)
        return true;
    bool is_whole = fstat(fd, &status) < 0 || !S_ISREG(status.st_mode) || check(fd, (uint64_t)status.st_size, why);
    close(fd);
    return is_whole;
}
