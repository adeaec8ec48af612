// Names that a model may have: they become prefixes of C symbols, header, library and Python module names.
#pragma once

#include <string>
#include <string_view>

namespace tfc::frontend {

/// Why no model can be called that; "" when it can.
std::string refusal_of_name(std::string_view name);

/// The nearest name that is allowed: "gpt-2" -> "gpt_2".
std::string allowed_name(std::string_view name);

}  // namespace tfc::frontend
