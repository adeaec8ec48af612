/* Two models of different kind in one program, served by one piece of code that knows neither. */
#include <stdio.h>
#include <stdlib.h>

#include "reverse.h"
#include "small.h"

static void check(tc_status status, const char *what, const char *message) {
  if (status == TC_OK) return;
  fprintf(stderr, "%s: %s\n", what, message);
  exit(1);
}

/* Twenty steps on one batch of any token model; the loss must fall. */
static void train(const tc_api *api) {
  enum { B = 3, T = 6, S = 5 };
  int32_t tokens[B * T], targets[B * T], source[B * S];
  const void *heads[1] = {targets};
  tc_info info = {0};
  tc_options options = {0};
  tc_batch batch = {0};
  tc_adamw adamw = {0};
  tc_model *model;
  tc_session *session;
  double first = 0, loss = 0;
  int i;
  info.size = sizeof info;
  options.size = sizeof options;
  options.threads = 2;
  batch.size = sizeof batch;
  adamw.size = sizeof adamw;
  check(api->info(&info), api->name, "no info");
  check(api->model_create(&options, &model), api->name, "no model");
  check(api->session_create(model, &options, &session), api->name, api->model_message(model));
  for (i = 0; i < B * T; ++i) tokens[i] = (int32_t)((7 * i + 3) % info.vocab);
  for (i = 0; i < B * T; ++i) targets[i] = (int32_t)((5 * i + 1) % info.vocab);
  for (i = 0; i < B * S; ++i) source[i] = (int32_t)((3 * i + 2) % info.vocab);
  batch.B = B;
  batch.T = T;
  batch.targets = heads;
  if (info.kind == TC_KIND_ENCODER_DECODER) {
    batch.S = S;
    batch.src = source;
    batch.tgt = tokens;
  } else {
    batch.tokens = tokens;
  }
  adamw.lr = 1e-2;
  adamw.beta1 = 0.9;
  adamw.beta2 = 0.99;
  adamw.eps = 1e-8;
  adamw.clip = 1;
  for (i = 0; i < 20; ++i) {
    check(api->train_step(session, &batch, &adamw, &loss), api->name, api->message(session));
    if (i == 0) first = loss;
  }
  printf("%s: %d parameters, loss %.4f, then %.4f\n", api->name, (int)info.parameter_count, first, loss);
  if (!(loss < 0.5 * first)) check(TC_E_STATE, api->name, "the loss did not fall");
  api->session_destroy(session);
  api->model_destroy(model);
}

int main(void) {
  const tc_api *apis[2];
  int i;
  apis[0] = reverse_api(reverse_BUILD_ID);
  apis[1] = small_api(small_BUILD_ID);
  for (i = 0; i < 2; ++i) {
    if (!apis[i]) return 2;
    train(apis[i]);
  }
  return reverse_api(reverse_BUILD_ID + 1) == NULL ? 0 : 3; /* a header of another build is noticed */
}
