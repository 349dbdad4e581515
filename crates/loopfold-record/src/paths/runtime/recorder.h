/* The way to the recorder: a socket for messages, and the shared memory; and the way to the library
 * of the process that has both.
 *
 * Nothing waits without a limit: a recorder that is stopped is taken for one that is gone.
 */
#ifndef LF_RECORDER_H
#define LF_RECORDER_H

#include "state.h"

/* How long a message may take, in seconds. */
enum { LF_PATIENCE = 20 };

static struct sockaddr_un lf_address;
static size_t lf_address_bytes;

/* ---- messages ---- */

/* The name of the socket has no owner: only this user and root are given what this process does. */
static int lf_is_trusted(int connection)
{
    struct ucred peer;
    socklen_t size = sizeof peer;
    const long result = lf_call6(SYS_getsockopt, connection, SOL_SOCKET, SO_PEERCRED, (long)&peer, (long)&size, 0);
    return result == 0 && (peer.uid == 0 || peer.uid == (uid_t)lf_call(SYS_getuid, 0, 0, 0));
}

static int lf_connect(int flags)
{
    const int connection = (int)lf_call(SYS_socket, AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | flags, 0);
    if (connection < 0)
        return connection;
    const struct timeval patience = {LF_PATIENCE, 0};
    lf_call6(SYS_setsockopt, connection, SOL_SOCKET, SO_SNDTIMEO, (long)&patience, sizeof patience, 0);
    long result;
    do
        result = lf_call(SYS_connect, connection, &lf_address, lf_address_bytes);
    while (result == -EINTR);
    if (result == 0 && lf_is_trusted(connection))
        return connection;
    lf_call(SYS_close, connection, 0, 0);
    return result == 0 ? -ECONNREFUSED : (int)result;
}

/* False if nobody listens any more. A recorder that is stopped or busy still does. */
static int lf_recorder_lives(void)
{
    const int connection = lf_connect(SOCK_NONBLOCK);
    if (connection >= 0)
        lf_call(SYS_close, connection, 0, 0);
    return connection != -ECONNREFUSED && connection != -ENOENT;
}

/* Sends all of it, with a file if there is one; false if that fails. */
static int lf_send(int connection, const void *bytes, size_t length, int file)
{
    union {
        char room[CMSG_SPACE(sizeof(int))];
        struct cmsghdr aligned;
    } control;
    while (length > 0) {
        struct iovec piece = {(void *)bytes, length};
        struct msghdr message = {.msg_iov = &piece, .msg_iovlen = 1};
        if (file >= 0) {
            lf_zero(&control, sizeof control & ~(size_t)7);
            message.msg_control = control.room;
            message.msg_controllen = sizeof control.room;
            struct cmsghdr *header = CMSG_FIRSTHDR(&message);
            header->cmsg_level = SOL_SOCKET;
            header->cmsg_type = SCM_RIGHTS;
            header->cmsg_len = CMSG_LEN(sizeof(int));
            *(int *)CMSG_DATA(header) = file;
        }
        const long sent = lf_call(SYS_sendmsg, connection, &message, MSG_NOSIGNAL);
        if (sent == -EINTR)
            continue;
        if (sent <= 0)
            return 0;
        file = -1;
        bytes = (const char *)bytes + sent;
        length -= (size_t)sent;
    }
    return 1;
}

/* ---- the memory ---- */

/* A byte that is 1 here and 0 in copies of this process, as far as the kernel can do that. */
static void lf_mark_original(void)
{
#ifdef MADV_WIPEONFORK
    if (!lf_original) {
        const long at = lf_call6(SYS_mmap, 0, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        if (!lf_is_address(at))
            return;
        if (lf_call(SYS_madvise, at, 4096, MADV_WIPEONFORK) < 0) {
            lf_call(SYS_munmap, at, 4096, 0);
            return;
        }
        lf_original = (char *)at;
    }
    *lf_original = 1;
#endif
}

/* Whether this process is a copy that was made without the C library, and so writes to the memory
 * of its parent. A child that shares the address space of its parent (vfork) is none. */
static inline int lf_is_copy(void)
{
    if (LF_UNLIKELY(!lf_original))
        return lf_pid() != lf_owner;
    return !*(volatile char *)lf_original;
}

/* Creates and maps it; as large as this process may, with at least two lanes. Returns its file, or
 * an error. */
static int lf_create_memory(void)
{
    struct rlimit most = {RLIM_INFINITY, RLIM_INFINITY};
    lf_call6(SYS_prlimit64, 0, RLIMIT_FSIZE, 0, (long)&most, 0, 0);
    long failure = -EFBIG;
    for (uint32_t lanes = LF_MOST_LANES; lanes >= 2; lanes /= 8) {
        const size_t bytes = LF_DATA_AT + lanes * LF_LANE_BYTES;
        /* A file beyond the limit would be a signal. */
        if (most.rlim_cur != RLIM_INFINITY && bytes > most.rlim_cur)
            continue;
        const int file = (int)lf_call(SYS_memfd_create, LF_MEMORY_NAME, MFD_CLOEXEC, 0);
        if (file < 0)
            return file;
        failure = lf_call(SYS_ftruncate, file, bytes, 0);
        if (failure == 0) {
            const long at = lf_call6(SYS_mmap, 0, (long)bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_NORESERVE, file, 0);
            if (lf_is_address(at)) {
                lf_memory = (struct lf_shared *)at;
                lf_memory_bytes = bytes;
                lf_memory->version = LF_VERSION;
                lf_memory->lanes = lanes;
                return file;
            }
            failure = at;
        }
        lf_call(SYS_close, file, 0, 0);
    }
    return (int)failure;
}

/* Followers look for this: a page of a file that nobody else has, as it says what they call. */
#define LF_LEADER_NAME "loopfold-leader"
struct lf_published {
    uint32_t version;
    const struct lf_leader *leader;
};

static void lf_publish(void)
{
    static int is_published;
    const int file = is_published ? -1 : (int)lf_call(SYS_memfd_create, LF_LEADER_NAME, MFD_CLOEXEC, 0);
    if (file < 0)
        return;
    long at = lf_call(SYS_ftruncate, file, 4096, 0);
    if (at == 0)
        at = lf_call6(SYS_mmap, 0, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE, file, 0);
    if (lf_is_address(at)) {
        struct lf_published *const published = (struct lf_published *)at;
        published->leader = atomic_load(&lf_leader);
        published->version = LF_VERSION;
        lf_call(SYS_mprotect, at, 4096, PROT_READ);
        is_published = 1;
    }
    lf_call(SYS_close, file, 0, 0);
}

/* Different for each program that a process executes. */
static uint32_t lf_program(void)
{
    const uint32_t *const random = (const uint32_t *)getauxval(AT_RANDOM);
    return random ? *random : 0;
}

/* Different for each run-time library that a program has. */
static uint32_t lf_tag(void)
{
    return (uint32_t)((uintptr_t)&lf_mode >> 2);
}

/* Introduces this process with its memory, and returns the connection: the one that was promised, if
 * there is one that works. Negative if nobody is there or there is no memory; the recorder is given
 * the reason. */
static int lf_introduce(int connection, uint32_t parent, uint32_t mark, uint32_t bits)
{
    if (connection < 0)
        connection = lf_connect(0);
    if (connection < 0)
        return connection;
    lf_owner = lf_pid();
    if (lf_call(SYS_gettid, 0, 0, 0) == lf_owner)
        lf_first = &lf_me;
    lf_mark_original();
    const int file = lf_create_memory();
    if (file >= 0)
        lf_publish();
    const uint64_t who = (uint64_t)lf_program() << 32 | lf_tag();
    const uint32_t first = bits | (file < 0 ? (uint32_t)-file : mark);
    const struct lf_message hello = {LF_MAGIC, file < 0 ? LF_FAILURE : LF_HELLO, lf_owner, parent, first, lf_next_id, who};
    int is_sent = lf_send(connection, &hello, sizeof hello, file);
    if (!is_sent) {
        lf_call(SYS_close, connection, 0, 0);
        connection = lf_connect(0);
        if (connection >= 0)
            is_sent = lf_send(connection, &hello, sizeof hello, file);
    }
    if (file >= 0)
        lf_call(SYS_close, file, 0, 0);
    if (file >= 0 && is_sent) {
        atomic_store(&lf_mode, LF_ON);
        return connection;
    }
    if (connection >= 0)
        lf_call(SYS_close, connection, 0, 0);
    return -1;
}

/* ---- the leader ---- */

/* The address at the beginning of a line of /proc/self/maps, if it is where a leader is published. */
static const struct lf_published *lf_published_in(const char *line, const char *end)
{
    static const char name[] = "/memfd:" LF_LEADER_NAME " (deleted)";
    const size_t length = sizeof name - 1;
    if ((size_t)(end - line) <= length)
        return NULL;
    for (size_t index = 0; index < length; index++)
        if (end[(ptrdiff_t)index - (ptrdiff_t)length] != name[index])
            return NULL;
    uintptr_t address = 0;
    for (; line < end && *line != '-'; line++)
        address = address * 16 + (uintptr_t)(*line <= '9' ? *line - '0' : *line - 'a' + 10);
    return (const struct lf_published *)address;
}

/* The leader of this process, if there is one that this library understands. */
static const struct lf_leader *lf_find_leader(void)
{
    char text[4096];
    size_t filled = 0;
    const struct lf_leader *found = NULL;
    const int file = (int)lf_call6(SYS_openat, AT_FDCWD, (long)"/proc/self/maps", O_RDONLY | O_CLOEXEC, 0, 0, 0);
    while (file >= 0 && !found) {
        const long length = lf_call(SYS_read, file, text + filled, sizeof text - filled);
        if (length <= 0 && length != -EINTR)
            break;
        filled += length > 0 ? (size_t)length : 0;
        size_t start = 0;
        for (size_t at = 0; at < filled && !found; at++) {
            if (text[at] != '\n')
                continue;
            const struct lf_published *const published = lf_published_in(text + start, text + at);
            if (published && published->version == LF_VERSION)
                found = published->leader;
            start = at + 1;
        }
        /* A line that is longer than this is none of ours. */
        if (start == 0 && filled == sizeof text)
            start = filled;
        for (size_t at = start; at < filled; at++)
            text[at - start] = text[at];
        filled -= start;
    }
    if (file >= 0)
        lf_call(SYS_close, file, 0, 0);
    return found && found->version == LF_VERSION ? found : NULL;
}

#endif
