/* Lossy: a journal of all that a process changes in one directory, so that whoever plays a power cut can take back any part of what
 * was not synced (loss.rs). The second half of the shim; it is on where FAULTS_JOURNAL says where to.
 *
 *   call ─► lock ─► dies here, if this is the n-th ─► record: what was there before ─► the call ─► unlock
 *   sync ─► lock ─► …                             ─► record: begun ─► unlock ─► a moment ─► lock ─► record: ended ─► unlock
 *
 * Records stand in the order in which calls took effect, because both happen under one lock: a sync covers exactly the records before
 * its own beginning. A process that dies here holds that lock, so nothing is changed, and no sync ends, behind its death.
 *
 * A sync asks nothing of the disk: what is durable is what the journal says. It takes a moment, so that other calls meet it. Files that
 * lose a name keep another one in a folder beside the directory (FAULTS_STASH), to come back by, and to keep their inode's number.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

#include "lossy.h"

/* As `faults/journal.rs` reads it. */
enum { WROTE = 1, TRUNCATED = 2, CREATED = 3, RENAMED = 4, REMOVED = 5, SYNC_BEGAN = 6, SYNC_ENDED = 7 };

/* Then `text_bytes` of names in the directory, and `old_bytes` of what was there; zeros at its end are left out. */
struct record {
    uint64_t what, inode, offset, count, size, stash, text_bytes, old_bytes;
};

/* Of the directory, for syncs: no file has it. */
#define INODE_OF_DIRECTORY 0
/* Microseconds of a sync: a good disk's. */
#define SYNC_TAKES 200

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static int journal = -1;
static char stash_folder[4096];
static size_t prefix_bytes;
static uint64_t records, stashed;

void journal_begin(const char *directory) {
    const char *file = getenv("FAULTS_JOURNAL"), *folder = getenv("FAULTS_STASH");
    if (!file || !folder) return;
    snprintf(stash_folder, sizeof stash_folder, "%s", folder);
    prefix_bytes = strlen(directory) + 1;
    journal = (int)syscall(SYS_openat, AT_FDCWD, file, O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC, 0600);
    if (journal < 0) abort();
}

int journal_is_on(void) { return journal >= 0; }

/* Returns the record's number. */
static uint64_t tell(struct record record, const char *text, const char *old) {
    struct iovec parts[] = {
        {&record, sizeof record}, {(void *)text, record.text_bytes}, {(void *)old, record.old_bytes}};
    ssize_t bytes = (ssize_t)(sizeof record + record.text_bytes + record.old_bytes);
    if (syscall(SYS_writev, journal, parts, 3) != bytes) abort();
    return records++;
}

static void enter(uint32_t call, uint32_t kind) {
    pthread_mutex_lock(&lock);
    verdict(call, kind);
}

static int leave(int result) {
    int error = errno;
    pthread_mutex_unlock(&lock);
    errno = error;
    return result;
}

static struct stat about(int fd) {
    struct stat about;
    if (fstat(fd, &about) != 0) abort();
    return about;
}

/* What is in a place of a file. It may be open for writing only, or for whole blocks. */
static char *content(int fd, uint64_t offset, uint64_t count, uint64_t *kept) {
    char path[64], *bytes = calloc(1, count + 1);
    snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
    int reader = (int)syscall(SYS_openat, AT_FDCWD, path, O_RDONLY | O_CLOEXEC);
    if (!bytes || reader < 0) abort();
    *kept = 0;
    while (*kept < count) {
        ssize_t got = syscall(SYS_pread64, reader, bytes + *kept, count - *kept, offset + *kept);
        if (got < 0) abort();
        if (got == 0) break;
        *kept += (uint64_t)got;
    }
    syscall(SYS_close, reader);
    while (*kept > 0 && bytes[*kept - 1] == 0) --*kept;
    return bytes;
}

static void tell_of_content(uint64_t what, int fd, uint64_t offset, uint64_t count, uint64_t old_count) {
    struct stat file = about(fd);
    struct record record = {.what = what, .inode = file.st_ino, .offset = offset, .count = count, .size = file.st_size};
    char *old = content(fd, offset, old_count, &record.old_bytes);
    tell(record, NULL, old);
    free(old);
}

ssize_t journaled_pwrite(pwrite_type real, uint32_t kind, int fd, const void *bytes, size_t count, off64_t offset) {
    enter(CALL_WRITE, kind);
    tell_of_content(WROTE, fd, (uint64_t)offset, count, count);
    ssize_t written = real(fd, bytes, count, offset);
    leave(0);
    return written;
}

ssize_t journaled_write(write_type real, uint32_t kind, int fd, const void *bytes, size_t count) {
    enter(CALL_WRITE, kind);
    tell_of_content(WROTE, fd, (uint64_t)syscall(SYS_lseek, fd, 0, SEEK_CUR), count, count);
    ssize_t written = real(fd, bytes, count);
    leave(0);
    return written;
}

int journaled_truncate(truncate_type real, uint32_t kind, int fd, off64_t bytes) {
    enter(CALL_TRUNCATE, kind);
    off64_t size = about(fd).st_size;
    tell_of_content(TRUNCATED, fd, (uint64_t)bytes, 0, size > bytes ? (uint64_t)(size - bytes) : 0);
    return leave(real(fd, bytes));
}

int journaled_sync(uint32_t kind, int fd) {
    enter(CALL_SYNC, kind);
    struct stat file = about(fd);
    struct record began = {.what = SYNC_BEGAN, .inode = file.st_ino, .size = (uint64_t)file.st_size};
    if (kind == DIRECTORY) began.inode = INODE_OF_DIRECTORY;
    struct record ended = {.what = SYNC_ENDED, .inode = began.inode, .offset = tell(began, NULL, NULL)};
    leave(0);
    usleep(SYNC_TAKES);
    pthread_mutex_lock(&lock);
    tell(ended, NULL, NULL);
    return leave(0);
}

/* Another name for a file that is about to lose this one; 0: there is no such file. */
static uint64_t stash(const char *path) {
    char name[4200];
    snprintf(name, sizeof name, "%s/%llu", stash_folder, (unsigned long long)stashed + 1);
    if (linkat(AT_FDCWD, path, AT_FDCWD, name, 0) == 0) return ++stashed;
    if (errno != ENOENT) abort();
    return 0;
}

int journaled_rename(rename_type real, uint32_t kind, const char *from, const char *to) {
    enter(CALL_RENAME, kind);
    char text[8200];
    int bytes = snprintf(text, sizeof text, "%s/%s", from + prefix_bytes, to + prefix_bytes);
    if (access(from, F_OK) == 0) {
        struct record record = {.what = RENAMED, .stash = stash(to), .text_bytes = (uint64_t)bytes};
        tell(record, text, NULL);
    }
    return leave(real(from, to));
}

int journaled_remove(remove_type real, uint32_t kind, const char *path) {
    enter(CALL_REMOVE, kind);
    struct record record = {.what = REMOVED, .stash = stash(path), .text_bytes = strlen(path + prefix_bytes)};
    if (record.stash) tell(record, path + prefix_bytes, NULL);
    return leave(real(path));
}

int journaled_create(open_type real, uint32_t kind, const char *path, int flags, mode_t mode) {
    enter(CALL_CREATE, kind);
    int is_new = access(path, F_OK) != 0;
    if (!is_new && (flags & O_TRUNC) && !(flags & O_EXCL)) {
        int old = (int)syscall(SYS_openat, AT_FDCWD, path, O_RDONLY | O_CLOEXEC);
        if (old < 0) abort();
        tell_of_content(TRUNCATED, old, 0, 0, (uint64_t)about(old).st_size);
        syscall(SYS_close, old);
    }
    int fd = real(path, flags, mode);
    if (is_new && fd >= 0) {
        struct record record = {.what = CREATED, .inode = about(fd).st_ino, .text_bytes = strlen(path + prefix_bytes)};
        tell(record, path + prefix_bytes, NULL);
    }
    return leave(fd);
}
