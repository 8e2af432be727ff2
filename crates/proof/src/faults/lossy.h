/* Lossy: what a power cut may take of one directory is told in a journal, call by call. See lossy.c. */
#include <stdint.h>
#include <sys/types.h>

enum { CALL_WRITE = 1, CALL_SYNC = 2, CALL_RENAME = 4, CALL_CREATE = 8, CALL_TRUNCATE = 16, CALL_REMOVE = 32 };
enum { LOG = 1, NEW_LOG = 2, NEW_RUN = 4, RUN = 8, MANIFEST = 16, DIRECTORY = 32, OTHER = 64 };

typedef ssize_t (*pwrite_type)(int, const void *, size_t, off64_t);
typedef ssize_t (*write_type)(int, const void *, size_t);
typedef int (*rename_type)(const char *, const char *);
typedef int (*open_type)(const char *, int, ...);
typedef int (*truncate_type)(int, off64_t);
typedef int (*remove_type)(const char *);

/* Of shim.c: whether this call fails, and how; where the process is to die it does not return. */
int verdict(uint32_t call, uint32_t kind);

void journal_begin(const char *directory);
int journal_is_on(void);

/* Each makes its call on a file of the directory, and tells of it first. */
ssize_t journaled_pwrite(pwrite_type real, uint32_t kind, int fd, const void *bytes, size_t count, off64_t offset);
ssize_t journaled_write(write_type real, uint32_t kind, int fd, const void *bytes, size_t count);
int journaled_truncate(truncate_type real, uint32_t kind, int fd, off64_t bytes);
int journaled_sync(uint32_t kind, int fd);
int journaled_rename(rename_type real, uint32_t kind, const char *from, const char *to);
int journaled_remove(remove_type real, uint32_t kind, const char *path);
int journaled_create(open_type real, uint32_t kind, const char *path, int flags, mode_t mode);
