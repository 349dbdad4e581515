/* An interpreter to record: compiles a small language to code for a stack machine, and runs it.
 * `calc N` runs the program below with n = N; `calc N FILE` another one.
 *
 *     loopfold-cc -g -O2 calc.c -o calc
 *     loopfold record -o calc.fold ./calc 2000
 *     loopfold loops calc.fold
 *
 * Statements are `name = value;`, `name[value] = value;`, `while value { … }`, `if value { … } else
 * { … }`, `print value;`; values have + - * / % < == ( ) and the array names a to z.
 */
#include <ctype.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char primes_and_collatz[] =
    "i = 2; while i < n { p[i] = 1; i = i + 1; }"
    "i = 2; while i < n { if p[i] == 1 { j = i + i; while j < n { p[j] = 0; j = j + i; } } i = i + 1; }"
    "c = 0; i = 2; while i < n { c = c + p[i]; i = i + 1; } print c;"
    "m = 0; i = 1; while i < n {"
    "  x = i; k = 0;"
    "  while 1 < x { if x % 2 == 0 { x = x / 2; } else { x = 3 * x + 1; } k = k + 1; }"
    "  if m < k { m = k; b = i; } i = i + 1; }"
    "print b; print m;"
    "i = 0; while i < 60 { s[i] = i * 37 % 61; i = i + 1; }"
    "i = 0; while i < 60 { j = i; while 0 < j * (s[j] < s[j - 1]) { t = s[j]; s[j] = s[j - 1]; s[j - 1] = t; j = j - 1; } i = i + 1; }"
    "print s[0]; print s[59];";

enum operation { PUSH, LOAD, STORE, LOAD_AT, STORE_AT, ADD, SUBTRACT, MULTIPLY, DIVIDE, REMAINDER, LESS, EQUAL, JUMP, JUMP_IF_ZERO, PRINT, HALT };

struct instruction {
    enum operation operation;
    int64_t operand;
};

enum { MOST_CODE = 4096, MOST_STACK = 256, ELEMENTS = 1 << 16 };

static struct instruction code[MOST_CODE];
static int code_length;
static const char *source;
static int64_t variables[26], *arrays[26];

static void fail(const char *what)
{
    fprintf(stderr, "calc: %s at '%.20s'\n", what, source);
    exit(2);
}

/* ---- the compiler ---- */

static int emit(enum operation operation, int64_t operand)
{
    if (code_length == MOST_CODE)
        fail("too long");
    code[code_length] = (struct instruction){operation, operand};
    return code_length++;
}

static char next(void)
{
    while (isspace((unsigned char)*source))
        source++;
    return *source;
}

static int accept(const char *word)
{
    next();
    const size_t length = strlen(word);
    if (strncmp(source, word, length) != 0 || (isalpha((unsigned char)*word) && isalnum((unsigned char)source[length])))
        return 0;
    source += length;
    return 1;
}

static void expect(const char *word)
{
    if (!accept(word))
        fail(word);
}

static void value(void);

static void factor(void)
{
    if (accept("(")) {
        value();
        expect(")");
    } else if (isdigit((unsigned char)next())) {
        emit(PUSH, strtoll(source, (char **)&source, 10));
    } else if (islower((unsigned char)next())) {
        const int name = *source++ - 'a';
        if (accept("[")) {
            value();
            expect("]");
            emit(LOAD_AT, name);
        } else {
            emit(LOAD, name);
        }
    } else {
        fail("a value is expected");
    }
}

static void term(void)
{
    factor();
    for (;;) {
        if (accept("*")) {
            factor();
            emit(MULTIPLY, 0);
        } else if (accept("/")) {
            factor();
            emit(DIVIDE, 0);
        } else if (accept("%")) {
            factor();
            emit(REMAINDER, 0);
        } else {
            return;
        }
    }
}

static void sum(void)
{
    term();
    for (;;) {
        if (accept("+")) {
            term();
            emit(ADD, 0);
        } else if (accept("-")) {
            term();
            emit(SUBTRACT, 0);
        } else {
            return;
        }
    }
}

static void value(void)
{
    sum();
    if (accept("<")) {
        sum();
        emit(LESS, 0);
    } else if (accept("==")) {
        sum();
        emit(EQUAL, 0);
    }
}

static void statement(void);

static void block(void)
{
    expect("{");
    while (!accept("}"))
        statement();
}

static void statement(void)
{
    if (accept("while")) {
        const int begin = code_length;
        value();
        const int out = emit(JUMP_IF_ZERO, 0);
        block();
        emit(JUMP, begin);
        code[out].operand = code_length;
    } else if (accept("if")) {
        value();
        const int otherwise = emit(JUMP_IF_ZERO, 0);
        block();
        if (accept("else")) {
            const int end = emit(JUMP, 0);
            code[otherwise].operand = code_length;
            block();
            code[end].operand = code_length;
        } else {
            code[otherwise].operand = code_length;
        }
    } else if (accept("print")) {
        value();
        emit(PRINT, 0);
        expect(";");
    } else {
        if (!islower((unsigned char)next()))
            fail("a statement is expected");
        const int name = *source++ - 'a';
        const int is_element = accept("[");
        if (is_element) {
            value();
            expect("]");
        }
        expect("=");
        value();
        emit(is_element ? STORE_AT : STORE, name);
        expect(";");
    }
}

/* ---- the machine ---- */

static int64_t *element(int64_t name, int64_t index)
{
    if (!arrays[name])
        arrays[name] = calloc(ELEMENTS, sizeof **arrays);
    if (!arrays[name])
        exit(2);
    return &arrays[name][(uint64_t)index % ELEMENTS];
}

static void run(void)
{
    int64_t stack[MOST_STACK] = {0}, *top = stack;
    for (int at = 0;; at++) {
        const struct instruction now = code[at];
        switch (now.operation) {
        case PUSH:
            *++top = now.operand;
            break;
        case LOAD:
            *++top = variables[now.operand];
            break;
        case STORE:
            variables[now.operand] = *top--;
            break;
        case LOAD_AT:
            *top = *element(now.operand, *top);
            break;
        case STORE_AT:
            *element(now.operand, top[-1]) = *top;
            top -= 2;
            break;
        case ADD:
            top--;
            *top += top[1];
            break;
        case SUBTRACT:
            top--;
            *top -= top[1];
            break;
        case MULTIPLY:
            top--;
            *top *= top[1];
            break;
        case DIVIDE:
            top--;
            *top = top[1] ? *top / top[1] : 0;
            break;
        case REMAINDER:
            top--;
            *top = top[1] ? *top % top[1] : 0;
            break;
        case LESS:
            top--;
            *top = *top < top[1];
            break;
        case EQUAL:
            top--;
            *top = *top == top[1];
            break;
        case JUMP:
            at = (int)now.operand - 1;
            break;
        case JUMP_IF_ZERO:
            if (*top-- == 0)
                at = (int)now.operand - 1;
            break;
        case PRINT:
            printf("%lld\n", (long long)*top--);
            break;
        case HALT:
            return;
        }
    }
}

int main(int count, char **arguments)
{
    static char text[1 << 16];
    source = primes_and_collatz;
    if (count > 2) {
        FILE *const file = fopen(arguments[2], "r");
        if (!file || fread(text, 1, sizeof text - 1, file) == 0)
            return 2;
        fclose(file);
        source = text;
    }
    variables['n' - 'a'] = count > 1 ? atoll(arguments[1]) : 1000;
    while (next())
        statement();
    emit(HALT, 0);
    run();
    for (int name = 0; name < 26; name++)
        free(arrays[name]);
    return 0;
}
