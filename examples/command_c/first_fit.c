/* A register allocator as a program, in C99 with the standard library alone.
 *
 * Requests come on standard input, one JSON object a line, answers go to
 * standard output (docs/allocators.md). The method is that of
 * ../command_python: linear scan without holes over whole virtual registers.
 * A register keeps its place from the first position at which it may be live
 * to the last; registers that the function names itself are never used.
 * Instruction n of the text reads at position 2n and writes at 2n + 1.
 *
 *     cc -std=c99 -O2 -o first_fit first_fit.c
 */
#include <ctype.h>
#include <limits.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MAX_FILES = 16, MAX_RANGES = 8, NAME = 64 };

static void *allocate(size_t count, size_t size) {
    void *found = calloc(count ? count : 1, size);
    if (!found) {
        fprintf(stderr, "out of memory\n");
        exit(1);
    }
    return found;
}

static void *grow(void *old, size_t size) {
    void *found = realloc(old, size);
    if (!found) {
        fprintf(stderr, "out of memory\n");
        exit(1);
    }
    return found;
}

static void damaged(const char *what) {
    fprintf(stderr, "%s is not as expected\n", what);
    exit(1);
}

/* ---- JSON: as much as a request needs ---------------------------------- */

static const char *skip_space(const char *at) {
    while (*at == ' ' || *at == '\t' || *at == '\r' || *at == '\n') at++;
    return at;
}

/* Reads a string. Where `into` is not null it gets a copy; other than ASCII becomes '?'. */
static const char *read_string(const char *at, char **into) {
    if (*at++ != '"') damaged("the request");
    char *text = into ? allocate(strlen(at) + 1, 1) : NULL;
    size_t length = 0;
    for (; *at != '"'; at++) {
        char c = *at;
        if (!c) damaged("the request");
        if (c == '\\') {
            c = *++at;
            const char *plain = strchr("\"\"\\\\//b\bf\fn\nr\rt\t", c);
            if (c == 'u') {
                for (int digit = 0; digit < 4; digit++)
                    if (!isxdigit((unsigned char)*++at)) damaged("the request");
                c = '?';
            } else if (!c || !plain) {
                damaged("the request");
            } else {
                c = plain[1];
            }
        }
        if (text) text[length++] = c;
    }
    if (into) *into = text;
    return at + 1;
}

static const char *skip_value(const char *at) {
    int depth = 0;
    do {
        at = skip_space(at);
        if (*at == '"') {
            at = read_string(at, NULL);
        } else if (*at == '{' || *at == '[') {
            depth++, at++;
        } else if (*at == '}' || *at == ']') {
            depth--, at++;
        } else if (*at) {
            at++; /* a character of a number or a word, a comma, a colon */
        } else {
            damaged("the request");
        }
        at = skip_space(at);
    } while (depth > 0 || !strchr(",}]", *at));
    return at;
}

static void read_request(const char *at, char **id, char **normalized) {
    at = skip_space(at);
    if (*at != '{') damaged("the request");
    do {
        char *key;
        at = skip_space(read_string(skip_space(at + 1), &key));
        if (*at != ':') damaged("the request");
        at = skip_space(at + 1);
        if (!strcmp(key, "id"))
            at = read_string(at, id);
        else if (!strcmp(key, "normalized"))
            at = read_string(at, normalized);
        else
            at = skip_value(at);
        at = skip_space(at);
        free(key);
    } while (*at == ',');
    if (*at != '}' || !*id || !*normalized) damaged("the request");
}

/* ---- The function ------------------------------------------------------- */

typedef struct {
    char name[NAME];
    int count;
    char (*unit_names)[NAME]; /* null where units are numbered */
    int *busy_until;          /* of each unit; INT_MAX: never to be used */
} File;

typedef struct {
    int file, first, last, step;
} Range;

typedef struct {
    char name[NAME];
    int width, range_count;
    Range ranges[MAX_RANGES];
} Class;

typedef struct {
    int class_index, first, last;
} Register;

typedef struct {
    int number, first, last, successors[2], successor_count;
    uint64_t *read, *defined, *live_in;
} Block;

typedef struct {
    File files[MAX_FILES];
    Class *classes;
    Register *registers;
    Block *blocks;
    int file_count, class_count, register_count, block_count, words;
} Function;

typedef struct {
    int number, whole, mark, early; /* number -1: no virtual register */
} Operand;

/* The next piece of *at up to one of `ends` (which is skipped, and told by *end). */
static char *piece(char **at, const char *ends, char *end) {
    char *start = *at;
    size_t length = strcspn(start, ends);
    if (end) *end = start[length];
    *at = start + length + (start[length] != 0);
    start[length] = 0;
    return start;
}

static void copy_name(char *into, const char *name) {
    if (strlen(name) >= NAME) damaged("a name");
    strcpy(into, name);
}

static int find_file(const Function *f, const char *name, size_t length) {
    for (int i = 0; i < f->file_count; i++)
        if (strlen(f->files[i].name) == length && !strncmp(f->files[i].name, name, length))
            return i;
    return -1;
}

static int find_class(const Function *f, const char *name) {
    for (int i = 0; i < f->class_count; i++)
        if (!strcmp(f->classes[i].name, name)) return i;
    damaged("a class");
    return -1;
}

/* Notes units that the function uses itself; beyond the budget there is nothing to note. */
static void take(Function *f, const char *name) {
    while (*name == '+') name++;
    size_t length = strcspn(name, "!&~");
    for (int i = 0; i < f->file_count; i++) {
        File *file = &f->files[i];
        for (int unit = 0; file->unit_names && unit < file->count; unit++) {
            const char *own = file->unit_names[unit];
            int whole_file = strlen(file->name) == length && !strncmp(file->name, name, length);
            if (whole_file || (strlen(own) == length && !strncmp(own, name, length)))
                file->busy_until[unit] = INT_MAX;
        }
    }
    size_t letters = 0;
    while (isalpha((unsigned char)name[letters])) letters++;
    int index = find_file(f, name, letters), first, last;
    if (index < 0 || letters == length) return;
    if (sscanf(name + letters, "[%d:%d]", &first, &last) != 2) {
        if (sscanf(name + letters, "%d", &first) != 1) return;
        last = first;
    }
    for (int unit = first; unit <= last && unit < f->files[index].count; unit++)
        f->files[index].busy_until[unit] = INT_MAX;
}

static void read_files(Function *f, char *rest) {
    while (*rest) {
        char *word = piece(&rest, " ", NULL);
        if (f->file_count == MAX_FILES) damaged("the line of registers");
        File *file = &f->files[f->file_count++];
        copy_name(file->name, piece(&word, ":", NULL));
        file->count = (int)strtol(word, &word, 10);
        file->busy_until = allocate((size_t)file->count, sizeof(int));
        for (int unit = 0; unit < file->count; unit++) file->busy_until[unit] = -1;
        if (*word != '=') continue;
        word++;
        file->unit_names = allocate((size_t)file->count, NAME);
        for (int unit = 0; unit < file->count; unit++)
            copy_name(file->unit_names[unit], piece(&word, ",", NULL));
    }
}

static void read_class(Function *f, char *rest) {
    f->classes = grow(f->classes, (size_t)(f->class_count + 1) * sizeof(Class));
    Class *c = &f->classes[f->class_count++];
    memset(c, 0, sizeof *c);
    copy_name(c->name, piece(&rest, " ", NULL));
    c->width = atoi(piece(&rest, " ", NULL));
    while (*rest) {
        char *word = piece(&rest, " ", NULL);
        if (c->range_count == MAX_RANGES) damaged("a class");
        Range *range = &c->ranges[c->range_count++];
        range->file = find_file(f, word, strcspn(word, "[/"));
        if (range->file < 0) damaged("a class");
        range->last = f->files[range->file].count - c->width;
        char *part = strchr(word, '[');
        if (part) sscanf(part, "[%d-%d]", &range->first, &range->last);
        part = strchr(word, '/');
        range->step = part ? atoi(part + 1) : 1;
    }
}

static void read_block(Function *f, char *line, int number) {
    f->blocks = grow(f->blocks, (size_t)(f->block_count + 1) * sizeof(Block));
    Block *block = &f->blocks[f->block_count++];
    memset(block, 0, sizeof *block);
    block->first = block->last = 2 * number;
    block->number = atoi(line + 2);
    char *arrow = strstr(line, "->"), *live_in = strchr(line, '(');
    if (arrow) {
        char *at = arrow + 2;
        while (*at && block->successor_count < 2)
            block->successors[block->successor_count++] = atoi(piece(&at, ",", NULL) + 2);
        *arrow = 0;
    }
    if (live_in) {
        char *at = live_in + 1;
        while (*at) take(f, piece(&at, ",)", NULL));
    }
}

/* An operand. A register's first mention gives its class, or else it is the first. */
static Operand mention(Function *f, const char *text) {
    Operand found = {-1, 1, 0, 0};
    const char *at = text + (*text == '+');
    if (*at != '%') {
        take(f, text);
        return found;
    }
    char *end;
    found.number = (int)strtol(at + 1, &end, 10);
    char rest[2 * NAME] = "";
    size_t length = strcspn(end, "!&~");
    if (length >= sizeof rest) damaged("an operand");
    memcpy(rest, end, length);
    found.mark = strchr(end, '!') != NULL;
    found.early = strchr(end, '&') != NULL;
    int first = 0, last = 0, lane_count = 0;
    char *lanes = strrchr(rest, '.'); /* .1 or .2-3, behind a class or not */
    if (lanes && strspn(lanes + 1, "0123456789-") == strlen(lanes + 1)) {
        if (sscanf(lanes, ".%d-%d", &first, &last) == 1) last = first;
        lane_count = last - first + 1;
        *lanes = 0;
    }
    if (found.number > f->register_count) damaged("the number of a register");
    if (found.number == f->register_count) {
        f->registers =
            grow(f->registers, (size_t)(f->register_count + 1) * sizeof(Register));
        Register *fresh = &f->registers[f->register_count++];
        fresh->class_index = rest[0] == ':' ? find_class(f, rest + 1) : 0;
        fresh->first = INT_MAX, fresh->last = -1;
    }
    int width = f->classes[f->registers[found.number].class_index].width;
    found.whole = !lane_count || lane_count == width;
    return found;
}

static void extend(Function *f, int number, int position) {
    Register *r = &f->registers[number];
    if (position < r->first) r->first = position;
    if (position > r->last) r->last = position;
}

static int has(const uint64_t *set, int number) { return set[number / 64] >> number % 64 & 1; }
static void add(uint64_t *set, int number) { set[number / 64] |= (uint64_t)1 << number % 64; }

static void note_use(Function *f, Block *block, Operand use, int position) {
    if (use.number < 0 || use.mark) return;
    extend(f, use.number, position);
    if (block->read && !has(block->defined, use.number)) add(block->read, use.number);
}

/* Pass 1 (sets are null) counts registers; pass 2 fills the sets of the blocks as well. */
static void read_instruction(Function *f, Block *block, char *line, int number) {
    block->last = 2 * number + 1;
    char *guard = *line == '@' ? piece(&line, " ", NULL) : NULL;
    char *equals = strchr(line, '='), *uses = line, *definitions = NULL;
    if (equals) *equals = 0, uses = equals + 1, definitions = line;
    piece(&uses, " ", NULL); /* the opcode */
    Operand *defined = allocate(strlen(line) + 1, sizeof(Operand));
    int count = 0;
    while (definitions && *definitions)
        defined[count++] = mention(f, piece(&definitions, ",", NULL));
    while (*uses) note_use(f, block, mention(f, piece(&uses, ",", NULL)), 2 * number);
    if (guard) note_use(f, block, mention(f, guard + strspn(guard, "@!")), 2 * number);
    for (int i = 0; i < count; i++) {
        if (defined[i].number < 0) continue;
        extend(f, defined[i].number, 2 * number + !defined[i].early);
        extend(f, defined[i].number, 2 * number + 1);
        if (block->defined && (defined[i].whole || defined[i].mark) && !guard)
            add(block->defined, defined[i].number);
    }
    free(defined);
}

static void read_body(Function *f, const char *text, int pass) {
    char *copy = allocate(strlen(text) + 1, 1), *at = strcpy(copy, text);
    int block = -1;
    for (int number = 0; *at; number++) {
        char *line = piece(&at, "\n", NULL);
        int is_block = !strncmp(line, "bb", 2) && isdigit((unsigned char)line[2]);
        if (is_block) block++;
        if (is_block && pass == 1) read_block(f, line, number);
        if (!is_block && block >= 0) read_instruction(f, &f->blocks[block], line, number);
        if (block >= 0 || pass == 2) continue;
        char *word = piece(&line, " ", NULL);
        if (!strcmp(word, "registers")) read_files(f, line);
        if (!strcmp(word, "class")) read_class(f, line);
        while (!strcmp(word, "reserved") && *line) take(f, piece(&line, " ", NULL));
    }
    free(copy);
}

static void read_function(Function *f, const char *text) {
    read_body(f, text, 1);
    f->words = f->register_count / 64 + 1;
    for (int i = 0; i < f->block_count; i++) {
        f->blocks[i].read = allocate((size_t)f->words, 8);
        f->blocks[i].defined = allocate((size_t)f->words, 8);
        f->blocks[i].live_in = allocate((size_t)f->words, 8);
    }
    read_body(f, text, 2);
}

static void free_function(Function *f) {
    for (int i = 0; i < f->file_count; i++) {
        free(f->files[i].unit_names);
        free(f->files[i].busy_until);
    }
    for (int i = 0; i < f->block_count; i++) {
        free(f->blocks[i].read);
        free(f->blocks[i].defined);
        free(f->blocks[i].live_in);
    }
    free(f->classes);
    free(f->registers);
    free(f->blocks);
}

/* ---- Liveness and linear scan ------------------------------------------- */

static uint64_t live_out(const Function *f, const Block *block, int word) {
    uint64_t live = 0;
    for (int s = 0; s < block->successor_count; s++)
        for (int i = 0; i < f->block_count; i++)
            if (f->blocks[i].number == block->successors[s]) live |= f->blocks[i].live_in[word];
    return live;
}

static void find_live_ranges(Function *f) {
    for (int changed = 1; changed;) {
        changed = 0;
        for (int i = f->block_count - 1; i >= 0; i--) {
            Block *block = &f->blocks[i];
            for (int w = 0; w < f->words; w++) {
                uint64_t live = block->read[w] | (live_out(f, block, w) & ~block->defined[w]);
                changed |= live != block->live_in[w];
                block->live_in[w] = live;
            }
        }
    }
    for (int i = 0; i < f->block_count; i++) {
        for (int r = 0; r < f->register_count; r++) {
            if (has(f->blocks[i].live_in, r)) extend(f, r, f->blocks[i].first);
            if (live_out(f, &f->blocks[i], r / 64) >> r % 64 & 1) extend(f, r, f->blocks[i].last);
        }
    }
}

static const Function *sorted; /* qsort passes nothing along */

static int compare(const void *a, const void *b) {
    const Register *x = &sorted->registers[*(const int *)a];
    const Register *y = &sorted->registers[*(const int *)b];
    if (x->first != y->first) return x->first < y->first ? -1 : 1;
    int wider = sorted->classes[y->class_index].width - sorted->classes[x->class_index].width;
    return wider ? wider : *(const int *)a - *(const int *)b;
}

/* The first unit of a free place for a register, which is taken; false where there is none. */
static int place(Function *f, const Register *r, int *file, int *unit) {
    const Class *c = &f->classes[r->class_index];
    for (const Range *range = c->ranges; range < c->ranges + c->range_count; range++) {
        int *busy = f->files[range->file].busy_until;
        for (int base = range->first; base <= range->last; base += range->step) {
            int lane = 0;
            while (lane < c->width && busy[base + lane] < r->first) lane++;
            if (lane < c->width) continue;
            while (lane) busy[base + --lane] = r->last;
            *file = range->file, *unit = base;
            return 1;
        }
    }
    return 0;
}

static void answer(Function *f, const char *id) {
    int (*places)[2] = allocate((size_t)f->register_count, sizeof *places);
    int *order = allocate((size_t)f->register_count, sizeof *order);
    for (int r = 0; r < f->register_count; r++) order[r] = r;
    sorted = f;
    qsort(order, (size_t)f->register_count, sizeof *order, compare);
    int placed = 0;
    while (placed < f->register_count &&
           place(f, &f->registers[order[placed]], &places[order[placed]][0],
                 &places[order[placed]][1]))
        placed++;
    printf("{\"id\": \"%s\", ", id);
    if (placed < f->register_count)
        printf("\"failure\": \"no_answer\", \"message\": \"%%%d fits nowhere\"", order[placed]);
    else
        printf("\"assignment\": {");
    for (int r = 0; placed == f->register_count && r < placed; r++) {
        const File *file = &f->files[places[r][0]];
        printf("%s\"%%%d\": \"", r ? ", " : "", r);
        if (file->unit_names)
            printf("%s\"", file->unit_names[places[r][1]]);
        else
            printf("%s%d\"", file->name, places[r][1]);
    }
    printf(placed < f->register_count ? "}\n" : "}}\n");
    fflush(stdout); /* whoever asks waits for the line */
    free(places);
    free(order);
}

static char *read_line(FILE *from) {
    size_t length = 0, room = 1 << 16;
    char *line = allocate(room, 1);
    int c;
    while ((c = getc(from)) != EOF && c != '\n') {
        if (length + 1 == room) line = grow(line, room *= 2);
        line[length++] = (char)c;
    }
    if (c == EOF && !length) {
        free(line);
        return NULL;
    }
    line[length] = 0;
    return line;
}

int main(void) {
    char *line;
    while ((line = read_line(stdin))) {
        char *id = NULL, *normalized = NULL;
        Function function;
        memset(&function, 0, sizeof function);
        read_request(line, &id, &normalized);
        read_function(&function, normalized);
        find_live_ranges(&function);
        answer(&function, id);
        free_function(&function);
        free(id);
        free(normalized);
        free(line);
    }
    return 0;
}
