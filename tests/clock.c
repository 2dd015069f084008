/* Shifts the wall clock of the program that it is preloaded into, and no other clock: by CLOCK_OFF_BY_S seconds, or by
 * those that the file CLOCK_FILE holds at the moment, as an integer of 64 bits. */

#define _GNU_SOURCE
#include <dlfcn.h>
#include <fcntl.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

static int64_t off_by_s(void) {
    static volatile int64_t *shared;
    static int64_t fixed;
    const char *path;
    int file;
    if (shared)
        return *shared;
    if ((path = getenv("CLOCK_FILE")) && (file = open(path, O_RDONLY | O_CLOEXEC)) >= 0) {
        void *page = mmap(NULL, sizeof *shared, PROT_READ, MAP_SHARED, file, 0);
        close(file);
        if (page != MAP_FAILED)
            return *(shared = page);
    }
    if (!fixed && (path = getenv("CLOCK_OFF_BY_S")))
        fixed = atol(path);
    return fixed;
}

int clock_gettime(clockid_t id, struct timespec *now) {
    static int (*of_libc)(clockid_t, struct timespec *);
    if (!of_libc)
        of_libc = (int (*)(clockid_t, struct timespec *))dlsym(RTLD_NEXT, "clock_gettime");
    int failed = of_libc(id, now);
    if (!failed && (id == CLOCK_REALTIME || id == CLOCK_REALTIME_COARSE))
        now->tv_sec += off_by_s();
    return failed;
}

int gettimeofday(struct timeval *restrict now, void *restrict zone) {
    struct timespec precise;
    int failed = clock_gettime(CLOCK_REALTIME, &precise);
    *now = (struct timeval){precise.tv_sec, precise.tv_nsec / 1000};
    return failed;
}

time_t time(time_t *now) {
    struct timespec precise;
    clock_gettime(CLOCK_REALTIME, &precise);
    if (now)
        *now = precise.tv_sec;
    return precise.tv_sec;
}
