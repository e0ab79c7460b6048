#include "base/shared_file.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

/* For headers that are older than Linux 5.6. */
#ifndef SYS_pidfd_open
#define SYS_pidfd_open 434
#endif
#ifndef SYS_pidfd_getfd
#define SYS_pidfd_getfd 438
#endif

/* A name is PROCESS/DESCRIPTOR/INODE. The inode tells the file apart from one that got the
 * same descriptor later. */

static int parse(const char *name, int *process, int *descriptor,
                 unsigned long long *inode)
{
    int length = 0;
    if (sscanf(name, "%d/%d/%llu%n", process, descriptor, inode, &length) == 3 &&
        *process > 0 && *descriptor >= 0 && !name[length])
        return 0;
    errno = EINVAL;
    return -1;
}

int dt_shared_file_name(int descriptor, char *name)
{
    struct stat facts;
    if (fstat(descriptor, &facts))
        return -1;
    snprintf(name, DT_SHARED_FILE, "%d/%d/%llu", (int)getpid(), descriptor,
             (unsigned long long)facts.st_ino);
    return 0;
}

int dt_shared_file_new(const char *title, size_t bytes, char *name)
{
    int descriptor = memfd_create(title, MFD_CLOEXEC);
    if (descriptor >= 0 && (ftruncate(descriptor, (off_t)bytes) ||
                            dt_shared_file_name(descriptor, name))) {
        int error = errno;
        close(descriptor);
        errno = error;
        return -1;
    }
    return descriptor;
}

int dt_shared_file_open(const char *name)
{
    char path[64];
    struct stat facts;
    int process, descriptor;
    unsigned long long inode;
    if (parse(name, &process, &descriptor, &inode))
        return -1;
    snprintf(path, sizeof path, "/proc/%d/fd/%d", process, descriptor);
    int found = open(path, O_RDWR | O_CLOEXEC);
    if (found >= 0 && (fstat(found, &facts) || facts.st_ino != (ino_t)inode)) {
        close(found);
        errno = ENOENT;
        return -1;
    }
    return found;
}

int dt_shared_file_take(int process, int descriptor)
{
    char path[64];
    const long its = syscall(SYS_pidfd_open, process, 0);
    const long found = its < 0 ? -1 : syscall(SYS_pidfd_getfd, its, descriptor, 0);
    const int error = errno;
    if (its >= 0)
        close((int)its);
    if (found >= 0)
        return (int)found;
    /* A file in memory, such as simulated GPUs have, can be opened once more. */
    snprintf(path, sizeof path, "/proc/%d/fd/%d", process, descriptor);
    const int opened = open(path, O_RDWR | O_CLOEXEC);
    errno = error;
    return opened;
}

int dt_shared_file_maker(const char *name)
{
    int process, descriptor;
    unsigned long long inode;
    return parse(name, &process, &descriptor, &inode) ? 0 : process;
}

bool dt_process_runs(int process)
{
    char path[64], text[512];
    snprintf(path, sizeof path, "/proc/%d/stat", process);
    FILE *file = fopen(path, "re");
    if (!file)
        return false;
    size_t length = fread(text, 1, sizeof text - 1, file);
    fclose(file);
    text[length] = '\0';
    const char *state = strrchr(text, ')'); /* a name may have any character */
    return state && length > 2 && strlen(state) > 2 && state[2] != 'Z' &&
           state[2] != 'X';
}
