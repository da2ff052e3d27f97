/* A clock that a soak sets wrong: loaded before libc's own (LD_PRELOAD), it adds the seconds that stand in the
 * file SOAK_CLOCK to the time of day. The time since the start, waits and times of files stay as they are,
 * which is what happens where a machine's clock is set.
 */
#define _GNU_SOURCE
#include <stdio.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

static long long offset(void) {
    static long long told;
    static time_t looked = -1;
    struct timespec now;
    syscall(SYS_clock_gettime, CLOCK_MONOTONIC, &now);
    if (now.tv_sec != looked) {
        const char *name = getenv("SOAK_CLOCK");
        FILE *file = name ? fopen(name, "re") : NULL;
        looked = now.tv_sec;
        if (file) {
            long long found;
            if (fscanf(file, "%lld", &found) == 1) told = found;
            fclose(file);
        }
    }
    return told;
}

int clock_gettime(clockid_t kind, struct timespec *now) {
    int failed = (int)syscall(SYS_clock_gettime, kind, now);
    if (!failed && (kind == CLOCK_REALTIME || kind == CLOCK_REALTIME_COARSE)) now->tv_sec += offset();
    return failed;
}

int gettimeofday(struct timeval *restrict now, void *restrict zone) {
    struct timespec read;
    (void)zone;
    clock_gettime(CLOCK_REALTIME, &read);
    now->tv_sec = read.tv_sec;
    now->tv_usec = read.tv_nsec / 1000;
    return 0;
}

time_t time(time_t *now) {
    struct timespec read;
    clock_gettime(CLOCK_REALTIME, &read);
    if (now) *now = read.tv_sec;
    return read.tv_sec;
}
