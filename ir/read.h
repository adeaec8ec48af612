// The grammatical half of the reader of .tcir: modules, graphs and plans out of a TextCursor.
#pragma once

#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "ir/module.h"
#include "ir/text_cursor.h"

namespace tfc::ir {

/// Where in the dump a node stands, by entry and node name: its own place is that in the user's description.
using DumpPlaces = std::map<std::pair<std::string, std::string>, Place>;

class Reader {
 public:
  Reader(std::shared_ptr<const SourceFile> file, DumpPlaces& places)
      : cursor_(std::move(file)), places_(places) {}
  Module module();

 private:
  struct Reference {  // %name#result, to be resolved when all of the graph is read
    bool absent = false;
    std::string name;
    uint32_t result = 0;
    Place place;
  };
  struct PendingNode {
    NodeId id;
    std::vector<Reference> operands;
  };

  void header();
  void description();
  void recompute();
  void freezes();
  std::vector<Freeze> patterns();
  void lora();
  void parameters();
  void constants();
  void entry();
  void graph(Graph& graph, int depth);
  void node(Graph& graph, std::vector<PendingNode>& pending, int depth);
  Reference reference();
  Value resolve(const Graph& graph, const Reference& reference);
  Place loc();
  Plan plan();
  Buffer buffer();
  Tap tap();
  Record call();
  Arg arg();

  TextCursor cursor_;
  DumpPlaces& places_;
  Module module_;
  std::vector<std::shared_ptr<const SourceFile>> files_;
  std::string entry_name_;
};

/// As verify of ir/module.h; `places`, if any, says where in a dump each node stands.
bool verify(const Module& module, Diagnostics& diagnostics, const DumpPlaces* places);

}  // namespace tfc::ir
