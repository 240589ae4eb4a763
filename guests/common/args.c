#include "args.h"
#include <string.h>
#include "trap.h"

#define MAX_WORDS 32

static struct {
    const char *text;
    size_t length;
    bool used;
} words[MAX_WORDS];
static unsigned word_count;

void args_read(const char *bootargs)
{
    for (const char *p = bootargs + strspn(bootargs, " "); *p; p += strspn(p, " ")) {
        if (word_count == MAX_WORDS)
            fail("more than %d words in bootargs: \"%s\"", MAX_WORDS, bootargs);
        words[word_count].text = p;
        words[word_count].length = strcspn(p, " ");
        p += words[word_count++].length;
    }
}

/* Finds the value of the last word `key=...`: as on other command lines, a later word overrides. */
static const char *find(const char *key, size_t *length)
{
    size_t key_length = strlen(key);
    const char *value = NULL;
    for (unsigned i = 0; i < word_count; i++) {
        const char *word = words[i].text;
        if (words[i].length > key_length && strncmp(word, key, key_length) == 0 && word[key_length] == '=') {
            words[i].used = true;
            value = word + key_length + 1;
            *length = words[i].length - key_length - 1;
        }
    }
    return value;
}

static void copy_word(const char *text, size_t length, char *buffer, size_t size)
{
    size_t n = length < size - 1 ? length : size - 1;
    memcpy(buffer, text, n);
    buffer[n] = '\0';
}

/* Returns false if the text is no number of 64 bits. */
static bool parse(const char *text, size_t length, uint64_t *value)
{
    unsigned base = 10;
    if (length > 2 && text[0] == '0' && text[1] == 'x') {
        base = 16;
        text += 2;
        length -= 2;
    }
    *value = 0;
    for (size_t i = 0; i < length; i++) {
        char c = text[i];
        unsigned digit = c >= '0' && c <= '9' ? c - '0' : c >= 'a' && c <= 'f' ? c - 'a' + 10 : c >= 'A' && c <= 'F' ? c - 'A' + 10 : 16;
        if (digit >= base || *value > (UINT64_MAX - digit) / base)
            return false;
        *value = *value * base + digit;
    }
    return length > 0;
}

uint64_t arg_number(const char *key, uint64_t fallback, uint64_t least, uint64_t most)
{
    size_t length;
    uint64_t value;
    const char *text = find(key, &length);
    if (!text)
        return fallback;
    if (!parse(text, length, &value) || value < least || value > most) {
        char word[32];
        copy_word(text, length, word, sizeof word);
        fail("bootargs: %s=%s: expected a number from %lu to %lu", key, word, least, most);
    }
    return value;
}

bool arg_numbers(const char *key, uint64_t values[], unsigned count)
{
    size_t length;
    const char *text = find(key, &length);
    if (!text)
        return false;
    const char *end = text + length;
    for (unsigned i = 0; i < count; i++) {
        bool last = i + 1 == count;
        const char *comma = last ? end : memchr(text, ',', (size_t)(end - text));
        if (!comma || !parse(text, (size_t)(comma - text), &values[i])) {
            char word[64];
            copy_word(end - length, length, word, sizeof word);
            fail("bootargs: %s=%s: expected %u numbers with commas between them", key, word, count);
        }
        text = last ? end : comma + 1;
    }
    return true;
}

unsigned arg_choice(const char *key, const char *const choices[])
{
    size_t length;
    const char *text = find(key, &length);
    if (!text)
        return 0;
    unsigned i = 0;
    while (choices[i] && (strlen(choices[i]) != length || strncmp(choices[i], text, length) != 0))
        i++;
    if (!choices[i]) {
        char word[32];
        copy_word(text, length, word, sizeof word);
        fail("bootargs: %s=%s: expected for instance %s=%s", key, word, key, choices[0]);
    }
    return i;
}

void args_finish(void)
{
    for (unsigned i = 0; i < word_count; i++) {
        if (!words[i].used) {
            char word[64];
            copy_word(words[i].text, words[i].length, word, sizeof word);
            fail("bootargs: this program has no parameter \"%s\"", word);
        }
    }
}
