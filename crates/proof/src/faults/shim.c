/* Faults: system calls of a process on the files of one directory fail as a control block says. Preloaded (LD_PRELOAD), so the
 * binary under test is the one that people get; what it calls past the C library (fallocate, io_uring) is not seen here.
 *
 *   process ─ pwrite, write, fsync, fdatasync, rename, open, ftruncate, unlink ─► shim ─► C library
 *                                                     control block, shared ──────┘ └──► losses: what a failed sync of a log lost
 *
 * A failed sync loses what was written since the last one: Linux takes those pages for written and drops them when it likes
 * ("Can Applications Recover from fsync Failures?", ATC 2020). What was there before is noted, for whoever plays the loss.
 *
 * Where a power cut is played (lossy.c) the process dies at a call instead, and all that it changes is told in a journal.
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "lossy.h"

/* As `faults/shim.rs` writes it: 32-bit numbers. */
struct control {
    uint32_t armed, calls, files, nth, times, error, first_is_short, fired, seen, last_call, last_kind, behind;
};

/* Half of the bytes are written, and that is told. */
#define SHORT (-1)
/* An error that is none: the process dies right before the call, or so many calls of any kind behind it. */
#define DIE 0xFFFFFFFFu

static struct control *control;
static char directory[4096];
static size_t directory_bytes;
static int losses = -1;

struct extent {
    struct extent *next;
    /* Of all writes, from 1. */
    uint64_t number;
    char *path;
    uint64_t offset, bytes;
    char *old;
};
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
/* Newest first. */
static struct extent *unsynced;
static uint64_t writes;

__attribute__((constructor)) static void begin(void) {
    const char *file = getenv("FAULTS_CONTROL"), *place = getenv("FAULTS_DIRECTORY"), *loss = getenv("FAULTS_LOSSES");
    if (!file || !place || !loss) return;
    int fd = (int)syscall(SYS_openat, AT_FDCWD, file, O_RDWR | O_CLOEXEC);
    if (fd < 0) return;
    void *memory = mmap(NULL, sizeof(struct control), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    syscall(SYS_close, fd);
    losses = (int)syscall(SYS_openat, AT_FDCWD, loss, O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC, 0600);
    directory_bytes = (size_t)snprintf(directory, sizeof directory, "%s", place);
    journal_begin(directory);
    if (memory != MAP_FAILED) control = memory;
}

static int ends_with(const char *text, const char *end) {
    size_t bytes = strlen(text), end_bytes = strlen(end);
    return bytes >= end_bytes && strcmp(text + bytes - end_bytes, end) == 0;
}

static uint32_t kind_of_path(const char *path) {
    if (strncmp(path, directory, directory_bytes) != 0) return 0;
    if (path[directory_bytes] == 0) return DIRECTORY;
    if (path[directory_bytes] != '/') return 0;
    if (ends_with(path, ".log")) return LOG;
    if (ends_with(path, ".log.new")) return NEW_LOG;
    if (ends_with(path, ".run.new")) return NEW_RUN;
    if (ends_with(path, ".run")) return RUN;
    return strncmp(path + directory_bytes + 1, "MANIFEST", 8) == 0 ? MANIFEST : OTHER;
}

static uint32_t kind_of_file(int fd, char *path, size_t room) {
    char link[64];
    snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
    ssize_t bytes = readlink(link, path, room - 1);
    if (bytes < 0) return 0;
    path[bytes] = 0;
    return kind_of_path(path);
}

/* Calls come here one at a time: whoever is to die has a journal, and its lock. */
static int die_behind(uint32_t call, uint32_t kind) {
    if (control->behind > 0) {
        --control->behind;
        return 0;
    }
    control->last_call = call;
    control->last_kind = kind;
    control->fired = 1;
    for (;;) syscall(SYS_kill, getpid(), SIGKILL);
}

/* 0: the call is done. An error number: it fails. SHORT: half of it is done. */
int verdict(uint32_t call, uint32_t kind) {
    if (!control || !__atomic_load_n(&control->armed, __ATOMIC_ACQUIRE)) return 0;
    if (control->error == DIE && control->seen >= control->nth) return die_behind(call, kind);
    if (!(control->calls & call) || !(control->files & kind)) return 0;
    uint32_t number = __atomic_add_fetch(&control->seen, 1, __ATOMIC_SEQ_CST);
    if (number < control->nth || (control->times && number >= control->nth + control->times)) return 0;
    if (control->error == DIE) return die_behind(call, kind);
    __atomic_add_fetch(&control->fired, 1, __ATOMIC_SEQ_CST);
    if (call == CALL_WRITE && (!control->error || (control->first_is_short && number == control->nth))) return SHORT;
    return control->error ? (int)control->error : EIO;
}

static int fails(int error) {
    errno = error;
    return -1;
}

#define REAL(name, type) \
    static type real; \
    if (!real) real = (type)dlsym(RTLD_NEXT, name)

/* Before a write to a log: what it replaces. */
static void note_old(int fd, const char *path, uint64_t offset, size_t bytes) {
    struct extent *extent = calloc(1, sizeof *extent);
    if (!extent) abort();
    extent->path = strdup(path);
    extent->old = calloc(1, bytes + 1);
    extent->offset = offset;
    extent->bytes = bytes;
    if (!extent->path || !extent->old) abort();
    if (syscall(SYS_pread64, fd, extent->old, bytes, offset) < 0) memset(extent->old, 0, bytes);
    pthread_mutex_lock(&lock);
    extent->number = ++writes;
    extent->next = unsynced;
    unsynced = extent;
    pthread_mutex_unlock(&lock);
}

static void put(const void *bytes, size_t count) {
    const char *at = bytes;
    while (count > 0) {
        ssize_t written = syscall(SYS_write, losses, at, count);
        if (written <= 0) abort();
        at += written;
        count -= (size_t)written;
    }
}

/* A sync of the file that began behind so many writes is over; what it lost, newest first, is told. The count, not the newest
 * write itself: a sync of another file may be over meanwhile, and that write with it. */
static void end_sync(const char *path, uint64_t writes_before, int is_lost) {
    pthread_mutex_lock(&lock);
    for (struct extent **place = &unsynced; *place;) {
        struct extent *extent = *place;
        if (extent->number > writes_before || strcmp(extent->path, path) != 0) {
            place = &extent->next;
            continue;
        }
        *place = extent->next;
        if (is_lost) {
            uint32_t path_bytes = (uint32_t)strlen(path);
            put(&path_bytes, sizeof path_bytes);
            put(path, path_bytes);
            put(&extent->offset, sizeof extent->offset);
            put(&extent->bytes, sizeof extent->bytes);
            put(extent->old, extent->bytes);
        }
        free(extent->path);
        free(extent->old);
        free(extent);
    }
    pthread_mutex_unlock(&lock);
}

typedef int (*sync_type)(int);

ssize_t pwrite64(int fd, const void *bytes, size_t count, off64_t offset) {
    REAL("pwrite64", pwrite_type);
    char path[4096];
    uint32_t kind = control ? kind_of_file(fd, path, sizeof path) : 0;
    if (kind && journal_is_on()) return journaled_pwrite(real, kind, fd, bytes, count, offset);
    int told = kind ? verdict(CALL_WRITE, kind) : 0;
    if (told > 0) return fails(told);
    if (told == SHORT && count > 1) count /= 2;
    if (kind == LOG) note_old(fd, path, (uint64_t)offset, count);
    return real(fd, bytes, count, offset);
}

ssize_t pwrite(int fd, const void *bytes, size_t count, off_t offset) { return pwrite64(fd, bytes, count, offset); }

ssize_t write(int fd, const void *bytes, size_t count) {
    REAL("write", write_type);
    char path[4096];
    uint32_t kind = control ? kind_of_file(fd, path, sizeof path) : 0;
    if (kind && journal_is_on()) return journaled_write(real, kind, fd, bytes, count);
    int told = kind ? verdict(CALL_WRITE, kind) : 0;
    if (told > 0) return fails(told);
    return real(fd, bytes, told == SHORT && count > 1 ? count / 2 : count);
}

static int sync_with(sync_type real, int fd) {
    char path[4096];
    uint32_t kind = control ? kind_of_file(fd, path, sizeof path) : 0;
    if (!kind) return real(fd);
    if (journal_is_on()) return journaled_sync(kind, fd);
    pthread_mutex_lock(&lock);
    uint64_t writes_before = writes;
    pthread_mutex_unlock(&lock);
    int told = verdict(CALL_SYNC, kind);
    if (told == 0 && real(fd) != 0) told = errno;
    if (kind == LOG) end_sync(path, writes_before, told != 0);
    return told ? fails(told == SHORT ? EIO : told) : 0;
}

int fsync(int fd) {
    REAL("fsync", sync_type);
    return sync_with(real, fd);
}

int fdatasync(int fd) {
    REAL("fdatasync", sync_type);
    return sync_with(real, fd);
}

int rename(const char *from, const char *to) {
    REAL("rename", rename_type);
    uint32_t kind = control ? kind_of_path(to) : 0;
    if (kind && journal_is_on()) return journaled_rename(real, kind, from, to);
    int told = kind ? verdict(CALL_RENAME, kind) : 0;
    return told ? fails(told) : real(from, to);
}

int unlink(const char *path) {
    REAL("unlink", remove_type);
    uint32_t kind = control ? kind_of_path(path) : 0;
    if (kind && journal_is_on()) return journaled_remove(real, kind, path);
    int told = kind ? verdict(CALL_REMOVE, kind) : 0;
    return told ? fails(told) : real(path);
}

int ftruncate64(int fd, off64_t bytes) {
    REAL("ftruncate64", truncate_type);
    char path[4096];
    uint32_t kind = control ? kind_of_file(fd, path, sizeof path) : 0;
    if (kind && journal_is_on()) return journaled_truncate(real, kind, fd, bytes);
    int told = kind ? verdict(CALL_TRUNCATE, kind) : 0;
    return told ? fails(told) : real(fd, bytes);
}

int ftruncate(int fd, off_t bytes) { return ftruncate64(fd, bytes); }

int open64(const char *path, int flags, ...) {
    REAL("open64", open_type);
    va_list arguments;
    va_start(arguments, flags);
    mode_t mode = va_arg(arguments, mode_t);
    va_end(arguments);
    uint32_t kind = control ? kind_of_path(path) : 0;
    // Direct writes would only cost time: what the disk has is what the journal says.
    if (kind && journal_is_on()) flags &= ~O_DIRECT;
    if (!(flags & O_CREAT)) return real(path, flags, mode);
    if (kind && journal_is_on()) return journaled_create(real, kind, path, flags, mode);
    int told = kind ? verdict(CALL_CREATE, kind) : 0;
    return told ? fails(told) : real(path, flags, mode);
}
