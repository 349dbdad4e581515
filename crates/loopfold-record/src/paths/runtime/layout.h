/* The shared memory of a recorded process, and the messages that it sends. The same numbers are in
 * memory.rs, messages.rs and tokens.rs.
 *
 * Offsets of what a recorder needs to refuse a memory (version, thrown, stop) are those of every
 * version.
 */
#ifndef LF_LAYOUT_H
#define LF_LAYOUT_H

#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>

#ifndef LF_VERSION
#define LF_VERSION 2
#endif

enum {
    LF_CHUNKS = 16,
    LF_CHUNK_TOKENS = 1 << 14,
    LF_LANES_AT = 4096,
    LF_DATA_AT = 1 << 18,
    LF_MOST_LANES = 1024,
};
#define LF_CHUNK_BYTES ((size_t)LF_CHUNK_TOKENS * 4)
#define LF_LANE_BYTES ((size_t)LF_CHUNKS * LF_CHUNK_BYTES)
#define LF_MEMORY_NAME "loopfold-paths"

struct lf_shared_lane {
    /* Written by the program: how many chunks are complete. */
    _Atomic uint64_t head;
    /* A lane is used again: these are the numbers of its present use. It is free when all three
     * are equal, and has ended when the first two are. */
    _Atomic uint32_t begun, ended;
    uint32_t thread, level, mark;
    /* How many tokens the open chunk had when it was last counted: when the program ends by `exit`. */
    _Atomic uint32_t open;
    /* How many tokens are in the complete chunks of this use; when it has ended, in all. */
    _Atomic uint64_t written;
    char room[24];
    /* Written by the recorder. */
    _Atomic uint64_t tail;
    _Atomic uint32_t drained;
    char more_room[52];
};
_Static_assert(sizeof(struct lf_shared_lane) == 128, "the recorder knows this size");
_Static_assert(offsetof(struct lf_shared_lane, tail) == 64, "the recorder knows this place");

struct lf_shared {
    uint32_t version, lanes;
    /* How many lanes were ever used; how many threads, or rests of them, have none. */
    _Atomic uint32_t used, missed;
    /* How many processes were to begin as copies of this one, without a promise (LF_PROMISE). */
    _Atomic uint32_t forks;
    /* Set when a full ring was not read for too long. */
    _Atomic uint32_t gave_up;
    /* How many tokens were thrown away, at least: the last few thousand of a thread are not counted
     * before it ends. */
    _Atomic uint64_t thrown;
    /* How many modules could not be described, so that their functions have no names. */
    _Atomic uint32_t unnamed;
    char room[28];
    /* Written by the recorder: no more is wanted. */
    _Atomic uint32_t stop;
};
_Static_assert(offsetof(struct lf_shared, thrown) == 24, "the recorder knows this place");
_Static_assert(offsetof(struct lf_shared, unnamed) == 32, "the recorder knows this place");
_Static_assert(offsetof(struct lf_shared, stop) == 64, "the recorder knows this place");

/* A promise is sent before a fork, by the parent; the child goes on on the same connection, which
 * is closed when neither is there any more. */
enum { LF_HELLO = 1, LF_MODULE = 2, LF_FAILURE = 3, LF_NO_COUNTER = 4, LF_PROMISE = 5 };

struct lf_message {
    uint32_t magic, kind, pid;
    /* Hello: the parent of a copy, or 0. Module: which run-time library of the process sends it. */
    uint32_t parent;
    /* Hello: the mark in the parent's lane with these bits, and the first number of a function that
     * is not inherited. Module: the number of its first function, and which program the process
     * executes. Failure: the error with these bits. No counter: the error. */
    uint32_t first, second;
    /* Hello: which program the process executes, and which run-time library of it this is. Module:
     * the size of the description, which follows. */
    uint64_t bytes;
};
#define LF_MAGIC 0x3150464cu
/* Its parent has counted this copy (`forks`); it was not announced and may have written to the chunk
 * of its parent. */
#define LF_COUNTED 0x80000000u
#define LF_MIXED 0x40000000u

/* Tokens that the run-time library emits itself. */
#define LF_MARK_UNWIND 0xc0000000u
#define LF_MARK_FORK 0xc8000000u
#define LF_MARK_EVENT 0xd0000000u
#define LF_MARK_BITS 0x07ffffffu

#endif
