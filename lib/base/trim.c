#include "base/trim.h"

#include <link.h>
#include <malloc.h>
#include <stdint.h>
#include <sys/mman.h>
#include <unistd.h>

/* Segments that cannot be written have no contents but those of the file. */
static int forget_object(struct dl_phdr_info *info, size_t size, void *data)
{
    (void)size;
    (void)data;
    uintptr_t mask = (uintptr_t)sysconf(_SC_PAGESIZE) - 1;
    for (size_t i = 0; i < info->dlpi_phnum; i++) {
        const ElfW(Phdr) *header = &info->dlpi_phdr[i];
        if (header->p_type != PT_LOAD || (header->p_flags & PF_W) != 0)
            continue;
        uintptr_t start = (info->dlpi_addr + header->p_vaddr) & ~mask;
        uintptr_t end = (info->dlpi_addr + header->p_vaddr + header->p_memsz + mask) & ~mask;
        madvise((void *)start, end - start, MADV_DONTNEED);
    }
    return 0;
}

void trim_memory(void)
{
    malloc_trim(0);
    dl_iterate_phdr(forget_object, NULL);
}
