/* Folds an array of basic blocks, prints its loop nest, asks which subpaths are hot, and reads it back
 * from an archive.
 *
 * Usage: blocks ARCHIVE, which is written. Compile with
 *   cc blocks.c $(pkg-config --cflags --libs loopfold) -o blocks */
#include <libloopfold.h>
#include <stdio.h>
#include <stdlib.h>

static void check(loopfold_status status, const char *what)
{
    if (status > LOOPFOLD_NOTHING) {
        fprintf(stderr, "%s: %s\n", what, loopfold_message());
        exit(1);
    }
}

/* Prints a node, with two spaces for each loop around it. */
static int print(void *user, const loopfold_node *node)
{
    const loopfold_fold *fold = user;
    const int indent = 2 * (int)node->depth;
    switch (node->kind) {
    case LOOPFOLD_EVENT:
        printf("%*s%s\n", indent, "", loopfold_symbol_name(fold, node->symbol));
        break;
    case LOOPFOLD_LOOP:
        printf("%*s%llu x\n", indent, "", (unsigned long long)node->times);
        break;
    case LOOPFOLD_LEFT_OUT:
        printf("%*s%llu events more\n", indent, "", (unsigned long long)node->length);
        break;
    case LOOPFOLD_LOOP_END:
        break;
    }
    return 0;
}

int main(int argc, char **argv)
{
    if (argc != 2) {
        fprintf(stderr, "usage: blocks ARCHIVE\n");
        return 2;
    }
    /* 100 rows of 50 columns: a head, the columns, a tail. */
    enum { ROWS = 100, COLUMNS = 50, LENGTH = ROWS * (COLUMNS + 2) };
    static uint32_t blocks[LENGTH];
    size_t count = 0;
    for (int row = 0; row < ROWS; row++) {
        blocks[count++] = 1;
        for (int column = 0; column < COLUMNS; column++)
            blocks[count++] = 2;
        blocks[count++] = 3;
    }

    loopfold_fold *fold = NULL, *again = NULL;
    check(loopfold_fold_array(blocks, count, sizeof blocks[0], NULL, &fold), "fold");
    printf("%llu events\n", (unsigned long long)loopfold_event_count(fold, 0));
    check(loopfold_walk(fold, 0, 1000, print, fold), "walk");

    check(loopfold_save(fold, argv[1]), "save");
    check(loopfold_open(argv[1], &again), "open");
    uint32_t symbols[4];
    check(loopfold_expand(again, 0, 50, 4, symbols), "expand");
    for (int event = 0; event < 4; event++)
        printf("%s%s", loopfold_symbol_name(again, symbols[event]), event < 3 ? " " : "\n");

    const char *question[] = {"find", "3 1", "--json"};
    char *answer = NULL;
    check(loopfold_ask(again, 3, question, &answer), "find");
    printf("%s", answer);
    loopfold_text_free(answer);

    loopfold_close(again);
    loopfold_close(fold);
    return 0;
}
