/* The common vocabulary of all libraries that transformerc generates: one text, carried by every NAME.h. C99 and C++.
 *
 * Shapes: B batch, T own (target) tokens, S source tokens, D model width, V vocabulary, P number of parameters.
 * Arrays are dense and row-major, aligned to their element; integers are int32; floats have the library's precision
 * (NAME_real); losses, counts and norms are double in both.
 *
 * Ownership: what the caller passes is read during the call and never kept. What the library returns (parameters,
 * gradients, names, messages) belongs to it and lives as long as its model or session; names and tables for ever.
 *
 * Errors: every function returns a tc_status, and the session or model keeps one sentence about the last failure. An
 * argument is checked before any work, so that after TC_E_ARGUMENT, TC_E_STATE and TC_E_MEMORY parameters, gradients,
 * optimizer state and cache are as they were. (A generate that meets an unusable logit half way answers TC_E_STATE too;
 * then the cache holds what was generated.) Nothing prints, aborts, throws or changes the floating-point environment.
 *
 * Threads: one thread at a time in a session (a second one gets TC_E_STATE); any number of sessions may share a model
 * to read it. What writes a model (backward, accumulate, vjp, step, train_step, zero_grad, load, set_state, merge_lora) has one
 * session at a time, and must not overlap with reads of what it writes. Results never depend on the thread count.
 *
 * Growth: structs begin with their size (set it to sizeof). Members and table entries are only ever added at the end. */
#ifndef TRANSFORMERC_ABI_1
#define TRANSFORMERC_ABI_1
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef enum {
  TC_OK,
  TC_E_ARGUMENT,  /* a wrong argument; the message names it */
  TC_E_MEMORY,    /* no memory, or more than memory_limit */
  TC_E_FILE,      /* a file cannot be read or written */
  TC_E_FORMAT,    /* a file's content is not what it should be */
  TC_E_CPU,       /* this processor lacks what the library was compiled for */
  TC_E_STATE,     /* not now (a busy session, accumulate after backward), or not with this model */
  TC_E_CANCELLED  /* the cancelled hook said so */
} tc_status;

/* Parameters and, once trained, gradients and moments; also seed, call and step counts. One writer at a time. */
typedef struct tc_model tc_model;
/* Workspace, cache and threads. One thread at a time; many sessions share one model. */
typedef struct tc_session tc_session;

/* The entry points of a model, as `reserve`, `memory` and NAME_workspace_bytes count them. */
enum {
  TC_ENTRY_INFER,    /* forward */
  TC_ENTRY_LAST,     /* forward of the last real token of each row */
  TC_ENTRY_LOSS,
  TC_ENTRY_LOGPROBS,
  TC_ENTRY_TRAIN,    /* backward, accumulate, train_step */
  TC_ENTRY_VJP,
  TC_ENTRY_STEP,     /* the optimizer */
  TC_ENTRY_DECODE,   /* through the cache */
  TC_ENTRY_ENCODE,   /* encoder-decoders: fills the cache from the source */
  TC_ENTRY_MERGE,    /* low-rank adapters: into their weights */
  TC_ENTRY_COUNT
};

/* What `memory` tells the bytes of. */
enum {
  TC_MEMORY_PARAMETERS,
  TC_MEMORY_GRADIENTS, /* from the first backward on */
  TC_MEMORY_MOMENTS,   /* both, from the first step on */
  TC_MEMORY_CACHE,     /* B rows of capacity T; encoder-decoders also S source tokens */
  TC_MEMORY_MODEL,     /* the model besides its blocks */
  TC_MEMORY_SESSION,   /* a session besides its workspace */
  TC_MEMORY_WORKSPACE = 16 /* + TC_ENTRY_...: a session's workspace for that entry (it keeps the largest it needed) */
};

/* The blocks of a model, see `block`. */
enum { TC_BLOCK_PARAMETERS, TC_BLOCK_GRADIENTS, TC_BLOCK_MOMENT1, TC_BLOCK_MOMENT2 };

enum { TC_KIND_DECODER, TC_KIND_ENCODER, TC_KIND_ENCODER_DECODER };
enum { TC_HEAD_NONE, TC_HEAD_LM, TC_HEAD_CLASSIFIER, TC_HEAD_MLM, TC_HEAD_TOKEN_CLASSIFIER, TC_HEAD_REGRESSION };
enum { TC_LOSS_NONE, TC_LOSS_CROSS_ENTROPY, TC_LOSS_BINARY_CROSS_ENTROPY, TC_LOSS_MSE };
enum { TC_CONTEXT_STOP, TC_CONTEXT_SLIDE, TC_CONTEXT_ERROR };

/* Bits of tc_info.inputs. */
enum {
  TC_INPUT_TOKENS = 1, TC_INPUT_X = 2, TC_INPUT_SRC = 4, TC_INPUT_TGT = 8, TC_INPUT_MEMORY = 16, TC_INPUT_TYPES = 32,
  TC_INPUT_MASK = 64, TC_INPUT_LENGTHS = 128, TC_INPUT_SRC_MASK = 256, TC_INPUT_SRC_LENGTHS = 512,
  TC_INPUT_TARGETS = 1024, TC_INPUT_SRC_IS_FLOAT = 2048, TC_INPUT_TGT_IS_FLOAT = 4096,
  TC_INPUT_IMAGE = 8192, TC_INPUT_POSITIONS = 16384, TC_INPUT_DOCUMENTS = 32768, TC_INPUT_PREFIX = 65536,
  TC_INPUT_WEIGHTS = 131072, TC_INPUT_SRC_POSITIONS = 262144, TC_INPUT_SRC_DOCUMENTS = 524288
};

/* One call's inputs. Zero it, set `size`, the dimensions and what the model declares; anything else set is
 * TC_E_ARGUMENT. Masks: 1 = a real token; not given: all are real. What stands at a masked position is never read.
 * `mask` and `lengths` may both be declared: one is given in a call. positions: not given, they are indices in the row,
 * and go on from the last one in decode. documents: not given, a row is one document, in decode that of its last token.
 * prefix: not given, 0. S is read in encoder-decoders alone. Where images are declared T may be 0: the model fixes it, as
 * the number of patches and class tokens. */
typedef struct {
  size_t size;
  int64_t B, T, S;
  const int32_t *tokens;                        /* [B,T] */
  const void *src, *tgt;                        /* int32 [B,S] [B,T]; where vocab is 0, floats [B,S,D] [B,T,D] */
  const void *x, *memory, *image;               /* [B,T,D] [B,S,D] [B,channels,height,width] */
  const int32_t *types, *positions, *documents; /* [B,T] */
  const int32_t *lengths, *src_lengths, *prefix; /* [B] */
  const uint8_t *mask, *src_mask;               /* [B,T] [B,S] */
  /* One pointer per head. Targets: int32 of its rows, [B,T] or [B], where its loss is cross entropy; else floats with
   * the output's last dimension. NULL where it has no loss. Weights: floats [B,T] or [B], NULL: 1. */
  const void *const *targets, *const *weights;
  const int32_t *src_positions, *src_documents; /* [B,S] */
} tc_batch;

/* AdamW, as torch.optim.AdamW; clipping as torch's clip_grad_norm_. */
typedef struct {
  size_t size;
  double lr, beta1, beta2, eps, weight_decay, clip; /* clip 0: off */
  double count;                                     /* the divisor; 0: what accumulate counted */
  const double *lr_scale;                           /* [P], or NULL: 1 */
  const uint8_t *decay;                             /* [P], or NULL: rank >= 2 */
} tc_adamw;

/* Temperature, then top-k, then top-p (the token that crosses p stays); ties by lowest id; temperature 0 and top_p 0
 * take the most probable. A zeroed struct is greedy. Rows draw independently, by (seed, row, position). */
typedef struct {
  size_t size;
  int64_t max_new;
  float temperature, top_p; /* temperature > 0 and top_p 1: no cut */
  int32_t top_k, eos, pad, context; /* top_k 0: off; eos -1: none; context: TC_CONTEXT_... at max_seq */
  uint64_t seed;
  int32_t bos; /* encoder-decoders: the first token, where the prompt gives no tgt */
  int64_t first_row; /* the prompt's row b draws as row first_row + b: a batch in parts draws as the whole */
} tc_sampling;

/* For model_create and session_create; NULL: defaults (a session: its model's). */
typedef struct {
  size_t size;
  uint64_t seed;       /* model: initialisation and dropout */
  int threads;         /* 0: all cores. With parallel_for: how many tasks may run at once */
  size_t memory_limit; /* bytes that this model (session) may own; 0: none */
  void *(*alloc)(void *user, size_t bytes, size_t align); /* with release; NULL: the C library's */
  void (*release)(void *user, void *memory);
  /* Runs body(arg, 0..tasks-1) in any order on any threads and returns when all are done; NULL: the session's threads. */
  void (*parallel_for)(void *user, int64_t tasks, void (*body)(void *arg, int64_t task), void *arg);
  /* Asked between kernels until the update begins; non-zero ends the call with TC_E_CANCELLED. Parameters and moments
   * are then as before the call; a backward, accumulate or vjp so ended leaves cleared gradients. */
  int (*cancelled)(void *user);
  void *user;
  char *error;         /* model_create: where its message goes when it fails, or NULL */
  size_t error_size;
} tc_options;

/* Non-zero ends that row. */
typedef int (*tc_on_token)(void *user, int64_t row, int32_t token);

/* A line of the parameter table. `offset` and `elements` count elements in the block. Frozen parameters, which have
 * no gradient and no moments, come after all others there. */
typedef struct {
  size_t size;
  const char *name;
  int64_t offset, elements, shape[4];
  int32_t rank, decayed, frozen;
} tc_parameter;

/* What a program that serves every model needs to know of this one. 0 in limits and fixed sizes: free. */
typedef struct {
  size_t size;
  int32_t real_bytes, kind, head, heads_count; /* 4 | 8; TC_KIND_...; TC_HEAD_...; outputs of forward. Of several heads
                                                  head, out_width, classes, ignore_index are the language model's, or
                                                  else the first's */
  int64_t d_model, out_width, vocab, src_vocab, types, max_seq, classes, ignore_index;
  int64_t fixed_B, fixed_T, fixed_S;
  int64_t parameter_block;  /* elements, with padding */
  int32_t parameter_count;  /* P: lines of the table */
  uint32_t inputs, entries; /* bits TC_INPUT_...; bit e: entry e is there */
  const char *target;       /* "x86-64-v3" */
  int64_t gradient_block;   /* elements of the gradients, and of each moment: parameter_block without what is frozen */
  int64_t image[3];         /* channels, height, width; 0: no images */
} tc_info;

/* One of the outputs of forward, see `head_info`. Its rows are tokens [B,T] (per_token) or sequences [B]; of a head on
   the encoder of an encoder-decoder (source) they are source tokens [B,S], or sequences of those. */
typedef struct {
  size_t size;
  const char *name;            /* of [head.NAME]; "" for the only one */
  int32_t type, loss;          /* TC_HEAD_..., TC_LOSS_... */
  int32_t per_token;
  int64_t out_width, ignore_index;
  double loss_weight;          /* its share of the whole loss */
  int32_t source;
} tc_head;

/* The training state besides the blocks. set_state takes seed, call, step_count and divisor. */
typedef struct {
  size_t size;
  uint64_t seed, call, step_count; /* call: how many calls with dropout there were */
  double divisor;                  /* what step will divide by: targets counted; 1 after backward and vjp; 0: nothing yet */
  int32_t complete;                /* 1 after backward and vjp: the gradients are complete */
  int32_t gradients, moments;      /* 1: allocated */
} tc_state;

/* The key/value cache. `lengths` is the session's, [B]. All zero: there is none yet. */
typedef struct {
  size_t size;
  int64_t B, capacity, S;
  const int32_t *lengths;
} tc_cache;

/* What one kernel call of an entry's plan took so far, see `profile`. kernel is NULL at the borders of a loop. */
typedef struct {
  const char *node, *kernel; /* the part of the model it belongs to, and the kernel with its settings */
  int64_t calls, nanoseconds;
} tc_record;

/* A value inside the model that its description taps, see `tap_info` and `tap`. */
typedef struct {
  size_t size;
  const char *name;            /* "layers.0.attn.weights" */
  uint32_t values, gradients;  /* bit e: a call of entry e leaves the value, its gradient */
} tc_tap;

/* A value inside the model that its description lets callers change, see `edit_info` and `set_edit`. */
typedef struct {
  size_t size;
  const char *name;            /* "layers.0.attn" */
  uint32_t entries;            /* bit e: calls of entry e have the value */
  int32_t rank;
  int64_t shape[4];            /* 0: the call's (B, T, S) */
} tc_edit;

/* What set_edit does with elements; clear_edits: with which edit. */
enum { TC_EDIT_REPLACE = 1, TC_EDIT_ADD = 2 };
enum { TC_ALL_EDITS = -1 };

/* An array, the library's or in set_edit the caller's: dense, row-major, NAME_real unless something else is said. */
typedef struct {
  size_t size;
  const void *data;
  int64_t shape[4];            /* filled up with 1 */
  int32_t rank;
} tc_array;

/* The core: what a session does, stateless and re-entrant, over memory that the caller owns. */
typedef struct {
  size_t size;
  void *params;                     /* [parameter_block], written by core_step alone */
  void *grads;                      /* [gradient_block]: core_train and core_vjp add to it, core_step clears it */
  void *moment1, *moment2;          /* [gradient_block] */
  void *cache;                      /* memory(TC_MEMORY_CACHE, B, capacity, S, 0) bytes, 64-byte aligned */
  int64_t capacity;
  const int32_t *cache_lengths;     /* [B]: tokens that each row has; the caller adds to them after core_decode */
  void *workspace;                  /* NAME_workspace_bytes, 64-byte aligned; its content means nothing between calls */
  size_t workspace_bytes;
  int threads;                      /* what the workspace is for; without parallel_for one thread runs all */
  void (*parallel_for)(void *user, int64_t tasks, void (*body)(void *arg, int64_t task), void *arg);
  void *user;
  uint64_t seed, call;              /* of dropout */
  char *error;                      /* where messages go, or NULL */
  size_t error_size;
} tc_core;

typedef struct {
  uint32_t abi; /* 1 */
  uint64_t build_id;
  const char *name, *description; /* description: the resolved TOML */

  /* A model with initialised parameters: the same bits for a seed, whatever the threads. */
  tc_status (*model_create)(const tc_options *, tc_model **);
  void (*model_destroy)(tc_model *); /* after its sessions; NULL is fine */
  /* Parameters from a safetensors file: every name of the table, no other (an equal copy of a tied table may be there),
   * in F64, F32, F16 or BF16. All of it is checked before the first number changes: TC_E_FORMAT says what is wrong with
   * the content, TC_E_FILE (and errno) why it cannot be read; then nothing has changed. strict: a file that `save`
   * wrote is refused where its architecture differs in what shapes do not show (heads, activation, placement of norms,
   * eps, ...), each key with both values. Moments, seed, call and step_count are read where the file has them. No
   * session may run meanwhile (TC_E_STATE). The file is mapped: nobody may cut it off during the call. */
  tc_status (*load)(tc_model *, const char *path, int strict);
  /* Written beside `path` and moved there once it is whole and on the disk; after an error nothing is left and an older
   * file is as it was. with_optimizer: moments, seed, call and step_count too, so that training goes on to the same
   * bits; gradients that were accumulated are not saved. Sessions may read the model meanwhile, not write it. */
  tc_status (*save)(const tc_model *, const char *path, int with_optimizer);
  tc_status (*session_create)(tc_model *, const tc_options *, tc_session **);
  void (*session_destroy)(tc_session *);
  /* Allocates ahead what that entry needs at (B,T,S): workspace, and gradients, moments or cache (of max_seq). */
  tc_status (*reserve)(tc_session *, int entry, int64_t B, int64_t T, int64_t S);
  /* outputs: one pointer per head: [B,T,V]; classifier [B,classes]; head "none": hidden states [B,T,D]. last: [B,V],
   * [B,D] of each row's last real token (not a classifier; of several heads the language model's alone, outputs[0]).
   * Zeros at masked positions. */
  tc_status (*forward)(tc_session *, const tc_batch *, int last, void *const *outputs);
  /* Over the targets that count; none: 0. Of several heads the sum of their means, each times its loss_weight. */
  tc_status (*loss)(tc_session *, const tc_batch *, double *mean);
  /* [B,T], classifier [B]; 0 where not counted. Cross entropy alone; of several heads see head_logprobs. */
  tc_status (*logprobs)(tc_session *, const tc_batch *, void *out);
  /* Clears gradients, then leaves those of the mean loss. */
  tc_status (*backward)(tc_session *, const tc_batch *, double *mean);
  /* Adds gradients of the summed loss, and the count to the divisor. After backward or vjp TC_E_STATE until step or
   * zero_grad. Several heads divide by counts of their own, in each call: what is added is then the gradient of `loss`,
   * sum is `loss`, and count 1 (0 where nothing counted), so that step takes the mean over the calls. */
  tc_status (*accumulate)(tc_session *, const tc_batch *, double *sum, double *count);
  /* Clears gradients, then leaves those of sum(output * grad_output). grad_outputs: one per head. grad_inputs: one
   * per float input among x, src, tgt, memory, image, in this order; NULL where not wanted. */
  tc_status (*vjp)(tc_session *, const tc_batch *, int training, const void *const *grad_outputs,
                   void *const *grad_inputs);
  /* Divides, clips, updates, clears gradients. norm (or NULL): after dividing, before clipping. Divisor 0: nothing
   * happens, norm 0. */
  tc_status (*step)(tc_session *, const tc_adamw *, double *norm);
  tc_status (*train_step)(tc_session *, const tc_batch *, const tc_adamw *, double *mean); /* zero_grad, accumulate, step */
  tc_status (*zero_grad)(tc_session *);
  /* Empties the cache. B 0: the first decode's; capacity 0: max_seq. memory: encoder-decoders, what is encoded (src
   * or memory, src_mask; its B and S), else NULL. */
  tc_status (*cache_reset)(tc_session *, int64_t B, int64_t capacity, const tc_batch *memory);
  /* The next T tokens of each row -> [B,T,V]. With a mask rows bring fewer (padded on the right) and advance by their
   * own count. */
  tc_status (*decode)(tc_session *, const tc_batch *next, void *logits);
  /* From an empty cache. Prompt: tokens [B,T], padded on the right under a mask; encoder-decoders: src or memory, and
   * tgt or T = 0 (then bos). New tokens, eos included, go to on_token, row after row. */
  tc_status (*generate)(tc_session *, const tc_batch *prompt, const tc_sampling *, tc_on_token, void *user);
  void *(*parameter)(tc_model *, const char *name); /* NULL: no such */
  void *(*gradient)(tc_model *, const char *name);  /* NULL: no such, frozen, or nothing trained yet */
  /* SIZE_MAX where no call takes the sizes (T beyond max_seq, a fixed one otherwise), or beyond any memory. */
  size_t (*memory)(int what, int64_t B, int64_t T, int64_t S, int threads); /* exact */
  const char *(*message)(const tc_session *); /* about the last failure; "" after none */

  const char *(*model_message)(const tc_model *); /* of load, save, session_create, set_state */
  const char *(*status_text)(tc_status);          /* "wrong argument" */
  tc_status (*info)(tc_info *);
  tc_status (*parameter_info)(int32_t index, tc_parameter *);
  tc_status (*get_state)(const tc_model *, tc_state *);
  tc_status (*set_state)(tc_model *, const tc_state *);
  void *(*block)(tc_model *, int which);                        /* TC_BLOCK_...; NULL: not allocated */
  void *(*moment)(tc_model *, int which, const char *name);     /* which: 1 | 2; NULL as for gradient */
  tc_status (*allocate)(tc_model *, int gradients, int moments); /* ahead, zeroed (to load an optimizer's state) */
  tc_status (*cache_state)(const tc_session *, tc_cache *);
  int (*threads)(const tc_session *);
  /* Returns how many records the entry's plan has (0: no such entry, or the session is busy). From now on each run of
   * that entry in this session adds to the first `count` of `records`, which are named and zeroed here and stay the
   * caller's; NULL ends it. */
  int64_t (*profile)(tc_session *, int entry, tc_record *records, int64_t count);
  tc_status (*head_info)(int32_t index, tc_head *); /* 0 to heads_count - 1, in the order of outputs and targets */
  /* Low-rank adapters: adds alpha/rank B A of each to its weight and clears B, so that outputs stay what they are but
   * for rounding. Their moments stay. */
  tc_status (*merge_lora)(tc_session *);
  /* Of each head, what the session's last loss, backward, accumulate or train_step summed and counted; either NULL. */
  tc_status (*losses)(tc_session *, double *sums, double *counts);
  /* As logprobs, one pointer per head; not read where a head's loss is no cross entropy. */
  tc_status (*head_logprobs)(tc_session *, const tc_batch *, void *const *outs);
  tc_status (*tap_info)(int32_t index, tc_tap *); /* from 0 on; TC_E_ARGUMENT past the last */
  /* A tapped value as the session's last call has left it, or its gradient (after backward, accumulate and vjp). It lies
   * in the workspace, not copied: good until the session's next call that computes or reserves, as `tap` does not.
   * Zeros at masked positions. TC_E_STATE: that call has left no such value (see tap_info), or has failed; step,
   * train_step and merge_lora leave none, generate those of its last token. */
  tc_status (*tap)(tc_session *, int32_t index, int gradient, tc_array *);
  tc_status (*edit_info)(int32_t index, tc_edit *); /* from 0 on; TC_E_ARGUMENT past the last */
  /* From now on every call of this session that has the value goes on with `value` in its place, or with the sum of
   * both, where `where` (uint8: 0 or 1; NULL: everywhere) is 1. Both arrays are copied; an edit that was set is replaced.
   * They repeat along dimensions of size 1 and those that they lack in front, as NumPy broadcasts: [W], [T,W], [B,1,W]
   * fit [B,T,W]. A call in which they do not fit is TC_E_ARGUMENT and does nothing. Masked rows are not edited. No
   * gradient reaches what was replaced. The core knows no edits. */
  tc_status (*set_edit)(tc_session *, int32_t index, int how, const tc_array *value, const tc_array *where);
  tc_status (*clear_edits)(tc_session *, int32_t index); /* TC_ALL_EDITS: all */
} tc_api;

#ifdef __cplusplus
}
#endif
#endif /* TRANSFORMERC_ABI_1 */
