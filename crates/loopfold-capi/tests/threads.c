/* A hundred threads read one fold; and everything that can be wrong with arguments. */
#include <libloopfold.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static loopfold_fold *fold;

static void expect(int holds, const char *what)
{
    if (!holds) {
        fprintf(stderr, "%s; the last message: %s\n", what, loopfold_message());
        exit(1);
    }
}

static void *reader(void *number)
{
    const size_t first = (size_t)number * 7;
    uint32_t symbols[300];
    expect(loopfold_expand(fold, 0, first, 300, symbols) == LOOPFOLD_OK, "expand");
    for (size_t at = 0; at < 300; at++) {
        char name[16];
        snprintf(name, sizeof name, "%d", (int)((first + at) % 3));
        expect(!strcmp(loopfold_symbol_name(fold, symbols[at]), name), "another event");
    }
    /* The message of each thread is its own. */
    expect(loopfold_expand(fold, (size_t)number + 1, 0, 1, symbols) == LOOPFOLD_INVALID, "no such stream");
    char wanted[80];
    snprintf(wanted, sizeof wanted, "there is no stream %d; there are 1", (int)(size_t)number + 1);
    expect(!strcmp(loopfold_message(), wanted), wanted);
    const char *question[] = {"stats", "--json"};
    char *answer = NULL;
    expect(loopfold_ask(fold, 2, question, &answer) == LOOPFOLD_OK, "stats");
    expect(strstr(answer, "1000") != NULL, answer);
    loopfold_text_free(answer);
    return NULL;
}

static int stop(void *user, const loopfold_node *node)
{
    (void)node;
    return ++*(int *)user == 2;
}

int main(void)
{
    uint8_t events[1000];
    for (int at = 0; at < 1000; at++)
        events[at] = (uint8_t)(at % 3);
    expect(loopfold_fold_array(events, 1000, 1, "outermost", &fold) == LOOPFOLD_OK, "fold");
    expect(loopfold_event_count(fold, 0) == 1000 && loopfold_event_count(fold, 1) == 0, "events");
    expect(loopfold_stream_count(fold) == 1 && loopfold_symbol_count(fold) == 3, "counts");
    expect(!strcmp(loopfold_stream_name(fold, 0), "array") && !loopfold_stream_name(fold, 1), "names");

    pthread_t threads[100];
    for (size_t number = 0; number < 100; number++)
        expect(!pthread_create(&threads[number], NULL, reader, (void *)number), "a thread");
    for (int number = 0; number < 100; number++)
        pthread_join(threads[number], NULL);

    loopfold_fold *other = NULL;
    char *answer = NULL;
    uint32_t symbol;
    int visited = 0;
    expect(loopfold_walk(fold, 0, 100, stop, &visited) == LOOPFOLD_STOPPED && visited == 2, "stopped");
    expect(loopfold_fold_array(events, 10, 3, NULL, &other) == LOOPFOLD_INVALID, "a width of 3");
    expect(loopfold_fold_array(NULL, 10, 4, NULL, &other) == LOOPFOLD_INVALID, "no array");
    expect(loopfold_fold_array(NULL, 0, 4, NULL, &other) == LOOPFOLD_OK, "an empty array");
    loopfold_close(other);
    expect(loopfold_fold_array(events, 10, 1, "best", &other) == LOOPFOLD_INVALID, "no such folder");
    expect(loopfold_expand(fold, 0, 999, 2, &symbol) == LOOPFOLD_INVALID, "beyond the end");
    expect(loopfold_expand(fold, 0, UINT64_MAX, 2, &symbol) == LOOPFOLD_INVALID, "far beyond the end");
    expect(loopfold_expand(NULL, 0, 0, 1, &symbol) == LOOPFOLD_INVALID, "no fold");
    expect(loopfold_open("/does/not/exist", &other) == LOOPFOLD_IO, "no file");
    expect(loopfold_open(NULL, &other) == LOOPFOLD_INVALID, "no path");
    expect(loopfold_open("\xff", &other) == LOOPFOLD_INVALID, "a path that is not UTF-8");
    expect(loopfold_save(fold, "/does/not/exist") == LOOPFOLD_IO, "a folder that is not there");
    const char *unknown[] = {"stats", "--no-such-option"};
    expect(loopfold_ask(fold, 2, unknown, &answer) == LOOPFOLD_INVALID, "an option that is not there");
    const char *nothing[] = {"find", "9", "--json"};
    expect(loopfold_ask(fold, 3, nothing, &answer) == LOOPFOLD_NOTHING, "nothing is found");
    loopfold_text_free(answer);
    loopfold_recorder *recorder = NULL;
    expect(loopfold_recorder_new(NULL, &recorder) == LOOPFOLD_OK, "a recorder");
    expect(loopfold_push(recorder, "main", NULL, 0, 0) == LOOPFOLD_INVALID, "no event");
    loopfold_recorder_free(recorder);
    expect(loopfold_recorder_finish(NULL, &other) == LOOPFOLD_INVALID, "no recorder");
    loopfold_close(NULL);
    loopfold_text_free(NULL);
    loopfold_close(fold);
    printf("ok\n");
    return 0;
}
