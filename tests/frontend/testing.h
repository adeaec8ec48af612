// What the frontend's tests share.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "frontend/load.h"
#include "ir/module.h"

namespace tfc::frontend::testing {

std::string folder(const std::string& name);                     // tests/frontend/NAME
std::vector<std::string> toml_files(const std::string& folder);  // sorted, without the folder

std::string read_file(const std::string& path);
void write_file(const std::string& path, const std::string& text);
bool updating();  // UPDATE_GOLDEN=1: expected files are rewritten instead of compared

/// The text as the file "model.toml"; fails the test on an error.
/// What --set says.
std::vector<Override> overrides_of(const std::vector<std::string>& sets);

Description load_text(const std::string& text, const std::vector<std::string>& sets = {});

/// What a wrong text is answered with.
std::string errors_of(const std::string& text, const std::vector<std::string>& sets = {});

/// Blocks of f32, checked by the verifier.
ir::Module blocks_of(const Description& description);

/// The module's text without the places, which differ between two descriptions of one model.
std::string text_without_places(const ir::Module& module);

/// A small decoder to vary: [model] with the given lines, then the rest.
std::string decoder(const std::string& model_lines = "", const std::string& rest = "");

}  // namespace tfc::frontend::testing
