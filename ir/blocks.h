// The vocabulary between the frontend (which writes block nodes) and the passes (which lower them):
// attributes of block nodes and keys of Module::facts. Booleans are bool, counts int64, factors double, names
// std::string.
#pragma once

namespace tfc::ir {

// Phase `blocks` has one entry, "model". Its inputs (input nodes, node name = input name), as the model
// declares them:
//   tokens i32[B,T] | x f[B,T,D]           decoder, encoder
//   src i32[B,S] | f[B,S,D], tgt i32[B,T] | f[B,T,D]     encoder-decoder
//   memory f[B,S,D]                        encoder-decoder with encoder_layers = 0, in place of src
//   image f[B,c,h,w]                       encoder, in place of tokens: then T is a number everywhere
//   types i32[B,T]   mask u8[B,T]   src_mask u8[B,S] (masks whenever mask or lengths is declared)
//   positions, documents i32[B,T]   src_positions, src_documents i32[B,S]   prefix i32[B]: operands of no block;
//   embedding and attention find them by these names
//   of each head with a loss: targets i32 (cross entropy) or f, with the output's width; weights f (declared): of its
//   rows, [B,T] or [B]
// Its outputs: "output" (logits, class logits, numbers or hidden states) and, where there is a loss, "loss.sum",
// "loss.count". Heads with names have inputs and outputs of their own, "targets.NAME", "loss.sum.NAME"
// (ir/heads.h).
//
// A dimension S stands for source tokens; in a decoder or encoder there is only T, for queries and keys.
//
// block.embedding (ids | x | image, types?, mask?)
//   table        "tok_emb.weight"; "" for vocab 0            vocab      rows of the table
//   scale        factor on token vectors, 1.0                tokens     dim(T) or dim(S)
//   position     "learned" | "sinusoidal" | "rope" | "alibi" | "none"  pos_table  "pos_emb.weight"; "" unless learned
//   max_seq      rows of pos_table                           types      token types; 0: none
//   ("type_emb.weight") dropout  probability, 0.0
//   patch        pixels on a side of an image's patches ("patch_emb"); absent: no image
//   class_token  bool: "cls_token" before them
//   dim          width of the tables and their norm, where it is not D; projection  "emb_proj", from dim to D
//   norm         bool; then norm.type, norm.eps, norm.bias, norm.prefix ("emb_norm")
//   A position of "rope" or "alibi" adds nothing here; attention nodes carry it.
//
// block.layer (x, memory?, mask?, memory_mask?): the ordinary layer
//   prefix       "layers.3", "encoder.layers.0", "decoder.layers.1"      cross   bool: has attention to
//   memory placement    "pre" | "post" | "sandwich" | "auto"        depth      layers of its stack (for auto)
//   weights      where its parameters are, if not at prefix: "blocks.NAME", "encoder.blocks.NAME" of a shared block
//   attention.K, ffn.K, norm.K, residual.K: the keys K of the nodes below, for all of the layer's nodes
//
// A node's name is of its layer; `prefix` is where its parameters are, of the layer or of a shared block.
//
// block.attention (x, memory?, key_mask?)  with memory: queries from x, keys and values from memory
//   prefix ("layers.3.attn", "decoder.layers.1.cross")   heads, kv_heads, head_dim   scale   causal
//   dropout (of the weights, 0.0)   qkv_bias, o_bias   rope "" | "half" | "interleaved"   rope_theta
//   and where they are wanted: window, after (0: none)   alibi   prefix_lm
// block.ffn        prefix ("layers.3.ffn"), d_ff, activation (relu | gelu | gelu_tanh | silu | swiglu | geglu
// | reglu),
//                  bias   dropout (after the activation, 0.0)
//                  with experts > 0 (x, mask?): experts, top_k, renormalize, aux_loss, capacity
// block.norm       prefix ("layers.3.norm1", "final_norm"), type (layernorm | rmsnorm), eps, bias;
//                  final "" | "yes" | "auto" (a stack's last norm; "auto": kept unless the placement became
//                  post), and for final = "auto": depth
// block.residual   scale: first operand + scale * (sum of the others)   dropout (of each of the others, 0.0)
//                  gamma, where there is LayerScale: what the factors PREFIX.gamma of that sum begin with; prefix
// block.linear     prefix, out, bias       block.activation  kind        block.multiply  no attributes
// block.head (x, mask?)
//   type "lm" | "mlm" | "classifier" | "token_classifier" | "regression" | "none"   prefix "head", "head.NAME"
//   out width of a row   bias   tied "tok_emb.weight", or "" for a weight of its own (lm, mlm)
//   pool "first" | "mean" | "last", or "" for a row of each token   norm.type, norm.eps, norm.bias (mlm)
//   -> f[B,T,out] | f[B,out]
// block.loss (the head's result, targets, weights?)   kind "cross_entropy" (absent) | "binary_cross_entropy" | "mse"
//   ignore_index, smoothing, share (its factor in the whole loss, 1 where absent) -> sum f64[], count f64[]
//   What the head masks does not count.
//
// Module::facts
//   kind "decoder" | "encoder" | "encoder-decoder"   d_model   layers (decoder, encoder)   encoder_layers
//   decoder_layers (encoder-decoder)   vocab, src_vocab (0: floats)   types   max_seq (0: no limit)
//   of the heads: see ir/heads.h   classes   memory_input bool
//   mask, lengths, positions, documents, prefix, weights (declared inputs)
//   position_rows (of a learned table in which the input `positions` is looked up, or 0)
//   init "normal" | "gpt2" | "xavier" | "torch"   init_std   zero_init   lora_scale (from ops on)
//   batch, seq, src_seq: sizes fixed by [shapes], 0: free   channels, height, width: of images, where there are any

}  // namespace tfc::ir
