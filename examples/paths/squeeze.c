/* A compressor to record: matches are found with hash chains, and coded bit by bit with adaptive
 * probabilities. `squeeze SIZE` makes SIZE bytes of text, compresses them, decompresses the result
 * and compares; `squeeze FILE` does so with a file.
 *
 *     loopfold-cc -g -O2 squeeze.c -o squeeze
 *     loopfold record -o squeeze.fold ./squeeze 200000
 *     loopfold hot squeeze.fold --cost instructions
 */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* So that functions stay apart in what is recorded. */
#define APART __attribute__((noinline))

enum {
    HASH_BITS = 15,
    WINDOW = 1 << 16,
    LEAST_MATCH = 4,
    MOST_MATCH = LEAST_MATCH + 255,
    MOST_CHAIN = 32,
};

/* ---- text that repeats itself, as texts do ---- */

static uint32_t random_state = 12345;

static uint32_t next_random(void)
{
    random_state = random_state * 1664525u + 1013904223u;
    return random_state >> 8;
}

APART static void make_text(uint8_t *text, size_t size)
{
    static const char *const words[] = {"the ", "loop ", "folds ", "a ", "trace ", "of ", "events ", "and ", "paths ", "again ", "until ", "it ", "ends. "};
    size_t length = 0;
    while (length < size) {
        if (length > 1000 && next_random() % 8 == 0) {
            /* Something that was said before. */
            const size_t from = next_random() % (length - 200);
            for (size_t count = 20 + next_random() % 100; count > 0 && length < size; count--)
                text[length] = text[from + count], length++;
        } else {
            const char *word = words[next_random() % (sizeof words / sizeof *words)];
            while (*word && length < size)
                text[length++] = (uint8_t)*word++;
        }
    }
}

/* ---- a binary arithmetic coder with adaptive probabilities ---- */

struct coder {
    uint8_t *bytes;
    size_t position, size;
    uint32_t low, high, code;
};

typedef uint16_t chance;

static void encode_bit(struct coder *coder, chance *one, int bit)
{
    const uint32_t middle = coder->low + (uint32_t)(((uint64_t)(coder->high - coder->low) * *one) >> 16);
    if (bit) {
        coder->high = middle;
        *one += (chance)((65535 - *one) >> 5);
    } else {
        coder->low = middle + 1;
        *one -= (chance)(*one >> 5);
    }
    while ((coder->low ^ coder->high) >> 24 == 0) {
        coder->bytes[coder->position++] = (uint8_t)(coder->high >> 24);
        coder->low <<= 8;
        coder->high = coder->high << 8 | 255;
    }
}

static int decode_bit(struct coder *coder, chance *one)
{
    const uint32_t middle = coder->low + (uint32_t)(((uint64_t)(coder->high - coder->low) * *one) >> 16);
    const int bit = coder->code <= middle;
    if (bit) {
        coder->high = middle;
        *one += (chance)((65535 - *one) >> 5);
    } else {
        coder->low = middle + 1;
        *one -= (chance)(*one >> 5);
    }
    while ((coder->low ^ coder->high) >> 24 == 0) {
        const uint8_t next = coder->position < coder->size ? coder->bytes[coder->position] : 0;
        coder->position++;
        coder->low <<= 8;
        coder->high = coder->high << 8 | 255;
        coder->code = coder->code << 8 | next;
    }
    return bit;
}

/* A number of so many bits, from the highest on, each with a probability of its own. */
APART static void encode_number(struct coder *coder, chance *tree, int bits, uint32_t number)
{
    uint32_t node = 1;
    for (int bit = bits - 1; bit >= 0; bit--) {
        const int value = number >> bit & 1;
        encode_bit(coder, &tree[node], value);
        node = node << 1 | (uint32_t)value;
    }
}

APART static uint32_t decode_number(struct coder *coder, chance *tree, int bits)
{
    uint32_t node = 1;
    for (int bit = 0; bit < bits; bit++)
        node = node << 1 | (uint32_t)decode_bit(coder, &tree[node]);
    return node - (1u << bits);
}

struct model {
    chance is_match, literals[256][256], lengths[256], distances[1 << 16];
};

static struct model *new_model(void)
{
    struct model *const model = malloc(sizeof *model);
    if (!model)
        exit(2);
    chance *const all = (chance *)model;
    for (size_t index = 0; index < sizeof *model / sizeof *all; index++)
        all[index] = 1 << 15;
    return model;
}

/* ---- matches ---- */

struct match {
    size_t length, distance;
};

static int32_t heads[1 << HASH_BITS], chain[WINDOW];

static uint32_t hash_of(const uint8_t *bytes)
{
    uint32_t word;
    memcpy(&word, bytes, sizeof word);
    return word * 2654435761u >> (32 - HASH_BITS);
}

static void remember(const uint8_t *text, size_t position)
{
    const uint32_t hash = hash_of(text + position);
    chain[position % WINDOW] = heads[hash];
    heads[hash] = (int32_t)position;
}

static size_t common(const uint8_t *one, const uint8_t *other, size_t most)
{
    size_t length = 0;
    while (length < most && one[length] == other[length])
        length++;
    return length;
}

APART static struct match longest_match(const uint8_t *text, size_t position, size_t size)
{
    struct match best = {0, 0};
    const size_t most = size - position < MOST_MATCH ? size - position : MOST_MATCH;
    int32_t candidate = heads[hash_of(text + position)];
    for (int tries = 0; candidate >= 0 && tries < MOST_CHAIN; tries++) {
        const size_t distance = position - (size_t)candidate;
        if (distance >= WINDOW)
            break;
        const size_t length = common(text + candidate, text + position, most);
        if (length > best.length) {
            best.length = length;
            best.distance = distance;
        }
        candidate = chain[(size_t)candidate % WINDOW];
    }
    return best;
}

/* ---- both directions ---- */

APART static size_t compress(const uint8_t *text, size_t size, uint8_t *out)
{
    struct model *const model = new_model();
    struct coder coder = {.bytes = out, .high = UINT32_MAX};
    memset(heads, -1, sizeof heads);
    size_t position = 0;
    while (position < size) {
        const int is_near_end = position + LEAST_MATCH > size;
        const struct match match = is_near_end ? (struct match){0, 0} : longest_match(text, position, size);
        size_t length = 1;
        encode_bit(&coder, &model->is_match, match.length >= LEAST_MATCH);
        if (match.length >= LEAST_MATCH) {
            length = match.length;
            encode_number(&coder, model->lengths, 8, (uint32_t)(length - LEAST_MATCH));
            encode_number(&coder, model->distances, 16, (uint32_t)match.distance);
        } else {
            encode_number(&coder, model->literals[position ? text[position - 1] : 0], 8, text[position]);
        }
        for (; length > 0; length--, position++)
            if (position + LEAST_MATCH <= size)
                remember(text, position);
    }
    for (int byte = 0; byte < 4; byte++, coder.low <<= 8)
        coder.bytes[coder.position++] = (uint8_t)(coder.low >> 24);
    free(model);
    return coder.position;
}

APART static void decompress(uint8_t *packed, size_t packed_size, uint8_t *text, size_t size)
{
    struct model *const model = new_model();
    struct coder coder = {.bytes = packed, .size = packed_size, .high = UINT32_MAX};
    for (; coder.position < 4; coder.position++)
        coder.code = coder.code << 8 | packed[coder.position];
    size_t position = 0;
    while (position < size) {
        if (decode_bit(&coder, &model->is_match)) {
            const size_t length = decode_number(&coder, model->lengths, 8) + LEAST_MATCH;
            const size_t distance = decode_number(&coder, model->distances, 16);
            for (size_t count = 0; count < length && position < size; count++, position++)
                text[position] = text[position - distance];
        } else {
            text[position] = (uint8_t)decode_number(&coder, model->literals[position ? text[position - 1] : 0], 8);
            position++;
        }
    }
    free(model);
}

static uint8_t *read_file(const char *name, size_t *size)
{
    FILE *const file = fopen(name, "rb");
    if (!file)
        return NULL;
    fseek(file, 0, SEEK_END);
    *size = (size_t)ftell(file);
    rewind(file);
    uint8_t *const text = malloc(*size + 1);
    if (text)
        *size = fread(text, 1, *size, file);
    fclose(file);
    return text;
}

int main(int count, char **arguments)
{
    const char *const wanted = count > 1 ? arguments[1] : "100000";
    size_t size = strtoul(wanted, NULL, 10);
    uint8_t *text = size > 0 ? malloc(size + 1) : read_file(wanted, &size);
    uint8_t *const packed = malloc(size * 2 + 64), *const again = malloc(size + 1);
    if (!text || !packed || !again)
        return 2;
    if (strtoul(wanted, NULL, 10) > 0)
        make_text(text, size);
    const size_t packed_size = compress(text, size, packed);
    decompress(packed, packed_size, again, size);
    const int is_same = memcmp(text, again, size) == 0;
    printf("%zu bytes, %zu compressed, %s\n", size, packed_size, is_same ? "the same again" : "DIFFERENT");
    free(text);
    free(packed);
    free(again);
    return is_same ? 0 : 1;
}
