// The key/value cache: reset (with the source encoded), decoding, and what it holds.
#include <string.h>

#include <type_traits>

#include "runtime/exports.h"
#include "runtime/objects.h"
#include "runtime/structs.h"

namespace tc {

CacheLayout cache_layout(const ModelDesc& desc, const Sizes& sizes) {
  const bool source = is_encoder_decoder(desc);
  const int64_t of_rows = times(sizes.B, sizeof(int32_t)), of_source = times(sizes.B, sizes.S);
  CacheLayout layout;
  layout.bytes = align_up(evaluate(desc.code + desc.cache_bytes, sizes));
  const auto place = [&](bool wanted, int64_t bytes) {
    if (!wanted) return int64_t{-1};
    const int64_t at = layout.bytes;
    layout.bytes = plus(at, align_up(bytes));
    return at;
  };
  layout.lengths = place(true, of_rows);
  layout.positions = place(desc.has_positions, of_rows);
  layout.documents = place(desc.has_documents, of_rows);
  layout.src_mask = place(source && (desc.has_mask || desc.has_lengths), of_source);
  layout.src_documents = place(source && desc.has_documents, times(of_source, sizeof(int32_t)));
  return layout;
}

namespace {

using Long = long long;

tc_status check_capacity(const ModelDesc& desc, int64_t& capacity, Message& message) {
  if (capacity < 0)
    return message.fail(TC_E_ARGUMENT, "capacity is %lld, expected at least 0", Long{capacity});
  if (capacity == 0) capacity = desc.max_seq;
  if (capacity == 0) {
    return message.fail(TC_E_ARGUMENT, "capacity is missing: %s has no max_seq that it could default to",
                        desc.name);
  }
  if (desc.max_seq > 0 && capacity > desc.max_seq) {
    return message.fail(TC_E_ARGUMENT, "capacity is %lld, expected at most %lld (max_seq)", Long{capacity},
                        Long{desc.max_seq});
  }
  if (capacity > INT32_MAX)
    return message.fail(TC_E_ARGUMENT, "capacity is %lld, expected less than 2^31", Long{capacity});
  return TC_OK;
}

tc_status check_rows(const ModelDesc& desc, int64_t B, Message& message) {
  Sizes sizes;
  sizes.B = B;
  return check_sizes(desc, EntryDecode, sizes, message);
}

/// An empty cache of that shape. The old one stays where there is no memory for it.
tc_status make_cache(tc_session& session, const Sizes& sizes) {
  const ModelDesc& desc = *session.model->desc;
  const CacheLayout layout = cache_layout(desc, sizes);
  const tc_status status = session.allocator.grow(session.cache, layout.bytes, "the cache", session.message);
  if (status != TC_OK) return status;
  session.cache_B = sizes.B;
  session.cache_capacity = sizes.C;
  session.cache_S = is_encoder_decoder(desc) ? sizes.S : 0;
  const auto place = [&](auto*& pointer, int64_t at) {
    pointer = at < 0 ? nullptr : reinterpret_cast<std::remove_reference_t<decltype(pointer)>>(session.cache.data + at);
  };
  place(session.cache_lengths, layout.lengths);
  place(session.cache_positions, layout.positions);
  place(session.cache_documents, layout.documents);
  place(session.cache_src_mask, layout.src_mask);
  place(session.cache_src_documents, layout.src_documents);
  for (int32_t* rows : {session.cache_lengths, session.cache_positions, session.cache_documents}) {
    if (rows) memset(rows, 0, static_cast<size_t>(sizes.B) * sizeof(int32_t));
  }
  return TC_OK;
}

/// Decoding reads the source's mask and documents again and again; the caller's arrays are gone by then.
void keep_source(tc_session& session, const Inputs& source) {
  const int32_t* documents = source.src_documents;
  for (int64_t b = 0; b < source.sizes.B; ++b) {
    for (int64_t s = 0; s < source.sizes.S; ++s) {
      const int64_t at = b * source.sizes.S + s;
      if (session.cache_src_mask) session.cache_src_mask[at] = source.real(b, s, true);
      if (session.cache_src_documents) session.cache_src_documents[at] = documents ? documents[at] : 0;
    }
  }
}

/// The rows' lengths, next positions and last documents after a decode of these inputs.
void advance_rows(tc_session& session, const Inputs& inputs) {
  const int32_t* positions = static_cast<const int32_t*>(inputs.roles[RolePositions]);
  const int32_t* documents = static_cast<const int32_t*>(inputs.roles[RoleDocuments]);
  for (int64_t b = 0; b < inputs.sizes.B; ++b) {
    const int64_t count = row_length(inputs, b), last = b * inputs.sizes.T + count - 1;
    if (count == 0) continue;
    session.cache_lengths[b] += static_cast<int32_t>(count);
    if (session.cache_positions) {
      session.cache_positions[b] =
          positions ? positions[last] + 1 : session.cache_positions[b] + static_cast<int32_t>(count);
    }
    if (session.cache_documents && documents) session.cache_documents[b] = documents[last];
  }
}

tc_status encode(tc_session& session, const Inputs& source) {
  SessionRun run;
  tc_status status = prepare(session, EntryEncode, source, run);
  if (status == TC_OK) status = execute(session, run, true);
  if (status != TC_OK) session.cache_B = 0;  // cancelled half way: there is no cache
  return status;
}

tc_status check_overrun(const tc_session& session, const Inputs& inputs, Message& message) {
  for (int64_t b = 0; b < inputs.sizes.B; ++b) {
    const int64_t has = session.cache_lengths[b], brings = row_length(inputs, b);
    if (has + brings > session.cache_capacity) {
      return message.fail(TC_E_ARGUMENT,
                          "row %lld of the cache has %lld of %lld tokens, and %lld more do not fit", Long{b},
                          Long{has}, Long{session.cache_capacity}, Long{brings});
    }
  }
  return TC_OK;
}

/// The batch of a decode with what the cache knows of the source.
tc_status check_decode(tc_session& session, const tc_batch* next, Inputs& inputs) {
  const ModelDesc& desc = *session.model->desc;
  tc_batch batch;
  tc_status status = read_struct("next", next, batch, session.message);
  if (status != TC_OK) return status;
  if (is_encoder_decoder(desc)) {
    if (session.cache_B == 0) {
      return session.message.fail(TC_E_STATE,
                                  "there is no source to decode from: cache_reset with one first");
    }
    batch.S = session.cache_S;
    batch.src_mask = session.cache_src_mask;
    batch.src_lengths = nullptr;
    batch.src_documents = session.cache_src_documents;
  }
  if (session.cache_B > 0 && batch.B == session.cache_B) {
    inputs.cached = session.cache_lengths;
    inputs.next_positions = session.cache_positions;
    inputs.last_documents = session.cache_documents;
  }
  status = check_batch(desc, EntryDecode, &batch, inputs, session.message);
  if (status == TC_OK && session.cache_B > 0 && inputs.sizes.B != session.cache_B) {
    return session.message.fail(TC_E_ARGUMENT, "B is %lld, but the cache has %lld rows", Long{inputs.sizes.B},
                                Long{session.cache_B});
  }
  return status;
}

/// A first decode makes the cache, when the last reset left its size open.
tc_status cache_for(tc_session& session, const Inputs& inputs) {
  if (session.cache_B > 0) return TC_OK;
  Sizes sizes = inputs.sizes;
  sizes.C = session.cache_capacity;
  tc_status status = check_capacity(*session.model->desc, sizes.C, session.message);
  for (int64_t b = 0; status == TC_OK && b < sizes.B; ++b) {
    if (row_length(inputs, b) > sizes.C) {
      return session.message.fail(TC_E_ARGUMENT,
                                  "row %lld brings %lld tokens, more than the cache's capacity of %lld",
                                  Long{b}, Long{row_length(inputs, b)}, Long{sizes.C});
    }
  }
  return status == TC_OK ? make_cache(session, sizes) : status;
}

}  // namespace

tc_status reset_cache(tc_session& session, int64_t B, int64_t capacity, const Inputs* source) {
  const ModelDesc& desc = *session.model->desc;
  tc_status status = TC_OK;
  if (B == 0 && !source) {  // the first decode decides
    if (capacity != 0) status = check_capacity(desc, capacity, session.message);
    if (status != TC_OK) return status;
    session.cache_B = 0;
    session.cache_capacity = capacity;
    return TC_OK;
  }
  status = check_capacity(desc, capacity, session.message);
  if (status == TC_OK && !source) status = check_rows(desc, B, session.message);
  if (status != TC_OK) return status;
  Inputs inputs;
  if (source) inputs = *source;
  inputs.sizes.B = B;
  inputs.sizes.C = capacity;
  if (source) status = check_edits(desc, session.edits, EntryEncode, inputs.sizes, session.message);
  if (status == TC_OK && source)
    status = need_workspace(session, frame_of(desc, EntryEncode, inputs.sizes, session.options.threads));
  if (status == TC_OK) status = make_cache(session, inputs.sizes);
  if (status != TC_OK || !source) return status;
  keep_source(session, inputs);
  return encode(session, inputs);
}

tc_status decode_next(tc_session& session, const tc_batch* next, void* logits) {
  const ModelDesc& desc = *session.model->desc;
  Inputs inputs;
  tc_status status = require_entry(desc, EntryDecode, session.message);
  if (status == TC_OK) status = check_decode(session, next, inputs);
  if (status == TC_OK) status = check_pointer("logits", logits, real_bytes(desc), session.message);
  if (status == TC_OK && session.cache_B > 0) status = check_overrun(session, inputs, session.message);
  const bool fresh = session.cache_B == 0;
  if (status == TC_OK) status = cache_for(session, inputs);
  if (status != TC_OK) return status;
  inputs.sizes.C = session.cache_capacity;
  inputs.roles[RoleOffsets] = session.cache_lengths;
  SessionRun run;
  status = prepare(session, EntryDecode, inputs, run);
  if (status != TC_OK) {
    if (fresh) session.cache_B = 0;  // still open, as before the call
    return status;
  }
  run.bindings.roles[RoleOutput] = logits;
  status = execute(session, run, true);
  if (status != TC_OK) return status;
  advance_rows(session, inputs);
  return TC_OK;
}

namespace {

tc_status cache_reset(tc_session& session, int64_t B, int64_t capacity, const tc_batch* memory) {
  const ModelDesc& desc = *session.model->desc;
  tc_status status = require_entry(desc, EntryDecode, session.message);
  if (status != TC_OK) return status;
  if (B < 0) return session.message.fail(TC_E_ARGUMENT, "B is %lld, expected at least 0", Long{B});
  if (!is_encoder_decoder(desc)) {
    if (!memory) return reset_cache(session, B, capacity, nullptr);
    return session.message.fail(TC_E_ARGUMENT, "memory is given, but %s has no encoder", desc.name);
  }
  if (!memory)
    return session.message.fail(TC_E_ARGUMENT, "memory is NULL, expected the source that is decoded from");
  Inputs source;
  status = require_entry(desc, EntryEncode, session.message);
  if (status == TC_OK) status = check_batch(desc, EntryEncode, memory, source, session.message);
  if (status == TC_OK && B != 0 && B != source.sizes.B) {
    return session.message.fail(TC_E_ARGUMENT, "B is %lld, but memory has %lld rows", Long{B},
                                Long{source.sizes.B});
  }
  return status == TC_OK ? reset_cache(session, source.sizes.B, capacity, &source) : status;
}

}  // namespace

}  // namespace tc

extern "C" {

tc_status tc_rt_cache_reset(tc_session* session, int64_t B, int64_t capacity, const tc_batch* memory) {
  const tc::SessionCall call(session);
  return call.status() == TC_OK ? tc::cache_reset(*session, B, capacity, memory) : call.status();
}

tc_status tc_rt_decode(tc_session* session, const tc_batch* next, void* logits) {
  const tc::SessionCall call(session);
  return call.status() == TC_OK ? tc::decode_next(*session, next, logits) : call.status();
}

tc_status tc_rt_cache_state(const tc_session* session, tc_cache* cache) {
  if (!session) return TC_E_ARGUMENT;
  tc_cache values{};
  values.B = session->cache_B;
  values.capacity = session->cache_capacity;
  values.S = session->cache_B > 0 ? session->cache_S : 0;
  values.lengths = session->cache_B > 0 ? session->cache_lengths : nullptr;
  return tc::write_struct(cache, values);
}

}  // extern "C"
