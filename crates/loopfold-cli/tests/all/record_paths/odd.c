/* Programs that do what few do, chosen by the first argument. */
#define _GNU_SOURCE
#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include "emit.h"

enum { MAIN, WORK };

static void work(int count)
{
    enter(WORK);
    for (int number = 0; number < count; number++)
        path((uint32_t)number % 3);
    leave();
}

static void wait_for_all(void)
{
    while (wait(NULL) > 0 || errno == EINTR) {
    }
}

/* ---- introductions ---- */

/* Introduces this process as a run-time library of version 1 does, with its memory or without. */
static int introduce(int has_memory)
{
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    const char *const name = getenv("LOOPFOLD_PATHS");
    strncpy(address.sun_path, name, sizeof address.sun_path - 1);
    address.sun_path[0] = 0;
    const int connection = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (connect(connection, (struct sockaddr *)&address, (socklen_t)(offsetof(struct sockaddr_un, sun_path) + strlen(name))) != 0)
        return 0;
    const int memory = memfd_create("version 1", MFD_CLOEXEC);
    const uint32_t version = 1;
    if (ftruncate(memory, 1 << 20) != 0 || write(memory, &version, sizeof version) != sizeof version)
        return 0;
    const uint32_t hello[8] = {0x3150464c, 1, (uint32_t)getpid()};
    struct iovec piece = {(void *)hello, sizeof hello};
    char control[CMSG_SPACE(sizeof memory)] __attribute__((aligned(8))) = {0};
    struct msghdr message = {.msg_iov = &piece, .msg_iovlen = 1};
    if (has_memory) {
        message.msg_control = control;
        message.msg_controllen = sizeof control;
        struct cmsghdr *const header = CMSG_FIRSTHDR(&message);
        header->cmsg_level = SOL_SOCKET;
        header->cmsg_type = SCM_RIGHTS;
        header->cmsg_len = CMSG_LEN(sizeof memory);
        memcpy(CMSG_DATA(header), &memory, sizeof memory);
    }
    const int is_sent = sendmsg(connection, &message, 0) == sizeof hello;
    close(connection);
    close(memory);
    return is_sent;
}

/* ---- processes ---- */

/* So many children, none of which ends before all have begun. */
static int together(int count)
{
    int begun[2], go[2];
    char byte = 0;
    if (pipe(begun) != 0 || pipe(go) != 0)
        return 9;
    enter(MAIN);
    for (int number = 0; number < count; number++) {
        if (fork() == 0) {
            close(go[1]);
            work(2);
            if (write(begun[1], &byte, 1) != 1)
                _exit(9);
            while (read(go[0], &byte, 1) > 0) {
            }
            work(3);
            _exit(0);
        }
    }
    for (int number = 0; number < count; number++)
        if (read(begun[0], &byte, 1) != 1)
            return 9;
    close(go[1]);
    wait_for_all();
    leave();
    return 0;
}

/* So many children at once, each of which ends by itself. */
static int one_by_one(int count)
{
    work(1);
    for (int number = 0; number < count; number++) {
        if (fork() == 0) {
            work(2);
            usleep(20000);
            work(3);
            _exit(0);
        }
    }
    wait_for_all();
    return 0;
}

/* Calls of handlers that are there before those of the run-time library. */
static int is_emitting, is_late;

static void before_fork(void)
{
    if (is_emitting)
        work(1);
}

static void in_child(void)
{
    if (is_emitting)
        work(2);
    if (is_late)
        usleep(2500000);
}

static void add_handlers(void)
{
    pthread_atfork(before_fork, NULL, in_child);
}

__attribute__((section(".preinit_array"), used)) static void (*const begin)(void) = add_handlers;

/* From a thread that has emitted nothing. */
static void *fork_once(void *unused)
{
    (void)unused;
    if (fork() == 0) {
        work(3);
        _exit(0);
    }
    wait_for_all();
    return NULL;
}

static void *vfork_once(void *unused)
{
    (void)unused;
    if (vfork() == 0) {
        work(1);
        _exit(0);
    }
    wait_for_all();
    work(2);
    return NULL;
}

static int in_thread(void *(*function)(void *))
{
    pthread_t thread;
    work(1);
    pthread_create(&thread, NULL, function, NULL);
    pthread_join(thread, NULL);
    return 0;
}

/* A copy of which the C library does not know, which emits so many paths. */
static int copied(int count)
{
    work(4);
    const long child = syscall(SYS_clone, SIGCHLD, NULL, NULL, NULL, NULL);
    if (child == 0) {
        work(count);
        _exit(0);
    }
    wait_for_all();
    work(4);
    return 0;
}

/* ---- threads ---- */

static pthread_key_t key;

/* In all rounds of destructors, and in each behind that of the run-time library. */
static void once_more(void *count)
{
    work((int)(intptr_t)count);
    pthread_setspecific(key, count);
}

static void *ending_thread(void *count)
{
    work(1);
    pthread_setspecific(key, count);
    return NULL;
}

static void *one_call(void *unused)
{
    (void)unused;
    work(1);
    return NULL;
}

int main(int count, char **arguments)
{
    const char *const mode = count > 1 ? arguments[1] : "";
    const int number = count > 2 ? atoi(arguments[2]) : 0;
    if (!strcmp(mode, "introduced")) {
        work(1);
        if (!introduce(number))
            return 9;
        /* More than a ring holds. */
        for (int round = 0; round < 150000; round++)
            work(1);
        return 0;
    }
    if (!strcmp(mode, "together"))
        return together(number);
    if (!strcmp(mode, "one by one"))
        return one_by_one(number);
    if (!strcmp(mode, "limited child")) {
        const struct rlimit small = {51200, 51200};
        work(1);
        setrlimit(RLIMIT_FSIZE, &small);
        return one_by_one(1);
    }
    if (!strcmp(mode, "late")) {
        is_late = 1;
        work(1);
        if (fork() == 0)
            work(2);
        return 0;
    }
    if (!strcmp(mode, "handlers")) {
        is_emitting = 1;
        return in_thread(fork_once);
    }
    if (!strcmp(mode, "vfork"))
        return in_thread(vfork_once);
    if (!strcmp(mode, "copied"))
        return copied(number);
    if (!strcmp(mode, "ending")) {
        pthread_t thread;
        pthread_key_create(&key, once_more);
        pthread_create(&thread, NULL, ending_thread, (void *)(intptr_t)number);
        pthread_join(thread, NULL);
        return 0;
    }
    if (!strcmp(mode, "many threads")) {
        for (int round = 0; round < number; round++) {
            pthread_t thread;
            pthread_create(&thread, NULL, one_call, NULL);
            pthread_join(thread, NULL);
        }
        return 0;
    }
    work(1);
    return 0;
}
