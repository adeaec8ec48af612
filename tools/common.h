// What the compiler's walk and the verbs share.
#pragma once

#include <optional>
#include <string>

#include "codegen/target.h"
#include "frontend/description.h"
#include "ir/module.h"
#include "tools/options.h"

namespace tfc::tools {

/// Settings of the command line as the diagnostics want them.
ir::Diagnostics diagnostics_for(const Options& options);

/// Prints what `diagnostics` has to say, in the form that was asked for, and gives the exit status that its
/// errors ask for.
int finish(const Options& options, const ir::Diagnostics& diagnostics);

/// "transformerc: error: TEXT"; gives `status`.
int complain(const std::string& text, int status);

/// Reads the input's text.
std::shared_ptr<const ir::SourceFile> read_input(const Options& options, ir::Diagnostics& diagnostics);

/// The CPU to compile for.
std::optional<codegen::Target> target_of(const Options& options, ir::Diagnostics& diagnostics);

/// Pass options with the design point settled: what --at says, else B=8, T=min(max_seq,256), fixed shapes as
/// they are.
passes::PassOptions pass_options_of(const Options& options, const ir::Module& module);

/// For verbs that run the model: does the design point fit into it?
bool check_point(const ir::Point& point, const ir::Module& module, ir::Diagnostics& diagnostics);

/// What weight files of the model must agree on, for its library to carry.
std::string architecture_of(const ir::Module& module);

/// Is this an encoder-decoder, or any model with a source side?
bool has_source(const ir::Module& module);

}  // namespace tfc::tools
