/* Loopfold: folds the repetition out of execution traces, and answers questions on the folded form.
 *
 * Functions that can fail return a status; loopfold_message() says why, in a line, for the last
 * failure in the calling thread. What a function returns through a pointer is set only if it
 * returns LOOPFOLD_OK or LOOPFOLD_NOTHING. Text is UTF-8 and ends with a zero byte; times are
 * nanoseconds. A fold never changes: any number of threads may use it at once, as long as none closes
 * it. A recorder takes events from several threads, one after the other.
 */

#ifndef LIBLOOPFOLD_H
#define LIBLOOPFOLD_H

/* Written by `cargo xtask generate`; do not edit. */

#include <stddef.h>
#include <stdint.h>

/* A time that is not known. */
#define LOOPFOLD_UNKNOWN_TIME INT64_MIN

/*
 How a call ended.
 */
typedef enum loopfold_status {
  /*
   Done.
   */
  LOOPFOLD_OK = 0,
  /*
   Nothing was found, or a check failed; there is an answer that says so.
   */
  LOOPFOLD_NOTHING = 1,
  /*
   An argument is wrong.
   */
  LOOPFOLD_INVALID = 2,
  /*
   The input is damaged.
   */
  LOOPFOLD_DAMAGED = 3,
  /*
   A file cannot be read or written.
   */
  LOOPFOLD_IO = 4,
  /*
   There is more than memory or a limit allows.
   */
  LOOPFOLD_LIMIT = 5,
  /*
   An error in the library itself.
   */
  LOOPFOLD_INTERNAL = 6,
  /*
   The function of the caller asked to stop.
   */
  LOOPFOLD_STOPPED = 7,
} loopfold_status;

/*
 What a node of a nest is.
 */
typedef enum loopfold_node_kind {
  /*
   An event.
   */
  LOOPFOLD_EVENT = 0,
  /*
   The beginning of a loop; its body follows.
   */
  LOOPFOLD_LOOP = 1,
  /*
   The end of the innermost loop that has begun.
   */
  LOOPFOLD_LOOP_END = 2,
  /*
   Events that are left out: the nest has more nodes than were asked for.
   */
  LOOPFOLD_LEFT_OUT = 3,
} loopfold_node_kind;

/*
 A folded trace.
 */
typedef struct loopfold_fold loopfold_fold;

/*
 Takes events.
 */
typedef struct loopfold_recorder loopfold_recorder;

/*
 A node of a nest.
 */
typedef struct loopfold_node {
  /*
   What it is.
   */
  enum loopfold_node_kind kind;
  /*
   How many loops are around it.
   */
  uint32_t depth;
  /*
   The symbol of an event; 0 otherwise.
   */
  uint32_t symbol;
  /*
   The iterations of a loop; 1 otherwise.
   */
  uint64_t times;
  /*
   The events of one iteration, or those that are left out; 1 for an event.
   */
  uint64_t length;
} loopfold_node;

/*
 A function of the caller that sees each node, in order; anything but 0 stops the walk.
 */
typedef int (*loopfold_visitor)(void *user, const struct loopfold_node *node);

#ifdef __cplusplus
extern "C" {
#endif // __cplusplus

/*
 Asks what the command would answer: `arguments` are a command and its options, without an input,
 such as `{"hot", "--top", "5", "--json"}`. The answer is freed by `loopfold_text_free`.

 `fold` is open; `arguments` has `count` texts that end with a zero byte; `answer` can be written to.
 */
enum loopfold_status loopfold_ask(const struct loopfold_fold *fold,
                                  size_t count,
                                  const char *const *arguments,
                                  char **answer);

/*
 Frees an answer; null is ignored.

 `answer` is null, or came from `loopfold_ask` and was not freed.
 */
void loopfold_text_free(char *answer);

/*
 Opens a trace of any format that the command reads, or an archive.

 `path` ends with a zero byte; `fold` can be written to.
 */
enum loopfold_status loopfold_open(const char *path, struct loopfold_fold **fold);

/*
 Folds an array of `count` unsigned integers of `width` bytes each (1, 2, 4 or 8), as one stream;
 `folder` is the name of a folder as of the command, or null for `auto`.

 `values` has so many integers; `folder` is null or ends with a zero byte; `fold` can be written to.
 */
enum loopfold_status loopfold_fold_array(const void *values,
                                         size_t count,
                                         size_t width,
                                         const char *folder_name,
                                         struct loopfold_fold **fold);

/*
 Writes a fold as an archive; a file that is there is replaced when the new one is complete.

 `fold` is open; `path` ends with a zero byte.
 */
enum loopfold_status loopfold_save(const struct loopfold_fold *fold, const char *path);

/*
 Frees a fold, and the texts of its streams and symbols; null is ignored.

 `fold` is null, or open and used by nobody else.
 */
void loopfold_close(struct loopfold_fold *fold);

/*
 How many streams a fold has; 0 of a null pointer.

 `fold` is null or open.
 */
size_t loopfold_stream_count(const struct loopfold_fold *fold);

/*
 The name of a stream, or null if there is none; valid as long as the fold.

 `fold` is null or open.
 */
const char *loopfold_stream_name(const struct loopfold_fold *fold, size_t stream);

/*
 How many events a stream has; 0 if there is no such stream.

 `fold` is null or open.
 */
uint64_t loopfold_event_count(const struct loopfold_fold *fold, size_t stream);

/*
 How many symbols there are: kinds of events.

 `fold` is null or open.
 */
size_t loopfold_symbol_count(const struct loopfold_fold *fold);

/*
 The event that a symbol stands for, as the command prints it, or null if there is none; valid as
 long as the fold.

 `fold` is null or open.
 */
const char *loopfold_symbol_name(const struct loopfold_fold *fold, uint32_t symbol);

/*
 Writes the symbols of `count` events of a stream from position `first` on.

 `fold` is open; `symbols` has room for `count` numbers.
 */
enum loopfold_status loopfold_expand(const struct loopfold_fold *fold,
                                     size_t stream,
                                     uint64_t first,
                                     size_t count,
                                     uint32_t *symbols);

/*
 Visits the loop nest of a stream, of about `most` nodes at most, each loop body once.

 `fold` is open; `visitor` can be called with `user`.
 */
enum loopfold_status loopfold_walk(const struct loopfold_fold *fold,
                                   size_t stream,
                                   size_t most,
                                   loopfold_visitor visitor,
                                   void *user);

/*
 Makes a recorder; `folder_name` is the name of a folder as of the command, or null for `auto`.

 `folder_name` is null or ends with a zero byte; `recorder` can be written to.
 */
enum loopfold_status loopfold_recorder_new(const char *folder_name,
                                           struct loopfold_recorder **recorder);

/*
 Appends an event to a stream, both by name. `start` and `duration` are nanoseconds, or
 `LOOPFOLD_UNKNOWN_TIME`.

 `recorder` is neither finished nor freed; `stream` and `event` end with a zero byte.
 */
enum loopfold_status loopfold_push(struct loopfold_recorder *recorder,
                                   const char *stream,
                                   const char *event,
                                   int64_t start,
                                   int64_t duration);

/*
 Folds what a recorder took, and frees the recorder, also if that fails.

 `recorder` is used by nobody else, and not used again; `fold` can be written to.
 */
enum loopfold_status loopfold_recorder_finish(struct loopfold_recorder *recorder,
                                              struct loopfold_fold **fold);

/*
 Frees a recorder without folding what it took; null is ignored.

 `recorder` is null, or neither finished nor freed, and used by nobody else.
 */
void loopfold_recorder_free(struct loopfold_recorder *recorder);

/*
 Why the last call of this thread that failed did so; valid until the next one fails.
 */
const char *loopfold_message(void);

/*
 The version of the library, such as `0.1.0`.
 */
const char *loopfold_version(void);

#ifdef __cplusplus
}  // extern "C"
#endif  // __cplusplus

#endif  /* LIBLOOPFOLD_H */
