#include "passes/plan_memory.h"

#include <algorithm>
#include <map>
#include <set>

#include "ir/check.h"

namespace tfc::passes {
namespace {

using ir::Buffer;
using ir::Dim;
using ir::Plan;
using ir::Point;

constexpr size_t kFewBuffers = 2000;

/// A slot in the making: the distinct sizes of its buffers.
struct Slot {
  std::vector<Dim> sizes;
  int64_t bytes = 0;  // at the point
  int free_from = 0;  // first record that may use it again
  void add(const Buffer& buffer, const Dim& size, int64_t at_point) {
    if (std::find(sizes.begin(), sizes.end(), size) == sizes.end()) sizes.push_back(size);
    bytes = std::max(bytes, at_point);
    free_from = buffer.last + 1;
  }
};

struct Assignment {
  std::vector<int> slot_of;  // by buffer
  std::vector<Slot> slots;
  int64_t bytes() const {
    int64_t sum = 0;
    for (const Slot& slot : slots) sum += slot.bytes;
    return sum;
  }
};

class Assigner {
 public:
  Assigner(const Plan& plan, const Point& point) : plan_(plan), point_(point) {
    for (const Buffer& buffer : plan.buffers) {
      sizes_.push_back(align_up(buffer.bytes, 64));
      bytes_.push_back(sizes_.back().at(point));
    }
  }

  /// Buffers in order of first use. A free slot of the same expression is best; then the smallest that is
  /// large enough; then the largest, which grows (or, with `grow` off, a new one).
  Assignment by_time(bool grow) const {
    std::vector<size_t> order(plan_.buffers.size());
    for (size_t i = 0; i < order.size(); ++i) order[i] = i;
    std::stable_sort(order.begin(), order.end(), [&](size_t a, size_t b) {
      const auto key = [&](size_t i) { return std::pair(plan_.buffers[i].first, -bytes_[i]); };
      return key(a) < key(b);
    });
    Assignment result;
    result.slot_of.resize(order.size(), -1);
    std::set<std::pair<int64_t, int>> free;  // (bytes, slot)
    std::multimap<int, int> busy;            // free_from -> slot
    for (size_t i : order) {
      const Buffer& buffer = plan_.buffers[i];
      while (!busy.empty() && busy.begin()->first <= buffer.first) {
        const int slot = busy.begin()->second;
        free.emplace(result.slots[static_cast<size_t>(slot)].bytes, slot);
        busy.erase(busy.begin());
      }
      const int slot = take(free, i, grow, result);
      result.slots[static_cast<size_t>(slot)].add(buffer, sizes_[i], bytes_[i]);
      result.slot_of[i] = slot;
      busy.emplace(buffer.last + 1, slot);
    }
    return result;
  }

  /// Buffers from the largest to the smallest, each into the first slot that is free for its lifetime. Slots
  /// never grow. Quadratic at worst, so for graphs of ordinary size only.
  Assignment by_size() const {
    std::vector<size_t> order(plan_.buffers.size());
    for (size_t i = 0; i < order.size(); ++i) order[i] = i;
    std::stable_sort(order.begin(), order.end(), [&](size_t a, size_t b) { return bytes_[a] > bytes_[b]; });
    Assignment result;
    result.slot_of.resize(order.size(), -1);
    std::vector<std::map<int, int>> taken;  // by slot: first record -> last
    for (size_t i : order) {
      const Buffer& buffer = plan_.buffers[i];
      size_t slot = 0;
      while (slot < taken.size() && overlaps(taken[slot], buffer)) ++slot;
      if (slot == taken.size()) {
        taken.emplace_back();
        result.slots.emplace_back();
      }
      taken[slot].emplace(buffer.first, buffer.last);
      result.slots[slot].add(buffer, sizes_[i], bytes_[i]);
      result.slot_of[i] = static_cast<int>(slot);
    }
    return result;
  }

  Assignment each_its_own() const {
    Assignment result;
    for (size_t i = 0; i < plan_.buffers.size(); ++i) {
      result.slot_of.push_back(static_cast<int>(i));
      result.slots.emplace_back();
      result.slots.back().add(plan_.buffers[i], sizes_[i], bytes_[i]);
    }
    return result;
  }

 private:
  static bool overlaps(const std::map<int, int>& taken, const Buffer& buffer) {
    const auto after = taken.upper_bound(buffer.last);  // begins when the buffer is gone
    return after != taken.begin() && std::prev(after)->second >= buffer.first;
  }

  int take(std::set<std::pair<int64_t, int>>& free, size_t buffer, bool grow, Assignment& result) const {
    auto best = free.lower_bound({bytes_[buffer], 0});
    for (auto it = best; it != free.end() && it->first == bytes_[buffer]; ++it) {
      const std::vector<Dim>& sizes = result.slots[static_cast<size_t>(it->second)].sizes;
      if (std::find(sizes.begin(), sizes.end(), sizes_[buffer]) == sizes.end()) continue;
      best = it;
      break;
    }
    if (best == free.end() && grow && !free.empty()) best = std::prev(free.end());
    if (best == free.end()) {
      result.slots.emplace_back();
      return static_cast<int>(result.slots.size()) - 1;
    }
    const int slot = best->second;
    free.erase(best);
    return slot;
  }

  const Plan& plan_;
  const Point& point_;
  std::vector<Dim> sizes_;
  std::vector<int64_t> bytes_;
};

void apply(Assignment assignment, Plan& plan) {
  plan.slots.clear();
  for (Slot& slot : assignment.slots) {
    std::sort(slot.sizes.begin(), slot.sizes.end());
    Dim bytes = slot.sizes.front();
    for (const Dim& size : slot.sizes) bytes = max(bytes, size);
    plan.slots.push_back(bytes);
  }
  for (size_t i = 0; i < plan.buffers.size(); ++i) plan.buffers[i].slot = assignment.slot_of[i];
}

void assign(Plan& plan, const Point& point, bool reuse) {
  const Assigner assigner(plan, point);
  if (!reuse) return apply(assigner.each_its_own(), plan);
  Assignment best = assigner.by_time(true);
  const auto consider = [&](Assignment other) {
    if (other.bytes() < best.bytes()) best = std::move(other);
  };
  consider(assigner.by_time(false));
  if (plan.buffers.size() <= kFewBuffers) consider(assigner.by_size());
  apply(std::move(best), plan);
}

}  // namespace

bool plan_memory(ir::Module& module, PassContext& context) {
  const std::vector<std::string>& disabled = context.options.disabled;
  const bool reuse = std::find(disabled.begin(), disabled.end(), "reuse-memory") == disabled.end();
  for (ir::Entry& entry : module.entries) {
    TFC_CHECK(entry.plan, "entry '" + entry.name + "' has no plan");
    assign(*entry.plan, context.options.point, reuse);
    context.diagnostics.remark("plan-memory", {},
                               "entry '" + entry.name + "': " + std::to_string(entry.plan->buffers.size()) +
                                   " buffers in " + std::to_string(entry.plan->slots.size()) + " slots, " +
                                   std::to_string(entry.plan->workspace_bytes().at(context.options.point)) +
                                   " bytes at the design point, lower bound " +
                                   std::to_string(workspace_lower_bound(*entry.plan, context.options.point)));
  }
  return true;
}

int64_t workspace_lower_bound(const Plan& plan, const Point& point) {
  std::vector<int64_t> change(plan.records.size() + 2);
  for (const Buffer& buffer : plan.buffers) {
    const int64_t bytes = align_up(buffer.bytes, 64).at(point);
    change[static_cast<size_t>(buffer.first)] += bytes;
    change[static_cast<size_t>(buffer.last) + 1] -= bytes;
  }
  int64_t live = 0, greatest = 0;
  for (int64_t bytes : change) greatest = std::max(greatest, live += bytes);
  return greatest;
}

}  // namespace tfc::passes
