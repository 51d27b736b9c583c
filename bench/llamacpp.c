// One measurement, or one greedy continuation, with a prebuilt llama.cpp. bench/llamacpp.py builds
// it and calls it.
//
//   llamacpp LIBRARIES VARIANT MODEL THREADS speed PROMPT NEW ROUNDS
//   llamacpp LIBRARIES VARIANT MODEL THREADS greedy NEW ID,ID,...
//
// VARIANT is a CPU library of the folder LIBRARIES (haswell, zen4, ...), or best: the one that
// llama.cpp itself picks. `speed` prints tokens per second of each round, JSON; `greedy` the ids.
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "ggml-backend.h"
#include "llama.h"

static char picked[256] = "";

static void keep_name(enum ggml_log_level level, const char *text, void *unused) {
    (void)unused;
    const char *name = strstr(text, "libggml-cpu-");
    if (name && strstr(text, "loaded")) {
        snprintf(picked, sizeof picked, "%s", name + strlen("libggml-cpu-"));
        picked[strcspn(picked, ".\n")] = 0;
    }
    if (level == GGML_LOG_LEVEL_ERROR) fputs(text, stderr);
}

static void need(int holds, const char *what) {
    if (!holds) {
        fprintf(stderr, "llama.cpp: %s\n", what);
        exit(1);
    }
}

static double seconds(void) {
    struct timespec at;
    clock_gettime(CLOCK_MONOTONIC, &at);
    return (double)at.tv_sec + 1e-9 * (double)at.tv_nsec;
}

static void process(struct llama_context *context, llama_token *ids, int count) {
    need(llama_decode(context, llama_batch_get_one(ids, count)) == 0, "llama_decode failed");
    llama_synchronize(context);
}

static llama_token largest(struct llama_context *context, int words) {
    const float *logits = llama_get_logits_ith(context, -1);
    int best = 0;
    for (int word = 1; word < words; word++)
        if (logits[word] > logits[best]) best = word;
    return best;
}

int main(int count, char **arguments) {
    need(count >= 8, "arguments: see the head of llamacpp.c");
    const char *libraries = arguments[1], *variant = arguments[2];
    const int threads = atoi(arguments[4]), greedy = strcmp(arguments[5], "greedy") == 0;
    const int prompt = greedy ? 0 : atoi(arguments[6]), fresh = atoi(arguments[greedy ? 6 : 7]);
    const int rounds = greedy || count < 9 ? 1 : atoi(arguments[8]);

    llama_log_set(keep_name, NULL);
    llama_backend_init();
    if (strcmp(variant, "best") == 0) {
        ggml_backend_load_all_from_path(libraries);
    } else {
        char path[4096];
        snprintf(path, sizeof path, "%s/libggml-cpu-%s.so", libraries, variant);
        need(ggml_backend_load(path) != NULL, "cannot load the CPU variant");
        snprintf(picked, sizeof picked, "%s", variant);
    }
    ggml_backend_dev_t cpu = ggml_backend_dev_by_type(GGML_BACKEND_DEVICE_TYPE_CPU);
    need(cpu != NULL, "no CPU backend");

    struct llama_model_params of_model = llama_model_default_params();
    of_model.n_gpu_layers = 0;
    struct llama_model *model = llama_model_load_from_file(arguments[3], of_model);
    need(model != NULL, "cannot load the model");
    const int words = llama_vocab_n_tokens(llama_model_get_vocab(model));

    const int room = 4096;
    llama_token *ids = malloc(room * sizeof *ids);
    int given = 0;
    if (greedy)
        for (char *id = strtok(arguments[7], ","); id && given < room; id = strtok(NULL, ","))
            ids[given++] = atoi(id);
    const int longest = greedy ? given + fresh : (prompt > fresh ? prompt : fresh);
    need(longest <= room, "more than 4,096 tokens");

    struct llama_context_params of_context = llama_context_default_params();
    // Headers of another version would show here first.
    need(of_context.type_k == GGML_TYPE_F16 && of_context.n_seq_max == 1, "llama.h of another version");
    of_context.n_ctx = of_context.n_batch = (unsigned)(longest + 255) / 256 * 256;
    of_context.n_threads = of_context.n_threads_batch = threads;
    of_context.no_perf = true;
    if (greedy) {  // Single precision throughout, to compare tokens.
        of_context.type_k = of_context.type_v = GGML_TYPE_F32;
        of_context.flash_attn_type = LLAMA_FLASH_ATTN_TYPE_DISABLED;
    }
    struct llama_context *context = llama_init_from_model(model, of_context);
    need(context != NULL, "cannot make a context");

    // Threads that stay, as llama.cpp's own programs keep them: its library alone starts new ones
    // for every step.
    ggml_backend_reg_t registry = ggml_backend_dev_backend_reg(cpu);
    struct ggml_threadpool *(*start)(struct ggml_threadpool_params *) =
        (struct ggml_threadpool * (*)(struct ggml_threadpool_params *))
            ggml_backend_reg_get_proc_address(registry, "ggml_threadpool_new");
    need(start != NULL, "no ggml_threadpool_new");
    struct ggml_threadpool_params of_pool = ggml_threadpool_params_default(threads);
    struct ggml_threadpool *pool = start(&of_pool);
    need(pool != NULL, "cannot start threads");
    llama_attach_threadpool(context, pool, NULL);

    if (greedy) {
        process(context, ids, given);
        for (int at = 0; at < fresh; at++) {
            llama_token id = largest(context, words);
            printf(at ? ",%d" : "%d", id);
            if (at + 1 < fresh) process(context, &id, 1);
        }
        printf("\n");
        return 0;
    }

    unsigned random = 1;
    double *read = calloc(rounds + 1, sizeof *read), *written = calloc(rounds + 1, sizeof *written);
    for (int round = 0; round <= rounds; round++) {  // The first one warms up.
        llama_memory_t memory = llama_get_memory(context);
        for (int at = 0; at < prompt; at++) {
            random = random * 1664525u + 1013904223u;
            ids[at] = (llama_token)((random >> 8) % (unsigned)words);
        }
        llama_memory_clear(memory, false);
        double began = seconds();
        if (prompt > 0) process(context, ids, prompt);
        read[round] = prompt / (seconds() - began);
        llama_memory_clear(memory, false);
        llama_token id = 1;
        began = seconds();
        for (int at = 0; at < fresh; at++) {
            process(context, &id, 1);
            id = largest(context, words);
        }
        written[round] = fresh / (seconds() - began);
    }
    printf("{\"cpu\": \"%s\", \"prefill\": [", picked);
    for (int round = 1; round <= rounds; round++) printf(round > 1 ? ", %.2f" : "%.2f", read[round]);
    printf("], \"decode\": [");
    for (int round = 1; round <= rounds; round++) printf(round > 1 ? ", %.2f" : "%.2f", written[round]);
    printf("]}\n");
    return 0;
}
