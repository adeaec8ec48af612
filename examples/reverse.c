/* Teaches a small transformer to write a sequence of digits backwards. C99; links with nothing but the model.
 *
 *   transformerc examples/reverse.toml -o out          # writes out/reverse.h and out/libreverse.a
 *   cc -O2 -Iout examples/reverse.c out/libreverse.a -lm -lpthread -o reverse && ./reverse
 */
#include <math.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#include "reverse.h"

/* Tokens 0 to 9 are the digits, 10 begins a sequence, 11 is not needed here. */
enum { LENGTH = 8, DIGITS = 10, BOS = 10 };
enum { EPOCHS = 20, TRAINING = 2048, UNSEEN = 1000, BATCH = 32, WARMUP = 50 };
enum { STEPS_PER_EPOCH = TRAINING / BATCH, STEPS = EPOCHS * STEPS_PER_EPOCH };

/* -- random numbers: splitmix64 ----------------------------------------------------------------------------------- */

static uint64_t random_state = 1;

static uint64_t random_below(uint64_t limit) {
  uint64_t z = random_state += 0x9e3779b97f4a7c15u;
  z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
  z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
  return (z ^ (z >> 31)) % limit;
}

/* -- sequences ---------------------------------------------------------------------------------------------------- */

/* Rows of digits, and the two sides of teacher forcing: what the decoder is given, and what it should answer. */
typedef struct {
  int32_t src[UNSEEN > TRAINING ? UNSEEN : TRAINING][LENGTH];
  int32_t tgt[UNSEEN > TRAINING ? UNSEEN : TRAINING][LENGTH];
  int32_t targets[UNSEEN > TRAINING ? UNSEEN : TRAINING][LENGTH];
} sequences;

/* Random digits, different from all drawn before: what is tested on was never trained on. */
static void draw(int32_t *digits) {
  static uint8_t drawn[100000000]; /* by the number that the digits make */
  int32_t number;
  do {
    number = 0;
    for (int t = 0; t < LENGTH; ++t) {
      digits[t] = (int32_t)random_below(DIGITS);
      number = 10 * number + digits[t];
    }
  } while (drawn[number]);
  drawn[number] = 1;
}

static void fill(sequences *s, int count) {
  for (int row = 0; row < count; ++row) {
    draw(s->src[row]);
    for (int t = 0; t < LENGTH; ++t) s->targets[row][t] = s->src[row][LENGTH - 1 - t];
    for (int t = 0; t < LENGTH; ++t) s->tgt[row][t] = t == 0 ? BOS : s->targets[row][t - 1]; /* shifted by one */
  }
}

static void swap_rows(sequences *s, int a, int b) {
  int32_t(*const parts[])[LENGTH] = {s->src, s->tgt, s->targets};
  for (int part = 0; part < 3; ++part) {
    for (int t = 0; t < LENGTH; ++t) {
      int32_t digit = parts[part][a][t];
      parts[part][a][t] = parts[part][b][t];
      parts[part][b][t] = digit;
    }
  }
}

static void shuffle(sequences *s, int count) {
  for (int row = count - 1; row > 0; --row) swap_rows(s, row, (int)random_below((uint64_t)row + 1));
}

/* `count` rows from `first` on, as the library wants them. `targets` must live as long as the batch. */
static tc_batch batch_of(sequences *s, int first, int count, const void **targets) {
  tc_batch batch = {0};
  batch.size = sizeof batch;
  batch.B = count;
  batch.T = batch.S = LENGTH;
  batch.src = s->src[first];
  batch.tgt = s->tgt[first];
  *targets = s->targets[first];
  batch.targets = targets;
  return batch;
}

/* -- training ----------------------------------------------------------------------------------------------------- */

static void check(tc_status status, const tc_session *session) {
  if (status == TC_OK) return;
  fprintf(stderr, "reverse: %s\n", session ? reverse_message(session) : reverse_status_text(status));
  exit(2);
}

static double learning_rate(int step) {
  const double warm = step < WARMUP ? (step + 1.0) / WARMUP : 1.0;
  return 1e-3 * warm * (1 + cos(3.14159265358979 * step / STEPS)) / 2;
}

static double train_epoch(tc_session *session, sequences *training, int epoch) {
  double sum = 0;
  shuffle(training, TRAINING);
  for (int i = 0; i < STEPS_PER_EPOCH; ++i) {
    const void *targets;
    const tc_batch batch = batch_of(training, i * BATCH, BATCH, &targets);
    tc_adamw adamw = {0};
    adamw.size = sizeof adamw;
    adamw.lr = learning_rate((epoch - 1) * STEPS_PER_EPOCH + i);
    adamw.beta1 = 0.9;
    adamw.beta2 = 0.95;
    adamw.eps = 1e-8;
    adamw.weight_decay = 0.1;
    adamw.clip = 1.0;
    double loss;
    check(reverse_train_step(session, &batch, &adamw, &loss), session);
    sum += loss;
  }
  return sum / STEPS_PER_EPOCH;
}

/* The share of tokens that the model predicts rightly, given the right ones before. */
static double token_accuracy(tc_session *session, sequences *test) {
  static reverse_real logits[UNSEEN][LENGTH][reverse_VOCAB];
  const void *targets;
  void *outputs[] = {logits};
  tc_batch batch = batch_of(test, 0, UNSEEN, &targets);
  batch.targets = NULL;
  check(reverse_forward(session, &batch, 0, outputs), session);
  int right = 0;
  for (int row = 0; row < UNSEEN; ++row) {
    for (int t = 0; t < LENGTH; ++t) {
      int best = 0;
      for (int v = 1; v < reverse_VOCAB; ++v) {
        if (logits[row][t][v] > logits[row][t][best]) best = v;
      }
      right += best == test->targets[row][t];
    }
  }
  return (double)right / (UNSEEN * LENGTH);
}

/* -- generation --------------------------------------------------------------------------------------------------- */

typedef struct {
  int32_t tokens[UNSEEN][LENGTH];
  int count[UNSEEN];
} written_rows;

static int on_token(void *user, int64_t row, int32_t token) {
  written_rows *written = user;
  written->tokens[row][written->count[row]++] = token;
  return 0; /* go on */
}

static void print_row(const int32_t *row) {
  for (int t = 0; t < LENGTH; ++t) printf(" %d", (int)row[t]);
}

/* Greedy decoding from the source alone; how many rows come out as the exact reversal. */
static int reversed_rows(tc_session *session, sequences *test) {
  static written_rows written;
  tc_batch prompt = {0};
  prompt.size = sizeof prompt;
  prompt.B = UNSEEN;
  prompt.S = LENGTH;
  prompt.src = test->src;
  tc_sampling sampling = {0}; /* temperature 0: the most probable token */
  sampling.size = sizeof sampling;
  sampling.max_new = LENGTH;
  sampling.bos = BOS;
  sampling.eos = -1;
  check(reverse_generate(session, &prompt, &sampling, on_token, &written), session);

  int exact = 0;
  for (int row = 0; row < UNSEEN; ++row) {
    int same = written.count[row] == LENGTH;
    for (int t = 0; t < LENGTH; ++t) same = same && written.tokens[row][t] == test->targets[row][t];
    exact += same;
    if (row < 3) {
      print_row(test->src[row]);
      printf("  ->");
      print_row(written.tokens[row]);
      printf("\n");
    }
  }
  return exact;
}

int main(void) {
  static sequences training, test;
  tc_options options = {0}; /* all cores, the C library's memory */
  tc_model *model;
  tc_session *session;
  options.size = sizeof options;
  options.seed = 1;
  check(reverse_model_create(&options, &model), NULL);
  check(reverse_session_create(model, NULL, &session), NULL);

  fill(&training, TRAINING);
  fill(&test, UNSEEN);
  for (int epoch = 1; epoch <= EPOCHS; ++epoch) {
    const double loss = train_epoch(session, &training, epoch);
    printf("epoch %2d   loss %.4f   token accuracy %6.2f %%\n", epoch, loss, 100 * token_accuracy(session, &test));
    fflush(stdout);
  }

  fill(&test, UNSEEN); /* new ones */
  const int exact = reversed_rows(session, &test);
  printf("%.1f %% of %d unseen sequences reversed\n", 100.0 * exact / UNSEEN, UNSEEN);
  reverse_session_destroy(session);
  reverse_model_destroy(model);
  return exact == UNSEEN ? 0 : 1;
}
