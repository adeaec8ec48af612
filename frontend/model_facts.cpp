#include "frontend/model_facts.h"

namespace tfc::frontend {

std::vector<ir::HeadFacts> head_facts(const Description& description) {
  std::vector<ir::HeadFacts> list;
  for (const HeadSettings& head : description.heads) {
    const int64_t vocab = head.source ? description.model.src_vocab : description.model.vocab;
    const int64_t out = head.reads_table() ? vocab : head.classes > 0 ? head.classes : description.model.d_model;
    list.push_back({head.name, head.type, head.loss, head.pool.empty(), out, head.ignore_index, head.loss_weight,
                    head.source});
  }
  return list;
}

ir::Attributes model_facts(const Description& description) {
  const bool looked_up = description.inputs.positions && description.position.type == "learned";
  ir::Attributes facts{{"kind", description.model.kind},
                       {"d_model", description.model.d_model},
                       {"vocab", description.model.vocab},
                       {"src_vocab", description.model.src_vocab},
                       {"types", description.embedding.types},
                       {"max_seq", description.model.max_seq},
                       {"classes", description.heads.front().classes},
                       {"mask", description.inputs.mask},
                       {"lengths", description.inputs.lengths},
                       {"positions", description.inputs.positions},
                       {"documents", description.inputs.documents},
                       {"prefix", description.inputs.prefix},
                       {"weights", description.inputs.weights},
                       {"position_rows", looked_up ? description.model.max_seq : 0},
                       {"memory_input", description.model.has_memory_input},
                       {"init", description.train.init},
                       {"init_std", description.train.init_std},
                       {"batch", description.shapes.batch},
                       {"seq", description.shapes.seq},
                       {"src_seq", description.shapes.src_seq}};
  if (description.train.zero_init) facts.set("zero_init", true);
  if (description.has_patches()) {
    facts.set("channels", description.embedding.patches.channels);
    facts.set("height", description.embedding.patches.height);
    facts.set("width", description.embedding.patches.width);
  }
  ir::set_heads(facts, head_facts(description));
  if (description.model.is_encoder_decoder()) {
    facts.set("encoder_layers", static_cast<int64_t>(description.encoder_layers.size()));
    facts.set("decoder_layers", static_cast<int64_t>(description.decoder_layers.size()));
  } else {
    facts.set("layers", static_cast<int64_t>(description.layers.size()));
  }
  return facts;
}

}  // namespace tfc::frontend
