// Images as patches.
#include "models/descriptions.h"

namespace tfc::models {

std::vector<Case> vision_cases() {
  return {
      {"vit", 3, 10, 0, R"(
[model]
kind = "encoder"
d_model = 33
layers = 2
heads = 3
[embedding]
patches = { size = 5, image = [3, 15, 15] }
class_token = true
[head]
type = "classifier"
bias = true
classes = 7
)"},
      {"vit_mean_pool", 2, 6, 0, R"(
[model]
kind = "encoder"
d_model = 17
layers = 1
heads = 1
d_ff = 31
[embedding]
patches = { size = 17, image = [1, 34, 51] }
norm = true
[norm]
placement = "post"
[head]
type = "classifier"
classes = 3
pool = "mean"
)"},
      {"vit_features", 5, 3, 0, R"(
[model]
kind = "encoder"
d_model = 15
layers = 1
heads = 3
[embedding]
patches = { size = 3, image = [2, 3, 6] }
class_token = true
[position]
type = "sinusoidal"
[norm]
type = "rmsnorm"
placement = "sandwich"
)"},
      {"vit_rope_frozen", 1, 16, 0, R"(
[model]
kind = "encoder"
d_model = 16
layers = 2
heads = 2
[embedding]
patches = { size = 1, image = [5, 3, 5] }
class_token = true
[position]
type = "rope"
[head]
type = "classifier"
classes = 2
[train]
freeze = ["embedding", "layers.0"]
)"},
  };
}

}  // namespace tfc::models
