#include "frontend/resolve_patches.h"

#include "frontend/scope.h"

namespace tfc::frontend {
namespace {

constexpr int64_t kWidest = 1 << 20;  // of a patch, as of all rows
constexpr int64_t kLongest = 2147483647;

std::string sizes_text(int64_t height, int64_t width) {
  return std::to_string(height) + " x " + std::to_string(width);
}

class PatchResolver {
 public:
  PatchResolver(const Tree& root, Description& description, ir::Diagnostics& diagnostics)
      : root_(root), d_(description), diagnostics_(diagnostics) {}

  void run() {
    const Tree* embedding = root_.valid("embedding");
    const Tree* table = embedding ? embedding->valid("patches") : nullptr;
    const Scope scope{embedding};
    if (!table) {
      const bool refused = embedding && embedding->find("patches");
      if (scope.flag("class_token", false) && !refused)
        error(scope.place("class_token"), "a class token goes before patches, but there are none")
            .notes.push_back("for example patches = { size = 16, image = [3, 224, 224] }");
      return;
    }
    const int before = diagnostics_.errors();
    PatchSettings patches = sizes(*table);
    patches.class_token = scope.flag("class_token", false);
    check_model(*table);
    if (diagnostics_.errors() > before) return;
    if (patches.tokens() > kLongest) {
      error(table->place, std::to_string(patches.tokens()) + " patches are more than " + std::to_string(kLongest));
      return;
    }
    d_.embedding.patches = patches;
    d_.model.max_seq = d_.shapes.seq = patches.tokens();
  }

 private:
  ir::Diagnostic& error(const ir::Place& place, std::string message) {
    return diagnostics_.error(place, std::move(message));
  }

  PatchSettings sizes(const Tree& table) {
    PatchSettings patches;
    for (const char* key : {"size", "image"})
      if (!table.find(key))
        error(table.place, "patches needs the key '" + std::string(key) +
                               "', as in { size = 16, image = [3, 224, 224] }");
    const Tree* image = table.valid("image");
    if (!image || !table.valid("size")) return patches;
    if (image->elements.size() != 3) {
      error(image->place, "image has three sizes, channels, height and width, found " +
                              std::to_string(image->elements.size()));
      return patches;
    }
    patches.size = table.valid("size")->integer;
    patches.channels = image->elements[0].integer;
    patches.height = image->elements[1].integer;
    patches.width = image->elements[2].integer;
    if (patches.height % patches.size != 0 || patches.width % patches.size != 0)
      error(image->place, "size = " + std::to_string(patches.size) + " does not divide an image of " +
                              sizes_text(patches.height, patches.width));
    const int64_t pixels = patches.channels * patches.size * patches.size;
    if (pixels > kWidest)
      error(table.place, "a patch has channels * size * size = " + std::to_string(pixels) +
                             " numbers, expected at most " + std::to_string(kWidest));
    return patches;
  }

  /// What does not go with images.
  void check_model(const Tree& patches) {
    if (d_.model.kind != "encoder" && !d_.model.kind.empty())
      error(patches.key, "patches need kind = \"encoder\", found \"" + d_.model.kind + "\"");
    const Scope model{root_.valid("model")}, shapes{root_.valid("shapes")}, inputs{root_.valid("inputs")};
    if (d_.model.vocab > 0)
      error(model.place("vocab"), "patches take the place of tokens, but vocab = " + std::to_string(d_.model.vocab));
    if (model.has("max_seq")) error(model.find("max_seq")->key, "the patches settle the length: leave max_seq out");
    if (shapes.has("seq")) error(shapes.find("seq")->key, "the patches settle the length: leave seq out");
    for (const char* key : {"mask", "lengths"})
      if (inputs.flag(key, false))
        error(inputs.place(key), "images have no padding: leave '" + std::string(key) + "' out");
    for (const char* key : {"positions", "documents", "prefix"})
      if (inputs.flag(key, false))
        error(inputs.place(key), "'" + std::string(key) + "' tells of tokens, but the inputs are images");
  }

  const Tree& root_;
  Description& d_;
  ir::Diagnostics& diagnostics_;
};

}  // namespace

void resolve_patches(const Tree& root, Description& description, ir::Diagnostics& diagnostics) {
  PatchResolver(root, description, diagnostics).run();
}

}  // namespace tfc::frontend
