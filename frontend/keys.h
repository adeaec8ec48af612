// THE table of the language: every key with its type, range, default and meaning. Checks of unknown keys,
// types and ranges, suggestions and the tables of docs/description.md all come from it.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "frontend/toml_tree.h"

namespace tfc::frontend {

enum class KeyType : uint8_t {
  Integer,
  Real,
  Boolean,
  Text,
  Choice,
  Texts,
  TextOrTexts,
  Integers,
  Reals,
  Table,
  Nodes
};

struct Key {
  std::string_view table;  // "model", "ffn.moe"; "" the top level
  std::string_view name;
  KeyType type;
  std::string_view fallback;  // the default, as the documentation words it
  std::string_view meaning;
  double least = 0, most = 0;     // Integer, Real; of lists: of each element
  std::string_view choices = {};  // Choice: "pre|post"
  std::string_view subtable = {};  // Table: whose keys it has
  bool above_least = false;        // Real: `least` itself is out of range
};

struct TableInfo {
  std::string_view name;
  std::string_view meaning;
};

std::span<const Key> all_keys();
std::span<const TableInfo> all_tables();  // in the order of the documentation

const Key* find_key(std::string_view table, std::string_view name);  // null where there is none

/// Keys of a table in the table's order.
std::vector<const Key*> keys_of(std::string_view table);

/// Keys that may stand where `context` says:
///   "model", "ffn", ...           a table of the file
///   "layer.attention" and so on   a table within [block.X] or [layers.X]
///   "node.attention" and so on    a node of a written-out block
std::vector<const Key*> keys_in(std::string_view context);

/// Ops of nodes: attention ffn norm residual linear activation multiply.
std::span<const std::string_view> node_ops();

/// What other projects' key is called here ("n_embd" -> "model.d_model"); "" when it is not known.
std::string_view our_name(std::string_view foreign);
/// What other projects' table is called here ("mlp" -> "ffn").
std::string_view our_table(std::string_view foreign);
/// What other projects' value is called here ("swish" -> "silu"); "" when it is not known.
std::string_view our_value(std::string_view key, std::string_view foreign);

std::vector<std::string> split(std::string_view text, char separator);

/// The keys of a table with type, default and meaning, as a table of Markdown (docs/description.md).
std::string keys_as_markdown(std::string_view table);

}  // namespace tfc::frontend
