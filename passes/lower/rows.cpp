#include "passes/lower/rows.h"

#include "ir/check.h"

namespace tfc::passes {

Location written(Lowering& l, ir::Value result) {
  if (l.used(result)) return l.locate(result);
  const int64_t width = static_width(l.type(result));
  return {l.temporary("unread", l.type(result).bytes()), width, width};
}

int64_t static_width(const ir::Type& type) {
  const auto width = type.width().constant();
  TFC_CHECK(width, "a kernel needs rows of fixed width, not " + type.text());
  return *width;
}

ir::Record kernel_call(Lowering& l, std::string family, ir::Attributes attributes, ir::Dim tasks,
                       std::vector<ir::Arg> args, ir::Dim flops, ir::Dim reals) {
  ir::Record record;
  if (!attributes.has("f")) attributes.set("f", l.real_name());
  record.kernel = {std::move(family), std::move(attributes)};
  record.tasks = std::move(tasks);
  record.args = std::move(args);
  record.flops = std::move(flops);
  record.bytes = reals * ir::dtype_bytes(l.module().real);
  return record;
}

}  // namespace tfc::passes
