/* Lets the disk fail for the program that it is preloaded into: while the file DISK_FILE holds an error number, as an
 * integer of 32 bits, writes to files below DISK_DIR fail with it. */

#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

static int error_now(void) {
    static volatile int32_t *shared;
    const char *path;
    int file;
    if (!shared && (path = getenv("DISK_FILE")) && (file = open(path, O_RDONLY | O_CLOEXEC)) >= 0) {
        void *page = mmap(NULL, sizeof *shared, PROT_READ, MAP_SHARED, file, 0);
        close(file);
        if (page != MAP_FAILED)
            shared = page;
    }
    return shared ? *shared : 0;
}

static int fails(int file) {
    char link[64], path[4096];
    const char *below = getenv("DISK_DIR");
    int error = error_now();
    if (!error || !below)
        return 0;
    snprintf(link, sizeof link, "/proc/self/fd/%d", file);
    ssize_t length = readlink(link, path, sizeof path - 1);
    if (length < 0)
        return 0;
    path[length] = 0;
    if (strncmp(path, below, strlen(below)))
        return 0;
    errno = error;
    return 1;
}

#define REAL(name) ((__typeof__(&name))dlsym(RTLD_NEXT, #name))

ssize_t write(int file, const void *bytes, size_t count) {
    return fails(file) ? -1 : REAL(write)(file, bytes, count);
}

ssize_t pwrite(int file, const void *bytes, size_t count, off_t offset) {
    return fails(file) ? -1 : REAL(pwrite)(file, bytes, count, offset);
}

ssize_t pwrite64(int file, const void *bytes, size_t count, off64_t offset) {
    return fails(file) ? -1 : REAL(pwrite64)(file, bytes, count, offset);
}

int ftruncate(int file, off_t length) { return fails(file) ? -1 : REAL(ftruncate)(file, length); }

int ftruncate64(int file, off64_t length) { return fails(file) ? -1 : REAL(ftruncate64)(file, length); }

int fsync(int file) { return fails(file) ? -1 : REAL(fsync)(file); }

int fdatasync(int file) { return fails(file) ? -1 : REAL(fdatasync)(file); }
